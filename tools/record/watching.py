"""Watches a script's launches with Nsight Compute and with compute-sanitizer, and keeps time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from helpers.measure import nsight
from helpers.measure.nsight import Value

START = time.monotonic()
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def say(text: str) -> None:
    """Print with the time since the start."""
    print(f"[{time.monotonic() - START:6.1f} s] {text}", flush=True)


def run(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Exit status (None after `seconds`) and what the command printed."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
            errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        said = said.decode(errors="replace") if isinstance(said, bytes) else said
        return None, f"{said}\nno end within {seconds:.0f} s"
    except OSError as error:
        return None, str(error)
    return done.returncode, done.stdout


def profile(
    script: Sequence[str], kernels: str, options: Sequence[str], seconds: float
) -> list[dict[str, Value]]:
    """A row of Nsight Compute's raw page for each kernel, in the order of the launches.

    What it says instead, where it ends badly or sees nothing, is printed.

    Args:
        script: of Python, with its arguments.
        kernels: a regular expression for their names.
        options: such as `--metrics` and what follows it.
        seconds: that it may take.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        program = [sys.executable, *script]
        ncu = nsight.find() or "ncu"
        command = nsight.ask(ncu, log, f"regex:{kernels}", *options, program=program)
        status, said = run(command, seconds)
        lines = log.read_text().splitlines() if log.exists() else []
    rows = nsight.read(lines)
    say(f"ncu, {' '.join(script[1:])}: exit status {status}, {len(rows)} kernels")
    if status != 0 or not rows:
        print(said[-3000:], *[x for x in lines if not x.startswith('"')][-15:], sep="\n")
    return rows


def metrics(wanted: Mapping[str, str]) -> list[str]:
    """The options that ask for metrics."""
    return ["--metrics", ",".join(wanted.values())]


def counters(row: Mapping[str, Value], wanted: Mapping[str, str]) -> dict[str, int]:
    """Those of the metrics, by our names, that a row has as numbers."""
    return {
        key: int(row[metric])
        for key, metric in wanted.items()
        if isinstance(row.get(metric), (int, float))
    }


def sanitize(scripts: Mapping[str, tuple[str, Sequence[str]]], seconds: float) -> dict[str, dict]:
    """compute-sanitizer's exit status and summary, and its report where that is not clean.

    Args:
        scripts: {name: (which of its tools, a script of Python with its arguments)}; all run at
            once.
        seconds: that each may take.
    """

    def watched(name: str) -> dict:
        which, script = scripts[name]
        command = [nsight.find("compute-sanitizer") or "compute-sanitizer", "--tool", which]
        command += ["--target-processes", "application-only", "--error-exitcode", "99"]
        if which == "memcheck":  # libraries ask the driver for functions that it may lack
            command += ["--report-api-errors", "no"]
        status, said = run([*command, sys.executable, *script], seconds)
        lines = said.splitlines()
        found: dict = {
            "status": status,
            "summary": [line.strip("= ") for line in lines if "SUMMARY" in line],
            "printed": [line for line in lines if line and not line.startswith("=====")],
        }
        if status != 0 or not found["summary"]:
            found["output"] = said[-4000:]
        say(f"{name}: exit status {status}, {found['summary'] or said[-1500:]}")
        return found

    with ThreadPoolExecutor(len(scripts)) as pool:
        return dict(zip(scripts, pool.map(watched, scripts), strict=True))
