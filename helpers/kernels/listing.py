"""Source listings: highlighted, numbered, marked, and with counters beside each line."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from html import escape

from ..show import Shows, render
from ..simulator.compile.machine_code import MachineCode
from .machine_view import LineCode, code_by_line, look_of
from .source import KernelError

# Shown of a report unless the caller chooses, where a line shown has any.
_USUAL_COLUMNS = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_load_bank_conflicts",
    "shared_store_wavefronts",
    "shared_store_bank_conflicts",
)
_GROUPS = ("global_load", "global_store", "shared_load", "shared_store")


@dataclass(frozen=True)
class Line:
    """One line of a listing; `counts` stand beside it, one per column, and machine code."""

    number: int
    text: str
    html: str
    marked: bool
    counts: tuple[int | float, ...]
    machine: LineCode = LineCode()


@dataclass(frozen=True, repr=False)
class Listing(Shows):
    """A listing to look at: HTML in a notebook, text in a terminal.

    Attributes:
        title: the file and the kernel.
        detail: the parameters.
        columns: names of the counters shown.
        lines: the lines shown, in order; where numbers are left out, a gap shows.
        notes: (number, sentence) of lines whose counts are not a GPU's.
        machine: what the machine code takes, in two lines, if it stands beside the source.
        lacks: why it does not, where it was wanted.
        bound: the least time of the launch whose counters are shown, in a sentence.
    """

    title: str
    detail: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[tuple[int, str], ...] = ()
    machine: tuple[str, ...] = ()
    lacks: str = ""
    bound: str = ""

    @property
    def sums(self) -> tuple[int | float, ...]:
        """The sum of each column over the lines shown."""
        return tuple(sum(column) for column in self._counts())

    def _counts(self) -> Iterable[tuple[int | float, ...]]:
        """The counts of each column."""
        return zip(*(line.counts for line in self.lines), strict=True)

    def html(self):
        return render(
            "listing.html",
            listing=self,
            headings=[_heading(column) for column in self.columns],
            largest=[
                max(counts) for counts in zip(*(line.counts for line in self.lines), strict=True)
            ],
            number=_number,
            look_of=look_of,
        )

    def __repr__(self) -> str:
        head = f"{self.title} ({self.detail})" if self.detail else self.title
        digits = len(str(self.lines[-1].number))
        texts = [line.text.expandtabs(4) for line in self.lines]
        width = max(len(text) for text in texts) if self.columns else 0
        headings = [_heading(column) for column in self.columns]
        shown = [tuple(_number(count) for count in line.counts) for line in self.lines]
        sums = tuple(_number(count) for count in self.sums)
        widths = [
            max(len(text) for text in [*heading, *values])
            for heading, *values in zip(headings, sums, *shown, strict=True)
        ]

        def row(gutter: str, text: str, values: tuple[str, ...]) -> str:
            cells = (f"  {value:>{wide}}" for value, wide in zip(values, widths, strict=True))
            return f"{gutter:>{digits + 2}} | {text:<{width}}{''.join(cells)}".rstrip()

        rows = [head, *self.machine]
        if self.columns:
            rows += [row("", "", tuple(part)) for part in zip(*headings, strict=True)]
        before = self.lines[0].number - 1
        for line, text, values in zip(self.lines, texts, shown, strict=True):
            if line.number != before + 1:
                rows.append(row("⋮", "", ()))
            before = line.number
            gutter = f"> {line.number:>{digits}}" if line.marked else str(line.number)
            rows.append(row(gutter, text, values))
            if line.machine.instructions:
                rows.append(row("", f"        {line.machine}", ()))
        if self.columns:
            rows.append(row("", "sum of these lines", sums))
        rows += [f"line {number}: {sentence}" for number, sentence in self.notes]
        rows += [said for said in (self.lacks, self.bound) if said]
        return "\n".join(rows)


def listing(
    source: str,
    first: int,
    last: int,
    *,
    title: str,
    detail: str = "",
    marked: Collection[int] = (),
    report=None,
    columns: tuple[str, ...] | None = None,
    machine_code: MachineCode | None = None,
    kinds: Collection[str] | None = None,
    lacks: str = "",
    bound: str = "",
) -> Listing:
    """Make a listing of the lines `first` to `last` of `source`.

    Args:
        source: text of the file.
        first, last: numbers of the lines to show, counted from 1.
        title: what stands above it.
        detail: more of that, less prominent.
        marked: numbers of the lines to mark.
        report: has `by_line[number][counter]` and `counters`, as the simulator's reports do, and
            may have `marks`, a sentence for each line whose counts are not a GPU's.
        columns: names of counters to show; those usual for memory that occur, if None.
        machine_code: of the kernel, to stand beside the lines that it comes from.
        kinds: of its instructions those to tell, such as `fp32`; by default all that work on
            numbers or memory.
        lacks: why there is no machine code, to stand below.
        bound: a sentence on the launch's least time, to stand below.

    Raises:
        KernelError: if the report has no counter of a name in `columns`, or there is no such kind.
    """
    numbers = range(first, last + 1)
    columns = _columns(report, columns, numbers)
    machine = code_by_line(machine_code, kinds)
    texts, marked_up = source.split("\n"), highlighted(source)
    lines = tuple(
        Line(
            number,
            texts[number - 1],
            marked_up[number - 1],
            number in marked,
            tuple(_count(report, number, column) for column in columns),
            machine.get(number, LineCode()),
        )
        for number in numbers
    )
    notes = _notes(report, numbers) if columns else ()
    machine_takes = _what_it_takes(machine_code, kinds)
    return Listing(title, detail, columns, lines, notes, machine_takes, lacks, bound)


def _columns(report, columns: tuple[str, ...] | None, numbers: Collection[int]) -> tuple[str, ...]:
    if report is None:
        if columns:
            raise KernelError("Columns show the counters of a report, and none was given.")
        return ()
    if not (hasattr(report, "by_line") and hasattr(report, "counters")):
        raise KernelError(f"report is what count() returns, not of type {type(report).__name__}.")
    if columns is None:
        return tuple(c for c in _USUAL_COLUMNS if any(_count(report, n, c) for n in numbers))
    if unknown := [column for column in columns if column not in report.counters]:
        raise KernelError(
            f"The report has no counter {unknown[0]}; it has {', '.join(sorted(report.counters))}."
        )
    return columns


def _count(report, number: int, column: str) -> int | float:
    by_line = report.by_line
    return by_line[number].get(column, 0) if number in by_line else 0


def _notes(report, numbers: Iterable[int]) -> tuple[tuple[int, str], ...]:
    marks = getattr(report, "marks", {})
    return tuple((number, marks[number]) for number in numbers if number in marks)


def _what_it_takes(code: MachineCode | None, kinds: Collection[str] | None) -> tuple[str, ...]:
    if code is None:
        return ()
    shown = {kind: count for kind, count in code.kinds.items() if kinds is None or kind in kinds}
    # A number stays beside its kind.
    return code.summary, ", ".join(f"{kind}\u00a0{count:,}" for kind, count in shown.items())


def _number(count: int | float) -> str:
    if not count:
        return ""
    return (
        f"{count:,.2f}" if isinstance(count, float) and not count.is_integer() else f"{count:,.0f}"
    )


def _heading(column: str) -> tuple[str, str]:
    """Split a counter's name into what is accessed and what is counted."""
    for group in _GROUPS:
        if column.startswith(f"{group}_"):
            return group.replace("_", " "), column.removeprefix(f"{group}_").replace("_", " ")
    return "", column.replace("_", " ")


@functools.lru_cache(maxsize=64)
def highlighted(source: str) -> tuple[str, ...]:
    """Return every line of `source` as HTML; without Pygments it is plain."""
    try:
        # late: Pygments is an optional package, and start-up time
        from ..show.highlighting import coloured_lines
    except ImportError:
        return tuple(escape(text, quote=False) for text in source.split("\n"))
    return tuple(coloured_lines(source, "cuda"))
