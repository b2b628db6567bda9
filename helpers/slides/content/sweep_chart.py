"""All settings of a sweep in one chart, the one on show set off: part of a bench in a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from svg import SVG, Rect, Text

from helpers.bench.html import SUMMARY
from helpers.figures.palette import colour

WIDTH, HEIGHT = 560, 236  # of one chart, in pixels
_TOP, _BOTTOM, _SIZE = 34, 64, 18
_CHARTS = 2


def charts(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """For each result the HTML of bar charts of all results, with its own bars set off.

    What is drawn: milliseconds if all were timed, then the counters that vary most.

    Args:
        results: what `Result.data()` gives, of every setting.
        names: the settings that vary, which the bars are labelled by.
    """
    drawn = _quantities(results)
    labels = ["/".join(_short(data["settings"][name]) for name in names) for data in results]
    made = []
    for number in range(len(results)):
        pictures = "".join(
            _bars(heading, values, labels, number, "/".join(names)) for heading, values in drawn
        )
        made.append(f'<div class="bench-sweep">{pictures}</div>' if pictures else "")
    return made


def _quantities(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[float | None]]]:
    """(heading, a value for each result or None) of what is worth a chart."""
    found: list[tuple[float, str, list[float | None]]] = []
    ran = [data["status"] in ("right", "wrong") for data in results]
    times = [data["milliseconds"] for data in results]
    if all(time is not None for time, good in zip(times, ran, strict=True) if good) and any(ran):
        found.append((math.inf, "milliseconds", times))
    for name, (group, what) in SUMMARY.items():
        values = [
            data["totals"].get(name, 0) if good else None
            for data, good in zip(results, ran, strict=True)
        ]
        known = [value for value in values if value is not None]
        if known and max(known) > min(known):
            found.append((max(known) / (min(known) + 1), f"{group}, {what}", values))
    found.sort(key=lambda one: -one[0])
    return [(heading, values) for _, heading, values in found[:_CHARTS]]


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bars(
    heading: str, values: Sequence[float | None], labels: Sequence[str], chosen: int, names: str
) -> str:
    step = WIDTH / len(values)
    most = max((value for value in values if value is not None), default=0) or 1
    room = HEIGHT - _TOP - _BOTTOM
    own = values[chosen]
    said = "cannot run" if own is None else f"{own:,.4g}" if isinstance(own, float) else f"{own:,}"
    elements: list = [
        Text(x=0, y=_SIZE, font_size=_SIZE, font_weight="bold", text=f"{heading}: {said}",
             fill="currentColor"),
        Text(x=WIDTH, y=HEIGHT - 6, font_size=_SIZE, text_anchor="end", text=names,
             fill=colour("muted")),
    ]  # fmt: skip
    for number, value in enumerate(values):
        high = room * (value or 0) / most
        x, own_bar = number * step, number == chosen
        elements.append(
            Rect(x=round(x + 0.1 * step, 1), y=round(_TOP + room - high, 1),
                 width=round(0.8 * step, 1), height=round(max(high, 1), 1),
                 fill=colour("blue" if own_bar else "blue-fill"))
        )  # fmt: skip
        wide = len(labels[number]) * 10 < step
        if wide or own_bar:
            end = min(max(x + step / 2, 5 * len(labels[number])), WIDTH - 5 * len(labels[number]))
            elements.append(
                Text(x=round(end, 1), y=_TOP + room + 22, font_size=_SIZE, text_anchor="middle",
                     font_weight="bold" if own_bar else None, text=labels[number],
                     fill="currentColor")
            )  # fmt: skip
    picture = SVG(viewBox=f"0 0 {WIDTH} {HEIGHT}", elements=elements)
    return str(picture).replace("<svg", f'<svg role="img" aria-label="{heading}: {said}"', 1)
