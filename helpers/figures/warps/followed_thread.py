"""One thread of the tiled product, followed: what it carries, when it waits, what it computes."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..barrier_bar import block_waits
from ..canvas import LARGE, Canvas, Frame, bracketed, telling
from ..events import by_block
from ..palette import MATRIX_HUES
from ..parts import Grid, outline
from ..products import run_product
from ..replay import BlockReplay, Element, Held, Phase, replay
from ..tiles import Look, frame_of, result_grid, shared_grid, short, value_grid

_HEIGHT = 404
_Q, _K, _S = (20.0, 34.0), (20.0, 232.0), (600.0, 34.0)  # top left corners
_SHARED = {"s_Q": (344.0, 54.0), "s_K": (344.0, 252.0)}
_CELL, _WORD, _RESULT = (32.0, 19.5), (40.0, 30.0), (40.0, 19.5)
_WORDS = 560.0  # where the sentences in code begin
_EMPTY: Mapping[str, dict[int, Held]] = {"s_Q": {}, "s_K": {}}


class Moment(NamedTuple):
    """What a frame shows: of shared memory, of the sums, of the thread's doing."""

    role: str
    shared: Mapping[str, Mapping[int, Held]]
    partial: Mapping[int, float]
    held: str = ""  # the shared array whose word is carried
    at: int = 0
    pair: tuple[Element, Element] | None = None
    barrier: int | None = None
    lines: tuple[str, ...] = ()
    done: bool = False


def followed_thread(
    thread: tuple[int, int] = (2, 1), block: tuple[int, int] = (0, 1), N: int = 8, TILE: int = 4
) -> list[Frame]:
    """A thread as carrier and as calculator, through all tiles of `03_tiled.cu` with d = N.

    Args:
        thread: its (x, y) in the block; where both differ, their exchanged roles can be seen.
        block: (x, y) of its block.
        N, TILE: sizes of the run; N is up to 8.

    Raises:
        ValueError: there is no such thread, or it has no element of S.
    """
    run = run_product("03_tiled.cu", N, N, TILE)
    found = next((b for b in replay(run) if b.block == (*block, 0)), None)
    number = thread[0] + TILE * thread[1]
    if N > 8 or found is None or max(thread) >= TILE or not found.results.get(number):
        raise ValueError(f"Thread {thread} of block {block} has no element of S, or N is above 8.")
    frames = _Film(run, found, thread).frames()
    exchanged = next((n for n, f in enumerate(frames) if "exchanged" in f.caption), 0)
    frames[exchanged] = telling(frames[exchanged])
    return frames


class _Film:
    """The frames of one thread."""

    def __init__(self, run, block: BlockReplay, thread: tuple[int, int]):
        self.run, self.block, self.thread = run, block, thread
        self.N, self.T = run.sizes["N"], run.defines["TILE"]
        self.number = thread[0] + self.T * thread[1]
        self.name = f"thread ({thread[0]}, {thread[1]})"
        self.mine = block.results[self.number][0]
        self.row, self.column = divmod(self.mine, self.N)
        self.stores: dict[str, list[int]] = {}
        self.lines: dict[str, int] = {}
        self.owners: dict[Element, int] = {}  # word of shared memory → the thread that fills it
        for event in by_block(run.report)[block.block]:
            if (event.space, event.kind) != ("shared", "store"):
                continue
            self.lines.setdefault(event.array, event.line)
            for touch in event.touches:
                self.owners[event.array, touch.index] = touch.thread
                if touch.thread == self.number:
                    self.stores.setdefault(event.array, []).append(touch.index)
        reads = by_block(run.report)[block.block]
        self.lines["sum"] = next(
            e.line for e in reads if (e.space, e.kind) == ("shared", "load")
        )  # fmt: skip

    def frames(self) -> list[Frame]:
        frames = [self._first()]
        turn, partial = 0, {}
        for before, phase in zip([None, *self.block.phases], self.block.phases, strict=False):
            if phase.kind == "load":
                if before is not None and phase.barrier is not None:
                    frames.append(self._barrier(before, phase.barrier, partial, True))
                frames += self._carries(phase, turn, partial)
                turn += 1
                continue
            if phase.barrier is not None:
                frames.append(self._barrier(phase, phase.barrier, partial, False))
            frames += self._products(phase, partial, one_by_one=turn == 1)
            partial = phase.partial
        last = self.block.phases[-1]
        if self.block.leaving is not None:
            frames.append(self._barrier(last, self.block.leaving, partial, True))
        return [*frames, self._stores(last, partial)]

    # ---------------------------------------------------------------- the steps

    def _first(self) -> Frame:
        x, y, T = *self.block.block[:2], self.T
        lines = (
            f"row = {x}·{T} + tx = {self.row}",
            f"col = {y}·{T} + ty = {self.column}",
        )
        caption = (
            f"Thread ({self.thread[0]}, {self.thread[1]}) of block ({x}, {y}) is to compute "
            f"S[{self.row}][{self.column}]: row {self.row} of Q times row {self.column} of K."
        )
        return self._draw(Moment("", _EMPTY, {}, lines=lines), caption)

    def _carries(self, phase: Phase, turn: int, partial) -> list[Frame]:
        frames = []
        shared = dict(_EMPTY) if turn == 0 else {a: {} for a in phase.shared}
        for array in sorted(self.stores, reverse=True):
            at = self.stores[array][turn]
            shared = {**shared, array: phase.shared[array]}
            held = phase.shared[array][at]
            place = "[{}][{}]".format(*divmod(at, self.T))
            i = turn * self.T
            if held.source is None:
                lines = (f"{array}{place} = 0",)
                caption = (
                    f"Carrier: past the edge there is nothing, so it stores 0 in {array}{place}."
                )
            else:
                name, element = held.source
                row, column = divmod(element, self.N)
                along = self._along(column - i)
                which = "row" if name == "Q" else "col"
                lines = (
                    f"{array}[tx][ty] = {name}[{which}][i + {along}]",
                    f"{array}{place} = {name}[{row}][{column}] = {short(held.value)}",
                )
                caption = (
                    f"Carrier, i = {i}: it copies {name}[{row}][{column}] into {array}{place} "
                    f"(line {self.lines[array]}). Along d its index is i + {along}"
                    f"{self._exchanged(array, along)}."
                )
            moment = Moment("carrier", shared, partial, array, at, lines=(f"i = {i}", *lines))
            frames.append(self._draw(moment, caption))
        return frames

    def _along(self, offset: int) -> str:
        """Which index of the thread runs along d, told from where its element lies."""
        names = {self.thread[0]: "tx", self.thread[1]: "ty"}
        return names.get(offset, str(offset))

    def _exchanged(self, array: str, along: str) -> str:
        if array == "s_K" and along == "tx":
            return ", where it was i + ty for Q: the two are exchanged, since s_K holds Kᵀ"
        return ""

    def _barrier(self, phase: Phase, line: int, partial, behind: bool) -> Frame:
        rest = self.block.threads - 1
        caption = (
            f"It waits at the barrier in line {line} until the {rest} other threads have read the "
            "tiles too."
            if behind
            else f"It waits at the barrier in line {line}: the {rest} other threads carry what it "
            "is about to read."
        )
        moment = Moment("waits", phase.shared, partial, barrier=line, lines=("__syncthreads();",))
        return self._draw(moment, caption)

    def _products(self, phase: Phase, partial, one_by_one: bool) -> list[Frame]:
        pairs = phase.products.get(self.number, [])
        total, frames = partial.get(self.mine, 0.0), []
        for k, pair in enumerate(pairs):
            values = [phase.shared[a][i].value if i in phase.shared[a] else 0.0 for a, i in pair]
            total += values[0] * values[1]
            if not one_by_one and k < len(pairs) - 1:
                continue
            sums = {**partial, self.mine: total}
            factors = "·".join(bracketed(short(v)) for v in values)
            names = [f"{a}[{i // self.T}][{i % self.T}]" for a, i in pair]
            lines = (
                f"k = {k}",
                "sum += s_Q[tx][k] * s_K[k][ty]",
                f"{factors} is added: sum = {short(total)}",
            )
            if one_by_one:
                caption = (
                    f"Calculator, k = {k} (line {self.lines['sum']}): it reads {names[0]}, carried "
                    f"by {self._owner(pair[0])}, and {names[1]}, carried by {self._owner(pair[1])}."
                )
            else:
                caption = (
                    f"Calculator: again {len(pairs)} products, of row {self.thread[0]} of s_Q and "
                    f"column {self.thread[1]} of s_K. The sum is {short(total)}."
                )
            moment = Moment("calculator", phase.shared, sums, pair=pair, lines=lines)
            frames.append(self._draw(moment, caption))
        return frames

    def _owner(self, word: Element) -> str:
        owner = self.owners.get(word)
        if owner == self.number:
            return "itself"
        return f"thread ({owner % self.T}, {owner // self.T})" if owner is not None else "nobody"

    def _stores(self, phase: Phase, partial) -> Frame:
        value = float(self.run.arrays["S"].flat[self.mine])
        lines = (
            "S[row][col] = sum / sqrt(d)",
            f"S[{self.row}][{self.column}] = {short(value, False)}",
        )
        caption = (
            f"It divides its sum by √{self.N} and stores S[{self.row}][{self.column}]. It has "
            f"carried {2 * len(self.stores['s_Q'])} elements and read "
            f"{sum(2 * len(p.products.get(self.number, [])) for p in self.block.phases)} words of "
            "shared memory."
        )
        return self._draw(Moment("stores", phase.shared, partial, lines=lines, done=True), caption)

    # ---------------------------------------------------------------- the picture

    def _draw(self, m: Moment, caption: str) -> Frame:
        canvas = Canvas(height=_HEIGHT, label=f"{self.name}: {m.role or 'its element of S'}.")
        held = {h.source for words in m.shared.values() for h in words.values() if h.source}
        source = m.shared[m.held][m.at].source if m.held else None
        grids = {
            name: self._matrix(canvas, name, corner, held, source)
            for name, corner in (("Q", _Q), ("K", _K))
        }
        tiles = {array: self._tile(canvas, array, m) for array in _SHARED}
        if m.held and source is not None:
            # Between the two grids only: on them it would strike numbers through.
            start, end = grids[source[0]], tiles[m.held]
            canvas.arrow(start.right + 3, start.centre(source[1] // self.N)[1], end.x - 3,
                         end.centre(m.at // self.T)[1], weight=3)  # fmt: skip
        self._result(canvas, m, tiles)
        self._say(canvas, m)
        return canvas.frame(caption)

    def _matrix(self, canvas, name: str, corner, held: Iterable[Element], source) -> Grid:
        hue, values = MATRIX_HUES[name], self.run.arrays[name]
        grid = Grid(*corner, *_CELL, *values.shape)
        tile = {at for array, at in held if array == name}
        row = self.row if name == "Q" else self.column
        looks = {"other": Look("faint", "grid", "muted"), "tile": Look(f"{hue}-fill", hue)}
        value_grid(
            canvas, grid, looks,
            lambda at: ("tile" if at in tile else "other", short(float(values.flat[at]))),
        )  # fmt: skip
        canvas.text(corner[0], corner[1] - 10, name, size=18, bold=True, fill=hue)
        which = f"row = {self.row}" if name == "Q" else f"col = {self.column}"
        canvas.text(corner[0] + 30, corner[1] - 10, which, mono=True, fill="muted")
        canvas.rect(*grid.around(grid.row(row)), stroke=hue, weight=3)
        if source is not None and source[0] == name:
            outline(canvas, grid, [divmod(source[1], self.N)])
        return grid

    def _tile(self, canvas: Canvas, array: str, m: Moment) -> Grid:
        grid = Grid(*_SHARED[array], *_WORD, self.T, self.T)
        shared_grid(canvas, grid, array, m.shared[array], array[-1])
        if m.held == array:
            outline(canvas, grid, [divmod(m.at, self.T)])
        if m.role == "calculator" and m.pair is not None:
            x, y = self.thread
            row = grid.row(x) if array == "s_Q" else [(k, y) for k in range(self.T)]
            frame_of(canvas, grid, row, "purple", 3)
            outline(canvas, grid, [divmod(i, self.T) for a, i in m.pair if a == array])
        return grid

    def _result(self, canvas: Canvas, m: Moment, tiles: Mapping[str, Grid]) -> None:
        grid = Grid(*_S, *_RESULT, self.N, self.N)
        mine = {at for found in self.block.results.values() for at in found}
        value = float(self.run.arrays["S"].flat[self.mine])
        done = {self.mine: short(value, False)} if m.done else {}
        sums = {self.mine: m.partial[self.mine]} if self.mine in m.partial else {}
        result_grid(canvas, grid, sums, done, mine, True, "−9.9")
        frame_of(canvas, grid, [divmod(at, self.N) for at in mine], "purple", 2)
        outline(canvas, grid, [(self.row, self.column)])
        canvas.text(_S[0], _S[1] - 10, "S", size=18, bold=True, fill="purple")
        canvas.text(_S[0] + 24, _S[1] - 10, "its element, in its block's tile", fill="muted")
        x, y, _, height = grid.box(self.row, self.column)
        for array, tile in tiles.items() if m.pair is not None else ():
            word = next(i for a, i in m.pair if a == array)
            middle, level = tile.right + 28, tile.centre(word // self.T)[1]
            path = [(tile.right + 3, level), (middle, level), (middle, y + height / 2)]
            canvas.elbow([*path, (x - 1, y + height / 2)], stroke="purple")

    def _say(self, canvas: Canvas, m: Moment) -> None:
        y = _K[1] + 6
        canvas.text(_WORDS, y, self.name, size=LARGE, bold=True)
        if m.role:
            canvas.text(_WORDS + 160, y, m.role, size=LARGE, bold=True, fill="vermillion")
        tx, ty = self.thread
        x, by, _ = self.block.block
        canvas.text(_WORDS, y + 28, f"tx = {tx}, ty = {ty}, of block ({x}, {by})")
        for number, line in enumerate(m.lines):
            canvas.text(_WORDS, y + 62 + 26 * number, line, mono=True, size=18)
        if m.barrier is not None:
            block_waits(canvas, _WORDS, y + 122, 316, self.block.threads, 26)
