"""Record on a Hopper GPU what its own instructions give: results to the bit, and ncu's counters.

    python tools/record/record_hopper_counters.py --out tests/recorded/data/hopper_instructions.json
                                                          (about a minute; needs CuPy and ncu)
    python tools/record/record_hopper_counters.py --dry-run   (needs no GPU: compiles every case)

A launch that fails is noted. If it takes the context with it, the cases behind it are not recorded.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.hopper_cases import (  # noqa: E402
    KERNELS,
    HopperCase,
    hopper_cases,
    options_of,
    packed,
)
from recorded.sections import EXTRA_METRICS, METRICS  # noqa: E402

from helpers.gpu.tensor_map import tensor_map  # noqa: E402
from helpers.simulator import SimulatorError  # noqa: E402
from helpers.simulator.compile.machine_code import machine_code  # noqa: E402
from tools.record import watching  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.watching import say  # noqa: E402

NCU_SECONDS = 240


def compile_all() -> int:
    """Compile every case to machine code; the number of failures."""
    failures = 0
    for case in hopper_cases():
        try:
            machine_code(case.code, case.entry, architecture="sm_90a")
        except SimulatorError as error:
            failures += 1
            print(f"{case.name}: {error}")
    say(f"{len(hopper_cases())} cases compiled, {failures} failures")
    return failures


def launch(case: HopperCase, kernels: dict) -> list[np.ndarray]:
    """What a case leaves in its outputs. Raises what CuPy raises."""
    import cupy as cp

    key = (case.code, case.entry)
    if key not in kernels:
        kernels[key] = cp.RawKernel(case.code, case.entry, options=options_of(case))
    passed, outputs = case.arguments(cp.asarray, tensor_map)
    kernels[key]((1,), (case.threads,), tuple(passed), shared_mem=case.shared)
    cp.cuda.runtime.deviceSynchronize()
    return [cp.asnumpy(array) for array in outputs]


def launch_all(journal: Path, skipped: list[str]) -> None:
    """One launch of every case: what ncu watches. `journal` gets the names of those that ran."""
    kernels: dict = {}
    done: list[str] = []
    for case in (one for one in hopper_cases() if one.name not in skipped):
        try:
            launch(case, kernels)
            done.append(case.name)
        except Exception as error:  # the others are still wanted
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)
            if context_is_gone():
                break
    journal.write_text(json.dumps(done))


def context_is_gone() -> bool:
    """Whether nothing can be launched any more."""
    import cupy as cp

    try:
        cp.cuda.runtime.deviceSynchronize()
    except Exception:  # whatever it says
        return True
    return False


def faulty() -> dict[str, str]:
    """What stops a case in a process of its own, by name: a fault ends all that follow."""

    def what_stops(case: HopperCase) -> str:
        done = subprocess.run(
            [sys.executable, __file__, "--launch", case.name], capture_output=True
        )
        said = done.stderr.decode()
        if done.returncode:
            say(f"{case.name}: {said[-300:]}")
        named = re.findall(r"CUDA_ERROR_\w+", said)
        return (named[0] if named else said[-300:] or "no word") if done.returncode else ""

    with ThreadPoolExecutor(8) as pool:
        stops = zip(hopper_cases(), pool.map(what_stops, hopper_cases()), strict=True)
        return {case.name: why for case, why in stops if why}


def record(out: Path) -> None:
    """Results and counters, into a file that is written after each of the two."""
    skipped = faulty()
    notes: dict[str, dict] = {}
    whole = {"device": gpu.describe(), "metrics": METRICS | EXTRA_METRICS, "cases": notes}
    say(str(whole["device"]))
    kernels: dict = {}
    for case in hopper_cases():
        notes[case.name] = {"digest": case.digest()}
        if case.name in skipped:
            notes[case.name]["stopped"] = skipped[case.name]
            continue
        try:
            notes[case.name]["results"] = [packed(array) for array in launch(case, kernels)]
        except Exception as error:  # what has been recorded before is kept
            notes[case.name]["error"] = f"{type(error).__name__}: {error}"[:500]
            say(f"{case.name}: {error}")
            if context_is_gone():
                break
    say(f"{len(notes)} cases of {len(hopper_cases())}")
    save(out, whole)
    wanted = METRICS | EXTRA_METRICS
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "launched.json"
        script = [__file__, "--launch-all", str(journal), "--skip", *skipped]
        rows = watching.profile(script, f"^({KERNELS})$", watching.metrics(wanted), NCU_SECONDS)
        launched = json.loads(journal.read_text()) if journal.exists() else []
    if len(rows) != len(launched):
        say(f"ncu saw {len(rows)} kernels, and {len(launched)} cases ran: counters are left out")
        rows = []
    for name, row in zip(launched, rows, strict=False):
        notes.setdefault(name, {})["counters"] = watching.counters(row, wanted)
    save(out, whole)
    say("done")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="file for the results")
    parser.add_argument("--dry-run", action="store_true", help="compile everything, run nothing")
    parser.add_argument("--launch-all", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    parser.add_argument("--skip", nargs="*", default=[], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.dry_run:
        return 1 if compile_all() else 0
    if chosen.launch:
        launch(next(case for case in hopper_cases() if case.name == chosen.launch), {})
        return 0
    if chosen.launch_all:
        launch_all(chosen.launch_all, chosen.skip)
        return 0
    if chosen.out is None:
        parser.error("--out FILE says where the results go")
    record(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
