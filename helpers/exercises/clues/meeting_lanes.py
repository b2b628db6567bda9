"""Which lanes of a warp make an access dear: those that meet in a bank, or ask for many sectors.

All is read from the trace of the student's own run.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...panels.numbers import listed
from ...simulator.limits import BANKS, LANES, SECTOR_BYTES, WORD
from ..spec import Case, Exercise, Goal
from ..trial import solved
from .place_maps import element, goes_through, lines_of_map, places, setting

_COUNTER = re.compile(r"(shared|global)_(load|store)_(bank_conflicts|sectors)")
_SHOWN = 4  # of many, that are listed
_ALL_BANKS = BANKS * WORD
_FEW = 8  # lanes for each different element, from which on a copy in shared memory is worth it


class Clue(NamedTuple):
    """What is said of a goal's count, and the lines that it is about."""

    said: str
    lines: Sequence[int]


def why_missed(exercise: Exercise, goal: Goal, text: str, case: Case, report) -> Clue | None:
    """What makes a count of conflicts or sectors high; None for other goals, or if none is seen."""
    found = _COUNTER.fullmatch(goal.counter)
    if found is None:
        return None
    space, kind, what = found.groups()
    accesses = report.of_block(space=space, kind=kind)
    look = _conflict if what == "bank_conflicts" else _sectors
    seen = look(exercise, text, case, accesses)
    if seen is None:
        return None
    said, line = seen
    return Clue(said, [line, *_that_set(exercise, text, line)])


def _that_set(exercise: Exercise, text: str, line: int) -> list[int]:
    """Lines that a student wrote and that decide where a line reads or writes."""
    if exercise.place is not None and goes_through(exercise, text, line):
        return lines_of_map(text, exercise.place)
    return setting(exercise, text, line)


# ------------------------------------------------------------------ banks


def _conflict(exercise: Exercise, text: str, case: Case, accesses: Iterable):
    worst: dict[int, tuple] = {}  # of each line
    for a in accesses:
        for warp, lanes in _meeting(a):
            if a.line not in worst or len(lanes) > len(worst[a.line][2]):
                worst[a.line] = a, warp, lanes
    told = []
    for a, warp, lanes in sorted(worst.values(), key=lambda one: -len(one[2])):
        indices = [int(a.indices[warp, lane]) for lane in lanes]
        verb = "read" if a.kind == "load" else "write"
        through = exercise.place is not None and goes_through(exercise, text, a.line)
        rows = _by_rows(exercise, text, case, a.array, indices) if through else None
        if rows:
            return f"In line {a.line}, {len(lanes)} lanes of a warp {verb} {rows}", a.line
        told.append((f"In line {a.line}, lanes {_some(lanes)} of a warp {verb} "
                     f"{_some([f'{a.array}[{n}]' for n in indices])} at once: these are multiples "
                     f"of {BANKS} words apart, so in the same bank.", a.line))  # fmt: skip
    return told[0] if told else None


def _meeting(a) -> Iterator[tuple[int, list[int]]]:
    """Warps of an access, and lanes that want different words of one bank at the same time."""
    size = max(a.bytes, WORD)
    units = a.addresses // size
    together = LANES * WORD // size
    for warp, first in itertools.product(range(len(units)), range(0, LANES, together)):
        lanes = first + np.flatnonzero(a.active[warp, first : first + together])
        banks: dict[int, dict[int, int]] = defaultdict(dict)
        for lane in lanes:
            unit = int(units[warp, lane])
            banks[unit % (_ALL_BANKS // size)].setdefault(unit, int(lane))
        for bank in banks.values():
            if len(bank) > 1:
                yield warp, sorted(bank.values())


def _by_rows(exercise: Exercise, text: str, case: Case, array: str, indices: list[int]):
    """The same by rows of a tile and the map of the answer."""
    a = exercise.place
    where = places(exercise, text, tuple(case.items()))
    if where is None or (np.sort(where) != np.arange(a.columns)).any():
        return None
    cells = [element(a, where, array, index) for index in indices]
    if None in cells:
        return None
    rows = [row for _, row, *_ in cells]
    columns = {column for *_, column, _ in cells}
    if len(set(rows)) < len(rows):
        return None
    its = [int(where[row % a.rows, column]) for _, row, column, _ in cells]
    if len(columns) > 1:
        which = _some([f"{a.column} {column} of row {row}" for _, row, column, _ in cells])
        return f"{which} at once. They are kept at places {_some(its)}, which are in the same bank."
    column = columns.pop()
    what = f"{a.column} {column} of rows {_some(rows)} at once."
    if len(set(its)) == 1:
        return (
            f"{what} These rows begin in the same bank, and the map keeps this {a.column} at the "
            f"same place in all of them, {its[0]}."
        )
    return f"{what} The map keeps it at places {_some(its)} of them, which are in the same bank."


def _some(what: Sequence) -> str:
    """All of a few, and the first ones and the last of many."""
    words = [str(one) for one in what]
    if len(words) <= _SHOWN:
        return listed(words)
    return f"{', '.join(words[: _SHOWN - 1])} ... {words[-1]}"


# ------------------------------------------------------------------ sectors


def _sectors(exercise: Exercise, text: str, case: Case, accesses: Iterable):
    wasted: dict[int, int] = defaultdict(int)
    worst: dict[int, tuple] = {}
    kept = list(accesses)
    for a in kept:
        for warp in np.flatnonzero(a.active.any(axis=1)):
            lanes = np.flatnonzero(a.active[warp])
            addresses = a.addresses[warp, lanes]
            sectors = len(np.unique(addresses // SECTOR_BYTES))
            different = len(np.unique(addresses))
            least = -(-different * a.bytes // SECTOR_BYTES)
            wasted[a.line] += sectors - least
            if a.line not in worst or sectors - least > worst[a.line][0]:
                worst[a.line] = (sectors - least, sectors, different, a, warp, lanes)
    if not wasted or max(wasted.values()) <= 0:
        return _too_often(exercise, case, kept)
    line = max(wasted, key=wasted.get)
    _, sectors, different, a, warp, lanes = worst[line]
    indices = a.indices[warp, lanes]
    _, first = np.unique(indices, return_index=True)
    names = _some([f"{a.array}[{indices[n]}]" for n in sorted(first)])
    verb = "load" if a.kind == "load" else "store"
    said = f"In line {line}, {len(lanes)} lanes of a warp {verb} {names} at once: "
    steps = set(np.diff(indices).tolist())
    if a.kind == "load" and different * _FEW <= len(lanes):
        return (
            f"{said}{different} different elements from {sectors} sectors, which hold "
            f"{sectors * SECTOR_BYTES // a.bytes}. What many lanes want at once can be copied to "
            "shared memory before, by lanes that read neighbours."
        ), line
    if len(steps) == 1 and sectors == len(lanes):
        apart = abs(steps.pop())
        return f"{said}they are {apart} elements apart, so each is in a sector of its own.", line
    hold = sectors * SECTOR_BYTES // a.bytes
    return f"{said}{different} elements in {sectors} sectors, which hold {hold}.", line


def _too_often(exercise: Exercise, case: Case, accesses: Sequence):
    """The array of which a block loads more sectors than the solution does, all of them full."""
    if not accesses:
        return None
    kind = accesses[0].kind
    right = solved(exercise, tuple(case.items())).of_block(space="global", kind=kind)
    least, own = _by_array(right), _by_array(accesses)
    more = {name: len(own[name]) - len(least.get(name, ())) for name in own}
    name = max(more, key=more.get)
    if more[name] <= 0:
        return None
    line = max((a.line for a in accesses if a.array == name), default=0)
    verb = "loads" if kind == "load" else "stores"
    return (
        f"The first block {verb} {len(own[name])} sectors of {name}, and "
        f"{len(least.get(name, ()))} would do: the rest brings nothing that is needed."
    ), line


def _by_array(accesses: Iterable) -> dict[str, list[int]]:
    """The sectors of each array that the warps of a block have asked for, one by one."""
    found: dict[str, list[int]] = defaultdict(list)
    for a in accesses:
        for warp in np.flatnonzero(a.active.any(axis=1)):
            asked = a.addresses[warp, a.active[warp]] // SECTOR_BYTES
            found[a.array] += np.unique(asked).tolist()
    return found
