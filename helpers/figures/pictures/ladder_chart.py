"""The ladder as a chart: how many times as fast as the naive rung the others are, against N."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..charts import _chart, _listed
from ..drawing import Markup, hue

_APART = 0.062  # of the axis' height between two labels
_MARKS = "osD^"


def ladder_chart(gpu: str, speedups: Mapping[str, Mapping[int, float]]) -> Markup:
    """Lines over N, one a rung, with its name at the right end.

    Variants of a rung ("padded, transpose on store") have their rung's colour and another mark.

    Args:
        gpu: whose times these are, for the title.
        speedups: {rung: {N: times as fast as naive}}, from the first rung to the last.

    Raises:
        ValueError: there are no times.
    """
    from matplotlib.ticker import FixedLocator, NullLocator

    lines = {name: dict(sorted(by_n.items())) for name, by_n in speedups.items() if by_n}
    if not lines:
        raise ValueError("There are no times to draw.")
    sizes = sorted({n for by_n in lines.values() for n in by_n})
    top = max(max(by_n.values()) for by_n in lines.values()) * 1.15
    low = min(min(by_n.values()) for by_n in lines.values()) * 0.85
    families = list(dict.fromkeys(name.split(",")[0] for name in lines))
    looks = {}
    for name in lines:
        family = name.split(",")[0]
        nth = sum(other.split(",")[0] == family for other in looks)
        looks[name] = hue(families.index(family)), _MARKS[nth % len(_MARKS)], nth

    def draw(axes):
        for name, by_n in lines.items():
            colour, mark, nth = looks[name]
            axes.plot(
                list(by_n), list(by_n.values()), color=colour, marker=mark, ms=7 - 2 * (nth > 0),
                lw=2.2, ls="--" if nth else "-",
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="N, tokens", ylabel="times as fast as naive")
        axes.set_title(gpu, loc="left")
        axes.set_xlim(sizes[0] * 0.9, sizes[-1] * 1.12)
        axes.set_ylim(low, top)
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
        axes.xaxis.set_minor_locator(NullLocator())
        ticks = [t for t in (0.5, 1, 2, 4, 8, 16, 32, 64, 128) if low <= t <= top]
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_major_formatter(lambda t, _: f"{t:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.grid(True, axis="y")
        ends = {name: list(by_n.items())[-1] for name, by_n in lines.items()}
        places = _apart({n: math.log(y / low) / math.log(top / low) for n, (_, y) in ends.items()})
        for name, (x, y) in ends.items():
            axes.annotate(
                f"{name}: {y:.3g}×", (x, y), (1.03, places[name]),
                textcoords="axes fraction", va="center", fontsize=13, annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": looks[name][0], "lw": 1.5,
                            "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4},
            )  # fmt: skip

    label = f"How many times as fast as the naive rung, for N of {_listed(sizes)}: " + "; ".join(
        f"{name} {list(by_n.values())[-1]:.3g}" for name, by_n in lines.items()
    )
    return _chart(draw, (9.8, 4.6), f"{label}.")


def _apart(places: Mapping[str, float]) -> dict[str, float]:
    """The same heights, moved as little as it takes to keep labels from touching."""
    names = sorted(places, key=places.get)
    groups: list[tuple[list[str], float]] = []  # names from below, and their middle
    for name in names:
        mine, middle = [name], places[name]
        while groups and middle - groups[-1][1] < _APART * (len(mine) + len(groups[-1][0])) / 2:
            below, _ = groups.pop()
            mine = below + mine
            middle = sum(places[n] for n in mine) / len(mine)
        groups.append((mine, middle))
    return {
        name: middle + _APART * (n - (len(mine) - 1) / 2)
        for mine, middle in groups
        for n, name in enumerate(mine)
    }
