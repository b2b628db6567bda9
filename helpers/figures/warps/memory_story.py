"""What each read of shared memory got, and which store it came from: a trace told with values.

A trace says who touched what, and in which order. What a store puts there follows from what its
thread has read before; a `Rule` knows how, kernel by kernel. Two runs of one kernel are compared,
with and without a barrier: where a read gets another store's value, a race has struck.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from helpers.simulator.observe.report import Report

from ..events import LANES, WarpAccess, of_warp

Who = tuple[int, int]  # a warp, and the number of its access
Place = tuple[str, int]  # a shared array, and the index in it


class Rule(Protocol):
    """What threads keep in registers, as far as it decides what they store."""

    def loads(self, thread: int, line: int, value: float) -> None:
        """A thread reads a value of global memory."""

    def reads(self, thread: int, line: int, value: float) -> None:
        """A thread reads a value of shared memory."""

    def stored(self, thread: int, line: int) -> float:
        """What a thread puts into shared memory now."""


class Read(NamedTuple):
    """What a lane found at a place: the value, and the store that it is from (None: nobody's)."""

    place: Place
    value: float
    store: Who | None


class Story(NamedTuple):
    """A run: the accesses of each warp in order, and what was found and stored by each.

    `reads` and `stores` are by who and lane; `arrivals` says of each warp how many accesses it had
    made when it came to each barrier, with the barrier's line and the order of the last access.
    """

    accesses: dict[int, list[WarpAccess]]
    reads: dict[Who, dict[int, Read]]
    stores: dict[Who, dict[int, float]]
    arrivals: dict[int, list[tuple[int, int, float]]]

    def access(self, who: Who) -> WarpAccess:
        return self.accesses[who[0]][who[1]]


class Hazard(NamedTuple):
    """A read that got something else than it does with all barriers.

    Attributes:
        reader, lane: which read.
        got, right: what it found, and what it finds with all barriers.
        early: the store that it should have waited for comes only later; else a store that should
            have waited for this read came before it.
    """

    reader: Who
    lane: int
    got: Read
    right: Read
    early: bool

    @property
    def writer(self) -> Who:
        """The store of the pair: the one that comes too late, or too soon."""
        found = self.right.store if self.early else self.got.store
        assert found is not None  # a read that is right only while nothing is stored is no read
        return found


def tell(report: Report, arrays: dict[str, np.ndarray], rule: Rule) -> Story:
    """The story of block 0 of a run.

    Args:
        report: of a counted run.
        arrays: global arrays that the kernel reads, by name.
        rule: of the kernel; it is used up.
    """
    accesses: dict[int, list[WarpAccess]] = defaultdict(list)
    story = Story(accesses, {}, {}, defaultdict(list))
    memory: dict[Place, tuple[float, Who]] = {}
    waiting = report.arrivals()
    for access in report.of_block():
        while waiting and waiting[0].order < access.order:
            _arrive(story, waiting.pop(0))
        for warp in np.flatnonzero(access.active.any(axis=-1)).tolist():
            one = of_warp(access, warp)
            who = warp, len(accesses[warp])
            accesses[warp].append(one)
            if one.space == "shared":
                _touch(story, memory, who, one, rule)
            elif one.kind == "load":
                for lane in one.lanes:
                    value = float(arrays[one.array].flat[one.indices[lane]])
                    rule.loads(warp * LANES + lane, one.line, value)
    for arrival in waiting:
        _arrive(story, arrival)
    return story


def _arrive(story: Story, arrival) -> None:
    for warp in arrival.warps:
        made = len(story.accesses[warp])
        story.arrivals[warp].append((made, arrival.line, arrival.order + 0.5))


def _touch(story: Story, memory: dict, who: Who, one: WarpAccess, rule: Rule) -> None:
    thread = who[0] * LANES
    places = {lane: (one.array, int(one.indices[lane])) for lane in one.lanes}
    if one.is_load:
        found = {}
        for lane, place in places.items():
            value, store = memory.get(place, (math.nan, None))
            found[lane] = Read(place, value, store)
            rule.reads(thread + lane, one.line, value)
        story.reads[who] = found
        return
    values = {lane: rule.stored(thread + lane, one.line) for lane in places}
    story.stores[who] = values
    for lane, place in places.items():
        memory[place] = values[lane], who


def hazards(story: Story, right: Story) -> list[Hazard]:
    """Where reads of a run got what they do not get in the run with all barriers, in order.

    Without a barrier the compiler may keep in a register what a thread has just stored, so a read
    can be missing; each that is there is compared with the same one of the other run.

    Raises:
        ValueError: there is none.
    """
    wanted = {key: read for key, _, read in _named(right)}
    mine = {name: who for who, name in _store_names(story).items()}
    theirs = _store_names(right)
    names = _store_names(story)
    found = []
    for key, who, got in _named(story):
        if key not in wanted:
            raise ValueError(f"With all barriers no read is like access {who[1]} of warp {who[0]}.")
        meant = wanted[key]
        if meant.store is None:
            continue
        name = theirs[meant.store]
        if got.store is not None and names[got.store] == name:
            continue
        here = meant._replace(store=mine[name])
        early = story.access(mine[name]).order > story.access(who).order
        found.append(Hazard(who, key[2], got, here, early))
    return sorted(found, key=lambda h: (story.access(h.reader).order, h.reader, h.lane))


def _store_names(story: Story) -> dict[Who, tuple[int, int]]:
    """What a store is called in any run: its warp, and its number among the warp's stores."""
    names, count = {}, defaultdict(int)
    for who in sorted(story.stores):
        names[who] = who[0], count[who[0]]
        count[who[0]] += 1
    return names


def _named(story: Story) -> Iterator[tuple[tuple, Who, Read]]:
    """Each read with what it is called in any run: (warp, line, lane, place, stores before)."""
    for warp, accesses in story.accesses.items():
        stores = 0
        for number, access in enumerate(accesses):
            who = warp, number
            stores += who in story.stores
            for lane, read in story.reads.get(who, {}).items():
                yield (warp, access.line, lane, read.place, stores), who, read
