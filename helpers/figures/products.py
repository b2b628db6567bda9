"""Small runs of the products S = QKᵀ / √d that figures compare: naive, tiled, coarsened."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from .events import by_block
from .runs import Run, launch, pieces, small_integers


def run_tiled(
    N: int = 8, d: int = 8, TILE: int = 4, *, seed: int = 11, code: str | None = None
) -> Run:
    """Run the tiled product of two matrices of small whole numbers.

    Args:
        N, d: rows of Q and K, and elements of a row.
        TILE: edge of a tile.
        seed: of the numbers.
        code: source text in place of `03_tiled.cu`, whose first kernel has the same arguments.

    Raises:
        ValueError: a size is below 1.
    """
    if min(N, d, TILE) < 1:
        raise ValueError(f"N, d and TILE are 1 or more, not {N}, {d} and {TILE}.")
    blocks = pieces(N, TILE)
    return launch(
        "03_tiled.cu", "scaled_dot_product", (blocks, blocks), (TILE, TILE),
        _operands(N, d, seed), {"N": N, "d": d}, code=code, TILE=TILE,
    )  # fmt: skip


def run_naive(like: Run) -> Run:
    """Run the naive product of `02_naive.cu` on the matrices of another run."""
    N, d, TILE = like.sizes["N"], like.sizes["d"], like.defines["TILE"]
    blocks = pieces(N, TILE)
    arrays = {name: like.arrays[name] for name in ("Q", "K")} | {"S": np.zeros((N, N), np.float32)}
    return launch(
        "02_naive.cu", "scaled_dot_product", (blocks, blocks), (TILE, TILE), arrays,
        {"N": N, "d": d}, TILE=TILE,
    )  # fmt: skip


def run_coarsened(
    N: int = 4,
    d: int = 4,
    TILE: int = 2,
    COARSE: int = 2,
    *,
    seed: int = 11,
    code: str | None = None,
) -> Run:
    """Run the coarsened product of `05_coarsened.cu` on the same matrices as `run_tiled`.

    Args:
        COARSE: tiles of the result that a block computes.
        N, d, TILE, seed, code: as for `run_tiled`.

    Raises:
        ValueError: a size is below 1.
    """
    if min(N, d, TILE, COARSE) < 1:
        raise ValueError(f"N, d, TILE and COARSE are 1 or more, not {N}, {d}, {TILE} and {COARSE}.")
    grid = pieces(N, TILE), pieces(N, TILE * COARSE)
    return launch(
        "05_coarsened.cu", "scaled_dot_product", grid, (TILE, TILE), _operands(N, d, seed),
        {"N": N, "d": d}, code=code, TILE=TILE, COARSE=COARSE,
    )  # fmt: skip


class NaiveReads:
    """What the naive kernel reads from global memory: by result, and in all.

    `share(results, elements)` counts the reads made for those results of those elements.
    """

    def __init__(self, run: Run):
        self._of: dict[int, list[tuple[str, int]]] = defaultdict(list)
        self.total = 0
        for events in by_block(run.report).values():
            reads: dict[int, list[tuple[str, int]]] = defaultdict(list)
            for event in events:
                for touch in event.touches:
                    if event.kind == "load":
                        elements = [(event.array, touch.index + w) for w in range(event.words)]
                        reads[touch.thread] += elements
                        self.total += len(elements)
                    else:
                        self._of[touch.index] += reads.pop(touch.thread, [])

    def share(self, results: set[int], elements: set[tuple[str, int]]) -> int:
        return sum(element in elements for at in results for element in self._of.get(at, ()))


def _operands(N: int, d: int, seed: int) -> dict[str, np.ndarray]:
    return {
        "Q": small_integers((N, d), seed),
        "K": small_integers((N, d), seed + 1),
        "S": np.zeros((N, N), np.float32),
    }
