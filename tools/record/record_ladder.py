"""Record the ladder on a GPU: times, counters, correctness, and what compute-sanitizer says.

    python tools/record/record_ladder.py --out DIR          (about five minutes; needs CuPy, ncu, compute-sanitizer
                                                               and, for the rivals, PyTorch)
    python tools/record/record_ladder.py --compile-only     (needs no GPU: compiles everything to machine code)

DIR gets `h200_ladder.json` (times, for helpers/measure/recorded), `ladder_counters.json` (for tests/recorded/data) and
`ladder_checks.json` (correctness, sanitizer, and times of all settings). Each section is written as soon as it is
done, and one that fails is noted and leaves the others alone. `--only times,counters` chooses.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402

from helpers.problem.attention import TOLERANCE, make_inputs, reference, relative_error  # noqa: E402
from helpers.problem.ladder import ladder, rung  # noqa: E402
from tools.record import ladder_cases as cases  # noqa: E402
from tools.record.ladder_sweep import sweep, times  # noqa: E402
from tools.record.ladder_tools import (  # noqa: E402
    counters,
    launch_counted,
    launch_sanitized,
    sanitizer,
)
from tools.record.machine_code import machine_code, resources  # noqa: E402
from tools.record.watching import START, say  # noqa: E402

SECTIONS = ("times", "counters", "sanitizer", "checks", "sweep")


def modules() -> list[tuple[str, dict]]:
    """(rung, settings) such that every source is there with every set of its parameters, none twice."""
    found: dict[tuple, tuple[str, dict]] = {}
    for one in ladder("fp32"):
        for values in one.combinations():
            new = [
                key
                for launch in one.launches(64, 64, **values)
                if (key := (launch.kernel.file.name, launch.kernel.options)) not in found
            ]
            found.update(dict.fromkeys(new, (one.name, values)))
    return list({json.dumps(pair): pair for pair in found.values()}.values())


def compile_all() -> int:
    """Compile everything to machine code for sm_90 with no GPU; the number of kernels that could not be launched."""
    done, failures, spilled = {}, 0, []
    for name, values in modules():
        for launch in rung(name).launches(64, 64, **values):
            kernel = launch.kernel
            key = kernel.file.name, kernel.options
            try:
                if key not in done:
                    done[key] = resources(machine_code(kernel.code, kernel.options))
                need = done[key][kernel.entry]
            except RuntimeError as error:
                print(f"{kernel}: {error}")
                failures += 1
                continue
            threads = int(np.prod(launch.block))
            if -(-need.registers // 8) * 8 * threads > 65536 or need.shared > 48 * 1024:
                print(f"{kernel}: {need} do not fit a block of {threads} threads")
                failures += 1
            if need.stack:
                spilled.append((kernel.file.name, kernel.entry, dict(values), need))
    code = cases.third_barrier_missing()
    machine_code(code, ("-std=c++17",))
    for one in spilled:
        print("spills:", *one)
    say(f"{len(done)} sources compiled, {failures} failures")
    say(f"{len(cases.counted())} kernels to count, {len(cases.sanitized())} rungs to sanitize")
    return failures


def compile_here(pairs: list[tuple[str, dict]]) -> int:
    """Compile into CuPy's cache on disk; the number of rungs done."""
    for name, values in pairs:
        for launch in rung(name).launches(64, 64, **values):
            launch.kernel.compile()
    return len(pairs)


def warm_cache() -> None:
    """Compile everything with all cores, for the sections that follow."""
    pairs = modules()
    workers = max(1, min(12, (os.cpu_count() or 2) - 2))
    parts = [pairs[n :: 3 * workers] for n in range(3 * workers)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for job in as_completed([pool.submit(compile_here, part) for part in parts if part]):
            try:
                job.result()
            except Exception as error:  # it will fail again where it is used, and be noted there
                print(f"compiling: {error}"[:500], flush=True)
    say(f"{len(pairs)} settings compiled")


def checks(budget: float) -> dict:
    """Every rung with every choice of every parameter, at every N and d, against float64."""
    worst, failures, done, skipped = {}, [], 0, 0
    end = time.monotonic() + budget
    sizes = [(N, d) for N in cases.CHECKED_N for d in cases.CHECKED_D]
    inputs = {size: make_inputs(*size, seed=sum(size)) for size in sizes}
    expected = {size: reference(*inputs[size]).O for size in sizes}
    for one in ladder("fp32"):
        for values in one.combinations():
            for size in sizes:
                if time.monotonic() > end:
                    skipped += 1
                    continue
                try:
                    error = relative_error(one.run(*inputs[size], **values), expected[size])
                except Exception as problem:
                    failures.append(
                        [one.name, values, size, f"{type(problem).__name__}: {problem}"[:300]]
                    )
                    continue
                done += 1
                worst[one.name] = max(worst.get(one.name, 0.0), error)
                if not error < TOLERANCE:
                    failures.append([one.name, values, size, error])
    say(f"correctness: {done} runs, {len(failures)} failures, {skipped} not run; worst {worst}")
    for failure in failures[:20]:
        print(f"    {failure}", flush=True)
    return {"runs": done, "not_run": skipped, "worst": worst, "failures": failures}


@contextlib.contextmanager
def noted(data: dict, section: str, file: Path) -> Iterator[None]:
    """Note a section's failure instead of ending, and write what there is."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        data[section] = {"error": f"{type(error).__name__}: {error}"[:1000]}
    file.write_text(json.dumps(data, indent=1) + "\n")


def record(out: Path, only: tuple[str, ...], rounds: int, budget: float) -> None:
    """Everything that `only` names, into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "ladder_checks.json"
    data: dict = {"device": gpu.describe()}
    say(str(data["device"]))
    warm_cache()

    def left() -> float:
        return max(10.0, budget - (time.monotonic() - START))

    if "times" in only:
        with noted(data, "times", file):
            times(out, rounds)
    if "counters" in only:
        with noted(data, "counters", file):
            data["counters"] = counters(out, min(150.0, left()))
    if "sanitizer" in only:
        with noted(data, "sanitizer", file):
            data["sanitizer"] = sanitizer(min(100.0, left()))
    if "checks" in only:
        with noted(data, "checks", file):
            data["checks"] = checks(min(90.0, left()))
    if "sweep" in only:
        with noted(data, "sweep", file):
            data["sweep"] = sweep(left())
    say("done")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument(
        "--compile-only", action="store_true", help="compile everything, run nothing"
    )
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--rounds", type=int, default=11, help="samples of each time")
    parser.add_argument(
        "--budget", type=float, default=340.0, help="seconds after which to come to an end"
    )
    parser.add_argument("--launch-counted", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--launch-sanitized", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--launch-broken", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.compile_only:
        return 1 if compile_all() else 0
    if chosen.launch_counted:
        launch_counted(chosen.launch_counted)
        return 0
    if chosen.launch_sanitized or chosen.launch_broken:
        launch_sanitized(chosen.launch_broken)
        return 0
    if chosen.out is None:
        parser.error("--out DIR says where the results go")
    record(chosen.out, tuple(chosen.only.split(",")), chosen.rounds, chosen.budget)
    return 0


if __name__ == "__main__":
    sys.exit(main())
