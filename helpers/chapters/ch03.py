"""Chapter 03, tiles: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal
from ..problem.attention import make_inputs
from ..problem.fp32 import NAIVE_SOFTMAX, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import BARRIERS, TILES, Arguments, covering, queries_and_keys, scores

RUNGS = (
    ThreeKernels(
        name="tiled",
        chapter=3,
        steps=steps("03_tiled.cu", rows_first, NAIVE_SOFTMAX),
        draws=("reads", "tree"),
    ),
)


def _weights_and_values(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    P = np.random.default_rng(N).dirichlet(np.full(N, 0.5), N).astype(np.float32)
    V = make_inputs(N, d, seed=N)[2]
    return {"P": P, "V": V, "O": np.zeros((N, d), np.float32), "N": N, "d": d}


_FROM_TILES = Goal(
    "global_load_bytes",
    "Elements are loaded that another thread of the block has loaded already: take them from the "
    "tiles.",
    name="bytes loaded from global memory",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="03_edges",
        title="tiles at the edge",
        task="Load the two tiles. Past the edges of $Q$ and $K$ they hold zeros.",
        hints=(
            "Each tile has two edges to mind, and `c ? a : b` loads `a` only where `c` holds.",
            (
                "`s_Q[tx][ty]` is element (`row`, `i + ty`) of $Q$; `s_K[tx][ty]` is element "
                "(`col`, `i + tx`) of $K$, since `s_K` holds a tile of its transpose."
            ),
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 19}, {"N": 16, "d": 33}, {"N": 21, "d": 5, "TILE": 8}),
        launch=covering(TILES, ("N", "TILE"), ("N", "TILE")),
        arguments=queries_and_keys,
        results={"S": scores},
        goals=(_FROM_TILES,),
        counted={"N": 37, "d": 19},
        timed={"N": 2048, "d": 64},
    ),
    Exercise(
        name="03_barriers",
        title="two barriers",
        task="This product is right only if all threads keep step. Make it right in any order.",
        hints=(
            "Who has written the element of `s_P` that a thread reads?",
            "Who may overwrite that element, in the next turn, before the thread has read it?",
        ),
        entry="pv_multiply",
        cases=({"N": 37, "d": 19}, {"N": 48, "d": 16}, {"N": 21, "d": 13, "TILE": 8}),
        launch=covering(TILES, ("N", "TILE"), ("d", "TILE")),
        arguments=_weights_and_values,
        results={"O": lambda P, V: P @ V},
        goals=(BARRIERS, _FROM_TILES),
        timed={"N": 2048, "d": 64},
    ),
)
