"""Record on a GPU what every case writes, and what Nsight Compute counts.

    python tools/record/record.py --out tests/recorded/data      (about two minutes; needs CuPy and ncu)
    python tools/record/record.py --compile-only                 (needs no GPU: checks that every case compiles)

A case that fails is noted in recorded.json and the rest goes on: the work is done by child processes, since a
faulting kernel takes its process's CUDA context with it.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.sections import EXTRA_METRICS, METRICS, SECTIONS, cases, to_file  # noqa: E402

CHILD_SECONDS = 150
FAULT = 3  # a child's exit status when the CUDA context is lost


def say(text: str) -> None:
    """Print with the time since the start."""
    print(f"[{time.monotonic() - START:6.1f} s] {text}", flush=True)


START = time.monotonic()


def compile_all() -> int:
    """Compile every case; the number of failures."""
    from recorded.nvrtc_check import compile_case

    failures = 0
    for section in SECTIONS:
        for case in cases(section):
            try:
                case.digest()
                compile_case(case.code, case.options)
            except RuntimeError as error:
                failures += 1
                print(f"{section} {case.name}: {error}")
        say(f"{section}: {len(cases(section))} cases compiled")
    return failures


def child(section: str, start: int, stop: int | None, folder: Path) -> int:
    """Run the cases of a section with numbers in [start, stop); results and notes go to `folder`."""
    import cupy as cp

    entries: dict[str, np.ndarray] = {}
    notes: dict[str, dict] = {}
    status = 0
    for number, case in enumerate(cases(section)[start:stop], start):
        (folder / "progress").write_text(str(number))
        notes[case.name] = {"digest": case.digest()}
        try:
            first, second = gpu.launch(case), gpu.launch(case)
            if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
                notes[case.name]["error"] = "two launches gave different results"
            entries.update(to_file(section, case, first))
        except Exception as error:  # whatever it is, the other cases are still wanted
            notes[case.name]["error"] = f"{type(error).__name__}: {error}"[:1500]
            try:
                cp.cuda.runtime.deviceSynchronize()
            except Exception:  # the context is gone
                status = FAULT
                break
    np.savez(folder / f"part_{start}.npz", **entries)
    (folder / f"part_{start}.json").write_text(json.dumps(notes))
    return status


def run_section(section: str) -> tuple[dict[str, np.ndarray], dict[str, dict]]:
    """All cases of a section, child after child."""
    entries: dict[str, np.ndarray] = {}
    notes: dict[str, dict] = {}
    start = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while start < len(cases(section)):
            (folder / "progress").write_text(str(start))
            command = [
                sys.executable,
                __file__,
                "--child",
                section,
                "--start",
                str(start),
                "--folder",
                name,
            ]
            problem = ""
            try:
                done = subprocess.run(
                    command, timeout=CHILD_SECONDS, capture_output=True, text=True
                )
                if done.returncode not in (0, FAULT):
                    problem = f"process ended with {done.returncode}: {done.stderr[-600:]}"
            except subprocess.TimeoutExpired:
                problem = f"no end within {CHILD_SECONDS} s"
            reached = int((folder / "progress").read_text())
            part = folder / f"part_{start}.npz"
            if part.exists():
                with np.load(part) as data:
                    entries.update({key: data[key] for key in data.files})
                notes.update(json.loads(part.with_suffix(".json").read_text()))
                start = reached + 1
            elif (
                reached > start
            ):  # lost with the process: the cases before the guilty one again, without it
                say(f"{section}: {cases(section)[reached].name}: {problem}")
                notes[cases(section)[reached].name] = {
                    "digest": cases(section)[reached].digest(),
                    "error": problem,
                }
                entries_before, notes_before = _one_by_one(section, start, reached)
                entries.update(entries_before)
                notes.update(notes_before)
                start = reached + 1
            else:
                say(f"{section}: {cases(section)[start].name}: {problem}")
                notes[cases(section)[start].name] = {
                    "digest": cases(section)[start].digest(),
                    "error": problem,
                }
                start += 1
    return entries, notes


def _one_by_one(
    section: str, start: int, stop: int
) -> tuple[dict[str, np.ndarray], dict[str, dict]]:
    """Cases [start, stop), which ran well before, in one process that stops there."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            sys.executable,
            __file__,
            "--child",
            section,
            "--start",
            str(start),
            "--stop",
            str(stop),
            "--folder",
            name,
        ]
        subprocess.run(command, timeout=CHILD_SECONDS, capture_output=True, text=True)
        part = Path(name) / f"part_{start}.npz"
        if not part.exists():
            return {}, {}
        with np.load(part) as data:
            return {key: data[key] for key in data.files}, json.loads(
                part.with_suffix(".json").read_text()
            )


def launch_memory() -> None:
    """One launch of every memory case: what ncu watches."""
    for case in cases("memory"):
        try:
            gpu.launch(case)
        except Exception as error:
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)


def find_ncu() -> str | None:
    """Nsight Compute's command line."""
    places = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu"]
    places += sorted(map(str, Path("/opt/nvidia/nsight-compute").glob("*/ncu")), reverse=True)
    return next((place for place in places if place and Path(place).exists()), None)


def count(metrics: dict[str, str], log: Path) -> tuple[dict[str, dict[str, int]], str]:
    """Counters by case, and ncu's own words where it said something else."""
    ncu = find_ncu()
    if ncu is None:
        return {}, "ncu not found"
    command = [
        ncu,
        "--clock-control",
        "none",
        "--page",
        "raw",
        "--csv",
        "--print-units",
        "base",
        "--log-file",
        str(log),
        "--kernel-name",
        "regex:^m_",
        "--metrics",
        ",".join(metrics.values()),
        sys.executable,
        __file__,
        "--launch-memory",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        words = (done.stdout + done.stderr)[-3000:]
    except subprocess.TimeoutExpired:
        words = "ncu did not end within 300 s"
    lines = log.read_text().splitlines() if log.exists() else []
    words += "\n" + "\n".join([line for line in lines if not line.startswith('"')][-15:])
    rows = list(csv.DictReader(line for line in lines if line.startswith('"')))
    result: dict[str, dict[str, int]] = {}
    for row in rows:
        kernel = (row.get("Kernel Name") or "").split("(")[0]
        if kernel.startswith("m_"):
            read = {key: row.get(metric) or "" for key, metric in metrics.items()}
            result[kernel[2:]] = {
                key: int(float(text.replace(",", "")))
                for key, text in read.items()
                if _number(text)
            }
    return result, words


def _number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def record(out: Path) -> None:
    """Everything, into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    whole: dict = {
        "device": gpu.describe(),
        "metrics": METRICS,
        "extra_metrics": EXTRA_METRICS,
        "cases": {},
        "counters": {},
    }
    say(str(whole["device"]))
    for section in SECTIONS:
        entries, notes = run_section(section)
        np.savez_compressed(out / f"{section}.npz", **entries)
        whole["cases"][section] = notes
        errors = {name: note["error"] for name, note in notes.items() if "error" in note}
        say(
            f"{section}: {len(notes)} cases, {len(errors)} errors, {(out / f'{section}.npz').stat().st_size} bytes"
        )
        for name, error in errors.items():
            print(f"    {name}: {error[:300]}", flush=True)
        (out / "recorded.json").write_text(json.dumps(whole, indent=1))
    with tempfile.TemporaryDirectory() as name:
        counters, words = count(METRICS | EXTRA_METRICS, Path(name) / "ncu.csv")
        complete = sum(len(c) == len(METRICS | EXTRA_METRICS) for c in counters.values())
        say(f"ncu: {len(counters)} kernels, {complete} with every metric")
        if sum(METRICS.keys() <= c.keys() for c in counters.values()) < len(cases("memory")) // 2:
            print(words, flush=True)
            counters, words = count(METRICS, Path(name) / "ncu_again.csv")
            say(f"ncu, without the extra metrics: {len(counters)} kernels")
        if len(counters) < len(cases("memory")):
            print(words, flush=True)
    whole["counters"] = counters
    text = json.dumps(whole, indent=1)
    (out / "recorded.json").write_text(text)
    say("done")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument(
        "--compile-only", action="store_true", help="compile everything with NVRTC, run nothing"
    )
    parser.add_argument("--launch-memory", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=SECTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.compile_only:
        return 1 if compile_all() else 0
    if chosen.launch_memory:
        launch_memory()
        return 0
    if chosen.child:
        return child(chosen.child, chosen.start, chosen.stop, chosen.folder)
    if chosen.out is None:
        parser.error("--out DIR says where the results go")
    record(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
