"""Which lane holds which elements of the matrices that `mma` multiplies, lane by lane.

The layout is the simulator's own, which multiplies by it; see PTX ISA, "Matrix Fragments for
mma.m16n8k16 with floating point type".
"""

from typing import NamedTuple

import numpy as np
from svg import G, Path, Style, Text

from helpers.simulator.isa.tensor.mma_fragments import fragment_layout

from ..canvas import MONO, NORMAL, Canvas, Frame, ranges, text_width
from ..events import LANES
from ..palette import colour
from ..parts import Grid

SHAPE = (16, 8, 16)  # m, n and k of mma.m16n8k16
REGISTER_HUES = ("blue", "orange", "green", "purple")

_WIDTHS, _HEIGHT = {"A": 16, "B": 25, "C": 16}, 20  # of a cell; B has one column a number
_LEFT, _TOP, _GAP = 28, 88, 42
# Rules in place of attributes, since there are many cells. Inside a frame they speak of that frame
# alone; the player sees to that.
_RULES = (
    ".lane path {{ fill: {paper}; stroke: {grid}; stroke-width: 1px; }} "
    ".lane text {{ fill: {muted}; font: {size}px {mono}; text-anchor: middle; }} "
    ".lane.on text {{ fill: {ink}; font-weight: 700; }} "
    ".lane:hover path {{ fill: {yellow}; stroke: {ink}; stroke-width: 3px; }} "
    ".lane:hover text {{ fill: {ink}; font-weight: 700; }}"
)


class Operand(NamedTuple):
    """A matrix of an mma: rows and columns of element i of lane l are at [i, l]."""

    name: str
    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    pairs: bool  # whether two elements share a register of 32 bits


def operands() -> tuple[Operand, Operand, Operand]:
    """A, B and C of mma.m16n8k16 with 16-bit factors and sums of 32 bits."""
    m, n, k = SHAPE
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    return tuple(
        Operand(name.upper(), shape, *fragment_layout("m16n8k16", name), name != "c")
        for name, shape in shapes.items()
    )


def fragments() -> list[Frame]:
    """The fragments of each lane in turn; a lane that the pointer is on is marked as well."""
    found = operands()
    return [_frame(found, lane) for lane in range(LANES)]


def registers(operand: Operand, lane: int) -> list[str]:
    """What each register of a lane holds, in words."""
    rows, columns = operand.rows[:, lane], operand.columns[:, lane]
    texts = []
    for first in range(0, len(rows), 2):
        r, c = rows[first : first + 2], columns[first : first + 2]
        if r[0] == r[1]:
            texts.append(f"row {r[0]}, columns {c[0]}–{c[1]}")
        else:
            texts.append(f"rows {r[0]}–{r[1]}, column {c[0]}")
    return texts


def _frame(found: tuple[Operand, ...], lane: int) -> Frame:
    canvas = Canvas(
        height=_TOP + 16 * _HEIGHT + 8, label=f"Elements of A, B and C that lane {lane} holds."
    )
    g, t = divmod(lane, 4)
    canvas.text(_LEFT, 24, f"lane {lane}", size=20, bold=True)
    canvas.text(_LEFT + 110, 24, f"g = lane / 4 = {g}", size=18, mono=True)
    canvas.text(_LEFT + 340, 24, f"t = lane % 4 = {t}", size=18, mono=True)
    names = {"yellow": "yellow-fill"} | {name: name for name in ("paper", "grid", "muted", "ink")}
    colours = {name: colour(of) for name, of in names.items()}
    canvas.add(Style(text=_RULES.format(mono=MONO, size=NORMAL, **colours)))
    grids, x = [], _LEFT
    for operand in found:
        rows, columns = operand.shape
        grid = Grid(x, _TOP, _WIDTHS[operand.name], _HEIGHT, rows, columns)
        grids.append(grid)
        canvas.text(x, _TOP - 30, f"{operand.name}, {rows} × {columns}", bold=True)
        _margins(canvas, grid)
        x = grid.right + _GAP
    canvas.text(grids[0].right + 11, _TOP + 166, "×", size=24, anchor="middle")
    canvas.text(grids[1].right + 11, _TOP + 166, "→", size=24, anchor="middle")
    # A lane's cells of all three matrices make one group, so that pointing at one marks all.
    for other in [*(n for n in range(LANES) if n != lane), lane]:
        canvas.add(_cells(found, grids, other, marked=other == lane))
    _list(canvas, found, grids, lane)
    said = "; ".join(_said(operand, lane) for operand in found)
    return canvas.frame(f"Lane {lane} holds {said}.")


def _margins(canvas: Canvas, grid: Grid) -> None:
    look = {"fill": "muted", "mono": True}
    for row in range(0, grid.rows, 2):
        canvas.text(grid.x - 6, grid.centre(row)[1] + 4.5, str(row), anchor="end", **look)
    for column in range(0, grid.columns, 2):
        canvas.text(grid.centre(0, column)[0], grid.y - 7, str(column), anchor="middle", **look)


def _cells(found, grids, lane: int, marked: bool) -> G:
    boxes, texts = [], []
    for operand, grid in zip(found, grids, strict=True):
        for number in range(0, len(operand.rows), 2):
            places = [
                (operand.rows[i, lane], operand.columns[i, lane]) for i in (number, number + 1)
            ]
            x, y, width, height = grid.around(places)
            boxes.append((number // 2, f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"))
            texts.append(Text(x=x + width / 2, y=y + height / 2 + 4.5, text=str(lane)))
    if not marked:
        shapes = [Path(d="".join(d for _, d in boxes))]
    else:
        shapes = [
            Path(d=d, extra={"style": f"fill: {colour(REGISTER_HUES[n] + '-fill')}; "
                             f"stroke: {colour('ink')}; stroke-width: 3px"})
            for n, d in boxes
        ]  # fmt: skip
    return G(elements=[*shapes, *texts], class_=["lane", "on"] if marked else ["lane"])


def _said(operand: Operand, lane: int) -> str:
    """All that a lane holds of a matrix; its rows and columns cross in every element."""
    parts = []
    for name, numbers in (("row", operand.rows), ("column", operand.columns)):
        mine = sorted(set(map(int, numbers[:, lane])))
        parts.append(f"{name}{'s' * (len(mine) > 1)} {ranges(mine)}")
    return f"of {operand.name} {' and '.join(parts)}"


def _names(operand: Operand) -> list[str]:
    small, count = operand.name.lower(), len(operand.rows) // 2
    if operand.pairs:
        return [f"{small}[{n}]" for n in range(count)]
    return [f"{small}[{2 * n}] {small}[{2 * n + 1}]" for n in range(count)]


def _list(canvas: Canvas, found, grids, lane: int) -> None:
    """What the lane's registers hold, beside the matrices."""
    x, y = grids[-1].right + 12, _TOP + 12.0
    for operand in found:
        texts = registers(operand, lane)
        for number, (name, text) in enumerate(zip(_names(operand), texts, strict=True)):
            hue = REGISTER_HUES[number]
            canvas.rect(x, y - 12, 14, 14, fill=f"{hue}-fill", stroke=hue)
            canvas.text(x + 20, y, name, mono=True)
            after = x + 26 + text_width(name, mono=True)
            if not operand.pairs:  # two names leave no room behind them
                after, y = x + 20, y + 22
            canvas.text(after, y, text)
            y += 25
        y += 16
