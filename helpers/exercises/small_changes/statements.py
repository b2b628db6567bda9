"""The lines of a kernel as one changes them: what is accessed, set and compared there."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...simulator.compile.source_text import mask

_ASSIGNS = re.compile(r"(?<![=!<>])((?:[+\-*/%&|^]|<<|>>)?=)(?!=)")
_DECLARES = re.compile(
    r"\s*(?:const |constexpr |__shared__ |unsigned )*"
    r"(?:int|unsigned|float[24]?|half2?|bool|double|size_t|auto)\b\s*[*&]?\s*\w+"
)
_INTEGER = re.compile(r"\s*(?:const |constexpr )*(?:int|unsigned|size_t|bool)\b")


Replaced = tuple[int, int, str]  # from, to, by what
Found = tuple[list[Replaced], str]  # what is put in; what is wrong if it makes all right


@dataclass(frozen=True)
class Indexed:
    """`name[...]` with one index or more; positions within the statement."""

    name: str
    role: str  # stored to, or read
    start: int
    end: int
    indices: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Statement:
    """A line of code, without its comment.

    Attributes:
        line: its number.
        start: where it begins in the text; its blanks before are not part of it.
        code: the line as it is compiled.
        words: names of sizes.
        whole: the code of the whole text.
        scope: names of indices and sizes that may be used in it.
        arrays: names of arrays that the lines use.
    """

    line: int
    start: int
    code: str
    words: tuple[str, ...]
    whole: str
    scope: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + len(self.code)

    @cached_property
    def accesses(self) -> tuple[Indexed, ...]:
        """What is accessed by an index, outermost first."""
        return tuple(_accesses(self.code))

    @cached_property
    def assignment(self) -> re.Match | None:
        """The `=`, `+=` or the like that sets something, if there is one outside of brackets."""
        for found in _ASSIGNS.finditer(self.code):
            before = self.code[: found.start()]
            if before.count("(") == before.count(")") and before.count("[") == before.count("]"):
                return found
        return None

    @property
    def target(self) -> str:
        """The name of what is set, or empty."""
        if self.assignment is None:
            return ""
        before = re.sub(r"\[[^=]*$", "", self.code[: self.assignment.start()])
        names = re.findall(r"[A-Za-z_][\w.]*", before)
        return names[-1] if names else ""

    @property
    def is_declaration(self) -> bool:
        """Whether it declares what it sets."""
        return bool(_DECLARES.match(self.code))

    @property
    def is_integer(self) -> bool:
        """Whether what it sets is an index or a condition."""
        plain = re.match(r"(\w+) [+\-*/]?= ", self.code)
        return bool(_INTEGER.match(self.code) or (plain and plain[1] in self.scope))

    @property
    def is_guard(self) -> bool:
        """Whether its condition lets some threads stop, or load something else."""
        return bool(re.search(r"\?|\b(?:return|break|continue)\b", self.code))

    def declares(self, at: int) -> bool:
        """Whether the name at a position is the one that is set."""
        return (
            self.assignment is not None and at < self.assignment.start() and not self.in_index(at)
        )

    def in_index(self, at: int) -> bool:
        """Whether a position lies within the index of an access."""
        return any(a <= at < b for one in self.accesses for a, b in one.indices)

    def in_call(self, at: int) -> bool:
        """Whether a position lies within the brackets of a call, such as a shuffle's."""
        calls = re.finditer(r"\b(?!if\b|for\b|while\b)[A-Za-z_]\w*\([^()]*\)", self.code)
        return any(call.start() <= at < call.end() for call in calls)

    def what(self, at: int | None = None) -> str:
        """The place in words: an index of an array, what is set, or what is called."""
        if at is not None:
            inside = [o for o in self.accesses for a, b in o.indices if a <= at < b]
            if inside:
                return f"the index of {inside[-1].name}"
        if self.target and not re.match(r"\s*for\b", self.code):
            return f"the line that sets {self.target}"
        if re.match(r"\s*(?:\}?\s*else\s+)?if\b|\s*return\b", self.code):
            return "the condition"
        called = re.match(r"\s*([A-Za-z_]\w*)\s*(?:<\w+>)?\s*\(", self.code)
        if called:
            return "the loop" if called[1] == "for" else f"the call of {called[1]}"
        return "this line"

    def condition_around(self, start: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """What stands left and right of an `&&` or `||`, as positions."""
        return _side(self.code, start - 1, -1), _side(self.code, end, 1)


def statements(text: str, lines: Collection[int], words: Collection[str]) -> Iterator[Statement]:
    """Those of the lines that have code.

    Args:
        text: a source text.
        lines: numbers, from 1.
        words: names of sizes, such as `N` and `d`.
    """
    code = mask(text)
    declared = re.findall(r"\b(?:int|unsigned|size_t)\s+(\w+)\s*=", code)
    scope = tuple(dict.fromkeys([*words, *declared]))
    rows = [row for n, row in enumerate(code.split("\n"), 1) if n in lines]
    arrays = tuple(dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\[", "\n".join(rows))))
    at = 0
    for number, row in enumerate(code.split("\n"), 1):
        stripped = row.strip()
        if number in lines and stripped and not stripped.startswith("#"):
            start = at + len(row) - len(row.lstrip())
            yield Statement(number, start, stripped, tuple(words), code, scope, arrays)
        at += len(row) + 1


def terms(index: str) -> tuple[str, str, str] | None:
    """(row, width, rest) of an index `row * width + rest`, or None if it is none."""
    parts = split(index, "+")
    products = [(n, split(part, "*")) for n, part in enumerate(parts)]
    products = [(n, factors) for n, factors in products if len(factors) == 2]
    if not products:
        return None
    number, (row, width) = products[0]
    row = re.sub(r"^\s*\((?:size_t|long long|unsigned)\)\s*", "", row).strip()
    width = width.strip()
    if row.isdigit() or (row.isupper() and not width.isupper()):
        row, width = width, row
    rest = " + ".join(part.strip() for n, part in enumerate(parts) if n != number)
    return row, width, rest


def split(code: str, sign: str) -> list[str]:
    """The parts of an expression between signs that are outside of all brackets."""
    depth, parts = 0, [""]
    for character in code:
        depth += (character in "([") - (character in ")]")
        if character == sign and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _accesses(code: str) -> Iterator[Indexed]:
    for found in re.finditer(r"([A-Za-z_]\w*)\[", code):
        indices, at = [], found.end() - 1
        while at < len(code) and code[at] == "[":
            depth, start = 0, at + 1
            while at < len(code):
                depth += (code[at] == "[") - (code[at] == "]")
                if not depth:
                    break
                at += 1
            indices.append((start, at))
            at += 1
        rest = code[at:].lstrip()
        stored = bool(re.match(r"(?:[+\-*/]?=)(?!=)", rest))
        yield Indexed(
            found[1], "stored to" if stored else "read", found.start(), at, tuple(indices)
        )


def _side(code: str, at: int, step: int) -> tuple[int, int]:
    """From a position to the end of a condition, to one side."""
    depth, edge = 0, at
    opening, closing = ("(", ")") if step > 0 else (")", "(")
    while 0 <= edge < len(code):
        character = code[edge]
        compares = character == "=" and re.search(r"[=!<>]=|==", code[max(0, edge - 1) : edge + 2])
        if character in "&|?;=" and not depth and not compares:
            break
        if character == closing:
            if not depth:
                break
            depth -= 1
        depth += character == opening
        edge += step
    low, high = (at, edge) if step > 0 else (edge + 1, at + 1)
    piece = code[low:high]
    return low + len(piece) - len(piece.lstrip()), high - (len(piece) - len(piece.rstrip()))
