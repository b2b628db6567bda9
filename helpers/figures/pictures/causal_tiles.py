"""Which pairs of tiles a causal run of `08_flash_baseline.cu` works on, masks and skips.

A block's tiles, its products and its mask are what its warps issued. Which pairs count is what came
out: V is the unit matrix, so that O is the weights.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from helpers.problem.flash import FLASH_BASELINE
from helpers.problem.flash_inputs import make_inputs
from helpers.simulator.limits import LANES

from ..canvas import Canvas, Frame, counted, told
from ..parts import Grid
from ..tiles import gauge

HEAD_DIM = 128  # and so many tokens at most: a column of V tells a key
_LEFT, _TOP, _SIDE = 128, 52, 340
_PANEL, _WIDE, _HEIGHT = 540, 380, 400


class KeyTile(NamedTuple):
    """What a block did with a tile of keys.

    Attributes:
        keys: first and last.
        bytes: copied of K and V.
        products: `mma` of all its warps.
        masked: whether a warp went through the mask.
    """

    keys: tuple[int, int]
    bytes: int
    products: int
    masked: bool


class Walk(NamedTuple):
    """A block: its first and last row of Q and O, and the tiles that it loaded, in order."""

    rows: tuple[int, int]
    tiles: tuple[KeyTile, ...]


class CausalRun(NamedTuple):
    """Blocks in the order of their numbers, and the weights, [n, n]."""

    walks: tuple[Walk, ...]
    weights: np.ndarray

    def total(self, name: str) -> int:
        """A field of `KeyTile`, summed over all tiles that were loaded."""
        return sum(getattr(tile, name) for walk in self.walks for tile in walk.tiles)

    def seen(self, walk: Walk) -> np.ndarray:
        """Which keys have a weight in a block's rows."""
        return self.weights[walk.rows[0] : walk.rows[1] + 1] != 0


def run_causal(n: int = 128, **parameters: int) -> CausalRun:
    """Run one head of n tokens, `HEAD_DIM` at most.

    Args:
        n: tokens.
        **parameters: of the kernel, such as `CAUSAL=1, B_R=32`.

    Raises:
        ValueError: there are more tokens than V has columns.
        KernelError: parameters do not go together.
    """
    if n > HEAD_DIM:
        raise ValueError(f"V has {HEAD_DIM} columns, one for each key: {n} are too many.")
    Q, K, V = make_inputs(1, 1, n, HEAD_DIM)
    V[0, 0] = np.eye(n, HEAD_DIM)
    rung = FLASH_BASELINE.with_parameters(**parameters)
    O, (report,) = rung.simulate(Q, K, V)  # noqa: E741 (its letter)
    kernel = rung.kernel("half", HEAD_DIM)
    size, (mask,) = kernel.parameters["B_C"].value, kernel.lines("column >= keys", whole=True)
    walks = [_walk(report, x, mask, size, n) for x in range(report.grid[0])]
    return CausalRun(tuple(walks), np.asarray(O)[0, 0, :, :n].astype(np.float64))


def _walk(report, block: int, mask: int, size: int, n: int) -> Walk:
    """What the warps of a block issued, tile by tile of `size` keys; `mask` is the mask's line."""
    rows: list[int] = []
    moved, products, masked = Counter(), Counter(), set()
    for warp in range(report.block[0] // LANES):
        barriers = 0  # two for each tile: K is there, V is there
        for one in report.issued((block, 0, 0), warp=warp):
            for access in one.accesses:
                found = (access.indices[access.active] // HEAD_DIM).tolist()
                if access.array in ("K", "V") and found:  # past the last key nothing is read
                    moved[found[0] // size] += len(found) * access.bytes
                elif access.array == "O":
                    rows += found
            turn = (barriers - 1) // 2
            barriers += one.kind == "barrier"
            products[turn] += one.kind == "mma"
            if one.line == mask and one.name.startswith("selp"):
                masked.add(turn)
    tiles = (
        KeyTile((at * size, min(n, (at + 1) * size) - 1), moved[at], products[turn], turn in masked)
        for turn, at in enumerate(sorted(moved))
    )
    return Walk((min(rows), max(rows)), tuple(tiles))


def causal_tiles(n: int = 128, **parameters: int) -> list[Frame]:
    """Block after block: the tiles that it loads, the one that it masks, those that it skips.

    Args:
        n, **parameters: as for `run_causal`; `CAUSAL` is 1 here, and 0 for what is compared.

    Raises:
        ValueError, KernelError: as `run_causal` does.
    """
    run = run_causal(n, **{**parameters, "CAUSAL": 1})
    full = run_causal(n, **{**parameters, "CAUSAL": 0})
    frames = [_frame(run, full, shown) for shown in range(1, len(run.walks) + 1)]
    frames.append(_frame(run, full, len(run.walks), summed=True))
    return told(frames, -1)


def _frame(run: CausalRun, full: CausalRun, shown: int, summed: bool = False) -> Frame:
    """The blocks that have begun, the last of them set off, or the sum of all."""
    blocks, keys = len(full.walks), [tile.keys for tile in full.walks[0].tiles]
    canvas = Canvas(960, _HEIGHT, "Pairs of tiles of a causal run")
    grid = Grid(_LEFT, _TOP, _SIDE / len(keys), _SIDE / blocks, blocks, len(keys))
    begun = CausalRun(run.walks[:shown], run.weights)
    for column, (first, last) in enumerate(keys):
        x, _ = grid.centre(0, column)
        canvas.text(x, _TOP - 10, f"{first}–{last}", anchor="middle")
    canvas.text(_LEFT, _TOP - 30, "keys", bold=True, fill="orange")
    canvas.text(0, _TOP - 10, "rows of Q", bold=True, fill="blue")
    for number, walk in enumerate(begun.walks):
        _row(canvas, grid, run, number, keys)
        if number == shown - 1 and not summed:
            y = grid.box(_place(run, walk), 0)[1]
            canvas.rect(_LEFT - 4, y, _SIDE + 8, grid.cell_height, stroke="ink", weight=3)
    canvas.cells([grid.box(*place) for place in grid.places], stroke="muted")
    _panel(canvas, begun, full)
    return canvas.frame(_whole(run, full) if summed else _said(run, shown - 1))


def _place(run: CausalRun, walk: Walk) -> int:
    """In which row of the picture a block stands: by its rows of Q, not by its number."""
    return sorted(one.rows for one in run.walks).index(walk.rows)


def _row(canvas: Canvas, grid: Grid, run: CausalRun, number: int, keys) -> None:
    """A block's pairs of tiles: what counts, what is multiplied in vain, what is skipped."""
    walk = run.walks[number]
    row, worked = _place(run, walk), {tile.keys: tile for tile in walk.tiles}
    _, middle = grid.centre(row, 0)
    canvas.text(0, middle - 4, f"block {number}", bold=True)
    canvas.text(0, middle + 16, f"rows {walk.rows[0]}–{walk.rows[1]}")
    for column, span in enumerate(keys):
        x, y, wide, high = grid.box(row, column)
        at = (x + wide / 2, y + high / 2 + 6)
        if span not in worked:
            canvas.text(*at, "skipped", anchor="middle", fill="muted")
            continue
        pairs = run.seen(walk)[:, span[0] : span[1] + 1]
        step, line = wide / pairs.shape[1], high / pairs.shape[0]
        canvas.rect(x, y, wide, high, fill="vermillion-fill", stroke="none")
        canvas.cells(
            [(x, y + n * line, step * int(seen.sum()), line) for n, seen in enumerate(pairs)],
            fill="purple-fill", stroke="none",
        )  # fmt: skip
        if worked[span].masked:
            canvas.text(*at, "masked", anchor="middle", bold=True)


def _panel(canvas: Canvas, begun: CausalRun, full: CausalRun) -> None:
    """What the blocks have copied and multiplied so far, of what they do without CAUSAL."""
    for n, (label, name, unit) in enumerate(
        (("KB copied of K and V", "bytes", 1024), ("mma of all warps", "products", 1))
    ):
        value, most = begun.total(name) // unit, full.total(name) // unit
        hue = ("orange", "purple")[n]
        gauge(canvas, _PANEL, 70 + 66 * n, _WIDE, value, most, hue, f"{label}, of {most:,}")
    canvas.text(_PANEL, 190, "A full bar is what the kernel does without CAUSAL.", fill="muted")
    worked = sum(
        (walk.rows[1] + 1 - walk.rows[0]) * (tile.keys[1] + 1 - tile.keys[0])
        for walk in begun.walks
        for tile in walk.tiles
    )
    count = sum(int(begun.seen(walk).sum()) for walk in begun.walks)
    for n, (hue, said) in enumerate((
        ("purple", f"{count:,} pairs that count"),
        ("vermillion", f"{worked - count:,} pairs multiplied, then masked"),
    )):  # fmt: skip
        y = 240 + 34 * n
        canvas.rect(_PANEL, y, 20, 20, fill=f"{hue}-fill", stroke=hue)
        canvas.text(_PANEL + 30, y + 16, said)


def _said(run: CausalRun, number: int) -> str:
    walk = run.walks[number]
    masked = ", ".join(f"{t.keys[0]}–{t.keys[1]}" for t in walk.tiles if t.masked)
    return (
        f"Block {number} has rows {walk.rows[0]}–{walk.rows[1]}. It loads "
        f"{counted(len(walk.tiles), 'tile')} of keys and masks that of keys {masked}."
    )


def _whole(run: CausalRun, full: CausalRun) -> str:
    worked, pairs = (sum(len(walk.tiles) for walk in one.walks) for one in (run, full))
    masked = run.total("masked")
    return (
        f"{worked} of {pairs} pairs of tiles are loaded and multiplied, {masked} of them masked. "
        f"The other {pairs - worked} are skipped."
    )
