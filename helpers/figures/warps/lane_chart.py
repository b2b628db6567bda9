"""Rows of bars along one axis: who is busy when. It draws what it is given and reads no trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..canvas import NORMAL, SMALLEST, Canvas, text_width

_HATCH = 8.0  # pixels from one slanting line to the next
_TICKS = (1, 2, 5)


class Bar(NamedTuple):
    """Something that takes from `start` to `end`, in the chart's unit.

    Attributes:
        row: number of its row.
        start, end: where it begins and ends.
        hue: of the palette.
        label: written on it where there is room, in `Canvas.text`'s notation.
        pale: whether it is an outline alone, for what no longer goes on.
    """

    row: int
    start: float
    end: float
    hue: str
    label: str = ""
    pale: bool = False


class Idle(NamedTuple):
    """A time in which some rows have nothing to do, drawn hatched over all of them."""

    rows: range
    start: float
    end: float
    label: str = ""


class LaneChart(NamedTuple):
    """What there is to draw.

    Attributes:
        title, remark: above the rows, left in bold and right.
        rows: their names, from above.
        bars, idle: what is on them.
        marks: where a line goes through all rows.
        end: where the last row ends.
    """

    title: str
    remark: str
    rows: tuple[str, ...]
    bars: list[Bar]
    idle: list[Idle]
    marks: list[float]
    end: float


class LaneFrame(NamedTuple):
    """Where charts lie: the left edge of their names and of their bars, and the scale.

    Attributes:
        x: left edge of the names.
        left, right: edges of the bars.
        extent: what the width of the bars stands for, in the charts' unit.
        pitch: pixels from one row to the next.
    """

    x: float
    left: float
    right: float
    extent: float
    pitch: float

    def at(self, value: float) -> float:
        """Where a value lies."""
        return self.left + (self.right - self.left) * min(value / self.extent, 1.0)

    def height(self, chart: LaneChart) -> float:
        """How high a chart is with its title."""
        return 30 + self.pitch * len(chart.rows)


def draw_lanes(
    canvas: Canvas, chart: LaneChart, frame: LaneFrame, y: float, until: float | None = None
) -> None:
    """Draw a chart from y downwards.

    Args:
        canvas: to draw on.
        chart: what to draw.
        frame: where.
        y: upper edge.
        until: leave out what comes later than this; None for nothing.
    """
    until = chart.end if until is None else until
    canvas.text(frame.x, y + 17, chart.title, size=18, bold=True)
    canvas.text(frame.right, y + 17, chart.remark, anchor="end")
    top = y + 30
    bottom = top + frame.pitch * len(chart.rows) - 4
    for number, name in enumerate(chart.rows):
        middle = top + number * frame.pitch + (frame.pitch - 4) / 2
        canvas.text(frame.x, middle + 0.36 * NORMAL, name)
        canvas.line(frame.left, middle, frame.at(chart.end), middle, stroke="grid", weight=1)
    for idle in chart.idle:
        if idle.start < until:
            _hatched(canvas, frame, top, idle, until)
    marks = [frame.at(mark) for mark in chart.marks if mark <= until]
    canvas.cells([(x - 1, top - 3, 2, bottom - top + 6) for x in marks], fill="ink", stroke="none")
    for bar in chart.bars:
        if bar.start < until:
            _bar(canvas, frame, top, bar, until)


def _bar(canvas: Canvas, frame: LaneFrame, top: float, bar: Bar, until: float) -> None:
    x, right = frame.at(bar.start), frame.at(min(bar.end, until))
    y, height = top + bar.row * frame.pitch, frame.pitch - 4
    look = {"fill": "paper" if bar.pale else f"{bar.hue}-fill", "stroke": bar.hue, "weight": 1.5}
    canvas.rect(x, y, right - x, height, r=2, dash="4 3" if bar.pale else None, **look)
    size = next((n for n in (NORMAL, SMALLEST) if text_width(bar.label, n) <= right - x - 2), None)
    if bar.label and size:
        middle = (x + right) / 2
        canvas.text(middle, y + height / 2 + 0.36 * size, bar.label, size=size, anchor="middle",
                    bold=True)  # fmt: skip


def _hatched(canvas: Canvas, frame: LaneFrame, top: float, idle: Idle, until: float) -> None:
    """Slanting lines over a box, all of them one path."""
    x, right = frame.at(idle.start), frame.at(min(idle.end, until))
    y = top + idle.rows.start * frame.pitch
    height = len(idle.rows) * frame.pitch - 4
    canvas.rect(x, y, right - x, height, fill="faint", stroke="vermillion", weight=1.5, dash="4 3")
    d, offset = "", _HATCH
    while offset < right - x + height:
        # From the left or the lower edge up to the upper or the right one.
        x1, y1 = x + max(0.0, offset - height), y + min(offset, height)
        x2, y2 = x + min(offset, right - x), y + max(0.0, offset - (right - x))
        d += f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        offset += _HATCH
    canvas.path(d, stroke="vermillion", weight=1, opacity=0.6)
    if idle.label and text_width(idle.label) + 8 <= right - x:
        middle = (x + right) / 2
        canvas.text(middle, y + height / 2 + 6, idle.label, anchor="middle", bold=True, halo=True)


def draw_axis(canvas: Canvas, frame: LaneFrame, y: float, unit: str) -> None:
    """The axis below charts, with round numbers; y is its line."""
    canvas.line(frame.left, y, frame.right, y, stroke="muted")
    step = _step(frame.extent)
    ticks = range(0, int(frame.extent) + 1, step)
    for tick in ticks:
        x = frame.at(tick)
        canvas.line(x, y, x, y + 6, stroke="muted")
        anchor = "middle" if tick else "start"
        if frame.right - x > 30 or frame.right - x < 1:
            canvas.text(x, y + 22, f"{tick:,}", anchor=anchor, fill="muted")
    canvas.text(frame.x, y + 22, unit, fill="muted")


def _step(extent: float) -> int:
    """From one number of an axis to the next: 1, 2 or 5 times a power of ten, at most eight."""
    steps = (round * 10**power for power in range(9) for round in _TICKS)
    return next(step for step in steps if extent / step <= 8)


def draw_key(canvas: Canvas, x: float, y: float, entries: Iterable[tuple[str, str]]) -> None:
    """What looks mean, side by side: "full", "pale", "idle" or "mark", and the words."""
    for look, words in entries:
        if look == "idle":
            _hatched(canvas, LaneFrame(x, x, x + 22, 22, 20), y - 14, Idle(range(1), 0, 22), 22)
        elif look == "mark":
            canvas.rect(x + 10, y - 15, 2, 18, fill="ink", stroke="none")
        else:
            dash, fill = ("4 3", "paper") if look == "pale" else (None, "gray-fill")
            canvas.rect(x, y - 14, 22, 16, r=2, fill=fill, stroke="gray", weight=1.5, dash=dash)
        canvas.text(x + 29, y, words)
        x += 29 + text_width(words) + 10
