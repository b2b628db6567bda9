"""Source listings: highlighted, numbered, marked, and with counters beside each line."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from html import escape

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

_STYLE = """
.kernel-listing {
  --kl-text: var(--jp-content-font-color1, var(--vscode-editor-foreground, #1f2328));
  --kl-page: var(--jp-layout-color0, var(--vscode-editor-background, #ffffff));
  --kl-head: var(--jp-layout-color2, rgba(128, 128, 128, 0.15));
  --kl-line: var(--jp-border-color2, rgba(128, 128, 128, 0.35));
  --kl-faint: var(--jp-content-font-color2, #57606a);
  --kl-accent: var(--jp-brand-color1, #1976d2);
  --kl-mark: rgba(33, 150, 243, 0.14);
  --kl-heat: rgba(245, 124, 0, 0.30);
  --kl-keyword: var(--jp-mirror-editor-keyword-color, #007000);
  --kl-name: var(--jp-mirror-editor-def-color, #0000e0);
  --kl-number: var(--jp-mirror-editor-number-color, #006b00);
  --kl-string: var(--jp-mirror-editor-string-color, #ba2121);
  --kl-comment: color-mix(
    in srgb, var(--jp-mirror-editor-comment-color, #3d7b7b) 75%, var(--kl-text));
  --kl-preprocessor: color-mix(
    in srgb, var(--jp-mirror-editor-meta-color, #9326c9) 70%, var(--kl-text));
  color: var(--kl-text); background: var(--kl-page);
  border: 1px solid var(--kl-line); border-radius: 4px;
  margin: 4px 0; max-width: 100%; overflow-x: auto;
  font-family: var(--jp-code-font-family, Menlo, Consolas, "DejaVu Sans Mono", monospace);
  font-size: var(--jp-code-font-size, 13px); line-height: 1.45;
}
.vscode-dark .kernel-listing {
  --kl-keyword: #7fc97f; --kl-name: #79b8ff; --kl-number: #b5cea8; --kl-string: #f28b82;
  --kl-comment: #7fb0b0; --kl-preprocessor: #d2a8ff; --kl-faint: #9aa0a6;
}
.kernel-listing .kl-title {
  display: flex; flex-wrap: wrap; gap: 0 1.5em; padding: 4px 10px;
  background: var(--kl-head); border-bottom: 1px solid var(--kl-line);
  position: sticky; left: 0;
}
.kernel-listing .kl-title b { font-weight: 600; }
.kernel-listing .kl-title span { color: var(--kl-faint); }
.kernel-listing .kl-table { display: table; width: 100%; border-spacing: 0; }
.kernel-listing .kl-row { display: table-row; }
.kernel-listing .kl-row > div { display: table-cell; vertical-align: top; white-space: pre; }
.kernel-listing .kl-row > .kl-n {
  text-align: right; padding: 0 10px 0 10px; color: var(--kl-faint); user-select: none;
  border-left: 3px solid transparent; border-right: 1px solid var(--kl-line); width: 1px;
}
.kernel-listing .kl-row > .kl-c {
  padding: 0 12px 0 calc(12px + 4ch); text-indent: -4ch; tab-size: 4;
  white-space: pre-wrap; width: 100%;
}
.kernel-listing .kl-row > .kl-v {
  text-align: right; padding: 0 6px; border-left: 1px solid var(--kl-line);
  font-variant-numeric: tabular-nums; user-select: none; min-width: 5.5em;
  background-image: linear-gradient(to left, var(--kl-heat) var(--share, 0%), transparent 0);
}
.kernel-listing .kl-marked > div { background-color: var(--kl-mark); }
.kernel-listing .kl-marked > .kl-n {
  border-left-color: var(--kl-accent); color: var(--kl-text); font-weight: 600;
}
.kernel-listing .kl-headings > div {
  border-bottom: 1px solid var(--kl-line); color: var(--kl-faint); font-size: 0.85em;
  vertical-align: bottom;
}
.kernel-listing .kl-sums > div { border-top: 1px solid var(--kl-line); font-weight: 600; }
.kernel-listing .kl-sums > .kl-c { color: var(--kl-faint); font-weight: 400; }
.kernel-listing .k { color: var(--kl-keyword); }
.kernel-listing .f { color: var(--kl-name); }
.kernel-listing .m { color: var(--kl-number); }
.kernel-listing .s { color: var(--kl-string); }
.kernel-listing .c { color: var(--kl-comment); font-style: italic; }
.kernel-listing .p { color: var(--kl-preprocessor); }
@media (forced-colors: active) {
  .kernel-listing .kl-row > .kl-n { border-left-color: Canvas; }
  .kernel-listing .kl-marked > .kl-n { border-left-color: Highlight; }
}
"""


@dataclass(frozen=True)
class Line:
    """One line of a listing; `counts` stand beside it, one per column."""

    number: int
    text: str
    html: str
    marked: bool
    counts: tuple[int | float, ...]


@dataclass(frozen=True, repr=False)
class Listing:
    """A listing to look at: HTML in a notebook, text in a terminal.

    Attributes:
        title: the file and the kernel.
        detail: the parameters.
        columns: names of the counters shown.
        lines: the lines shown, in order; where numbers are left out, a gap shows.
    """

    title: str
    detail: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def sums(self) -> tuple[int | float, ...]:
        """The sum of each column over the lines shown."""
        return tuple(
            sum(values) for values in zip(*(line.counts for line in self.lines), strict=True)
        )

    def _repr_html_(self) -> str:
        title = f"<b>{escape(self.title)}</b><span>{escape(self.detail)}</span>"
        counted = " kl-counted" if self.columns else ""
        rows = [self._headings()] if self.columns else []
        largest = [
            max(values) for values in zip(*(line.counts for line in self.lines), strict=True)
        ]
        for before, line in zip((None, *self.lines), self.lines, strict=False):
            if before is not None and line.number != before.number + 1:
                rows.append(_gap(len(self.columns)))
            rows.append(_row(line, largest))
        if self.columns:
            sums = "".join(_cell(count) for count in self.sums)
            rows.append(
                '<div class="kl-row kl-sums" role="row"><div class="kl-n" role="cell"></div>'
                f'<div class="kl-c" role="cell">sum of these lines</div>{sums}</div>'
            )
        return (
            f"<style>{_STYLE}</style>"
            f'<div class="kernel-listing{counted}"><div class="kl-title">{title}</div>'
            f'<div class="kl-table" role="table" aria-label="{escape(self.title)}">'
            f"{''.join(rows)}</div></div>"
        )

    def _headings(self) -> str:
        cells = "".join(
            f'<div class="kl-v" role="columnheader">{escape(group)}\n<b>{escape(name)}</b></div>'
            for group, name in map(_heading, self.columns)
        )
        return (
            '<div class="kl-row kl-headings" role="row">'
            '<div class="kl-n" role="columnheader">line</div>'
            f'<div class="kl-c" role="columnheader">source</div>{cells}</div>'
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

        rows = [head]
        if self.columns:
            rows += [row("", "", tuple(part)) for part in zip(*headings, strict=True)]
        before = self.lines[0].number - 1
        for line, text, values in zip(self.lines, texts, shown, strict=True):
            if line.number != before + 1:
                rows.append(row("⋮", "", ()))
            before = line.number
            gutter = f"> {line.number:>{digits}}" if line.marked else str(line.number)
            rows.append(row(gutter, text, values))
        if self.columns:
            rows.append(row("", "sum of these lines", sums))
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
) -> Listing:
    """Make a listing of the lines `first` to `last` of `source`.

    Args:
        source: text of the file.
        first, last: numbers of the lines to show, counted from 1.
        title: what stands above it.
        detail: more of that, less prominent.
        marked: numbers of the lines to mark.
        report: has `by_line[number][counter]` and `counters`, as the simulator's reports do.
        columns: names of counters to show; those usual for memory that occur, if None.

    Raises:
        KernelError: if the report has no counter of a name in `columns`.
    """
    if report is not None and not (hasattr(report, "by_line") and hasattr(report, "counters")):
        raise KernelError(f"report is what count() returns, not of type {type(report).__name__}.")
    by_line = {} if report is None else report.by_line
    numbers = range(first, last + 1)

    def count(number: int, column: str) -> int | float:
        return by_line[number].get(column, 0) if number in by_line else 0

    if report is None:
        if columns:
            raise KernelError("Columns show the counters of a report, and none was given.")
        columns = ()
    elif columns is None:
        columns = tuple(c for c in _USUAL_COLUMNS if any(count(n, c) for n in numbers))
    elif unknown := [column for column in columns if column not in report.counters]:
        raise KernelError(
            f"The report has no counter {unknown[0]}; it has {', '.join(sorted(report.counters))}."
        )
    texts, marked_up = source.split("\n"), _highlight(source)
    lines = tuple(
        Line(
            number,
            texts[number - 1],
            marked_up[number - 1],
            number in marked,
            tuple(count(number, column) for column in columns),
        )
        for number in numbers
    )
    return Listing(title, detail, columns, lines)


def _row(line: Line, largest: list[int | float]) -> str:
    cells = "".join(_cell(c, most) for c, most in zip(line.counts, largest, strict=True))
    marked = " kl-marked" if line.marked else ""
    label = f' aria-label="line {line.number}, marked"' if line.marked else ""
    # A cell without text would let its row collapse.
    return (
        f'<div class="kl-row{marked}" role="row"><div class="kl-n" role="cell"{label}>'
        f'{line.number}</div><div class="kl-c" role="cell">{line.html or " "}</div>{cells}</div>'
    )


def _gap(columns: int) -> str:
    """A row for lines that are left out."""
    cells = '<div class="kl-v" role="cell"></div>' * columns
    return (
        '<div class="kl-row kl-gap" role="row"><div class="kl-n" role="cell">⋮</div>'
        f'<div class="kl-c" role="cell"> </div>{cells}</div>'
    )


def _cell(count: int | float, largest: int | float = 0) -> str:
    share = f' style="--share: {100 * count / largest:.0f}%"' if largest and count else ""
    return f'<div class="kl-v" role="cell"{share}>{_number(count)}</div>'


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
def _highlight(source: str) -> tuple[str, ...]:
    """Return every line of `source` as HTML; without Pygments it is plain."""
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.token import Comment, Keyword, Name, Number, String
    except ImportError:
        return tuple(escape(text) for text in source.split("\n"))
    classes = (
        (Comment.Preproc, "p"),
        (Comment, "c"),
        (Keyword, "k"),
        (Name.Builtin, "k"),
        (Name.Function, "f"),
        (Number, "m"),
        (String, "s"),
    )
    lines = [""]
    lexer = get_lexer_by_name("cuda", stripnl=False, ensurenl=False)
    for kind, text in lexer.get_tokens(source):
        style = next((name for token, name in classes if kind in token), "")
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append("")
            if part:
                html = escape(part)
                lines[-1] += f'<span class="{style}">{html}</span>' if style else html
    return tuple(lines)
