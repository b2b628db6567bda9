"""Chapter 05, coarser threads: its exercises."""

from __future__ import annotations

from ..exercises.spec import Case, Exercise, Goal
from ..kernels.kernel import Kernel
from ..problem.attention import cdiv
from .shared import (
    Launch,
    parameter,
    products,
    queries_and_keys,
)


def _coarse_tiles(case: Case, kernel: Kernel) -> Launch:
    tile, N = parameter(kernel, "TILE"), case["N"]
    return (cdiv(N, tile), cdiv(N, tile * parameter(kernel, "COARSE"))), (tile, tile), 0


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="05_keep_the_tile",
        chapter=5,
        title="keep the tile",
        task=(
            "Fill three gaps, so that each tile of $Q$ is loaded once and serves `COARSE` tiles of "
            "$K$."
        ),
        hint=(
            "The outer loop moves along $d$, the inner one along the tiles of $K$. What does not "
            "change in the inner loop is loaded before it. Each `c` has a sum of its own."
        ),
        entry="scaled_dot_product",
        cases=({"N": 21, "d": 5, "TILE": 8, "COARSE": 2}, {"N": 70, "d": 19}),
        launch=_coarse_tiles,
        arguments=queries_and_keys,
        outputs=("S",),
        expected=products,
        goals=(
            Goal(
                "global_load_bytes",
                "Is a tile of Q loaded again for each tile of K, or an element for each product?",
                name="bytes loaded from global memory",
            ),
        ),
        timed={"N": 2048, "d": 64},
        unlike={"TILE": 8, "COARSE": 8},
    ),
)
