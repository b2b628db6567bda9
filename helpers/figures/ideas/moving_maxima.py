"""Where the maxima of rows move along their tiles of keys, and where a warp rescales for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..canvas import Canvas, Frame, counted, told

TOGETHER = 8  # rows that lanes of a warp decide on together
_LEFT, _TOP, _WIDTH, _HEIGHT = 150.0, 70.0, 780.0, 256.0


class Moves(NamedTuple):
    """Rows along their tiles.

    Attributes:
        moved: [rows, tiles] whether a row's own maximum grew by more than the slack.
        rescaled: [groups, tiles] whether the rows of a group took new maxima.
    """

    moved: np.ndarray
    rescaled: np.ndarray


def moves(scores: np.ndarray, tile: int = 64, slack: float = 0.0) -> Moves:
    """Walk along tiles of keys as `10e_rescale.cu` does.

    Args:
        scores: [rows, keys] as powers of two; eight rows at a time decide together.
        tile: keys in a tile.
        slack: powers of two that a maximum may grow by without a new one being taken.

    Raises:
        ValueError: rows are no multiple of eight.
    """
    rows, keys = scores.shape
    if rows % TOGETHER:
        raise ValueError(f"Rows decide in groups of {TOGETHER}, and {rows} are no multiple of it.")
    tiles = math.ceil(keys / tile)
    kept = np.full((rows // TOGETHER, TOGETHER), -np.inf)
    moved = np.zeros((rows, tiles), bool)
    rescaled = np.zeros((rows // TOGETHER, tiles), bool)
    for t in range(tiles):
        largest = scores[:, t * tile : (t + 1) * tile].max(axis=1).reshape(kept.shape)
        grown = largest > kept + slack
        moved[:, t] = grown.ravel()
        rescaled[:, t] = grown.any(axis=1)
        kept = np.where(rescaled[:, t, None], np.maximum(kept, largest), kept)
    return Moves(moved, rescaled)


def moving_maxima(
    scores: np.ndarray, tile: int = 64, slacks: Sequence[float] = (0.0, 8.0)
) -> list[Frame]:
    """A cell for each row and tile: where the maximum moved, and what is rescaled with it.

    The first frame rescales always, as the kernels before do; then one for each slack.

    Args:
        scores, tile: as for `moves`.
        slacks: as `slack` there.
    """
    always = moves(scores, tile, slacks[0])
    frames = [_frame(always, np.ones_like(always.rescaled), "always", tile)]
    for slack in slacks:
        found = moves(scores, tile, slack)
        frames.append(_frame(found, found.rescaled, f"SLACK = {slack:g}", tile))
    return told(frames, 1)


def _frame(found: Moves, rescaled: np.ndarray, rule: str, tile: int) -> Frame:
    rows, tiles = found.moved.shape
    wide, high = _WIDTH / tiles, _HEIGHT / rows
    done, of = int(rescaled.sum()), rescaled.size
    label = f"{rule}: {done} of {of} rescales, for {rows} rows and {tiles} tiles of keys."
    canvas = Canvas(960, _TOP + _HEIGHT + 76, label)
    canvas.text(20, 32, rule, size=20, bold=True)
    canvas.text(_LEFT, 32, f"{done} of {of} times eight rows are rescaled", size=18)
    canvas.text(_LEFT, 58, f"tiles of {tile} keys, from the first to the last →", fill="muted")
    boxes = {
        (row, t): (_LEFT + t * wide, _TOP + row * high, wide - 1, high - 1)
        for row in range(rows)
        for t in range(tiles)
    }
    groups = rescaled.repeat(TOGETHER, axis=0)
    for mask, look in (
        (~groups, {"fill": "faint", "stroke": "none"}),
        (groups & ~found.moved, {"fill": "orange-fill", "stroke": "none"}),
        (found.moved, {"fill": "vermillion", "stroke": "none"}),
    ):
        canvas.cells([boxes[place] for place in zip(*np.nonzero(mask), strict=True)], **look)
    for group in range(rows // TOGETHER):
        top = _TOP + group * TOGETHER * high
        first = group * TOGETHER
        middle = top + TOGETHER * high / 2 + 5
        canvas.text(_LEFT - 12, middle, f"rows {first}–{first + TOGETHER - 1}", anchor="end")
        canvas.line(_LEFT, top, _LEFT + _WIDTH, top, stroke="muted")
    y = _TOP + _HEIGHT + 24
    for x, fill, text in (
        (_LEFT, "vermillion", "its maximum moved"),
        (_LEFT + 220, "orange-fill", "multiplied by 1 with the others"),
        (_LEFT + 530, "faint", "left alone"),
    ):
        canvas.rect(x, y, 18, 14, fill=fill, stroke="muted")
        canvas.text(x + 26, y + 13, text)
    moved = counted(int(found.moved.sum()), "time")
    return canvas.frame(
        f"{rule}: maxima move {moved} in {found.moved.size:,} cells, and eight rows are rescaled "
        f"{done} of {of} times."
    )
