"""What a kernel changed of the one before it: the lines of one function, taken out and put in.

from helpers.kernels.changes import changes
changes(rung("flash_swizzled").kernel(), rung("flash_eager").kernel(), "flash_attention")
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..show import Shows, render
from .kernel import Kernel
from .listing import highlighted
from .source import KernelError

_SIGNS = {"-": "−", "+": "+", " ": ""}


@dataclass(frozen=True)
class ChangedLine:
    """A line of either file: `kind` is `-` (taken out), `+` (put in), a blank, or `gap`."""

    kind: str
    number: int
    text: str = ""
    html: str = ""

    @property
    def gutter(self) -> str:
        """What stands beside it: its number and its sign."""
        return f"{self.number} {_SIGNS[self.kind]}".rstrip() if self.kind != "gap" else "⋮"


@dataclass(frozen=True, repr=False)
class Changes(Shows):
    """The changed lines with those around them: HTML in a notebook, text in a terminal.

    Attributes:
        title: the two files, and the function.
        lines: in order; the numbers are those of the line's own file.
    """

    title: str
    lines: tuple[ChangedLine, ...]

    @property
    def put_in(self) -> int:
        """How many lines the new file has in place of others."""
        return sum(line.kind == "+" for line in self.lines)

    @property
    def taken_out(self) -> int:
        """How many lines of the old file are gone."""
        return sum(line.kind == "-" for line in self.lines)

    def html(self):
        return render("changes.html", changes=self)

    def __repr__(self) -> str:
        width = max((len(line.gutter) for line in self.lines), default=0)
        rows = (f"{line.gutter:>{width}} | {line.text}".rstrip() for line in self.lines)
        return "\n".join([self.title, *rows])


def changes(
    before: Kernel, after: Kernel, within: str, *, since: str = "", until: str = "", around: int = 1
) -> Changes:
    """What `after` changed of a function of `before`, or the whole function where it is new.

    Args:
        before, after: kernels whose files stand beside each other.
        within: the function's name.
        since, until: texts of the first and the last line to compare, in a file that has them.
        around: how many unchanged lines to show around a change.

    Raises:
        KernelError: `after` has no function of that name.
    """
    new = _function(after.source, within, since, until)
    if new is None:
        raise KernelError(f"{after.file.name} has no function {within!r}.")
    old = _function(before.source, within, since, until)
    lines = tuple(_compared(before, after, old or range(0), new, around))
    return Changes(f"{before.file.name} → {after.file.name} · {within}", lines)


def _function(source: str, name: str, since: str, until: str) -> range | None:
    """The lines of a function, as indices from 0 on, without the comment above it."""
    lines = source.split("\n")
    for first, line in enumerate(lines):
        if not re.search(rf"\b{re.escape(name)}\(", line) or line[:1] in (" ", "/", "#", ""):
            continue
        end = next(n for n in range(first, len(lines)) if lines[n] == "}") + 1
        start = first - 1 if first and lines[first - 1].startswith("template") else first
        if since:
            start = next((n for n in range(first, end) if since in lines[n]), start)
        if until:
            end = next((n + 1 for n in range(start, end) if until in lines[n]), end)
        return range(start, end)
    return None


def _compared(
    before: Kernel, after: Kernel, old: range, new: range, around: int
) -> Iterator[ChangedLine]:
    """The lines of two functions that differ, those around them, and where others are left out."""
    sides = []
    for kernel, lines in ((before, old), (after, new)):
        texts, html = kernel.source.split("\n"), highlighted(kernel.source)
        sides.append([(n + 1, texts[n], html[n]) for n in lines])
    texts = [[text for _, text, _ in side] for side in sides]
    groups = difflib.SequenceMatcher(None, *texts, autojunk=False).get_grouped_opcodes(around)
    for number, group in enumerate(groups):
        if number:
            yield ChangedLine("gap", 0)
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (ChangedLine(" ", *line) for line in sides[1][c:d])
            else:
                yield from (ChangedLine("-", *line) for line in sides[0][a:b])
                yield from (ChangedLine("+", *line) for line in sides[1][c:d])
