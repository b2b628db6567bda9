"""How blocks fill a multiprocessor, what keeps more out, and how many waves a grid makes."""

from __future__ import annotations

from collections.abc import Mapping

from ...simulator import Occupancy
from ..canvas import NORMAL, Canvas, counted, text_width
from ..palette import hue

_CELL, _GAP = 16.0, 3.0  # of a warp's place
_ACROSS = 16  # places in a row
_BAR = 90.0  # of a resource that is used up
_WAVES = 8  # at most drawn one by one
_LEFT, _MIDDLE, _RIGHT = 4.0, 290.0, 640.0
_NAMES = ("registers", "shared memory", "warps", "blocks")


def filling(kernels: Mapping[str, Occupancy]) -> Canvas:
    """A multiprocessor's places for warps, filled by the blocks that it holds at once.

    Beside them what of each resource these blocks use, and the waves in which a grid's blocks come,
    with what the last one leaves empty.

    Args:
        kernels: what `report.occupancy(...)` or `simulator.occupancy(...)` gives, by the name to
            show.
    """
    heights = [_height(one) for one in kernels.values()]
    label = " ".join(f"{name}: {one.sentence}" for name, one in kernels.items())
    canvas = Canvas(960, sum(heights) + 8, label)
    top = 4.0
    for (name, one), height in zip(kernels.items(), heights, strict=True):
        canvas.text(_LEFT, top + 16, name, bold=True, mono=True)
        _places(canvas, one, top + 30)
        _resources(canvas, one, top + 30)
        if one.grid_blocks and one.blocks:
            _waves(canvas, one, top + 30)
        top += height
    return canvas


def _height(one: Occupancy) -> float:
    rows = -(-one.gpu.warps // _ACROSS)
    return max(rows * _CELL + 100, 4 * 24 + 44) + 18


def _places(canvas: Canvas, one: Occupancy, top: float) -> None:
    """A cell for each warp that a multiprocessor can hold, in the hue of its block."""
    boxes = [
        (_LEFT + n % _ACROSS * _CELL, top + n // _ACROSS * _CELL, _CELL - _GAP, _CELL - _GAP)
        for n in range(one.gpu.warps)
    ]
    for block in range(one.blocks):
        colour = hue(block)
        own = boxes[block * one.block_warps : (block + 1) * one.block_warps]
        canvas.cells(own, fill=colour, stroke=colour)
    canvas.cells(boxes[one.warps :], stroke="gray")
    bottom = top + -(-one.gpu.warps // _ACROSS) * _CELL + 16
    held = f"{counted(one.blocks, 'block')} of {counted(one.block_warps, 'warp')}"
    canvas.lines(
        _LEFT,
        bottom,
        [f"An SM of the {one.gpu.name}:", held, f"{one.warps} of {one.gpu.warps} warps"],
    )


def _resources(canvas: Canvas, one: Occupancy, top: float) -> None:
    """How much of each resource the blocks use; the one with no room for another is marked."""
    room = _MIDDLE + text_width("shared memory", NORMAL) + 8
    for number, name in enumerate(_NAMES):
        y = top + 24 * number
        limits = one.limits[name]
        used = min(1.0, one.blocks / limits) if limits else 1.0
        decides = name == one.limit
        colour = "vermillion" if decides else "blue"
        canvas.text(room - 8, y + 13, name, anchor="end", bold=decides)
        canvas.rect(room, y, _BAR, 16, stroke="gray")
        canvas.rect(room, y, _BAR * used, 16, fill=colour, stroke=colour)
        canvas.text(room + _BAR + 8, y + 13, f"room for {limits}", bold=decides)
    canvas.text(_MIDDLE, top + 4 * 24 + 16, f"What keeps more out: {one.limit}")


def _waves(canvas: Canvas, one: Occupancy, top: float) -> None:
    """The grid's blocks, one wave below the other."""
    waves = one.waves()
    whole = int(waves)
    left = waves - whole
    shown = [1.0] * min(whole, _WAVES // 2 if whole > _WAVES // 2 + 1 else whole)
    shown += [left] if left else []
    at, width = _RIGHT, 24.0
    canvas.text(at, top + 13, f"{one.grid_blocks:,} blocks, {one.at_once:,} at once")
    skipped = whole - len(shown) + bool(left)
    for number, full in enumerate(shown):
        if skipped and number == len(shown) - bool(left):
            canvas.text(at, top + 56, "…")
            at += 20
        canvas.rect(at, top + 26, width, 44, stroke="gray")
        canvas.rect(at, top + 26 + 44 * (1 - full), width, 44 * full, fill="green", stroke="green")
        at += width + 5
    said = f"{waves:,.0f} waves" if waves >= 100 else f"{waves:.3g} waves"
    empty = one.tail()
    lines = [said + (f"; the last is {1 - empty:.0%} full" if empty and whole else "")]
    if one.busy() < one.gpu.multiprocessors:
        lines = [f"{one.busy()} of {one.gpu.multiprocessors} SMs have work"]
    canvas.lines(_RIGHT, top + 94, lines)
