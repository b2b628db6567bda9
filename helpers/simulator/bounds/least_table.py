"""Bounds as a table in a notebook: a row for each part of the GPU, and a bar for its share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

    from .least import Bounds

UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def unit_of(seconds: float) -> tuple[str, float]:
    """(name, seconds) of the unit in which a time is a number that is easy to read."""
    return next((one for one in UNITS if seconds >= one[1]), UNITS[-1])


def least_table(bounds: Bounds) -> Markup:
    """The table as HTML; all times in the unit that suits the longest, to be compared at a glance.

    Raises:
        ModuleNotFoundError: there is no Jinja2.
    """
    from ...show import render  # late: the simulator runs without what shows HTML

    unit, size = unit_of(bounds.seconds)
    decimals = 2 - min(2, int(math.log10(max(1.0, bounds.seconds / size))))
    rows = [
        {
            "part": part,
            "time": _at_least(seconds / size, decimals),
            "share": 100 * seconds / bounds.seconds,
            "shown": _at_least(100 * seconds / bounds.seconds, 0),
            "why": bounds.why[part],
        }
        for part, seconds in bounds.ranked
    ]
    return render("bounds.html", bounds=bounds, unit=unit, rows=rows)


def notebook_html(bounds: Bounds) -> str | None:
    """What a notebook shows of the bounds; None where it is to show the text."""
    from ...show import Shows  # late: the simulator runs without what shows HTML

    return Shows._repr_html_(bounds)


def _at_least(value: float, decimals: int) -> str:
    """A number so exact; a smaller one that is not nothing as less than the smallest."""
    least = 10.0**-decimals
    return f"{value:,.{decimals}f}" if value >= least / 2 else f"< {least:.{decimals}f}"
