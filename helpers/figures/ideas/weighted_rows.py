"""O = P·V, row by row: each output is a weighted mean of the rows of V."""

from collections.abc import Sequence

import numpy as np

from ..canvas import WIDTH, Canvas, Frame, literal, number, told
from ..parts import Grid, elided, label_height, matrix, names_of, outline

_COLUMNS = 4
HEIGHT = 30  # of a cell
_LEFT, _CELL = 96, (53, HEIGHT)


def weighted_rows(P, V, tokens: Sequence[str] | None = None, *, in_detail: int = 0) -> list[Frame]:
    """The rows of V, weighted by a row of P, add up to a row of O: one of them term by term.

    Args:
        P: (N, M) weights.
        V: (M, d) values.
        tokens: a name for each row of P, which are those of V too where P is square.
        in_detail: the row that is added up term by term; it opens on the largest of them.

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
    film = MeanFilm(P, V, rows, columns)
    frames = [
        film.scene(0).frame(
            f"P holds a weight for each pair of tokens, V a row of {V.shape[1]} numbers for each "
            "token. A row of O is the rows of V added up, each times its weight."
        )
    ]
    for row, name in enumerate(rows):
        if row != in_detail:
            most = int(P[row].argmax())
            caption = f"its largest weight, {number(P[row, most])}, is that of “{columns[most]}”."
            frames.append(film.scene(row, row).frame(f"Row “{name}” of O: {caption}"))
            continue
        for term, other in enumerate(columns):
            start = f"Row “{name}” starts from" if term == 0 else "Add"
            end = " The row is complete." if term == len(columns) - 1 else ""
            caption = f"{start} {number(P[row, term])} times the row of “{other}”.{end}"
            frames.append(film.scene(row, row, term).frame(caption))
    last = f"O is complete: for each of the {len(P)} tokens a mean of the rows of V, weighted by P."
    opens = 1 + in_detail + int(P[in_detail].argmax())
    return told([*frames, film.scene(len(P)).frame(last)], opens)


class MeanFilm:
    """P, V and as much of O as is added up."""

    def __init__(self, P, V, rows: Sequence[str], columns: Sequence[str]):
        self.P, self.V, self.O = P, V, P @ V
        self.rows, self.columns = ([*map(literal, names)] for names in (rows, columns))
        self.wide = min(V.shape[1], _COLUMNS)
        room = WIDTH - 2 * _LEFT - 2 * self.wide * _CELL[0] - 30 - 16
        self.cell = min(room / len(V), 60), HEIGHT
        self.top = 34 + label_height(columns, self.cell[0])
        self.below = self.top + max(P.shape) * HEIGHT + 26

    def scene(self, done: int, row: int | None = None, term: int | None = None) -> Canvas:
        """`done` rows of O are known; of `row` the terms up to `term`, or all of them."""
        P, V = self.P, self.V
        (count, across), d = P.shape, V.shape[1]
        canvas = Canvas(
            height=self.below + HEIGHT + 12,
            label=f"The product of P, {count} × {across}, and V, {across} × {d}, row by row.",
        )
        taken = across if term is None else term + 1
        result, lit = self.O.copy(), np.zeros((across, self.wide))
        if row is not None:
            result[row] = P[row, :taken] @ V[:taken]
            lit[:taken] = P[row, :taken, None]
            if term is not None:
                lit[:term] *= 0.35
        weights = matrix(
            canvas, P, _LEFT, self.top, cell=self.cell, hue="purple", title="P",
            shape=f"{count} × {across}", rows=self.rows, columns=self.columns, shade=1.0,
        )  # fmt: skip
        values = matrix(
            canvas, elided(V, _COLUMNS), weights.right + _LEFT, self.top, cell=_CELL, hue="green",
            title="V", shape=f"{across} × {d}", rows=self.columns, shade=lit,
        )  # fmt: skip
        output = matrix(
            canvas, elided(result, _COLUMNS), values.right + 30, self.top, cell=_CELL,
            hue="vermillion", title="O", shape=f"{count} × {d}",
            shown=lambda i, j: i < done or i == row,
        )  # fmt: skip
        if row is not None:
            outline(canvas, output, output.row(row))
            outline(canvas, weights, weights.row(row) if term is None else [(row, term)])
        if term is not None:
            outline(canvas, values, values.row(term))
            self._product(canvas, values.x, output, row, term)
        return canvas

    def _product(self, canvas: Canvas, x: float, output: Grid, row: int, term: int) -> None:
        """A row of V times its weight, and an arrow to the row of O that it is added to."""
        weight = self.P[row, term]
        product = elided(weight * self.V[term : term + 1], _COLUMNS)
        label = f"{number(weight)} × row {term} of V"
        strip = matrix(canvas, product, x, self.below, cell=_CELL, hue="green", rows=[label])
        end, middle, target = output.right + 6, strip.centre(0)[1], output.centre(row)[1]
        bends = [(strip.right + 4, middle), (end + 6, middle), (end + 6, target), (end - 4, target)]
        canvas.elbow(bends, stroke="vermillion")
