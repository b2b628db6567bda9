"""O = P·V, row by row: each output is a weighted mean of the rows of V."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..canvas import WIDTH, Canvas, Frame, literal, number
from ..parts import elided, label_height, matrix, names_of, outline

_COLUMNS = 4
HEIGHT = 30  # of a cell
_LEFT, _CELL = 96, (53, HEIGHT)


def weighted_rows(P, V, tokens: Sequence[str] | None = None, *, in_detail: int = 1) -> list[Frame]:
    """The rows of V, weighted by a row of P, add up to a row of O.

    Args:
        P: (N, M) weights.
        V: (M, d) values.
        tokens: a name for each row of P, which are those of V too where P is square.
        in_detail: the first so many rows of O are added up term by term, the others in one step.

    Raises:
        ValueError: the shapes do not fit, P has more than 8 rows or columns, or the names are not
            as many as its rows.
    """
    P, V = np.asarray(P, dtype=float), np.asarray(V, dtype=float)
    rows, columns = names_of(P, tokens, "weighted_rows")
    if V.ndim != 2 or len(V) != P.shape[1]:
        raise ValueError(
            f"weighted_rows multiplies P by V: P of {P.shape} needs V of {P.shape[1]} rows, not "
            f"{V.shape}."
        )
    shown_rows, shown_columns = [literal(n) for n in rows], [literal(n) for n in columns]
    O = P @ V  # noqa: E741
    count, across, d = *P.shape, V.shape[1]
    wide = min(d, _COLUMNS)
    room = WIDTH - 2 * _LEFT - 2 * wide * _CELL[0] - 30 - 12
    cell = min(room / across, 60), HEIGHT
    top = 34 + label_height(columns, cell[0])
    tallest = max(count, across)

    def scene(done: int, row: int | None = None, term: int | None = None) -> Canvas:
        """`done` rows of O are known; of `row` the terms up to `term`, or all of them."""
        canvas = Canvas(
            height=top + tallest * HEIGHT + 26 + HEIGHT + 12,
            label=f"The product of P, {count} × {across}, and V, {across} × {d}, row by row.",
        )
        taken = across if term is None else term + 1
        result = O.copy()
        lit = np.zeros((across, wide))
        if row is not None:
            result[row] = P[row, :taken] @ V[:taken]
            lit[:taken] = P[row, :taken, None]
            if term is not None:
                lit[:term] *= 0.35
        weights = matrix(
            canvas, P, _LEFT, top, cell=cell, hue="purple", title="P", shape=f"{count} × {across}",
            rows=shown_rows, columns=shown_columns, shade=1.0,
        )  # fmt: skip
        values = matrix(
            canvas, elided(V, _COLUMNS), weights.right + _LEFT, top, cell=_CELL, hue="green",
            title="V", shape=f"{across} × {d}", rows=shown_columns, shade=lit,
        )  # fmt: skip
        output = matrix(
            canvas, elided(result, _COLUMNS), values.right + 30, top, cell=_CELL, hue="vermillion",
            title="O", shape=f"{count} × {d}", shown=lambda i, j: i < done or i == row,
        )  # fmt: skip
        if row is None:
            return canvas
        outline(canvas, output, [(row, j) for j in range(wide)])
        if term is None:
            outline(canvas, weights, [(row, j) for j in range(across)])
            return canvas
        outline(canvas, weights, [(row, term)])
        outline(canvas, values, [(term, j) for j in range(wide)])
        y = top + tallest * HEIGHT + 26
        label = f"{number(P[row, term])} × row {term} of V"
        product = elided(P[row, term] * V[term : term + 1], _COLUMNS)
        strip = matrix(canvas, product, values.x, y, cell=_CELL, hue="green", rows=[label])
        end = output.right + 6
        middle = strip.centre(0)[1]
        target = output.centre(row)[1]
        bends = [(strip.right + 4, middle), (end + 6, middle), (end + 6, target), (end - 4, target)]
        canvas.elbow(bends, stroke="vermillion")
        return canvas

    frames = [
        scene(0).frame(
            f"P holds a weight for each pair of tokens, V a row of {d} numbers for each token. "
            "A row of O is the rows of V added up, each times its weight."
        )
    ]
    for row, name in enumerate(rows):
        if row >= in_detail:
            most = int(P[row].argmax())
            frames.append(
                scene(row, row).frame(
                    f"Row “{name}” of O: most of it, {number(P[row, most])}, comes from "
                    f"“{columns[most]}”."
                )
            )
            continue
        for term, other in enumerate(columns):
            start = f"Row “{name}” starts from" if term == 0 else "Add"
            end = " The row is complete." if term == across - 1 else ""
            frames.append(
                scene(row, row, term).frame(
                    f"{start} {number(P[row, term])} times the row of “{other}”.{end}"
                )
            )
    last = f"O is complete: for each of the {count} tokens a mean of the rows of V, weighted by P."
    return [*frames, scene(count).frame(last)]
