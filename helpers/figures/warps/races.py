"""What a barrier is for: runs of the chapters' kernels with one taken out, in several orders."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..canvas import Canvas, counted, number
from ..products import operands
from ..runs import SmallRun, launch
from .memory_story import Hazard, Rule, Story, hazards, tell
from .timeline import Act, Excerpt, Timeline

# In words, what the simulator calls a schedule.
ORDERS = {
    "all in step": "lockstep",
    "first warp ahead": "warps",
    "last warp ahead": "warps_reversed",
}
_EDGE, _ROUNDS = 8, 2  # a tile of 8 × 8 threads is two warps
_SCORES = 128  # of the row, and threads
_SMALLER = 16  # scores are divided by it where exponentials are shown
_LATE = 100  # where the largest score lies: in the last warp's part


class _Copies(Rule):
    """Tiles: a thread stores what it has loaded in the same line."""

    def __init__(self):
        self.loaded: dict[tuple[int, int], float] = {}

    def loads(self, thread: int, line: int, value: float) -> None:
        self.loaded[thread, line] = value

    def reads(self, thread: int, line: int, value: float) -> None:
        """Products are of no consequence for what is stored."""

    def stored(self, thread: int, line: int) -> float:
        return self.loaded.pop((thread, line), 0.0)


class _Softmax(Rule):
    """A thread stores the largest of what it has read; after the maximum, its sum.

    What a second tree makes of the sums is not told.
    """

    def __init__(self, root: int):
        self.root = root  # the line that reads the maximum
        self.found: dict[int, list[float]] = defaultdict(list)
        self.maximum: dict[int, float] = {}
        self.sum: dict[int, float] = defaultdict(float)

    def loads(self, thread: int, line: int, value: float) -> None:
        if thread in self.maximum:
            self.sum[thread] += math.exp(value - self.maximum[thread])
        else:
            self.found[thread].append(value)

    def reads(self, thread: int, line: int, value: float) -> None:
        if line == self.root:
            self.maximum[thread] = value
        self.found[thread].append(value)

    def stored(self, thread: int, line: int) -> float:
        if thread in self.maximum:
            return self.sum[thread]
        # fmaxf of a number and NaN is the number.
        values = [value for value in self.found[thread] if not math.isnan(value)]
        largest = max(values, default=math.nan)
        self.found[thread] = [largest]  # its own word, which it may have kept in a register
        return largest


class RaceCase(NamedTuple):
    """A kernel whose barriers can be taken out.

    Attributes:
        run: runs it without a line, in a schedule, with the sanitizer.
        rule: makes its rule.
        inputs: the arrays that it reads.
        shown: what the picture shows.
        place: the name of a place in shared memory.
        outcome: in words, what the run has come to.
    """

    run: Callable[[int | None, str], SmallRun]
    rule: Callable[[], Rule]
    inputs: tuple[str, ...]
    shown: Excerpt
    place: Callable[[str, int], str]
    outcome: Callable[[SmallRun, SmallRun, Story, Story], str]


def tiling_race(without: int | None = None, order: str = "first warp ahead") -> Canvas:
    """Two warps of the tiled product, with its barriers or without one of them.

    Args:
        without: the line of the barrier that is taken out.
        order: one of `ORDERS`.

    Raises:
        ValueError: there is no barrier in that line, or no such order.
    """
    return _picture(tiling_case(), without, order)


def tree_race(without: int | None = None, order: str = "first warp ahead") -> Canvas:
    """The warps of the reduction up to its maximum; see `tiling_race`."""
    return _picture(tree_case(), without, order)


def reuse_race(without: int | None = None, order: str = "first warp ahead") -> Canvas:
    """The same, up to the sums that come into the words of the maxima; see `tiling_race`."""
    return _picture(tree_case(reuse=True), without, order)


def stories(
    case: RaceCase, without: int | None, order: str
) -> tuple[Story, Story, SmallRun, SmallRun]:
    """A run and one with all barriers, told: (story, right story, run, right run)."""
    right = case.run(None, "lockstep")
    run = case.run(without, ORDERS[order])
    told = [tell(r.report, {name: r.arrays[name] for name in case.inputs}, case.rule())
            for r in (run, right)]  # fmt: skip
    return told[0], told[1], run, right


def _picture(case: RaceCase, without: int | None, order: str) -> Canvas:
    if order not in ORDERS:
        raise ValueError(f"order is one of {', '.join(ORDERS)}, not {order!r}.")
    story, right, run, good_run = stories(case, without, order)
    lines = {line for _, line, _ in right.arrivals[0]}
    if without is not None and without not in lines:
        raise ValueError(f"line {without} has no barrier; lines {sorted(lines)} have.")
    found = [h for h in hazards(story, right) if _counts(case, story, h)]
    wrong = [h for h in found if h.got.value != h.right.value]  # NaN among them
    timeline = Timeline(story, right, case.shown, without, found)
    title = "All barriers" if without is None else f"Without the barrier in line {without}"
    words = [_sentence(case, story, h) for h in _examples(timeline, wrong)]
    findings = [f for f in run.report.findings if f.kind == "race"]
    if wrong:
        verdict = f"A race has struck: {counted(len(wrong), 'read')} got a wrong value"
        words.append(case.outcome(run, good_run, story, right))
    elif findings:
        verdict = "In this order no read goes wrong, by luck"
    else:
        verdict = "Every read gets what was meant for it"
    pairs = sorted({(min(f.lines), max(f.lines)) for f in findings})
    said = ", ".join(f"{a} with {'itself' if a == b else b}" for a, b in pairs)
    races = f"a race of line {said}" if said else "no race"
    words.append(f"The sanitizer, whatever the order: {races}.")
    label = f"{title}, {order}: {verdict}."
    return timeline.draw(f"{title} · {order}", verdict, not findings, words, label)


def _counts(case: RaceCase, story: Story, hazard: Hazard) -> bool:
    """Whether both accesses of a pair lie in the part of the kernel that is shown."""
    return all(story.access(w).line <= case.shown.last for w in (hazard.reader, hazard.writer))


def _examples(timeline: Timeline, found: Sequence[Hazard]) -> list[Hazard]:
    """One or two of the pairs that are drawn: the first, and the first with a plausible value."""
    inside = [h for h in found if h.reader[0] in timeline.shown.warps
              and h.writer[0] in timeline.shown.warps]  # fmt: skip
    plausible = [h for h in inside if not math.isnan(h.got.value)]
    return list(dict.fromkeys([*inside[:1], *plausible[:1]]))


def _sentence(case: RaceCase, story: Story, h: Hazard) -> str:
    place = case.place(*h.got.place)
    got = "NaN, as nothing is there yet" if math.isnan(h.got.value) else _value(h.got.value)
    reader, writer = h.reader[0], h.writer[0]
    line, other = story.access(h.reader).line, story.access(h.writer).line
    right = _value(h.right.value)
    if h.early:
        return (
            f"Warp {reader} reads {place} in line {line}: {got}. Only later warp {writer} stores "
            f"{right} there, in line {other}."
        )
    return (
        f"Warp {writer} stores {got} into {place} in line {other}. Only then warp {reader} reads "
        f"it in line {line}: it needs {right}."
    )


# ---------------------------------------------------------------- chapter 03


def tiling_case() -> RaceCase:
    """One block of 64 threads, two tiles along d."""
    N, d = _EDGE, _ROUNDS * _EDGE

    def run(without: int | None, schedule: str) -> SmallRun:
        return launch(
            "03_tiled.cu", "scaled_dot_product", 1, (_EDGE, _EDGE), operands(N, d),
            {"N": N, "d": d}, without=without, options={"schedule": schedule, "sanitize": True},
            TILE=_EDGE,
        )  # fmt: skip

    def look(story: Story, act: Act) -> tuple[str, str]:
        one = story.access((act.warp, act.first))
        if not one.is_load:
            return one.array[-1], "blue" if one.array == "s_Q" else "orange"
        column = int(one.indices[one.lanes[0]])
        return str(column % _EDGE if one.array == "s_Q" else column // _EDGE), "gray"

    def outcome(run: SmallRun, right: SmallRun, story: Story, _: Story) -> str:
        wrong = int((~(run.arrays["S"] == right.arrays["S"])).sum())
        return f"In the end {wrong} of the {N * N} elements of S are wrong."

    sums = _line_of_products(run(None, "lockstep"))
    shown = Excerpt(
        (0, 1), 10**6, {sums: 2}, look,
        "Q, K: the warp stores its half of a tile. 0 to 7: it reads both tiles for this k.",
    )  # fmt: skip
    return RaceCase(run, _Copies, ("Q", "K"), shown,
                    lambda array, at: f"{array}[{at // _EDGE}][{at % _EDGE}]", outcome)  # fmt: skip


def _line_of_products(run: SmallRun) -> int:
    """The line that reads both tiles."""
    return next(a.line for a in run.report.of_block(kind="load", space="shared"))


# ---------------------------------------------------------------- chapter 04


def tree_case(reuse: bool = False) -> RaceCase:
    """One row of 128 scores and a block of 128 threads: four warps; with `reuse` up to the sums."""
    order = np.random.default_rng(5).permutation(_SCORES)
    at = int(order.argmax())
    order[[at, _LATE]] = order[[_LATE, at]]
    scores = ((order + 1) // 2).astype(np.float32)[None] / (_SMALLER if reuse else 1)

    def run(without: int | None, schedule: str) -> SmallRun:
        return launch(
            "04_reduction.cu", "softmax", 1, _SCORES,
            {"S": scores, "P": np.zeros_like(scores)}, {"N": _SCORES}, without=without,
            options={"schedule": schedule, "sanitize": True}, BLOCK_SIZE=_SCORES,
        )  # fmt: skip

    lines = [a.line for a in run(None, "lockstep").report.of_block(space="shared")]
    level, root, sums = list(dict.fromkeys(lines))[1:4]

    def look(story: Story, act: Act) -> tuple[str, str]:
        one = story.access((act.warp, act.first))
        if act.line == level:
            those = [story.access((act.warp, act.first + n)) for n in range(act.count)]
            places = [int(a.indices[one.lanes[0]]) for a in those]
            return str(max(places) - min(places)), "green"
        if act.line == sums:
            return "sum", "purple"
        return ("max", "yellow") if one.is_load else ("st", "sky")

    def outcome(run: SmallRun, _: SmallRun, story: Story, right: Story) -> str:
        def maxima(told: Story) -> dict[int, float]:
            ends = {w: (w, n) for w, mine in told.accesses.items() for n, a in enumerate(mine)
                    if a.line == root and a.space == "shared"}  # fmt: skip
            return {w: next(iter(told.reads[who].values())).value for w, who in ends.items()}

        meant = _value(maxima(right)[0])
        found = ", ".join(f"warp {w}: {_value(m)}" for w, m in sorted(maxima(story).items()))
        return f"The maximum is {meant}. Found as row_max: {found}."

    key = "st: stores its maxima. 64 … 1: a level of this stride"
    key += ". max: reads s_data[0]. sum: stores its sums." if reuse else (
        ", two reads and a store. max: reads s_data[0].")  # fmt: skip
    shown = Excerpt((0, 1, 2, 3), sums if reuse else root, {level: 3}, look, key)
    return RaceCase(run, lambda: _Softmax(root), ("S",), shown,
                    lambda array, at: f"{array}[{at}]", outcome)  # fmt: skip


def _value(value: float) -> str:
    """Whole numbers as they are, others with two digits."""
    return number(value, 0 if float(value).is_integer() else 2)
