"""From a sentence to the matrix X: tokens, their ids, and the rows of the table that these pick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..canvas import (
    LARGE,
    SMALL,
    SMALLEST,
    WIDTH,
    Canvas,
    Frame,
    literal,
    shortened,
    telling,
    text_width,
)  # fmt: skip
from ..parts import elided, matrix

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
    count, d = rows.shape
    sentence = sentence or " ".join(tokens)
    written = shortened(sentence, WIDTH - 2 * _LEFT - 40, LARGE * 1.1)
    size = f"{vocabulary:,} × {d}" if vocabulary else f"vocabulary × {d}"
    # Only the first row of a repeated token needs to say so.
    again = [list(ids).index(token) < number for number, token in enumerate(ids)]

    def scene(known: int, chips: int, current: int | None = None, result=None) -> Canvas:
        canvas = Canvas(
            height=_BELOW + 26 + _high(count) * max(count, 5),
            label=f"The sentence “{sentence}” as {count} tokens, their ids, and a matrix of "
            f"{count} rows and {d} columns.",
        )
        canvas.text(_LEFT, _SENTENCE_Y + 6, f"“{literal(written)}”", size=LARGE, bold=True)
        places = _chips(canvas, tokens, ids, chips, current)
        if chips < 2:
            return canvas
        if known or current is not None:
            picked = 0 if current is None else current
            table = _table(canvas, rows[picked], ids[picked], size, current is not None)
        shown = rows if result is None else result
        values = matrix(
            canvas,
            elided(shown, _COLUMNS),
            _X_X,
            _BELOW + 20,
            cell=(_WIDE, _high(count)),
            title="rows of the table" if result is None and X is not None else "X",
            shape=f"{count} × {d}",
            rows=[literal(token) for token in tokens],
            shown=lambda i, j: i < known,
            current=[] if current is None else [(current, j) for j in range(_width(d))],
        )
        if current is not None:
            x, y = places[current]
            target = table.y + 2.5 * table.cell_height
            # Down from the id, along above the table, and to the row's number.
            above, left = _BELOW - 24, _LEFT - 8
            bends = [(x, y), (x, above), (left, above), (left, target), (left + 10, target)]
            canvas.elbow(bends, stroke="vermillion")
            end = values.centre(current, 0)[1]
            middle = table.right + 26
            first = _X_X - 18 - max(text_width(literal(token)) for token in tokens)
            canvas.elbow(
                [(table.right + 4, target), (middle, target), (middle, end), (first, end)],
                stroke="vermillion",
            )
        return canvas

    frames = [
        scene(0, 0).frame("A sentence is text. A model computes with numbers."),
        scene(0, 1).frame(
            f"A tokenizer cuts the sentence into {count} tokens, all of a fixed vocabulary."
        ),
        scene(0, 2).frame("Each token has a number in the vocabulary, its id."),
    ]
    for number, token in enumerate(tokens):
        same = " It came before: the same id always picks the same row." if again[number] else ""
        frames.append(
            scene(number + 1, 2, number).frame(
                f"“{token}” has id {ids[number]}: row {ids[number]} of the table, {d} numbers, "
                f"becomes row {number}.{same}"
            )
        )
    last = f"X has a row for each of the {count} tokens and {d} columns: X is {count} × {d}."
    if X is None:
        return [*frames, scene(count, 2).frame(last)]
    X = np.asarray(X, dtype=float)
    if X.shape != rows.shape:
        raise ValueError(f"X has shape {X.shape}, the rows of the table {rows.shape}.")
    frames[-1] = telling(frames[-1])
    frames.append(scene(count, 2, result=X).frame(f"Then {then}. {last}"))
    return frames


def _high(count: int) -> float:
    """The height of one of `count` rows, so that a slide has room for all."""
    return max(22.0, min(30.0, 216 / count))


def _width(d: int) -> int:
    return min(d, _COLUMNS)


def _chips(canvas, tokens, ids, stage: int, current: int | None) -> list[tuple[float, float]]:
    """Tokens and, from stage 2 on, their ids; returns the lower ends of the ids."""
    if not stage:
        return []
    room = canvas.width - _LEFT - 120
    widths = [
        20 + max(text_width(token, 18), text_width(str(name), SMALL, mono=True))
        for token, name in zip(tokens, ids, strict=True)
    ]
    gap = 10 if sum(widths) + 10 * len(widths) <= room else 4
    shrink = min(1.0, (room - gap * len(widths)) / sum(widths))
    canvas.text(_LEFT, _TOKENS_Y + 5, "tokens", size=SMALL, fill="muted")
    if stage > 1:
        canvas.text(_LEFT, _IDS_Y + 5, "ids", size=SMALL, fill="muted")
    ends = []
    x = _LEFT + 84.0
    for number, (token, name, width) in enumerate(zip(tokens, ids, widths, strict=True)):
        width *= shrink
        look = {"fill": "vermillion-fill", "stroke": "vermillion", "weight": 3}
        look = look if number == current else {"fill": "faint", "stroke": "grid"}
        canvas.rect(x, _TOKENS_Y - 17, width, 34, r=8, **look)
        least = SMALL if shrink == 1 else SMALLEST
        size = max(least, 18 * min(1.0, (width - 8) / text_width(token, 18)))
        name_shown = literal(shortened(token, width - 4, size))
        canvas.text(x + width / 2, _TOKENS_Y + 6, name_shown, size=size, anchor="middle")
        if stage > 1:
            canvas.line(x + width / 2, _TOKENS_Y + 17, x + width / 2, _IDS_Y - 13, stroke="grid")
            bold = number == current
            at = (x + width / 2, _IDS_Y + 5)
            canvas.text(*at, str(name), size=least, anchor="middle", mono=True, bold=bold)
        ends.append((x + width / 2, _IDS_Y + 11))
        x += width + gap
    return ends


def _table(canvas, row, name, size: str, lit: bool):
    """Five rows of the table of embeddings, the one that was picked in the middle."""
    width = _width(len(row))
    picked = elided(row[None], _COLUMNS)[0]
    around = [["·"] * width, ["·"] * width]
    table = matrix(
        canvas,
        [*around, picked if lit else ["·"] * width, *around],
        _TABLE_X,
        _BELOW + 20,
        cell=(_WIDE, 30),
        title="table of embeddings",
        shape=size,
        rows=["⋮", "", str(name) if lit else "", "", "⋮"],
        current=[(2, j) for j in range(width)] if lit else [],
    )
    return table
