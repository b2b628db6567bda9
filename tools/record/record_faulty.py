"""Record on a GPU what compute-sanitizer says of the kernels in this folder.

    python tools/record/record_faulty.py                 (needs CuPy and compute-sanitizer; a few minutes)
    python tools/record/record_faulty.py --only NAME     (one kernel, printed and not written)

Writes h200.json beside it: the GPU, date and versions, and for every kernel its text and what each
of the four tools printed. A kernel runs in a process of its own, since one that accesses memory
that it must not touch leaves nothing to go on with.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from faulty import cases, tools  # noqa: E402

from helpers.measure import nsight  # noqa: E402
from tools.record.recording import save  # noqa: E402
from tools.record.watching import run  # noqa: E402

SECONDS = 120  # for one kernel under one tool; a kernel that hangs is ended
MOST_LINES = 60  # of a report: some kernels have the same fault in every thread
OPTIONS = ("-std=c++17", "-lineinfo")


def launch(name: str) -> None:
    """Launch one kernel: what compute-sanitizer watches.

    Every array is an allocation of its own and of its own length, without a pool around it, so
    that memcheck sees where it ends.
    """
    import cupy as cp

    cp.cuda.set_allocator(None)
    one = cases.case(name)
    a, b, n = one.arguments()
    kernel = cp.RawKernel(one.code, "k", options=OPTIONS)
    device_a = cp.asarray(a)
    device_b = cp.asarray(b) if one.written else cp.empty(b.shape, b.dtype)
    cp.cuda.runtime.deviceSynchronize()
    kernel((one.grid,), (one.block,), (device_a, device_b, np.int32(n)), shared_mem=one.shared_mem)
    cp.cuda.runtime.deviceSynchronize()
    print("launched", flush=True)


def watch(command: str, tool: str, name: str) -> dict:
    """What one tool says of one kernel."""
    began = time.monotonic()
    start = [command, "--tool", tool, "--print-limit", "20", sys.executable, __file__]
    status, text = run([*start, "--launch", name], SECONDS)
    lines = tools.reports(text)
    found = tools.verdicts(tool, "\n".join(lines))
    print(f"{name:<36}{tool:<12}{time.monotonic() - began:5.1f} s  {found or '-'}", flush=True)
    note = {
        "report": [line.replace(str(ROOT), "") for line in lines[:MOST_LINES]],
        "lines_left_out": max(0, len(lines) - MOST_LINES),
        "summary": [line.strip() for line in lines if "SUMMARY" in line],
        "exit_status": status,
        "launched": "launched" in text.splitlines(),
    }
    if not any("SUMMARY" in line for line in lines):
        note["output"] = text[-1500:]  # the tool itself failed
    return note


def versions(command: str) -> dict[str, str]:
    """The GPU and the software, compute-sanitizer among it."""
    from recorded import gpu

    _, said = run([command, "--version"], 60)
    version = [line for line in said.splitlines() if "ersion" in line]
    return gpu.describe() | {"compute_sanitizer": " ".join(version)}


def record(workers: int, only: str | None) -> int:
    """Every kernel under every tool; 1 if a tool did not come to its summary."""
    command = nsight.find("compute-sanitizer")
    if command is None:
        print("compute-sanitizer is not there; it comes with the CUDA toolkit.", file=sys.stderr)
        return 1
    names = [one.name for one in cases.ALL] if only is None else [only]
    for name in names:  # fill CuPy's cache, so that no two processes compile the same
        _compile(name)
    jobs = [(name, tool) for name in names for tool in cases.TOOLS]
    with ThreadPoolExecutor(workers) as pool:
        notes = list(pool.map(lambda job: watch(command, job[1], job[0]), jobs))
    kernels: dict = {name: {"code": cases.case(name).code, "tools": {}} for name in names}
    for (name, tool), note in zip(jobs, notes, strict=True):
        kernels[name]["tools"][tool] = note
    failed = [job for job, note in zip(jobs, notes, strict=True) if not note["summary"]]
    for name, tool in failed:
        print(f"{name}, {tool}: no summary\n{kernels[name]['tools'][tool].get('output', '')}")
    if only is not None:
        print(json.dumps(kernels, indent=1))
    else:
        data = {"device": versions(command), "kernels": kernels}
        save(cases.FOLDER / "h200.json", data)
    return 1 if failed else 0


def _compile(name: str) -> None:
    import cupy as cp

    cp.RawKernel(cases.case(name).code, "k", options=OPTIONS).compile()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=[one.name for one in cases.ALL], metavar="NAME")
    parser.add_argument("--workers", type=int, default=min(6, os.cpu_count() or 1))
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        launch(chosen.launch)
        return 0
    return record(chosen.workers, chosen.only)


if __name__ == "__main__":
    sys.exit(main())
