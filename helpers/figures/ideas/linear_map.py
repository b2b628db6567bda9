"""What a projection such as W_Q does to the plane: before, on the way, after, and both."""

from collections.abc import Sequence

import numpy as np

from ..canvas import Canvas, Frame, number, pair, product, told
from ..palette import MATRIX_HUES
from ..parts import matrix
from ..plane import Plane

_SIDE, _X, _Y = 396, 20, 8
_RIGHT = 500


def linear_map(W, points, labels: Sequence[str] | None = None, *, name: str = "Q") -> list[Frame]:
    """The map x ↦ x·W of row vectors, drawn on the plane.

    Args:
        W: (2, 2); its rows are where (1, 0) and (0, 1) go.
        points: (N, 2), rows of X.
        labels: a name for each point.
        name: which projection: Q, K or V.

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
    film = MapFilm(W, points, labels, name)
    low, area = name.lower(), abs(np.linalg.det(W))
    steps = [
        (0, False, "Tokens as points of a plane, with the unit vectors e₁ and e₂. Here X has two "
         f"columns; a model has hundreds, and W_{name} does the same to all of them."),
    ]  # fmt: skip
    for share in (0.25, 0.5, 0.75):
        steps.append(
            (share, False, f"W_{name} moves every point along; lines stay lines, and the origin "
             f"stays where it is ({100 * share:.0f} % of the way)."),
        )  # fmt: skip
    steps += [
        (1, False, f"After the map: {low} = x·W_{name}. e₁ lands on the first row of W_{name}, e₂ "
         f"on the second, and areas are multiplied by {number(area)}, the size of its "
         "determinant."),
        (1, True, f"Both: hollow points are the tokens' x, solid ones their {low} = x·W_{name}. "
         "Training chooses the four numbers, and so which tokens come to point the same way."),
    ]  # fmt: skip
    frames = [film.scene(share, ghost).frame(caption) for share, ghost, caption in steps]
    return told(frames, -1)


class MapFilm:
    """The plane on its way to where the map takes it, and one point's way in numbers."""

    def __init__(self, W: np.ndarray, points: np.ndarray, labels: Sequence[str], name: str):
        self.W, self.points, self.labels, self.name = W, points, labels, name
        self.mapped = points @ W
        far = max(np.abs(values).max() for values in (points, self.mapped, W))
        self.extent = 1.18 * max(1.2, far)
        self.hue = MATRIX_HUES.get(name, "blue")

    def scene(self, share: float, ghost: bool) -> Canvas:
        """The plane a `share` of the way; with `ghost`, what was before as well."""
        canvas = Canvas(
            height=_SIDE + 2 * _Y,
            label=f"The plane with {len(self.points)} points under the linear map W_{self.name}.",
        )
        plane = Plane(canvas, _X, _Y, _SIDE, self.extent)
        hue, now = self.hue, (1 - share) * np.eye(2) + share * self.W
        if ghost:
            plane.lattice(stroke="grid")
        plane.lattice(now, stroke=hue if share else "gray", opacity=0.55)
        plane.axes()
        square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
        plane.polygon(square @ now, fill=f"{hue}-fill", fill_opacity=0.6, stroke=hue, weight=1.5)
        for unit in now:
            plane.vector(unit, stroke=hue, weight=3)
        places = self.points @ now
        for before, after in zip(self.points, self.mapped, strict=True) if ghost else ():
            plane.point(before, fill="paper", stroke="ink", weight=2)
            plane.vector(after, before, stroke="muted", weight=1.5, head=10)
        for place in places:
            plane.point(place, fill="ink")
        for unit, text in zip(now, ("e_1", "e_2"), strict=True):
            text += f"W_{self.name}" if share == 1 else ""
            plane.label(unit, text, fill=hue, bold=True, size=16)
        for place, label, before in zip(places, self.labels, self.points, strict=True):
            plane.label(place, label, away_from=before if ghost else (0, 0), size=16)
        plane.ticks()
        self._numbers(canvas, share)
        return canvas

    def _numbers(self, canvas: Canvas, share: float) -> None:
        """W, and in numbers the way of the point that moves most."""
        told = int(np.argmax(np.linalg.norm(self.mapped - self.points, axis=1)))
        x, q, W = self.points[told], self.mapped[told], self.W
        hue, low = self.hue, self.name.lower()
        matrix(canvas, W, _RIGHT, 70, cell=(76, 40), hue=hue, title=f"W_{self.name}",
               shape="2 × 2", size=16)  # fmt: skip
        canvas.text(_RIGHT + 168, 97, "row 1: where e_1 goes", fill="muted")
        canvas.text(_RIGHT + 168, 137, "row 2: where e_2 goes", fill="muted")
        canvas.text(_RIGHT, 210, self.labels[told], size=18, bold=True)
        look = {"size": 16, "mono": True}
        canvas.text(_RIGHT, 242, f"x = {pair(x)}", **look)
        if share < 1:
            return
        for j, y in enumerate((278, 306)):
            terms = " + ".join(product(x[i], W[i, j]) for i in range(2))
            canvas.text(_RIGHT, y, f"{low}{'₁₂'[j]} = {terms} = {number(q[j])}", **look)
        canvas.text(_RIGHT, 342, f"{low} = {pair(q)}", **look, bold=True, fill=hue)
