"""Nsight Compute's command line: where it is, what it is asked, and what it answers."""

import csv
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

Value = float | int | str


def find(name: str = "ncu") -> str | None:
    """A command of Nsight Compute or of the CUDA toolkit; None if it is not there."""
    toolkits = [os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places: list[str | Path | None] = [shutil.which(name)]
    places += [Path(toolkit) / "bin" / name for toolkit in toolkits if toolkit]
    places += sorted(Path("/opt/nvidia/nsight-compute").glob(f"*/{name}"), reverse=True)
    places += sorted(Path("/usr/local").glob(f"cuda*/bin/{name}"), reverse=True)
    return next((str(place) for place in places if place and Path(place).is_file()), None)


def ask(ncu: str, log: Path, kernel: str, *options: str, program: Sequence[str]) -> list[str]:
    """The command that writes the raw page of a program's kernels, in base units, to `log`.

    Args:
        ncu: from `find`.
        kernel: its name, or `regex:` and a pattern of several.
        options: which metrics, how many launches.
        program: the command to watch.
    """
    return [
        ncu, "--clock-control", "none", "--page", "raw", "--csv", "--print-units", "base",
        "--kernel-name", kernel, *options, "--log-file", str(log), *program,
    ]  # fmt: skip


def read(lines: Iterable[str]) -> list[dict[str, Value]]:
    """What a raw page says of each kernel, in the order of the launches: numbers, and texts."""
    rows = [
        {name: _value(text) for name, text in row.items() if name and text}
        for row in csv.DictReader(line for line in lines if line.startswith('"'))
        if (row.get("ID") or "").isdigit()  # not that of the units
    ]
    return sorted(rows, key=lambda row: row["ID"])


def _value(text: str) -> Value:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    return int(value) if value.is_integer() else value
