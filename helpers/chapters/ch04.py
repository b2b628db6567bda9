"""Chapter 04, the reduction: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal
from ..problem.fp32 import REDUCTION, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import BARRIERS, Arguments, covering, levels, scores_to_normalise, softmax

RUNGS = (
    ThreeKernels(
        name="reduction",
        chapter=4,
        steps=steps("03_tiled.cu", rows_first, REDUCTION),
        draws=("tree", "reads"),
    ),
)


def _rows(case: Case) -> Arguments:
    N = case["N"]
    return {"S": levels(N), "M": np.zeros(N, np.float32), "N": N}


_SHARED_WORK = Goal(
    "global_load_bytes",
    "The threads of a block share a row: none of them has to read all of it.",
    slack=1.25,
    name="bytes loaded from global memory",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="04_missing_barrier",
        title="the missing barrier",
        task=(
            "This is the version that is passed around. It has four barriers and needs five: put "
            "one more `__syncthreads();` on a line of its own, where it belongs."
        ),
        hints=(
            "Two lines touch `s_data[0]` one after the other.",
            (
                "Some threads still read what the tree left in `s_data[0]`, and thread 0 already "
                "writes. Which two lines are that?"
            ),
        ),
        entry="softmax",
        cases=({"N": 9}, {"N": 70, "BLOCK_SIZE": 64}),
        launch=covering(("BLOCK_SIZE",), ("N", 1)),
        arguments=scores_to_normalise,
        results={"P": softmax},
        goals=(BARRIERS, _SHARED_WORK),
        timed={"N": 2048},
    ),
    Exercise(
        name="04_warp_shuffle",
        title="the last five levels in registers",
        task=(
            "The tree stops at 32 partial maxima, one for each lane of warp 0. Join them without "
            "shared memory and without barriers."
        ),
        hints=(
            (
                "`__shfl_down_sync(~0u, m, stride)` gives a lane the `m` of the lane that is "
                "`stride` further up."
            ),
            "With strides of 16, 8, 4, 2 and 1 lane 0 ends with the largest of all.",
        ),
        entry="row_max",
        cases=({"N": 9}, {"N": 70, "BLOCK_SIZE": 64}),
        launch=covering(("BLOCK_SIZE",), ("N", 1)),
        arguments=_rows,
        results={"M": lambda S: S.max(axis=1)},
        goals=(
            Goal(
                "shared_load_instructions",
                "The lanes of a warp can read each other's registers: __shfl_down_sync.",
            ),
            BARRIERS,
            _SHARED_WORK,
        ),
        timed={"N": 2048},
    ),
)
