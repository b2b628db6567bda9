"""A block reduces a row of scores: parts in registers, then a tree, from `04_reduction.cu`'s trace.

A trace says who touched what and in which order; what the kernel does with the values (a maximum
first, then a sum of exponentials) is known, and the values follow.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..canvas import Frame, told
from ..events import Barriers, TraceEvent, by_block
from ..runs import SmallRun, launch
from ..tree import Level, TreeState, picture, text_of

ROW = (4, 1, 6, 2, 0, 9, 3, 7, 5, 2, 8, 1, 3, 6, 2, 4)
MOST_ELEMENTS, MOST_THREADS = 32, 16


def run_reduction(row: Sequence[float] = ROW, BLOCK_SIZE: int = 4) -> SmallRun:
    """Run the softmax of `04_reduction.cu` on one row.

    Args:
        row: scores, at least one.
        BLOCK_SIZE: threads of the block, a power of two.

    Raises:
        ValueError: the row is empty, or BLOCK_SIZE is no power of two.
    """
    scores = np.array([list(row)], np.float32)
    if not scores.size or BLOCK_SIZE < 1 or BLOCK_SIZE & (BLOCK_SIZE - 1):
        raise ValueError(
            f"A reduction takes a row of scores and a power of two of threads, not {scores.size} "
            f"scores and {BLOCK_SIZE} threads."
        )
    return launch(
        "04_reduction.cu", "softmax", 1, BLOCK_SIZE, {"S": scores, "P": np.zeros_like(scores)},
        {"N": scores.size}, BLOCK_SIZE=BLOCK_SIZE,
    )  # fmt: skip


def tree_reduction(
    row: Sequence[float] = ROW, BLOCK_SIZE: int = 4, *, whole: bool = False
) -> list[Frame]:
    """How the threads of a block find the maximum of a row, and with `whole` its softmax.

    Args:
        row: up to 32 scores.
        BLOCK_SIZE: threads, a power of two, up to 16.
        whole: go on with the sum of exponentials and the division.

    Raises:
        ValueError: there are too many scores or threads to show.
    """
    if len(row) > MOST_ELEMENTS or BLOCK_SIZE > MOST_THREADS:
        raise ValueError(
            f"tree_reduction shows up to {MOST_ELEMENTS} scores and {MOST_THREADS} threads, not "
            f"{len(row)} and {BLOCK_SIZE}."
        )
    return TreeFilm(run_reduction(row, BLOCK_SIZE)).frames(whole)


class Stage(NamedTuple):
    """A stretch of the block's work. `kind` is one of

    local (read elements into registers), share (store registers in shared memory), level (of the
    tree), read (of its root), write (of the results).
    """

    kind: str
    events: list[TraceEvent]
    barrier: int | None  # line of the barrier before it


def stages(run: SmallRun) -> list[Stage]:
    """The trace of a reduction, cut where the work changes."""
    cut: list[tuple[str, list[TraceEvent]]] = []
    for event in next(iter(by_block(run.report).values())):
        kind, mine = cut[-1] if cut else ("", [])
        if event.space == "global" and event.kind == "load":
            same, new = kind in ("local", "write"), "local"
        elif event.space == "global":
            # Reads that lead to a store of results belong to writing, not to a reduction.
            if kind == "local":
                cut[-1] = ("write", mine)
            same, new = kind in ("local", "write"), "write"
        elif event.kind == "load":
            same, new = kind == "read", "read"
        else:
            # Words that were read and combined are stored: what began as reading is a level.
            if kind == "read":
                cut[-1] = ("level", mine)
            same, new = kind == "read", "share"
        if same:
            mine.append(event)
        else:
            cut.append((new, [event]))
    barriers = Barriers(run.report)
    found: list[Stage] = []
    for kind, events in cut:
        before = found[-1].events if found else []
        found.append(Stage(kind, events, barriers.between(before, events)))
    return found


class TreeFilm:
    """A row that is reduced, stage by stage: registers, and words of shared memory in a tree."""

    def __init__(self, run: SmallRun):
        self.run = run
        self.N, self.threads = run.sizes["N"], run.defines["BLOCK_SIZE"]
        self.S = [float(v) for v in run.arrays["S"].reshape(-1)]
        self.stages = stages(run)
        self.registers: dict[int, float] = {}
        self.words: dict[int, float] = {}
        self.levels: list[Level] = []
        self.seen: set[int] = set()
        self.maximum: float | None = None
        self.sum: float | None = None
        self.owner = self._owners()

    def _owners(self) -> dict[int, int]:
        """Which thread reads each element; where several do, the one that reads the fewest."""
        readers: dict[int, list[int]] = {}
        once: dict[int, int] = {}
        for number, stage in enumerate(self.stages):
            touches = [t for event in stage.events if event.array == "S" for t in event.touches]
            for touch in touches:
                readers.setdefault(touch.index, []).append(touch.thread)
                if number and stage.kind in ("local", "write"):
                    once.setdefault(touch.index, touch.thread)
        return {index: once.get(index, min(found)) for index, found in readers.items()}

    # ---------------------------------------------------------------- the steps

    def frames(self, whole: bool) -> list[Frame]:
        frames: list[Frame] = []
        trees = []  # the steps in which one is whole
        before: Stage | None = None
        for stage in self.stages:
            if stage.kind == "read":
                trees.append(len(frames) - 1)
            if stage.barrier is not None and before is not None:
                frames.append(self._barrier(before, stage))
            frames += getattr(self, f"_{stage.kind}")(stage)
            if stage.kind == "read" and not whole:
                break
            before = stage
        return told(frames, *trees)

    def _barrier(self, before: Stage, stage: Stage) -> Frame:
        """All threads at the barrier between two stages."""
        done = {
            "share": f"until all have stored their {self._name()}",
            "level": "until the level is whole: they are about to read what others stored",
            "read": "until all have read s_data[0], which the block is about to use again",
        }.get(before.kind, "until all are there")
        caption = (
            f"A barrier: __syncthreads() in line {stage.barrier} holds all {self.threads} threads "
            f"{done}."
        )
        read = before.kind == "read"
        name = ("row_max" if self.sum is None else "row_sum") if read else ""
        return self._frame(caption, name=name, barrier=stage.barrier, read=read)

    def _local(self, stage: Stage) -> list[Frame]:
        summing = self.maximum is not None
        # A thread without an element of its own keeps a sum of nothing.
        self.registers = dict.fromkeys(range(self.threads), 0.0) if summing else {}
        self.seen = set()
        self.levels = [(dict(self.words), None)] if self.words else []
        frames = []
        for turn, reads in enumerate(_turns(stage.events)):
            for thread, index in reads.items():
                value = self._term(index) if summing else self.S[index]
                old = self.registers.get(thread, 0.0 if summing else -math.inf)
                self.registers[thread] = old + value if summing else max(old, value)
            self.seen |= set(reads.values())
            line = stage.events[min(turn, len(stage.events) - 1)].line
            caption = self._local_words(stage, reads, turn, summing, line)
            frames.append(self._frame(caption, [(i, t) for t, i in reads.items()]))
        return frames

    def _local_words(self, stage, reads, turn, summing, line) -> str:
        elements = sorted(set(reads.values()))
        if len(elements) == 1 and len(reads) > 1:
            text = (
                f"All {len(reads)} threads start from S[{elements[0]}] (line {line}), so that even "
                "a thread without an element of its own holds a score of the row."
            )
        else:
            what = "adds its exponential to" if summing else "keeps the larger of it and"
            text = (
                f"{self._who(len(reads))} one element (line {line}), here {_span(elements)}, and "
                f"{what} its own {self._name()}: a register, no shared memory."
            )
        if turn == 0 and summing and stage.barrier is None:
            text += " No barrier came before."
        return text

    def _all(self, readers: int) -> str:
        if readers == 1:
            return "1 thread reads"
        return f"{'All ' * (readers == self.threads)}{readers} threads read"

    def _who(self, readers: int) -> str:
        if readers == self.threads:
            return "Each thread reads"
        return "1 thread reads" if readers == 1 else f"{readers} threads each read"

    def _share(self, stage: Stage) -> list[Frame]:
        came = {touch.index: [touch.thread] for e in stage.events for touch in e.touches}
        for word, (thread,) in came.items():
            self.words[word] = self.registers.get(thread, math.nan)
        self.levels = [(dict(self.words), came)]
        line = stage.events[0].line
        caption = (
            f"Each thread stores its {self._name()} in s_data (line {line}): {len(came)} partial "
            "results, which other threads are about to read."
        )
        return [self._frame(caption, current=True)]

    def _level(self, stage: Stage) -> list[Frame]:
        summing = self.maximum is not None
        before = dict(self.words)
        loads: dict[int, list[int]] = {}
        came: dict[int, list[int]] = {}
        for event in stage.events:
            for touch in event.touches:
                if event.kind == "load":
                    loads.setdefault(touch.thread, []).append(touch.index)
                    continue
                mine = list(dict.fromkeys([*loads.get(touch.thread, []), touch.index]))
                values = [before.get(i, math.nan) for i in mine]
                self.words[touch.index] = sum(values) if summing else max(values)
                came[touch.index] = mine
        self.levels.append((dict(self.words), came))
        example = came.get(0) or next(iter(came.values()))
        pair = " and ".join(f"s_data[{i}]" for i in sorted(example))
        active = "1 thread joins" if len(came) == 1 else f"{len(came)} threads each join"
        caption = (
            f"A level of the tree (line {stage.events[0].line}): {active} two words, "
            f"{'such as ' * (len(came) > 1)}{pair}; "
            f"the {'sum' if summing else 'larger one'} stays.{self._waits(stage)}"
        )
        return [self._frame(caption, current=True)]

    def _waits(self, stage: Stage) -> str:
        if stage.barrier is None:
            return " No barrier came before: a word may be read before it is stored."
        return ""

    def _read(self, stage: Stage) -> list[Frame]:
        reads = {t.thread: t.index for event in stage.events for t in event.touches}
        root = self.words.get(0, math.nan)
        if self.maximum is None:
            self.maximum, name = root, "row_max"
        else:
            self.sum, name = root, "row_sum"
        self.registers = {thread: self.words.get(i, math.nan) for thread, i in reads.items()}
        line = stage.events[0].line
        caption = (
            f"{self._all(len(reads))} s_data[0] (line {line}): {name} = {text_of(root)}."
            f"{self._waits(stage)}"
        )
        return [self._frame(caption, name=name, root=True)]

    def _write(self, stage: Stage) -> list[Frame]:
        written = [t.index for e in stage.events if e.kind == "store" for t in e.touches]
        P = [float(v) for v in self.run.arrays["P"].reshape(-1)]
        self.seen = set(written)
        line = stage.events[-1].line
        caption = (
            f"The threads compute exp(S − {text_of(self.maximum)}) / {text_of(self.sum)} for their "
            f"elements and store them (line {line}): {len(written)} elements of P, which add up "
            f"to {sum(P[i] for i in set(written)):.3f}."
        )
        return [self._frame(caption, elements=P, title="P[row]", name="row_sum")]

    def _term(self, index: int) -> float:
        return math.exp(self.S[index] - self.maximum)

    def _name(self) -> str:
        return "local_max" if self.maximum is None else "local_sum"

    def _frame(
        self, caption: str, reading=(), *, current=False, name="", root=False, elements=None,
        title="", barrier=None, read=False,
    ) -> Frame:  # fmt: skip
        place = "global memory"
        if elements is None:
            elements, title = self.S, "S[row]"
            if self.maximum is not None and name != "row_max":
                elements = [self._term(i) for i in range(self.N)]
                title = f"exp(S[row] − {text_of(self.maximum)})"
                place = "computed from global memory"
        state = TreeState(
            elements, title, place, self.owner, list(reading), set(self.seen),
            dict(self.registers), name or self._name(), self.threads, list(self.levels), current,
            root, barrier, "registers" if read else "tree",
        )  # fmt: skip
        return picture(state).frame(caption)


def _turns(events: list[TraceEvent]) -> list[dict[int, int]]:
    """The n-th read of every thread, for n = 0, 1, ...: thread → element."""
    reads: dict[int, list[int]] = {}
    for event in events:
        for touch in event.touches:
            reads.setdefault(touch.thread, []).append(touch.index)
    longest = max(map(len, reads.values()), default=0)
    return [
        {thread: mine[turn] for thread, mine in sorted(reads.items()) if turn < len(mine)}
        for turn in range(longest)
    ]


def _span(elements: list[int]) -> str:
    first, last = elements[0], elements[-1]
    if len(elements) > 1 and elements == list(range(first, last + 1)):
        return f"S[{first}] to S[{last}]"
    return ", ".join(f"S[{i}]" for i in elements)
