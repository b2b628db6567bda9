"""What a named GPU gave, for machines that cannot measure: times, profiles and counters.

The files of this folder have one format:

    device, date, versions    whose numbers these are, where that is known
    protocol, note            how times were taken; what else is to be known of them
    tables                    {what, unit, times, samples}: medians and the samples behind them,
                              {name: {size: ...}}; whatever else a table has is for those who
                              record the next one
    profiles                  {kernel, file, shape, metrics}: what Nsight Compute read
    counters                  {file, values, shape, counters}: of small launches

A size is N, "256", or batch, heads, n and d, "4,16,4096,128".

Only `h200_facts.json` has another: what the GPU's parts give; `helpers.measure.facts` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...kernels.source import Parameter

FOLDER = Path(__file__).resolve().parent
# The names of the files of the fp32 rungs, of the FlashAttention kernels, of those whose copies
# overlap with arithmetic, and of those for Hopper alone.
LADDER, FLASH, OVERLAP, HOPPER = "h200_ladder", "h200_flash", "h200_overlap", "h200_hopper"

Shape = tuple[int, int, int, int]  # batch, heads, n and d
Size = int | tuple[int, ...]
ByName = Mapping[str, Mapping[Any, float]]  # {name: {size: median}}


@dataclass(frozen=True)
class Timed:
    """One table of times.

    Attributes:
        unit: of `times`: `ms` or `TFLOPS`.
        times: {name: {size: median}}.
        samples: {name: {size: milliseconds}} that they are the medians of, where they were kept.
        resources: {name: {size: what a thread and a block take, by name}}, where it was kept.
        protocol: how they were taken, if tables differ in that.
    """

    unit: str
    times: ByName
    samples: Mapping[str, Mapping[Size, list[float]]] = field(default_factory=dict)
    resources: Mapping[str, Mapping[Size, Mapping[str, int]]] = field(default_factory=dict)
    protocol: str = ""


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

    @property
    def causal(self) -> bool:
        """Whether a row sees only the keys up to its own: the kernel's name says so."""
        return "causal" in self.kernel.split(", ")


@dataclass(frozen=True)
class Recording:
    """One file.

    Attributes:
        device: the GPU's name.
        protocol: how times were taken, in a sentence.
        tables: by what was timed: `attention` as a whole, or a kernel's name.
        date: the day, as year-month-day; may be empty.
        versions: of the driver, of CUDA, of CuPy.
        note: what else is to be known of it, in a sentence; may be empty.
        profiles: of kernels and rivals.
        counters: memory counters of small launches: mappings with file, values, shape, counters.
    """

    device: str
    protocol: str
    tables: Mapping[str, Timed]
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    profiles: tuple[RecordedProfile, ...] = ()
    counters: tuple[Mapping, ...] = ()

    def times(self, what: str = "attention") -> ByName:
        """{name: {size: median}} of a table; empty if there is none."""
        return self.tables[what].times if what in self.tables else {}

    @property
    def tflops(self) -> dict[Size, dict[str, float]]:
        """{(batch, heads, n, d): {name: median}} of the FlashAttention kernels as they are in
        `kernels/` (baseline, swizzled), of variants of theirs, and of rivals."""
        found: dict[Size, dict[str, float]] = {}
        for name, by_size in self.times().items():
            for size, rate in by_size.items():
                found.setdefault(size, {})[name] = rate
        return found

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


def load(name: str, folder: Path = FOLDER) -> Recording | None:
    """Read `helpers/measure/recorded/<name>.json`; None if there is no such file."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text("utf-8"))
    return Recording(
        data["device"],
        data["protocol"],
        {
            table["what"]: Timed(
                table["unit"],
                *(_sized(table.get(part, {})) for part in ("times", "samples", "resources")),
                table.get("protocol", ""),
            )
            for table in data["tables"]
        },
        data.get("date", ""),
        data.get("versions", {}),
        data.get("note", ""),
        tuple(
            RecordedProfile(p["kernel"], p["file"], tuple(p["shape"]), p["metrics"])
            for p in data.get("profiles", ())
        ),
        tuple(data.get("counters", ())),
    )


def flash_recordings(folder: Path = FOLDER) -> tuple[Recording, ...]:
    """The recordings of kernels of FlashAttention that are there, from the earlier chapters on."""
    found = (load(name, folder) for name in (FLASH, OVERLAP, HOPPER))
    return tuple(one for one in found if one is not None)


def load_flash(folder: Path = FOLDER) -> Recording | None:
    """The recording of the FlashAttention kernels and their rivals; None if it is not there."""
    return load(FLASH, folder)


def _sized(by_name: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[Size, Any]]:
    """{name: {size: ...}} with sizes as numbers."""
    return {
        name: {_size(text): value for text, value in by_size.items()}
        for name, by_size in by_name.items()
    }


def _size(text: str) -> Size:
    numbers = tuple(map(int, text.split(",")))
    return numbers if len(numbers) > 1 else numbers[0]
