"""Accesses to shared memory in rows of 128 bytes: eight 16-byte banks, and the phases of a warp.

A lane that moves 16 bytes touches four neighbouring banks, always the same four together. So the
32 banks are eight of 16 bytes, and chunk c of shared memory lies in number c mod 8. Eight lanes go
in a phase; chunks of one phase in one 16-byte bank take turns.
"""

import numpy as np

from helpers.kernels.kernel import Kernel, load_kernel
from helpers.simulator.observe.report import Report

from ..bank_rules import BankVerdict, judge
from ..canvas import Canvas, Frame, counted, literal, ranges, telling
from ..events import LANES, WarpAccess, warp_access
from ..parts import Grid, lane_row, legend

CHUNK = 16
ROW = 128  # bytes of the 32 banks once across
PHASE_HUES = ("blue", "purple", "sky", "yellow")
# Where a flash kernel goes to shared memory: (name, text of the line, kind of the access).
PATHS = (
    ("cp.async: copy to a tile", "cp_async_16(s_tile", "copy"),
    ("ldmatrix of Q", "ldmatrix_x4(r_Q", "load"),
    ("ldmatrix of K", "ldmatrix_x4(r_K", "load"),
    ("ldmatrix.trans of V", "ldmatrix_x4_trans(r_V", "load"),
    ("store of O, 4 bytes a lane", "*reinterpret_cast<unsigned*>(s_O", "store"),
    ("load of O, 16 bytes a lane", "*reinterpret_cast<uint4*>(O +", "load"),
)

_LEFT, _CELL_WIDTH, _CELL_HEIGHT = 150, 72, 26
_LANES_Y, _GRID_Y = 56, 136
_MOST_ROWS = 8


def run_phases(STRIDE: int = 1) -> Report:
    """The kernel `phases` of `09_toy_swizzle.cu`: lane n reads chunk STRIDE * n.

    Raises:
        KernelError: STRIDE is not among its choices.
    """
    k = load_kernel("09_toy_swizzle.cu", "phases", STRIDE=STRIDE)
    chunks = np.arange(4 * 8 * LANES, dtype=np.float32)
    return k.count(1, LANES, (chunks, np.zeros(4 * LANES, np.float32)))


def phase_frames(STRIDE: int = 1) -> list[Frame]:
    """A load of 16 bytes a lane, phase by phase: lane n reads chunk STRIDE * n.

    Raises:
        KernelError: STRIDE is not among the choices of `phases`.
    """
    access = warp_access(run_phases(STRIDE), "s_from", kind="load", space="shared")
    what = "all lanes read chunk 0" if STRIDE == 0 else f"lane n reads chunk {STRIDE} n"
    return chunk_frames(access, f"16 bytes a lane: {what if STRIDE != 1 else 'lane n, chunk n'}")


def path_access(k: Kernel, report: Report, path: str, *, warp: int = 0, step: int = 0):
    """One access to shared memory of a flash kernel, on one of its `PATHS`.

    Args:
        k, report: the kernel and a report of it.
        path: the beginning of a name in PATHS, such as "ldmatrix of K".
        warp, step: which warp of block 0, and which of its accesses on this path.

    Returns:
        (name, access)

    Raises:
        ValueError: there is no such path or access.
    """
    found = [entry for entry in PATHS if entry[0].startswith(path)]
    if not found:
        names = ", ".join(name for name, _, _ in PATHS)
        raise ValueError(f"There is no path {path!r}; there are {names}.")
    name, text, kind = found[0]
    (line,) = k.lines(text, whole=True)[:1]
    access = warp_access(report, line=line, kind=kind, space="shared", warp=warp, step=step)
    return name, access


def path_frames(k: Kernel, report: Report, path: str, **which) -> list[Frame]:
    """An access to a tile of a flash kernel, phase by phase.

    Args:
        k, report, path, **which: as for `path_access`.

    Raises:
        ValueError: there is no such path or access.
    """
    name, access = path_access(k, report, path, **which)
    row_bytes = 2 * k.parameters["HEAD_DIM"].value
    return chunk_frames(access, f"{name} in {k.file.name}", row_bytes=row_bytes)


def chunk_frames(access: WarpAccess, title: str, *, row_bytes: int = ROW) -> list[Frame]:
    """An access to shared memory, one phase a step.

    Args:
        access: of up to 16 bytes a lane.
        title: written above.
        row_bytes: of a row of the array, a multiple of 128: rows are named after it.

    Raises:
        ValueError: no lane takes part, a phase touches more than eight rows of 128 bytes, or
            `row_bytes` is no multiple of 128.
    """
    if row_bytes < ROW or row_bytes % ROW:
        raise ValueError(f"row_bytes is a multiple of {ROW}, not {row_bytes}.")
    verdict = judge(access)
    phases = sorted({int(phase) for phase in verdict.phases if phase >= 0})
    if not phases:
        raise ValueError("chunk_frames shows at least one lane.")
    film = PathFilm(access, title, row_bytes, verdict, phases)
    frames = [film.frame(number) for number in range(len(phases))]
    return [*frames[:-1], telling(frames[-1])]


class PathFilm:
    """An access on the way to a tile and from it, one phase a frame."""

    def __init__(self, access, title: str, row_bytes: int, verdict: BankVerdict, phases: list[int]):
        self.access, self.title, self.row_bytes = access, title, row_bytes
        self.verdict, self.phases = verdict, phases
        on = access.addresses[access.active]
        self.first_row = int(on.min()) // row_bytes
        most = max(len(self.rows(phase)) for phase in phases)
        # Room for the memory, and for the sums beside it.
        self.height = _GRID_Y + max(_CELL_HEIGHT * most + 62, 30 * len(phases) + 64, 130)
        for phase in phases:
            if len(self.rows(phase)) > _MOST_ROWS:
                raise ValueError(
                    f"Phase {phase + 1} touches {len(self.rows(phase))} rows of {ROW} bytes; "
                    f"there is room for {_MOST_ROWS}."
                )

    def lanes(self, phase: int) -> list[int]:
        return [int(lane) for lane in np.flatnonzero(self.verdict.phases == phase)]

    def chunks(self, phase: int) -> dict[int, list[int]]:
        """Chunk of shared memory → the lanes of a phase that touch it."""
        found: dict[int, list[int]] = {}
        for lane in self.lanes(phase):
            found.setdefault(int(self.access.addresses[lane]) // CHUNK, []).append(lane)
        return found

    def rows(self, phase: int) -> list[int]:
        """Rows of 128 bytes that a phase touches."""
        return sorted({chunk * CHUNK // ROW for chunk in self.chunks(phase)})

    def turns(self, phase: int) -> list[int]:
        """Wavefronts that each of the eight 16-byte banks takes."""
        return [int(n) for n in self.verdict.loads[phase].reshape(8, 4).max(axis=1)]

    # ---------------------------------------------------------------- picture

    def frame(self, number: int) -> Frame:
        phase = self.phases[number]
        canvas = Canvas(height=self.height, label=f"{self.title}: {self.verdict.summary}.")
        canvas.text(30, 20, literal(self.title), size=18, bold=True)
        self._lanes(canvas, number)
        grid = self._memory(canvas, phase)
        self._sums(canvas, number, grid)
        legend(
            canvas, _LEFT, self.height - 10,
            [("green", "alone in its bank"), ("vermillion", "takes turns in its bank")],
        )  # fmt: skip
        return canvas.frame(self._caption(number))

    def _lanes(self, canvas: Canvas, number: int) -> None:
        canvas.text(canvas.width - 30, _LANES_Y - 16, "lanes, by phase", anchor="end", fill="muted")

        def look_of(lane: int) -> tuple[dict, bool]:
            phase = int(self.verdict.phases[lane])
            hue = PHASE_HUES[phase % len(PHASE_HUES)]
            look = {"stroke": "grid", "dash": "3 3"}
            if phase >= 0:
                look = {"fill": f"{hue}-fill", "stroke": hue}
            if phase == self.phases[number]:
                look |= {"stroke": "ink", "weight": 3}
            return look, phase >= 0

        lane_row(canvas, 30, _LANES_Y - 6, (canvas.width - 60) / LANES, look_of, 1.5)

    def _memory(self, canvas: Canvas, phase: int) -> Grid:
        rows = self.rows(phase)
        grid = Grid(_LEFT, _GRID_Y, _CELL_WIDTH, _CELL_HEIGHT, len(rows), 8)
        middle = grid.x + grid.width / 2
        canvas.text(
            middle, _GRID_Y - 30, "16-byte bank: four of 4 bytes", anchor="middle", bold=True
        )
        for bank in range(8):
            x = grid.centre(0, bank)[0]
            canvas.text(x, _GRID_Y - 9, str(bank), anchor="middle", mono=True)
        canvas.cells(grid.boxes, fill="faint", stroke="grid")
        turns = self.turns(phase)
        for chunk, lanes in self.chunks(phase).items():
            row, bank = rows.index(chunk * CHUNK // ROW), chunk % 8
            hue = "vermillion" if turns[bank] > 1 else "green"
            x, y, width, height = grid.box(row, bank)
            canvas.rect(x + 2, y + 2, width - 4, height - 4, r=4, fill=f"{hue}-fill", stroke=hue,
                        weight=2)  # fmt: skip
            text = ranges(lanes)
            canvas.text(x + width / 2, y + height / 2 + 5, text, anchor="middle",
                        mono=True, within=width - 8)  # fmt: skip
        for number, row in enumerate(rows):
            canvas.text(grid.x - 12, grid.centre(number)[1] + 5, self._name(row), anchor="end")
        for bank, count in enumerate(turns):
            if count:
                canvas.text(
                    grid.centre(0, bank)[0], grid.bottom + 22, f"{count}×", anchor="middle",
                    bold=True, fill="vermillion" if count > 1 else "green",
                )  # fmt: skip
        canvas.text(grid.x - 12, grid.bottom + 22, "turns", anchor="end", fill="muted")
        return grid

    def _name(self, row: int) -> str:
        """A row of 128 bytes, by the array's own rows."""
        place = row * ROW
        name = f"row {place // self.row_bytes - self.first_row}"
        if self.row_bytes == ROW:
            return name
        chunk = place % self.row_bytes // CHUNK
        return f"{name}, {chunk}–{chunk + 7}"

    def _sums(self, canvas: Canvas, number: int, grid: Grid) -> None:
        x, y = grid.right + 34, _GRID_Y - 24
        canvas.text(x, y, "wavefronts", bold=True)
        total = 0
        for done, phase in enumerate(self.phases):
            y += 30
            if done > number:
                canvas.text(x, y, f"phase {phase + 1}", fill="muted")
                continue
            count = max(self.turns(phase))
            total += count
            hue = PHASE_HUES[phase % len(PHASE_HUES)]
            canvas.text(x, y, f"phase {phase + 1}", fill=hue, bold=done == number)
            canvas.text(x + 150, y, str(count), anchor="end", mono=True, bold=True,
                        fill="vermillion" if count > 1 else "green")  # fmt: skip
        canvas.line(x, y + 12, x + 150, y + 12)
        canvas.text(x, y + 38, "so far" if number < len(self.phases) - 1 else "together")
        canvas.text(x + 150, y + 38, str(total), size=22, anchor="end", mono=True, bold=True)
        canvas.text(x, y + 66, f"ideal {self.verdict.ideal}", fill="muted")

    # ---------------------------------------------------------------- words

    def _caption(self, number: int) -> str:
        phase = self.phases[number]
        lanes, turns = self.lanes(phase), self.turns(phase)
        chunks = self.chunks(phase)
        what = counted(len(chunks), "chunk")
        head = f"Phase {phase + 1}: lanes {ranges(lanes)} touch {what}"
        worst = max(turns)
        if worst == 1 and len(chunks) == 1:
            text = f"{head}, one for all of them: 1 wavefront."
        elif worst == 1:
            text = f"{head}, each in a bank of its own: 1 wavefront."
        else:
            used = sum(turn > 0 for turn in turns)
            where = "one bank" if used == 1 else f"{used} banks"
            text = f"{head} in {where}: {worst} wavefronts, one after the other."
        if number == len(self.phases) - 1:
            text += f" The access takes {self.verdict.summary}."
        return text
