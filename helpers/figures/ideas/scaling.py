"""Why scores are divided by √d: products of random vectors spread as √d, and softmax saturates."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..canvas import Canvas, Frame, number, telling
from ..plane import spacing
from ..tiles import short

KEYS = 8
_BINS = 41
_LEFT, _RIGHT = (150, 340), (540, 400)  # x and width of the two columns of charts
_ROWS, _HEIGHT = (58, 250), 126
_NARROW = 4.0  # the axis after dividing by √d, where σ is 1
_AXIS = {"anchor": "middle", "fill": "muted"}
_TABLE = (
    ("d", 80, "ink"),
    ("√d", 110, "ink"),
    ("σ of q·k", 160, "ink"),
    ("largest weight", 210, "vermillion"),
    ("the same, with ÷ √d", 250, "blue"),
)


def dot_products(dims: Sequence[int], samples: int = 4096, seed: int = 0) -> dict[int, np.ndarray]:
    """q·k of random q and k of d numbers each, all independent with mean 0 and variance 1.

    Returns:
        d → (samples,) products. Their variance is d, as each of d summands has variance 1.
    """
    rng = np.random.default_rng(seed)
    return {
        d: np.einsum("sd,sd->s", rng.normal(size=(samples, d)), rng.normal(size=(samples, d)))
        for d in dims
    }


def scaling(products: Mapping[int, np.ndarray]) -> list[Frame]:
    """q·k and q·k / √d: how both are spread, and what softmax makes of 8 of them.

    Args:
        products: d → samples of q·k, at least 8 of them; see `dot_products`.

    Raises:
        ValueError: there are no products, or too few for a d.
    """
    if not products or min(len(values) for values in products.values()) < KEYS:
        raise ValueError(f"scaling needs at least {KEYS} products for each d.")
    products = {d: np.asarray(values, dtype=float) for d, values in sorted(products.items())}
    reach = max(3.5 * max(values.std() for values in products.values()), _NARROW)
    frames = []
    for d, values in products.items():
        canvas = Canvas(height=412, label=f"q·k of random vectors of {d} numbers, and its softmax.")
        canvas.text(20, 30, f"d = {d}", size=24, bold=True)
        head = f"{len(values):,} products of random vectors", f"softmax over {KEYS} of them"
        for (x, _), text in zip((_LEFT, _RIGHT), head, strict=True):
            canvas.text(x, 30, text, fill="muted")
        scaled = values / math.sqrt(d)
        for y, name, sample, extent, hue in (
            (_ROWS[0], "q·k", values, reach, "vermillion"),
            (_ROWS[1], "q·k / √d", scaled, _NARROW, "blue"),
        ):
            _histogram(canvas, y, sample, extent, hue)
            _softmax(canvas, y, sample[:KEYS], hue)
            canvas.text(20, y + 60, name, size=20, bold=True, fill=hue)
            canvas.text(20, y + 88, f"σ = {number(sample.std())}")
        frames.append(
            canvas.frame(
                f"d = {d}: the standard deviation σ of q·k is {number(values.std())}, and √d is "
                f"{number(math.sqrt(d))}. The largest of {KEYS} weights is "
                f"{_percent(_largest(values))} on average, and {_percent(_largest(scaled))} after "
                "dividing by √d."
            )
        )
    middle = len(frames) // 2
    frames[middle] = telling(frames[middle])
    return [*frames, telling(_summary(products))]


def _largest(values: np.ndarray) -> float:
    """The largest weight of a softmax over 8 values, averaged over all groups of 8."""
    groups = values[: len(values) // KEYS * KEYS].reshape(-1, KEYS)
    return float(_weights(groups).max(axis=1).mean())


def _weights(values: np.ndarray) -> np.ndarray:
    exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


def _histogram(canvas: Canvas, y: float, sample, reach: float, hue: str) -> None:
    """How often a product falls where between -reach and reach; dashed lines at ± σ."""
    x, width = _LEFT
    counts, _ = np.histogram(np.clip(sample, -reach, reach), _BINS, (-reach, reach))
    bar, base = width / _BINS, y + _HEIGHT
    heights = counts / counts.max() * (_HEIGHT - 12)
    boxes = [(x + i * bar + 0.5, base - h, bar - 1, h) for i, h in enumerate(heights) if h > 0]
    canvas.cells(boxes, fill=hue, stroke="none")
    canvas.line(x, base, x + width, base, stroke="muted")

    def at(value: float) -> float:
        return x + width * (value + reach) / (2 * reach)

    for edge in (at(-sample.std()), at(sample.std())):
        canvas.line(edge, y - 2, edge, base, stroke="ink", weight=1.5, dash="5 4")
    step = spacing(reach)
    for tick in range(-math.floor(reach / step), math.floor(reach / step) + 1):
        place = at(tick * step)
        canvas.line(place, base, place, base + 5, stroke="muted")
        canvas.text(place, base + 20, number(tick * step, 0), **_AXIS)


def _softmax(canvas: Canvas, y: float, values: np.ndarray, hue: str) -> None:
    """Eight products as bars of the weight that softmax gives them."""
    x, width = _RIGHT
    weights, base = _weights(values), y + _HEIGHT
    bar = width / KEYS
    canvas.line(x, base, x + width, base, stroke="muted")
    canvas.line(x, y, x + width, y, stroke="grid", dash="3 3")
    canvas.text(x - 14, y + 5, "1", **_AXIS)
    canvas.text(x - 14, base + 4, "0", **_AXIS)
    for key, weight in enumerate(weights):
        middle, top = x + (key + 0.5) * bar, base - weight * _HEIGHT
        canvas.rect(middle - bar / 2 + 5, top, bar - 10, base - top, fill=hue, stroke="none")
        look = {"anchor": "middle", "mono": True}
        canvas.text(middle, top - 5, f"{weight:.2f}", **look)
        canvas.text(middle, base + 18, short(values[key], False), **look, fill="muted")


def _summary(products: Mapping[int, np.ndarray]) -> Frame:
    """Deviation and largest weight for every d, in one table."""
    canvas = Canvas(
        height=412, label="Standard deviation of q·k and the largest weight, for each d."
    )
    lines = [
        (
            str(d),
            number(math.sqrt(d)),
            number(values.std()),
            _percent(_largest(values)),
            _percent(_largest(values / math.sqrt(d))),
        )
        for d, values in products.items()
    ]
    canvas.text(60, 50, f"The largest of {KEYS} weights, on average", size=20, bold=True)
    pitch = min(44, 270 / len(lines))
    x = 44.0
    for column, (title, width, hue) in enumerate(_TABLE):
        x += width
        canvas.text(x, 100, title, anchor="end", bold=True, fill=hue)
        for row, line in enumerate(lines):
            at = (x, 140 + row * pitch)
            canvas.text(*at, line[column], size=18, anchor="end", mono=True)
    canvas.line(60, 112, x, 112, stroke="grid")
    return canvas.frame(
        "q·k adds up d independent products, so its variance is d and its standard deviation √d. "
        "Divided by √d it stays near 1 for every d, and softmax keeps weighing all keys."
    )
