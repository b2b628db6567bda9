"""Times that were measured on a named GPU, for machines that cannot measure any."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Recorded:
    """The times of one file.

    Attributes:
        device: the GPU's name.
        protocol: how they were measured, in a sentence.
        milliseconds: {launch: {N: median}}.
    """

    device: str
    protocol: str
    milliseconds: dict[str, dict[int, float]]


def load(name: str, folder: Path = FOLDER) -> Recorded | None:
    """Read `helpers/measure/recorded/<name>.json`; None if there is no such file."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return Recorded(
        data["device"],
        data["protocol"],
        {
            launch: {int(n): float(time) for n, time in times.items()}
            for launch, times in data["milliseconds"].items()
        },
    )


def save(name: str, recorded: Recorded, folder: Path = FOLDER) -> Path:
    """Write `helpers/measure/recorded/<name>.json`; returns its path."""
    path = folder / f"{name}.json"
    data = {
        "device": recorded.device,
        "protocol": recorded.protocol,
        "milliseconds": {
            launch: {str(n): time for n, time in times.items()}
            for launch, times in recorded.milliseconds.items()
        },
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path
