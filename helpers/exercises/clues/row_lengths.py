"""Rows that an answer takes for longer or shorter than they are declared, or kept, to be.

All is read from the text: what an array's rows have, and what an index takes them to have.
"""

import re
from collections.abc import Iterator, Mapping

from ...simulator.compile.source_text import line_of, mask
from ..answer import kernel_of_solution
from ..diagnosis import Diagnosis, own_lines, whole
from ..small_changes.statements import statements, terms
from ..spec import Case, Exercise
from .whole_numbers import whole_number

_SHAPE = re.compile(r"(\w+),?[ \t]*//[ \t]*\[([^\]\n]+)\]")
_SHARED = re.compile(r"__shared__[^;=]*?\b(\w+)\s*\[([^\]]+)\]\s*\[([^\]]+)\]\s*;")
_SETS = re.compile(r"(?<![\w.])(\w+)\s*=(?!=)\s*([^;,]+);")
_VECTORS = re.compile(
    r"\bfloat([24])\s*\*\s*(?:const\s+)?(\w+)\s*=\s*(?:reinterpret_cast<[^>]*>\s*\(|\([^()]*\)\s*\(?)"
    r"\s*&?\s*(\w+)(?:\[0\])*\s*\)?\s*;"
)

_TURNS = re.compile(r"\bfor\s*\(\s*int (\w+) = 0; \1 < (\w+|\w+ / \w+); (?:\1\+\+|\+\+\1)\)\s*\{")
_SHARE = r"[^{{}}]*?= (?:tx|ty|tid|lane|threadIdx\.\w) \* (?:(\w+)|\((\w+ / \w+)\)) \+ {}\s*;"

Said = tuple[str, list[int]]


def of_the_rows(exercise: Exercise, text: str, case: Case, kept: bool = False) -> Diagnosis | None:
    """The first index that takes a row for longer or shorter than it is, or None.

    Args:
        text: the answer, which is wrong.
        case: where it is.
        kept: only rows that are kept in one way and looked for in another.
    """
    text = whole(text)
    own, code = own_lines(exercise, text), mask(text)
    values = kernel_of_solution(exercise, tuple(case.items())).parameters
    numbers = {name: one.value for name, one in values.items() if type(one.value) is int}
    known = dict(_SETS.findall(code))
    ways = (
        *(() if kept else (_of_arrays(exercise, text, own), _taken_apart(code, own))),
        _of_vectors(code, own, numbers, known),
        _pitches(code, own, numbers, known),
        _shares(code, own, numbers, known),
    )
    for way in ways:
        for said, lines in way:
            return Diagnosis(said, tuple(lines))
    return None


def _of_arrays(exercise: Exercise, text: str, own: set[int]) -> Iterator[Said]:
    """An array of two dimensions whose index takes another size for the length of its rows."""
    shapes = {name: [size.strip() for size in its.split(",")]
              for name, its in _SHAPE.findall(exercise.solution)}  # fmt: skip
    shapes = {name: its for name, its in shapes.items() if len(its) == 2}
    sizes = {size for its in shapes.values() for size in its}
    for one in statements(text, own, sorted(sizes)):
        for access in one.accesses:
            found = terms(one.code[slice(*access.indices[0])]) if access.name in shapes else None
            if found and found[1] in sizes and found[1] != shapes[access.name][1]:
                yield (
                    f"A row of {access.name} has {shapes[access.name][1]} elements, and the index "
                    f"takes it to have {found[1]}.",
                    [one.line],
                )


def _taken_apart(code: str, own: set[int]) -> Iterator[Said]:
    """A tile's element whose number is divided by the length of another tile's row."""
    tiles = {name: last.strip() for name, _, last in _SHARED.findall(code)}
    for m in re.finditer(r"\b(\w+)\[(\w+) / (\w+)\]\[(\w+) % (\w+)\]", code):
        name, line = m[1], line_of(code, m.start())
        if line in own and m[2] == m[4] and m[3] == m[5] and m[3] != tiles.get(name, m[3]):
            yield (
                f"A row of {name} has {tiles[name]} elements, and {m[2]} is taken apart as if it "
                f"had {m[3]}: threads meet at one place.",
                [line],
            )


def _of_vectors(
    code: str, own: set[int], numbers: Mapping[str, int], known: Mapping[str, str]
) -> Iterator[Said]:
    """A pointer to vectors whose index takes a row to have as many of them as it has floats."""
    rows = {name: last for name, _, last in _SHARED.findall(code)}
    for name, width in re.findall(r"(?<![&\w])(\w+)\[\w+ \* (\w+) \+ \w+\] = ", code):
        rows.setdefault(name, width)
    for unit, name, array in _VECTORS.findall(code):
        floats = whole_number(rows.get(array, ""), numbers, known)
        for m in re.finditer(rf"\b{name}\[(\w+) \* (\w+) \+ [^\]]+\]", code):
            line = line_of(code, m.start())
            if floats and line in own and whole_number(m[2], numbers, known) == floats:
                yield (
                    f"{name} points to float{unit}, and its index counts floats: a row of {array} "
                    f"has {floats} floats, which are {floats / int(unit):g} of float{unit}.",
                    [line],
                )


def _pitches(
    code: str, own: set[int], numbers: Mapping[str, int], known: Mapping[str, str]
) -> Iterator[Said]:
    """A flat tile whose rows are written one distance apart, and looked for another."""
    kept = {}
    for m in re.finditer(r"\b(s_\w+)\[\w+ \* (\w+) \+ \w+\] = ", code):
        kept[m[1]] = m[2], line_of(code, m.start())
    for m in re.finditer(r"\b(s_\w+)(?:\[| \+ )\w+ \* (\w+)(?= \+ \w+\]|;)", code):
        line = line_of(code, m.start())
        if m[1] not in kept or line not in own or line == kept[m[1]][1]:
            continue
        stored, read = (whole_number(w, numbers, known) for w in (kept[m[1]][0], m[2]))
        if stored and read and stored != read:
            yield (
                f"Line {kept[m[1]][1]} stores rows of {m[1]} {stored} elements apart, and line "
                f"{line} looks for them {read} apart.",
                [line],
            )


def _shares(
    code: str, own: set[int], numbers: Mapping[str, int], known: Mapping[str, str]
) -> Iterator[Said]:
    """Threads that take more elements each, one after the other, than they begin apart."""
    for loop in _TURNS.finditer(code):
        m = re.compile(_SHARE.format(loop[1])).match(code, loop.end())
        if not m or line_of(code, loop.start()) not in own:
            continue
        apart = m[1] or m[2]
        each, step = (whole_number(w, numbers, known) for w in (loop[2], apart))
        if each and step and each > step:
            yield (
                f"Each thread takes `{loop[2]}` elements, {each} here, and the next thread begins "
                f"`{apart}` further on, which is {step}: they go past their part.",
                [line_of(code, loop.start()), line_of(code, m.end())],
            )
