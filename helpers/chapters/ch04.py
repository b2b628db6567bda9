"""Chapter 04, the reduction: its exercises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..exercises.spec import Case, Exercise, Goal
from ..kernels.kernel import Kernel
from .shared import (
    BARRIERS,
    Arguments,
    Launch,
    levels,
    parameter,
    scores_to_normalise,
    softmax,
)


def _rows(case: Case) -> Arguments:
    N = case["N"]
    return {"S": levels(N), "M": np.zeros(N, np.float32), "N": N}


def _largest(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"M": arguments["S"].astype(np.float64).max(axis=1)}


def _block_a_row(case: Case, kernel: Kernel) -> Launch:
    return (case["N"],), (parameter(kernel, "BLOCK_SIZE"),), 0


_SHARED_WORK = Goal(
    "global_load_bytes",
    "The threads of a block share a row: none of them has to read all of it.",
    slack=1.25,
    name="bytes loaded from global memory",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="04_missing_barrier",
        chapter=4,
        title="the missing barrier",
        task=(
            "This is the version that is passed around. It has four barriers and needs five. Put "
            "the fifth where it belongs."
        ),
        hint=(
            "Two lines touch `s_data[0]` one after the other: some threads still read what the "
            "tree left there, and thread 0 already writes. Which two?"
        ),
        entry="softmax",
        cases=({"N": 9}, {"N": 70, "BLOCK_SIZE": 64}),
        launch=_block_a_row,
        arguments=scores_to_normalise,
        outputs=("P",),
        expected=softmax,
        goals=(BARRIERS, _SHARED_WORK),
        timed={"N": 2048},
    ),
    Exercise(
        name="04_warp_shuffle",
        chapter=4,
        title="the last five levels in registers",
        task=(
            "The tree stops at 32 partial maxima, one for each lane of warp 0. Join them without "
            "shared memory and without barriers."
        ),
        hint=(
            "`__shfl_down_sync(~0u, m, stride)` gives a lane the `m` of the lane that is `stride` "
            "further up. With strides of 16, 8, 4, 2 and 1 lane 0 ends with the largest of all."
        ),
        entry="row_max",
        cases=({"N": 9}, {"N": 70, "BLOCK_SIZE": 64}),
        launch=_block_a_row,
        arguments=_rows,
        outputs=("M",),
        expected=_largest,
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
