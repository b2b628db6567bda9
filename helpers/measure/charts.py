"""Charts by matplotlib, as SVG that takes its colours from the page: times in lines and in bars."""

import io
import math
from collections.abc import Callable, Iterable, Mapping

from ..show import Shows, render

# Distinct under the common colour blindnesses (Okabe and Ito, "Color Universal Design", 2008) and
# clear on white as on black. Text and lines take the page's own colour.
HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#8f8f8f")
# matplotlib wants real colours; these two stand for the page's own until the SVG is written.
INK, _GRID = "#010203", "#040506"
_PAGE = {INK: "currentColor", _GRID: "color-mix(in srgb, currentColor 22%, transparent)"}
# Hues move a little towards the page's ink: darker on white and lighter on black.
_PAGE |= {colour: f"color-mix(in srgb, {colour} 80%, currentColor)" for colour in HUES}
_RC = {
    "svg.fonttype": "none",  # text stays text: readable, selectable, in the page's colour
    "font.size": 13,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlesize": 13,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": _GRID,
    "legend.frameon": False,
}
_RIVALS = ("FlashAttention-2", "cuDNN", "memory-efficient")
APART = 0.062  # of the axis' height between two labels
_MARKS = "osD^"


def hue(number: int) -> str:
    """The colour of warp, block or series `number`; they repeat after eight."""
    return HUES[number % len(HUES)]


class Markup(Shows):
    """A figure that is SVG already, such as a chart."""

    def __init__(self, svg: str, label: str):
        self._svg, self.label = svg, label

    def svg(self) -> str:
        """The figure as SVG text."""
        return self._svg

    def html(self):
        return render("chart.html", svg=self._svg, label=self.label)

    def __repr__(self) -> str:
        return f"<Figure: {self.label}>"


def chart(draw: Callable, inches: tuple[float, float], label: str, panels: int = 1) -> Markup:
    """What `draw(axes)` draws on matplotlib's axes.

    Args:
        draw: takes `INK` and `hue` for its colours; of several panels, a list of axes.
        inches: width and height.
        label: what it shows, for screen readers.
        panels: how many stand side by side, at the same heights.
    """
    import matplotlib  # late: start-up time, and a bare machine does without
    from matplotlib.figure import Figure  # late: as above

    with matplotlib.rc_context(_RC):
        figure = Figure(inches, layout="constrained")
        row = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
        for axes in row:
            axes.spines[["top", "right"]].set_visible(False)
        draw(row if panels > 1 else row[0])
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]  # without the XML declaration, which HTML has no place for
    for stand_in, colour in _PAGE.items():
        text = text.replace(stand_in, colour)
    width = f"{inches[0] * 96:.0f}px"
    return Markup(text.replace("<svg ", f'<svg style="max-width:{width}" ', 1), label)


def listed(values: Iterable[int]) -> str:
    """Numbers with thousands separators, one after another."""
    return ", ".join(f"{value:,}" for value in values)


def logarithmic(
    axes, along: str, places: Iterable[float], text: Callable[[float, int], str]
) -> None:
    """Ticks of a logarithmic axis, `x` or `y`, at `places` alone, each with its `text`."""
    from matplotlib.ticker import FixedLocator, NullLocator  # late: a bare machine does without

    axis = getattr(axes, f"{along}axis")
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(text)
    axis.set_minor_locator(NullLocator())


def speedup_chart(gpu: str, speedups: Mapping[str, Mapping[int, float]]) -> Markup:
    """How many times as fast as the naive rung the others are: lines over N, a rung each.

    Variants of a rung ("padded, transpose on store") have their rung's colour and another mark.

    Args:
        gpu: whose times these are, for the title.
        speedups: {rung: {N: times as fast as naive}}, from the first rung to the last.

    Raises:
        ValueError: there are no times.
    """
    lines = {name: dict(sorted(by_n.items())) for name, by_n in speedups.items() if by_n}
    if not lines:
        raise ValueError("There are no times to draw.")
    sizes = sorted({n for by_n in lines.values() for n in by_n})
    top = max(max(by_n.values()) for by_n in lines.values()) * 1.15
    low = min(min(by_n.values()) for by_n in lines.values()) * 0.85
    styles = looks(lines)

    def draw(axes):
        for name, by_n in lines.items():
            colour, mark, nth = styles[name]
            axes.plot(
                list(by_n), list(by_n.values()), color=colour, marker=mark, ms=7 - 2 * (nth > 0),
                lw=2.2, ls="--" if nth else "-",
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="N, tokens", ylabel="times as fast as naive")
        axes.set_title(gpu, loc="left")
        axes.set_xlim(sizes[0] * 0.9, sizes[-1] * 1.12)
        axes.set_ylim(low, top)
        logarithmic(axes, "x", sizes, lambda n, _: f"{n:,.0f}")
        ticks = [t for t in (0.5, 1, 2, 4, 8, 16, 32, 64, 128) if low <= t <= top]
        logarithmic(axes, "y", ticks, lambda t, _: f"{t:g}")
        axes.grid(True, axis="y")
        ends = {name: list(by_n.items())[-1] for name, by_n in lines.items()}
        places = apart({n: math.log(y / low) / math.log(top / low) for n, (_, y) in ends.items()})
        for name, (x, y) in ends.items():
            axes.annotate(
                f"{name}: {y:.3g}×", (x, y), (1.03, places[name]),
                textcoords="axes fraction", va="center", fontsize=13, annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": styles[name][0], "lw": 1.5,
                            "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4},
            )  # fmt: skip

    label = f"How many times as fast as the naive rung, for N of {listed(sizes)}: " + "; ".join(
        f"{name} {list(by_n.values())[-1]:.3g}" for name, by_n in lines.items()
    )
    return chart(draw, (9.8, 4.6), f"{label}.")


def looks(names: Iterable[str]) -> dict[str, tuple[str, str, int]]:
    """Colour and mark of each line, and how many of its rung came before."""
    families: dict[str, int] = {}  # how many lines each rung has so far
    found = {}
    for name in names:
        family = name.split(",")[0]
        nth = families.setdefault(family, 0)
        number = list(families).index(family)
        mark = nth + 2 * (number // len(HUES))  # where hues repeat, marks differ
        found[name] = hue(number), _MARKS[mark % len(_MARKS)], nth
        families[family] += 1
    return found


def apart(places: Mapping[str, float], gap: float = APART) -> dict[str, float]:
    """The same heights, moved as little as it takes to keep labels from touching: `gap` apart.

    None is moved above 1, the axis' top.
    """
    groups: list[tuple[list[str], float]] = []  # names from below, and their middle
    for name in sorted(places, key=places.get):
        mine, middle = [name], places[name]
        while groups and middle - groups[-1][1] < gap * (len(mine) + len(groups[-1][0])) / 2:
            below, _ = groups.pop()
            mine = below + mine
            middle = sum(places[n] for n in mine) / len(mine)
            middle = min(middle, 1 - gap * (len(mine) - 1) / 2)
        groups.append((mine, middle))
    return {
        name: middle + gap * (n - (len(mine) - 1) / 2)
        for mine, middle in groups
        for n, name in enumerate(mine)
    }


def rate_chart(gpu: str, rates: Mapping[str, float]) -> Markup:
    """TFLOPS as bars, the first kernel at the top; those of libraries in another colour.

    Args:
        gpu: whose rates these are, for the title.
        rates: {kernel: TFLOPS}.

    Raises:
        ValueError: there are no rates.
    """
    if not rates:
        raise ValueError("There are no rates to draw.")
    names = list(rates)

    def draw(axes):
        colours = [hue(7) if name in _RIVALS else hue(0) for name in names]
        axes.barh(names, list(rates.values()), color=colours, height=0.62)
        for place, rate in enumerate(rates.values()):
            axes.annotate(
                f"{rate:.0f}", (rate, place), (6, 0), textcoords="offset points", va="center"
            )
        axes.invert_yaxis()
        axes.set_xlim(0, 1.1 * max(rates.values()))
        axes.set(xlabel="TFLOPS")
        axes.set_title(gpu, loc="left")
        axes.grid(True, axis="x")
        axes.set_axisbelow(True)

    said = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    return chart(draw, (9.0, 1.1 + 0.39 * len(names)), f"TFLOPS on {gpu}: {said}.")
