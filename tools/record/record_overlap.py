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
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.flash_cases import Variant  # noqa: E402
from recorded.sections import EXTRA_METRICS, METRICS  # noqa: E402

from helpers import timing  # noqa: E402
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
from tools.record.machine_code import machine_code, resources  # noqa: E402
from tools.record.recording import rounded, save  # noqa: E402
from tools.record.watching import run, say  # noqa: E402

SHAPES = ((4, 16, 4096, 128), (2, 16, 8192, 128), (1, 16, 16384, 128), (4, 16, 4096, 64))
TUNED = (SHAPES[0], SHAPES[3])  # with the variants
COUNTED = (((1, 1, 256, 128), "half", 0), ((1, 1, 100, 64), "nv_bfloat16", 1))
PROFILED = (4, 16, 4096, 128)
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "ComputeWorkloadAnalysis")
RIVALS = {"FlashAttention-2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
SAMPLES, SAMPLE_MS = 7, 20.0
COLD_SAMPLES, COLD_MS, PAUSE = 3, 4.0, 0.1
COMPILERS = 12  # processes
PROTOCOL = (
    f"fp16, standard normal inputs; TFLOPS = 4 b h n^2 d / t, half of it if causal; all contenders "
    f"in turn, medians. sustained: {SAMPLES} samples of about {SAMPLE_MS:.0f} ms of launches between "
    f"two events, after a warm-up of all; cold: {COLD_SAMPLES} samples of about {COLD_MS:.0f} ms, "
    f"each after {PAUSE} s of rest"
)


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


def compile_all(part: int = 0, parts: int = 1) -> int:
    """Compile a part of all kernels, with CuPy if it is there; the number of failures."""
    folders = tuple(f"-I{folder}" for folder in gpu.include_folders())
    failures = 0
    for one, element, d in kernels()[part::parts]:
        k = one.kernel(element, d)
        try:
            used = resources(machine_code(k.code, (*k.options, *folders)))[k.entry]
            settings = f"{one.name}, {one.values}, {element}, d = {d}"
            print(f"{settings}: {used.registers} registers, {used.stack} stack bytes", flush=True)
        except RuntimeError as error:
            failures += 1
            print(f"{one.name}, {element}, d = {d}: {error}")
    return failures


def warm_up(part: int) -> dict:
    """Compile a part of all kernels with CuPy, which keeps them on the disk."""
    done, problems = 0, {}
    for one, element, d in kernels()[part::COMPILERS]:
        try:
            one.kernel(element, d).compile()
            done += 1
        except Exception as error:
            problems[f"{one.name}, {element}, {d}"] = str(error)[:400]
    return {"compiled": done, "problems": problems}


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


# ---------------------------------------------------------------- times


def times() -> dict:
    """TFLOPS of all contenders at every size, causal or not."""
    sizes: list[dict] = []
    for causal, shape in itertools.product((0, 1), SHAPES):
        launches, used, problems = _launches(shape, causal)
        work = flash.flops(*shape, causal=bool(causal)) * 1e-9
        cold = _cold(launches)
        before = flash_device._state()
        sustained = timing.in_turn(launches, SAMPLES, SAMPLE_MS)
        row = {"shape": list(shape), "causal": causal, "resources": used, "problems": problems,
               "state": [before, flash_device._state()]}  # fmt: skip
        for name, taken in (("cold", cold), ("sustained", sustained)):
            row[name] = {k: rounded(work / statistics.median(v)) for k, v in taken.items()}
        row["milliseconds"] = {k: [rounded(x) for x in v] for k, v in sustained.items()}
        sizes.append(row)
        _print_times(row)
    return {"protocol": PROTOCOL, "sizes": sizes}


def _launches(shape, causal: int) -> tuple[dict, dict, dict]:
    """Functions that launch, registers and spilled bytes, and what cannot be run."""
    import cupy as cp

    launches, used, problems = {}, {}, {}
    arrays = [np.tile(x, (*shape[:2], 1, 1)) for x in flash.make_inputs(1, 1, *shape[2:])]
    Q, K, V = map(cp.asarray, arrays)
    out = cp.empty(Q.shape, Q.dtype)
    for one in contenders(shape, causal):
        try:
            launch = one.launch_of(Q, K, V, out)
            launch.run()
            cp.cuda.runtime.deviceSynchronize()
            raw = launch.kernel.raw
            used[one.name] = {"registers": raw.num_regs, "local_bytes": raw.local_size_bytes,
                              "shared_bytes": launch.shared_mem}  # fmt: skip
            launches[one.name] = launch.run
        except Exception as error:  # the others are still wanted
            problems[one.name] = f"{type(error).__name__}: {error}"[:400]
    tensors = [flash_device._to_torch(x, "half") for x in arrays]
    for name, backend in RIVALS.items():
        try:
            launches[name] = _rival(tensors, backend, bool(causal))
            launches[name]()
            cp.cuda.runtime.deviceSynchronize()
        except Exception as error:
            launches.pop(name, None)
            problems[name] = f"{type(error).__name__}: {error}"[:400]
    return launches, used, problems


def _rival(tensors, backend: str, causal: bool):
    import torch

    def call() -> None:
        with flash_device._backend(backend), torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

    return call


def _cold(launches) -> dict[str, list[float]]:
    """Milliseconds of a launch, in short samples after a rest each."""
    import cupy as cp

    found: dict[str, list[float]] = {name: [] for name in launches}
    once = {}
    for name, launch in launches.items():
        launch()
        once[name] = timing.between_events(cp, launch, 1, 3e-4)
    for _ in range(COLD_SAMPLES):
        for name, launch in launches.items():
            time.sleep(PAUSE)
            count = max(1, round(COLD_MS / once[name]))
            found[name].append(timing.between_events(cp, launch, count, 3e-4))
    return found


def _print_times(row: dict) -> None:
    print(f"{row['shape']}, causal {row['causal']}, {row['state']}", flush=True)
    for name, rate in row["sustained"].items():
        cold = row["cold"][name]
        shares = [
            value / row[kind].get("FlashAttention-2", float("nan"))
            for kind, value in (("cold", cold), ("sustained", rate))
        ]
        used = row["resources"].get(name, {})
        print(f"  {name:32} cold {cold:6.1f} ({shares[0]:.3f})  sustained {rate:6.1f} "
              f"({shares[1]:.3f})  {list(used.values())}", flush=True)  # fmt: skip
    for name, problem in row["problems"].items():
        print(f"  {name}: {problem}", flush=True)


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


def child(stage: str, seconds: float, part: int = 0) -> dict:
    """A stage in a process of its own; what it returned, or its last words."""
    status, said = run([sys.executable, __file__, "--child", stage, "--part", str(part)], seconds)
    lines = said.splitlines()
    kept = [line for line in lines if not line.startswith("RESULT ")]
    if stage != "compile":
        print(*kept, sep="\n", flush=True)
    say(f"{stage} {part}: exit status {status}")
    found = [line[7:] for line in lines if line.startswith("RESULT ")]
    return json.loads(found[-1]) if found else {"error": f"exit status {status}: {said[-3000:]}"}


def compiled() -> list[dict]:
    """Everything compiled with CuPy, in a dozen processes."""
    with ThreadPoolExecutor(COMPILERS) as pool:
        return list(pool.map(lambda part: child("compile", 90, part), range(COMPILERS)))


def _versions() -> dict:
    code = "import torch; print(torch.__version__, torch.backends.cudnn.version())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    return {**gpu.describe(), "torch, cudnn": said.strip(), "python": sys.version.split()[0]}


CHILDREN = {"compile": warm_up, "errors": lambda _: errors(), "times": lambda _: times()}
DRIVERS = {"counted": drive_counted, "sanitized": drive_sanitized, "profiled": drive_profiled}


def record(out: Path, stages: list[str]) -> None:
    """The stages, into `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    whole: dict = {"device": _versions()}
    say(str(whole["device"]))
    make = {"compile": compiled, "errors": lambda: child("errors", 60), "times": lambda: child("times", 130),
            "sanitizer": sanitized, "counters": counted, "profile": profiled}  # fmt: skip
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
        return 1 if compile_all() else 0
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
