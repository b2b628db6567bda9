"""How much memory attention takes, as a chart."""

import contextlib
from collections.abc import Mapping, Sequence

from ...measure.charts import INK, Markup, chart, hue, listed, logarithmic
from ...measure.tables import size_of
from ...problem.attention import memory

# Charts alone need it, which load it themselves. Here it only comes early: in a chapter's first
# cell, and not when the first chart is waited for.
with contextlib.suppress(ImportError):
    import matplotlib.backends.backend_svg  # noqa: F401
    import matplotlib.figure  # noqa: F401


def memory_chart(sizes: Sequence[int], d: int, limits: Mapping[str, float] | None = None) -> Markup:
    """Bytes of Q, K, V, O and of S, P against N, for one head in fp32, on logarithmic axes.

    Args:
        sizes: values of N.
        d: columns of Q, K, V and O.
        limits: name → bytes of memories to mark by a horizontal line.
    """

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
            axes.axhline(amount, color=INK, lw=1, ls="--", alpha=0.7)
            axes.annotate(name, (sizes[0], amount), (0, 4), textcoords="offset points", fontsize=13)
        axes.set(xscale="log", yscale="log", xlabel="N, tokens", ylabel="bytes")
        axes.set_xlim(sizes[0] * 0.9, sizes[-1] * 1.1)
        logarithmic(axes, "x", sizes, lambda n, _: f"{n:,.0f}")
        logarithmic(axes, "y", [2**e for e in range(18, 40, 3)], lambda amount, _: size_of(amount))
        axes.set_ylim(2**19, 2**38)
        axes.grid(True, axis="y")

    return chart(
        draw, (9.6, 4.1), f"Memory of S and P, and of Q, K, V and O, for N of {listed(sizes)}."
    )


def _label(axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text, (x, y), (10, 0), textcoords="offset points", va="center", color=colour, weight="bold",
        annotation_clip=False,
    )  # fmt: skip
