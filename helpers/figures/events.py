"""The trace of a run, block by block and warp by warp, global and shared memory alike.

An event is what a warp, or all threads of a block, did with one instruction; see
`Report.accesses` for the records that it is made of.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from helpers.simulator.limits import LANES, SECTOR_BYTES, WORD
from helpers.simulator.observe.access_trace import AccessRecord, BlockAccess
from helpers.simulator.observe.report import Report

Block = tuple[int, int, int]


class Touch(NamedTuple):
    """What one thread touched: the flat index of its first element and its byte address."""

    thread: int
    index: int
    address: int


class TraceEvent(NamedTuple):
    """One instruction, as far as one block executed it. `kind` is load, store, copy or atomic."""

    order: int
    line: int
    kind: str
    space: str
    array: str
    bytes: int
    touches: tuple[Touch, ...]

    @property
    def words(self) -> list[tuple[int, int]]:
        """(thread, flat index) of every element touched, wide accesses in words of four bytes."""
        each = range(max(1, self.bytes // WORD))
        return [(touch.thread, touch.index + word) for touch in self.touches for word in each]


def by_block(report: Report) -> dict[Block, list[TraceEvent]]:
    """The events of every block, in order; blocks by (x, y, z) as they come first in the trace.

    `Touch.thread` is the thread's number in its block, x running fastest.
    """
    found: dict[Block, dict[tuple, list[Touch]]] = {}
    for a in report.iterate():
        key = (a.order, a.line, a.kind, a.space, a.array, a.bytes)
        touch = Touch(a.warp * LANES + a.lane, a.index, a.address)
        found.setdefault(a.block, {}).setdefault(key, []).append(touch)
    return {
        block: [TraceEvent(*key, tuple(touches)) for key, touches in events.items()]
        for block, events in found.items()
    }


def owners(report: Report, array: str) -> dict[int, AccessRecord]:
    """The store behind each element of `array`, by flat index; of several the last one.

    Raises:
        ValueError: the kernel stored nothing in an array of this name.
    """
    stores = report.iterate(kind="store", space="global")
    found = {store.index: store for store in stores if store.array == array}
    if not found:
        raise ValueError(f"{report.entry} stored nothing in {array}.")
    return found


class WarpAccess(NamedTuple):
    """One instruction of one warp, lane by lane.

    Attributes:
        order: its place in the trace.
        array, kind, space, line: which, load or store, global or shared, and where in the source.
        bytes: how much each lane moves.
        addresses: int64 (32,), byte addresses; 0 for lanes that do not take part.
        indices: intp (32,), flat indices of the first element; likewise.
        active: bool (32,), the lanes that take part.
    """

    order: int
    array: str
    kind: str
    space: str
    line: int
    bytes: int
    addresses: np.ndarray
    indices: np.ndarray
    active: np.ndarray

    @property
    def is_load(self) -> bool:
        """Whether the lanes read."""
        return self.kind == "load"

    @property
    def lanes(self) -> list[int]:
        """The lanes that take part."""
        return np.flatnonzero(self.active).tolist()

    def words(self, lane: int) -> range:
        """The words of four bytes that a lane touches, as byte address divided by 4."""
        first = int(self.addresses[lane])
        return range(first // WORD, (first + self.bytes - 1) // WORD + 1)

    @property
    def sectors(self) -> list[int]:
        """The 32-byte sectors touched, as byte address divided by 32, in order."""
        per = SECTOR_BYTES // WORD
        return sorted({word // per for lane in self.lanes for word in self.words(lane)})

    @property
    def unit(self) -> int:
        """Bytes of an element of the array; wider accesses move several."""
        return min(self.bytes, WORD)

    @property
    def elements(self) -> list[int]:
        """Flat indices of the elements touched, in order."""
        each = range(self.bytes // self.unit)
        return sorted({int(first) + k for first in self.indices[self.active] for k in each})

    @property
    def start(self) -> int:
        """The byte address of the array's element 0."""
        lane = self.lanes[0]
        return int(self.addresses[lane]) - int(self.indices[lane]) * self.unit


def warp_accesses(
    report: Report,
    array: str | None = None,
    *,
    line: int | None = None,
    kind: str | None = None,
    space: str | None = None,
    block: tuple[int, ...] | int = 0,
    warp: int = 0,
    most: int | None = None,
) -> list[WarpAccess]:
    """The accesses of one warp, in order.

    Args:
        report: of a counted run.
        array: name of an array or of a shared variable; any unless given.
        line, kind, space: which accesses count, as for `Report.accesses`.
        block: (x, y, z) of the block, or its x.
        warp: number of the warp in the block.
        most: stop after so many.

    Raises:
        SimulatorError: the report has no trace.
    """
    found: list[WarpAccess] = []
    which = {"warp": warp, "kind": kind, "space": space, "line": line}
    for a in report.of_block(block_place(block), **which):
        if most is not None and len(found) >= most:
            break
        if array in (None, a.array):
            found.append(of_warp(a, warp))
    return found


def warp_access(report: Report, array: str | None = None, *, step: int = 0, **which) -> WarpAccess:
    """One access of one warp: the one with number `step`, counted from 0.

    Args:
        report, array, **which: as for `warp_accesses`.
        step: which of the accesses that fit.

    Raises:
        ValueError: fewer accesses fit.
        SimulatorError: the report has no trace.
    """
    found = warp_accesses(report, array, most=step + 1, **which) if step >= 0 else []
    if step >= len(found) or not found:
        words = [str(which[name]) for name in ("space", "kind") if which.get(name)]
        of = f" of {array}" if array else ""
        at = f" in line {which['line']}" if which.get("line") is not None else ""
        raise ValueError(
            f"Warp {which.get('warp', 0)} of block {which.get('block', 0)} of {report.entry} makes "
            f"{len(found)} {' '.join([*words, 'accesses'])}{of}{at}; there is no number {step}, "
            "counted from 0."
        )
    return found[step]


def block_place(block: tuple[int, ...] | int) -> Block:
    """(x, y, z) of a block that is given so, or as the first of them."""
    wanted = block if isinstance(block, tuple) else (block,)
    return (*wanted, 0, 0)[:3]


def of_warp(access: BlockAccess, warp: int) -> WarpAccess:
    """What one warp had in an access of its block."""
    a, active = access, access.active[warp]
    return WarpAccess(
        a.order, a.array, a.kind, a.space, a.line, a.bytes,
        np.where(active, a.addresses[warp], 0),
        np.where(active, a.indices[warp], 0).astype(np.intp), active,
    )  # fmt: skip


class Barriers:
    """Where a run's threads waited for each other.

    Of a trace of accesses: the report says how often each line was waited at, and the lines of the
    accesses before and after tell whether that was in between. When each warp came to a barrier is
    in `Report.arrivals`.
    """

    def __init__(self, report: Report):
        warps = -(-int(np.prod(report.block)) // LANES) * int(np.prod(report.grid))
        # line → how often each warp came by
        self._turns = {
            line: counts["barriers"] / warps
            for line, counts in report.by_line.items()
            if counts["barriers"]
        }
        self._lines = sorted({access.line for access in report.iterate()})

    def between(self, before: Iterable[TraceEvent], after: Iterable[TraceEvent]) -> int | None:
        """The line of a barrier that a block passed between two groups of events, or None."""
        last = max((event.line for event in before), default=None)
        first = min((event.line for event in after), default=None)
        if last is None or first is None:
            return None
        if last < first:
            return next((line for line in self._turns if last <= line <= first), None)
        # Back to the head of a loop: a barrier below its last access, or above its first one.
        below = min((line for line in self._lines if line > last), default=math.inf)
        above = max((line for line in self._lines if line < first), default=-math.inf)
        for line, turns in self._turns.items():
            if turns > 1 and (last <= line < below or above < line <= first):
                return line
        return None
