"""The dot product q·k as a measure of direction: in steps, and with a k that can be dragged.

Both pictures are laid out here; `dot_product.js` only moves what depends on k.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import traitlets

from ..canvas import Canvas, Frame, bracketed, number, pair, product, told
from ..plane import Plane
from ..player import Figure, module

_SIDE, _X, _Y = 404, 20, 8
_TEXT = 500
_GAUGE = {"x": _TEXT, "y": 308, "width": 430, "height": 22}
# What is written of a k, and where: x, y, size, whether bold, colour.
_LINES = {
    "k": (_TEXT, 72, 20, False, "orange"),
    "terms": (_TEXT, 122, 18, False, "ink"),
    "dot": (_TEXT, 162, 30, True, "purple"),
    "angle": (_TEXT, 212, 18, False, "ink"),
    "cosine": (_TEXT, 240, 18, False, "ink"),
    "verdict": (_TEXT, 394, 18, True, "ink"),
}
# In words, from which cosine on.
_VERDICTS = (
    (0.9, "nearly the same direction: q·k ≈ |q|·|k|"),
    (0.1, "less than 90° apart: q·k > 0"),
    (-0.1, "about at right angles: q·k ≈ 0"),
    (-0.9, "more than 90° apart: q·k < 0"),
    (-2.0, "nearly opposite: q·k ≈ −|q|·|k|"),
)


def dot_product(q, ks, labels: Sequence[str] | None = None) -> list[Frame]:
    """q·k for one query and several keys, a step for each.

    Args:
        q: (2,), not zero.
        ks: (M, 2), one to ten keys.
        labels: a name for each key.

    Raises:
        ValueError: a shape is not as above, or q is zero.
    """
    q, ks = _vector(q, "q"), np.asarray(ks, dtype=float)
    if ks.ndim != 2 or ks.shape[1] != 2 or not 1 <= len(ks) <= 10:
        raise ValueError(f"dot_product takes 1 to 10 keys of two numbers each, not {ks.shape}.")
    names = ["k"] * len(ks) if labels is None else list(labels)
    if len(names) != len(ks):
        raise ValueError(f"dot_product has {len(ks)} keys, but {len(names)} labels.")
    view = _around(q, ks)
    frames = []
    for k, name in zip(ks, names, strict=True):
        who = "k" if labels is None else f"The key of “{name}”"
        frames.append(
            _whole(q, k, view).frame(
                f"{who} is {number(_degrees(q, k), 0)}° from q, and q·k = {number(q @ k)}: the "
                "length of q times what k reaches along q, negative where that is backwards."
            )
        )
    return told(frames, int((ks @ q).argmax()))


class DotProduct(Figure):
    """q·k of two vectors of the plane; k follows the mouse, a finger or the arrow keys.

    Args:
        q, k: two numbers each; q is not zero. Assign them to move the arrows.
        extent: the largest coordinate shown; room for both vectors unless given.

    `k` follows the viewer when the arrow is let go.

    Raises:
        ValueError: q is zero, or a vector has not two finite numbers.
    """

    _esm = module("ideas/dot_product.js")
    q = traitlets.List(traitlets.Float()).tag(sync=True)
    k = traitlets.List(traitlets.Float()).tag(sync=True)
    extent = traitlets.Float().tag(sync=True)
    # What does not depend on k, and where the rest goes.
    scene = traitlets.Unicode().tag(sync=True)
    layout_of = traitlets.Dict(
        {
            "plane": {"x": _X, "y": _Y, "side": _SIDE},
            "gauge": _GAUGE,
            "lines": {name: list(place[:3]) for name, place in _LINES.items()},
            "verdicts": [list(verdict) for verdict in _VERDICTS],
        }
    ).tag(sync=True)

    def __init__(self, q=(2.0, 1.0), k=(0.5, 1.5), *, extent: float | None = None, **options):
        q, k = _vector(q, "q"), _vector(k, "k", zero=True)
        options = {
            "name": "Dot product",
            "alt": "Two vectors q and k in the plane and their dot product; k can be moved.",
        } | options
        extent = _extent(q, k, (2.0, 2.0)) if extent is None else float(extent)
        super().__init__(q=q.tolist(), k=k.tolist(), extent=extent, **options)

    @traitlets.validate("q", "k")
    def _two_numbers(self, proposal) -> list[float]:
        name = proposal["trait"].name
        return _vector(proposal["value"], name, zero=name == "k").tolist()

    @traitlets.observe("q", "extent")
    def _redraw(self, change) -> None:
        if self.q and self.extent:
            q = np.array(self.q)
            self.scene = _still(q, _everywhere(q, self.extent))[0].svg()

    @property
    def value(self) -> float:
        """q·k."""
        return float(np.dot(self.q, self.k))

    def stills(self) -> list[tuple[str, str]]:
        q, k = np.array(self.q), np.array(self.k)
        caption = f"q·k = {number(q @ k)} for q = {pair(q)} and k = {pair(k)}."
        return [(_whole(q, k, _everywhere(q, self.extent)).svg(), caption)]


class _View(NamedTuple):
    """What is shown of the plane, and of q·k: from `least` to `most`."""

    extent: float
    centre: tuple[float, float]
    least: float
    most: float


def _everywhere(q, extent: float) -> _View:
    """The plane around the origin, for a k that may go anywhere in it."""
    most = _most(q, extent)
    return _View(extent, (0.0, 0.0), -most, most)


def _around(q, ks) -> _View:
    """The square that the arrows need: quadrants in which none is stay outside."""
    feet = np.outer(ks @ q / (q @ q), q)
    ends = np.vstack([np.zeros(2), q, ks, feet])
    low, high = ends.min(axis=0), ends.max(axis=0)
    extent = 0.6 * float((high - low).max())
    # Room for the numbers below and left of the axes.
    low, high = np.minimum(low, -0.2 * extent), np.maximum(high, 0.1 * extent)
    extent = max(extent, 0.55 * float((high - low).max()))
    products = [0.0, *(ks @ q)]
    least, most = min(products), max(products)
    if least < 0:  # to compare what is on both sides of 0
        most = max(most, -least)
        least = -most
    return _View(extent, tuple((low + high) / 2), 1.1 * least, 1.1 * most or 1.0)


def _still(q, view: _View) -> tuple[Canvas, Plane]:
    """The plane with q, the line it lies on, and the gauge's empty bar."""
    canvas = Canvas(
        height=_SIDE + 2 * _Y, label="Vectors q and k of the plane, and their dot product."
    )
    plane = Plane(canvas, _X, _Y, _SIDE, view.extent, view.centre)
    plane.lattice()
    plane.axes()
    plane.through(q, stroke="blue", dash="3 5", weight=1.5)
    plane.ticks()
    plane.vector(q, stroke="blue", weight=4)
    plane.label(q, "q", fill="blue", bold=True, size=22)
    canvas.text(_TEXT, 40, f"q = {pair(q)}", size=20, mono=True, fill="blue")
    canvas.text(_TEXT, 290, "q·k", size=18, bold=True, fill="purple")
    x, y, width, height = _GAUGE.values()
    canvas.rect(x, y, width, height, fill="faint", stroke="grid")
    zero = x + width * _share(0, view)
    canvas.line(zero, y - 6, zero, y + height + 6, stroke="ink", weight=2)
    for value in sorted({view.least, 0.0, view.most}):
        share = _share(value, view)
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        text = number(value, 1) if value else "0"
        canvas.text(x + share * width, y + height + 22, text, anchor=anchor, fill="muted")
    return canvas, plane


def _share(value: float, view: _View) -> float:
    """Where on the gauge a value is, 0 to 1."""
    share = (value - view.least) / (view.most - view.least)
    return max(0.0, min(1.0, share))


def _whole(q, k, view: _View) -> Canvas:
    """The picture with k in it."""
    canvas, plane = _still(q, view)
    foot = (q @ k) / (q @ q) * q
    canvas.line(*plane.at(k), *plane.at(foot), stroke="muted", weight=2, dash="4 4")
    canvas.line(*plane.at((0, 0)), *plane.at(foot), stroke="purple", weight=7, opacity=0.75)
    plane.vector(k, stroke="orange", weight=4)
    plane.label(k, "k", fill="orange", bold=True, size=22)
    x, y, width, height = _GAUGE.values()
    start, end = sorted((_share(0, view), _share(q @ k, view)))
    canvas.rect(x + width * start, y, width * (end - start), height, fill="purple", stroke="none")
    texts = _texts(q, k)
    for name, (left, base, size, bold, fill) in _LINES.items():
        canvas.text(
            left, base, texts[name], size=size, bold=bold, fill=fill, mono=name != "verdict"
        )
    return canvas


def _texts(q, k) -> dict[str, str]:
    """What `dot_product.js` writes too, for the same vectors."""
    lengths = float(np.linalg.norm(q)), float(np.linalg.norm(k))
    cosine = (q @ k) / (lengths[0] * lengths[1]) if lengths[1] else 0.0
    return {
        "k": f"k = {pair(k)}",
        "terms": " + ".join(map(product, q, k)),
        "dot": f"q·k = {number(q @ k)}",
        "angle": f"θ = {number(_degrees(q, k), 0)}°",
        "cosine": "|q|·|k|·cos θ = "
        f"{number(lengths[0])}·{number(lengths[1])}·{bracketed(number(cosine))}",
        "verdict": _verdict(q, k),
    }


def _vector(values, name: str, zero: bool = False) -> np.ndarray:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (2,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} has two finite numbers, not {values}.")
    if not zero and not vector.any():
        raise ValueError(f"{name} must not be zero: it would have no direction.")
    return vector


def _extent(*vectors) -> float:
    return 1.25 * float(np.abs(vectors).max())


def _most(q, extent: float) -> float:
    """The largest q·k in the plane that is shown: k in the corner that q points to."""
    return float(np.abs(q).sum() * extent)


def _degrees(q, k) -> float:
    """The angle between them, 0 to 180; 90 where k is zero."""
    if not np.any(k):
        return 90.0
    return math.degrees(math.atan2(abs(q[0] * k[1] - q[1] * k[0]), q @ k))


def _verdict(q, k) -> str:
    cosine = math.cos(math.radians(_degrees(q, k)))
    return next(text for bound, text in _VERDICTS if cosine >= bound)
