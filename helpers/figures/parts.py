"""Parts that figures are composed of: matrices, lanes of a warp, memory in sectors, banks.

Each takes a `Canvas` and the place of its top left corner in pixels, draws itself and returns
where it lies, so that arrows can be led to it. What is special about a cell shows twice: by colour,
and by its border or a label, for those who cannot tell the colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .canvas import NORMAL, SMALL, Canvas, number, text_width
from .palette import HUES

BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
# How strongly the largest value colours its cell; more, and the number on it is hard to read.
STRONGEST = 0.5
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
    shape: str | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    shade: float | np.ndarray | None = None,
    shown: Callable[[int, int], bool] | None = None,
    current: Iterable[tuple[int, int]] = (),
    digits: int = 2,
    size: float = SMALL,
) -> Grid:
    """A matrix with its values in cells.

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
        digits: behind the decimal point; fewer where the cell has no room for them.

    Returns:
        Where the cells lie.
    """
    data = values if isinstance(values, np.ndarray) else [list(row) for row in values]
    count, across = len(data), len(data[0]) if len(data) else 0
    width, height = cell
    grid = Grid(x, y, width, height, count, across)
    places = [(i, j) for i in range(count) for j in range(across)]
    known = {place for place in places if shown is None or shown(*place)}
    if shade is None:
        canvas.cells([grid.box(*p) for p in sorted(known)], fill=f"{hue}-fill", stroke="none")
    else:
        by_cell = isinstance(shade, np.ndarray)
        for i, j in sorted(known):
            value, full = (shade[i, j], 1.0) if by_cell else (data[i][j], shade)
            tint(canvas, grid.box(i, j), value, full, hue)
    canvas.cells(
        [grid.box(*p) for p in places if p not in known], stroke="grid", dash="3 3", weight=1
    )
    canvas.cells([grid.box(*p) for p in sorted(known)], stroke=hue, weight=1)
    for i, j in sorted(known):
        value = data[i][j]
        text = value if isinstance(value, str) else _fitting(value, digits, width - 4, size)
        middle, centre = grid.centre(i, j)
        canvas.text(middle, centre + 0.36 * size, text, size=size, anchor="middle", mono=True)
    outline(canvas, grid, current)
    for i, label in enumerate(rows or ()):
        canvas.text(x - 10, grid.centre(i)[1] + 0.36 * NORMAL, label, anchor="end")
    turned = _turned(columns or (), width)
    for j, label in enumerate(columns or ()):
        middle = grid.centre(0, j)[0]
        if turned:
            canvas.text(middle - 2, y - 7, label, size=SMALL, turn=_TURN)
        else:
            canvas.text(middle, y - 9, label, anchor="middle")
    if title:
        above = y - 12 - label_height(columns or (), width)
        canvas.text(x, above, title, size=18, bold=True, fill=hue if hue != "gray" else "ink")
        if shape:
            canvas.text(x + text_width(title, 18) + 18, above, shape, size=SMALL, fill="muted")
    return grid


def _fitting(value, digits: int, width: float, size: float) -> str:
    """A number with as many digits as fit into `width`."""
    texts = [number(value, fewer) for fewer in range(digits, -1, -1)]
    return next((t for t in texts if text_width(t, size, mono=True) <= width), texts[-1])


def label_height(labels: Sequence[str], cell_width: float) -> float:
    """How high labels of columns stand above the cells, in pixels; long ones stand aslant."""
    if not labels:
        return 0.0
    if not _turned(labels, cell_width):
        return 22.0
    longest = max(text_width(label, SMALL) for label in labels)
    return 8 + longest * math.sin(math.radians(_TURN)) + SMALL * math.cos(math.radians(_TURN))


def _turned(labels: Sequence[str], cell_width: float) -> bool:
    return any(text_width(label) > cell_width - 4 for label in labels)


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
        found = sorted(set(found))
        start = found[0]
        for before, after in zip(found, [*found[1:], None], strict=True):
            if after != before + 1:
                x, y, width, height = grid.box(row, start)
                boxes.append((x, y, width * (before - start + 1), height))
                start = after
    canvas.cells(boxes, stroke=stroke, weight=3)


def lanes(
    canvas: Canvas,
    x: float,
    y: float,
    count: int = 32,
    *,
    width: float = 800,
    labels: Sequence[str] | None = None,
    hues: Sequence[str] | None = None,
    active: Iterable[int] | None = None,
    current: Iterable[int] = (),
    title: str = "",
    height: float = 30,
) -> Grid:
    """The lanes of a warp, or the threads of a block, as a row of rounded cells.

    Args:
        width: of the whole row, in pixels.
        labels: one a lane; the lane's number unless given. Where they would not fit, every second,
            fourth, ... is written, below the cells.
        hues: one a lane; all blue unless given.
        active: lanes that take part; the others are dashed. All of them unless given.
        current: lanes with a thick border.
    """
    grid = Grid(x, y, width / count, height, 1, count)
    taking_part = set(range(count)) if active is None else set(active)
    texts = [str(lane) for lane in range(count)] if labels is None else list(labels)
    gap = min(2.0, 0.1 * grid.cell_width)
    for lane in range(count):
        bx, by, bw, bh = grid.box(0, lane)
        if lane in taking_part:
            name = hues[lane] if hues else "blue"
            look = {"fill": f"{name}-fill", "stroke": name}
        else:
            look = {"stroke": "grid", "dash": "3 3"}
        if lane in current:
            look |= {"stroke": "ink", "weight": 3}
        canvas.rect(bx + gap, by, bw - 2 * gap, bh, r=min(6, bw / 4), **look)
    _labels(canvas, grid, texts)
    if title:
        canvas.text(x, y - 9, title, bold=True)
    return grid


def memory_bar(
    canvas: Canvas,
    x: float,
    y: float,
    sectors: int,
    *,
    width: float = 800,
    height: float = 34,
    touched: Mapping[int, Iterable[int]] | None = None,
    first: int = 0,
    line_of: int = 4,
    title: str = "",
) -> Grid:
    """Memory as a bar of 32-byte sectors, each of 32 bytes, with the bytes touched filled.

    Args:
        sectors: how many.
        touched: sector → the bytes (0 to 31) that were asked for. A sector that is touched is
            moved whole: it gets a thick border, the bytes asked for a fill.
        first: the number written at the first sector.
        line_of: after so many sectors comes a thicker line; four make a line of the cache.
    """
    grid = Grid(x, y, width / sectors, height, 1, sectors)
    asked = {sector: sorted(set(found)) for sector, found in (touched or {}).items()}
    byte = grid.cell_width / SECTOR_BYTES
    canvas.rect(x, y, width, height, fill="faint", stroke="grid")
    for sector, found in sorted(asked.items()):
        bx, by, bw, bh = grid.box(0, sector)
        canvas.rect(bx, by, bw, bh, fill="orange-fill", stroke="none")
        canvas.cells([(bx + b * byte, by, byte, bh) for b in found], fill="blue", stroke="none")
    for sector in range(sectors + 1):
        thick = sector % line_of == 0
        at = x + sector * grid.cell_width
        canvas.line(at, y, at, y + height, stroke="ink" if thick else "grid", weight=1 + thick)
    outlined = [grid.box(0, sector) for sector in sorted(asked)]
    canvas.cells(outlined, stroke="orange", weight=3)
    _labels(canvas, grid, [str(first + sector) for sector in range(sectors)], below=True)
    if title:
        canvas.text(x, y - 9, title, bold=True)
    return grid


def banks(
    canvas: Canvas,
    x: float,
    y: float,
    touched: Mapping[int, Sequence[str]],
    *,
    width: float = 800,
    row_height: float = 26,
    rows: int | None = None,
    title: str = "",
) -> Grid:
    """The 32 banks of shared memory as columns, the words asked of each stacked in it.

    Args:
        touched: bank → one label for each different word asked of it. A bank with more than one is
            vermillion and says how many; its words are served one after the other.
        rows: room for so many words; as many as the fullest bank holds unless given.
    """
    fullest = max([len(found) for found in touched.values()], default=0)
    count = max(fullest if rows is None else rows, 1)
    grid = Grid(x, y, width / BANKS, row_height, count, BANKS)
    canvas.rect(x, y, grid.width, grid.height, fill="faint", stroke="grid")
    for bank in range(1, BANKS):
        at = x + bank * grid.cell_width
        canvas.line(at, y, at, grid.bottom, stroke="grid")
    for bank, found in sorted(touched.items()):
        name = "vermillion" if len(found) > 1 else "green"
        for row, label in enumerate(list(found)[:count]):
            bx, by, bw, bh = grid.box(row, bank)
            canvas.rect(bx + 1, by + 1, bw - 2, bh - 2, r=3, fill=f"{name}-fill", stroke=name)
            if text_width(label, SMALL, mono=True) <= bw - 3:
                at = (bx + bw / 2, by + bh / 2 + 4.5)
                canvas.text(*at, label, size=SMALL, anchor="middle", mono=True)
        if len(found) > 1:
            at = (grid.centre(0, bank)[0], y - 6)
            canvas.text(*at, f"{len(found)}×", size=SMALL, anchor="middle", bold=True, fill=name)
    last_row = grid._replace(y=grid.bottom - row_height, rows=1)
    _labels(canvas, last_row, [str(bank) for bank in range(BANKS)], below=True)
    if title:
        canvas.text(x, y - 26, title, bold=True)
    return grid


def legend(
    canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, str]], *, gap: float = 26
) -> float:
    """Coloured squares with their meaning, side by side from (x, y); returns where they end."""
    for name, meaning in entries:
        line = name.removesuffix("-fill")
        canvas.rect(x, y - 13, 16, 16, fill=f"{line}-fill" if line in HUES else name, stroke=line)
        canvas.text(x + 23, y, meaning, size=SMALL)
        x += 23 + text_width(meaning, SMALL) + gap
    return x - gap


def _labels(canvas: Canvas, grid: Grid, texts: Sequence[str], below: bool = False) -> None:
    """A text for each cell of a row: inside where all fit, otherwise below, as many as fit."""
    widest = max((text_width(text, SMALL, mono=True) for text in texts), default=0)
    inside = not below and widest <= grid.cell_width - 6
    step = 1
    while not inside and widest + 4 > step * grid.cell_width:
        step *= 2
    for column in range(0, grid.columns, step):
        x, y = grid.centre(0, column)
        y = y + 4.5 if inside else grid.bottom + 15
        look = {"size": SMALL, "anchor": "middle", "mono": True}
        canvas.text(x, y, texts[column], **look, fill="ink" if inside else "muted")
