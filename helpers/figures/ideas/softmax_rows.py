"""Safe softmax of the scores, row by row: maximum, exponentials, sum, weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..canvas import WIDTH, Canvas, Frame, literal, number
from ..parts import Grid, label_height, matrix, names_of, outline

HEIGHT = 24  # of a cell
_LEFT, _BETWEEN, _RIGHT = 96, 64, 36


def softmax_rows(S, tokens: Sequence[str] | None = None, *, in_detail: int = 1) -> list[Frame]:
    """From the scores S to the weights P.

    Args:
        S: (N, M) scores, q·k / √d; -inf where a key is masked.
        tokens: a name for each row; where S is square, the columns bear the same names.
        in_detail: the first so many rows are worked out in four steps, the others in one.

    Raises:
        ValueError: S is not a matrix of 1 to 8 rows and columns, a row has no finite score, a score
            is +inf or nan, or the names are not as many as the rows.
    """
    S = np.asarray(S, dtype=float)
    rows, columns = names_of(S, tokens, "softmax_rows")
    shown_rows = [literal(name) for name in rows]
    if np.isnan(S).any() or (S == np.inf).any() or not np.isfinite(S).any(axis=1).all():
        raise ValueError(
            "softmax_rows needs a finite score in each row, and no score that is +inf or nan."
        )
    largest = S.max(axis=1, keepdims=True)
    E = np.exp(S - largest)
    sums = E.sum(axis=1, keepdims=True)
    P = E / sums
    count, across = S.shape
    cell = min((WIDTH - _LEFT - _BETWEEN - _RIGHT) / (2 * across), 72), HEIGHT
    top = 34 + label_height(columns, cell[0])
    full = np.abs(S[np.isfinite(S)]).max() or 1.0

    def scene(done: int, row: int | None = None, stage: int = 3) -> Canvas:
        canvas = Canvas(
            height=top + count * HEIGHT + 26 + 3 * (HEIGHT + 6),
            label=f"Softmax of scores, {count} rows by {across} columns.",
        )
        look = {"cell": cell, "hue": "purple", "columns": [literal(name) for name in columns]}
        scores = matrix(
            canvas, S, _LEFT, top, title="S", shape="scores", rows=shown_rows, shade=full, **look
        )
        weights = matrix(
            canvas, P, scores.right + _BETWEEN, top, title="P", shape="weights: a row adds up to 1",
            shade=1.0, shown=lambda i, j: i < done, **look,
        )  # fmt: skip
        if row is None:
            return canvas
        outline(canvas, scores, [(row, j) for j in range(across)])
        if stage == 0:
            outline(canvas, scores, [(row, int(S[row].argmax()))], stroke="vermillion")
        if row < done:
            outline(canvas, weights, [(row, j) for j in range(across)])
        _working(canvas, scores, weights.x, S[row] - largest[row], E[row], P[row], largest[row, 0],
                 stage)  # fmt: skip
        return canvas

    frames = [
        scene(0).frame(
            "S holds a score for each query (row) and key (column). Softmax makes each of the "
            f"{count} rows weights: none negative, and together 1."
        )
    ]
    for row, name in enumerate(rows):
        m, total = number(largest[row, 0]), number(sums[row, 0])
        if row < in_detail:
            frames += [
                scene(row, row, 0).frame(f"Row “{name}”: its maximum is {m}."),
                scene(row, row, 1).frame(
                    "Subtract the maximum. Now no number is above 0, so no exponential is above 1 "
                    "and none overflows. The weights stay the same: numerator and denominator "
                    "shrink by one factor."
                ),
                scene(row, row, 2).frame(
                    f"The exponentials. Their sum is {total}; the largest is 1, so it is never 0."
                ),
                scene(row + 1, row, 3).frame(
                    f"Each divided by the sum: these are the weights of row “{name}”."
                ),
            ]
        else:
            frames.append(
                scene(row + 1, row).frame(
                    f"Row “{name}”: maximum {m}, sum of the exponentials {total}."
                )
            )
    last = "All rows are done. No row needed another one: on a GPU each can be a block of its own."
    return [*frames, scene(count).frame(last)]


def _working(
    canvas: Canvas, scores: Grid, x: float, shifted, exponentials, weights, m: float, stage: int
) -> None:
    """Below S, in its columns: s − m, exp(s − m) and the weight, as far as `stage`."""
    y = scores.bottom + 26
    cell = scores.cell_width, HEIGHT
    steps = (
        ("s − m", shifted, f"m = {number(m)}, the maximum of the row"),
        ("exp", exponentials, f"sum = {number(exponentials.sum())}"),
        ("÷ sum", weights, f"adds up to {number(weights.sum())}"),
    )
    if stage == 0:
        canvas.text(x, y + 18, steps[0][2], size=18, fill="vermillion", bold=True)
    for number_of, (label, values, remark) in enumerate(steps[:stage]):
        hue = "purple" if number_of == 2 else "gray"
        at = y + number_of * (HEIGHT + 6)
        matrix(canvas, values[None], scores.x, at, cell=cell, hue=hue, rows=[label])
        canvas.text(x, at + 18, remark, size=18, bold=number_of == stage - 1)
