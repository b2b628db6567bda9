"""Small tables that show as HTML in a notebook and print as text, bytes and times in words."""

from collections.abc import Iterable, Sequence

from ..show import Shows, render


class Table(Shows):
    """Rows under headings, with an optional note below.

    Columns of numbers are set to the right. Integers get thousands separators; other formats are
    the caller's, as text.

    Args:
        headings: one a column.
        rows: one value a column each: text or numbers.
        note: sentences to stand below.
        over: a line above the headings: texts, and how many columns each stands over.

    Raises:
        ValueError: a row of another length than the headings, or not all columns under `over`.
    """

    def __init__(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence],
        note: str = "",
        *,
        over: Sequence[tuple[str, int]] = (),
    ):
        self.headings = tuple(headings)
        self.rows = [tuple(row) for row in rows]
        self.note = note
        self.over = tuple(over)
        if over and sum(columns for _, columns in over) != len(self.headings):
            raise ValueError(f"{over} does not stand over {len(self.headings)} columns.")
        for row in self.rows:
            if len(row) != len(self.headings):
                counts = f"{len(row)} values and there are {len(self.headings)} headings"
                raise ValueError(f"A row has {counts}: {row}")

    def _left(self, column: int) -> bool:
        values = [row[column] for row in self.rows]
        return bool(values) and not any(_numeric(value) for value in values)

    def html(self):
        return render(
            "table.html",
            table=self,
            rows=[[_text(value) for value in row] for row in self.rows],
            left=[self._left(column) for column in range(len(self.headings))],
        )

    def __repr__(self) -> str:
        lines = []
        if self.rows:
            shown = [self.headings, *(tuple(map(_text, row)) for row in self.rows)]
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            if self.over:
                lines.append(self._line_over(widths))
            for values in shown:
                cells = (
                    value.ljust(width) if self._left(n) else value.rjust(width)
                    for n, (value, width) in enumerate(zip(values, widths, strict=True))
                )
                lines.append("  ".join(cells).rstrip())
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def _line_over(self, widths: Sequence[int]) -> str:
        """The line above the headings, each text where its first column starts."""
        line, place, column = "", 0, 0
        for text, columns in self.over:
            line = line.ljust(place) + text
            place += sum(width + 2 for width in widths[column : column + columns])
            column += columns
        return line.rstrip()


def size_of(amount: float) -> str:
    """A number of bytes in words: 4 MiB, 1.5 GiB."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    step = 0
    while amount >= 1024 and step < len(units) - 1:
        amount, step = amount / 1024, step + 1
    return f"{amount:.3g} {units[step]}" if amount < 1000 else f"{amount:.0f} {units[step]}"


def milliseconds(value: float | None) -> str:
    """A time with a sensible number of digits; empty for None."""
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _text(value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}"


def _numeric(value) -> bool:
    """Whether a value is a number, or text that starts like one."""
    return not isinstance(value, str) or value.lstrip("-−")[:1].isdigit() or value == "nan"
