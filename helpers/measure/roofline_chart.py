"""The roofline by level: how fast rungs are, beside what each level of memory lets them be.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009):
a kernel that does I operations for each byte of a level that delivers B bytes a second cannot do
more than I times B a second, nor more than the units that calculate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .charts import APART, INK, Markup, apart, chart, logarithmic, looks

__all__ = ["RungPoint", "roofline_chart"]

_DECADES = 5  # with more of them, every second is named
_LETTER = 0.047  # of a panel's width
_HEIGHT = 5.2  # inches, for not too many names
_ROOMS = (0.5, 2.2)  # of the axis, as factors below the lowest point and above the highest ceiling


@dataclass(frozen=True)
class RungPoint:
    """A rung in the chart.

    Attributes:
        name: as in the chart of times.
        tflops: 10^12 operations a second, measured.
        intensities: operations a byte, by level; those that it does not use are left out.
        limit: the level, or another part of the GPU, that its bound comes from.
        fraction: its least time by that bound, as a share of the measured time.
    """

    name: str
    tflops: float
    intensities: Mapping[str, float]
    limit: str
    fraction: float


def roofline_chart(
    gpu: str,
    rates: Mapping[str, float],
    ceilings: Mapping[str, float],
    points: Sequence[RungPoint],
) -> Markup:
    """A panel for each level, with its roof and a point for each rung.

    A filled point stands where the rung's bound comes from. Names stand on the right, each with the
    share of its time that the bound explains.

    Args:
        gpu: whose rates and times these are, for the title.
        rates: {level: TB a second}.
        ceilings: {units that calculate: TFLOPS}.
        points: from the first rung to the last.

    Raises:
        ValueError: there are no points.
    """
    if not points:
        raise ValueError("There are no rungs to draw.")
    styles = looks(point.name for point in points)
    low = _ROOMS[0] * min(point.tflops for point in points)
    top = _ROOMS[1] * max(ceilings.values())

    def draw(panels):
        for axes, (level, rate) in zip(panels, rates.items(), strict=True):
            mine = [point for point in points if level in point.intensities]
            _roof(axes, rate, ceilings, [point.intensities[level] for point in mine], (low, top))
            axes.set_title(f"{level}, {rate:.{1 if rate >= 10 else 2}f} TB/s", loc="left")
            for point in mine:
                colour, mark, _ = styles[point.name]
                axes.plot(
                    point.intensities[level], point.tflops, mark, color=colour, ms=8, mew=2,
                    fillstyle="full" if point.limit == level else "none", clip_on=False, zorder=3,
                )  # fmt: skip
        panels[0].set_ylabel(f"TFLOPS, {gpu}")
        panels[len(panels) // 2].set_xlabel("operations a byte")
        _names(panels[-1], points, styles, (low, top))

    said = "; ".join(
        f"{p.name} {p.tflops:.3g}, least time {p.fraction:.0%} of the measured, by {p.limit}"
        for p in points
    )
    label = f"Roofline of {gpu} by level. TFLOPS of each rung: {said}."
    return chart(draw, (11.8, _HEIGHT * _taller(points)), label, panels=len(rates))


def _taller(points: Sequence[RungPoint]) -> float:
    """How much taller the chart is than others, for as many names as it has."""
    return max(1.0, APART * len(points))


def _roof(axes, rate: float, ceilings: Mapping[str, float], used, span) -> None:
    """A level's slope up to the ceilings, and the axes around what is drawn."""
    low, top = span
    highest = max(ceilings.values())
    left = min([0.5 * low / rate * 2, *(0.5 * x for x in used)])
    right = max([3 * highest / rate, *(2 * x for x in used)])
    for name, ceiling in ceilings.items():
        share = _LETTER * (len(name) + 5)  # of the axis, for the words on the left of the slope
        left = min(left, (ceiling / rate / right**share) ** (1 / (1 - share)))
    axes.plot([left, highest / rate], [left * rate, highest], color=INK, lw=1.6)
    for name, ceiling in ceilings.items():
        axes.plot([ceiling / rate, right], [ceiling, ceiling], color=INK, lw=1.6, ls="--")
        axes.annotate(
            f"{name} {ceiling:.0f}", (left, ceiling), (4, 0), textcoords="offset points",
            va="center", fontsize=13,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, top))
    for along, ends in (("x", (left, right)), ("y", (low, top))):
        _decades(axes, along, *ends)
    axes.grid(True)


def _decades(axes, along: str, low: float, high: float) -> None:
    """Ticks at powers of ten."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    every = 1 if last - first < _DECADES else 2
    shown = range(first + first % every, last + 1, every)
    logarithmic(axes, along, [10.0**n for n in shown], lambda t, _: f"{t:g}")


def _names(axes, points: Sequence[RungPoint], styles, span) -> None:
    """The points' names on the right of the last panel, with lines that lead to them."""
    low, top = span
    axes.annotate(
        "least time, of measured", (1.04, 1), (0, 14), xycoords="axes fraction",
        textcoords="offset points", va="bottom", fontsize=13, annotation_clip=False,
    )  # fmt: skip
    last = [list(point.intensities.values())[-1] for point in points]
    heights = {p.name: math.log(p.tflops / low) / math.log(top / low) for p in points}
    places = apart(heights, APART / _taller(points))
    for point, x in zip(points, last, strict=True):
        axes.annotate(
            f"{point.name}: {point.fraction:.0%}", (x, point.tflops), (1.04, places[point.name]),
            textcoords="axes fraction", va="center", fontsize=13, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": styles[point.name][0], "lw": 1.2,
                        "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 5},
        )  # fmt: skip
