"""Maps of a tile: whether an answer's map is one to one, and whether all lines go through it.

The answer's own function is asked for every place. So what is said of it is true by construction.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator

import numpy as np

from ...kernels.kernel import Kernel
from ...kernels.launches import Launch
from ...problem.problem import Problem
from ...simulator.compile.source_text import line_of, mask
from ..answer import declared, kernel_of, kernel_of_solution
from ..diagnosis import own_lines, whole
from ..spec import Case, Exercise, PlaceMap
from ..trial import simulate

_ASK = """
extern "C" __global__ void ask_for_places(int* found) {{
    found[blockIdx.x * {columns} + threadIdx.x] = {name}(blockIdx.x, threadIdx.x);
}}
"""
_ENTRY = "ask_for_places"
Told = tuple[str, list[int]]


@functools.lru_cache(maxsize=8)
def places(exercise: Exercise, text: str, case: tuple) -> np.ndarray | None:
    """int (rows, columns): where a text's map keeps each column, counted from its row's start.

    None if its function does not give whole places.
    """
    a = exercise.place
    probe = text + _ASK.format(columns=a.columns, name=a.name)
    kernel = kernel_of(dataclasses.replace(exercise, entry=_ENTRY), probe, dict(case))
    launch = Launch.of(kernel, (a.rows,), (a.columns,), None, 0)
    found = {"found": np.zeros(a.rows * a.columns, np.int32)}
    prepared = Problem((launch,), found, {"found": lambda: found["found"]}, 1.0, ("found",))
    prepared = prepared.prepare()
    prepared.launches[0].simulate(copy=False, progress=False, count=False)
    starts = a.row * np.arange(a.rows)[:, None]
    where = prepared.arrays["found"].reshape(a.rows, a.columns) - starts
    return None if (where % a.each).any() else where // a.each


def of_the_map(exercise: Exercise, text: str, case: Case) -> Told | None:
    """What is wrong with an answer's map: it leaves a row, or two columns share a place."""
    a = exercise.place
    lines = lines_of_map(text, a)
    if asked := _of_a_thread(text, a):
        return (
            f"The map depends on the thread that asks, {asked}: all have to get one place.",
            lines,
        )
    where = places(exercise, text, tuple(case.items()))
    if where is None:
        return f"The map gives places at which no {a.column} begins.", lines
    out = np.argwhere((where < 0) | (where >= a.columns))
    if len(out):
        row, column = map(int, out[0])
        place = int(where[row, column])
        said = (
            f"The map leaves the row: {a.column} {column} of row {row} goes to place {place}, and "
            f"a row has places 0 to {a.columns - 1}."
        )
        return f"{said}{_why(text, lines, where, a)}", lines
    for row, its in enumerate(where):
        for place in np.flatnonzero(np.bincount(its) > 1)[:1]:
            first, second = np.flatnonzero(its == place)[:2]
            return (
                f"Two {a.column}s of a row share a place: {first} and {second} of row {row} both "
                f"go to place {place}. The map has to be one to one in each row.",
                lines,
            )
    return None


def _of_a_thread(text: str, a: PlaceMap) -> str:
    """What of a thread the body of a text's map uses."""
    body = re.search(rf"\b{a.name}\s*\([^()]*\)\s*\{{.*?\n\}}", mask(text), re.DOTALL)
    found = re.search(r"threadIdx\.\w", body[0]) if body else None
    return found[0] if found else ""


def _why(text: str, lines: list[int], where: np.ndarray, a: PlaceMap) -> str:
    rows = mask(text).split("\n")
    if (where < 0).any() and any("%" in rows[n - 1] for n in lines):
        return " The remainder of a negative number is never above 0 in C."
    steps = (where[:, 0] - np.arange(a.columns)[:1]) * a.each
    apart = int(steps[1] - steps[0])
    if apart > 0 and (where == np.arange(a.columns) + np.arange(a.rows)[:, None] * apart).all():
        return (
            f" Rows begin {a.row + apart * a.each} apart here. That is padding, for which the tile "
            "has no room."
        )
    return ""


def lines_of_map(text: str, a: PlaceMap) -> list[int]:
    """Numbers of the lines in the body of a text's map that compute something."""
    code = mask(text)
    found = re.search(rf"\b{a.name}\s*\([^()]*\)\s*\{{", code)
    if not found:
        return []
    end = code.find("\n}", found.end())
    first, last = line_of(code, found.end()) + 1, line_of(code, end if end > 0 else len(code))
    rows = code.split("\n")
    sets = [n for n in range(first, last + 1) if "=" in rows[n - 1]]
    return sets[-1:] or [n for n in range(first, last + 1) if "return" in rows[n - 1]][-1:]


def of_the_lines(exercise: Exercise, text: str, case: Case, kernel: Kernel) -> Told | None:
    """A line that reads or writes another element of a tile than belongs there, by its own map."""
    a, key = exercise.place, tuple(case.items())
    if _of_a_thread(text, a):
        return None
    right, own = places(exercise, exercise.solution, key), places(exercise, text, key)
    if own is None or (np.sort(own) != np.arange(a.columns)).any():
        return None
    for wanted, got in _pairs(exercise, case, kernel):
        found = []
        for lane in zip(*np.nonzero(wanted.active), strict=True):
            should = element(a, right, wanted.array, int(wanted.indices[lane]))
            does = element(a, own, got.array, int(got.indices[lane]))
            if should is not None and should != does:
                found.append((should, does, lane))
        if found:
            return _differs(exercise, found, got, text)
    return None


def _pairs(exercise: Exercise, case: Case, kernel: Kernel) -> Iterator:
    """What the solution and an answer did in shared memory, access by access, where they match."""
    solution = kernel_of_solution(exercise, tuple(case.items()))
    runs = [simulate(exercise, case, k, quiet=True).report for k in (solution, kernel)]
    for kind in ("copy", "store", "load"):
        first, second = (list(run.of_block(kind=kind, space="shared")) for run in runs)
        if len(first) != len(second):
            return
        for wanted, got in zip(first, second, strict=True):
            alike = wanted.array == got.array and wanted.bytes == got.bytes
            if alike and (wanted.active == got.active).all():
                yield wanted, got


def element(
    a: PlaceMap, where: np.ndarray, array: str, index: int
) -> tuple[int, int, int, int] | None:
    """(tile, row, column, rest) of an element of shared memory by a map that is one to one.

    None if the array has no tile of the map there.
    """
    begins = [n for n, start in enumerate(a.tiles.get(array, ())) if start <= index]
    if not begins:
        return None
    tile = begins[-1]
    row, rest = divmod(index - a.tiles[array][tile], a.row)
    place, rest = divmod(rest, a.each)
    known = where[row % a.rows]
    return tile, row, int(np.argmax(known == place)), rest


def _exchanged(a: PlaceMap, found: list) -> bool:
    """Whether row and column are exchanged wherever a tile has the element with the two turned."""
    turned = [(should, does) for should, does, _ in found
              if should[1] < a.columns and should[2] < a.rows]  # fmt: skip
    return bool(turned) and all(
        does and does[1:] == (should[2], should[1], should[3]) for should, does in turned
    )


def _differs(exercise: Exercise, found: list, got, text: str) -> Told:
    """What a line does otherwise, at the first place where it does."""
    a = exercise.place
    should, does, lane = found[0]
    lines = setting(exercise, text, got.line)
    way = "reads" if got.kind == "load" else "writes"
    if does is None or should[0] != does[0]:
        end = "another tile than the one that is meant."
    elif _exchanged(a, found):
        end = (
            f"{a.column} {does[2]} of row {does[1]}, and {a.column} {should[2]} of row {should[1]} "
            "belongs there: row and column are exchanged where the map is called."
        )
    elif should[1] != does[1]:
        end = f"row {does[1]} of its tile, and row {should[1]} belongs there."
    elif should[2] != does[2]:
        why = (
            "It goes through the map, but what is passed to the map or added after it is not what "
            "the other lines use."
            if goes_through(exercise, text, got.line)
            else "It does not go through the map."
        )
        end = (
            f"{a.column} {should[2]} of row {does[1]} to the place that {a.column} {does[2]} has "
            f"by the map above. {why}"
        )
        if way == "reads":
            end = (
                f"{a.column} {does[2]} of row {does[1]}, by the map above, where {a.column} "
                f"{should[2]} is wanted. {why}"
            )
    else:
        lane = lane[-1]
        end = (
            f"element {does[3]} of {a.column} {does[2]} of row {does[1]} with lane {lane}, and "
            f"element {should[3]} belongs there: the {a.column} is right, and the place within it "
            "is not."
        )
        others = np.flatnonzero(got.active[-1] & (got.indices[-1] == got.indices[-1, lane]))
        if way == "writes" and len(others) > 1:
            end += f" Lanes {' and '.join(map(str, others[:2]))} write the same element."
    return f"Line {got.line} {way} {end}", lines or [got.line]


def setting(exercise: Exercise, text: str, line: int) -> list[int]:
    """Lines that a student wrote and that set what a line uses."""
    rows = mask(text).split("\n")
    used = set(re.findall(r"\w+", rows[line - 1])) - set(declared(exercise))
    right = {row.strip() for row in exercise.solution.split("\n")}
    found = []
    for n in sorted(own_lines(exercise, whole(text))):
        row = text.split("\n")[n - 1]
        sets = re.match(r"\s*(?:const\s+)?(?:\w+\s+)?(\w+)\s*=(?!=)", row)
        if sets and sets[1] in used and n != line and row.strip() not in right:
            found.append(n)
    return found


def goes_through(exercise: Exercise, text: str, line: int) -> bool:
    """Whether a line, or one that sets what it uses, calls the map of the tiles."""
    rows = mask(text).split("\n")
    used = set(re.findall(r"\w+", rows[line - 1]))
    call = re.compile(rf"\b{exercise.place.name}\s*\(")
    sets = re.compile(r"\s*(?:const\s+)?(?:\w+\s+)?(\w+)\s*=(?!=)")
    near = [row for row in rows if (found := sets.match(row)) and found[1] in used]
    return any(map(call.search, [*rows[line - 1 : line + 1], *near]))
