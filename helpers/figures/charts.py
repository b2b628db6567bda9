"""Charts by matplotlib, as SVG that takes its colours from the page."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence

from ..measure.tables import size_of
from .drawing import HUES, Markup, hue

# Charts alone need it, which load it themselves. Here it only comes early: in a chapter's first
# cell, and not when the first chart is waited for.
with contextlib.suppress(ImportError):
    import matplotlib.backends.backend_svg  # noqa: F401
    import matplotlib.figure  # noqa: F401

# matplotlib wants real colours; these two stand for the page's own until the SVG is written.
_INK, _GRID = "#010203", "#040506"
_PAGE = {_INK: "currentColor", _GRID: "color-mix(in srgb, currentColor 22%, transparent)"}
# Hues move a little towards the page's ink: darker on white and lighter on black.
_PAGE |= {colour: f"color-mix(in srgb, {colour} 80%, currentColor)" for colour in HUES}
_RC = {
    "svg.fonttype": "none",  # text stays text: readable, selectable, in the page's colour
    "font.size": 13,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "axes.titlesize": 13,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "legend.frameon": False,
}


def memory_chart(sizes: Sequence[int], d: int, limits: Mapping[str, float] | None = None) -> Markup:
    """Bytes of Q, K, V, O and of S, P against N, for one head in fp32, on logarithmic axes.

    Args:
        sizes: values of N.
        d: columns of Q, K, V and O.
        limits: name → bytes of memories to mark by a horizontal line.
    """
    from matplotlib.ticker import FixedLocator, NullLocator

    from helpers.problem.attention import memory

    def draw(axes):
        bytes_of = [memory(n, d) for n in sizes]
        axes.plot(sizes, [b["S"] + b["P"] for b in bytes_of], "o-", color=hue(5), lw=2.5)
        axes.plot(
            sizes, [b["Q"] + b["K"] + b["V"] + b["O"] for b in bytes_of], "o-", color=hue(0), lw=2.5
        )
        last = bytes_of[-1]
        _label(axes, sizes[-1], last["S"] + last["P"], "S and P: 8·N² bytes", hue(5))
        _label(axes, sizes[-1], 4 * last["Q"], f"Q, K, V, O: 16·N·d bytes\n(d = {d})", hue(0))
        for name, amount in (limits or {}).items():
            axes.axhline(amount, color=_INK, lw=1, ls="--", alpha=0.7)
            axes.annotate(name, (sizes[0], amount), (0, 4), textcoords="offset points", fontsize=13)
        axes.set(xscale="log", yscale="log", xlabel="N, tokens", ylabel="bytes")
        axes.set_xlim(sizes[0] * 0.9, sizes[-1] * 1.1)
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
        axes.xaxis.set_minor_locator(NullLocator())
        exponents = range(18, 40, 3)
        axes.yaxis.set_major_locator(FixedLocator([2**e for e in exponents]))
        axes.yaxis.set_major_formatter(lambda amount, _: size_of(amount))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(2**19, 2**38)
        axes.grid(True, axis="y")

    return _chart(
        draw, (9.6, 4.1), f"Memory of S and P, and of Q, K, V and O, for N of {_listed(sizes)}."
    )


def _label(axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text, (x, y), (10, 0), textcoords="offset points", va="center", color=colour, weight="bold",
        annotation_clip=False,
    )  # fmt: skip


def _listed(values: Iterable[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def _chart(draw, inches: tuple[float, float], label: str) -> Markup:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        figure = Figure(inches, layout="constrained")
        axes = figure.subplots()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]  # without the XML declaration, which HTML has no place for
    for stand_in, colour in _PAGE.items():
        text = text.replace(stand_in, colour)
    width = f"{inches[0] * 96:.0f}px"
    return Markup(text.replace("<svg ", f'<svg style="max-width:{width}" ', 1), label)
