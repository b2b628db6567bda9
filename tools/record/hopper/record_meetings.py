"""Record on a Hopper GPU when accesses to shared memory cost more wavefronts than each alone.

    python tools/record/hopper/record_meetings.py --out tests/recorded/data/hopper_meetings.json
                                                     (under a minute; needs CuPy and ncu)
    python tools/record/hopper/record_meetings.py --dry-run  (needs no GPU: compiles and counts all)

Each launch is made several times: what differs then depends on who comes when. Nsight Compute's
other way to count, by the addresses of each instruction, is recorded beside it where it has one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.flash_cases import Variant  # noqa: E402
from recorded.meetings.meeting_cases import (  # noqa: E402
    CHANGED,
    GRIDS,
    MEETINGS,
    RUNGS,
    SHARED,
    THREADS,
    Meeting,
)
from recorded.sections import EXTRA_METRICS, METRICS  # noqa: E402

from helpers import simulator  # noqa: E402
from helpers.problem import flash_inputs as flash  # noqa: E402
from helpers.simulator.compile.machine_code import machine_code  # noqa: E402
from tools.record import watching  # noqa: E402
from tools.record.hopper.hopper_cases import asked  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.rivals import contest  # noqa: E402
from tools.record.watching import say  # noqa: E402

REPEATS = 4
NAMES = (
    "shared_load_wavefronts", "shared_store_wavefronts", "shared_load_bank_conflicts",
    "shared_store_bank_conflicts", "shared_store_instructions", "instructions",
)  # fmt: skip
COUNTED = {name: (METRICS | EXTRA_METRICS)[name] for name in NAMES}
# Worked out from the addresses of each instruction, by code that Nsight Compute puts beside it.
BY_ADDRESS = {
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_ideal_wavefronts": "memory_l1_wavefronts_shared_ideal",
}
COMPILERS = 12  # processes


def attention() -> list[tuple[str, Variant, tuple]]:
    """(name, kernel, grid) of chapter 11's kernels: steps on both grids, changed ones on one."""
    cases = [(one, grid) for one in RUNGS for grid in GRIDS]
    cases += [(one, GRIDS[0]) for one in CHANGED]
    return [(f"{one.name}, {_size(grid)}", asked(one, grid[2]), grid) for one, grid in cases]


def _size(grid: tuple) -> str:
    (_, _, n, d), element, causal = grid
    return f"n {n}, d {d}, {element}{', causal' if causal else ''}"


def names() -> list[str]:
    """Of all launches, in the order in which they are made."""
    return [one.name for one in MEETINGS] + [name for name, _, _ in attention()]


def launches() -> list[Callable[[], None]]:
    """All of them, ready to be made on the GPU."""
    import cupy as cp

    def of_meeting(one: Meeting) -> Callable[[], None]:
        kernel = cp.RawKernel(one.code, one.entry, options=one.options)
        given = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in one.arguments()]
        return lambda: kernel((1,), (THREADS,), tuple(given), shared_mem=SHARED)

    def of_attention(one: Variant, grid: tuple) -> Callable[[], None]:
        shape, element, _ = grid
        Q, K, V = (cp.asarray(x) for x in flash.make_inputs(*shape, element, seed=1))
        return one.launch_of(Q, K, V, cp.empty(Q.shape, Q.dtype)).run

    found = [of_meeting(one) for one in MEETINGS]
    return found + [of_attention(one, grid) for _, one, grid in attention()]


def drive(repeats: int) -> None:
    """All launches, several times in turn: what ncu watches."""
    import cupy as cp

    listed = launches()
    for launch in itertools.chain.from_iterable(listed for _ in range(repeats)):
        launch()
    cp.cuda.runtime.deviceSynchronize()


def counted(wanted: dict[str, str], repeats: int, seconds: float) -> dict[str, list[dict]]:
    """{name: counters of each repeat}; empty if ncu did not see every launch."""
    script = [__file__, "--drive", str(repeats)]
    kernels = "^(meeting|flash_attention)$"
    rows = watching.profile(script, kernels, watching.metrics(wanted), seconds)
    made = names() * repeats
    if len(rows) != len(made):
        say(f"{len(rows)} kernels for {len(made)} launches")
        return {}
    found: dict[str, list[dict]] = {name: [] for name in names()}
    for name, row in zip(made, rows, strict=True):
        found[name].append(watching.counters(row, wanted))
    return found


def warm_up() -> dict:
    """Everything compiled with CuPy, in a dozen processes."""

    def part(number: int) -> dict:
        return contest.child(__file__, "compile", 90, "--part", str(number), quiet=True)

    with ThreadPoolExecutor(COMPILERS) as pool:
        parts = list(pool.map(part, range(COMPILERS)))
    return {number: one for number, one in enumerate(parts) if one.get("problems", one)}


def record(out: Path) -> None:
    """Counters into a file, which is written after each of the two ways."""
    whole: dict = {"device": gpu.describe(), "metrics": COUNTED | BY_ADDRESS}
    say(f"{whole['device']}, not compiled: {warm_up()}")
    whole["counters"] = counted(COUNTED, REPEATS, 70)
    for name, repeats in whole["counters"].items():
        stores = [one.get("shared_store_wavefronts") for one in repeats]
        loads = [one.get("shared_load_wavefronts") for one in repeats]
        print(f"  {name}: stores {stores}, loads {loads}", flush=True)
    save(out, whole)
    whole["by_address"] = counted(BY_ADDRESS, 1, 60)
    save(out, whole)
    say("done")


def dry_run() -> int:
    """Compile and count everything with no GPU; the number of failures."""
    for one in MEETINGS:
        machine_code(one.code, one.entry, architecture="sm_90a")
        report = simulator.launch(
            one.code, one.entry, 1, THREADS, one.arguments(), options=one.options,
            shared_mem=SHARED,
        )  # fmt: skip
        _show(one.name, report)
    for name, one, (shape, element, _) in attention():
        Q, K, V = flash.make_inputs(*shape, element, seed=1)
        _show(name, one.launch_of(Q, K, V, np.zeros_like(Q)).count())
    return contest.compile_all((one, grid[1], grid[0][3]) for _, one, grid in attention())


def _show(name: str, report) -> None:
    found = {key: report.counters[key] for key in NAMES if "wavefronts" in key}
    print(f"{name}: {found}", flush=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="file for the results")
    parser.add_argument("--dry-run", action="store_true", help="compile and simulate, run nothing")
    parser.add_argument("--drive", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dry_run:
        return 1 if dry_run() else 0
    if given.drive:
        drive(given.drive)
        return 0
    if given.child:
        built = [(one, grid[1], grid[0][3]) for _, one, grid in attention()]
        found = contest.warm_up(built[given.part :: COMPILERS])
        print("RESULT", json.dumps(found))
        return 0
    if given.out is None:
        parser.error("--out FILE says where the results go")
    record(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
