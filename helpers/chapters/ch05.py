"""Chapter 05, coarser threads: its rung and exercises."""

from ..exercises.spec import Exercise, Goal
from ..problem.fp32 import REDUCTION, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import TILES, covering, queries_and_keys, scores

RUNGS = (
    ThreeKernels(
        name="coarsened",
        chapter=5,
        steps=steps("05_coarsened.cu", rows_first, REDUCTION),
        draws=("reads", "tree"),
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="05_keep_the_tile",
        title="keep the tile",
        task=(
            "Fill three gaps, so that each tile of $Q$ is loaded once and serves `COARSE` tiles of "
            "$K$."
        ),
        hints=(
            "The outer loop moves along $d$, the inner one along the tiles of $K$.",
            (
                "What does not change in the inner loop is loaded before it. Each `c` has a sum of "
                "its own."
            ),
        ),
        entry="scaled_dot_product",
        cases=({"N": 21, "d": 5, "TILE": 8, "COARSE": 2}, {"N": 70, "d": 19}),
        launch=covering(TILES, ("N", "TILE"), ("N", "TILE", "COARSE")),
        arguments=queries_and_keys,
        results={"S": scores},
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
