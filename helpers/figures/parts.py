"""Parts that figures are composed of: matrices, the lanes of a warp, legends.

Each takes a `Canvas` and the place of its top left corner in pixels, draws itself and returns
where it lies, so that arrows can be led to it. What is special about a cell shows twice: by colour,
and by its border or a label, for those who cannot tell the colours apart.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..panels.numbers import spans
from .canvas import NORMAL, Canvas, number, text_width
from .events import LANES

# How strongly the largest value colours its cell; more, and the number on it is hard to read.
STRONGEST = 0.5
MOST_NAMED = 8  # rows, and columns, of a matrix over tokens
_TURN = 36  # degrees by which long labels of columns rise


class Grid(NamedTuple):
    """Where a matrix, or a row of cells, lies on its canvas."""

    x: float
    y: float
    cell_width: float
    cell_height: float
    rows: int
    columns: int

    @property
    def width(self) -> float:
        return self.columns * self.cell_width

    @property
    def height(self) -> float:
        return self.rows * self.cell_height

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def box(self, row: int, column: int = 0) -> tuple[float, float, float, float]:
        """(x, y, width, height) of a cell."""
        x, y = self.x + column * self.cell_width, self.y + row * self.cell_height
        return x, y, self.cell_width, self.cell_height

    def row(self, row: int) -> list[tuple[int, int]]:
        """(row, column) of the cells of a row."""
        return [(row, column) for column in range(self.columns)]

    @property
    def places(self) -> list[tuple[int, int]]:
        """(row, column) of all cells, row by row."""
        return [place for row in range(self.rows) for place in self.row(row)]

    @property
    def boxes(self) -> list[tuple[float, float, float, float]]:
        """Where all cells are, row by row."""
        return [self.box(*place) for place in self.places]

    def around(self, places: Iterable[tuple[int, int]]) -> tuple[float, float, float, float]:
        """The box from the first to the last row and column of some cells."""
        rows, columns = zip(*places, strict=True)
        across, down = max(columns) - min(columns) + 1, max(rows) - min(rows) + 1
        x, y, width, height = self.box(min(rows), min(columns))
        return x, y, across * width, down * height

    def centre(self, row: int, column: int = 0) -> tuple[float, float]:
        """The middle of a cell."""
        x, y, width, height = self.box(row, column)
        return x + width / 2, y + height / 2


def matrix(
    canvas: Canvas,
    values,
    x: float,
    y: float,
    *,
    cell: tuple[float, float] = (56, 34),
    hue: str = "gray",
    title: str = "",
    shape: str = "",
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    shade: float | np.ndarray | None = None,
    shown: Callable[[int, int], bool] | None = None,
    current: Iterable[tuple[int, int]] = (),
    size: float = NORMAL,
) -> Grid:
    """A matrix with its values in cells; returns where these lie.

    Args:
        values: a 2-D array of numbers, or rows of texts; a text stands as it is, such as "…".
        cell: width and height of a cell, in pixels.
        hue: of the borders and of shaded cells.
        title, shape: written above, `shape` fainter: "S", "7 × 7".
        rows, columns: labels left of and above the cells; `label_height` tells how much room the
            latter take.
        shade: value of full colour; cells then are tinted by |value| / shade, negative ones in
            another hue. An array of the matrix's shape gives each cell's share of it instead.
            None tints all cells alike.
        shown: tells of (row, column) whether the value is known yet; other cells stay empty, with
            dashed borders.
        current: cells that the step is about, with a thick border.
    """
    data = values if isinstance(values, np.ndarray) else [list(row) for row in values]
    grid = Grid(x, y, *cell, len(data), len(data[0]) if len(data) else 0)
    known = [place for place in grid.places if shown is None or shown(*place)]
    boxes = [grid.box(*place) for place in known]
    if shade is None:
        canvas.cells(boxes, fill=f"{hue}-fill", stroke="none")
    for i, j in known if shade is not None else ():
        share = (shade[i, j], 1.0) if isinstance(shade, np.ndarray) else (data[i][j], shade)
        tint(canvas, grid.box(i, j), *share, hue)
    unknown = set(grid.places).difference(known)
    canvas.cells([grid.box(*p) for p in sorted(unknown)], stroke="grid", dash="3 3", weight=1)
    canvas.cells(boxes, stroke=hue, weight=1)
    for i, j in known:
        text = _fitting(data[i][j], cell[0] - 4, size)
        middle, centre = grid.centre(i, j)
        canvas.text(middle, centre + 0.36 * size, text, size=size, anchor="middle", mono=True)
    outline(canvas, grid, current)
    _names(canvas, grid, rows, columns)
    above = y - 12 - label_height(columns, cell[0])
    canvas.text(x, above, title, size=18, bold=True, fill=hue if hue != "gray" else "ink")
    if title and shape:
        canvas.text(x + text_width(title, 18) + 18, above, shape, fill="muted")
    return grid


def _names(canvas: Canvas, grid: Grid, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names left of the rows and above the columns."""
    for i, name in enumerate(rows):
        canvas.text(grid.x - 10, grid.centre(i)[1] + 0.36 * NORMAL, name, anchor="end")
    turned = _turned(columns, grid.cell_width)
    for j, name in enumerate(columns):
        middle = grid.centre(0, j)[0]
        if turned:
            canvas.text(middle - 2, grid.y - 7, name, turn=_TURN)
        else:
            canvas.text(middle, grid.y - 9, name, anchor="middle")


def _fitting(value, width: float, size: float) -> str:
    """A number with up to two digits behind the point, as fit into `width`; a text as it is."""
    if isinstance(value, str):
        return value
    texts = [number(value, fewer) for fewer in (2, 1, 0)]
    return next((t for t in texts if text_width(t, size, mono=True) <= width), texts[-1])


def label_height(labels: Sequence[str], cell_width: float) -> float:
    """How high labels of columns stand above the cells, in pixels; long ones stand aslant."""
    if not labels:
        return 0.0
    if not _turned(labels, cell_width):
        return 22.0
    longest = max(text_width(label) for label in labels)
    return 8 + longest * math.sin(math.radians(_TURN)) + NORMAL * math.cos(math.radians(_TURN))


def _turned(labels: Sequence[str], cell_width: float) -> bool:
    return any(text_width(label) > cell_width - 4 for label in labels)


def names_of(
    values: np.ndarray, tokens: Sequence[str] | None, figure: str
) -> tuple[list[str], list[str]]:
    """Names of rows and of columns of a matrix over tokens.

    Raises:
        ValueError: the matrix is too large or has no entries, or there are too few names.
    """
    if values.ndim != 2 or not all(1 <= size <= MOST_NAMED for size in values.shape):
        raise ValueError(
            f"{figure} shows matrices of 1 to {MOST_NAMED} rows and columns, not {values.shape}."
        )
    count, across = values.shape
    if tokens is None:
        return [str(i) for i in range(count)], [str(j) for j in range(across)]
    if len(tokens) != count:
        raise ValueError(f"{figure} has {count} rows, but {len(tokens)} tokens.")
    rows = [str(token) for token in tokens]
    return rows, rows if across == count else [str(j) for j in range(across)]


def elided(values: np.ndarray, columns: int) -> list[list]:
    """Rows of a matrix with at most `columns` entries each: the first ones, "…", the last one."""
    if values.shape[1] <= columns:
        return [list(row) for row in values]
    return [[*row[: columns - 2], "…", row[-1]] for row in values]


def tint(canvas: Canvas, box: tuple[float, float, float, float], value, full: float, hue: str):
    """Colour a box by |value| / full: positive in `hue`, negative in vermillion (or in blue)."""
    if isinstance(value, str) or not np.isfinite(value):
        return
    share = min(abs(float(value)) / full, 1.0) if full else 0.0
    other = "blue" if hue == "vermillion" else "vermillion"
    if share > 0:
        look = {"fill": hue if value >= 0 else other, "fill_opacity": STRONGEST * share}
        canvas.rect(*box, stroke="none", **look)


def outline(canvas: Canvas, grid: Grid, cells: Iterable[tuple[int, int]], stroke: str = "ink"):
    """A thick border around each given cell, or around each unbroken run of them in a row."""
    by_row: dict[int, list[int]] = {}
    for row, column in cells:
        by_row.setdefault(row, []).append(column)
    boxes = []
    for row, found in sorted(by_row.items()):
        for first, last in spans(sorted(set(found))):
            x, y, width, height = grid.box(row, first)
            boxes.append((x, y, width * (last - first + 1), height))
    canvas.cells(boxes, stroke=stroke, weight=3)


def lane_row(
    canvas: Canvas,
    x: float,
    y: float,
    pitch: float,
    look_of: Callable[[int], tuple[dict, bool]],
    gap: float = 1,
) -> None:
    """The lanes of a warp as a row of rounded cells with their numbers, 26 pixels high.

    Args:
        pitch: from one lane to the next.
        look_of: the look of a lane's cell, and whether its number is in ink.
        gap: left free on both sides of a cell.
    """
    for lane in range(LANES):
        look, lit = look_of(lane)
        canvas.rect(x + lane * pitch + gap, y, pitch - 2 * gap, 26, r=5, **look)
        canvas.text(x + (lane + 0.5) * pitch, y + 18, str(lane), anchor="middle",
                    mono=True, fill="ink" if lit else "muted")  # fmt: skip


def legend(canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """Squares of some hues with their meaning, side by side from (x, y)."""
    for hue, meaning in entries:
        canvas.rect(x, y - 13, 16, 16, fill=f"{hue}-fill", stroke=hue)
        canvas.text(x + 23, y, meaning)
        x += 49 + text_width(meaning)
