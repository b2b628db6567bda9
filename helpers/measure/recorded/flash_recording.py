"""What a named GPU gave for the FlashAttention kernels and rivals: times, profiles, counters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import FOLDER

if TYPE_CHECKING:
    from helpers.kernels.source import Parameter

__all__ = ["NAME", "FlashRecording", "RecordedProfile", "load_flash"]

NAME = "h200_flash"

Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class RecordedProfile:
    """What Nsight Compute read of one launch.

    Attributes:
        kernel: the rung's name, or that of a rival.
        file: the .cu file; empty for a rival.
        shape: batch, heads, n and d.
        metrics: values by Nsight Compute's own names, in base units.
    """

    kernel: str
    file: str
    shape: Shape
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class FlashRecording:
    """One recording.

    Attributes:
        device: the GPU's name.
        date: the day, as year-month-day.
        versions: of the driver, of CUDA and of CuPy.
        protocol: how times were measured, in a sentence.
        note: what else is to be known of it, in a sentence; may be empty.
        tflops: {(batch, heads, n, d): {name: median}}, of the kernels as they are in `kernels/`
            (baseline, swizzled), of variants of theirs, and of rivals.
        milliseconds: {shape: {name: samples}} that they are the medians of.
        resources: {shape: {name: registers, local_bytes and shared_bytes}}.
        sustained: TFLOPS of runs long enough for the GPU to lower its clock, at (2, 16, 8192, 128).
        profiles: of the kernels, and of FlashAttention-2.
        counters: memory counters of small launches: mappings with file, values, shape, counters.
    """

    device: str
    date: str
    versions: Mapping[str, str]
    protocol: str
    note: str
    tflops: Mapping[Shape, Mapping[str, float]]
    milliseconds: Mapping[Shape, Mapping[str, list[float]]]
    resources: Mapping[Shape, Mapping[str, Mapping[str, int]]]
    sustained: Mapping[str, float]
    profiles: tuple[RecordedProfile, ...]
    counters: tuple[Mapping, ...]

    def profile(self, file: str, shape: Shape | None = None) -> RecordedProfile | None:
        """The profile of a kernel file, or of a rival by its name: at `shape`, or the largest."""
        found = [p for p in self.profiles if file in (p.file or p.kernel, p.kernel)]
        if shape is not None:
            found = [p for p in found if p.shape == tuple(shape)]
        return max(found, key=lambda p: p.metrics["gpu__time_duration.sum"], default=None)

    def counted(
        self, file: str, shape: Shape, parameters: Mapping[str, Parameter]
    ) -> Mapping[str, int] | None:
        """Memory counters of a launch that was made just so; None if there was none.

        Args:
            file: the .cu file.
            shape: batch, heads, n and d.
            parameters: the kernel's, as they are set.
        """
        for case in self.counters:
            own = {name: case["values"].get(name, p.default) for name, p in parameters.items()}
            if (
                case["file"] == file
                and tuple(case["shape"]) == tuple(shape)
                and own == {name: p.value for name, p in parameters.items()}
            ):
                return case["counters"]
        return None


def load_flash(folder: Path = FOLDER) -> FlashRecording | None:
    """Read `helpers/measure/recorded/h200_flash.json`; None if it is not there."""
    path = folder / f"{NAME}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    by_shape = {tuple(size["shape"]): size for size in data["sizes"]}
    return FlashRecording(
        data["device"],
        data["date"],
        data["versions"],
        data["protocol"],
        data.get("note", ""),
        *(
            {shape: size[what] for shape, size in by_shape.items()}
            for what in ("tflops", "milliseconds", "resources")
        ),
        data["sustained"],
        tuple(
            RecordedProfile(p["kernel"], p["file"], tuple(p["shape"]), p["metrics"])
            for p in data["profiles"]
        ),
        tuple(data["counters"]),
    )
