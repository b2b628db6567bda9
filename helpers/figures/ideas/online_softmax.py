"""Softmax kept up to date while keys come in blocks: one row, its maximum, its sum, its output.

Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), with the product by V as
in "FlashAttention" (2022): what was added up under an older maximum shrinks by exp(old - new).
"""

from dataclasses import dataclass

import numpy as np

from ..canvas import Canvas, Frame, bracketed, number, telling
from ..parts import Grid, matrix

_LEFT, _TOP = 150, 76
_WIDE = 780  # of all scores together
_CELL = (72, 32)


@dataclass(frozen=True)
class RowState:
    """What a row has come to after some blocks of keys."""

    maximum: float
    sum: float
    output: np.ndarray


@dataclass(frozen=True)
class Update:
    """One block of keys: the state before, the correction, the block's weights, the state after."""

    first: int
    before: RowState
    correction: float
    weights: np.ndarray
    after: RowState


def steps_of(scores, values, block: int) -> list[Update]:
    """One row of attention, a block of keys at a time, in float64.

    Args:
        scores: [n], a row of S.
        values: [n, d], the rows of V.
        block: keys in a block; the last may have fewer.

    Raises:
        ValueError: shapes do not fit, there are no keys, or a block has none.
    """
    scores, values = np.asarray(scores, float), np.asarray(values, float)
    if scores.ndim != 1 or values.ndim != 2 or len(scores) != len(values) or not len(scores):
        raise ValueError(
            "online softmax takes a row of scores and as many rows of values, at least one; got "
            f"shapes {scores.shape} and {values.shape}."
        )
    if block < 1:
        raise ValueError(f"a block has one key or more, not {block}.")
    state = RowState(-np.inf, 0.0, np.zeros(values.shape[1]))
    steps = []
    for first in range(0, len(scores), block):
        s, v = scores[first : first + block], values[first : first + block]
        maximum = max(state.maximum, s.max())
        correction = float(np.exp(state.maximum - maximum))
        weights = np.exp(s - maximum)
        after = RowState(
            float(maximum),
            state.sum * correction + float(weights.sum()),
            state.output * correction + weights @ v,
        )
        steps.append(Update(first, state, correction, weights, after))
        state = after
    return steps


def online_softmax(scores, values, block: int = 4) -> list[Frame]:
    """A row of S meets the keys block by block: three steps for each block, and one to divide.

    Args:
        scores, values, block: as for `steps_of`; at most 12 scores and 4 columns of values.

    Raises:
        ValueError: as for `steps_of`, or there is no room for so many.
    """
    steps = steps_of(scores, values, block)
    scores, values = np.asarray(scores, float), np.asarray(values, float)
    if len(scores) > 12 or values.shape[1] > 4:
        raise ValueError(
            f"there is room for 12 scores and 4 columns of values, not {len(scores)} and "
            f"{values.shape[1]}."
        )
    film = RowFilm(scores, values, block, steps)
    frames = [film.frame(step, part) for step in steps for part in ("scores", "shrink", "add")]
    # What is to be seen is how a later block corrects the sums so far.
    later = 3 * min(1, len(steps) - 1) + 2
    frames[later] = telling(frames[later])
    return [*frames, film.frame(steps[-1], "divide")]


class RowFilm:
    """A row of scores, its weights, and what they add up to, block by block."""

    def __init__(self, scores, values, block: int, steps: list[Update]):
        self.scores, self.values, self.block, self.steps = scores, values, block, steps
        self.cell = (min(_CELL[0], _WIDE / len(scores)), _CELL[1])

    def frame(self, step: Update, part: str) -> Frame:
        canvas = Canvas(height=412, label="Softmax of one row, kept up to date block by block.")
        now = range(step.first, step.first + len(step.weights))
        blocks = -(-len(self.scores) // self.block)
        title = f"block {step.first // self.block + 1} of {blocks}"
        canvas.text(_LEFT, 26, "after the last block" if part == "divide" else title, size=20,
                    bold=True)  # fmt: skip
        current = [] if part == "divide" else now
        self._row(canvas, _TOP, "scores s", self.scores, now.stop, current, "purple")
        weights = self._weights(step, part)
        shown = now.stop if part in ("add", "divide") else step.first
        label = "exp(s − m)" if part != "divide" else "exp(s − m) / l"
        self._row(canvas, _TOP + 72, label, weights, shown, current if part == "add" else [],
                  "green")  # fmt: skip
        self._state(canvas, step, part)
        return canvas.frame(self._caption(step, part))

    def _row(self, canvas, y: float, label: str, values, shown: int, current, hue: str) -> None:
        grid = matrix(
            canvas, np.asarray(values)[None, :], _LEFT, y, cell=self.cell, hue=hue,
            shown=lambda _, column: column < shown, current=[(0, c) for c in current],
        )  # fmt: skip
        canvas.text(_LEFT - 12, grid.centre(0)[1] + 6, label, anchor="end")
        for edge in range(self.block, len(self.scores), self.block):
            x = grid.x + edge * self.cell[0]
            canvas.line(x, y - 8, x, y + self.cell[1] + 8, weight=3)

    def _weights(self, step: Update, part: str) -> np.ndarray:
        """exp(s - m) of all keys so far, under the maximum that holds in this step."""
        state = step.before if part == "scores" else step.after
        with np.errstate(invalid="ignore"):
            weights = np.exp(self.scores - state.maximum)
        return weights / state.sum if part == "divide" else weights

    def _state(self, canvas: Canvas, step: Update, part: str) -> None:
        """The running maximum, sum and output, before and after the block."""
        d = self.values.shape[1]
        before, after = step.before, step.after
        shrunk = RowState(
            after.maximum, before.sum * step.correction, before.output * step.correction
        )
        columns = {"before": before}
        if part in ("shrink", "add"):
            columns |= {f"× {number(step.correction)}": shrunk}
        if part == "add":
            columns |= {"with this block": after}
        if part == "divide":
            columns = {"all keys": after, "divided by l": after}
        y = _TOP + 186
        for row, (name, what) in enumerate(
            (("m", "largest score so far"), ("l", "sum of weights so far"), ("O", "weights · V"))
        ):
            at = y + row * 52 + 22
            canvas.text(_LEFT - 12, at, name, size=18, bold=True, anchor="end")
            canvas.text(_LEFT + 620, at, what, fill="muted")
        for place, (heading, state) in enumerate(columns.items()):
            x = _LEFT + place * 205
            last = place == len(columns) - 1 and part != "scores"
            hue = "vermillion" if last else "gray"
            canvas.text(x, y - 14, heading, bold=last)
            self._box(canvas, x, y, state.maximum, hue)
            divided = part == "divide" and last
            self._box(canvas, x, y + 52, 1.0 if divided else state.sum, hue)
            output = state.output / after.sum if divided else state.output
            grid = Grid(x, y + 104, 184 / d, 32, 1, d)
            canvas.cells(grid.boxes, fill=f"{hue}-fill", stroke=hue)
            for c, value in enumerate(output):
                middle, centre = grid.centre(0, c)
                canvas.text(middle, centre + 5, number(value), anchor="middle", mono=True)

    def _box(self, canvas: Canvas, x: float, y: float, value: float, hue: str) -> None:
        canvas.rect(x, y, 84, 32, fill=f"{hue}-fill", stroke=hue)
        canvas.text(x + 42, y + 22, number(value), anchor="middle", mono=True)

    # ---------------------------------------------------------------- words

    def _caption(self, step: Update, part: str) -> str:
        old, new = step.before.maximum, step.after.maximum
        if part == "scores":
            largest = number(self.scores[step.first : step.first + len(step.weights)].max())
            return f"A block of keys comes: its scores are made, the largest of them is {largest}."
        if part == "shrink":
            if not np.isfinite(old):
                return f"The first block sets the maximum to {number(new)}; nothing is to shrink."
            if new == old:
                return f"The maximum stays {number(old)}: exp(0) = 1, so nothing shrinks."
            return (
                f"The maximum grows from {number(old)} to {number(new)}: what was added up shrinks "
                f"by exp({number(old)} − {bracketed(number(new))}) = {number(step.correction)}."
            )
        if part == "add":
            return (
                "The block's weights are added to the sum, and its rows of V times the weights to "
                "the output. Then the block can be forgotten."
            )
        return (
            "Divided once, at the end: the weights add up to 1, and O is the row that softmax over "
            "all scores at once would give."
        )
