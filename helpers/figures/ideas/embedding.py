"""From a sentence to the matrix X: tokens, their ids, and the rows of the table that these pick."""

from collections.abc import Sequence

import numpy as np

from ..canvas import (
    LARGE,
    NORMAL,
    SMALLEST,
    WIDTH,
    Canvas,
    Frame,
    literal,
    shortened,
    telling,
    text_width,
)  # fmt: skip
from ..parts import Grid, elided, matrix

_COLUMNS, _WIDE, _MOST = 5, 58, 10
_LEFT, _TABLE_X, _X_X = 24, 92, 630
_SENTENCE_Y, _TOKENS_Y, _IDS_Y, _BELOW = 22, 68, 112, 186


def embedding(
    tokens: Sequence[str],
    ids: Sequence[int],
    rows,
    X=None,
    *,
    sentence: str = "",
    vocabulary: int | None = None,
    then: str = "the position of each token is added and each row normalised",
) -> list[Frame]:
    """A sentence becomes a matrix, token by token.

    Args:
        tokens: N texts, as the tokenizer cuts them.
        ids: N numbers of rows in the table of embeddings.
        rows: (N, d), the table's rows at `ids`.
        X: (N, d), what the attention gets, where that is not `rows` itself.
        sentence: as written; the tokens joined by spaces unless given.
        vocabulary: rows of the whole table.
        then: in words, what makes X of `rows`.

    Raises:
        ValueError: the lengths differ, or there are none or more than 10 tokens.
    """
    rows = np.asarray(rows, dtype=float)
    if not (len(tokens) == len(ids) == len(rows)) or rows.ndim != 2:
        raise ValueError(
            f"embedding needs as many ids and rows as tokens, not {len(tokens)} tokens, "
            f"{len(ids)} ids and rows of shape {rows.shape}."
        )
    if not 1 <= len(tokens) <= _MOST:
        raise ValueError(f"embedding shows 1 to {_MOST} tokens, not {len(tokens)}.")
    if X is not None:
        X = np.asarray(X, dtype=float)
        if X.shape != rows.shape:
            raise ValueError(f"X has shape {X.shape}, the rows of the table {rows.shape}.")
    (count, d), ids = rows.shape, list(ids)
    film = SentenceFilm(tokens, ids, rows, sentence or " ".join(tokens), vocabulary)
    name = "X" if X is None else "rows of the table"
    frames = [
        film.scene(0).frame("A sentence is text. A model computes with numbers."),
        film.scene(1).frame(
            f"A tokenizer cuts the sentence into {count} tokens, all of a fixed vocabulary."
        ),
        film.scene(2, name).frame("Each token has a number in the vocabulary, its id."),
    ]
    for row, (token, place) in enumerate(zip(tokens, ids, strict=True)):
        again = ids.index(place) < row
        same = " It came before: the same id always picks the same row." if again else ""
        frames.append(
            film.scene(2, name, row + 1, row).frame(
                f"“{token}” has id {place}: row {place} of the table, {d} numbers, becomes row "
                f"{row}.{same}"
            )
        )
    last = f"X has a row for each of the {count} tokens and {d} columns: X is {count} × {d}."
    if X is None:
        return [*frames, film.scene(2, name, count).frame(last)]
    frames[-1] = telling(frames[-1])
    return [*frames, film.scene(2, "X", count, result=X).frame(f"Then {then}. {last}")]


class SentenceFilm:
    """A sentence, its tokens and ids, the table of embeddings and the rows picked from it."""

    def __init__(
        self,
        tokens: Sequence[str],
        ids: Sequence[int],
        rows: np.ndarray,
        sentence: str,
        vocabulary: int | None,
    ):
        self.tokens, self.ids, self.rows, self.sentence = tokens, ids, rows, sentence
        count, d = rows.shape
        self.table_size = f"{vocabulary:,} × {d}" if vocabulary else f"vocabulary × {d}"
        # The height of a row, so that a slide has room for all.
        self.high = max(22.0, min(30.0, 216 / count))

    def scene(
        self,
        stage: int,
        name: str = "",
        known: int = 0,
        current: int | None = None,
        result: np.ndarray | None = None,
    ) -> Canvas:
        """The sentence, from stage 1 on its tokens, from 2 on their ids and the matrix.

        Args:
            name: of the matrix, of which `known` rows are there.
            current: the token whose row is picked.
            result: what stands in the matrix in place of the rows of the table.
        """
        (count, d), sentence = self.rows.shape, self.sentence
        canvas = Canvas(
            height=_BELOW + 26 + self.high * max(count, 5),
            label=f"The sentence “{sentence}” as {count} tokens, their ids, and a matrix of "
            f"{count} rows and {d} columns.",
        )
        written = literal(shortened(sentence, WIDTH - 2 * _LEFT - 40, LARGE * 1.1))
        canvas.text(_LEFT, _SENTENCE_Y + 6, f"“{written}”", size=LARGE, bold=True)
        places = self._chips(canvas, stage, current)
        if stage < 2:
            return canvas
        table = self._table(canvas, current) if known else None
        values = matrix(
            canvas, elided(self.rows if result is None else result, _COLUMNS), _X_X, _BELOW + 20,
            cell=(_WIDE, self.high), title=name, shape=f"{count} × {d}",
            rows=[literal(token) for token in self.tokens], shown=lambda i, j: i < known,
            current=[] if current is None else [(current, j) for j in range(min(d, _COLUMNS))],
        )  # fmt: skip
        if table is not None and current is not None:
            self._arrows(canvas, places[current], table, values.centre(current)[1])
        return canvas

    def _arrows(self, canvas: Canvas, start: tuple[float, float], table: Grid, end: float) -> None:
        """Down from the id, along above the table, to the row's number, and to the matrix."""
        x, y = start
        target = table.y + 2.5 * table.cell_height
        above, left = _BELOW - 24, _LEFT - 8
        bends = [(x, y), (x, above), (left, above), (left, target), (left + 10, target)]
        canvas.elbow(bends, stroke="vermillion")
        middle = table.right + 26
        first = _X_X - 18 - max(text_width(literal(token)) for token in self.tokens)
        bends = [(table.right + 4, target), (middle, target), (middle, end), (first, end)]
        canvas.elbow(bends, stroke="vermillion")

    def _chips(self, canvas: Canvas, stage: int, current: int | None) -> list[tuple[float, float]]:
        """Tokens and, from stage 2 on, their ids; returns the lower ends of the ids."""
        if not stage:
            return []
        room = canvas.width - _LEFT - 120
        widths = [
            20 + max(text_width(token, 18), text_width(str(place), mono=True))
            for token, place in zip(self.tokens, self.ids, strict=True)
        ]
        gap = 10 if sum(widths) + 10 * len(widths) <= room else 4
        shrink = min(1.0, (room - gap * len(widths)) / sum(widths))
        least = NORMAL if shrink == 1 else SMALLEST
        canvas.text(_LEFT, _TOKENS_Y + 5, "tokens", fill="muted")
        if stage > 1:
            canvas.text(_LEFT, _IDS_Y + 5, "ids", fill="muted")
        ends = []
        x = _LEFT + 84.0
        for n, token in enumerate(self.tokens):
            width, lit = widths[n] * shrink, n == current
            look = {"fill": "faint", "stroke": "grid"}
            if lit:
                look = {"fill": "vermillion-fill", "stroke": "vermillion", "weight": 3}
            canvas.rect(x, _TOKENS_Y - 17, width, 34, r=8, **look)
            size = max(least, 18 * min(1.0, (width - 8) / text_width(token, 18)))
            shown, middle = literal(shortened(token, width - 4, size)), x + width / 2
            canvas.text(middle, _TOKENS_Y + 6, shown, size=size, anchor="middle")
            if stage > 1:
                canvas.line(middle, _TOKENS_Y + 17, middle, _IDS_Y - 13, stroke="grid")
                canvas.text(middle, _IDS_Y + 5, str(self.ids[n]), size=least, anchor="middle",
                            mono=True, bold=lit)  # fmt: skip
            ends.append((middle, _IDS_Y + 11))
            x += width + gap
        return ends

    def _table(self, canvas: Canvas, current: int | None) -> Grid:
        """Five rows of the table of embeddings, the one that was picked in the middle."""
        dots = ["·"] * min(self.rows.shape[1], _COLUMNS)
        cells, names, lit = [dots] * 5, ["⋮", "", "", "", "⋮"], []
        if current is not None:
            (cells[2],) = elided(self.rows[current : current + 1], _COLUMNS)
            names[2], lit = str(self.ids[current]), [(2, j) for j in range(len(dots))]
        return matrix(
            canvas, cells, _TABLE_X, _BELOW + 20, cell=(_WIDE, 30), title="table of embeddings",
            shape=self.table_size, rows=names, current=lit,
        )  # fmt: skip
