"""Record on a Hopper GPU what chapter 11's kernels give: errors, times beside PyTorch's, counters.

    python tools/record/record_hopper.py --out FILE [rung ...]   (two to three minutes; CuPy, PyTorch,
                                                                  ncu, compute-sanitizer)
    python tools/record/record_hopper.py --out FILE --stages compile profile   (those alone, into FILE)
    python tools/record/record_hopper.py --dry-run               (needs no GPU: compiles all of it)

Every rung is checked in a process of its own, which a kernel that never ends cannot hold up; what is
wrong there is told by rows and columns, and only what is right is timed. Writes FILE, a JSON, after
every stage; a stage that fails is noted there and the rest goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded.flash_cases import Variant  # noqa: E402
from recorded.sections import EXTRA_METRICS, METRICS  # noqa: E402

from helpers.problem import flash_inputs as flash  # noqa: E402
from helpers.problem.attention import relative_error  # noqa: E402
from tools.record import flash_device, watching  # noqa: E402
from tools.record.hopper.hopper_cases import (  # noqa: E402
    PROFILED,
    STEPS,
    TRIED,
    asked,
    chosen,
    contenders,
    kernels,
    profiled_name,
    steps,
)
from tools.record.hopper.hopper_errors import check  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.rivals import contest  # noqa: E402
from tools.record.watching import say  # noqa: E402

COUNTED = (((1, 1, 256, 128), "half", 0), ((1, 1, 100, 64), "nv_bfloat16", 1))
SANITIZED = (((1, 2, 130, 64), "half", 1), ((2, 1, 65, 128), "nv_bfloat16", 0))
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "ComputeWorkloadAnalysis")
CHECK_SECONDS = 60
COMPILERS = 12  # processes

# ---------------------------------------------------------------- under other tools


def drive_counted(names: list[str]) -> None:
    """Small grids of every step, in the order of `counted`: what ncu watches."""
    import cupy as cp

    for one, (shape, element, causal) in itertools.product(steps(names), COUNTED):
        flash_device._launch(asked(one, causal), flash.make_inputs(*shape, element, seed=1))
    cp.cuda.runtime.deviceSynchronize()


def drive_sanitized(names: list[str]) -> None:
    """Small launches without CuPy's pool of memory, so that every array has bounds of its own."""
    import cupy as cp

    cp.cuda.set_allocator(None)
    for one, (shape, element, causal) in itertools.product(steps(names), SANITIZED):
        Q, K, V = map(cp.asarray, flash.make_inputs(*shape, element))
        out = cp.empty(Q.shape, Q.dtype)
        asked(one, causal).launch_of(Q, K, V, out).run()
        cp.asnumpy(out)


def drive_profiled(names: list[str]) -> None:
    """Steps and variants once each at a large size."""
    import cupy as cp

    for one, shape, causal in _profiled(names):
        arrays = flash.make_inputs(1, 1, *shape[2:])
        Q, K, V = (cp.asarray(np.tile(x, (*shape[:2], 1, 1))) for x in arrays)
        asked(one, causal).launch_of(Q, K, V, cp.empty(Q.shape, Q.dtype)).run()
    cp.cuda.runtime.deviceSynchronize()


def _profiled(names: list[str]) -> list[tuple[Variant, tuple[int, ...], int]]:
    """Those of `PROFILED` that are chosen."""
    return [case for case in PROFILED if case[0] in chosen(names)]


def counted(names: list[str]) -> list[dict]:
    """What ncu counts of small grids, what the simulator counts, and where they differ."""
    wanted = METRICS | EXTRA_METRICS
    script = [__file__, "--drive", "counted", *names]
    rows = watching.profile(script, "^flash_attention$", watching.metrics(wanted), 60)
    cases = list(itertools.product(steps(names), COUNTED))
    if len(rows) != len(cases):
        return [{"error": f"{len(rows)} kernels for {len(cases)} cases", "rows": rows[:2]}]
    found = []
    for (one, (shape, element, causal)), row in zip(cases, rows, strict=True):
        theirs = watching.counters(row, wanted)
        found.append({"name": one.name, "shape": list(shape), "element": element,
                      "causal": causal, "ncu": theirs})  # fmt: skip
        print(f"  {one.name} {shape} {element} causal {causal}: {theirs}", flush=True)
    return found


def simulated(names: list[str]) -> None:
    """The simulator's error and counters of the small grids, with no GPU."""
    for one, (shape, element, causal) in itertools.product(steps(names), COUNTED):
        arrays = flash.make_inputs(*shape, element, seed=1)
        O, (report,) = one.rung.simulate(*arrays, CAUSAL=causal)  # noqa: E741
        error = relative_error(flash.to_float(O), flash.reference(*arrays, causal=bool(causal)))
        kept = {key: int(report.counters[key]) for key in METRICS if key in report.counters}
        print(
            f"{one.name} {shape} {element} causal {causal}: error {error:.1e}, {kept}", flush=True
        )


def profiled(names: list[str]) -> dict:
    """Sections of Nsight Compute for steps and variants at large sizes."""
    options = [option for section in SECTIONS for option in ("--section", section)]
    script = [__file__, "--drive", "profiled", *names]
    rows = watching.profile(script, "^flash_attention$", options, 90)
    cases = _profiled(names)
    if len(rows) != len(cases):
        return {"error": f"{len(rows)} kernels for {len(cases)} cases"}
    return {
        profiled_name(*case): {"shape": list(case[1]), **row}
        for case, row in zip(cases, rows, strict=True)
    }


def sanitized(names: list[str]) -> dict:
    """What memcheck and racecheck say of small grids."""
    script = [__file__, "--drive", "sanitized", *names]
    return watching.sanitize({tool: (tool, script) for tool in ("memcheck", "racecheck")}, 30)


# ---------------------------------------------------------------- all of it


def compiled(names: list[str]) -> list[dict]:
    """Everything compiled with CuPy, in a dozen processes."""

    def part(number: int) -> dict:
        more = ("--part", str(number), *names)
        return contest.child(__file__, "compile", 90, *more, quiet=True)

    with ThreadPoolExecutor(COMPILERS) as pool:
        parts = list(pool.map(part, range(COMPILERS)))
    say(f"compiled: {sum(part.get('compiled', 0) for part in parts)}")
    for part in parts:
        lost = {"a compiler": part["error"][-600:]} if "error" in part else {}
        for problem in {**part.get("problems", {}), **lost}.items():
            print("  ", problem, flush=True)
    return parts


def checked(names: list[str]) -> dict:
    """Every step in a process of its own, then the variants of those that are right."""

    def one(variant: Variant) -> dict:
        return contest.child(__file__, "check", CHECK_SECONDS, variant.name)

    found: dict = {}
    with ThreadPoolExecutor(7) as pool:
        for group in (STEPS, TRIED):
            wrong = {
                v.rung.name for v in STEPS if found.get(v.name, {"wrong": 0}).get("wrong") != 0
            }
            todo = [v for v in chosen(names) if v in group and v.rung.name not in wrong]
            found |= zip([v.name for v in todo], pool.map(one, todo), strict=True)
    for name, own in found.items():
        if own.get("wrong") != 0:
            say(f"{name} is left out from here on: {own.get('error', 'wrong')[-600:]}")
    return found


CHILDREN = {
    "compile": lambda part, names: contest.warm_up(kernels(names)[part::COMPILERS]),
    "check": lambda _, names: check(names[0]),
    "times": lambda _, names: contest.times(lambda shape, causal: contenders(names, shape, causal)),
}
DRIVERS = {"counted": drive_counted, "sanitized": drive_sanitized, "profiled": drive_profiled}


def record(out: Path, stages: list[str], names: list[str]) -> None:
    """The stages, into `out`; those that are not named stay there as they are.

    Raises:
        ValueError: what is there is of another GPU.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    device = contest.versions()
    whole: dict = json.loads(out.read_text("utf-8")) if stages and out.exists() else {}
    before = whole.setdefault("device", device)
    if before["gpu"] != device["gpu"]:
        raise ValueError(f"{out} is of {before['gpu']}, and this is {device['gpu']}.")
    say(str(device))
    make = {
        "compile": compiled,
        "check": checked,
        "times": lambda right: contest.child(__file__, "times", 150, *right),
        "profile": profiled,
        "sanitizer": sanitized,
        "counters": counted,
    }
    for stage in stages or make:
        wanted = names
        if stage not in ("compile", "check") and not (wanted := _right(whole, names)):
            continue
        try:
            whole[stage] = make[stage](wanted)
        except Exception as error:  # the other stages are still wanted
            whole[stage] = {"error": f"{type(error).__name__}: {error}"}
            say(f"{stage}: {whole[stage]['error']}")
        save(out, whole)
    say("done")


def _right(whole: dict, names: list[str]) -> list[str]:
    """The names of those that were found right, among those that are chosen."""
    found = whole.get("check", {})
    return [one.name for one in chosen(names) if found.get(one.name, {}).get("wrong") == 0]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rungs", nargs="*", help="how the names of rungs begin, such as 11d")
    parser.add_argument("--out", type=Path, help="the file for the results")
    parser.add_argument("--stages", nargs="*", default=[], help="some of the later stages alone")
    parser.add_argument("--dry-run", action="store_true", help="compile and simulate, run nothing")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--drive", choices=DRIVERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.dry_run:
        simulated(given.rungs)
        return 1 if contest.compile_all(kernels(given.rungs)) else 0
    if given.drive:
        DRIVERS[given.drive](given.rungs)
        return 0
    if given.child:
        print("RESULT", json.dumps(CHILDREN[given.child](given.part, given.rungs)))
        return 0
    if given.out is None:
        parser.error("--out FILE says where the results go")
    record(given.out, given.stages, given.rungs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
