"""Record on a GPU what the FlashAttention kernels give: errors, counters, a profile, TFLOPS.

    python tools/record/record_flash.py --out DIR       (about four minutes; CuPy, PyTorch, ncu,
                                                           compute-sanitizer)
    python tools/record/record_flash.py --compile-only  (needs no GPU: compiles every variant)

Writes DIR/flash.json, stage after stage; a stage that fails is noted there and the rest goes on.
DIR/flash_counters.json is the part that belongs into tests/recorded/data.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.flash_cases import (  # noqa: E402
    HEAD_DIMS,
    PROFILED,
    RUNGS,
    Variant,
    contenders,
    counted_cases,
)
from recorded.sections import EXTRA_METRICS, METRICS  # noqa: E402

from tools.record import flash_device, watching  # noqa: E402
from tools.record.machine_code import machine_code, resources  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.watching import run, say  # noqa: E402

KERNELS = "^(flash_attention|turn|phases)$"
SECTIONS = (
    "SpeedOfLight",
    "LaunchStats",
    "Occupancy",
    "SchedulerStats",
    "WarpStateStats",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "ComputeWorkloadAnalysis",
    "InstructionStats",
    "SourceCounters",
)
# What a child process does, by the name of its stage.
CHILDREN = {
    "correctness": flash_device.correctness,
    "timings": flash_device.timings,
    "sustained": flash_device.sustained,
}
DRIVERS = {
    "counted": flash_device.drive_counted,
    "sanitized": flash_device.drive_sanitized,
    "profiled": flash_device.drive_profiled,
    "torch": flash_device.drive_torch,
}


def compile_all() -> int:
    """Compile every contender and counted case for three architectures; the number of failures."""
    folders = tuple(f"-I{folder}" for folder in gpu.include_folders())
    kernels = [
        (f"{variant.name}, d = {d}, {element}", variant.kernel(element, d), "sm_90")
        for variant in contenders()
        for d in HEAD_DIMS
        for element in ("half", "nv_bfloat16")
    ]
    kernels += [
        (f"{name}, d = {d}", Variant(name, rung=rung).kernel("half", d), architecture)
        for name, rung in RUNGS.items()
        for d in HEAD_DIMS
        for architecture in ("sm_80", "sm_86", "sm_120")
    ]
    kernels += [(f"{c.entry} {c.values}", c.kernel(), "sm_90") for c in counted_cases()]
    failures = 0
    for name, k, architecture in kernels:
        try:
            code = machine_code(k.code, (*k.options, *folders), architecture)
            used = resources(code)[k.entry]
            print(f"{name}, {architecture}: {used.registers} registers, {used.stack} stack bytes")
        except RuntimeError as error:
            failures += 1
            print(f"{name}, {architecture}: {error}")
    say(f"{len(kernels)} kernels compiled, {failures} failed")
    return failures


# ---------------------------------------------------------------- children


def child(stage: str, folder: Path, seconds: float) -> dict:
    """A stage in a process of its own; what it returned, or its last words."""
    path = folder / f"{stage}.json"
    status, said = run([sys.executable, __file__, "--child", stage, "--out", str(folder)], seconds)
    print(said, end="", flush=True)
    say(f"{stage}: exit status {status}")
    if path.exists():
        result = json.loads(path.read_text())
        path.unlink()
        return result
    return {"error": f"exit status {status}: {said[-3000:]}"}


def sanitize() -> dict:
    """What each tool of compute-sanitizer says of the small launches; all run at once."""
    script = [__file__, "--drive", "sanitized"]
    return watching.sanitize({name: (name, script) for name in watching.SANITIZERS}, 150)


# ---------------------------------------------------------------- Nsight Compute


def ncu(drive: str, kernels: str, options: list[str], seconds: float) -> list[dict]:
    """One row of ncu's raw page for each kernel of a driver."""
    return watching.profile([__file__, "--drive", drive], kernels, options, seconds)


def counters() -> list[dict]:
    """The counted cases with what ncu counted."""
    metrics = METRICS | EXTRA_METRICS
    rows = ncu("counted", KERNELS, watching.metrics(metrics), 150)
    cases = counted_cases()
    if len(rows) != len(cases):
        say(f"counters: {len(rows)} kernels for {len(cases)} cases")
        return [{"error": f"{len(rows)} kernels for {len(cases)} cases", "rows": rows[:3]}]
    result = []
    for case, row in zip(cases, rows, strict=True):
        grid, block, shared, _ = case.launch()
        if f"({', '.join(map(str, grid))})" != row["Grid Size"]:
            return [{"error": f"{case} has grid {grid}, ncu saw {row['Grid Size']}"}]
        result.append(
            {
                "file": case.file,
                "entry": case.entry,
                "values": case.values,
                "shape": list(case.shape),
                "grid": list(grid),
                "block": list(block),
                "shared_mem": shared,
                "ncu": watching.counters(row, metrics),
            }
        )
    for case in (*result[:2], *result[2 * 3 : 2 * 4]):
        print(f"  {case['file']} {case['shape']}: {case['ncu']}", flush=True)
    return result


def profile() -> dict:
    """Every metric of SECTIONS for both rungs and for PyTorch's FlashAttention-2."""
    options = [option for section in SECTIONS for option in ("--section", section)]
    names = [f"{name} {shape}" for shape in PROFILED for name in RUNGS]
    rows = ncu("profiled", KERNELS, options, 120)
    result = dict(zip(names, rows, strict=False))
    rows = ncu("torch", "flash_fwd", options, 120)
    for number, row in enumerate(rows):  # it may split a small problem between several kernels
        result[f"FlashAttention-2, launch {number}, {row['Kernel Name'][:40]}"] = row
    for name, row in result.items():
        stalls = {
            key.split("stalled_")[1].split("_per_")[0]: value
            for key, value in row.items()
            if key.startswith("smsp__average_warps_issue_stalled_") and "not_issued" not in key
        }
        largest = sorted(stalls.items(), key=lambda item: -float(item[1]))[:5]
        print(f"  {name}: {largest}", flush=True)
    return result


# ---------------------------------------------------------------- all of it


def headers_found() -> bool:
    """Whether CuPy finds cuda_fp16.h by itself."""
    probe = (
        "import cupy; cupy.RawKernel('#include <cuda_bf16.h>\\n"
        'extern "C" __global__ void k() {}\', "k").compile()'
    )
    return run([sys.executable, "-c", probe], 60)[0] == 0


def record(out: Path, stages: list[str]) -> None:
    """The stages, into out/flash.json."""
    out.mkdir(parents=True, exist_ok=True)
    whole: dict = {"device": gpu.describe(), "metrics": METRICS, "extra_metrics": EXTRA_METRICS}
    whole["cuda_headers_found"] = headers_found()
    if not whole["cuda_headers_found"]:
        os.environ["CUDA_PATH"] = "/usr/local/cuda"
    say(f"{whole['device']}, headers found: {whole['cuda_headers_found']}")
    make = {
        "correctness": lambda: child("correctness", out, 150),
        "counters": counters,
        "timings": lambda: child("timings", out, 200),
        "profile": profile,
        "sanitizer": sanitize,
        "sustained": lambda: child("sustained", out, 60),
    }
    for stage in stages or make:
        try:
            whole[stage] = make[stage]()
        except Exception as error:  # the other stages are still wanted
            whole[stage] = {"error": f"{type(error).__name__}: {error}"}
            say(f"{stage}: {whole[stage]['error']}")
        save(out / "flash.json", whole)
        if stage == "counters":
            kept = {"device": whole["device"], "metrics": METRICS, "cases": whole[stage]}
            save(out / "flash_counters.json", kept)
    say("done")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--stages", nargs="*", default=[], help="some of the stages alone")
    parser.add_argument("--compile-only", action="store_true", help="compile, and run nothing")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--drive", choices=DRIVERS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.compile_only:
        return 1 if compile_all() else 0
    if chosen.drive:
        DRIVERS[chosen.drive]()
        return 0
    if chosen.out is None:
        parser.error("--out DIR says where the results go")
    if chosen.child:
        result = CHILDREN[chosen.child]()
        (chosen.out / f"{chosen.child}.json").write_text(json.dumps(result))
        return 0
    record(chosen.out, chosen.stages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
