"""Which elements are wrong, in words: one row, the last tile, every k-th column, scattered."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .numbers import listed, ordinal, places, plural, spans

_LONGEST_PERIOD = 128
_NEARLY_ALL = 0.9


class Found(NamedTuple):
    """A pattern: its name, and a clause that says what it is."""

    kind: str
    words: str


def place(wrong: np.ndarray, tile: Sequence[int] | None) -> Found:
    """Say where the true elements of a mask lie.

    Args:
        wrong: at least one is true.
        tile: edges of a tile along each axis, or None where the kernel has none.
    """
    if wrong.size == 1:
        return Found("everywhere", "it is the only element")
    if wrong.ndim > 2:
        return _stacked(wrong, tile)
    names = axis_names(wrong.ndim)
    if wrong.sum() == 1:
        at = np.argwhere(wrong)[0]
        where = listed([f"{name} {i}" for name, i in zip(names, at, strict=True)])
        return Found("one element", f"it is the element of {where} alone")
    if found := _about_the_diagonal(wrong):
        return found
    lines = [
        np.flatnonzero(wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis)))
        for axis in range(wrong.ndim)
    ]
    partial = [axis for axis in range(wrong.ndim) if len(lines[axis]) < wrong.shape[axis]]
    if len(partial) == 1:
        axis = partial[0]
        edge = None if tile is None else tile[axis]
        return along(names[axis], lines[axis], wrong.shape[axis], edge)
    if len(partial) == 2:
        return _both(wrong, lines, tile)
    return _spread(wrong, tile)


def axis_names(ndim: int) -> tuple[str, ...]:
    """What the axes of an array are called: the last two are rows and columns."""
    if ndim == 1:
        return ("index",)
    outer = {3: ("head",), 4: ("batch", "head")}.get(ndim, ("index",) * (ndim - 2))
    return (*outer, "row", "column")


def along(name: str, numbers: np.ndarray, size: int, edge: int | None) -> Found:
    """Say which of the `size` rows (or columns) are wrong; not all of them are."""
    first, last = int(numbers[0]), int(numbers[-1])
    whole = places(name, numbers.tolist())
    together = len(numbers) == last - first + 1
    several = plural(name)
    if edge and 1 < edge < size:
        ragged = size % edge
        start = size - (ragged or edge)
        if first >= start:
            part = "" if together and (first, last) == (start, size - 1) else "part of "
            left = several if ragged > 1 else name
            cut = f", which has {ragged} {left} of {edge}" if ragged else ""
            return Found("last tile", f"they lie in {part}the last tile ({whole}){cut}")
    if len(numbers) == 1:
        return Found(name, f"they lie in {whole}")
    if together and first == 0 and edge == len(numbers):
        return Found("first tile", f"they lie in the first tile ({whole})")
    if last == size - 1 and together:
        if first <= size // 2:
            right = places(name, list(range(first)))
            return Found("first tile right", f"only {right} {'is' if first == 1 else 'are'} right")
        return Found(f"last {several}", f"they lie in the last {several} ({whole})")
    if period := _period(name, numbers, size):
        return period
    return Found(several, f"they lie in {whole}")


def _period(name: str, numbers: np.ndarray, size: int) -> Found | None:
    """Whether being wrong repeats with a period: every k-th, or some of every k."""
    wrong = np.zeros(size, bool)
    wrong[numbers] = True
    noun = {"index": "element"}.get(name, name)
    for k in range(2, min(_LONGEST_PERIOD, size // 2) + 1):
        start = wrong[: 8 * _LONGEST_PERIOD]  # most periods are refuted there, at little cost
        if not ((start[k:] == start[:-k]).all() and (wrong[k:] == wrong[:-k]).all()):
            continue
        rests = np.flatnonzero(wrong[:k]).tolist()
        if len(rests) == 1:
            return Found("every k-th", f"they are every {ordinal(k)} {noun}, from {rests[0]}")
        if len(rests) == k - 1:
            right = next(n for n in range(k) if n not in rests)
            return Found("every k-th", f"only every {ordinal(k)} {noun}, from {right}, is right")
        runs = listed([f"{a}" if a == b else f"{a} to {b}" for a, b in spans(rests)])
        return Found("every k-th", f"they are the {plural(name)} {runs} of every {k}")
    return None


def _both(wrong: np.ndarray, lines: list[np.ndarray], tile) -> Found:
    """Where only some rows and only some columns are wrong."""
    rows, columns = lines
    height, width = wrong.shape
    if len(rows) == 1 or len(columns) == 1:
        axis = 0 if len(rows) == 1 else 1
        name, other = ("row", "column") if axis == 0 else ("column", "row")
        found = along(name, lines[axis], wrong.shape[axis], tile and tile[axis])
        where = places(other, lines[1 - axis].tolist())
        if len(lines[1 - axis]) > 1 and found.kind == name:
            part = _period(other, lines[1 - axis], wrong.shape[1 - axis])
            where = part.words.removeprefix("they are ") if part else where
        return Found(found.kind, f"{found.words}, {where}")
    if tile is not None:
        starts = [_last_start(size, edge) for size, edge in zip(wrong.shape, tile, strict=True)]
        if rows[0] >= starts[0] and columns[0] >= starts[1]:
            where = f"{places('row', rows.tolist())}, {places('column', columns.tolist())}"
            return Found("last tile", f"they lie in the last tile of both edges ({where})")
    across = _period("row", rows, height)
    down = _period("column", columns, width)
    if across and down:
        of_those = down.words.removeprefix("they are ")
        return Found("every k-th", f"{across.words}, and of those {of_those}")
    where = f"{places('row', rows.tolist())} and {places('column', columns.tolist())}"
    filled = wrong[np.ix_(rows, columns)].mean() > _NEARLY_ALL
    if filled and _one_run(rows) and _one_run(columns):
        if tile is not None and all(
            n[0] % edge == 0 and len(n) == edge for n, edge in zip(lines, tile, strict=True)
        ):
            at = f"({rows[0] // tile[0]}, {columns[0] // tile[1]})"
            return Found("one tile", f"they lie in the tile {at} ({where})")
        return Found("one block", f"they lie in {where}")
    return Found("scattered", f"they are scattered over {where}")


def _one_run(numbers: np.ndarray) -> bool:
    return len(numbers) == numbers[-1] - numbers[0] + 1


def _last_start(size: int, edge: int) -> int:
    """Where the last tile starts; beyond the end if there is one tile alone."""
    return size if edge >= size or edge < 2 else size - (size % edge or edge)


def _spread(wrong: np.ndarray, tile) -> Found:
    """Where every row and every column has a wrong element."""
    right = ~wrong
    if wrong.all():
        return Found("everywhere", "there is no pattern in them")
    if wrong.ndim == 2:
        rows, columns = np.flatnonzero(right.any(1)), np.flatnonzero(right.any(0))
        box = right[: rows[-1] + 1, : columns[-1] + 1]
        if rows[0] == columns[0] == 0 and box.mean() > _NEARLY_ALL and box.size <= right.size / 2:
            if len(box) > 1 or box.shape[1] > 1:
                where = f"rows 0 to {rows[-1]}, columns 0 to {columns[-1]}"
                block = "block (0, 0)" if tile is None or box.shape == tuple(tile) else "the start"
                return Found("first block right", f"only {block} is right ({where})")
        if tile is not None:
            starts = [_last_start(s, e) for s, e in zip(wrong.shape, tile, strict=True)]
            if not wrong[: starts[0], : starts[1]].any():
                where = f"rows from {starts[0]} and columns from {starts[1]}"
                return Found("last tile", f"they lie in the last tiles: {where}")
    flat = np.flatnonzero(wrong)
    if found := _period("index", flat, wrong.size):
        return Found(found.kind, f"{found.words}, counted as they lie in memory")
    if wrong.mean() > _NEARLY_ALL:
        return Found("everywhere", "there is no pattern in them")
    return Found("scattered", "they are scattered over the whole array")


def _about_the_diagonal(wrong: np.ndarray) -> Found | None:
    """What a mask that compares row and column leaves wrong, in a square matrix."""
    if wrong.ndim != 2 or wrong.shape[0] != wrong.shape[1] or len(wrong) < 3:
        return None
    everything = np.ones_like(wrong)
    diagonal = np.eye(len(wrong), dtype=bool)
    for kind, words, part in (
        ("diagonal", "they are the diagonal", diagonal),
        ("triangle", "they are the elements above the diagonal", np.triu(everything, 1)),
        ("triangle", "they are the elements below the diagonal", np.tril(everything, -1)),
        ("triangle", "they are the diagonal and what lies above it", np.triu(everything)),
        ("triangle", "they are the diagonal and what lies below it", np.tril(everything)),
    ):
        if not wrong[~part].any() and wrong[part].mean() > _NEARLY_ALL:
            return Found(kind, words)
    return None


def _stacked(wrong: np.ndarray, tile) -> Found:
    """Matrices side by side, such as batches and heads: which of them, then where in each."""
    outer, matrix = wrong.shape[:-2], wrong.shape[-2:]
    names = axis_names(wrong.ndim)
    picks = []
    for axis in range(len(outer)):
        others = tuple(a for a in range(wrong.ndim) if a != axis)
        numbers = np.flatnonzero(wrong.any(axis=others))
        if len(numbers) < outer[axis]:
            picks.append((axis, places(names[axis], numbers.tolist())))
    stack = wrong.reshape(-1, *matrix)
    inside = place(stack.any(axis=0), tile and tile[-2:])
    if not picks:
        return Found(inside.kind, inside.words)
    which = listed([words for _, words in picks])
    if inside.kind == "everywhere":
        return Found(names[picks[0][0]], f"they lie in {which}")
    return Found(inside.kind, f"they lie in {which}, and there {inside.words}")
