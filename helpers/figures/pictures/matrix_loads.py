"""`ldmatrix` with and without `.trans`: addresses of rows, matrices, registers, operand of an mma.

A small kernel loads a tile of 16 × 16 elements that bear their own numbers; where each of them goes
is read from its registers.
"""

from typing import NamedTuple

import numpy as np

from helpers import simulator
from helpers.simulator.isa.tensor.mma_fragments import fragment_layout

from ..canvas import SMALLEST, Canvas, Frame, told
from ..events import LANES, warp_access
from ..palette import hue
from ..parts import Grid
from ..tiles import centred

LDMATRIX_STEPS = ("addresses", "registers", "operand B")
SIDE = 16  # of the tile
_EACH = 8  # rows, and columns, of a matrix
# Which registers are B of the first and of the second mma, as the flash kernels take them.
_PAIRS = {False: ((0, 2), (1, 3)), True: ((0, 1), (2, 3))}
_SOURCE = """\
__shared__ __align__(128) unsigned short s_tile[16 * 16];
#define LOAD(name, trans) \\
    extern "C" __global__ void name(const unsigned short* tile, uint4* registers) { \\
        const int lane = threadIdx.x; \\
        for (int i = lane; i < 256; i += 32) s_tile[i] = tile[i]; \\
        __syncthreads(); \\
        const unsigned row = (unsigned)__cvta_generic_to_shared( \\
            s_tile + lane % 16 * 16 + lane / 16 * 8); \\
        uint4 r; \\
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \\
                     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(row) : "memory"); \\
        registers[lane] = r; \\
    }
LOAD(ldmatrix, "")
LOAD(ldmatrix_trans, ".trans")
"""
_TILE = Grid(66, 84, 20, 18, SIDE, SIDE)
_HEIGHT = 410


class MatrixLoad(NamedTuple):
    """One `ldmatrix.x4` of a tile of 16 × 16 elements, numbered row by row.

    Attributes:
        trans: whether it transposes.
        starts: intp (32,), the element at whose address each lane points.
        registers: intp (4, 32, 2), the elements in each register of each lane.
    """

    trans: bool
    starts: np.ndarray
    registers: np.ndarray

    def operand(self, number: int) -> np.ndarray:
        """intp (16, 8), the elements of the tile that are B of mma number 0 or 1."""
        rows, columns = fragment_layout("m16n8k16", "b")
        b = np.full((SIDE, _EACH), -1, np.intp)
        mine = self.registers[list(_PAIRS[self.trans][number])]  # (2, 32, 2)
        b[rows, columns] = mine.transpose(0, 2, 1).reshape(4, LANES)
        return b


def run_ldmatrix(trans: bool = False) -> MatrixLoad:
    """Load the tile on the simulator; lane n points at row n mod 16, its right half from 16 on."""
    tile = np.arange(SIDE * SIDE, dtype=np.uint16)
    registers = np.zeros((LANES, 4, 2), np.uint16)
    report = simulator.launch(
        _SOURCE, "ldmatrix_trans" if trans else "ldmatrix", 1, LANES, (tile, registers),
        filename="ldmatrix.cu", progress=False,
    )  # fmt: skip
    access = warp_access(report, "s_tile", kind="load", space="shared")
    return MatrixLoad(trans, access.indices, registers.transpose(1, 0, 2).astype(np.intp))


def ldmatrix_steps(trans: bool = False, lane: int = 5) -> list[Frame]:
    """From the addresses of rows to an operand of mma; it opens on the registers.

    Args:
        trans: with `.trans`, as V is loaded; without, as K is.
        lane: the one whose elements are set off.

    Raises:
        ValueError: there is no such lane.
    """
    if not 0 <= lane < LANES:
        raise ValueError(f"A warp has the lanes 0 to {LANES - 1}, not {lane}.")
    film = _Film(run_ldmatrix(trans), lane)
    return told([film.frame(step) for step in range(len(LDMATRIX_STEPS))], 1)


def _cell(element: int) -> tuple[int, int]:
    return divmod(int(element), SIDE)


class _Film:
    """The tile, and how far its elements have come."""

    def __init__(self, load: MatrixLoad, lane: int):
        self.load, self.lane = load, lane
        self.name = "ldmatrix.x4" + ".trans" * load.trans
        # element → (register, lane)
        self.homes = {
            int(element): (register, holder)
            for register in range(4)
            for holder in range(LANES)
            for element in load.registers[register, holder]
        }

    def frame(self, step: int) -> Frame:
        canvas = Canvas(height=_HEIGHT, label=f"{self.name}, lane {self.lane}.")
        canvas.text(24, 24, self.name, size=20, bold=True, mono=True)
        canvas.text(_TILE.x, 54, "shared memory, 16 × 16 elements", bold=True)
        self._tile(canvas, spread=step > 0)
        self._addresses(canvas, now=step == 0)
        if step == 0:
            self._owners(canvas)
        else:
            self._registers(canvas)
        if step == 2:
            self._operand(canvas)
        return canvas.frame((self._said_rows, self._said_registers, self._said_operand)[step]())

    # ---------------------------------------------------------------- picture

    def _matrix_of(self, lane: int) -> int:
        return lane // _EACH

    def _tile(self, canvas: Canvas, spread: bool) -> None:
        """The elements by matrix: as rows, or `spread` over lanes, in pairs of a register."""
        for column in range(0, SIDE, 2):
            middle = _TILE.centre(0, column)[0]
            canvas.text(middle, _TILE.y - 7, str(column), size=SMALLEST, anchor="middle",
                        fill="muted", mono=True)  # fmt: skip
        if not spread:
            for lane, start in enumerate(self.load.starts):
                row, column = _cell(start)
                box = _TILE.around([(row, column), (row, column + _EACH - 1)])
                mine, name = lane == self.lane, hue(self._matrix_of(lane))
                canvas.rect(*box, fill=f"{name}-fill", stroke=name)
                if mine:
                    canvas.rect(*box, stroke="ink", weight=3)
            return
        for register in range(4):
            held = self.load.registers[register]
            boxes = [_TILE.around([_cell(a), _cell(b)]) for a, b in held]
            name = hue(register)
            canvas.cells(boxes, fill=f"{name}-fill", stroke=name)
            self._numbers(canvas, boxes)
        for register in range(4):
            pair = self.load.registers[register, self.lane]
            canvas.rect(*_TILE.around([_cell(e) for e in pair]), stroke="ink", weight=3)

    def _numbers(self, canvas: Canvas, boxes) -> None:
        """The lane of each box."""
        texts = [(x + w / 2, y + h / 2, str(n)) for n, (x, y, w, h) in enumerate(boxes)]
        spacing = -2 if boxes[0][2] < 24 else 0
        others = [text for n, text in enumerate(texts) if n != self.lane]
        canvas.add(centred(others, SMALLEST, "muted", spacing=spacing))
        canvas.add(centred([texts[self.lane]], SMALLEST, "ink", bold=True, spacing=spacing))

    def _addresses(self, canvas: Canvas, now: bool) -> None:
        """Beside each row the lanes that give its address."""
        for x, anchor in ((_TILE.x - 12, "end"), (_TILE.right + 12, "start")):
            canvas.text(x, _TILE.y - 7, "lane", size=SMALLEST, anchor=anchor, fill="muted")
        for lane, start in enumerate(self.load.starts):
            row, column = _cell(start)
            left = column == 0
            x = _TILE.x - 12 if left else _TILE.right + 12
            mine = lane == self.lane and now
            canvas.text(x, _TILE.centre(row)[1] + 5.4, str(lane), size=SMALLEST, mono=True,
                        anchor="end" if left else "start", bold=mine,
                        fill=hue(self._matrix_of(lane)))  # fmt: skip
            if mine:
                y, width = _TILE.centre(row)[1] - 9, 28
                canvas.rect(x + (5 - width if left else -5), y, width, 18, r=5, weight=2)

    def _owners(self, canvas: Canvas) -> None:
        """Which lanes point at the rows of which matrix."""
        x = _TILE.right + 66
        canvas.text(x, 54, "addresses", bold=True)
        for matrix in range(4):
            y = 96 + 56 * matrix
            first = _cell(self.load.starts[_EACH * matrix])
            canvas.rect(x, y - 14, 18, 18, fill=f"{hue(matrix)}-fill", stroke=hue(matrix))
            lanes = f"lanes {_EACH * matrix} to {_EACH * matrix + _EACH - 1}"
            canvas.text(x + 28, y, f"matrix {matrix}: {lanes}", bold=True)
            rows, columns = (f"{start} to {start + _EACH - 1}" for start in first)
            canvas.text(x + 28, y + 22, f"rows {rows}, columns {columns}", fill="muted")

    def _registers(self, canvas: Canvas) -> None:
        """The registers of the lane, with the elements in them."""
        x = _TILE.right + 52
        canvas.text(x, 54, f"registers of lane {self.lane}", bold=True)
        canvas.text(x, _TILE.y - 7, "(row, column)", size=SMALLEST, fill="muted")
        for register in range(4):
            y = _TILE.y + 72 * register
            name = hue(register)
            canvas.rect(x, y, 152, 60, r=4, fill=f"{name}-fill", stroke="ink", weight=2)
            canvas.text(x + 8, y + 21, f"r[{register}]", mono=True, bold=True)
            pair = self.load.registers[register, self.lane]
            text = " ".join(f"({row},{column})" for row, column in map(_cell, pair))
            canvas.text(x + 76, y + 47, text, size=SMALLEST, mono=True, anchor="middle",
                        within=146)  # fmt: skip

    def _operand(self, canvas: Canvas) -> None:
        """B of both products, with the lane that holds each pair."""
        rows, columns = fragment_layout("m16n8k16", "b")
        for number, pair in enumerate(_PAIRS[self.load.trans]):
            grid = Grid(634 + 168 * number, _TILE.y, 19, 18, SIDE, _EACH)
            a, b = pair
            canvas.text(grid.x, 54, f"B = r[{a}], r[{b}]", bold=True)
            for half, register in enumerate(pair):
                spots = [
                    [(rows[i, lane], columns[i, lane]) for i in (2 * half, 2 * half + 1)]
                    for lane in range(LANES)
                ]
                boxes = [grid.around(found) for found in spots]
                name = hue(register)
                canvas.cells(boxes, fill=f"{name}-fill", stroke=name)
                self._numbers(canvas, boxes)
                canvas.rect(*boxes[self.lane], stroke="ink", weight=3)
            first, last = (
                _cell(self.load.operand(number)[0, 0]),
                _cell(self.load.operand(number)[-1, -1]),
            )
            named = ("row", "column") if self.load.trans else ("column", "row")
            span = 1 if self.load.trans else 0
            canvas.text(grid.x, grid.y - 7, f"{named[1]} {first[span]} to {last[span]} →",
                        size=SMALLEST, fill="muted")  # fmt: skip
            if number == 0:
                canvas.text(grid.x - 24, grid.y + grid.height / 2, f"{named[0]} of the tile →",
                            size=SMALLEST, fill="muted", anchor="middle", turn=-90)  # fmt: skip

    # ---------------------------------------------------------------- words

    def _said_rows(self) -> str:
        row, column = _cell(self.load.starts[self.lane])
        return (
            f"Each lane passes the address of 16 bytes, a row of one of four 8 × 8 matrices. Lane "
            f"{self.lane} points at row {row}, columns {column} to {column + _EACH - 1}."
        )

    def _said_registers(self) -> str:
        (a, b), way = self.load.registers[0, self.lane], "row"
        if self.load.trans:
            way = "column"
        (ra, ca), (rb, cb) = _cell(a), _cell(b)
        return (
            f"Each matrix is spread over all 32 lanes: the number in a pair is the lane that gets "
            f"it. A register holds two neighbours of a {way}, in r[0] of lane {self.lane} "
            f"({ra},{ca}) and ({rb},{cb})."
        )

    def _said_operand(self) -> str:
        what = (
            "A column of B is a column of the tile, as the product with V wants it."
            if self.load.trans
            else "A column of B is a row of the tile, as the product with K transposed wants it."
        )
        return f"Two registers are B of an mma. {what}"
