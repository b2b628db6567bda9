"""Warps of the naive product walk through Q and K: what each turn of the loop asks the caches for.

Requests and sectors are those of a counted run. Of the L1 cache a simple model is drawn, and named
in the picture: it is empty when the block begins, and keeps every sector that it was asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from helpers.measure.facts import GpuFacts
from helpers.panels.numbers import spans
from helpers.simulator.limits import SECTOR_BYTES, WORD
from helpers.simulator.observe.report import Report

from ..canvas import LARGE, SMALLEST, Canvas, Frame, counted, telling
from ..events import WarpAccess, of_warp
from ..palette import MATRIX_HUES
from ..parts import Grid, legend
from ..tiles import gauge

_HEIGHT = 408
_X, _Y = {"Q": 44.0, "K": 268.0}, 62.0
_WIDE, _HIGH = 184.0, 322.0  # of a matrix
_TEXT = 494.0
_FLOATS = SECTOR_BYTES // WORD


class ArrayLoad(NamedTuple):
    """What a warp asks of one array in a turn of the loop.

    Attributes:
        array: its name.
        elements: flat indices, each once.
        sectors: numbers of the sectors of the array that they lie in.
        new: those of them that the L1 cache of the model does not hold yet.
        lanes: lanes that take part.
    """

    array: str
    elements: frozenset[int]
    sectors: frozenset[int]
    new: frozenset[int]
    lanes: int


class WalkTurn(NamedTuple):
    """One turn of one warp: a request for each array."""

    warp: int
    number: int
    requests: Mapping[str, ArrayLoad]

    @property
    def asked(self) -> int:
        """Sectors asked for."""
        return sum(len(request.sectors) for request in self.requests.values())

    @property
    def new(self) -> int:
        """Sectors that L1 does not hold yet."""
        return sum(len(request.new) for request in self.requests.values())


def walk(
    report: Report, warps: Sequence[int], block: tuple[int, int, int] = (0, 0, 0)
) -> list[WalkTurn]:
    """The turns of some warps of a block, turn by turn, and in a turn warp by warp.

    Args:
        report: of a counted run whose loop loads once from each array in a turn.
        warps: which, each turn in this order.
        block: of which block.

    Raises:
        SimulatorError: the report has no trace.
    """
    loads: dict[tuple[int, str], list[WarpAccess]] = {}
    for access in report.of_block(block, kind="load", space="global"):
        for warp in warps:
            if access.active[warp].any():
                loads.setdefault((warp, access.array), []).append(of_warp(access, warp))
    held: dict[str, set[int]] = {}
    turns = []
    for number in range(max(map(len, loads.values()), default=0)):
        for warp in warps:
            found = {}
            for (of, array), mine in sorted(loads.items()):
                if of == warp and number < len(mine):
                    found[array] = _request(array, mine[number], held.setdefault(array, set()))
            turns.append(WalkTurn(warp, number, found))
    return turns


def _request(array: str, access: WarpAccess, held: set[int]) -> ArrayLoad:
    first = access.start // SECTOR_BYTES
    sectors = frozenset(sector - first for sector in access.sectors)
    new = frozenset(sectors - held)
    held |= sectors
    return ArrayLoad(array, frozenset(access.elements), sectors, new, len(access.lanes))


def naive_walk(
    report: Report, facts: GpuFacts, warps: Sequence[int] = (0, 1), **shapes: tuple[int, int]
) -> list[Frame]:
    """A step for each turn of each warp: the elements read, sectors new and held, the wait.

    Args:
        report: of a counted run of `scaled_dot_product` in `02_naive.cu`.
        facts: of the GPU whose latencies count.
        warps: of block 0, in the order in which they come.
        **shapes: rows and columns of Q and K, as `Q=(32, 16)`.

    Raises:
        ValueError: an array has no shape, or its rows are no whole sectors.
    """
    if set(shapes) != {"Q", "K"} or any(columns % _FLOATS for _, columns in shapes.values()):
        raise ValueError(f"naive_walk takes the shapes of Q and K, of {_FLOATS} columns each or so "
                         f"many times that, not {shapes}.")  # fmt: skip
    turns = walk(report, warps)
    film = _Walk(turns, facts, shapes)
    frames = [film.frame(n) for n in range(len(turns))]
    first = next((n for n, t in enumerate(turns) if 0 < t.new < t.asked), 0)
    frames[first] = telling(frames[first])
    return frames


class _Walk:
    """All frames: what has been asked so far, and where the elements lie."""

    def __init__(self, turns: Sequence[WalkTurn], facts: GpuFacts, shapes: Mapping[str, tuple]):
        self.turns, self.facts, self.shapes = turns, facts, shapes
        self.far, self.near = (round(facts.latency[level]) for level in ("DRAM", "L1"))

    def wait(self, turn: WalkTurn) -> int:
        """Cycles until the values of a turn are there, by the model."""
        return self.far if turn.new else self.near

    def frame(self, number: int) -> Frame:
        turn, past = self.turns[number], self.turns[: number + 1]
        canvas = Canvas(height=_HEIGHT, label=f"Warp {turn.warp} in turn {turn.number}.")
        for array, request in turn.requests.items():
            held = {s for t in past for s in t.requests[array].sectors}
            self._matrix(canvas, array, request, held)
        legend(canvas, 44, 404, [("vermillion", "new sector"), ("green", "in L1"),
                                 ("gray", "in L1 from before")])  # fmt: skip
        self._numbers(canvas, turn, past)
        return canvas.frame(self._caption(turn, number))

    def _matrix(self, canvas: Canvas, array: str, request: ArrayLoad, held: Iterable[int]) -> None:
        rows, columns = self.shapes[array]
        x, hue, wide = _X[array], MATRIX_HUES[array], columns // _FLOATS
        grid = Grid(x, _Y, _WIDE / columns, _HIGH / rows, rows, columns)
        boxes = Grid(x, _Y, _WIDE / wide, _HIGH / rows, rows, wide)
        groups = {
            "gray": set(held) - request.sectors,
            "green": request.sectors - request.new,
            "vermillion": request.new,
        }
        canvas.text(x, 24, array, size=18, bold=True, fill=hue)
        canvas.text(x + 24, 24, f"{rows} × {columns}", fill="muted")
        canvas.cells(boxes.boxes, fill="faint", stroke="grid", weight=1)
        for look, sectors in groups.items():
            cells = [boxes.box(*divmod(s, wide)) for s in sorted(sectors)]
            canvas.cells(cells, fill=f"{look}-fill", stroke=look, weight=1)
        read = [grid.box(*divmod(e, columns)) for e in sorted(request.elements)]
        canvas.cells(read, fill=hue, stroke="ink", weight=1)
        column = min(request.elements) % columns
        middle = grid.centre(0, column)[0]
        canvas.text(middle, 48, f"i = {column}", size=SMALLEST, anchor="middle", bold=True)
        canvas.polyline([(middle - 4, 52), (middle + 4, 52), (middle, 59)], closed=True, fill="ink",
                        stroke="none")  # fmt: skip
        for row in range(0, rows, 8):
            y = grid.centre(row)[1] + 5
            canvas.text(x - 8, y, str(row), size=SMALLEST, anchor="end", mono=True, fill="muted")

    def _numbers(self, canvas: Canvas, turn: WalkTurn, past: Sequence[WalkTurn]) -> None:
        canvas.text(_TEXT, 24, f"warp {turn.warp}, turn i = {turn.number}", size=LARGE, bold=True)
        heads = ("elements", "sectors", "new", "in L1")
        rights = (_TEXT + 180, _TEXT + 270, _TEXT + 340, _TEXT + 420)
        for right, head in zip(rights, heads, strict=True):
            canvas.text(right, 56, head, anchor="end", fill="muted")
        for row, array in enumerate(("Q", "K")):
            request, y = turn.requests[array], 84 + 28 * row
            canvas.text(_TEXT, y, array, size=18, bold=True, fill=MATRIX_HUES[array])
            new, all_of = len(request.new), len(request.sectors)
            values = (len(request.elements), all_of, new, all_of - new)
            for right, value in zip(rights, values, strict=True):
                canvas.text(right, y, str(value), size=18, anchor="end", mono=True)
        from_far = turn.new > 0
        text = f"waits {self.wait(turn)} cycles: {'GPU memory' if from_far else 'L1'}"
        canvas.text(_TEXT, 152, text, size=LARGE, bold=True,
                    fill="vermillion" if from_far else "green")  # fmt: skip
        warps = sorted({t.warp for t in self.turns})
        both = (
            f"warps {warps[0]} and {warps[-1]}" if len(warps) == 2 else counted(len(warps), "warp")
        )
        full = sum(t.asked for t in self.turns)
        width = 420
        gauge(canvas, _TEXT, 196, width, sum(t.asked for t in past), full, "green",
              f"sectors asked for, {both}")  # fmt: skip
        gauge(canvas, _TEXT, 250, width, sum(t.new for t in past), full, "vermillion",
              "of these new: from the GPU's memory")  # fmt: skip
        mine = [self.wait(t) for t in past if t.warp == turn.warp]
        most = sum(self.wait(t) for t in self.turns if t.warp == turn.warp)
        gauge(canvas, _TEXT, 304, width, sum(mine), most, "gray",
              f"cycles that warp {turn.warp} has waited")  # fmt: skip
        canvas.lines(_TEXT, 358, [
            f"{self.facts.device}, measured: L1 {self.near}, memory {self.far} cycles.",
            "Model: L1 is empty at first and keeps all.",
            "A turn waits for its own loads.",
        ])  # fmt: skip

    # ---------------------------------------------------------------- words

    def _caption(self, turn: WalkTurn, number: int) -> str:
        q, k = turn.requests["Q"], turn.requests["K"]
        rows = {a: _rows(r, self.shapes[a][1]) for a, r in (("Q", q), ("K", k))}
        text = (
            f"Warp {turn.warp}, i = {turn.number}: {q.lanes} lanes read {len(q.elements)} elements "
            f"of Q, rows {rows['Q']}, and {len(k.elements)} of K, rows {rows['K']}, each of these "
            f"for {k.lanes // len(k.elements)} lanes at once."
        )
        if turn.new == turn.asked:
            return f"{text} All {turn.asked} sectors are new."
        if turn.new == 0:
            return f"{text} L1 holds all {turn.asked} sectors: they came with an earlier element."
        there = " and ".join(a for a, r in turn.requests.items() if not r.new)
        fresh = " and ".join(a for a, r in turn.requests.items() if r.new)
        earlier = self.turns[number - 1].warp
        return (
            f"{text} {there}'s sectors are there, since warp {earlier} has asked for them; "
            f"{turn.new} of {fresh} are new."
        )


def _rows(request: ArrayLoad, columns: int) -> str:
    runs = spans(sorted({element // columns for element in request.elements}))
    return ", ".join(f"{a} to {b}" if b > a + 1 else f"{a} and {b}" if b > a else f"{a}"
                     for a, b in runs)  # fmt: skip
