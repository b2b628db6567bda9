"""Chapter 02, the naive kernels: its rung and exercises."""

from ..exercises.spec import Exercise
from ..problem.fp32 import NAIVE_SOFTMAX, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import TILES, covering, queries_and_keys, scores, scores_to_normalise, softmax

RUNGS = (
    ThreeKernels(
        name="naive",
        chapter=2,
        steps=steps("02_naive.cu", rows_first, NAIVE_SOFTMAX),
        draws=("sectors",),
    ),
)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="02_scores",
        title="who computes what",
        task="Fill three gaps: a thread's row and column, the guard, and one product of the sum.",
        hints=(
            (
                "A block covers `TILE` rows and as many columns, so block number `b` begins at row "
                "`b * TILE`. The last blocks reach over the edge of $S$."
            ),
            (
                "In $Q$, row number `row` begins at element `row * d`. In $K$, it is row number "
                "`col` that is needed."
            ),
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 19}, {"N": 16, "d": 33}, {"N": 21, "d": 5, "TILE": 8}),
        launch=covering(TILES, ("N", "TILE"), ("N", "TILE")),
        arguments=queries_and_keys,
        results={"S": scores},
        timed={"N": 2048, "d": 64},
    ),
    Exercise(
        name="02_safe_softmax",
        title="a softmax that does not overflow",
        task=(
            "This softmax is right for small scores and gives NaN for large ones. Subtract each "
            "row's largest score, as the formula allows."
        ),
        hints=(
            "The largest of numbers that may all be negative cannot start from 0.",
            "Start from the row's first score, and look at all others.",
        ),
        entry="softmax",
        cases=({"N": 37}, {"N": 70}, {"N": 1}),
        launch=covering(("BLOCK_SIZE",), ("N", "BLOCK_SIZE")),
        arguments=scores_to_normalise,
        results={"P": softmax},
        timed={"N": 2048},
    ),
)
