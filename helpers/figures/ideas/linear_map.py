"""What a projection such as W_Q does to the plane: before, on the way, after, and both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..canvas import SMALL, Canvas, Frame, bracketed, number
from ..palette import MATRIX_HUES
from ..parts import matrix
from ..plane import Plane

_SIDE, _X, _Y = 396, 20, 8
_RIGHT = 500


def linear_map(
    W,
    points,
    labels: Sequence[str] | None = None,
    *,
    name: str = "Q",
    between: int = 3,
) -> list[Frame]:
    """The map x ↦ x·W of row vectors, drawn on the plane.

    Args:
        W: (2, 2); its rows are where (1, 0) and (0, 1) go.
        points: (N, 2), rows of X.
        labels: a name for each point.
        name: which projection: Q, K or V.
        between: how many steps lie between the original plane and the mapped one.

    Raises:
        ValueError: a shape is not as above, or there are more than 10 points.
    """
    W, points = np.asarray(W, dtype=float), np.asarray(points, dtype=float)
    if W.shape != (2, 2) or points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            "linear_map draws maps of the plane: W is 2 × 2 and points N × 2, not "
            f"{W.shape} and {points.shape}."
        )
    if not 1 <= len(points) <= 10:
        raise ValueError(f"linear_map shows 1 to 10 points, not {len(points)}.")
    labels = [f"x_{{{i}}}" for i in range(len(points))] if labels is None else list(labels)
    if len(labels) != len(points):
        raise ValueError(f"linear_map has {len(points)} points, but {len(labels)} labels.")
    mapped = points @ W
    extent = 1.18 * max(1.2, np.abs(points).max(), np.abs(mapped).max(), np.abs(W).max())
    hue = MATRIX_HUES.get(name, "blue")
    low = name.lower()
    # The point whose way is told in numbers: the one that moves most.
    told = int(np.argmax(np.linalg.norm(mapped - points, axis=1)))
    area = abs(np.linalg.det(W))

    def scene(share: float, ghost: bool) -> Canvas:
        canvas = Canvas(
            height=_SIDE + 2 * _Y,
            label=f"The plane with {len(points)} points under the linear map W_{name}.",
        )
        plane = Plane(canvas, _X, _Y, _SIDE, extent)
        now = (1 - share) * np.eye(2) + share * W
        if ghost:
            plane.lattice(stroke="grid")
        plane.lattice(now, stroke=hue if share else "gray", opacity=0.55)
        plane.axes()
        square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
        plane.polygon(square @ now, fill=f"{hue}-fill", fill_opacity=0.6, stroke=hue, weight=1.5)
        for unit in now:
            plane.vector(unit, stroke=hue, weight=3)
        places = points @ now
        for before, after in zip(points if ghost else (), mapped, strict=ghost):
            plane.point(before, fill="paper", stroke="ink", weight=2)
            plane.vector(after, before, stroke="muted", weight=1.5, head=10)
        for place in places:
            plane.point(place, fill="ink")
        for unit, text in zip(now, ("e_1", "e_2"), strict=True):
            text += f"W_{name}" if share == 1 else ""
            plane.label(unit, text, fill=hue, bold=True, size=16)
        for place, label, before in zip(places, labels, points, strict=True):
            plane.label(place, label, away_from=before if ghost else (0, 0), size=16)
        plane.ticks()
        _numbers(canvas, W, points[told], mapped[told], labels[told], name, share)
        return canvas

    frames = [
        scene(0, False).frame(
            "Tokens as points of a plane, with the unit vectors e₁ and e₂. Here X has two columns; "
            f"a model has hundreds, and W_{name} does the same to all of them."
        )
    ]
    for step in range(1, between + 1):
        share = step / (between + 1)
        frames.append(
            scene(share, False).frame(
                f"W_{name} moves every point along; lines stay lines, and the origin stays where "
                f"it is ({100 * share:.0f} % of the way)."
            )
        )
    frames.append(
        scene(1, False).frame(
            f"After the map: {low} = x·W_{name}. e₁ lands on the first row of W_{name}, e₂ on the "
            f"second, and areas are multiplied by {number(area)}, the size of its determinant."
        )
    )
    frames.append(
        scene(1, True).frame(
            f"Both: hollow points are the tokens' x, solid ones their {low} = x·W_{name}. Training "
            "chooses the four numbers, and so which tokens come to point the same way."
        )
    )
    return frames


def _numbers(canvas: Canvas, W, x, q, label: str, name: str, share: float) -> None:
    """W, and one point's way through it in numbers."""
    hue, low = MATRIX_HUES.get(name, "blue"), name.lower()
    matrix(canvas, W, _RIGHT, 70, cell=(76, 40), hue=hue, title=f"W_{name}", shape="2 × 2", size=16)
    canvas.text(_RIGHT + 168, 97, "row 1: where e_1 goes", size=SMALL, fill="muted")
    canvas.text(_RIGHT + 168, 137, "row 2: where e_2 goes", size=SMALL, fill="muted")
    canvas.text(_RIGHT, 210, label, size=18, bold=True)
    look = {"size": 16, "mono": True}
    canvas.text(_RIGHT, 242, f"x = ({number(x[0])}, {number(x[1])})", **look)
    if share < 1:
        return
    terms = [
        f"{low}{'₁₂'[j]} = {_product(x[0], W[0, j])} {_plus(x[1], W[1, j])} = {number(q[j])}"
        for j in range(2)
    ]
    canvas.text(_RIGHT, 278, terms[0], **look)
    canvas.text(_RIGHT, 306, terms[1], **look)
    canvas.text(
        _RIGHT, 342, f"{low} = ({number(q[0])}, {number(q[1])})", **look, bold=True, fill=hue
    )


def _product(a: float, b: float) -> str:
    return f"{bracketed(number(a))}·{bracketed(number(b))}"


def _plus(a: float, b: float) -> str:
    return f"+ {_product(a, b)}"
