"""CUDA C as text: functions, brackets, arguments; enough to change one thing at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from helpers.simulator.compile.source_text import mask

OPEN, CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Body:
    """A function with a body: `start:end` are the offsets of what stands between its braces."""

    name: str
    start: int
    end: int


class Source:
    """A file: its text, and the same text with comments and strings blanked."""

    def __init__(self, text: str):
        self.text, self.code = text, mask(text)
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.bodies = _bodies(self.code)

    def line(self, at: int) -> int:
        """The number of the line that an offset lies in."""
        return sum(start <= at for start in self.starts)

    def line_start(self, at: int) -> int:
        """Where the line of an offset begins."""
        return self.starts[self.line(at) - 1]

    def function(self, at: int) -> str | None:
        """The function whose body an offset lies in."""
        return next((b.name for b in self.bodies if b.start <= at < b.end), None)


def matching(code: str, at: int) -> int:
    """The offset of the bracket that closes the one at `at`."""
    depth = 0
    for n in range(at, len(code)):
        depth += (code[n] in OPEN) - (code[n] in CLOSE)
        if depth == 0:
            return n
    raise ValueError(f"Nothing closes the bracket at {at}.")


def split(code: str, start: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The parts of code[start:end] between separators outside brackets, without outer spaces."""
    parts, depth, first, n = [], 0, start, start
    while n < end:
        depth += (code[n] in OPEN) - (code[n] in CLOSE)
        if depth == 0 and code.startswith(separator, n):
            parts.append((first, n))
            n += len(separator)
            first = n
            continue
        n += 1
    parts.append((first, end))
    return [_stripped(code, *part) for part in parts]


def _stripped(code: str, start: int, end: int) -> tuple[int, int]:
    while start < end and code[start].isspace():
        start += 1
    while end > start and code[end - 1].isspace():
        end -= 1
    return start, end


def _bodies(code: str) -> list[Body]:
    found, after, n = [], 0, 0
    while n < len(code):
        if code[n] in ";#":
            after = n + 1 if code[n] == ";" else code.find("\n", n) + 1
            n = after
            continue
        if code[n] == "(":
            n = matching(code, n) + 1
            continue
        if code[n] == "{":
            close = matching(code, n)
            names = [m for m in re.findall(r"(\w+)\s*\(", code[after:n]) if "bounds" not in m]
            if names:
                found.append(Body(names[0], n + 1, close))
            n = after = close + 1
            continue
        n += 1
    return found
