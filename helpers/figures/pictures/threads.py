"""Which thread writes which element: the map of a 1-D grid, and of a matrix under a 2-D grid."""

from __future__ import annotations

from ..drawing import Drawing, hue
from ..trace import Owner, owners

_LEFT = 116
_TEXT = 15.0  # on a slide a fourth larger


def thread_map(report, array: str) -> Drawing:
    """Threads of a 1-D grid above, elements of `array` below, joined where a thread stores.

    Args:
        report: of a counted run with at most 48 threads.
        array: the array that the kernel stores to.

    Raises:
        ValueError: the grid or the block has more than one dimension, there are too many threads,
            or nothing was stored in `array`.
    """
    blocks, size = report.grid[0], report.block[0]
    if max(*report.grid[1:], *report.block[1:]) > 1:
        raise ValueError("thread_map shows grids and blocks of one dimension.")
    if blocks * size > 48:
        raise ValueError(
            f"thread_map has room for 48 threads; {blocks} blocks of {size} are {blocks * size}."
        )
    owned = owners(report, array)
    busy = {(owner.block[0], owner.thread[0]): index for index, owner in owned.items()}
    elements = max(owned) + 1
    gap = 12
    cell = min(34.0, (900 - _LEFT - gap * (blocks - 1)) / (blocks * size))
    threads_y, elements_y, height = 40, 124, 196
    idle = blocks * size - len(busy)
    summary = (
        f"{_count(blocks, 'block')} × {_count(size, 'thread')} = "
        f"{_count(blocks * size, 'thread')} for {_count(elements, 'element')}"
    )
    drawing = Drawing(
        max(_LEFT + blocks * size * cell + gap * (blocks - 1) + 8, 640),
        height,
        f"Map of threads to elements of {array}: {summary}; {idle} without an element.",
    )
    every = next(n for n in (1, 2, 4) if n * cell >= 22)  # numbers that have room
    drawing.text(0, threads_y - 22, "blockIdx.x", mono=True)
    drawing.text(0, threads_y + cell / 2 + 4, "threadIdx.x", mono=True)
    drawing.text(0, elements_y + cell / 2 + 4, f"{array}[i]", mono=True)

    def thread_x(block: int, thread: int) -> float:
        return _LEFT + (block * size + thread) * cell + block * gap

    first_element = _LEFT + gap * (blocks - 1) / 2
    for block in range(blocks):
        colour = hue(block)
        mine = [t for t in range(size) if (block, t) in busy]
        others = [t for t in range(size) if (block, t) not in busy]
        x = thread_x(block, 0)
        name = f"block {block}" if size * cell >= 66 else str(block)
        drawing.text(x + size * cell / 2, threads_y - 22, name, anchor="middle", font_weight=600)
        drawing.lines(
            [(x + 1, threads_y - 12, x + size * cell - 1, threads_y - 12)],
            stroke=colour,
            stroke_width=3,
            stroke_opacity=1,
        )
        drawing.cells(
            [(thread_x(block, t) + 1, threads_y, cell - 2, cell - 2) for t in mine],
            fill=colour,
            fill_opacity=0.35,
            stroke=colour,
        )
        drawing.cells(
            [(thread_x(block, t) + 1, threads_y, cell - 2, cell - 2) for t in others],
            stroke_dasharray="3 3",
            stroke_opacity=0.7,
        )
        drawing.cells(
            [
                (first_element + busy[block, t] * cell + 1, elements_y, cell - 2, cell - 2)
                for t in mine
            ],
            fill=colour,
            fill_opacity=0.35,
            stroke=colour,
        )
        drawing.lines(
            [
                (
                    thread_x(block, t) + cell / 2,
                    threads_y + cell,
                    first_element + (busy[block, t] + 0.5) * cell,
                    elements_y - 2,
                )
                for t in mine
            ],
            stroke=colour,
            stroke_width=1.5,
            stroke_opacity=0.9,
        )
        for t in range(0, size, every):
            drawing.text(
                thread_x(block, t) + cell / 2,
                threads_y + cell / 2 + _TEXT * 0.36 - 1,
                str(t),
                anchor="middle",
                faint=(block, t) not in busy,
            )
    for index in range(0, elements, every):
        drawing.text(
            first_element + (index + 0.5) * cell,
            elements_y + cell / 2 + _TEXT * 0.36 - 1,
            str(index),
            anchor="middle",
        )
    note = f"{summary}."
    if idle:
        verb = "thread stores" if idle == 1 else "threads store"
        note += f" The {idle} dashed {verb} nothing."
    drawing.text(_LEFT, height - 10, note)
    return drawing


def ownership(
    report,
    array: str,
    shape: tuple[int, int],
    block: tuple[int, int] = (0, 0),
) -> Drawing:
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
    owned = owners(report, array)
    chosen = {i: o for i, o in owned.items() if o.block == (*block, 0)}
    if not chosen:
        raise ValueError(f"Block {block} stored nothing in {array}.")
    side = 328.0
    cell = side / max(shape)
    top, left = 56, 4
    r0, c0 = min(i // columns for i in chosen), min(i % columns for i in chosen)
    r1, c1 = max(i // columns for i in chosen) + 1, max(i % columns for i in chosen) + 1
    zoom = side / max(r1 - r0, c1 - c0)
    zoom_left = left + columns * cell + 120
    legend_left = zoom_left + (c1 - c0) * zoom + 24
    warps = sorted({o.warp for o in owned.values()})
    many = 2 if len(warps) > 16 else 1
    drawing = Drawing(
        max(legend_left + 84 * many, zoom_left + 270),
        top + side + 34,
        f"{array} of {rows} × {columns} elements, coloured by the warp that stores each, and "
        f"block {block} of it enlarged.",
    )
    drawing.text(left, 18, f"{array}, {rows} × {columns}", size=16, font_weight=600)
    drawing.text(left, 38, "one colour for each warp of a block", faint=True)
    drawing.text(zoom_left, 18, f"block ({block[0]}, {block[1]})", size=16, font_weight=600)
    labelled = zoom >= 20
    if labelled:
        drawing.text(zoom_left, 38, "in each element: the lane of its thread", faint=True)

    for warp in warps:
        mine = [i for i, o in owned.items() if o.warp == warp]
        for members, opacity in (
            ([i for i in mine if i not in chosen], 0.3),
            ([i for i in mine if i in chosen], 0.75),
        ):
            drawing.cells(
                [(left + i % columns * cell, top + i // columns * cell, cell, cell)
                 for i in members],
                fill=hue(warp), fill_opacity=opacity, stroke="none",
            )  # fmt: skip
        drawing.cells(
            [(zoom_left + (i % columns - c0) * zoom, top + (i // columns - r0) * zoom, zoom, zoom)
             for i in mine if i in chosen],
            fill=hue(warp), fill_opacity=0.4, stroke_opacity=0.35, stroke_width=0.7,
        )  # fmt: skip
    extents: dict[tuple, list[int]] = {}
    for index, owner in owned.items():
        extents.setdefault(owner.block, []).append(index)
    for members in extents.values():
        x0, y0 = min(i % columns for i in members), min(i // columns for i in members)
        x1, y1 = max(i % columns for i in members) + 1, max(i // columns for i in members) + 1
        drawing.rect(
            left + x0 * cell, top + y0 * cell, (x1 - x0) * cell, (y1 - y0) * cell, stroke_width=1.5
        )
    drawing.rect(zoom_left, top, (c1 - c0) * zoom, (r1 - r0) * zoom, stroke_width=1.5)
    # From the block to its enlargement.
    edge = left + c1 * cell
    drawing.lines(
        [
            (edge, top + r0 * cell, zoom_left, top),
            (edge, top + r1 * cell, zoom_left, top + (r1 - r0) * zoom),
        ],
        stroke_dasharray="4 3",
    )
    if labelled:
        for index, owner in chosen.items():
            drawing.text(
                zoom_left + (index % columns - c0 + 0.5) * zoom,
                top + (index // columns - r0 + 0.5) * zoom + _TEXT * 0.36,
                str(owner.lane),
                anchor="middle",
                textLength=15 if owner.lane > 9 else None,  # or neighbours would run together
                lengthAdjust="spacingAndGlyphs" if owner.lane > 9 else None,
            )
    directions = [
        f"{name} {arrow}" for name, arrow in zip(_axes(chosen, columns), "↓→", strict=True) if name
    ]
    drawing.text(zoom_left, top + side + 26, ", ".join(directions), mono=True)
    for n, warp in enumerate(warps):
        x, y = legend_left + n // 16 * 84, top + n % 16 * 21
        drawing.rect(x, y, 14, 14, fill=hue(warp), fill_opacity=0.75, stroke="none")
        drawing.text(x + 20, y + 12, f"warp {warp}")
    drawing.text(
        left,
        top + side + 26,
        f"grid {report.grid[0]} × {report.grid[1]} blocks of {report.block[0]} × "
        f"{report.block[1]} threads",
    )
    return drawing


def _axes(chosen: dict[int, Owner], columns: int) -> tuple[str, str]:
    """Which of threadIdx.x and .y alone changes from row to row, and from column to column."""
    first = min(chosen)
    names = []
    for neighbour in (first + columns, first + 1):
        changed = [
            name
            for name, a, b in zip(
                ("threadIdx.x", "threadIdx.y"),
                chosen[first].thread,
                chosen[neighbour].thread if neighbour in chosen else chosen[first].thread,
                strict=False,
            )
            if a != b
        ]
        names.append(changed[0] if len(changed) == 1 else "")
    return names[0], names[1]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
