"""Which thread writes which element: the map of a 1-D grid, and of a matrix under a 2-D grid."""

from collections.abc import Iterable

from helpers.simulator.observe.access_trace import AccessRecord
from helpers.simulator.observe.report import Report

from ..canvas import SMALLEST, Canvas, counted, literal, text_width
from ..events import owners
from ..palette import hue
from ..parts import Grid

_LEFT, _GAP = 116, 12
_THREADS_Y, _ELEMENTS_Y = 40, 124
_SIDE, _TOP = 328.0, 56
_KEY = 92  # width of a column of the legend


def thread_map(report: Report, array: str) -> Canvas:
    """Threads of a 1-D grid above, elements of `array` below, joined where a thread stores.

    Args:
        report: of a counted run with at most 48 threads.
        array: the array that the kernel stores to.

    Raises:
        ValueError: the grid or the block has more than one dimension, there are too many threads,
            or nothing was stored in `array`.
    """
    blocks, size = report.grid[0], report.block[0]
    threads = blocks * size
    if max(*report.grid[1:], *report.block[1:]) > 1:
        raise ValueError("thread_map shows grids and blocks of one dimension.")
    if threads > 48:
        raise ValueError(
            f"thread_map has room for 48 threads; {blocks} blocks of {size} are {threads}."
        )
    owned = owners(report, array)
    elements, idle = max(owned) + 1, threads - len({(o.block, o.thread) for o in owned.values()})
    cell = min(34.0, (900 - _LEFT - _GAP * (blocks - 1)) / threads)
    summary = (
        f"{counted(blocks, 'block')} × {counted(size, 'thread')} = {counted(threads, 'thread')} "
        f"for {counted(elements, 'element')}"
    )
    note = f"{summary}."
    if idle:
        note += f" The {idle} dashed {'thread stores' if idle == 1 else 'threads store'} nothing."
    width = _LEFT + threads * cell + _GAP * (blocks - 1) + 8
    canvas = Canvas(
        max(width, 640, _LEFT + text_width(note, SMALLEST)), 196,
        f"Map of threads to elements of {array}: {summary}; {idle} without an element.",
    )  # fmt: skip
    every = next(n for n in (1, 2, 4) if n * cell >= 22)  # numbers that have room
    below = Grid(_LEFT + _GAP * (blocks - 1) / 2, _ELEMENTS_Y, cell, cell, 1, elements)
    canvas.text(0, _THREADS_Y - 22, "blockIdx.x", mono=True)
    canvas.text(0, _THREADS_Y + cell / 2 + 4, "threadIdx.x", mono=True)
    canvas.text(0, _ELEMENTS_Y + cell / 2 + 4, f"{array}[i]", mono=True)
    for block in range(blocks):
        above = Grid(_LEFT + block * (size * cell + _GAP), _THREADS_Y, cell, cell, 1, size)
        mine = {o.thread[0]: index for index, o in owned.items() if o.block[0] == block}
        _block(canvas, block, above, below, mine)
        _numbers(canvas, above, every, mine)
    _numbers(canvas, below, every, range(elements))
    canvas.text(_LEFT, 186, note, size=SMALLEST)
    return canvas


def _block(canvas: Canvas, block: int, above: Grid, below: Grid, mine: dict[int, int]) -> None:
    """A block's threads and the elements that they store, by thread."""
    colour, cell = hue(block), above.cell_width
    name = f"block {block}" if above.width >= 66 else str(block)
    middle = above.x + above.width / 2
    canvas.text(middle, above.y - 22, name, size=SMALLEST, anchor="middle", bold=True)
    canvas.line(above.x + 1, above.y - 12, above.right - 1, above.y - 12, stroke=colour, weight=3)

    def inside(grid: Grid, columns: Iterable[int]) -> list[tuple[float, float, float, float]]:
        return [(grid.box(0, n)[0] + 1, grid.y, cell - 2, cell - 2) for n in columns]

    full = [*inside(above, mine), *inside(below, mine.values())]
    canvas.cells(full, fill=f"{colour}-fill", stroke=colour)
    canvas.cells(inside(above, set(range(above.columns)) - set(mine)), stroke="muted", dash="3 3")
    for thread, index in mine.items():
        start, end = above.centre(0, thread)[0], below.centre(0, index)[0]
        canvas.line(start, above.bottom, end, below.y - 2, stroke=colour, weight=1.5)


def _numbers(canvas: Canvas, grid: Grid, every: int, lit: Iterable[int]) -> None:
    for n in range(0, grid.columns, every):
        x, y = grid.centre(0, n)
        fill = "ink" if n in lit else "muted"
        canvas.text(x, y + 0.36 * SMALLEST - 1, str(n), size=SMALLEST, anchor="middle", fill=fill)


def ownership(
    report: Report,
    array: str,
    shape: tuple[int, int],
    block: tuple[int, int] = (0, 0),
) -> Canvas:
    """A matrix coloured by the warp that stores each element, and one block of it close up.

    Left the whole matrix with its blocks, right the chosen block with each thread's lane in its
    warp.

    Args:
        report: of a counted run.
        array: name of the matrix.
        shape: its rows and columns; at most 64 each.
        block: (blockIdx.x, blockIdx.y) of the block to enlarge.

    Raises:
        ValueError: the matrix is too large, or that block stored nothing in it.
    """
    rows, columns = shape
    if max(shape) > 64:
        raise ValueError(f"ownership has room for 64 × 64 elements, not {rows} × {columns}.")
    owned = {divmod(index, columns): owner for index, owner in owners(report, array).items()}
    chosen = {place: owner for place, owner in owned.items() if owner.block == (*block, 0)}
    if not chosen:
        raise ValueError(f"Block {block} stored nothing in {array}.")
    whole = Grid(4, _TOP, _SIDE / max(shape), _SIDE / max(shape), *shape)
    first = tuple(map(min, zip(*chosen, strict=True)))
    last = tuple(map(max, zip(*chosen, strict=True)))
    extent = last[0] - first[0] + 1, last[1] - first[1] + 1
    near = Grid(whole.right + 120, _TOP, _SIDE / max(extent), _SIDE / max(extent), *extent)
    warps = sorted({owner.warp for owner in owned.values()})
    canvas = Canvas(
        max(near.right + 24 + _KEY * (1 + (len(warps) > 16)), near.x + 270), _TOP + _SIDE + 34,
        f"{array} of {rows} × {columns} elements, coloured by the warp that stores each, and "
        f"block {block} of it enlarged.",
    )  # fmt: skip
    canvas.text(whole.x, 18, f"{literal(array)}, {rows} × {columns}", bold=True)
    canvas.text(whole.x, 38, "one colour for each warp of a block", fill="muted")
    _whole(canvas, whole, owned, chosen)
    canvas.text(near.x, 18, f"block ({block[0]}, {block[1]})", bold=True)
    _near(canvas, near, first, chosen)
    # From the block to its enlargement.
    x, top, width, height = whole.around(chosen)
    for start, end in ((top, near.y), (top + height, near.bottom)):
        canvas.line(x + width, start, near.x, end, stroke="muted", dash="4 3")
    for n, warp in enumerate(warps):
        x, y = near.right + 24 + n // 16 * _KEY, _TOP + n % 16 * 21
        canvas.rect(x, y, 14, 14, fill=hue(warp), stroke="none")
        canvas.text(x + 20, y + 12, f"warp {warp}")
    grid, threads = (" × ".join(map(str, extent[:2])) for extent in (report.grid, report.block))
    canvas.text(whole.x, _TOP + _SIDE + 26, f"grid {grid} blocks of {threads} threads")
    return canvas


_Places = dict[tuple[int, int], AccessRecord]  # (row, column) → the store behind that element


def _whole(canvas: Canvas, grid: Grid, owned: _Places, chosen: _Places) -> None:
    """The matrix with its blocks, the chosen one in full colour."""
    groups: dict[str, list] = {}
    blocks: dict[tuple, list] = {}
    for place, owner in owned.items():
        colour = hue(owner.warp)
        groups.setdefault(colour if place in chosen else f"{colour}-fill", []).append(place)
        blocks.setdefault(owner.block, []).append(place)
    for colour, places in groups.items():
        canvas.cells([grid.box(*place) for place in places], fill=colour, stroke="none")
    for places in blocks.values():
        canvas.rect(*grid.around(places), stroke="ink", weight=1.5)


def _near(canvas: Canvas, grid: Grid, first: tuple[int, int], chosen: _Places) -> None:
    """The chosen block: its warps in colours, and each thread's lane where there is room."""
    labelled = grid.cell_width >= 20
    here = {(row - first[0], column - first[1]): o for (row, column), o in chosen.items()}
    for warp in sorted({owner.warp for owner in chosen.values()}):
        boxes = [grid.box(*place) for place, owner in here.items() if owner.warp == warp]
        canvas.cells(boxes, fill=f"{hue(warp)}-fill", stroke="muted", weight=0.7)
    canvas.rect(grid.x, grid.y, grid.width, grid.height, stroke="ink", weight=1.5)
    if labelled:
        canvas.text(grid.x, 38, "in each element: the lane of its thread", fill="muted")
    for place, owner in here.items() if labelled else ():
        x, y = grid.centre(*place)
        canvas.text(x, y + 0.36 * SMALLEST, str(owner.lane), size=SMALLEST, anchor="middle",
                    mono=True, within=16)  # fmt: skip
    axes = [f"{axis} {arrow}" for axis, arrow in zip(_axes(chosen), "↓→", strict=True) if axis]
    canvas.text(grid.x, _TOP + _SIDE + 26, ", ".join(axes), mono=True)


def _axes(chosen: _Places) -> tuple[str, str]:
    """Which of threadIdx.x and .y alone changes from row to row, and from column to column."""
    row, column = min(chosen)
    here, names = chosen[row, column], []
    for neighbour in ((row + 1, column), (row, column + 1)):
        there = chosen.get(neighbour, here)
        changed = [f"threadIdx.{axis}" for axis, a, b in zip("xy", here.thread, there.thread,
                   strict=False) if a != b]  # fmt: skip
        names.append(changed[0] if len(changed) == 1 else "")
    return names[0], names[1]
