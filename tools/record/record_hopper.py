"""Record on a Hopper GPU what chapter 11's kernels give: errors, times beside PyTorch's, counters.

    python tools/record/record_hopper.py --out FILE [rung ...]   (two to three minutes; CuPy, PyTorch,
                                                                  ncu, compute-sanitizer)
    python tools/record/record_hopper.py --dry-run               (needs no GPU: compiles all of it)

Every rung is checked in a process of its own, which a kernel that never ends cannot hold up; what is
wrong there is told by rows and columns, and only what is right is timed. Writes FILE, a JSON, after
every stage; a stage that fails is noted there and the rest goes on.
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
from helpers.problem.flash_hopper import (  # noqa: E402
    FLASH_AHEAD,
    FLASH_PING_PONG,
    FLASH_RARE_RESCALE,
    HOPPER,
)
from helpers.problem.flash_overlap import FLASH_RESCALE  # noqa: E402
from tools.record import flash_device, watching  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.rivals import contest  # noqa: E402
from tools.record.rivals.contest import SHAPES  # noqa: E402
from tools.record.watching import say  # noqa: E402

TUNED = (SHAPES[0], SHAPES[3])  # with the variants
LARGE = ((2, 8, 4096, 128), (2, 8, 4000, 64))  # against PyTorch in fp32, several times
REPEATS = 5
COUNTED = (((1, 1, 256, 128), "half", 0), ((1, 1, 100, 64), "nv_bfloat16", 1))
SANITIZED = (((1, 2, 130, 64), "half", 1), ((2, 1, 65, 128), "nv_bfloat16", 0))
PROFILED = (4, 16, 4096, 128)
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "ComputeWorkloadAnalysis")
CHECK_SECONDS = 60
COMPILERS = 12  # processes

BEFORE = Variant("10e rescale", rung=FLASH_RESCALE)
STEPS = tuple(Variant(f"{one.file[:3]} {one.name[6:]}", rung=one) for one in HOPPER)
# Q once from shared memory to registers, and from there into every product.
_Q_REGISTERS = (
    ("float (&r_S)[KEY_TILES][4], const ELEMENT* s_Q, const ELEMENT* s_K",
     "float (&r_S)[KEY_TILES][4], const unsigned (&r_Q)[HEAD_DIM / 16][4], const ELEMENT* s_K"),
    ("wgmma<ELEMENT, false>(r_S, describe(s_Q + panel * B_R * PANEL + column),",
     "wgmma<ELEMENT, false>(r_S, r_Q[k],"),
    ("    mbarrier_wait(&s.full_Q, 0);\n",
     "    mbarrier_wait(&s.full_Q, 0);\n"
     "    unsigned r_Q[HEAD_DIM / 16][4];\n"
     "    #pragma unroll\n"
     "    for (int k = 0; k < HEAD_DIM / 16; k++) {\n"
     "        const int lane = threadIdx.x % 32;\n"
     "        ldmatrix_x4(r_Q[k], s.Q + place(threadIdx.x / 32 * 16 + lane % 16, 2 * k + lane / 16));\n"
     "    }\n"
     "    settle(r_Q);\n"),
    ("multiply_qk(r_S, s_rows, s.K[stage]);", "multiply_qk(r_S, r_Q, s.K[stage]);"),
)  # fmt: skip
# The assembler then waits for P V before the softmax: nothing holds the wait behind it.
_EARLY_WAIT = (
    ("        mbarrier_wait(&s.full_V[stage], parity);  // for the next turn of the loop\n", ""),
    (
        "            multiply_pv(r_O, r_P, s.V[1 - stage]);\n",
        "            mbarrier_wait(&s.full_V[1 - stage], (t - 1) / 2 % 2);\n"
        "            multiply_pv(r_O, r_P, s.V[1 - stage]);\n",
    ),
    (
        "    multiply_pv(r_O, r_P, s.V[(tiles - 1) % 2]);\n",
        "    mbarrier_wait(&s.full_V[(tiles - 1) % 2], (tiles - 1) / 2 % 2);\n"
        "    multiply_pv(r_O, r_P, s.V[(tiles - 1) % 2]);\n",
    ),
)
TRIED = (
    Variant("11d, waits early", changes=_EARLY_WAIT, rung=FLASH_AHEAD),
    Variant("11d, Q in registers", changes=_Q_REGISTERS, rung=FLASH_AHEAD),
    Variant("11e, Q in registers", changes=_Q_REGISTERS, rung=FLASH_PING_PONG),
    Variant("11e, B_R 128", {"B_R": 128}, rung=FLASH_PING_PONG),
    Variant("11f, slack 8", {"SLACK": 8}, rung=FLASH_RARE_RESCALE),
    Variant("11f, slack 8, Q in registers", {"SLACK": 8}, _Q_REGISTERS, FLASH_RARE_RESCALE),
)
ALL = (*STEPS, *TRIED)


def chosen(names: list[str]) -> list[Variant]:
    """Steps and variants that are named, or begin with one of `names`; all if there are none."""
    begin = tuple(set(names) - {one.name for one in ALL})
    return [
        one
        for one in ALL
        if not names or one.name in names or (begin and one.name.startswith(begin))
    ]


def fits(one: Variant, d: int) -> bool:
    """Whether it has room, in shared memory and in registers, and differs from its step."""
    if (d == 64 and "Q in registers" in one.name) or (d == 128 and "B_R 128" in one.name):
        return False
    return one.rung.with_parameters(**one.values).shared_bytes(d) <= 227 * 1024


def contenders(names: list[str], shape, causal: int) -> list[Variant]:
    """What is timed at one size, beside chapter 10's last."""
    tuned = shape in TUNED[: 1 if causal else None]
    right = [one for one in chosen(names) if one in STEPS or tuned]
    listed = [BEFORE, *(one for one in right if fits(one, shape[3]))]
    return [_with(one, causal) for one in listed]


def _with(one: Variant, causal: int) -> Variant:
    return dataclasses.replace(one, values={**one.values, "CAUSAL": causal})


def kernels(names: list[str]) -> list[contest.Built]:
    """Everything that a recording launches."""
    elements, dims = ("half", "nv_bfloat16"), (64, 128)
    listed = [
        (_with(one, causal), element, d)
        for one, element, d, causal in itertools.product(chosen(names), elements, dims, (0, 1))
        if fits(one, d) and (one in STEPS or element == "half")
    ]
    return listed + [(_with(BEFORE, causal), "half", d) for causal in (0, 1) for d in dims]


# ---------------------------------------------------------------- right or wrong


def check(name: str) -> dict:
    """Relative errors of one step or variant against float64, and of large sizes against fp32."""
    import cupy as cp

    (one,) = (one for one in ALL if one.name == name)
    rows, wrong, seed = [], 0, itertools.count(1)
    elements = ("half", "nv_bfloat16") if one in STEPS else ("half",)
    for d, element, causal, n, (b, h) in itertools.product(
        (64, 128), elements, (0, 1), (1, 17, 64, 100, 257, 512), ((1, 1), (2, 3))
    ):
        if not fits(one, d):
            continue
        own, layout = _with(one, causal), ("bhnd", "bnhd")[h // 2]
        arrays = flash.make_inputs(b, h, n, d, element, next(seed))
        if layout == "bnhd":
            arrays = tuple(np.ascontiguousarray(x.swapaxes(1, 2)) for x in arrays)
        out, untouched = flash_device._launch(own, arrays, layout)
        exact = flash.reference(*arrays, layout, bool(causal))
        out, exact = (
            (x if layout == "bhnd" else x.swapaxes(1, 2)) for x in (flash.to_float(out), exact)
        )
        error = flash_device._error(out, exact)
        rows.append({"element": element, "shape": [b, h, n, d], "causal": causal, "error": error})
        if error > flash.TOLERANCE[element] or not untouched:
            wrong += 1
            if wrong <= 3:
                print(f"WRONG: {name} {rows[-1]}, untouched {untouched}, {layout}", flush=True)
                print(_where(out, exact), flush=True)
    cp.cuda.runtime.deviceSynchronize()
    worst = max(row["error"] / flash.TOLERANCE[row["element"]] for row in rows)
    print(f"{name}: {len(rows)} cases, {wrong} wrong, worst {worst:.3f} of allowed", flush=True)
    large = [] if wrong else [_check_large(one, *case) for case in itertools.product(LARGE, (0, 1))]
    wrong += sum(not row["right"] for row in large)
    return {"wrong": wrong, "worst_of_allowed": worst, "rows": rows, "large": large}


def _check_large(one: Variant, shape, causal: int) -> dict:
    """Several launches against PyTorch's attention of the same values in fp32."""
    import cupy as cp
    import torch

    if not fits(one, shape[3]):
        return {"right": True}
    arrays = flash.make_inputs(*shape, seed=7)
    Q, K, V = map(cp.asarray, arrays)
    out = cp.empty(Q.shape, Q.dtype)
    launch = _with(one, causal).launch_of(Q, K, V, out)
    tensors = [torch.from_numpy(x.astype(np.float32)).cuda() for x in arrays]
    exact = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=bool(causal))
    exact = exact.double().cpu().numpy()
    found = []
    for _ in range(REPEATS):
        out.fill(np.nan)
        launch.run()
        found.append(cp.asnumpy(out))
    same = all(np.array_equal(found[0], each) for each in found[1:])
    error = max(flash_device._error(each.astype(np.float64), exact) for each in found)
    right = same and error < flash.TOLERANCE["half"]
    print(f"  {shape}, causal {causal}: error {error:.2e}, {'' if same else 'NOT '}the same "
          f"{REPEATS} times{'' if right else ', WRONG'}", flush=True)  # fmt: skip
    if not right:
        print(_where(found[-1].astype(np.float64), exact), flush=True)
    return {"shape": list(shape), "causal": causal, "error": error, "same": same, "right": right}


def _where(out: np.ndarray, exact: np.ndarray) -> str:
    """Where [b, h, n, d] differ: the first place, and the largest errors by rows and columns."""
    off = np.abs(out - exact)
    off[~np.isfinite(off)] = np.inf
    limit = 0.02 * np.abs(exact).max()
    bad = np.argwhere(off > limit)
    if not len(bad):
        return f"  none above {limit:.2g}"
    first = tuple(bad[0].tolist())
    n, d = out.shape[2:]
    rows = [f"{off[:, :, i : i + 16].max():.1e}" for i in range(0, min(n, 256), 16)]
    columns = [f"{off[..., i : i + 8].max():.1e}" for i in range(0, d, 8)]
    heads = [f"{off[i].max():.1e}" for i in np.ndindex(out.shape[:2])][:8]
    return (
        f"  {len(bad):,} of {off.size:,} above {limit:.2g}, {int(np.isinf(off).sum()):,} not finite; "
        f"first {first}: {out[first]:.5g} for {exact[first]:.5g}\n"
        f"  row {first[2]}, columns 0-15: {np.round(out[first[:3]][:16], 3).tolist()}\n"
        f"  in its place:             {np.round(exact[first[:3]][:16], 3).tolist()}\n"
        f"  by 16 rows: {' '.join(rows)}\n  by 8 columns: {' '.join(columns)}\n"
        f"  by head: {' '.join(heads)}"
    )


# ---------------------------------------------------------------- under other tools


def drive_counted(names: list[str]) -> None:
    """Small grids of every step, in the order of `counted`: what ncu watches."""
    import cupy as cp

    for one, (shape, element, causal) in itertools.product(_steps(names), COUNTED):
        flash_device._launch(_with(one, causal), flash.make_inputs(*shape, element, seed=1))
    cp.cuda.runtime.deviceSynchronize()


def drive_sanitized(names: list[str]) -> None:
    """Small launches without CuPy's pool of memory, so that every array has bounds of its own."""
    import cupy as cp

    cp.cuda.set_allocator(None)
    for one, (shape, element, causal) in itertools.product(_steps(names), SANITIZED):
        Q, K, V = map(cp.asarray, flash.make_inputs(*shape, element))
        out = cp.empty(Q.shape, Q.dtype)
        _with(one, causal).launch_of(Q, K, V, out).run()
        cp.asnumpy(out)


def drive_profiled(names: list[str]) -> None:
    """Every step once at a large size."""
    import cupy as cp

    Q, K, V = (cp.asarray(np.tile(x, (*PROFILED[:2], 1, 1)))
               for x in flash.make_inputs(1, 1, *PROFILED[2:]))  # fmt: skip
    out = cp.empty(Q.shape, Q.dtype)
    for one in _steps(names):
        one.launch_of(Q, K, V, out).run()
    cp.cuda.runtime.deviceSynchronize()


def _steps(names: list[str]) -> list[Variant]:
    return [one for one in chosen(names) if one in STEPS]


def counted(names: list[str]) -> list[dict]:
    """What ncu counts of small grids, what the simulator counts, and where they differ."""
    wanted = METRICS | EXTRA_METRICS
    script = [__file__, "--drive", "counted", *names]
    rows = watching.profile(script, "^flash_attention$", watching.metrics(wanted), 60)
    cases = list(itertools.product(_steps(names), COUNTED))
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
    for one, (shape, element, causal) in itertools.product(_steps(names), COUNTED):
        arrays = flash.make_inputs(*shape, element, seed=1)
        O, (report,) = one.rung.simulate(*arrays, CAUSAL=causal)  # noqa: E741
        error = relative_error(flash.to_float(O), flash.reference(*arrays, causal=bool(causal)))
        kept = {key: int(report.counters[key]) for key in METRICS if key in report.counters}
        print(
            f"{one.name} {shape} {element} causal {causal}: error {error:.1e}, {kept}", flush=True
        )


def profiled(names: list[str]) -> dict:
    """Sections of Nsight Compute for every step at a large size."""
    options = [option for section in SECTIONS for option in ("--section", section)]
    script = [__file__, "--drive", "profiled", *names]
    rows = watching.profile(script, "^flash_attention$", options, 60)
    return dict(zip([one.name for one in _steps(names)], rows, strict=False))


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
        return list(pool.map(part, range(COMPILERS)))


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
    return found


CHILDREN = {
    "compile": lambda part, names: contest.warm_up(kernels(names)[part::COMPILERS]),
    "check": lambda _, names: check(names[0]),
    "times": lambda _, names: contest.times(lambda shape, causal: contenders(names, shape, causal)),
}
DRIVERS = {"counted": drive_counted, "sanitized": drive_sanitized, "profiled": drive_profiled}


def record(out: Path, stages: list[str], names: list[str]) -> None:
    """The stages, into `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    whole: dict = {"device": contest.versions()}
    say(str(whole["device"]))
    whole["compile"] = compiled(names)
    say(f"compiled: {sum(part.get('compiled', 0) for part in whole['compile'])}")
    for part in whole["compile"]:
        for problem in {**part.get("problems", {}), **_error(part)}.items():
            print("  ", problem, flush=True)
    whole["check"] = checked(names)
    right = [name for name, found in whole["check"].items() if found.get("wrong") == 0]
    for name, found in whole["check"].items():
        if name not in right:
            say(f"{name} is left out from here on: {found.get('error', 'wrong')[-600:]}")
    save(out, whole)
    make = {
        "times": lambda: contest.child(__file__, "times", 150, *right),
        "profile": lambda: profiled(right),
        "sanitizer": lambda: sanitized(right),
        "counters": lambda: counted(right),
    }
    for stage in (stages or make) if right else ():
        try:
            whole[stage] = make[stage]()
        except Exception as error:  # the other stages are still wanted
            whole[stage] = {"error": f"{type(error).__name__}: {error}"}
            say(f"{stage}: {whole[stage]['error']}")
        save(out, whole)
    say("done")


def _error(part: dict) -> dict:
    return {"a compiler": part["error"][-600:]} if "error" in part else {}


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
