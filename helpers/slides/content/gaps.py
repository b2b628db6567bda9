"""An exercise on a slide: of the kernel that students edit, the gaps and the lines around them.

Where the place is what is asked for there is no gap: then it is what the threads share.
"""

from __future__ import annotations

import re
import textwrap

MAGIC = "%%kernel"
AROUND = 2  # lines with code on either side of a gap
_GAP = re.compile(r"\s*(?://|#)\s*Gap\b")
_COMMENT = re.compile(r"\s*(?://|#)")
_SHARED = re.compile(r"__shared__\s+[\w\s]*?\b(\w+)\s*\[")


def with_gaps(source: str) -> str | None:
    """The lines of an exercise's cell that show what is to be filled in.

    Args:
        source: of a cell that begins with `%%kernel`.

    Returns:
        The gaps with the lines around them, or without a gap the lines that share; where some are
        left out stands `...`. None if the cell is no exercise or has neither.
    """
    if not source.startswith(MAGIC):
        return None
    lines = source.split("\n")[1:]
    kept: set[int] = set()
    for start in (n for n, line in enumerate(lines) if _GAP.match(line)):
        end = start  # of a comment of several lines
        while end + 1 < len(lines) and _COMMENT.match(lines[end + 1]):
            end += 1
        kept |= set(range(start, end + 1))
        kept |= set(_near(lines, range(start - 1, -1, -1)))
        kept |= set(_near(lines, range(end + 1, len(lines))))
    kept = kept or _sharing(lines)
    shown: list[str] = []
    before = -1
    for number in sorted(kept):
        if shown and number > before + 1:
            blank = not any(line.strip() for line in lines[before + 1 : number])
            shown.append("" if blank else f"{_indent(lines[number]) * ' '}...")
        shown.append(lines[number])
        before = number
    return textwrap.dedent("\n".join(shown)) if shown else None


def _sharing(lines: list[str]) -> set[int]:
    """Places of the barriers and of what uses shared memory, with the loops that they stand in."""
    names = [found[1] for line in lines if (found := _SHARED.search(line))]
    if not names:
        return set()
    shares = re.compile(rf"\b(?:{'|'.join(names)}|__syncthreads)\b")
    kept = {n for n, line in enumerate(lines) if shares.search(line) and line[:1].isspace()}
    for n in sorted(kept):
        depth = _indent(lines[n])
        for above in range(n - 1, -1, -1):  # what opens the blocks around it, and closes them
            if lines[above].strip() and 0 < _indent(lines[above]) < depth:
                depth = _indent(lines[above])
                ends = (m for m in range(n, len(lines)) if lines[m] == f"{depth * ' '}}}")
                kept |= {above, next(ends, n)}
    return kept


def _near(lines: list[str], places: range) -> list[int]:
    """The next lines with code on them, as far as a function's edge."""
    found: list[int] = []
    for place in places:
        if not lines[place][:1].isspace() or len(found) == AROUND:
            if lines[place].strip():
                break
            continue
        if lines[place].strip():
            found.append(place)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
