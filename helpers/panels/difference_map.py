"""Which elements of an array are wrong, and by how much, as a small picture or in characters."""

from dataclasses import dataclass

import numpy as np

from ..problem.poison import poisoned
from ..show import Shows, render

ROWS, COLUMNS = 32, 64  # cells at most; larger arrays have several elements in a cell
_OF_A_LIST = 32  # elements in a row of the picture, where an array has one axis
_CELL = 10  # pixels
_BLANK = -1
# (sign, name in the style sheet, what it is); errors are parts of the largest expected element.
LEVELS = (
    ("·", "right", "right"),
    ("o", "near", "off by up to a tenth of the largest element"),
    ("O", "off", "off by up to the largest element"),
    ("#", "far", "further off"),
    ("N", "nan", "NaN"),
    ("-", "unwritten", "never written"),
)
_RIGHT, _NEAR, _OFF, _FAR, _NAN, _UNWRITTEN = range(6)


@dataclass(frozen=True, repr=False)
class DifferenceMap(Shows):
    """A grid of cells, each as wrong as the worst element in it.

    Attributes:
        title: which array, or which matrix of it.
        levels: rows of indices into LEVELS; -1 where there is no element.
        rows, columns: index of the first element of each row and column of cells.
        names: what the axes are called.
        cell: elements of a cell, down and across.
    """

    title: str
    levels: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    names: tuple[str, str]
    cell: tuple[int, int]

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Those of LEVELS that occur."""
        there = {level for row in self.levels for level in row}
        return [entry for n, entry in enumerate(LEVELS) if n in there]

    @property
    def caption(self) -> str:
        """What the picture shows, in a sentence."""
        down, across = self.cell
        several = f" A cell is {down} × {across} elements, the worst of them shown."
        return f"Which elements of {self.title} are wrong.{several if down * across > 1 else ''}"

    def html(self):
        left, top = 44, 22
        runs = [
            (left + a * _CELL, top + n * _CELL, (b - a) * _CELL, LEVELS[row[a]][1])
            for n, row in enumerate(self.levels)
            for a, b in _runs(row)
        ]
        ticks = [(left + n * _CELL + _CELL / 2, self.columns[n]) for n in _ticks(self.columns, 8)]
        marks = [(top + n * _CELL + _CELL - 1, self.rows[n]) for n in _ticks(self.rows, 4)]
        return render(
            "difference_map.html", map=self, runs=runs, ticks=ticks, marks=marks, cell=_CELL,
            width=left + len(self.columns) * _CELL + 52, height=top + len(self.rows) * _CELL + 4,
            left=left, top=top,
        )  # fmt: skip

    def __repr__(self) -> str:
        wide = max(len(self.names[0]), len(str(self.rows[-1])))
        heads = [" "] * (len(self.columns) + 6)
        for n in _ticks(self.columns, 8):
            label = str(self.columns[n])
            heads[n : n + len(label)] = label
        lines = [self.caption, f"  {self.names[0]:>{wide}}  {''.join(heads).rstrip()}"]
        lines[1] += f"  {self.names[1]}"
        for first, row in zip(self.rows, self.levels, strict=True):
            signs = "".join(" " if level == _BLANK else LEVELS[level][0] for level in row)
            lines.append(f"  {first:>{wide}}  {signs.rstrip()}")
        lines.append("  " + "   ".join(f"{sign} {said}" for sign, _, said in self.legend))
        return "\n".join(lines)


def difference_map(actual: np.ndarray, expected: np.ndarray, limit: float, name: str):
    """The picture of a result beside what it should be.

    Args:
        actual, expected: of one shape, with an element at least.
        limit: how far off an element may be and still is right.
        name: what the array is called.

    Raises:
        ValueError: the shapes differ.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"{name} is {actual.shape}, and {expected.shape} is expected.")
    levels = _levels(actual, expected.astype(np.float64), limit)
    title, names = name, ("row", "column")
    if levels.ndim > 2:
        outer = levels.reshape(-1, *levels.shape[-2:])
        which = int(np.argmax(outer.any(axis=(1, 2))))
        index = np.unravel_index(which, levels.shape[:-2])
        title, levels = f"{name}[{', '.join(str(int(i)) for i in index)}]", outer[which]
    if levels.ndim == 2:
        cells, step = _binned(levels)
        return _made(title, cells, step, names)
    flat = levels.reshape(-1)
    each = -(-flat.size // (ROWS * _OF_A_LIST))
    flat = (
        np.pad(flat, (0, -flat.size % each), constant_values=_BLANK).reshape(-1, each).max(axis=1)
    )
    across = min(_OF_A_LIST, flat.size)
    cells = np.pad(flat, (0, -flat.size % across), constant_values=_BLANK).reshape(-1, across)
    rows = tuple(range(0, len(cells) * across * each, across * each))
    columns = tuple(range(0, across * each, each))
    return DifferenceMap(title, _tuples(cells), rows, columns, ("from", "index"), (1, each))


def _levels(actual: np.ndarray, want: np.ndarray, limit: float) -> np.ndarray:
    got = actual.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got - want)
    distance[(got == want) | (np.isnan(got) & np.isnan(want))] = 0.0
    largest = float(np.abs(want[np.isfinite(want)]).max(initial=0.0)) or 1.0
    levels = np.select(
        [distance <= limit, distance <= largest / 10, distance <= largest],
        [_RIGHT, _NEAR, _OFF],
        _FAR,
    )
    levels[np.isnan(got) & ~np.isnan(want)] = _NAN
    levels[poisoned(actual) & ~np.isnan(want)] = _UNWRITTEN
    return levels


def _binned(levels: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """The worst of each cell, and the size of a cell."""
    height, width = levels.shape
    down, across = -(-height // ROWS), -(-width // COLUMNS)
    padded = np.pad(levels, ((0, -height % down), (0, -width % across)), constant_values=_BLANK)
    cells = padded.reshape(-(-height // down), down, -(-width // across), across)
    return cells.max(axis=(1, 3)), (down, across)


def _made(title: str, cells: np.ndarray, step: tuple[int, int], names) -> DifferenceMap:
    rows, columns = (tuple(range(0, n * s, s)) for n, s in zip(cells.shape, step, strict=True))
    return DifferenceMap(title, _tuples(cells), rows, columns, names, step)


def _tuples(cells: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(level) for level in row) for row in cells)


def _runs(row: tuple[int, ...]):
    """Neighbours that are alike, from and to."""
    start = 0
    for n in range(1, len(row) + 1):
        if n == len(row) or row[n] != row[start]:
            if row[start] != _BLANK:
                yield start, n
            start = n


def _ticks(labels: tuple[int, ...], apart: int) -> range:
    return range(0, len(labels), apart)
