"""Record on a GPU what chapter 10's kernels give: errors, times beside PyTorch's, counters.

With a causal mask the kernels of chapters 08 and 09 are among them.

    python tools/record/record_overlap.py --out FILE      (about four minutes; CuPy, PyTorch, ncu,
                                                            compute-sanitizer)
    python tools/record/record_overlap.py --dry-run       (needs no GPU: compiles every contender)

Writes FILE, a JSON, after every stage; a stage that fails is noted there and the rest goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
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
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED  # noqa: E402
from helpers.problem.flash_overlap import (  # noqa: E402
    FLASH_DOUBLE_BUFFER,
    FLASH_REGISTERS,
    FLASH_RESCALE,
    FLASH_WIDE_WARPS,
    OVERLAP,
)
from tools.record import flash_device, watching  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.rivals import contest  # noqa: E402
from tools.record.rivals.contest import SHAPES  # noqa: E402
from tools.record.watching import say  # noqa: E402

TUNED = (SHAPES[0], SHAPES[3])  # with the variants
COUNTED = (((1, 1, 256, 128), "half", 0), ((1, 1, 100, 64), "nv_bfloat16", 1))
PROFILED = (4, 16, 4096, 128)
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "ComputeWorkloadAnalysis")
COMPILERS = 12  # processes


def _blocks(old: str, count: int) -> tuple[tuple[str, str], ...]:
    return ((f"constexpr int BLOCKS = {old};", f"constexpr int BLOCKS = {count};"),)


_NARROW, _WIDE = (
    "B_R != 64 || WARPS != 4 ? 1 : HEAD_DIM == 64 ? 3 : 2",
    "B_R > 128 || WARPS > 4 ? 1 : 2",
)
_UNROLL = "#pragma unroll 2  // unrolled"
STEPS = (
    Variant("09 swizzled", rung=FLASH_SWIZZLED),
    *(Variant(f"{one.file[:3]} {one.name[6:]}", rung=one) for one in OVERLAP),
    Variant("10e rescale, always", {"SLACK": -1}, rung=FLASH_RESCALE),
    Variant("10e rescale, slack 8", {"SLACK": 8}, rung=FLASH_RESCALE),
)
# Chapter 08's kernel without a mask is timed by record_flash.py, and with one here.
CHECKED = (Variant("08 baseline", rung=FLASH_BASELINE), *STEPS)
TRIED = (
    Variant("10b, 3 blocks", changes=_blocks(_NARROW, 3), rung=FLASH_REGISTERS),
    Variant("10c, 3 blocks", changes=_blocks(_NARROW, 3), rung=FLASH_DOUBLE_BUFFER),
    Variant("10c, B_C 32, 3 blocks", {"B_C": 32}, _blocks(_NARROW, 3), FLASH_DOUBLE_BUFFER),
    Variant("10c, B_R 128, 8 warps", {"B_R": 128, "WARPS": 8}, rung=FLASH_DOUBLE_BUFFER),
    Variant("10d, B_C 32", {"B_C": 32}, rung=FLASH_WIDE_WARPS),
    Variant("10e, B_C 32, slack 8", {"B_C": 32, "SLACK": 8}, rung=FLASH_RESCALE),
    Variant("10e, 3 blocks, slack 8", {"SLACK": 8}, _blocks(_WIDE, 3), FLASH_RESCALE),
    Variant("10e, copies in a loop, slack 8", {"SLACK": 8}, ((_UNROLL, "#pragma unroll 1  //"),),
            FLASH_RESCALE),
    Variant("10e, copies unrolled, slack 8", {"SLACK": 8}, ((_UNROLL, "#pragma unroll  //"),),
            FLASH_RESCALE),
)  # fmt: skip


def contenders(shape, causal: int) -> list[Variant]:
    """What is timed at one size."""
    listed = [*(CHECKED if causal else STEPS), *(TRIED if shape in TUNED else ())]
    return [dataclasses.replace(one, values={**one.values, "CAUSAL": causal}) for one in listed]


# ---------------------------------------------------------------- compiling


def kernels() -> list[tuple[Variant, str, int]]:
    """Everything that a recording launches: variant, type of an element, head dim."""
    elements, dims = ("half", "nv_bfloat16"), (64, 128)
    listed = [
        (dataclasses.replace(one, values={**one.values, "CAUSAL": causal}), element, d)
        for one, element, d, causal in itertools.product(CHECKED, elements, dims, (0, 1))
    ]
    for shape, causal in itertools.product(TUNED, (0, 1)):
        listed += [(one, "half", shape[3]) for one in contenders(shape, causal)]
    return listed


# ---------------------------------------------------------------- right or wrong


def errors() -> dict:
    """Relative errors of all steps against float64, and those of PyTorch at the same type."""
    import torch

    rows, worst, seed = [], 0.0, itertools.count(1)
    for element, d, causal, n, (b, h) in itertools.product(
        ("half", "nv_bfloat16"), (64, 128), (0, 1), (1, 17, 64, 100, 257, 512), ((1, 1), (2, 3))
    ):
        Q, K, V = flash.make_inputs(b, h, n, d, element, next(seed))
        exact = flash.reference(Q, K, V, causal=bool(causal))
        tensors = [flash_device._to_torch(x, element) for x in (Q, K, V)]
        theirs = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=bool(causal))
        row = {"element": element, "shape": [b, h, n, d], "causal": causal}
        row["torch"] = flash_device._error(theirs.double().cpu().numpy(), exact)
        for one in CHECKED:
            own = dataclasses.replace(one, values={**one.values, "CAUSAL": causal})
            out, untouched = flash_device._launch(own, (Q, K, V))
            row[one.name] = flash_device._error(flash.to_float(out), exact)
            limit = flash.TOLERANCE[element]
            if row[one.name] > limit or not untouched:
                print(f"WRONG: {own.name} {row}, untouched {untouched}", flush=True)
            worst = max(worst, row[one.name] / limit)
        rows.append(row)
    print(f"errors: {len(rows)} cases, worst {worst:.3f} of what is allowed", flush=True)
    return {"worst_of_allowed": worst, "rows": rows}


# ---------------------------------------------------------------- under other tools


def drive_counted() -> None:
    """Small grids of every step, in the order of `counted`: what ncu watches."""
    import cupy as cp

    for one, (shape, element, causal) in itertools.product(CHECKED, COUNTED):
        own = dataclasses.replace(one, values={**one.values, "CAUSAL": causal})
        flash_device._launch(own, flash.make_inputs(*shape, element, seed=1))
    cp.cuda.runtime.deviceSynchronize()


def drive_sanitized() -> None:
    """Small launches without CuPy's pool of memory, so that every array has bounds of its own."""
    import cupy as cp

    cp.cuda.set_allocator(None)
    for one, (shape, element, causal) in itertools.product(
        CHECKED, (((1, 2, 130, 64), "half", 1), ((2, 1, 65, 128), "nv_bfloat16", 0))
    ):
        own = dataclasses.replace(one, values={**one.values, "CAUSAL": causal})
        Q, K, V = map(cp.asarray, flash.make_inputs(*shape, element))
        out = cp.empty(Q.shape, Q.dtype)
        own.launch_of(Q, K, V, out).run()
        cp.asnumpy(out)


def drive_profiled() -> None:
    """Every step once at a large size."""
    import cupy as cp

    Q, K, V = (cp.asarray(np.tile(x, (*PROFILED[:2], 1, 1)))
               for x in flash.make_inputs(1, 1, *PROFILED[2:]))  # fmt: skip
    out = cp.empty(Q.shape, Q.dtype)
    for one in STEPS:
        one.launch_of(Q, K, V, out).run()
    cp.cuda.runtime.deviceSynchronize()


def counted() -> list[dict]:
    """What ncu counts of small grids, what the simulator counts, and where they differ."""
    wanted = METRICS | EXTRA_METRICS
    script = [__file__, "--drive", "counted"]
    rows = watching.profile(script, "^flash_attention$", watching.metrics(wanted), 60)
    cases = list(itertools.product(CHECKED, COUNTED))
    if len(rows) != len(cases):
        return [{"error": f"{len(rows)} kernels for {len(cases)} cases", "rows": rows[:2]}]
    found = []
    for (one, (shape, element, causal)), row in zip(cases, rows, strict=True):
        ours = simulated(one, shape, element, causal)
        theirs = watching.counters(row, wanted)
        differ = {key: [ours[key], theirs[key]] for key in ours
                  if key in theirs and key != "shared_load_instructions"
                  and ours[key] != theirs[key]}  # fmt: skip
        print(f"  {one.name} {shape} {element} causal {causal}: {differ or 'equal'}", flush=True)
        found.append({"name": one.name, "shape": list(shape), "element": element, "causal": causal,
                      "ncu": theirs, "simulator": ours, "differ": differ})  # fmt: skip
    return found


def simulated(one: Variant, shape, element: str, causal: int) -> dict[str, int]:
    """The simulator's counters of a step; none where it cannot run here."""
    arrays = flash.make_inputs(*shape, element, seed=1)
    try:
        O, (report,) = one.rung.simulate(*arrays, **{**one.values, "CAUSAL": causal})  # noqa: E741
    except Exception as error:  # such as no headers of CUDA
        print(f"  no simulator: {error}"[:300], flush=True)
        return {}
    error = relative_error(flash.to_float(O), flash.reference(*arrays, causal=bool(causal)))
    assert error < flash.TOLERANCE[element], (one.name, error)
    return {key: int(report.counters[key]) for key in METRICS if key in report.counters}


def profiled() -> dict:
    """Sections of Nsight Compute for every step at a large size."""
    options = [option for section in SECTIONS for option in ("--section", section)]
    rows = watching.profile([__file__, "--drive", "profiled"], "^flash_attention$", options, 60)
    return dict(zip([one.name for one in STEPS], rows, strict=False))


def sanitized() -> dict:
    """What memcheck and racecheck say of small grids."""
    script = [__file__, "--drive", "sanitized"]
    return watching.sanitize({tool: (tool, script) for tool in ("memcheck", "racecheck")}, 60)


# ---------------------------------------------------------------- all of it


def compiled() -> list[dict]:
    """Everything compiled with CuPy, in a dozen processes."""

    def part(number: int) -> dict:
        return contest.child(__file__, "compile", 90, "--part", str(number), quiet=True)

    with ThreadPoolExecutor(COMPILERS) as pool:
        return list(pool.map(part, range(COMPILERS)))


CHILDREN = {
    "compile": lambda part: contest.warm_up(kernels()[part::COMPILERS]),
    "errors": lambda _: errors(),
    "times": lambda _: contest.times(contenders),
}
DRIVERS = {"counted": drive_counted, "sanitized": drive_sanitized, "profiled": drive_profiled}


def record(out: Path, stages: list[str]) -> None:
    """The stages, into `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    whole: dict = {"device": contest.versions()}
    say(str(whole["device"]))
    make = {
        "compile": compiled,
        "errors": lambda: contest.child(__file__, "errors", 60),
        "times": lambda: contest.child(__file__, "times", 130),
        "sanitizer": sanitized,
        "counters": counted,
        "profile": profiled,
    }
    for stage in stages or make:
        try:
            whole[stage] = make[stage]()
        except Exception as error:  # the other stages are still wanted
            whole[stage] = {"error": f"{type(error).__name__}: {error}"}
            say(f"{stage}: {whole[stage]['error']}")
        save(out, whole)
    say("done")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="the file for the results")
    parser.add_argument("--stages", nargs="*", default=[], help="some of the stages alone")
    parser.add_argument("--dry-run", action="store_true", help="compile and simulate, run nothing")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--drive", choices=DRIVERS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.dry_run:
        print(simulated(STEPS[-1], *COUNTED[1]))
        return 1 if contest.compile_all(kernels()) else 0
    if chosen.drive:
        DRIVERS[chosen.drive]()
        return 0
    if chosen.child:
        print("RESULT", json.dumps(CHILDREN[chosen.child](chosen.part)))
        return 0
    if chosen.out is None:
        parser.error("--out FILE says where the results go")
    record(chosen.out, chosen.stages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
