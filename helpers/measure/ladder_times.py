"""The ladder so far, rung by rung: times measured on this machine's GPU, next to recorded ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ..bench.ladder_bars import D, bars, load
from ..problem.attention import make_inputs, memory
from ..problem.ladder import LADDER
from . import timing
from .charts import speedup_chart
from .recorded import Recorded
from .tables import Table

__all__ = ["SIZES", "LadderTimes", "ladder_times"]

SIZES = (256, 512, 1024, 4096, 16384)
_SHARE = 0.8  # of a GPU's memory that Q, K, V, S, P and O may take together

ByRung = Mapping[str, Mapping[int, float]]


class LadderTimes(Table):
    """Milliseconds of the rungs by N; `chart` draws how many times as fast as naive each is.

    Attributes:
        device: this machine's GPU, None without one.
        measured: {rung: {N: milliseconds}} of it; empty without a GPU.
        recorded: the recorded ones, or None.
    """

    def __init__(
        self,
        device: str | None,
        measured: ByRung,
        recorded: Recorded | None,
        names: Sequence[str],
    ):
        self.device, self.measured, self.recorded = device, measured, recorded
        kept = {name: recorded.milliseconds.get(name, {}) for name in names} if recorded else {}
        self._recorded = {name: times for name, times in kept.items() if times}
        sizes = sorted({n for t in (*measured.values(), *self._recorded.values()) for n in t})
        rows = [
            (gpu, name, *(timing._milliseconds(times.get(n)) for n in sizes))
            for gpu, by_rung in self._sources()
            for name, times in by_rung.items()
        ]
        protocol = timing.PROTOCOL if device or not recorded else recorded.protocol
        notes = [] if device else [timing.NO_TIMES]
        notes += [f"Milliseconds, d = {D}: {protocol}."] if rows else []
        # One "N =" is enough, and leaves room for the names of the rungs.
        numbers = (f"{n:,}" if place else f"N = {n:,}" for place, n in enumerate(sizes))
        headings = ("GPU", "rung", *numbers)
        super().__init__(headings, rows, " ".join(notes))

    def _sources(self) -> list[tuple[str, ByRung]]:
        found: list[tuple[str, ByRung]] = []
        if self.measured:
            found.append((str(self.device), self.measured))
        if self._recorded and self.recorded:
            found.append((f"{self.recorded.device}, recorded", self._recorded))
        return found

    def speedups(self) -> tuple[str, dict[str, dict[int, float]]]:
        """The GPU's name, and {rung: {N: naive's time divided by the rung's}}; measured ones first.

        Raises:
            ValueError: there are no times of the naive rung.
        """
        for gpu, by_rung in self._sources():
            if naive := by_rung.get("naive"):
                return gpu, {
                    name: {n: naive[n] / time for n, time in times.items() if n in naive}
                    for name, times in by_rung.items()
                }
        raise ValueError("There are no times of the naive rung to compare with.")

    def chart(self):
        """How many times as fast as the naive rung each is, against N."""
        return speedup_chart(*self.speedups())


def ladder_times(upto: str, sizes: Sequence[int] = SIZES) -> LadderTimes:
    """Times of the ladder's rungs from naive to `upto`, each variant on its own.

    Without a GPU nothing is launched, and the recorded times stand alone. With the last fp32 rung
    come the recorded times of PyTorch as well.

    Args:
        upto: name of the last rung to show.
        sizes: values of N to measure on a GPU; those that do not fit into its memory are left out.
    """
    from helpers import device

    names, recorded = bars(upto), load()
    shown = list(names)
    if recorded and upto == LADDER[-1].name:
        shown += [name for name in recorded.milliseconds if name not in names]
    if not device.is_gpu:
        return LadderTimes(None, {}, recorded, shown)
    measured: dict[str, dict[int, float]] = {}
    for n, (name, (rung, settings)) in itertools.product(_fitting(sizes), names.items()):
        prepared = rung.prepare(*make_inputs(n, D), **settings)
        measured.setdefault(name, {})[n] = timing.measure(prepared.launch)
        del prepared  # its arrays, before those of the next
    return LadderTimes(device.name(), measured, recorded, shown)


def _fitting(sizes: Sequence[int]) -> list[int]:
    """The sizes whose matrices the GPU has room for."""
    from helpers import cp

    _, total = cp.cuda.Device().mem_info
    return [n for n in sizes if sum(memory(n, D).values()) <= _SHARE * total]
