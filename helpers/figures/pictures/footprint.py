"""What a warp touches with one instruction: its lanes, the elements, the 32-byte sectors."""

from helpers.simulator.observe.report import Report

from ..canvas import Canvas, counted, literal
from ..events import LANES, SECTOR_BYTES, WORD, WarpAccess, warp_access, warp_accesses
from ..palette import hue
from ..parts import Grid

_WORDS = SECTOR_BYTES // WORD
_LEFT, _GAP, _BETWEEN = 70, 10, 36.0
_LANES_Y, _WORDS_Y = 34, 116


def sectors(
    report: Report, array: str, block: tuple[int, ...] | int = 0, warp: int = 0, step: int = 0
) -> Canvas:
    """The lanes of a warp above, the sectors they touch in `array` below.

    Args:
        report: of a counted run.
        array: an array of elements of 4 bytes.
        block, warp: which warp; `block` is an index or a tuple of indices.
        step: which of the warp's accesses to that array, counted from 0.

    Raises:
        ValueError: there is no such access, or it touches too many sectors to draw.
    """
    access = warp_access(report, array, space="global", block=block, warp=warp, step=step)
    touched = access.sectors
    cell = min(26.0, (900 - _LEFT) / LANES)
    width = min(cell, (900 - _LEFT - _GAP * len(touched)) / (_WORDS * len(touched)))
    if width < 1.5:
        raise ValueError(f"{len(touched)} sectors are too many to draw.")
    summary = (
        f"1 request, {counted(len(access.lanes), 'lane')} × {access.bytes} bytes, "
        f"{counted(len(touched), 'sector')} of 32 bytes"
    )
    canvas = Canvas(_LEFT + LANES * cell + _GAP * 4 + 8, 200, f"Warp {warp}, {array}: {summary}.")
    canvas.text(0, _LANES_Y + cell / 2 + 4, "lane")
    canvas.text(0, _WORDS_Y + cell / 2 + 4, f"{array}[i]", mono=True)
    places = {
        sector * _WORDS + w: _LEFT + 4 + n * (_WORDS * width + _GAP) + w * width
        for n, sector in enumerate(touched)
        for w in range(_WORDS)
    }
    _words(canvas, access, places, width, cell)
    lanes_x = [_LEFT + 1.5 * _GAP + lane * cell for lane in range(LANES)]
    for lane in access.lanes:
        word = places[access.words(lane)[0]]
        ends = (lanes_x[lane] + cell / 2, _LANES_Y + cell, word + width / 2, _WORDS_Y - 5)
        canvas.line(*ends, stroke="blue", weight=1.3)
    boxes = [(x + 1, _LANES_Y, cell - 2, cell - 2) for x in lanes_x]
    _asked(canvas, boxes, access.lanes)
    for lane, x in enumerate(lanes_x):
        fill = "ink" if lane in access.lanes else "muted"
        canvas.text(x + cell / 2, _LANES_Y + cell / 2 + 4, str(lane), anchor="middle", fill=fill)
    canvas.text(_LEFT, 190, f"{summary}.")
    return canvas


def _words(
    canvas: Canvas, access: WarpAccess, places: dict[int, float], width: float, height: float
) -> None:
    """The sectors word by word, each word at its place; numbers and bytes where they fit."""
    hit = {word for lane in access.lanes for word in access.words(lane)}
    boxes = [(x + 1, _WORDS_Y, width - 2, height - 2) for x in places.values()]
    _asked(canvas, boxes, [n for n, word in enumerate(places) if word in hit])
    first, across = access.start // WORD, _WORDS * width
    for n, sector in enumerate(access.sectors):
        x = _LEFT + 4 + n * (across + _GAP)
        canvas.rect(x - 3, _WORDS_Y - 4, across + 6, height + 6, r=3, stroke="ink", weight=1.5)
        byte = sector * SECTOR_BYTES - access.start
        if across > 130:
            canvas.text(x + across / 2, _WORDS_Y + height + 19, f"bytes {byte} to {byte + 31}",
                        anchor="middle", fill="muted")  # fmt: skip
    for word in sorted(hit) if width >= 22 else ():
        at = (places[word] + width / 2, _WORDS_Y + height / 2 + 4)
        canvas.text(*at, str(word - first), anchor="middle", mono=True, within=width - 4)


def _asked(canvas: Canvas, boxes: list[tuple[float, float, float, float]], which) -> None:
    """Cells in a row: those that take part filled, the others dashed."""
    canvas.cells([boxes[n] for n in which], fill="blue-fill", stroke="blue")
    others = [box for n, box in enumerate(boxes) if n not in which]
    canvas.cells(others, stroke="muted", dash="3 3")


def footprint(
    report: Report,
    block: tuple[int, ...] | int = 0,
    warp: int = 0,
    step: int = 0,
    line: int | None = None,
    **shapes: tuple[int, int],
) -> Canvas:
    """The elements of some matrices that one warp touches in one step of its loop.

    Args:
        report: of a counted run.
        block, warp: which warp.
        step: which of the warp's accesses to each matrix; one that it touches once is shown
            whatever the step.
        line: only accesses of this source line.
        **shapes: (rows, columns) of each matrix to show, by its name in the kernel.

    Raises:
        ValueError: a matrix is not touched, has more than 64 rows or columns, or there are fewer
            steps.
    """
    large = max(max(shape) for shape in shapes.values())
    if large > 64:
        raise ValueError(f"footprint has room for 64 rows and columns, not {large}.")
    which = {"space": "global", "block": block, "warp": warp, "line": line}
    accesses = {}
    for name in shapes:
        once = len(warp_accesses(report, name, **which, most=2)) == 1
        accesses[name] = warp_access(report, name, **which, step=0 if once else step)
    room = 900 - _BETWEEN * (len(shapes) - 1)
    cell = min(12.0, room / sum(columns for _, columns in shapes.values()), 288 / large)
    x = 4.0
    grids = {}
    for name, shape in shapes.items():
        grids[name] = Grid(x, 52, cell, cell, *shape)
        x += max(grids[name].width, 190) + _BETWEEN
    bottom = max(grid.bottom for grid in grids.values())
    said = ", ".join(map(_elements, accesses.values()))
    canvas = Canvas(
        max(x - _BETWEEN + 4, 500),
        bottom + 72,
        f"What warp {warp} of block {block} touches in step {step}: {said}.",
    )
    colour = hue(warp)
    for name, grid in grids.items():
        _matrix(canvas, grid, name, accesses[name], colour)
    for x, fill, what in (
        (4, colour, "touched"), (100, f"{colour}-fill", "comes along in the same 32-byte sector")
    ):  # fmt: skip
        canvas.rect(x, bottom + 54, 13, 13, fill=fill, stroke=colour)
        canvas.text(x + 20, bottom + 66, what)
    return canvas


def _matrix(canvas: Canvas, grid: Grid, name: str, access: WarpAccess, colour: str) -> None:
    """One matrix, what is touched of it, and what comes along."""
    x, y, rows, columns = grid.x, grid.y, grid.rows, grid.columns
    canvas.text(x, y - 34, f"{literal(name)}, {rows} × {columns}", bold=True)
    verb = "loaded" if access.is_load else "stored"
    canvas.text(x, y - 14, f"{verb} by line {access.line}", fill="muted")
    per = SECTOR_BYTES // access.unit
    starts = [(s * SECTOR_BYTES - access.start) // access.unit for s in access.sectors]
    fetched = [i for start in starts for i in range(start, start + per) if 0 <= i < rows * columns]
    for elements, fill in ((fetched, f"{colour}-fill"), (access.elements, colour)):
        boxes = [grid.box(*divmod(i, columns)) for i in elements]
        canvas.cells(boxes, fill=fill, stroke="none")
    lines = [(*grid.box(row)[:2], grid.width, grid.cell_height) for row in range(rows)]
    lines += [(*grid.box(0, column)[:2], grid.cell_width, grid.height) for column in range(columns)]
    canvas.cells(lines, stroke="grid", weight=0.7)
    canvas.rect(x, y, grid.width, grid.height, stroke="muted")
    canvas.text(x, grid.bottom + 20, _elements(access))
    used, moved = len(access.elements) * access.unit, len(access.sectors) * SECTOR_BYTES
    canvas.text(x, grid.bottom + 40, f"{used} of {moved} bytes used", fill="muted")


def _elements(access: WarpAccess) -> str:
    return f"{counted(len(access.elements), 'element')}, {counted(len(access.sectors), 'sector')}"
