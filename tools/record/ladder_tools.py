"""The ladder under Nsight Compute and compute-sanitizer."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from helpers.problem.attention import make_inputs, reference, relative_error

from . import ladder_cases as cases
from .ladder_cases import KERNELS, say

SCRIPT = str(Path(__file__).with_name("record_ladder.py"))
# Warps that meet at the banks now and then cost a wavefront more: the least of a few launches counts.
REPEATS = 5
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def launch_counted(journal: Path) -> None:
    """A few launches of every kernel that is counted: what ncu watches. `journal` gets those that ran."""
    import cupy as cp

    ran = []
    for number, case in enumerate(cases.counted()):
        inputs = make_inputs(case.N, case.d, seed=5)
        prepared = case.rung.prepare(*inputs)
        scores, weights, _ = reference(*inputs)  # what the kernels before it would have left
        prepared.arrays["S"][...] = cp.asarray(scores.astype(np.float32))
        prepared.arrays["P"][...] = cp.asarray(weights.astype(np.float32))
        try:
            for _ in range(REPEATS):
                prepared.launches[case.number].run()
                cp.cuda.Device().synchronize()
                ran.append(number)
        except Exception as error:
            print(f"{case.describe()}: {error}", file=sys.stderr, flush=True)
        journal.write_text(json.dumps(ran))


def launch_sanitized(broken: bool) -> None:
    """Every rung once, or only the softmax that lacks a barrier: what compute-sanitizer watches."""
    import cupy as cp

    N, d = cases.SANITIZED_SIZE
    Q, K, V = (cp.asarray(x) for x in make_inputs(N, d, seed=7))
    if broken:
        kernel = cp.RawKernel(cases.third_barrier_missing(), "softmax", options=("-std=c++17",))
        S, P = cp.asarray(np.ones((N, N), np.float32)), cp.asarray(np.zeros((N, N), np.float32))
        kernel((N,), (256,), (S, P, np.int32(N)))
        cp.cuda.Device().synchronize()
        return
    for one in cases.sanitized():
        result = one.run(Q, K, V)
        cp.cuda.Device().synchronize()
        print(f"{one}: {relative_error(result, reference(Q, K, V).O):.2e}", flush=True)


def tool(name: str) -> str | None:
    """A command of the CUDA toolkit or of Nsight Compute."""
    places = [shutil.which(name), f"/usr/local/cuda/bin/{name}"]
    places += sorted(map(str, Path("/opt/nvidia/nsight-compute").glob(f"*/{name}")), reverse=True)
    places += sorted(map(str, Path("/usr/local").glob(f"cuda*/bin/{name}")), reverse=True)
    return next((place for place in places if place and Path(place).exists()), None)


def counters(out: Path, seconds: float) -> dict:
    """What ncu counts, kernel by kernel."""
    from recorded import gpu
    from recorded.sections import EXTRA_METRICS, METRICS

    ncu = tool("ncu")
    if ncu is None:
        raise RuntimeError("ncu not found")
    listed = cases.counted()
    metrics = METRICS | EXTRA_METRICS
    with tempfile.TemporaryDirectory() as folder:
        log, journal = Path(folder) / "ncu.csv", Path(folder) / "ran.json"
        command = [
            ncu,
            "--clock-control",
            "none",
            "--page",
            "raw",
            "--csv",
            "--print-units",
            "base",
        ]
        command += ["--log-file", str(log), "--kernel-name", f"regex:^({'|'.join(KERNELS)})$"]
        command += ["--metrics", ",".join(metrics.values())]
        command += [sys.executable, SCRIPT, "--launch-counted", str(journal)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
            words = (done.stdout + done.stderr)[-3000:]
        except subprocess.TimeoutExpired:
            words = f"ncu did not end within {seconds:.0f} s"
        lines = log.read_text().splitlines() if log.exists() else []
        ran = json.loads(journal.read_text()) if journal.exists() else []
    rows = [
        r
        for r in csv.DictReader(x for x in lines if x.startswith('"'))
        if r.get("ID", "").isdigit()
    ]
    rows.sort(key=lambda row: int(row["ID"]))
    found, mismatched = [], 0
    for number, row in zip(ran, rows, strict=False):
        note = listed[number].describe()
        if (row.get("Kernel Name") or "").split("(")[0] != note["entry"]:
            mismatched += 1
            continue
        note["ncu"] = {
            key: int(float((row.get(metric) or "").replace(",", "")))
            for key, metric in metrics.items()
            if re.fullmatch(r"[0-9.,]+", row.get(metric) or "")
        }
        if found and found[-1]["number"] == number:
            least = found[-1]["ncu"]
            found[-1]["ncu"] = {key: min(n, least.get(key, n)) for key, n in note["ncu"].items()}
        else:
            found.append(note | {"number": number})
    for note in found:
        del note["number"]
    complete = sum(METRICS.keys() <= note["ncu"].keys() for note in found)
    say(
        f"ncu: {len(listed)} kernels, {len(ran)} launched, {len(rows)} watched, {complete} with every metric, "
        f"{mismatched} out of order"
    )
    if complete < len(listed):
        print(words, *[x for x in lines if not x.startswith('"')][-15:], sep="\n", flush=True)
    data = {
        "device": gpu.describe(),
        "metrics": METRICS,
        "extra_metrics": EXTRA_METRICS,
        "cases": found,
    }
    if not mismatched and len(rows) == len(ran):
        (out / "ladder_counters.json").write_text(json.dumps(data, indent=1) + "\n")
    return {"kernels": len(listed), "complete": complete, "out_of_order": mismatched}


def sanitizer(seconds: float) -> dict:
    """compute-sanitizer's summary, tool by tool, and of a kernel with a race as a cross-check."""
    command = tool("compute-sanitizer")
    if command is None:
        raise RuntimeError("compute-sanitizer not found")
    jobs = {name: [command, "--tool", name] for name in SANITIZERS}
    jobs["racecheck of a softmax without its third barrier"] = [command, "--tool", "racecheck"]
    running = {}
    for name, start in jobs.items():
        mode = "--launch-broken" if "without" in name else "--launch-sanitized"
        running[name] = subprocess.Popen(
            [*start, sys.executable, SCRIPT, mode],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    found = {}
    end = time.monotonic() + seconds
    for name, process in running.items():
        try:
            text, _ = process.communicate(timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
            text += f"\nno end within {seconds:.0f} s"
        summaries = [line.strip("= ") for line in text.splitlines() if "SUMMARY" in line]
        reports = [line for line in text.splitlines() if line.startswith("=====")]
        launched = sum(line.startswith("<Rung") for line in text.splitlines())
        found[name] = {"summary": summaries, "rungs": launched, "exit_status": process.returncode}
        if "without" in name or not summaries or any(" 0 " not in s for s in summaries):
            found[name]["report"] = reports[:12]
        say(f"{name}: {launched} rungs, {summaries or text[-1500:]}")
    return found
