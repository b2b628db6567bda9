"""Record on a GPU what every case writes, and what Nsight Compute counts.

    python tools/record/record.py --out tests/recorded/data      (about two minutes; needs CuPy and ncu)
    python tools/record/record.py --out tests/recorded/data --only assembled   (one section; the rest stays)
    python tools/record/record.py --compile-only                 (needs no GPU: checks that every case compiles)

A case that fails is noted in recorded.json and the rest goes on: the work is done by child processes, since a
faulting kernel takes its process's CUDA context with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded import gpu  # noqa: E402
from recorded.sections import (  # noqa: E402
    COUNTED,
    EXTRA_METRICS,
    METRICS,
    SECTIONS,
    cases,
    to_file,
)  # fmt: skip

from tools.record import watching  # noqa: E402
from tools.record.machine_code import machine_code  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.watching import run, say  # noqa: E402

CHILD_SECONDS = 150
FAULT = 3  # a child's exit status when the CUDA context is lost


def compile_all() -> int:
    """Compile every case; the number of failures."""
    folders = tuple(f"-I{folder}" for folder in gpu.include_folders())
    failures = 0
    for section in SECTIONS:
        for case in cases(section):
            try:
                case.digest()
                machine_code(case.code, (*case.options, "-lineinfo", *folders))
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


Results = tuple[dict[str, np.ndarray], dict[str, dict]]  # entries of the .npz, notes by case


def run_child(section: str, start: int, stop: int | None = None) -> tuple[Results | None, int, str]:
    """What a process made of cases [start, stop), None if nothing; the last one it began; its problem."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "progress").write_text(str(start))
        command = [sys.executable, __file__, "--child", section, "--start", str(start)]
        command += ["--folder", name, *(["--stop", str(stop)] if stop is not None else [])]
        status, said = run(command, CHILD_SECONDS)
        problem = "" if status in (0, FAULT) else f"process ended with {status}: {said[-600:]}"
        reached = int((folder / "progress").read_text())
        part = folder / f"part_{start}.npz"
        if not part.exists():
            return None, reached, problem
        with np.load(part) as data:
            entries = {key: data[key] for key in data.files}
        return (entries, json.loads(part.with_suffix(".json").read_text())), reached, problem


def run_section(section: str) -> Results:
    """All cases of a section, child after child."""
    entries: dict[str, np.ndarray] = {}
    notes: dict[str, dict] = {}
    start = 0
    while start < len(cases(section)):
        found, reached, problem = run_child(section, start)
        if found is None:
            guilty = cases(section)[reached]
            say(f"{section}: {guilty.name}: {problem}")
            notes[guilty.name] = {"digest": guilty.digest(), "error": problem}
            if reached > start:  # those before it were lost with the process: again, without it
                found, _, _ = run_child(section, start, reached)
        if found is not None:
            entries.update(found[0])
            notes.update(found[1])
        start = reached + 1
    return entries, notes


def launch_counted(section: str) -> None:
    """One launch of every case of a section: what ncu watches."""
    for case in cases(section):
        try:
            gpu.launch(case)
        except Exception as error:
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)


def count(section: str, metrics: dict[str, str]) -> dict[str, dict[str, int]]:
    """Counters by case."""
    script = [__file__, "--launch-counted", section]
    rows = watching.profile(script, "^m_", watching.metrics(metrics), 300)
    return {
        row["Kernel Name"].split("(")[0].removeprefix("m_"): watching.counters(row, metrics)
        for row in rows
    }


def record(out: Path, sections: tuple[str, ...]) -> None:
    """These sections, into `out`: what is there of others stays."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "recorded.json"
    whole: dict = json.loads(file.read_text("utf-8")) if file.exists() else {}
    whole |= {"device": gpu.describe(), "metrics": METRICS, "extra_metrics": EXTRA_METRICS}
    for part in ("cases", "counters"):
        whole.setdefault(part, {})
    say(str(whole["device"]))
    for section in sections:
        entries, notes = run_section(section)
        np.savez_compressed(out / f"{section}.npz", **entries)
        whole["cases"][section] = notes
        errors = {name: note["error"] for name, note in notes.items() if "error" in note}
        say(
            f"{section}: {len(notes)} cases, {len(errors)} errors, {(out / f'{section}.npz').stat().st_size} bytes"
        )
        for name, error in errors.items():
            print(f"    {name}: {error[:300]}", flush=True)
        save(file, whole)
    for section in (name for name in sections if name in COUNTED):
        counters = count(section, METRICS | EXTRA_METRICS)
        complete = sum(len(c) == len(METRICS | EXTRA_METRICS) for c in counters.values())
        say(f"ncu: {len(counters)} kernels, {complete} with every metric")
        if sum(METRICS.keys() <= c.keys() for c in counters.values()) < len(cases(section)) // 2:
            counters = count(section, METRICS)
            say(f"ncu, without the extra metrics: {len(counters)} kernels")
        whole["counters"] |= counters
        save(file, whole)
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
    parser.add_argument("--only", choices=SECTIONS, help="record one section, leave the others")
    parser.add_argument("--launch-counted", choices=COUNTED, help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=SECTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.compile_only:
        return 1 if compile_all() else 0
    if chosen.launch_counted:
        launch_counted(chosen.launch_counted)
        return 0
    if chosen.child:
        return child(chosen.child, chosen.start, chosen.stop, chosen.folder)
    if chosen.out is None:
        parser.error("--out DIR says where the results go")
    record(chosen.out, (chosen.only,) if chosen.only else SECTIONS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
