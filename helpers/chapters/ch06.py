"""Chapter 06, coalescing: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise
from ..problem.fp32 import REDUCTION, TRANSPOSES, columns_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import SECTORS, TILES, Arguments, covering, empty, keys, normal

RUNGS = (
    ThreeKernels(
        name="coalesced",
        chapter=6,
        steps=steps("06_coalesced.cu", columns_first, REDUCTION),
        variants=TRANSPOSES,
        draws=("sectors and banks",),
    ),
)


def _p_and_do(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    P = np.random.default_rng(N).dirichlet(np.full(N, 0.5), N).astype(np.float32)
    return {"P": P, "dO": normal(N, d), "dV": empty(N, d), "N": N, "d": d}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="06_transpose",
        title="rows in, rows out",
        task=(
            "This kernel transposes $K$. Its loads are coalesced and its stores are not. Let each "
            "thread write another element of the tile, so that the stores are as well."
        ),
        hints=(
            "`tx` has to run along a row of `KT`.",
            (
                "Rows of `KT` are columns of `K`, so this tile begins at row `first_col` and "
                "column `first_row` of `KT`."
            ),
        ),
        entry="transpose",
        cases=({"N": 21, "d": 38}, {"N": 33, "d": 9, "TILE": 8}, {"N": 48, "d": 32}),
        launch=covering(TILES, ("d", "TILE"), ("N", "TILE")),
        arguments=keys,
        results={"KT": lambda K: K.T},
        goals=SECTORS,
        timed={"N": 16384, "d": 1024},
    ),
    Exercise(
        name="06_gradient",
        title="a product with the columns of P",
        task=(
            "Training needs $dV=P^{\\mathsf{T}}dO$. Copy the tile of $P$ so that its loads are "
            "coalesced, and multiply."
        ),
        hints=(
            (
                "The block needs a square of $P$: rows from `i` on, columns from `first_row` on. "
                "Copy it as it lies."
            ),
            "A column of the square belongs to a row of $dV$, and the thread's own is `ty`.",
        ),
        entry="gradient",
        cases=({"N": 33, "d": 18}, {"N": 20, "d": 33, "TILE": 8}, {"N": 48, "d": 32}),
        launch=covering(TILES, ("d", "TILE"), ("N", "TILE")),
        arguments=_p_and_do,
        results={"dV": lambda P, dO: P.T @ dO},
        goals=SECTORS,
        timed={"N": 4096, "d": 64},
    ),
)
