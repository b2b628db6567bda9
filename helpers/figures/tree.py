"""One frame of a reduction: the row, a box for each thread, and the tree in shared memory."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .barrier_bar import waiting
from .canvas import LARGE, NORMAL, Canvas, fitting, number, text_width
from .palette import hue
from .parts import Grid

_LEFT, _ROW_Y, _THREADS_Y, _TREE_Y = 118, 48, 132, 212
_WIDTH = 820
_HIGHEST = 411  # of the picture
_CELL = 34  # height of an element; a word of shared memory is 4 pixels lower
_LOW_CELL, _MOST_TALL = 26, 4  # and with more levels than so many
_MOST_ARROWS = 4  # threads whose arrows can be told apart
_BAR = 22  # room for a barrier below the last level

# The words of shared memory, and for those just stored what each was made of; None where all are
# old.
Level = tuple[dict[int, float], dict[int, list[int]] | None]


class TreeState(NamedTuple):
    """What a frame shows.

    Attributes:
        elements, title, place: the row's values, what they are, and where.
        owner: element → thread, for the colours.
        reading: (element, thread) of each read in this step.
        seen: elements read before or now.
        registers, name: thread → value of its register, and what it is called.
        threads: how many there are.
        levels: shared memory after each level so far; the first one is what the threads stored.
        current: the last level is this step's doing.
        root: all threads read the tree's root in this step.
        barrier: line of the barrier at which the threads wait in this step.
        bar_below: "tree" or "registers", which they touched last.
    """

    elements: Sequence[float]
    title: str
    place: str
    owner: dict[int, int]
    reading: list[tuple[int, int]]
    seen: set[int]
    registers: dict[int, float]
    name: str
    threads: int
    levels: list[Level]
    current: bool
    root: bool
    barrier: int | None = None
    bar_below: str = "tree"


def picture(state: TreeState) -> Canvas:
    """Draw a step of a reduction."""
    depth = 1 + int(math.log2(state.threads))
    cell = _CELL if depth <= _MOST_TALL else _LOW_CELL
    pitch = min(66.0, (_HIGHEST - _TREE_Y - cell - _BAR) / max(depth - 1, 1))
    canvas = Canvas(
        height=_TREE_Y + (depth - 1) * pitch + cell + _BAR,
        label=f"{state.threads} threads reduce a row of {len(state.elements)} elements.",
    )
    row = _row(canvas, state)
    threads = _threads(canvas, state)
    for index, thread in state.reading:
        canvas.arrow(
            row.centre(0, index)[0], row.bottom + 2, threads.centre(0, thread)[0], threads.y - 4,
            stroke=hue(thread),
        )  # fmt: skip
    for level, (words, came) in enumerate(state.levels[:depth] or [({}, None)]):
        latest = level == len(state.levels) - 1
        y = _TREE_Y + level * pitch
        above = y - pitch + cell - 2 if level else threads.bottom + 3
        canvas.text(_LEFT - 12, y + 13, "s_data", anchor="end", mono=True, bold=True)
        if level == 0 and cell == _CELL and (state.barrier is None or len(state.levels) > 1):
            canvas.text(_LEFT - 12, y + 34, "shared", anchor="end", fill="muted")
        _words(canvas, state, threads, y, cell - 4, words, came, latest)
        if level or (latest and state.current):
            _arrows(canvas, threads, came or {}, above, y, latest and state.current)
    if state.barrier is not None:
        last = _TREE_Y + (max(len(state.levels[:depth]), 1) - 1) * pitch + cell
        _bar(canvas, state, threads, threads.bottom + 7 if state.bar_below == "registers" else last)
    return canvas


def _bar(canvas: Canvas, state: TreeState, threads: Grid, top: float) -> None:
    """All threads at a barrier, each below its register."""
    y = top + 11
    places = [(threads.centre(0, t)[0], 0, hue(t)) for t in range(state.threads)]
    waiting(canvas, _LEFT, y, _WIDTH, places, pitch=12)
    canvas.text(_LEFT - 12, y + 8, f"line {state.barrier}", anchor="end", bold=True)


def text_of(value: float) -> str:
    """A value as the figure writes it: whole numbers as they are, others with two digits."""
    whole = math.isfinite(value) and float(value).is_integer()
    return number(value, 0 if whole else 2)


def _row(canvas: Canvas, state: TreeState) -> Grid:
    count = len(state.elements)
    width = min(52.0, _WIDTH / count)
    grid = Grid(_LEFT + (_WIDTH - count * width) / 2, _ROW_Y, width, _CELL, 1, count)
    canvas.text(_LEFT, _ROW_Y - 30, state.title, bold=True, mono=True)
    canvas.text(_LEFT + _WIDTH, _ROW_Y - 30, state.place, fill="muted", anchor="end")
    whole = all(float(value).is_integer() for value in state.elements)
    texts = [number(value, 0 if whole else 2) for value in state.elements]
    if text_width(max(texts, key=len), mono=True) > width - 4:  # .18 stands clear of its cell
        texts = [text.replace("0.", ".", 1) if text.startswith("0.") else text for text in texts]
    size = _fitting(max(texts, key=len), width - 4, LARGE - 2)
    current = {index for index, _ in state.reading}
    for index, text in enumerate(texts):
        x, y, w, h = grid.box(0, index)
        name = hue(state.owner.get(index, 0))
        look = {"fill": "faint", "stroke": "grid"}
        if index in current:
            look = {"fill": f"{name}-fill", "stroke": "ink", "weight": 3}
        elif index in state.seen:
            look = {"fill": f"{name}-fill", "stroke": name}
        canvas.rect(x + 1.5, y, w - 3, h, r=4, **look)
        look = {"anchor": "middle", "mono": True}
        if text_width(max(texts, key=len), size, mono=True) <= width:
            canvas.text(x + w / 2, y + _CELL / 2 + 0.36 * size, text, size=size, bold=True, **look)
        canvas.text(x + w / 2, y - 7, str(index), fill="muted", **look)
    return grid


def _threads(canvas: Canvas, state: TreeState) -> Grid:
    grid = Grid(_LEFT, _THREADS_Y, _WIDTH / state.threads, _CELL + 14, 1, state.threads)
    canvas.text(_LEFT - 12, grid.y + 17, "registers", anchor="end")
    canvas.text(_LEFT - 12, grid.y + 41, state.name, anchor="end", mono=True, bold=True)
    box = min(132.0, grid.cell_width - 8)
    busy = {thread for _, thread in state.reading}
    for thread in range(state.threads):
        middle, _ = grid.centre(0, thread)
        name, thick = hue(thread), thread in busy or state.root
        canvas.rect(
            middle - box / 2, grid.y, box, grid.cell_height, r=8, fill=f"{name}-fill",
            stroke="ink" if thick else name, weight=3 if thick else 1,
        )  # fmt: skip
        label = f"thread {thread}" if box >= 76 else f"t{thread}"
        canvas.text(middle, grid.y + 19, label, anchor="middle")
        if thread in state.registers:
            text = text_of(state.registers[thread])
            size = _fitting(text, box - 4, LARGE)
            canvas.text(middle, grid.y + 41, text, size=size, anchor="middle", mono=True, bold=True)
    return grid


def _words(
    canvas: Canvas,
    state: TreeState,
    threads: Grid,
    y: float,
    height: float,
    words: dict[int, float],
    came: dict[int, list[int]] | None,
    latest: bool,
) -> None:
    box = min(100.0, threads.cell_width - 8)
    numbered = box >= 64
    for word in range(state.threads):
        middle, _ = threads.centre(0, word)
        fresh = word in (came or {})
        thick = latest and fresh and (state.current or (state.root and word == 0))
        look = {"stroke": "grid", "dash": "3 3"}
        if fresh:
            look = {"fill": "yellow-fill", "stroke": "ink" if thick else "yellow"}
            look["weight"] = 3 if thick else 1
        elif word in words:
            look = {"fill": "faint", "stroke": "grid"}
        canvas.rect(middle - box / 2, y, box, height, r=4, **look)
        if numbered:
            centre = y + height / 2 + 5
            canvas.text(middle - box / 2 + 5, centre, str(word), fill="muted", mono=True)
        if word in words:
            text = text_of(words[word])
            room = box - 4 if not numbered else box - 30
            size = _fitting(text, room, LARGE - 2)
            canvas.text(
                middle + (4 if numbered else 0), y + height / 2 + 0.38 * size, text, size=size,
                anchor="middle", mono=True, bold=fresh, fill="ink" if fresh else "muted",
            )  # fmt: skip


def _arrows(
    canvas: Canvas, threads: Grid, came: dict[int, list[int]], top: float, y: float, current: bool
) -> None:
    first = min(came, default=0)
    for word, sources in came.items():
        for source in sources:
            # Side by side so many arrows would be one band: there, an example has to do.
            if threads.columns > _MOST_ARROWS and source != word != first:
                continue
            start, end = threads.centre(0, source)[0], threads.centre(0, word)[0]
            canvas.arrow(start, top, end, y - 3, stroke="ink" if current else "muted")


def _fitting(text: str, room: float, largest: int) -> int:
    """The largest size in which monospaced text fits, 16 at least."""
    return fitting(text, room, largest, NORMAL) or NORMAL
