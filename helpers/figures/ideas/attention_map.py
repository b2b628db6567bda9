"""An attention map: who looks at whom, as a matrix of weights and as links between the tokens."""

from collections.abc import Sequence

import numpy as np

from ..canvas import NORMAL, WIDTH, Canvas, Frame, literal, telling, text_width
from ..parts import label_height, matrix, outline

MOST = 12
_LEFT, _CELL, _ROW = 104, 60, (24, 34)
_GAP = 48  # between the matrix and the names beside it
_THICKEST = 16  # pixels of a link whose weight is 1
_FAINT = 0.05  # links of less weight are left out


def attention_map(P, tokens: Sequence[str]) -> list[Frame]:
    """The weights of all queries at once, and then of one query after the other.

    Args:
        P: (N, N) weights: row i says how much token i takes from each token.
        tokens: N names.

    Raises:
        ValueError: P is not square, has more than 12 rows, holds anything but weights from 0 to 1,
            or the names are not as many as its rows.
    """
    P = np.asarray(P, dtype=float)
    count = len(tokens)
    if P.shape != (count, count) or not 1 <= count <= MOST:
        raise ValueError(
            f"attention_map shows 1 to {MOST} tokens and a weight for each pair of them, not "
            f"{count} tokens and weights of shape {P.shape}."
        )
    if not ((P >= 0) & (P <= 1 + 1e-6)).all():
        raise ValueError("attention_map shows weights, which are numbers from 0 to 1.")
    film = LookFilm(P, tokens)
    whole = film.scene(None).frame(
        "The whole map. The thicker a link, the more the token on its left takes from the one "
        f"on its right; links under {_percent(_FAINT)} are left out."
    )
    frames = [telling(whole)]
    for i, token in enumerate(tokens):
        order = np.argsort(-P[i], kind="stable")[:3]
        shares = [f"{_percent(P[i, j])} from “{tokens[j]}”" for j in order if P[i, j] >= _FAINT]
        frames.append(film.scene(i).frame(f"“{token}” takes {', '.join(shares)}."))
    return frames


class LookFilm:
    """The matrix of weights, and links from the tokens that look to those that they look at."""

    def __init__(self, P: np.ndarray, tokens: Sequence[str]):
        self.P, self.tokens, count = P, tokens, len(tokens)
        self.names = [literal(token) for token in tokens]
        self.side = max(text_width(name) for name in self.names) + 10
        wide = min(_CELL, (WIDTH - _LEFT - _GAP - 2 * self.side - 150) / count)
        self.cell = wide, max(_ROW[0], min(_ROW[1], 300 / count))
        self.top = 40 + label_height(self.names, wide)

    def scene(self, query: int | None) -> Canvas:
        """The links of one token, or of all."""
        count = len(self.names)
        canvas = Canvas(
            height=self.top + count * self.cell[1] + 8,
            label=f"Attention weights of {count} tokens: {', '.join(self.tokens)}.",
        )
        grid = matrix(
            canvas, self.P, _LEFT, self.top, cell=self.cell, hue="purple", title="P",
            shape="row: who looks; column: at whom", rows=self.names, columns=self.names, shade=1.0,
        )  # fmt: skip
        if query is not None:
            outline(canvas, grid, grid.row(query))
        start, end = grid.right + _GAP + self.side, WIDTH - self.side - 4
        canvas.text(start, self.top - 22, "looks", anchor="end", fill="muted")
        canvas.text(end, self.top - 22, "at", fill="muted")
        for weight, i, j in sorted((self.P[place], *place) for place in grid.places):
            if weight >= _FAINT and query in (None, i):
                look = {"weight": _THICKEST * weight, "opacity": 0.6 if query is None else 0.85}
                y1, y2, bend = grid.centre(i)[1], grid.centre(j)[1], 0.45 * (end - start)
                canvas.path(
                    f"M{start + 4:.1f} {y1:.1f}C{start + bend:.1f} {y1:.1f} {end - bend:.1f} "
                    f"{y2:.1f} {end - 6:.1f} {y2:.1f}", stroke="purple", **look,
                )  # fmt: skip
        best = None if query is None else int(self.P[query].argmax())
        for i, name in enumerate(self.names):
            y = grid.centre(i)[1] + 0.36 * NORMAL
            asks = query in (None, i)
            taken = query is None or self.P[query, i] >= _FAINT
            canvas.text(start, y, name, anchor="end", bold=i == query,
                        fill="ink" if asks else "muted")  # fmt: skip
            canvas.text(end, y, name, bold=i == best, fill="ink" if taken else "muted")
        return canvas


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
