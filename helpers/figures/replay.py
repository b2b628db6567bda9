"""What a tiled matrix product did, phase by phase, read from its trace.

A block of such a kernel copies tiles to shared memory (load) and then reads them there (multiply),
again and again, and stores its results at the end. A trace holds addresses and no values; values
follow from it: what a thread stores in shared memory is what it loaded from global memory just
before, or else the zero that stands for an element past the edge.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from .events import Barriers, Block, TraceEvent, by_block
from .runs import SmallRun

Element = tuple[str, int]  # a global array's name and a flat index


class Held(NamedTuple):
    """A word in shared memory: its value, and the element of global memory that it is a copy of."""

    value: float
    source: Element | None


class Phase(NamedTuple):
    """One stretch of a block's work, and how things stand after it.

    Attributes:
        kind: "load" or "multiply".
        reads: global array → flat indices of the elements read, one for each read.
        shared: shared array → index → what it holds.
        fresh: shared array → indices that were stored in this phase.
        shared_reads: words read from shared memory.
        products: thread → pairs of words of shared memory that it multiplied, in order.
        partial: flat index of the result → its sum so far.
        touched: flat indices of the results to whose sums this phase added.
        stored: flat indices of the results that were written to global memory.
        barrier: line of the barrier at which the block waited just before, or None.
    """

    kind: str
    reads: dict[str, list[int]]
    shared: dict[str, dict[int, Held]]
    fresh: dict[str, set[int]]
    shared_reads: int
    products: dict[int, list[tuple[Element, Element]]]
    partial: dict[int, float]
    touched: set[int]
    stored: list[int]
    barrier: int | None


class BlockReplay(NamedTuple):
    """All phases of one block. `results` maps each thread to the results that it stores.

    `leaving` is the line of the barrier behind the last products, before results are stored.
    """

    block: Block
    threads: int
    phases: list[Phase]
    results: dict[int, list[int]]
    leaving: int | None


def replay(run: SmallRun) -> list[BlockReplay]:
    """The phases of every block of a tiled product, block after block.

    Args:
        run: of a kernel that multiplies two matrices through tiles in shared memory.

    Raises:
        ValueError: the kernel used no shared memory, so that there are no phases.
    """
    barriers = Barriers(run.report)
    threads = int(np.prod(run.report.block))
    blocks = []
    for block, events in by_block(run.report).items():
        if not any(event.space == "shared" for event in events):
            raise ValueError(f"{run.report.entry} copied nothing to shared memory.")
        blocks.append(_Replay(run, barriers).block(block, threads, events))
    return blocks


class _Replay:
    """The state of one block while its trace is gone through."""

    def __init__(self, run: SmallRun, barriers: Barriers):
        self.run, self.barriers = run, barriers
        self.shared: dict[str, dict[int, Held]] = defaultdict(dict)
        # thread → (line, element) of what it loaded and has not stored yet
        self.pending: dict[int, list[tuple[int, Element]]] = defaultdict(list)
        self.partial: dict[int, float] = {}

    def block(self, block: Block, threads: int, events: list[TraceEvent]) -> BlockReplay:
        results: dict[int, list[int]] = defaultdict(list)
        for event in events:
            if (event.space, event.kind) == ("global", "store"):
                for touch in event.touches:
                    results[touch.thread].append(touch.index)
        phases: list[Phase] = []
        before: list[TraceEvent] = []
        groups = _groups(events)
        for kind, group in groups:
            barrier = self.barriers.between(before, group)
            phases.append(self._phase(kind, group, results, barrier))
            before = [e for e in group if (e.space, e.kind) != ("global", "store")]
        ending = [e for e in groups[-1][1] if (e.space, e.kind) == ("global", "store")]
        leaving = self.barriers.between(before, ending)
        return BlockReplay(block, threads, phases, dict(results), leaving)

    def _phase(self, kind: str, events: list[TraceEvent], results, barrier: int | None) -> Phase:
        reads: dict[str, list[int]] = defaultdict(list)
        fresh: dict[str, set[int]] = defaultdict(set)
        operands: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        stored: list[int] = []
        shared_reads = 0
        for event in events:
            if event.space == "global" and event.kind == "load":
                self._load(event, reads)
            elif event.space == "global":
                stored += [touch.index for touch in event.touches]
            elif event.kind == "load":
                for thread, index in event.words:
                    operands[thread][event.array].append(index)
                shared_reads += len(event.words)
            else:
                self._store(event, fresh)
        products = {thread: _pairs(found) for thread, found in operands.items()}
        touched = self._add(products, results)
        return Phase(
            kind, dict(reads), {name: dict(held) for name, held in self.shared.items()},
            dict(fresh), shared_reads, products, dict(self.partial), touched, stored, barrier,
        )  # fmt: skip

    def _load(self, event: TraceEvent, reads: dict[str, list[int]]) -> None:
        for thread, index in event.words:
            reads[event.array].append(index)
            self.pending[thread].append((event.line, (event.array, index)))

    def _store(self, event: TraceEvent, fresh: dict[str, set[int]]) -> None:
        for thread, index in event.words:
            source = self._take(thread, event.line)
            value = 0.0
            if source is not None:
                value = float(self.run.arrays[source[0]].flat[source[1]])
            self.shared[event.array][index] = Held(value, source)
            fresh[event.array].add(index)

    def _take(self, thread: int, line: int) -> Element | None:
        """The element that a thread stores: loaded in the same line, or else the first one left."""
        waiting = self.pending[thread]
        same = [entry for entry in waiting if entry[0] == line]
        # A load further down that moved up belongs to a store that is still to come.
        earlier = [entry for entry in waiting if entry[0] <= line]
        for entry in same or earlier:
            waiting.remove(entry)
            return entry[1]
        return None

    def _add(self, products, results: dict[int, list[int]]) -> set[int]:
        touched = set()
        for thread, pairs in products.items():
            at = self._result(pairs, results.get(thread, []))
            if at is None:
                continue
            for a, b in pairs:
                product = self._value(a) * self._value(b)
                self.partial[at] = self.partial.get(at, 0.0) + product
            touched.add(at)
        return touched

    def _value(self, word: Element) -> float:
        held = self.shared[word[0]].get(word[1])
        return float("nan") if held is None else held.value

    def _result(self, pairs, mine: list[int]) -> int | None:
        """Which of a thread's results its products add to: the one of the second factor's column.

        A factor is known by the element that it was copied from, and so is its column of the
        result.
        """
        if len(mine) < 2:
            return mine[0] if mine else None
        columns = self.run.arrays["S"].shape[1]
        for pair in pairs:
            for word in pair:
                held = self.shared[word[0]].get(word[1])
                if held is None or held.source is None or held.source[0] != "K":
                    continue
                column = held.source[1] // self.run.sizes["d"]
                for at in mine:
                    if at % columns == column:
                        return at
        return None


def _groups(events: list[TraceEvent]) -> list[tuple[str, list[TraceEvent]]]:
    """Events in runs of one kind; results are stored at the end of a multiply phase."""
    groups: list[tuple[str, list[TraceEvent]]] = []
    for event in events:
        if event.space == "shared" and event.kind == "load":
            kind = "multiply"
        elif event.space == "global" and event.kind == "store":
            kind = groups[-1][0] if groups else "multiply"
        else:
            kind = "load"
        if groups and groups[-1][0] == kind:
            groups[-1][1].append(event)
        else:
            groups.append((kind, [event]))
    return groups


def _pairs(operands: dict[str, list[int]]) -> list[tuple[Element, Element]]:
    """The factors of each product: the n-th word of one shared array with that of the other."""
    if len(operands) != 2:
        return []
    (a, first), (b, second) = sorted(operands.items(), key=lambda item: item[0], reverse=True)
    return [((a, i), (b, j)) for i, j in zip(first, second, strict=False)]
