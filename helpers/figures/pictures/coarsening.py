"""One tile of Q for several tiles of S: `03_tiled.cu` and `05_coarsened.cu` side by side.

Both sides are read from the traces of the two kernels and advance by tile products, so that at each
step both have done the same work.
"""

from typing import NamedTuple

from ..canvas import LARGE, Canvas, Frame, counted, told
from ..palette import MATRIX_HUES
from ..parts import Grid
from ..products import run_product
from ..replay import BlockReplay, Phase, replay
from ..runs import SmallRun
from ..tiles import bar, cells_of, frame_of, operand_grid, result_grid, shared_grid, short

MOST_ELEMENTS, MOST_STEPS = 8, 200
_HEIGHT, _SIDE = 411, 456
_KT_Y, _S_Y, _COUNTS_Y = 80, 197, 332
_TILES_X = 346


def coarsening_compared(N: int = 4, d: int = 4, TILE: int = 2, COARSE: int = 2) -> list[Frame]:
    """What blocks read from global memory without and with coarse threads, step by step.

    Args:
        N, d, TILE, COARSE: sizes of the two runs; N and d up to 8.

    Raises:
        ValueError: the matrices are too large, or the steps too many.
    """
    if max(N, d) > MOST_ELEMENTS:
        raise ValueError(f"N and d are {MOST_ELEMENTS} at most in this figure, not {N} and {d}.")
    sides = [
        _Side(run_product("03_tiled.cu", N, d, TILE), 0, "one tile of S a block"),
        _Side(run_product("05_coarsened.cu", N, d, TILE, COARSE), 504, f"COARSE = {COARSE}"),
    ]
    steps = max(len(side.steps) for side in sides)
    if steps > MOST_STEPS:
        raise ValueError(
            f"These sizes take {steps:,} steps, more than {MOST_STEPS}: choose a larger TILE, or "
            "smaller matrices."
        )
    full = max(sum(side.steps[-1].reads.values()) for side in sides)
    frames = [_frame(sides, number, steps, full) for number in range(steps)]
    phases = [step.phase for step in sides[1].steps]
    kept = (n for n, phase in enumerate(phases) if phase.kind == "load" and "Q" not in phase.reads)
    return told(frames, next(kept, -1), -1)


class _Step(NamedTuple):
    """How one side stands after a phase; `reads` counts from the start, by array."""

    block: BlockReplay
    phase: Phase
    reads: dict[str, int]
    finished: dict[int, float]


class _Side:
    """One kernel's half of the figure."""

    def __init__(self, run: SmallRun, x: float, title: str):
        self.run, self.x, self.title = run, x, title
        self.N, self.d, self.tile = run.sizes["N"], run.sizes["d"], run.defines["TILE"]
        reads = {"Q": 0, "K": 0}
        finished: dict[int, float] = {}
        self.steps: list[_Step] = []
        for block in replay(run):
            for phase in block.phases:
                for array, found in phase.reads.items():
                    reads[array] = reads.get(array, 0) + len(found)
                done = {at: float(run.arrays["S"].flat[at]) for at in phase.stored}
                finished = finished | done
                self.steps.append(_Step(block, phase, dict(reads), finished))
        self.blocks = len({step.block.block for step in self.steps})
        self.cell = min(38.0, 150 / max(self.N, self.d)), min(26.0, 107 / max(self.N, self.d))
        self.whole = all(
            float(v).is_integer() for step in self.steps for v in step.phase.partial.values()
        )

    def at(self, number: int) -> _Step:
        return self.steps[min(number, len(self.steps) - 1)]

    # ---------------------------------------------------------------- picture

    def draw(self, canvas: Canvas, number: int, full: int) -> None:
        step = self.at(number)
        block, phase = step.block, step.phase
        x = self.x + 12
        canvas.text(x, 20, self.title, size=LARGE, bold=True)
        name = f"block ({block.block[0]}, {block.block[1]}) of {self.blocks}"
        canvas.lines(x, 44, [f"{name}:", phase.kind])
        held = {h.source for words in phase.shared.values() for h in words.values() if h.source}
        s_x = x + max(self.d * self.cell[0], 100) + 22
        q_y = _S_Y
        kt_y = _S_Y - 32 - self.d * self.cell[1]
        fresh = {(array, index) for array, found in phase.reads.items() for index in found}
        self._operand(canvas, "Q", "Q", x, q_y, held, fresh)
        self._operand(canvas, "K", "Kᵀ", s_x, kt_y, held, fresh)
        self._result(canvas, s_x, q_y, step)
        self._shared(canvas, self.x + _TILES_X, phase)
        self._counts(canvas, x, step, full)

    def _operand(self, canvas, name: str, title: str, x: float, y: float, held, fresh) -> None:
        hue, shape = MATRIX_HUES[name], (self.N, self.d) if name == "Q" else (self.d, self.N)
        grid = Grid(x, y, *self.cell, *shape)
        frame_of(
            canvas, grid, operand_grid(canvas, grid, name, self.run.arrays[name], held), hue, 2
        )
        frame_of(canvas, grid, cells_of(name, self.d, fresh), "ink", 4)
        canvas.text(x, y - 9, title, size=18, bold=True, fill=hue)

    def _result(self, canvas: Canvas, x: float, y: float, step: _Step) -> None:
        mine = {at for found in step.block.results.values() for at in found}
        done = {at: short(value) for at, value in step.finished.items()}
        grid = Grid(x, y, *self.cell, self.N, self.N)
        result_grid(canvas, grid, step.phase.partial, done, mine, self.whole, "−9.5")
        frame_of(canvas, grid, [divmod(at, self.N) for at in mine], "purple", 4)
        frame_of(canvas, grid, [divmod(at, self.N) for at in step.phase.touched], "ink", 3)
        canvas.text(x, y - 9, "S", size=18, bold=True, fill="purple")

    def _shared(self, canvas: Canvas, x: float, phase: Phase) -> None:
        edge = self.tile
        cell = min(38.0, 84 / edge), min(26.0, 72 / edge)
        canvas.text(x, _KT_Y - 30, "shared", fill="muted")
        for place, array in enumerate(sorted(phase.shared, reverse=True)[:2]):
            held = phase.shared[array]
            y = _KT_Y + place * 126
            grid = Grid(x, y, *cell, edge, edge)
            shared_grid(canvas, grid, array, held, "K" if place else "Q", "−9")
            if phase.kind == "load":
                new = array in phase.fresh
                if new:
                    frame_of(canvas, grid, [divmod(i, edge) for i in phase.fresh[array]], "ink", 4)
                note = "loaded" if new else "kept"
                canvas.text(x, grid.bottom + 20, note, bold=not new)

    def _counts(self, canvas: Canvas, x: float, step: _Step, full: int) -> None:
        canvas.text(x, _COUNTS_Y, "elements read from global memory", bold=True)
        rows = [("Q", step.reads["Q"], "blue"), ("K", step.reads["K"], "orange")]
        rows.append(("total", step.reads["Q"] + step.reads["K"], "gray"))
        width = _SIDE - 12 - 56 - 60
        for place, (label, value, hue) in enumerate(rows):
            y = _COUNTS_Y + 10 + 23 * place
            canvas.text(x, y + 15, label)
            bar(canvas, x + 56, y, width, 17, value, full, hue)
            canvas.text(x + 56 + width + 48, y + 16, str(value), size=18, bold=True, anchor="end")

    # ---------------------------------------------------------------- words

    def words(self, number: int) -> str:
        step = self.at(number)
        block, phase = step.block, step.phase
        name = f"block ({block.block[0]}, {block.block[1]})"
        if number >= len(self.steps):
            return "it is done"
        if phase.kind == "load":
            counts = {a: len(found) for a, found in sorted(phase.reads.items(), reverse=True)}
            read = " and ".join(f"{n} of {array}" for array, n in counts.items()) or "nothing"
            kept = [array for array in sorted(phase.shared) if array not in phase.fresh]
            text = f"{name} reads {read}"
            return f"{text}; {' and '.join(kept)} stays as it is" if kept else text
        text = f"{name} adds to {counted(len(phase.touched), 'element')} of S"
        return f"{text} and stores {len(phase.stored)}" if phase.stored else text


def _frame(sides: list[_Side], number: int, steps: int, full: int) -> Frame:
    canvas = Canvas(height=_HEIGHT, label="Reads without and with coarse threads, side by side.")
    for side in sides:
        side.draw(canvas, number, full)
    canvas.line(480, 8, 480, _HEIGHT - 8, stroke="grid")
    left, right = (side.words(number) for side in sides)
    caption = f"Left, {left}. Right, {right}."
    if number == steps - 1:
        totals = [side.steps[-1].reads for side in sides]
        left, right = (f"{r['Q']} + {r['K']} = {r['Q'] + r['K']}" for r in totals)
        caption += f" Reads of Q and K in all: {left} on the left, {right} on the right."
        caption += f" Blocks: {sides[0].blocks} and {sides[1].blocks}."
    return canvas.frame(caption)
