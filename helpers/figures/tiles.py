"""What figures of tiled products are made of: matrices with a tile in them, and counts as bars."""

from collections.abc import Callable, Container, Iterable, Mapping
from html import escape
from typing import NamedTuple

import numpy as np
from svg import G, Text

from .canvas import MONO, NORMAL, SMALLEST, Canvas, fitting, number, text_width
from .palette import MATRIX_HUES, colour
from .parts import Grid
from .replay import Element, Held

Cell = tuple[int, int]

_MARGIN = 4  # of a cell, at least so many pixels beside its number, or the number is set closer


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
    grid: Grid,
    looks: Mapping[str, Look],
    content: Callable[[int], tuple[str, str]],
    widest: str = "",
) -> None:
    """A matrix whose cells belong to groups, each group with a look of its own.

    Args:
        looks: by name of the group, in the order in which they are drawn.
        content: tells of a cell's number, row by row, the group and the text. Where one does not
            fit its cell, none is written.
        widest: a text that has to fit as well, so that all frames have one size of text.
    """
    cells: dict[str, list[tuple[Cell, str]]] = {name: [] for name in looks}
    for at, place in enumerate(grid.places):
        group, text = content(at)
        cells[group].append((place, text))
    texts = [text for found in cells.values() for _, text in found]
    longest = max([*texts, widest], key=len)
    largest = min(NORMAL, 0.85 * grid.cell_height)
    size = fitting(longest, grid.cell_width, largest, SMALLEST)
    tight = size and text_width(longest, size, mono=True) > grid.cell_width - _MARGIN
    for name, look in looks.items():
        boxes = [grid.box(*place) for place, _ in cells[name]]
        canvas.cells(boxes, fill=look.fill, stroke=look.stroke, weight=1, dash=look.dash)
    for name, look in looks.items() if size else ():
        found = [(*grid.centre(*place), text) for place, text in cells[name] if text]
        canvas.add(centred(found, size, look.ink, look.bold, spacing=-1 if tight else 0))


def cells_of(name: str, d: int, elements: Iterable[Element]) -> list[Cell]:
    """Where elements of Q or K, of `d` columns, lie in a picture, in which K stands as Kᵀ."""
    found = [divmod(at, d) for array, at in elements if array == name]
    return found if name == "Q" else [(column, row) for row, column in found]


def operand_grid(
    canvas: Canvas, grid: Grid, name: str, values: np.ndarray, held: Iterable[Element]
) -> list[Cell]:
    """Q or Kᵀ in its hue, with what is held in shared memory set off; returns those cells.

    Args:
        name: of the array, Q or K.
        values: its elements, [N, d].
        held: the elements that have a copy in shared memory.
    """
    hue, shown = MATRIX_HUES[name], values.T if name == "K" else values
    whole = all(float(v).is_integer() for v in values.flat)
    tile = set(cells_of(name, values.shape[1], held))
    looks = {
        "other": Look("faint", "grid", "muted"),
        "tile": Look(f"{hue}-fill", hue, "ink", bold=True),
    }

    def content(at: int) -> tuple[str, str]:
        place = divmod(at, grid.columns)
        return "tile" if place in tile else "other", short(shown[place], whole)

    value_grid(canvas, grid, looks, content)
    return sorted(tile)


def shared_grid(
    canvas: Canvas,
    grid: Grid,
    array: str,
    held: Mapping[int, Held],
    usual: str,
    widest: str = "",
) -> None:
    """A tile in shared memory under its name, in the hue of the matrix it is a copy of.

    Args:
        array: its name.
        held: what it holds, by place; zeros past the matrices' edges have no source.
        usual: the matrix whose hue it takes while it holds no copy.
        widest: as for `value_grid`.
    """
    source = next((word.source[0] for word in held.values() if word.source), usual)
    hue = MATRIX_HUES.get(source, "gray")
    looks = {
        "empty": Look(None, "grid", dash="3 3"),
        "zero": Look("faint", "grid", "muted", dash="3 3"),
        "copy": Look(f"{hue}-fill", hue, bold=True),
    }

    def content(at: int) -> tuple[str, str]:
        word = held.get(at)
        if word is None:
            return "empty", ""
        return "copy" if word.source else "zero", short(word.value)

    canvas.text(grid.x, grid.y - 9, array, mono=True, bold=True, fill=hue)
    value_grid(canvas, grid, looks, content, widest)


def result_grid(
    canvas: Canvas,
    grid: Grid,
    sums: Mapping[int, float],
    done: Mapping[int, str],
    mine: Container[int],
    whole: bool,
    widest: str,
) -> None:
    """The result as a block at work sees it.

    Args:
        sums: flat index → sum so far, of the block's elements.
        done: flat index → text of what is stored, of any block's elements.
        mine: the elements that the block computes.
        whole: whether all sums are whole numbers.
        widest: as for `value_grid`.
    """

    def content(at: int) -> tuple[str, str]:
        if at in done:
            return "stored", done[at]
        if at in sums:
            return "sum", short(sums[at], whole)
        return "mine" if at in mine else "empty", ""

    value_grid(canvas, grid, _RESULT_LOOKS, content, widest)


def centred(
    texts: Iterable[tuple[float, float, str]],
    size: float,
    ink: str,
    bold: bool = False,
    spacing: float = 0,
) -> G:
    """Texts about (x, y), with what they have in common written once."""
    common = {"font-size": size, "text-anchor": "middle", "font-family": MONO, "fill": colour(ink)}
    common |= {"font-weight": "600"} if bold else {}
    common |= {"letter-spacing": spacing} if spacing else {}
    return G(
        elements=[
            Text(x=round(x + spacing / 2, 1), y=round(y + 0.36 * size, 1), text=escape(text))
            for x, y, text in texts
        ],
        extra=common,
    )


def frame_of(canvas: Canvas, grid: Grid, cells: Iterable[Cell], stroke: str, weight: float = 3):
    """One thick rectangle around the cells from the first to the last row and column."""
    cells = list(cells)
    if cells:
        canvas.rect(*grid.around(cells), stroke=stroke, weight=weight)


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
    canvas.text(x, y, label)
    canvas.text(x + width, y, f"{value:,}", size=18, bold=True, anchor="end")
    bar(canvas, x, y + 7, width, 14, value, full, hue)


def bar(
    canvas: Canvas, x: float, y: float, width: float, height: float, value: int, full: int, hue: str
) -> None:
    """A count as a bar, as wide as it goes for `full`."""
    canvas.rect(x, y, width, height, fill="faint", stroke="grid")
    if value:
        canvas.rect(x, y, width * value / full, height, fill=f"{hue}-fill", stroke=hue, weight=2)


def short(value: float, whole: bool | None = None) -> str:
    """A value in few characters: a digit behind the point unless whole or beyond ten.

    Args:
        whole: whether it counts as a whole number, where others beside it may not be.
    """
    whole = float(value).is_integer() if whole is None else whole
    return number(value, 0 if whole or abs(value) >= 10 else 1)
