"""Small runs of the products S = QKᵀ / √d that figures are drawn from, chapter by chapter."""

from collections import defaultdict

import numpy as np

from helpers.panels.numbers import listed
from helpers.problem.attention import cdiv

from .events import by_block
from .runs import SmallRun, launch, small_integers


def operands(N: int, d: int) -> dict[str, np.ndarray]:
    """Q and K of N rows of d small whole numbers, and room for S."""
    return {
        "Q": small_integers((N, d), 11),
        "K": small_integers((N, d), 12),
        "S": np.zeros((N, N), np.float32),
    }


def run_product(
    file: str,
    N: int = 8,
    d: int = 8,
    TILE: int = 4,
    COARSE: int | None = None,
    **defines: int,
) -> SmallRun:
    """Run `scaled_dot_product` of a file from `02_naive.cu` to `07_padded.cu`.

    Args:
        file: its name.
        N, d: rows of Q and K, and elements of a row.
        TILE, COARSE: edge of a tile, and tiles of the result that a block computes, from
            `05_coarsened.cu` on.
        **defines: values of its other parameters.

    Raises:
        ValueError: a size is below 1.
    """
    sizes = {"N": N, "d": d, "TILE": TILE} | ({} if COARSE is None else {"COARSE": COARSE})
    if min(sizes.values()) < 1:
        names, values = (listed([*map(str, found)]) for found in (sizes, sizes.values()))
        raise ValueError(f"{names} are 1 or more, not {values}.")
    grid = cdiv(N, TILE), cdiv(N, TILE * (COARSE or 1))
    if file >= "06":
        grid = grid[::-1]  # threadIdx.x counts columns there
    chosen = {name: sizes[name] for name in ("TILE", "COARSE") if name in sizes} | defines
    arrays, both = operands(N, d), {"N": N, "d": d}
    return launch(file, "scaled_dot_product", grid, (TILE, TILE), arrays, both, **chosen)


class NaiveReads:
    """What the naive kernel reads from global memory: by result, and in all.

    `share(results, elements)` counts the reads made for those results of those elements.
    """

    def __init__(self, run: SmallRun):
        self._of: dict[int, list[tuple[str, int]]] = defaultdict(list)
        self.total = 0
        for events in by_block(run.report).values():
            reads: dict[int, list[tuple[str, int]]] = defaultdict(list)
            for event in events:
                for thread, index in event.words:
                    if event.kind == "load":
                        reads[thread].append((event.array, index))
                        self.total += 1
                    else:
                        self._of[index] += reads.pop(thread, [])

    def share(self, results: set[int], elements: set[tuple[str, int]]) -> int:
        return sum(element in elements for at in results for element in self._of.get(at, ()))
