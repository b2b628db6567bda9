"""An exercise on a slide: of the kernel that students edit, the gaps and the lines around them."""

from __future__ import annotations

import re

MAGIC = "%%kernel"
AROUND = 2  # lines with code on either side of a gap
_GAP = re.compile(r"\s*(?://|#)\s*Gap\b")
_COMMENT = re.compile(r"\s*(?://|#)")


def with_gaps(source: str) -> str | None:
    """The lines of an exercise's cell that show what is to be filled in.

    Args:
        source: of a cell that begins with `%%kernel`.

    Returns:
        The gaps with the lines around them; where some are left out stands `...`. None if the cell
        is no exercise or has no gap.
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
    shown: list[str] = []
    for number in sorted(kept):
        if shown and number - 1 not in kept:
            inside = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            blank = not any(line.strip() for line in lines[_last(kept, number) + 1 : number])
            shown.append("" if blank else f"{inside}...")
        shown.append(lines[number])
    return _dedented(shown) if shown else None


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


def _last(kept: set[int], number: int) -> int:
    return max(one for one in kept if one < number)


def _dedented(lines: list[str]) -> str:
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[least:] for line in lines)
