"""What figures of tiled products are made of: matrices with a tile in them, and counts as bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import NamedTuple

from svg import G, Text

from .draw import MONO, NORMAL, SMALL, SMALLEST, Canvas, number, text_width
from .palette import colour
from .parts import Grid

Cell = tuple[int, int]


class Look(NamedTuple):
    """How the cells of one group are drawn."""

    fill: str | None
    stroke: str
    ink: str = "ink"
    bold: bool = False
    dash: str | None = None


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


def short(value: float, whole: bool) -> str:
    """A value in few characters: a digit behind the point unless whole or beyond ten."""
    return number(value, 0 if whole or abs(value) >= 10 else 1)


def counted(number: int, what: str) -> str:
    """A number of things: "1 element", "1,024 elements"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
