"""TFLOPS of several kernels as bars."""

from __future__ import annotations

from collections.abc import Mapping

from ..charts import _chart
from ..drawing import Markup, hue

RIVALS = ("FlashAttention-2", "cuDNN", "memory-efficient")


def flash_chart(gpu: str, rates: Mapping[str, float]) -> Markup:
    """A bar for each kernel, the first at the top; those of libraries in another colour.

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
        colours = [hue(7) if name in RIVALS else hue(0) for name in names]
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
    return _chart(draw, (9.0, 1.1 + 0.45 * len(names)), f"TFLOPS on {gpu}: {said}.")
