"""Safe softmax of the scores, row by row: maximum, exponentials, sum, weights."""

from collections.abc import Sequence

import numpy as np

from ..canvas import WIDTH, Canvas, Frame, literal, number, told
from ..parts import Grid, label_height, matrix, names_of, outline

HEIGHT = 24  # of a cell
_LEFT, _BETWEEN, _RIGHT = 96, 64, 36


def softmax_rows(
    S, tokens: Sequence[str] | None = None, *, in_detail: Sequence[int] = (0,)
) -> list[Frame]:
    """From the scores S to the weights P.

    Args:
        S: (N, M) scores, q·k / √d; -inf where a key is masked.
        tokens: a name for each row; where S is square, the columns bear the same names.
        in_detail: the rows that are worked out in four steps, the others in one; it opens on the
            first of them.

    Raises:
        ValueError: S is not a matrix of 1 to 8 rows and columns, a row has no finite score, a score
            is +inf or nan, or the names are not as many as the rows.
    """
    S = np.asarray(S, dtype=float)
    rows, columns = names_of(S, tokens, "softmax_rows")
    if np.isnan(S).any() or (S == np.inf).any() or not np.isfinite(S).any(axis=1).all():
        raise ValueError(
            "softmax_rows needs a finite score in each row, and no score that is +inf or nan."
        )
    film = SoftmaxFilm(S, rows, columns)
    frames = [
        film.scene(0).frame(
            "S holds a score for each query (row) and key (column). Softmax makes each of the "
            f"{len(S)} rows weights: none negative, and together 1."
        )
    ]
    opens = -1
    for row, name in enumerate(rows):
        m, total = number(film.largest[row, 0]), number(film.E[row].sum())
        if row not in in_detail:
            caption = f"Row “{name}”: maximum {m}, sum of the exponentials {total}."
            frames.append(film.scene(row + 1, row).frame(caption))
            continue
        captions = (
            f"Row “{name}”: its maximum is {m}.",
            "Subtract the maximum. Now no number is above 0, so no exponential is above 1 and none "
            "overflows. The weights stay the same: numerator and denominator shrink by one factor.",
            f"The exponentials. Their sum is {total}; the largest is 1, so it is never 0.",
            f"Each divided by the sum: these are the weights of row “{name}”.",
        )
        for stage, caption in enumerate(captions):
            frames.append(film.scene(row + (stage == 3), row, stage).frame(caption))
        opens = len(frames) - 1 if row == in_detail[0] else opens
    last = "All rows are done. No row needed another one: on a GPU each can be a block of its own."
    return told([*frames, film.scene(len(S)).frame(last)], opens)


class SoftmaxFilm:
    """S, as much of P as is known, and below S how a row of P comes about."""

    def __init__(self, S: np.ndarray, rows: Sequence[str], columns: Sequence[str]):
        self.S, self.largest = S, S.max(axis=1, keepdims=True)
        self.E = np.exp(S - self.largest)
        self.P = self.E / self.E.sum(axis=1, keepdims=True)
        self.rows = [literal(name) for name in rows]
        wide = min((WIDTH - _LEFT - _BETWEEN - _RIGHT) / (2 * len(columns)), 72)
        self.look = {"cell": (wide, HEIGHT), "hue": "purple", "columns": [*map(literal, columns)]}
        self.top = 34 + label_height(columns, wide)

    def scene(self, done: int, row: int | None = None, stage: int = 3) -> Canvas:
        """`done` rows of P are known; below, `row` is worked out as far as `stage`."""
        S, (count, across) = self.S, self.S.shape
        canvas = Canvas(
            height=self.top + count * HEIGHT + 26 + 3 * (HEIGHT + 6),
            label=f"Softmax of scores, {count} rows by {across} columns.",
        )
        scores = matrix(
            canvas, S, _LEFT, self.top, title="S", shape="scores", rows=self.rows,
            shade=np.abs(S[np.isfinite(S)]).max() or 1.0, **self.look,
        )  # fmt: skip
        weights = matrix(
            canvas, self.P, scores.right + _BETWEEN, self.top, title="P",
            shape="weights: a row adds up to 1", shade=1.0, shown=lambda i, j: i < done,
            **self.look,
        )  # fmt: skip
        if row is None:
            return canvas
        outline(canvas, scores, scores.row(row))
        if stage == 0:
            outline(canvas, scores, [(row, int(S[row].argmax()))], stroke="vermillion")
        if row < done:
            outline(canvas, weights, weights.row(row))
        self._working(canvas, scores, weights.x, row, stage)
        return canvas

    def _working(self, canvas: Canvas, scores: Grid, x: float, row: int, stage: int) -> None:
        """Below S, in its columns: s − m, exp(s − m) and the weight, as far as `stage`."""
        y, m = scores.bottom + 26, self.largest[row, 0]
        E, P = self.E[row], self.P[row]
        steps = (
            ("s − m", self.S[row] - m, f"m = {number(m)}, the maximum of the row"),
            ("exp", E, f"sum = {number(E.sum())}"),
            ("÷ sum", P, f"adds up to {number(P.sum())}"),
        )
        if stage == 0:
            canvas.text(x, y + 18, steps[0][2], size=18, fill="vermillion", bold=True)
        for n, (label, values, remark) in enumerate(steps[:stage]):
            at = y + n * (HEIGHT + 6)
            matrix(canvas, values[None], scores.x, at, cell=self.look["cell"],
                   hue="purple" if n == 2 else "gray", rows=[label])  # fmt: skip
            canvas.text(x, at + 18, remark, size=18, bold=n == stage - 1)
