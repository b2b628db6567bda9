"""Chapter 10: copies and math of a warp along one line, and where a wait leaves nothing to do.

    overlap_timeline("09_flash_swizzled", "10a_eager")                      # by instructions
    overlap_timeline("09_flash_swizzled", "10a_eager", facts=load_facts())  # by a model's cycles
    Player(overlap_frames("10a_eager"))

The order is that of the kernel's own run on the simulator; `paced_story` says what lengths are.
"""

from __future__ import annotations

import re

from helpers.kernels.kernel import Kernel
from helpers.kernels.source import Value
from helpers.measure.facts import GpuFacts
from helpers.problem.flash import FlashRung

from ..canvas import SMALLEST, Canvas, Frame, literal, told
from ..palette import MATRIX_HUES
from .copy_story import Copy, CopyStory, Stretch
from .lane_chart import Bar, Idle, LaneChart, LaneFrame, draw_axis, draw_key, draw_lanes
from .paced_story import BY_INSTRUCTIONS, Pace, PacedStory, name_of, pace_of, story_of

Given = str | Kernel | FlashRung

_ROWS = ("copy K", "copy V", "S = Q Kᵀ", "softmax", "O += P V")
_ROW = {"K": 0, "V": 1, "S": 2, "softmax": 3, "O": 4}
_WORK = range(2, 5)
_HUES = MATRIX_HUES | {"softmax": MATRIX_HUES["P"]}
_LEFT, _RIGHT, _PITCH = 114.0, 950.0, 30.0
_BELOW = 96.0  # what stands below the charts, in pixels


def overlap_timeline(
    *kernels: Given,
    blocks: int = 3,
    facts: GpuFacts | None = None,
    level: str = "L2",
    **values: Value,
) -> Canvas:
    """The timeline of a warp of one kernel, or of several above one another on one scale.

    Args:
        *kernels: names of files in `kernels/`, kernels of the same arguments, or rungs.
        blocks: tiles of keys that the warp walks along.
        facts: a GPU's, for a model in cycles; lengths are instructions without.
        level: "L2" or "DRAM", where the model's copies come from.
        **values: parameters of all the kernels, such as HEAD_DIM=64.

    Raises:
        KernelError: a kernel is not of this family, or a value is wrong.
        ValueError: a kernel has no cp.async or no mma, or none is given.
    """
    if not kernels:
        raise ValueError("Name at least one kernel, such as overlap_timeline('10a_eager').")
    pace = BY_INSTRUCTIONS if facts is None else pace_of(facts, level)
    courses = [PacedStory(story_of(k, blocks, **values), pace) for k in kernels]
    return _canvas(list(zip(map(name_of, kernels), courses, strict=True)), pace)


def overlap_frames(
    kernel: Given,
    blocks: int = 3,
    facts: GpuFacts | None = None,
    level: str = "L2",
    **values: Value,
) -> list[Frame]:
    """The timeline of one kernel, a stretch of its program after another; arguments as above."""
    pace = BY_INSTRUCTIONS if facts is None else pace_of(facts, level)
    course, name = PacedStory(story_of(kernel, blocks, **values), pace), name_of(kernel)
    frames = []
    for moment, caption in _moments(course):
        frames.append(_canvas([(name, course)], pace, moment).frame(caption))
    whole = _canvas([(name, course)], pace).frame(_lowered(f"All of it. {_verdict(course)}"))
    return told([*frames[:-1], whole], -1)


def _canvas(named: list[tuple[str, PacedStory]], pace: Pace, until: float | None = None) -> Canvas:
    """Charts of some courses above one another."""
    extent = max(course.end for _, course in named)
    frame = LaneFrame(8, _LEFT, _RIGHT, extent, _PITCH if len(named) == 1 else 26.0)
    charts = [_chart(name, course) for name, course in named]
    heights = [frame.height(chart) + 12 for chart in charts]
    label = "Copies and math of a warp. " + " ".join(
        f"{name}: {_lowered(_verdict(course))}" for name, course in named
    )
    canvas = Canvas(height=sum(heights) + _BELOW, label=label)
    y = 4.0
    for chart, height in zip(charts, heights, strict=True):
        draw_lanes(canvas, chart, frame, y, until)
        y += height
    draw_axis(canvas, frame, y, pace.unit)
    _key(canvas, y + 52, pace, charts)
    canvas.text(8, y + 84, pace.note, size=SMALLEST, fill="muted")
    return canvas


def _key(canvas: Canvas, y: float, pace: Pace, charts: list[LaneChart]) -> None:
    """What looks mean, as far as they occur."""
    known = pace.latency is not None
    entries = [("full", "on its way; math" if known else "a copy, up to its wait; math")]
    if any(bar.pale for chart in charts for bar in chart.bars):
        entries.append(("pale", "there, not yet waited for"))
    if any(chart.idle for chart in charts):
        entries.append(
            ("idle", "the warp waits" if known else "a wait with no math since the copy")
        )
    draw_key(canvas, 8, y, [*entries, ("mark", "barrier of the block")])


def _chart(name: str, course: PacedStory) -> LaneChart:
    story = course.story
    waits = [Idle(_WORK, *span, "waits") for span in course.exposed.values()]
    barriers = [float(course.at[n]) for n in story.barriers if course.at[n] > 0]
    return LaneChart(
        literal(name), _remark(course), _ROWS, _bars(course), waits, barriers, course.end
    )


def _bars(course: PacedStory) -> list[Bar]:
    """The bars of copies and of math."""
    found = []
    for copy in course.story.copies:
        if copy.tile.array not in _ROW:
            continue  # Q, which comes once, before all else
        row, hue = _ROW[copy.tile.array], _HUES[copy.tile.array]
        start, end = float(course.at[copy.first]), course.there(copy)
        arrived = min(course.arrival.get(copy, end), end)
        if arrived < end:
            found.append(Bar(row, arrived, end, hue, pale=True))
        found.append(Bar(row, start, arrived, hue, copy.tile.name))
    for s in course.story.stretches:
        if s.kind in _ROW:
            start, end = float(course.at[s.first]), float(course.at[s.end])
            found.append(Bar(_ROW[s.kind], start, end, _HUES[s.kind], _result(s)))
    return found


def _result(s: Stretch) -> str:
    """What a stretch of math makes: S_1, its weights P_1, or P_1V_1."""
    n = s.tile.number
    return {"S": f"S_{n}", "softmax": f"P_{n}", "O": f"P_{n}V_{n}"}[s.kind]


# ---------------------------------------------------------------- what is said


def _remark(course: PacedStory) -> str:
    """What stands at the right of a chart's title."""
    faults = _faults(course.story)
    if faults:
        return faults[0]
    if course.pace.latency is not None:
        rows = course.story.rows
        return f"{rows} rows: {course.end:,.0f} cycles, {course.waited:,.0f} of them waiting"
    behind = _behind(course.story)
    words = ", ".join(f"{array} {number:,}" for array, number in behind.items())
    return f"math during a copy: {words} instructions"


def _behind(story: CopyStory) -> dict[str, int]:
    """Instructions of math between the start of the last copy of K, and of V, and its wait."""
    found = {}
    for copy in story.copies:
        if copy.tile.array != "Q" and copy.wait is not None:
            found[copy.tile.array] = story.work(copy.last, copy.wait)
    return dict(sorted(found.items()))


def _faults(story: CopyStory) -> list[str]:
    """Copies that are not waited for in time, a sentence each."""
    found = []
    for copy in story.copies:
        if copy.read is not None and (copy.wait is None or copy.read < copy.wait):
            found.append(f"{copy.tile.name} is read before it is waited for.")
        elif copy.wait is None:
            found.append(f"Nothing waits for {copy.tile.name}.")
    return found


def _verdict(course: PacedStory) -> str:
    """What the whole picture says, in a sentence or two."""
    faults = _faults(course.story)
    if faults:
        return " ".join(faults)
    if course.pace.latency is not None:
        share = 100 * course.waited / course.end
        return f"{course.end:,.0f} cycles, and in {share:.0f} % of them the warp waits for a copy."
    behind = _behind(course.story)
    bare = [array for array, number in behind.items() if not number]
    hidden = [f"{n:,} instructions during that of {array}" for array, n in behind.items() if n]
    if not hidden:
        return "A copy is waited for where it was started: no math is done meanwhile."
    rest = f" No math is done during the copy of {' and of '.join(bare)}." if bare else ""
    return f"Math is done while copies are on their way: {' and '.join(hidden)}.{rest}"


def _moments(course: PacedStory) -> list[tuple[float, str]]:
    """Where each step ends, and its caption."""
    found = []
    for s in course.story.stretches:
        end, words = float(course.at[s.end]), ""
        if end <= 0:
            continue
        if s.kind == "copy":
            words = f"The warp starts its part of the copy of {s.tile.name}, and goes on."
        elif s.kind in _ROW:
            words = _math(course, s)
        else:
            waits = [n for n in range(s.first, s.end) if course.story.waits.get(n)]
            words = " ".join(_waits(course, n) for n in waits)
        if words:
            found.append((end, _lowered(words)))
    return found


def _waits(course: PacedStory, wait: int) -> str:
    names = _listed(course.story.waits[wait])
    if wait in course.exposed:
        start, end = course.exposed[wait]
        lasts = f" for {end - start:,.0f} cycles" if course.pace.latency is not None else ""
        return f"It waits for {names}{lasts}, and nothing else is to do."
    if course.pace.latency is not None:
        are = "is" if len(course.story.waits[wait]) == 1 else "are"
        return f"It waits for {names}, which {are} there already: no time is lost."
    return f"It waits for what is left of {names}."


def _math(course: PacedStory, s: Stretch) -> str:
    says = {
        "S": f"Tensor cores make {_result(s)} from Q and {s.tile.name}",
        "softmax": f"Softmax makes weights {_result(s)} of S_{s.tile.number}",
        "O": f"Tensor cores add {_result(s)} to O",
    }[s.kind]
    start, end = course.at[s.first], course.at[s.end]
    on_way = [
        c for c in course.story.copies
        if c.last < s.first and start < min(course.arrival.get(c, end), course.there(c))
    ]  # fmt: skip
    if not on_way:
        return f"{says}. No copy is on its way."
    return f"{says}, while {_listed(on_way)} {'is' if len(on_way) == 1 else 'are'} on the way."


def _lowered(text: str) -> str:
    """`text` for a caption: K_1 with the digit that is written lowered."""
    digits = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return re.sub(r"_(\d+)", lambda found: found[1].translate(digits), text)


def _listed(copies: list[Copy]) -> str:
    names = [copy.tile.name for copy in copies]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
