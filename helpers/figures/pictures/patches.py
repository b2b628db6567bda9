"""A thread's patch of S in `07_register_blocked.cu`, from the trace: what it reads and serves."""

from typing import NamedTuple

from ..canvas import LARGE, Canvas, Frame, literal, told
from ..events import LANES, warp_accesses
from ..parts import Grid
from ..products import operands
from ..runs import SmallRun, launch

_FLOATS = 4  # of a load of 16 bytes
_LEFT, _TOP, _SIDE, _GAP = 24, 26, 282, 20
_BLOCK = 256  # threads of a block


class _Load(NamedTuple):
    """A load of the thread: the tile, its row there, and the first position along d."""

    tile: str
    row: int
    position: int


def run_patches(PATCH: int = 4, TILE: int = 16, WARP_ROWS: int = 4) -> SmallRun:
    """Run one block of `scaled_dot_product` of `07_register_blocked.cu` with one pair of tiles.

    Args:
        PATCH, TILE, WARP_ROWS: its parameters.
    """
    N = 16 * PATCH
    return launch(
        "07_register_blocked.cu", "scaled_dot_product", 1, _BLOCK, operands(N, TILE),
        {"N": N, "d": TILE}, PATCH=PATCH, TILE=TILE, WARP_ROWS=WARP_ROWS,
    )  # fmt: skip


def register_patch(
    PATCH: int = 4, TILE: int = 16, WARP_ROWS: int = 4, *, thread: int = 5
) -> list[Frame]:
    """What a thread reads in a step of its loop over k, load by load, and the sums that it serves.

    Args:
        PATCH, TILE, WARP_ROWS: of the run, as for `run_patches`.
        thread: its number in the block.

    Raises:
        ValueError: there is no such thread.
    """
    if not 0 <= thread < _BLOCK:
        raise ValueError(f"A block has the threads 0 to {_BLOCK - 1}, not {thread}.")
    film = PatchFilm(run_patches(PATCH, TILE, WARP_ROWS), thread)
    return told([film.frame(count) for count in range(len(film.loads) + 1)], -1)


class PatchFilm:
    """A thread's loads one by one, and the sums of its patch that they serve."""

    def __init__(self, run: SmallRun, thread: int):
        self.thread = thread
        self.N, self.tile = run.sizes["N"], run.defines["TILE"]
        warp, lane = divmod(thread, LANES)
        width = self.tile + _FLOATS  # of a row in shared memory, padded by a float4
        step = []
        for access in warp_accesses(run.report, kind="load", space="shared", warp=warp):
            row, position = divmod(int(access.indices[lane]), width)
            if access.active[lane] and access.bytes == 4 * _FLOATS and position < _FLOATS:
                step.append(_Load(access.array, row, position))
        self.loads = step
        stores = warp_accesses(run.report, "S", kind="store", warp=warp)
        self.patch = sorted(divmod(int(a.indices[lane]), self.N) for a in stores if a.active[lane])
        self.cell = _SIDE / self.N
        self.depth = self.tile * self.cell  # of a tile, in pixels
        self.x, self.y = _LEFT + self.depth + _GAP, _TOP + self.depth + _GAP
        self.grid = Grid(self.x, self.y, self.cell, self.cell, self.N, self.N)

    def frame(self, count: int) -> Frame:
        """The step after `count` loads."""
        loads = self.loads[:count]
        rows = [load.row for load in loads if load.tile == "s_Q"]
        columns = [load.row for load in loads if load.tile == "s_K"]
        served = [place for place in self.patch if place[0] in rows and place[1] in columns]
        label = (
            f"Thread {self.thread} reads {len(self.loads)} times 4 floats for "
            f"{_FLOATS * len(self.patch)} multiplications of its {len(self.patch)} sums."
        )
        canvas = Canvas(height=self.y + _SIDE + 24, label=label)
        self._tiles(canvas)
        self._loads(canvas, loads)
        waiting = [place for place in self.patch if place not in served]
        for places, fill in ((waiting, "none"), (served, "purple")):
            boxes = [self.grid.box(*place) for place in places]
            canvas.cells(boxes, fill=fill, stroke="purple", weight=1.5)
        self._sums(canvas, count, len(served))
        return canvas.frame(self._caption(loads, len(served)))

    def _tiles(self, canvas: Canvas) -> None:
        for name, x, y, width, height in (
            ("s_Q", _LEFT, self.y, self.depth, _SIDE),
            ("s_K, drawn transposed", self.x, _TOP, _SIDE, self.depth),
            ("", self.x, self.y, _SIDE, _SIDE),
        ):
            canvas.rect(x, y, width, height, fill="faint", stroke="muted")
            canvas.text(x, y - 6, literal(name), bold=True)
        text = f"S: the block's {self.N} × {self.N} elements"
        canvas.text(self.x, self.y + _SIDE + 18, text, bold=True)

    def _loads(self, canvas: Canvas, loads: list[_Load]) -> None:
        for load in loads:
            now = load is loads[-1]
            along, across = load.position * self.cell, load.row * self.cell
            long = _FLOATS * self.cell
            if load.tile == "s_Q":
                box = (_LEFT + along, self.y + across, long, self.cell)
                band = (self.x, self.y + across, _SIDE, self.cell)
            else:
                box = (self.x + across, _TOP + along, self.cell, long)
                band = (self.x + across, self.y, self.cell, _SIDE)
            hue = "blue" if load.tile == "s_Q" else "orange"
            canvas.rect(*band, fill=f"{hue}-fill", fill_opacity=0.55)
            canvas.rect(*box, fill=hue, stroke="ink" if now else hue, weight=2 if now else 1)

    def _sums(self, canvas: Canvas, loads: int, served: int) -> None:
        x, y = self.x + _SIDE + 36, self.y + 24
        floats, products = _FLOATS * loads, _FLOATS * served
        canvas.text(x, y, f"thread {self.thread}", size=LARGE, bold=True)
        lines = [("floats read", f"{floats}"), ("multiplications they serve", f"{products}")]
        if products:
            lines.append(("floats a multiplication", f"{floats / products:.3g}"))
        for n, (what, count) in enumerate(lines):
            at = y + 44 + 32 * n
            canvas.text(x, at, what)
            canvas.text(x + 330, at, count, size=LARGE, bold=True, anchor="end")
        canvas.text(x, y + 148, "one sum at a time: 2 floats a multiplication", fill="muted")

    def _caption(self, loads: list[_Load], served: int) -> str:
        if not loads:
            return (
                f"The {len(self.patch)} elements of S of which thread {self.thread} keeps the sums "
                "in registers."
            )
        load = loads[-1]
        what = f"{load.tile}[{load.row}][{load.position}…{load.position + _FLOATS - 1}]"
        text = f"{what} is read in one load of 16 bytes."
        if len(loads) == len(self.loads):
            return (
                f"{text} {_FLOATS * len(loads)} floats have been read, and {_FLOATS * served} "
                f"multiplications use them: {_FLOATS} for each sum of the patch."
            )
        if load.tile == "s_K":
            return f"{text} Every row of Q that waits in registers is multiplied by it."
        return f"{text} It stays in registers for the whole row of the patch."
