"""The parities that an answer waits for at its mbarriers, worked out tile by tile from its text."""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...simulator.compile.source_text import line_of, mask
from ..spec import Exercise
from .whole_numbers import whole_number

_WAIT = re.compile(r"\bmbarrier_wait\s*\(\s*&\s*(\w+)\s*\[\s*([^\]]*)\]\s*,")
_SETS = re.compile(r"\b(?:int|unsigned|bool|auto)\s+(\w+)\s*=(?!=)([^;]+);")
_TILES = range(24)
_STAGES = (2, 3, 4)


class _Wait(NamedTuple):
    """A wait: at which array of mbarriers and which of them, for which parities, in which line.

    The parities are those of tiles 0, 1, 2 ... for each number of stages.
    """

    array: str
    place: str
    parities: Mapping[int, Sequence[int]]
    line: int


def of_the_parities(exercise: Exercise, text: str) -> tuple[str, list[int]] | None:
    """Waits that are for another phase than the solution's, and their lines; or None.

    Nothing is said where waits stand otherwise than in the solution, where a parity is no
    expression of the number of the tile, t, and STAGES, or where it is right from the second round
    on: the first may be left out by a condition.
    """
    own, right = _waits(text), _waits_of(exercise)
    if not own or not right:
        return None
    wanted = {wait.array: wait for wait in right}
    order = [wait.array for wait in right]
    names = [wait.array for wait in own]
    if names != [name for name in order if name in names]:
        return None
    if any(wait.place != wanted[wait.array].place for wait in own):
        return None
    told: dict[str, list[_Wait]] = {}
    for wait in own:
        if said := _said(wait, wanted[wait.array].parities):
            told.setdefault(said, []).append(wait)
    sentences = [
        f"The parity of the wait at {' and of that at '.join(w.array for w in waits)} {said}"
        for said, waits in told.items()
    ]
    return (" ".join(sentences), [w.line for ws in told.values() for w in ws]) if told else None


@functools.lru_cache(maxsize=8)
def _waits_of(exercise: Exercise) -> tuple[_Wait, ...]:
    return tuple(_waits(exercise.solution))


def _said(wait: _Wait, right: Mapping[int, Sequence[int]]) -> str:
    """What is wrong with its parity; empty if nothing is."""
    own = {s: wait.parities[s] for s in _STAGES}
    wrong = [(s, t) for s in _STAGES for t in _TILES if t >= s and own[s][t] != right[s][t]]
    if not wrong:
        return ""
    if len(wrong) == sum(len(_TILES) - s for s in _STAGES):
        return (
            "is the other one for every tile: it is that of the phase before or behind the "
            "one to wait for."
        )
    if all(own[s][t] == own[s][t % s] for s, t in wrong):
        return (
            "is always the same for a place, but each tile that a place gets is a phase of "
            "its own: parities take turns there."
        )
    if all(own[s][t] != own[s][t - 1] for s in _STAGES for t in _TILES[1:]):
        return (
            "changes with every tile, but the next phase of a place begins only with the "
            "next tile of the same place."
        )
    stages, tile = wrong[0]
    return (
        f"is the other one for tile {tile} if STAGES is {stages}: it has to change where "
        "place 0 comes again, and nowhere else."
    )


def _waits(text: str) -> list[_Wait]:
    """All waits of a text; none if one of their parities cannot be worked out."""
    code = mask(text)
    found = []
    for m in _WAIT.finditer(code):
        end = _closing(code, m.end())
        known = dict(_SETS.findall(code[: m.start()]))  # the last of a name, before the wait
        known.pop("t", None)
        parities = {
            s: [whole_number(code[m.end() : end], {"t": t, "STAGES": s}, known) for t in _TILES]
            for s in _STAGES
        }
        if any(value not in (0, 1) for its in parities.values() for value in its):
            return []
        found.append(_Wait(m[1], m[2].strip(), parities, line_of(code, m.start())))
    return found


def _closing(code: str, start: int) -> int:
    """Where the bracket is closed that is open at `start`."""
    depth = 1
    for at in range(start, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if not depth:
            return at
    return len(code)
