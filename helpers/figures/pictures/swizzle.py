"""The swizzle on matrices small enough to watch, from traces of `turn` in `09_toy_swizzle.cu`.

Rows go in, columns come out. A place of a row stands for a bank: 4 places for four banks, 8 places
of 16 bytes for all the banks there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from helpers.kernels.kernel import load_kernel
from helpers.kernels.launches import Launch
from helpers.simulator.observe.report import Report

from ..canvas import NORMAL, SMALLEST, Canvas, Frame, counted, told
from ..events import by_block
from ..palette import hue
from ..parts import Grid, outline
from ..tiles import centred

FILE = "09_toy_swizzle.cu"
MAPS = {
    "NONE": "col",
    "XOR": "row ^ col",
    "LATIN": "(row + col) % {size}",
    "BROKEN": "row * col % {size}",
    "WRITE_ONLY": "row ^ col to write, col to read",
}
_WORDS = {"float": 1, "float4": 4}


@dataclass(frozen=True)
class Turn:
    """A run of `turn`.

    Attributes:
        size, swizzle, element: its parameters.
        stored: intp (size, size), the place in its row at which element (row, column) was put.
        read: intp (size, size), the place in row x at which output (y, x) was looked for.
        came: intp (size, size, 2), the (row, column) of the element that output (y, x) got.
        report: of the run.
    """

    size: int
    swizzle: str
    element: str
    stored: np.ndarray
    read: np.ndarray
    came: np.ndarray
    report: Report

    @property
    def kept(self) -> np.ndarray:
        """The (row, column) of the element in each place, (-1, -1) where there is none."""
        kept = np.full((self.size, self.size, 2), -1, np.intp)
        for column in range(self.size):
            for row in range(self.size):
                place = self.stored[row, column]
                rivals = np.flatnonzero(self.stored[row] == place)
                # Of several, the one that somebody found there.
                found = self.came[self.read[:, row] == place, row]
                mine = [c for r, c in found if r == row and c in rivals]
                kept[row, place] = row, mine[0] if mine else rivals[-1]
        return kept

    @property
    def right(self) -> np.ndarray:
        """Bool (size, size): whether output (y, x) is element (x, y)."""
        y, x = np.indices((self.size, self.size))
        return (self.came[..., 0] == x) & (self.came[..., 1] == y)

    def turns(self, column: int) -> int:
        """The most elements of a column that lie in one place of their rows: in one bank."""
        return int(np.bincount(self.read[column]).max())


def run_turn(SIZE: int = 4, SWIZZLE: str = "XOR", ELEMENT: str = "float") -> Turn:
    """Run `turn` on the simulator and see where its elements went.

    Raises:
        KernelError: a value is not among the kernel's choices.
    """
    k = load_kernel(FILE, "turn", SIZE=SIZE, SWIZZLE=SWIZZLE, ELEMENT=ELEMENT)
    words = _WORDS[ELEMENT]
    rows = np.arange(SIZE * SIZE * words, dtype=np.float32)
    launch = Launch.of(k, 1, (SIZE, SIZE), (rows, np.full_like(rows, np.nan)))
    report, arrays = launch.simulate()
    columns = arrays["columns"]
    came = np.stack(np.divmod(columns[::words].astype(np.intp) // words, SIZE), axis=-1)
    places = {kind: np.full((SIZE, SIZE), -1, np.intp) for kind in ("store", "load")}
    for event in by_block(report)[0, 0, 0]:
        if event.space != "shared":
            continue
        for touch in event.touches:
            y, x = divmod(touch.thread, SIZE)
            row, place = divmod(touch.address // (4 * words), SIZE)
            assert row == (y if event.kind == "store" else x)
            places[event.kind][y, x] = place
    return Turn(
        SIZE, SWIZZLE, ELEMENT, places["store"], places["load"],
        came.reshape(SIZE, SIZE, 2), report,
    )  # fmt: skip


def swizzle_frames(SIZE: int = 4, SWIZZLE: str = "XOR", ELEMENT: str = "float") -> list[Frame]:
    """A matrix goes through shared memory: in row by row, out column by column.

    Args:
        SIZE, SWIZZLE, ELEMENT: as for the kernel; SIZE at most 8.

    Raises:
        ValueError: SIZE is above 8.
        KernelError: a value is not among the kernel's choices.
    """
    if SIZE > 8:
        raise ValueError(f"there is room for 8 rows, not {SIZE}.")
    film = TurnFilm(run_turn(SIZE, SWIZZLE, ELEMENT))
    frames = [film.frame(way, step) for way in ("in", "out") for step in range(SIZE)]
    return told(frames, SIZE + 1)  # the second column: without a swizzle the first looks like it


class TurnFilm:
    """A matrix on its way through shared memory, in by rows and out by columns."""

    def __init__(self, turn: Turn):
        self.turn, self.size = turn, turn.size
        self.cell = 46 if self.size <= 4 else 29
        self.map = MAPS[turn.swizzle].format(size=self.size)

    def frame(self, way: str, step: int) -> Frame:
        n, cell = self.size, self.cell
        canvas = Canvas(
            height=140 + n * cell + 36,
            label=f"{n} × {n} elements in shared memory, place = {self.map}.",
        )
        doing = f"row {step} goes in" if way == "in" else f"column {step} comes out"
        canvas.text(30, 32, doing, size=20, bold=True)
        canvas.text(300, 32, f"place = {self.map}", size=18, mono=True)
        width = n * cell
        gap = (canvas.width - 3 * width - 110) / 2
        rows, shared, out = (Grid(62 + i * (width + gap), 110, cell, cell, n, n) for i in range(3))
        self._matrix(canvas, rows, way, step)
        self._shared(canvas, shared, way, step)
        self._output(canvas, out, way, step)
        y = rows.y + width / 2
        for left, right in ((rows, shared), (shared, out)):
            on = (left is rows) == (way == "in")
            canvas.arrow(left.right + 10, y, right.x - 42, y, stroke="ink" if on else "grid")
        return canvas.frame(self._in(step) if way == "in" else self._out(step))

    def _matrix(self, canvas: Canvas, grid: Grid, way: str, step: int) -> None:
        self._frame(canvas, grid, "rows", "column", "row")
        gone = self.size if way == "out" else step + 1
        self._elements(canvas, grid, {p: p for p in grid.places if p[0] < gone})
        self._elements(canvas, grid, {p: p for p in grid.places if p[0] >= gone}, faint=True)
        if way == "in":
            outline(canvas, grid, grid.row(step))

    def _shared(self, canvas: Canvas, grid: Grid, way: str, step: int) -> None:
        self._frame(canvas, grid, "shared memory", "place = bank", "row")
        t = self.turn
        there = {
            (row, place): (int(r), int(c))
            for row in range(self.size if way == "out" else step + 1)
            for place, (r, c) in enumerate(t.kept[row])
            if r >= 0
        }
        self._elements(canvas, grid, there)
        if way == "in":
            outline(canvas, grid, [(step, int(p)) for p in np.unique(t.stored[step])])
            return
        looked = [(row, int(t.read[step, row])) for row in range(self.size)]
        outline(canvas, grid, looked)
        for place in range(self.size):
            count = sum(p == place for _, p in looked)
            if count:
                canvas.text(
                    grid.centre(0, place)[0], grid.bottom + 22, f"{count}×",
                    anchor="middle", bold=True, fill="vermillion" if count > 1 else "green",
                )  # fmt: skip

    def _output(self, canvas: Canvas, grid: Grid, way: str, step: int) -> None:
        self._frame(canvas, grid, "columns", "", "")
        t, done = self.turn, step + 1 if way == "out" else 0
        places = grid.places[: done * self.size]
        self._elements(canvas, grid, {p: tuple(map(int, t.came[p])) for p in places})
        for place in places:
            if not t.right[place]:
                x, y, width, height = grid.box(*place)
                ends = (x + 4, y + height - 4, x + width - 4, y + 4)
                canvas.line(*ends, stroke="vermillion", weight=3)
        if way == "out":
            outline(canvas, grid, grid.row(step))

    def _frame(self, canvas: Canvas, grid: Grid, title: str, across: str, down: str) -> None:
        canvas.text(grid.x, grid.y - 44, title, bold=True)
        canvas.cells(grid.boxes, stroke="grid", dash="3 3")
        look = {"fill": "muted", "mono": True}
        for n in range(self.size if across else 0):
            canvas.text(grid.centre(0, n)[0], grid.y - 8, str(n), anchor="middle", **look)
            canvas.text(grid.x - 8, grid.centre(n)[1] + 4, str(n), anchor="end", **look)
        canvas.text(grid.x, grid.y - 25, across, fill="muted")
        middle = grid.y + grid.height / 2
        canvas.text(grid.x - 24, middle, down, fill="muted", anchor="middle", turn=90)

    def _elements(self, canvas: Canvas, grid: Grid, there: dict, faint: bool = False) -> None:
        """Elements (row, column) in cells: coloured by column, labelled with both."""
        for number in range(self.size):
            mine = [grid.box(*at) for at, (_, column) in there.items() if column == number]
            boxes = [(x + 1, y + 1, width - 2, height - 2) for x, y, width, height in mine]
            name = hue(number)
            look = {"stroke": "grid"} if faint else {"fill": f"{name}-fill", "stroke": name}
            canvas.cells(boxes, **look)
        texts = [(*grid.centre(*at), f"{row},{column}") for at, (row, column) in there.items()]
        # Or neighbours would run together.
        size, spacing = (SMALLEST, -2) if self.size > 4 else (NORMAL, 0)
        if texts:
            canvas.add(centred(texts, size, "muted" if faint else "ink", spacing=spacing))

    # ---------------------------------------------------------------- words

    def _in(self, row: int) -> str:
        places = self.turn.stored[row]
        used = len(np.unique(places))
        listed = ", ".join(map(str, places))
        text = f"Row {row}: columns 0 to {self.size - 1} go to the places {listed}"
        if used == self.size:
            return f"{text}, each to one of its own: nothing is lost."
        return (
            f"{text}: {counted(used, 'place')} for {self.size} elements, and each keeps one of "
            "those that are put there."
        )

    def _out(self, column: int) -> str:
        t = self.turn
        turns = t.turns(column)
        listed = ", ".join(map(str, t.read[column]))
        text = f"Column {column} is looked for at the places {listed} of rows 0 to {self.size - 1}"
        text += ": each in a bank of its own, one turn." if turns == 1 else f": {turns} turns."
        wrong = int((~t.right[column]).sum())
        if wrong:
            verb = "is not the one that belongs" if wrong == 1 else "are not those that belong"
            text += f" {counted(wrong, 'element')} {verb} there."
        if column == self.size - 1 and not t.right.all():
            text += f" In all, {int((~t.right).sum())} of {self.size**2} are wrong."
        return text


def latin_squares(
    swizzles: Sequence[str] = ("NONE", "XOR", "LATIN", "BROKEN"), SIZE: int = 4
) -> list[Frame]:
    """Several maps beside each other: for each column, the place of its element in each row.

    A map without loss has every column once in each row; one without conflicts has it once in each
    place too. Both together make a Latin square.

    Args:
        swizzles: up to four of the kernel's choices.
        SIZE: 4 or 8.

    Raises:
        ValueError: more than four maps, or SIZE above 8.
        KernelError: a value is not among the kernel's choices.
    """
    if not 1 <= len(swizzles) <= 4 or SIZE > 8:
        raise ValueError(
            f"there is room for 1 to 4 squares of up to 8 rows, not {len(swizzles)} of {SIZE}."
        )
    turns = [run_turn(SIZE, swizzle) for swizzle in swizzles]
    return told([_squares(turns, column) for column in range(SIZE)], 1)


def _squares(turns: Sequence[Turn], column: int) -> Frame:
    n = turns[0].size
    cell = 40 if n <= 4 else 22
    canvas = Canvas(height=n * cell + 264, label=f"Maps of {n} × {n} places as squares.")
    canvas.text(30, 32, f"where column {column} lies", size=20, bold=True)
    said = []
    for number, turn in enumerate(turns):
        grid = Grid(66 + number * 228, 136, cell, cell, n, n)
        canvas.text(grid.x, 66, turn.swizzle, bold=True, mono=True)
        canvas.text(grid.x, 86, MAPS[turn.swizzle].format(size=n), mono=True)
        canvas.text(grid.x, 111, "place", fill="muted")
        canvas.text(grid.x - 26, grid.y + grid.height / 2, "row", fill="muted", anchor="middle",
                    turn=90)  # fmt: skip
        for at in range(n):
            look = {"fill": "muted", "mono": True}
            canvas.text(grid.centre(0, at)[0], grid.y - 7, str(at), anchor="middle", **look)
            canvas.text(grid.x - 8, grid.centre(at)[1] + 5, str(at), anchor="end", **look)
        _square(canvas, grid, turn, column)
        whole = all(len(np.unique(row)) == n for row in turn.stored)
        worst = max(map(turn.turns, range(n)))
        lines = [
            ("row by row: ", "all kept" if whole else f"{int((~turn.right).sum())} lost", whole),
            ("column by column: ", "1 turn" if worst == 1 else f"{worst} turns", worst == 1),
        ]
        for line, (label, verdict, good) in enumerate(lines):
            y = grid.bottom + 30 + 48 * line
            canvas.text(grid.x, y, label, fill="muted")
            canvas.text(grid.x, y + 20, verdict, bold=True, fill="green" if good else "vermillion")
        here = turn.turns(column)
        said.append(f"{turn.swizzle} {'1 turn' if here == 1 else f'{here} turns'}")
    return canvas.frame(f"Reading column {column} takes: {', '.join(said)}.")


def _square(canvas: Canvas, grid: Grid, turn: Turn, column: int) -> None:
    """Rows and places; in each the column of the element that is kept there."""
    look = {"anchor": "middle", "mono": True}
    for row in range(turn.size):
        for place, (r, c) in enumerate(turn.kept[row]):
            if r < 0:
                canvas.cells([grid.box(row, place)], stroke="grid", dash="3 3")
                continue
            mine = c == column
            name = hue(int(c))
            canvas.cells([grid.box(row, place)], fill=f"{name}-fill" if mine else "faint",
                         stroke=name if mine else "grid")  # fmt: skip
            x, y = grid.centre(row, place)
            canvas.text(x, y + 0.36 * NORMAL, str(c), bold=bool(mine),
                        fill="ink" if mine else "muted", **look)  # fmt: skip
    outline(canvas, grid, [(row, int(turn.read[column, row])) for row in range(turn.size)])
