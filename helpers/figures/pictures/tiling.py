"""S = QKᵀ / √d through tiles in shared memory, step by step, from the trace of `03_tiled.cu`."""

from helpers.problem.attention import cdiv

from ..barrier_bar import block_waits
from ..canvas import LARGE, Canvas, Frame, bracketed, counted, telling
from ..palette import MATRIX_HUES
from ..parts import Grid
from ..products import NaiveReads, run_product
from ..replay import BlockReplay, Element, Phase, replay
from ..runs import SmallRun
from ..tiles import (
    cells_of,
    frame_of,
    gauge,
    operand_grid,
    result_grid,
    shared_grid,
    short,
)  # fmt: skip

MOST_ELEMENTS, MOST_STEPS = 16, 200
_HEIGHT = 411
_LEFT, _TOP = 20, 28
_WIDE, _HIGH = (236, 332), 162  # of Q, of Kᵀ and S; of each of them
_PANEL = 628  # where the shared memory and the counts begin
_BAR_Y = 206  # of the bar at which threads wait
_STEPS = ("load", "first", "multiply", "second", "store")


def tiled_product(N: int = 8, d: int = 8, TILE: int = 4) -> list[Frame]:
    """How blocks load tiles of Q and Kᵀ, wait, multiply, and wait again, a step for each.

    Left the matrices, right the shared memory of the block at work, and how many elements have been
    read from global memory so far, against what the naive kernel reads for the same products.

    Args:
        N, d, TILE: sizes of a run of `03_tiled.cu`; N and d up to 16.

    Raises:
        ValueError: the matrices are too large, or the steps too many.
    """
    if max(N, d) > MOST_ELEMENTS:
        raise ValueError(f"N and d are {MOST_ELEMENTS} at most in this figure, not {N} and {d}.")
    run = run_product("03_tiled.cu", N, d, TILE)
    steps = cdiv(N, TILE) ** 2 * (4 * cdiv(d, TILE) + 1)
    if steps > MOST_STEPS:
        raise ValueError(
            f"N={N}, d={d} and TILE={TILE} take {steps:,} steps, more than {MOST_STEPS}: choose a "
            "larger TILE, or smaller matrices."
        )
    frames = TileFilm(run, run_product("02_naive.cu", N, d, TILE)).frames()
    return [*frames[:1], *map(telling, frames[1:2]), *frames[2:-1], telling(frames[-1])]


class TileFilm:
    """The frames of one run: what is the same in all of them, and where the count stands."""

    def __init__(self, run: SmallRun, naive: SmallRun):
        self.run, self.naive = run, NaiveReads(naive)
        self.N, self.d, self.tile = run.sizes["N"], run.sizes["d"], run.defines["TILE"]
        self.blocks = replay(run)
        self.reads = self.naive_reads = self.shared_reads = 0
        self.written: set[int] = set()
        phases = self.blocks[0].phases  # of all blocks alike
        self.lines = {"first": phases[1].barrier, "second": self.blocks[0].leaving}
        sums = [v for b in self.blocks for p in b.phases for v in p.partial.values()]
        self.whole = all(float(v).is_integer() for v in sums)
        most = max(self.N, self.d)
        self.high = min(32.0, _HIGH / most)
        self.wide = min(40.0, _WIDE[0] / self.d), min(44.0, _WIDE[1] / self.N)
        # Where S begins: right of Q and below Kᵀ, which leave the corner to the block's name.
        self.corner = _LEFT + max(self.d * self.wide[0], 176) + 28, _TOP + _HIGH + 38

    def frames(self) -> list[Frame]:
        frames = []
        for block in self.blocks:
            loads, seen, before = 0, {}, block.phases[-1]
            for phase in block.phases:
                if phase.kind == "load":
                    if loads and phase.barrier is not None:
                        frames.append(self._waits(block, before, loads, seen, phase.barrier, True))
                    loads += 1
                    self.reads += sum(map(len, phase.reads.values()))
                    frames.append(self._frame(block, phase, loads, "load", seen))
                    continue
                if phase.barrier is not None:
                    frames.append(self._waits(block, phase, loads, seen, phase.barrier, False))
                self.shared_reads += phase.shared_reads
                self.naive_reads += self.naive.share(phase.touched, self._held(phase))
                seen, before = phase.partial, phase
                frames.append(self._frame(block, phase, loads, "multiply", seen))
            if block.leaving is not None:
                frames.append(self._waits(block, before, loads, seen, block.leaving, True))
            if before.stored:
                self.written.update(before.stored)
                frames.append(self._frame(block, before, loads, "store", seen))
        return frames

    def _waits(self, block, phase, loads, seen, line, behind: bool) -> Frame:
        """All threads at a barrier, with the tiles of a phase, before it or `behind` it."""
        still = Phase("load", {}, phase.shared, {}, 0, {}, seen, set(), [], None)
        step = "second" if behind else "first"
        return self._frame(block, still, loads, step, seen, line)

    @staticmethod
    def _held(phase: Phase) -> set[Element]:
        return {h.source for held in phase.shared.values() for h in held.values() if h.source}

    # ---------------------------------------------------------------- one frame

    def _frame(
        self,
        block: BlockReplay,
        phase: Phase,
        turn: int,
        step: str,
        partial: dict[int, float],
        barrier: int | None = None,
    ) -> Frame:
        turns = sum(p.kind == "load" for p in block.phases)
        example = self._example(block, phase)
        name = f"block ({block.block[0]}, {block.block[1]})"
        caption = self._caption(block, phase, turn, turns, step, example, barrier)
        canvas = Canvas(height=_HEIGHT, label=f"Tiled product, {name}, tile {turn}: {step}.")
        self._where(canvas, name, turn, turns, step)
        self._matrices(canvas, block, phase, step, partial, example)
        self._shared(canvas, phase, name, step, example)
        if barrier is not None:
            self._bar(canvas, block, step, barrier)
        self._counts(canvas)
        return canvas.frame(caption)

    def _where(self, canvas: Canvas, name: str, turn: int, turns: int, step: str) -> None:
        canvas.text(_LEFT, _TOP - 4, name, size=LARGE, bold=True)
        canvas.text(_LEFT, _TOP + 20, f"tile {turn} of {turns} along d")
        for number, word in enumerate(_STEPS):
            y = _TOP + 32 + 28 * number
            on = word == step
            look, ink = {"stroke": "grid"}, "muted"
            if on:
                look, ink = {"fill": "yellow-fill", "stroke": "ink", "weight": 2}, "ink"
            canvas.rect(_LEFT, y, 160, 24, r=5, **look)
            if word in self.lines:
                line = self.lines[word]
                word = f"barrier, line {line}" if line is not None else "no barrier"
                ink = ink if line is not None else "vermillion"
                canvas.rect(_LEFT, y + 20, 160, 4, fill="ink" if on else "grid", stroke="none")
            canvas.text(_LEFT + 12, y + 17, word, bold=on, fill=ink)

    def _matrices(self, canvas, block, phase, step, partial, example) -> None:
        kt_x, s_y = self.corner
        kt_y = s_y - 38 - self.d * self.high
        held = self._held(phase)
        q = self._matrix(canvas, "Q", _LEFT, s_y, held, step)
        k = self._matrix(canvas, "K", kt_x, kt_y, held, step)
        canvas.text(_LEFT, s_y - 10, "Q", size=18, bold=True, fill=MATRIX_HUES["Q"])
        canvas.text(_LEFT + 22, s_y - 10, f"{self.N} × {self.d}", fill="muted")
        canvas.text(kt_x, kt_y - 10, "Kᵀ", size=18, bold=True, fill=MATRIX_HUES["K"])
        canvas.text(kt_x + 32, kt_y - 10, f"{self.d} × {self.N}", fill="muted")
        s = self._result(canvas, kt_x, s_y, block, phase, step, partial)
        if example is not None:
            row, column = divmod(block.results[example][0], self.N)
            if step == "multiply":
                canvas.cells([s.box(row, column)], stroke="ink", weight=3)
                factors = self._factors(phase, example)
                frame_of(canvas, q, cells_of("Q", self.d, factors), "ink")
                frame_of(canvas, k, cells_of("K", self.d, factors), "ink")

    def _factors(self, phase: Phase, thread: int) -> list[Element]:
        """The elements of Q and K that a thread's factors were copied from."""
        words = [word for pair in phase.products.get(thread, []) for word in pair]
        copies = [phase.shared[array].get(index) for array, index in words]
        return [copy.source for copy in copies if copy is not None and copy.source is not None]

    def _matrix(self, canvas, name: str, x: float, y: float, held, step: str) -> Grid:
        rows, columns = (self.N, self.d) if name == "Q" else (self.d, self.N)
        grid = Grid(x, y, self.wide[name == "K"], self.high, rows, columns)
        tile = operand_grid(canvas, grid, name, self.run.arrays[name], held)
        frame_of(canvas, grid, tile, MATRIX_HUES[name], 4 if step == "load" else 2)
        return grid

    def _result(self, canvas, x, y, block, phase, step, partial) -> Grid:
        mine = {at for found in block.results.values() for at in found}
        S = self.run.arrays["S"].flat
        done = {at: short(S[at], False) for at in self.written}
        grid = Grid(x, y, self.wide[1], self.high, self.N, self.N)
        result_grid(canvas, grid, partial, done, mine, self.whole, "−9.9")
        frame_of(canvas, grid, [divmod(at, self.N) for at in mine], "purple", 4)
        canvas.text(x, y - 10, "S = QKᵀ / √d", size=18, bold=True, fill="purple")
        note = "stored" if step == "store" else "sums in registers" if partial else ""
        canvas.text(x, grid.bottom + 18, note, fill="muted")
        return grid

    def _shared(self, canvas: Canvas, phase: Phase, name: str, step: str, example) -> None:
        canvas.text(_PANEL, _TOP - 8, f"shared memory of {name}", size=18, bold=True)
        edge = self.tile
        width, height = min(36.0, 148 / edge), min(30.0, 120 / edge)
        for place, array in enumerate(sorted(phase.shared, reverse=True)[:2]):
            x, y = _PANEL + place * 170, _TOP + 28
            grid = Grid(x, y, width, height, edge, edge)
            shared_grid(canvas, grid, array, phase.shared[array], "Q" if place else "K")
            if step in self.lines:
                canvas.rect(x - 3, y - 3, grid.width + 6, grid.height + 6, r=4, stroke="ink",
                            weight=3)  # fmt: skip
            if step == "multiply" and example is not None:
                used = [
                    p[place][1] for p in phase.products.get(example, []) if p[place][0] == array
                ]
                frame_of(canvas, grid, [divmod(i, edge) for i in used], "ink")
        if step == "multiply" and example is not None:
            total, terms = self._sum(phase, example)
            lines = [f"{self._thread(example)} adds {total}:", terms]
            canvas.lines(_PANEL, _TOP + 28 + edge * height + 26, lines)

    @staticmethod
    def _bar(canvas: Canvas, block: BlockReplay, step: str, line: int) -> None:
        """All threads of the block at a barrier."""
        block_waits(canvas, _PANEL, _BAR_Y, 316, block.threads, 26)
        done = "stored" if step == "first" else "read"
        canvas.text(_PANEL, _BAR_Y + 24, f"line {line}: {block.threads} threads have {done}")

    def _counts(self, canvas: Canvas) -> None:
        y, width = 254, 316
        canvas.text(_PANEL, y, "elements read from global memory", bold=True)
        full = self.naive.total
        gauge(canvas, _PANEL, y + 30, width, self.reads, full, "blue", "tiled")
        gauge(canvas, _PANEL, y + 78, width, self.naive_reads, full, "gray", "naive, same products")
        if self.reads and self.naive_reads:
            ratio = f"{self.naive_reads / self.reads:.3g}"
            canvas.text(_PANEL, y + 126, f"naive : tiled = {ratio} : 1")
        words = f"words read from shared memory: {self.shared_reads:,}"
        canvas.text(_PANEL, y + 152, words, fill="muted")

    # ---------------------------------------------------------------- words

    def _example(self, block: BlockReplay, phase: Phase) -> int | None:
        """The thread whose work is shown: one off the diagonal, so that row and column differ."""
        able = [t for t in phase.products if block.results.get(t)]
        wanted = min(self.tile - 1, 1) + self.tile * min(self.tile - 1, 2)
        return min(able, key=lambda t: (abs(t - wanted), t)) if able else None

    def _sum(self, phase: Phase, thread: int) -> tuple[str, str]:
        """What a thread adds up, and of which products."""
        pairs = phase.products[thread]
        factors = [[phase.shared[a][i].value if i in phase.shared[a] else 0 for a, i in pair]
                   for pair in pairs]  # fmt: skip
        total = sum(a * b for a, b in factors)
        shown = short(total)
        if len(factors) > 4:
            return shown, f"the sum of {len(factors)} products"
        texts = ("·".join(bracketed(short(v)) for v in pair) for pair in factors)
        return shown, " + ".join(texts)

    def _thread(self, thread: int) -> str:
        return f"thread ({thread % self.run.report.block[0]}, {thread // self.run.report.block[0]})"

    def _caption(self, block, phase, turn, turns, step, example, barrier) -> str:
        name = f"Block ({block.block[0]}, {block.block[1]}), tile {turn} of {turns}"
        if step == "load":
            counts = {a: len(found) for a, found in sorted(phase.reads.items(), reverse=True)}
            each = " and ".join(
                f"{counted(n, 'element')} of {array}" for array, n in counts.items()
            )
            stored = sum(map(len, phase.fresh.values()))
            text = (
                f"{name}, load: the block's {block.threads} threads read {each or 'nothing'} from "
                f"global memory and store {counted(stored, 'word')} in shared memory."
            )
            zeros = stored - sum(counts.values())
            if zeros > 0:
                text += f" {zeros} lie past the edges and are zeros."
            if turn > 1 and phase.barrier is None:
                text += " No barrier kept them from replacing the tiles while others still read."
            elif turn == 1 and block is self.blocks[0]:
                text += " (On a GPU the blocks run side by side; here, one after the other.)"
            return text
        if step == "first":
            return (
                f"{name}, barrier: __syncthreads() in line {barrier} holds every thread until all "
                f"{block.threads} have stored, for each is about to read what others have copied."
            )
        if step == "second":
            after = "store other tiles over these" if turn < turns else "go on and store its result"
            return (
                f"{name}, barrier: __syncthreads() in line {barrier} holds every thread until all "
                f"{block.threads} have read the tiles. Then a thread may {after}."
            )
        if step == "store":
            stored = counted(len(phase.stored), "element")
            return f"{name}, store: the block writes {stored} of S, each a sum divided by √d."
        per_thread = max((len(p) for p in phase.products.values()), default=0)
        text = (
            f"{name}, multiply: each thread adds {counted(per_thread, 'product')} to its sum and "
            f"reads both tiles in shared memory, {phase.shared_reads:,} words in all; global "
            "memory is left alone."
        )
        if phase.barrier is None:
            text += " No barrier came before: a thread may read what is not stored yet."
        return text
