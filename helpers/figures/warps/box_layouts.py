"""How TMA lays a box out in shared memory, from runs of `11_toy_box.cu`, and where wgmma finds it.

Player(box_frames(boxes=2))     # rows of 256 bytes: two boxes
Player(operand_frames())        # what each step of a product reads
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from helpers.gpu.tensor_map import tensor_map
from helpers.kernels.kernel import load_kernel
from helpers.kernels.launches import Launch
from helpers.simulator.isa.tensor.matrix_descriptors import Descriptors, chunk_addresses

from ..canvas import SMALLEST, Canvas, Frame, told
from ..palette import hue
from ..parts import Grid, outline
from ..tiles import centred

FILE = "11_toy_box.cu"
ROWS, CHUNKS = 16, 8  # of a box; a chunk has 16 bytes
_ELEMENTS = 8  # of a chunk
_SHOWN = 8  # rows: the pattern begins again behind them
_WIDTH, _HEIGHT = 38.0, 24.0


class Boxes(NamedTuple):
    """Boxes as TMA laid them out.

    Attributes:
        rows, chunks: [boxes, rows, 8] the row and the chunk of the array that is in each place.
    """

    rows: np.ndarray
    chunks: np.ndarray

    @property
    def by_xor(self) -> int:
        """In how many places is the chunk that chapter 09's swizzle puts there."""
        box, row, place = np.indices(self.chunks.shape)
        expected = box * CHUNKS + (place ^ row % 8)
        return int(((self.chunks == expected) & (self.rows == row)).sum())


@functools.cache
def run_boxes(boxes: int = 1, swizzle: int = 128) -> Boxes:
    """Let TMA copy an array of rows of `boxes` times 128 bytes, on the simulator.

    Args:
        boxes: 1 or 2, side by side.
        swizzle: 128, or 0 for none.

    Raises:
        ValueError: there is no such tensor map.
    """
    columns = boxes * CHUNKS
    told_by = np.arange(ROWS * columns).repeat(_ELEMENTS).reshape(1, 1, ROWS, -1)
    X = told_by.astype(np.float16)  # each element tells its row and chunk, exact up to 2048
    k = load_kernel(FILE, "show_boxes", BOXES=boxes)
    shared = np.zeros((boxes, ROWS, CHUNKS * _ELEMENTS), np.float16)
    maps = tensor_map(X, (1, 1, ROWS, CHUNKS * _ELEMENTS), swizzle)
    arrays = Launch.of(k, 1, 32, (maps, shared)).simulate().arrays
    numbers = arrays["shared"][..., ::_ELEMENTS].astype(np.intp)
    return Boxes(*np.divmod(numbers, columns))


def box_frames(boxes: int = 1) -> list[Frame]:
    """An array's rows, the boxes that TMA takes of them, and how these lie in shared memory.

    Args:
        boxes: 1 for rows of 128 bytes, 2 for rows of 256.
    """
    found = run_boxes(boxes)
    names = ["the array"] + [f"box {box} arrives" for box in range(boxes)]
    frames = [_boxes(found, step, name) for step, name in enumerate(names)]
    return told(frames, -1)


def _boxes(found: Boxes, step: int, name: str) -> Frame:
    count = len(found.rows)
    bottom = 96 + _SHOWN * _HEIGHT
    canvas = Canvas(height=bottom + 40, label=f"Boxes of an array with rows of {128 * count} bytes")
    canvas.text(20, 30, name, size=20, bold=True)
    width = _WIDTH if count == 1 else 27.0
    array = Grid(56, 96, width, _HEIGHT, _SHOWN, CHUNKS * count)
    places = {place: place for place in array.places}
    _cells(canvas, array, places)
    canvas.text(array.x, 62, f"global memory: rows of {128 * count} bytes", bold=True)
    _margins(canvas, array, "chunk of 16 bytes")
    if step:
        box = step - 1
        outline(canvas, array, [p for p in array.places if p[1] // CHUNKS == box])
        panel = Grid(array.right + 110, 96, _WIDTH, _HEIGHT, _SHOWN, CHUNKS)
        there = {
            (row, place): (int(found.rows[box, row, place]), int(found.chunks[box, row, place]))
            for row, place in panel.places
        }
        _cells(canvas, panel, there)
        canvas.text(panel.x, 62, f"shared memory, from byte {box * ROWS * 128:,} on", bold=True)
        _margins(canvas, panel, "place in the row of 128 bytes")
        y = array.y + array.height / 2
        canvas.arrow(array.right + 14, y, panel.x - 46, y)
        canvas.text((array.right + panel.x - 32) / 2, y - 10, "TMA", anchor="middle", bold=True)
    return canvas.frame(_said(found, step))


def _said(found: Boxes, step: int) -> str:
    count = len(found.rows)
    if not step:
        wide = "as wide as the swizzle" if count == 1 else "wider than the swizzle"
        return (
            f"A row has {128 * count} bytes, {CHUNKS * count} chunks of 16: {wide} of 128 bytes. "
            f"TMA takes it in {'1 box' if count == 1 else f'{count} boxes'}."
        )
    box, right, places = step - 1, found.by_xor, found.rows.size
    text = f"Box {box}: chunks {box * CHUNKS} to {box * CHUNKS + 7} of all rows, 128 bytes a row. "
    if step == count:
        text += f"{right} of {places} chunks lie where place = chunk ^ (row % 8) puts them."
    return text.rstrip()


def _cells(canvas: Canvas, grid: Grid, there: dict[tuple[int, int], tuple[int, int]]) -> None:
    """Chunks (row, chunk) in cells: coloured and labelled by chunk."""
    for number in sorted({chunk for _, chunk in there.values()}):
        mine = [grid.box(*at) for at, (_, chunk) in there.items() if chunk == number]
        name = hue(number)
        canvas.cells([(x + 1, y + 1, w - 2, h - 2) for x, y, w, h in mine],
                     fill=f"{name}-fill", stroke=name)  # fmt: skip
    texts = [(*grid.centre(*at), str(chunk)) for at, (_, chunk) in there.items()]
    canvas.add(centred(texts, SMALLEST, "ink"))


def _margins(canvas: Canvas, grid: Grid, across: str) -> None:
    canvas.text(grid.x, grid.y - 10, across, fill="muted")
    for row in range(grid.rows):
        y = grid.centre(row)[1] + 5
        canvas.text(grid.x - 8, y, str(row), anchor="end", fill="muted", mono=True)


# ---------------------------------------------------------------- what wgmma reads

_K_STEPS = 4  # steps of 16 along k in a panel


def operand_frames(panels: int = 2) -> list[Frame]:
    """Which places of a K-major operand's panels each step of a product reads, 8 rows of them.

    The addresses are the simulator's own, of the descriptors that `hopper.cuh` makes.

    Args:
        panels: of 64 columns, one behind the other: 2 for d = 128.
    """
    frames = [_step(step, panels) for step in range(panels * _K_STEPS)]
    return told(frames, 1)


def step_start(step: int) -> int:
    """Where the descriptor of a step points to, in bytes from the operand's start."""
    return step // _K_STEPS * ROWS * 128 + step % _K_STEPS * 32


def read_places(step: int) -> np.ndarray:
    """[16, 2] the places, counted in chunks from the operand's start, that a step reads."""
    given = (np.array([value]) for value in (step_start(step), 16, 1024, 0))
    addresses = chunk_addresses(Descriptors(*given, 128), ROWS, True, _ELEMENTS)[0]
    return addresses // 16


def _step(step: int, panels: int) -> Frame:
    found = run_boxes(panels)
    bottom = 118 + _SHOWN * _HEIGHT
    canvas = Canvas(height=bottom + 60, label=f"Step {step} of a product, and what it reads.")
    canvas.text(20, 30, f"k-step {step}", size=20, bold=True)
    start = step_start(step)
    canvas.text(150, 30, f"columns {16 * step} to {16 * step + 15} of all rows", size=18)
    flat = read_places(step)
    read = {(int(p) // CHUNKS, int(p) % CHUNKS) for row in flat[:_SHOWN] for p in row}
    for panel in range(panels):
        grid = Grid(60 + panel * 450, 118, 46, _HEIGHT, _SHOWN, CHUNKS)
        there = {
            (row, place): (int(found.rows[panel, row, place]), int(found.chunks[panel, row, place]))
            for row, place in grid.places
        }
        _cells(canvas, grid, there)
        canvas.text(grid.x, 84, f"panel {panel}: chunks {8 * panel} to {8 * panel + 7}", bold=True)
        _margins(canvas, grid, "place in the row of 128 bytes")
        mine = [(r - panel * ROWS, c) for r, c in read if r // ROWS == panel]
        for place in mine:
            outline(canvas, grid, [place])
        if mine:
            x = grid.x + (start % 128) / 16 * grid.cell_width
            canvas.arrow(x + 4, grid.bottom + 40, x + 4, grid.bottom + 4)
            near = start % 128 > 64  # the words stand left of the arrow where the right is short
            at, anchor = (x - 6, "end") if near else (x + 14, "start")
            canvas.text(at, grid.bottom + 38, f"descriptor: byte {start:,}", anchor=anchor)
    first = flat[0]
    return canvas.frame(
        f"The descriptor points to byte {start:,}, where chunk {2 * step} of row 0 lies. In row 5 "
        f"chunks {2 * step} and {2 * step + 1} are in places {flat[5, 0] % 8} and "
        f"{flat[5, 1] % 8}, in row 0 in {first[0] % 8} and {first[1] % 8}: wgmma applies the same "
        "XOR to its addresses."
    )
