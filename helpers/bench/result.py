"""What a bench finds out: of each kernel and of a setting as a whole, as plain data too."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..kernels.source import Value
from .check import Check
from .subject import Settings

SIMULATOR = "simulator (NumPy, no GPU)"


@dataclass(frozen=True)
class KernelRun:
    """What one kernel did.

    Attributes:
        file, entry: which kernel.
        values: its parameters.
        grid, block: blocks, and threads of a block, along x, y and z.
        shared: bytes of shared memory of a block.
        source: text of the file.
        segments: first and last lines to show: the kernel, and functions that it calls.
        totals: counters that are not zero.
        by_line: the same by line of the file.
        marks: a sentence for each line whose counters are not a GPU's.
        checks: of the arrays that it writes.
        bound: the least time on a GPU that need not be here: its name `gpu`, `seconds`, the
            `limit`, and a `sentence`; None if it was not counted.
        milliseconds: of one launch on the GPU, at the size for times.
        mark: a line at fault.
    """

    file: str
    entry: str
    values: dict[str, Value]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    source: str = field(repr=False)
    segments: tuple[tuple[int, int], ...]
    totals: dict[str, int] = field(default_factory=dict, repr=False)
    by_line: dict[int, dict[str, int]] = field(default_factory=dict, repr=False)
    marks: dict[int, str] = field(default_factory=dict, repr=False)
    checks: tuple[Check, ...] = ()
    bound: dict[str, str | float] | None = None
    milliseconds: float | None = None
    mark: int | None = None

    @property
    def right(self) -> bool:
        return all(check.right for check in self.checks)


@dataclass(frozen=True)
class Result:
    """What a setting gives.

    Attributes:
        title: what was turned.
        rung: its name in the ladder, or None.
        settings: what it was set to.
        status: `right`, `wrong`, `refused` (the settings cannot run) or `error`.
        message: why, in a sentence or a few; of an error, an excerpt of the source may follow.
        kernels: those that ran, the one at fault last.
        device: what ran it: the GPU's name, or the simulator.
        timed: the size for times, such as {"N": 4096}; None without a GPU.
        printed: what the kernels printed.
        reports: the simulator's reports by kernel; not part of `data()`.
    """

    title: str
    rung: str | None
    settings: Settings
    status: str
    message: str
    kernels: tuple[KernelRun, ...] = ()
    device: str = SIMULATOR
    timed: dict[str, Value] | None = None
    printed: str = ""
    reports: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def totals(self) -> dict[str, int]:
        """Counters of all kernels together."""
        sums: dict[str, int] = {}
        for kernel in self.kernels:
            for name, count in kernel.totals.items():
                sums[name] = sums.get(name, 0) + count
        return sums

    @property
    def milliseconds(self) -> float | None:
        """Of all kernels together; None if one was not timed."""
        times = [kernel.milliseconds for kernel in self.kernels]
        return sum(times) if times and None not in times else None

    @property
    def error(self) -> float | None:
        """The relative error of what the last kernel writes; None if nothing was checked."""
        checks = [check for kernel in self.kernels for check in kernel.checks]
        return checks[-1].error if checks else None

    def data(self) -> dict[str, Any]:
        """All but the reports, as what JSON can hold; a NaN or an infinity becomes its name."""
        held = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del held["reports"]
        held["kernels"] = [asdict(kernel) for kernel in self.kernels]
        held |= {"totals": self.totals, "milliseconds": self.milliseconds, "error": self.error}
        return _plain(held)


def _plain(value):
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
