"""What figures of tiled products are made of: matrices with a tile in them, and counts as bars."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from html import escape
from typing import NamedTuple

import numpy as np
from svg import G, Text

from .canvas import MONO, NORMAL, SMALL, SMALLEST, Canvas, number, text_width
from .palette import MATRIX_HUES, colour
from .parts import Grid
from .replay import Held

Cell = tuple[int, int]


class Look(NamedTuple):
    """How the cells of one group are drawn."""

    fill: str | None
    stroke: str
    ink: str = "ink"
    bold: bool = False
    dash: str | None = None


# Of a result: what others compute, what the block at work computes, its sums so far, what is done.
_RESULT_LOOKS = {
    "empty": Look(None, "grid", dash="3 3"),
    "mine": Look(None, "purple", dash="3 3"),
    "sum": Look("faint", "purple"),
    "stored": Look("purple-fill", "purple", bold=True),
}


def value_grid(
    canvas: Canvas,
    x: float,
    y: float,
    shape: tuple[int, int],
    cell: tuple[float, float],
    looks: Mapping[str, Look],
    look_of: Callable[[int, int], str],
    text_of: Callable[[int, int], str],
    widest: str = "",
) -> Grid:
    """A matrix whose cells belong to groups, each group with a look of its own.

    Args:
        shape, cell: rows and columns; width and height of a cell in pixels.
        looks: by name of the group, in the order in which they are drawn.
        look_of, text_of: tell of (row, column) the group and the text. Where one does not fit its
            cell, none is written.
        widest: a text that has to fit as well, so that all frames have one size of text.
    """
    grid = Grid(x, y, *cell, *shape)
    groups: dict[str, list[Cell]] = {name: [] for name in looks}
    for row in range(shape[0]):
        for column in range(shape[1]):
            groups[look_of(row, column)].append((row, column))
    texts = {place: text_of(*place) for places in groups.values() for place in places}
    size = _size([*texts.values(), widest], cell)
    for name, look in looks.items():
        boxes = [grid.box(*place) for place in groups[name]]
        canvas.cells(boxes, fill=look.fill, stroke=look.stroke, weight=1, dash=look.dash)
    for name, look in looks.items() if size else ():
        canvas.add(
            _centred([(*grid.centre(*p), texts[p]) for p in groups[name] if texts[p]], size, look)
        )
    return grid


def operand_grid(
    canvas: Canvas,
    name: str,
    values: np.ndarray,
    x: float,
    y: float,
    shape: tuple[int, int],
    cell: tuple[float, float],
    flat: Callable[[int, int], int],
    held: Container[tuple[str, int]],
) -> tuple[Grid, list[Cell]]:
    """Q or Kᵀ in its hue, with what is held in shared memory set off; the grid and those cells.

    Args:
        name: of the array.
        values: its elements.
        shape, cell: as for `value_grid`.
        flat: gives the place in `values` of (row, column).
        held: (array, place) of the elements that have a copy in shared memory.
    """
    hue, values = MATRIX_HUES[name], values.reshape(-1)
    whole = all(float(v).is_integer() for v in values)
    places = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
    tile = {place for place in places if (name, flat(*place)) in held}
    looks = {
        "other": Look("faint", "grid", "muted"),
        "tile": Look(f"{hue}-fill", hue, "ink", bold=True),
    }
    grid = value_grid(
        canvas, x, y, shape, cell, looks,
        lambda i, j: "tile" if (i, j) in tile else "other",
        lambda i, j: short(values[flat(i, j)], whole),
    )  # fmt: skip
    return grid, sorted(tile)


def shared_grid(
    canvas: Canvas,
    array: str,
    held: Mapping[int, Held],
    x: float,
    y: float,
    edge: int,
    cell: tuple[float, float],
    usual: str,
    widest: str = "",
) -> Grid:
    """A square tile in shared memory under its name, in the hue of the matrix it is a copy of.

    Args:
        array: its name.
        held: what it holds, by place; zeros past the matrices' edges have no source.
        edge: rows and columns.
        cell, widest: as for `value_grid`.
        usual: the matrix whose hue it takes while it holds no copy.
    """
    source = next((word.source[0] for word in held.values() if word.source), usual)
    hue = MATRIX_HUES.get(source, "gray")
    looks = {
        "empty": Look(None, "grid", dash="3 3"),
        "zero": Look("faint", "grid", "muted", dash="3 3"),
        "copy": Look(f"{hue}-fill", hue, bold=True),
    }

    def look_of(i: int, j: int) -> str:
        word = held.get(i * edge + j)
        return "empty" if word is None else "copy" if word.source else "zero"

    def text_of(i: int, j: int) -> str:
        word = held.get(i * edge + j)
        return "" if word is None else short(word.value)

    canvas.text(x, y - 9, array, mono=True, bold=True, fill=hue)
    return value_grid(canvas, x, y, (edge, edge), cell, looks, look_of, text_of, widest)


def result_grid(
    canvas: Canvas,
    x: float,
    y: float,
    shape: tuple[int, int],
    cell: tuple[float, float],
    sums: Mapping[int, float],
    done: Mapping[int, str],
    mine: Container[int],
    whole: bool,
    widest: str,
) -> Grid:
    """The result as a block at work sees it.

    Args:
        shape, cell, widest: as for `value_grid`.
        sums: flat index → sum so far, of the block's elements.
        done: flat index → text of what is stored, of any block's elements.
        mine: the elements that the block computes.
        whole: whether all sums are whole numbers.
    """

    def look_of(i: int, j: int) -> str:
        at = i * shape[1] + j
        if at in done:
            return "stored"
        return "sum" if at in sums else "mine" if at in mine else "empty"

    def text_of(i: int, j: int) -> str:
        at = i * shape[1] + j
        return done.get(at) or (short(sums[at], whole) if at in sums else "")

    return value_grid(canvas, x, y, shape, cell, _RESULT_LOOKS, look_of, text_of, widest)


def _size(texts: list[str], cell: tuple[float, float]) -> float | None:
    """The largest size of text in which all fit their cells, or None."""
    longest = max(texts, key=len)
    for size in range(SMALL, SMALLEST - 1, -1):
        if size <= 0.85 * cell[1] and text_width(longest, size, mono=True) <= cell[0]:
            return size
    return None


def _centred(texts: list[tuple[float, float, str]], size: float, look: Look) -> G:
    """Texts about (x, y), with what they have in common written once."""
    common = {"font-size": size, "text-anchor": "middle", "font-family": MONO}
    common |= {"fill": colour(look.ink)} | ({"font-weight": "600"} if look.bold else {})
    return G(
        elements=[
            Text(x=round(x, 1), y=round(y + 0.36 * size, 1), text=escape(text))
            for x, y, text in texts
        ],
        extra=common,
    )


def frame_of(canvas: Canvas, grid: Grid, cells: Iterable[Cell], stroke: str, weight: float = 3):
    """One thick rectangle around the cells from the first to the last row and column."""
    cells = list(cells)
    if not cells:
        return
    rows, columns = [c[0] for c in cells], [c[1] for c in cells]
    x, y, _, _ = grid.box(min(rows), min(columns))
    across, down = max(columns) - min(columns) + 1, max(rows) - min(rows) + 1
    canvas.rect(
        x, y, across * grid.cell_width, down * grid.cell_height, stroke=stroke, weight=weight
    )


def gauge(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    value: int,
    full: int,
    hue: str,
    label: str,
) -> None:
    """A count as a bar: `label` and number above, full width for `full`; 44 pixels high."""
    canvas.text(x, y, label, size=NORMAL)
    canvas.text(x + width, y, f"{value:,}", size=18, bold=True, anchor="end")
    canvas.rect(x, y + 7, width, 14, fill="faint", stroke="grid")
    if value and full:
        canvas.rect(x, y + 7, width * value / full, 14, fill=f"{hue}-fill", stroke=hue, weight=2)


def short(value: float, whole: bool | None = None) -> str:
    """A value in few characters: a digit behind the point unless whole or beyond ten.

    Args:
        whole: whether it counts as a whole number, where others beside it may not be.
    """
    whole = float(value).is_integer() if whole is None else whole
    return number(value, 0 if whole or abs(value) >= 10 else 1)
