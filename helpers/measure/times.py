"""One table for all times: those of this machine's GPU and recorded ones, side by side."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .charts import Markup, rate_chart, speedup_chart
from .recorded import ByName, Recording, Size
from .tables import Table, milliseconds

NO_TIMES = (
    "A simulated run has no milliseconds: it counts what a kernel does, and only a GPU can be "
    "timed."
)

# (one kernel's values by size, those of all by name) -> what a column shows of it
Cell = Callable[[Mapping[Size, float], ByName], str]


class Source(NamedTuple):
    """The times of one GPU: its name, {name: {size: value}}, and how they were taken, if told."""

    gpu: str
    times: ByName
    protocol: str


def recorded_source(
    recording: Recording | None, what: str = "attention", names: Sequence[str] | None = None
) -> Source | None:
    """A table of a recording, or some `names` of it in their order; None if there is none."""
    if recording is None or what not in recording.tables:
        return None
    times = recording.times(what)
    kept = {name: times[name] for name in (times if names is None else names) if name in times}
    return Source(recording.device, kept, recording.protocol)


def by_size(sizes: Sequence[Size], *, short: bool = False) -> dict[str, Cell]:
    """A column of milliseconds for each N.

    Args:
        short: whether one "N =" is enough, which leaves room for long names.
    """
    return {
        f"{n:,}" if short and place else f"N = {n:,}": lambda own, _, n=n: milliseconds(own.get(n))
        for place, n in enumerate(sizes)
    }


class Times(Table):
    """Milliseconds or TFLOPS by name and size, each GPU's side by side below its name.

    Attributes:
        device: this machine's GPU; None without one.
        measured: {name: {size: value}} of it; empty without a GPU.
        recorded: the same of the GPU of the recording; empty without one.

    Args:
        of: what has the names, such as `kernel`.
        measured, recorded: where the times are from; None without a GPU, without a recording.
        columns: the columns for all sizes that a GPU has, by their headings.
        unit: `ms` or `TFLOPS`.
        about: what stands before the protocol in the note.
        notes: sentences to end the note with.
        total: whether a row has the sums of what several names take.
    """

    def __init__(
        self,
        of: str,
        measured: Source | None,
        recorded: Source | None,
        columns: Callable[[Sequence[Size]], Mapping[str, Cell]] = by_size,
        *,
        unit: str = "ms",
        about: str = "Milliseconds",
        notes: Sequence[str] = (),
        total: bool = False,
    ):
        self.device, self.unit = measured.gpu if measured else None, unit
        self.measured = dict(measured.times) if measured else {}
        self.recorded = dict(recorded.times) if recorded else {}
        found = [(measured.gpu, self.measured)] if measured else []
        if recorded:
            found.append((f"{recorded.gpu}, recorded", self.recorded))
        self._sources = [(gpu, times) for gpu, times in found if any(times.values())]
        shown = [_with_sums(times) if total else times for _, times in self._sources]
        names = list(dict.fromkeys(name for times in shown for name, own in times.items() if own))
        if total and "all" in names:  # below what either GPU has
            names.append(names.pop(names.index("all")))
        headings, over = [of], [("", 1)]
        rows = [[name] for name in names]
        for (gpu, own), times in zip(self._sources, shown, strict=True):
            cells = columns(sorted({n for by_n in own.values() for n in by_n}))
            headings += cells
            over.append((gpu, len(cells)))
            for row in rows:
                by_n = times.get(row[0])
                row += [cell(by_n, times) if by_n else "" for cell in cells.values()]
        protocol = (measured or recorded).protocol if rows else ""
        said = [f"{about}: {protocol}." if protocol else f"{about}."] if rows else []
        if not rows:
            said = ["" if measured else NO_TIMES, "No recorded times of a GPU are here either."]
        text = " ".join([*filter(None, said), *notes])
        super().__init__(headings, rows, text, over=over if rows else ())

    def speedups(self) -> tuple[str, dict[str, dict[int, float]]]:
        """The GPU's name, and {rung: {N: naive's time divided by the rung's}}; measured ones first.

        Raises:
            ValueError: there are no times of the naive rung.
        """
        for gpu, times in self._sources:
            if naive := times.get("naive"):
                return gpu, {
                    name: {n: naive[n] / time for n, time in own.items() if n in naive}
                    for name, own in times.items()
                }
        raise ValueError("There are no times of the naive rung to compare with.")

    def rates(self) -> tuple[str, dict[str, float]]:
        """The GPU's name and the value of each kernel at its largest size, the measured ones first.

        Raises:
            ValueError: there are none.
        """
        if not self._sources:
            raise ValueError("There are no times: neither a GPU nor a recording.")
        gpu, times = self._sources[0]
        return gpu, {name: own[max(own)] for name, own in times.items()}

    def chart(self) -> Markup:
        """TFLOPS as bars, or how many times as fast as the naive rung each is, against N.

        Raises:
            ValueError: there are no times to draw.
        """
        if self.unit == "TFLOPS":
            return rate_chart(*self.rates())
        return speedup_chart(*self.speedups())


def _with_sums(times: ByName) -> ByName:
    """With the sums at the sizes that all have, if there are several."""
    if len(times) < 2:
        return times
    common = set.intersection(*(set(own) for own in times.values()))
    return {**times, "all": {n: sum(own[n] for own in times.values()) for n in common}}
