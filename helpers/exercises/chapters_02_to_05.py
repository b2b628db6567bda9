"""Exercises of chapters 02 to 05: the naive kernels, tiles, the reduction, coarser threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..attention import cdiv, make_inputs
from ..kernels import Kernel
from .spec import Case, Exercise, Goal, Shape

Arguments = dict[str, Any]
Launch = tuple[Shape, Shape, int]


def _queries_and_keys(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K, _ = make_inputs(N, d, seed=N)
    return {"Q": Q, "K": K, "S": np.zeros((N, N), np.float32), "N": N, "d": d}


def _products(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    Q, K = (arguments[name].astype(np.float64) for name in "QK")
    return {"S": Q @ K.T / np.sqrt(case["d"])}


def _weights_and_values(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    P = np.random.default_rng(N).dirichlet(np.full(N, 0.5), N).astype(np.float32)
    V = make_inputs(N, d, seed=N)[2]
    return {"P": P, "V": V, "O": np.zeros((N, d), np.float32), "N": N, "d": d}


def _weighted_rows(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"O": arguments["P"].astype(np.float64) @ arguments["V"].astype(np.float64)}


def _levels(N: int) -> np.ndarray:
    """Scores that overflow an exponential in fp32 unless each row's own largest is subtracted.

    Rows are of very different levels, and in two of three a peak stands out by 120: at the row's
    end, in its second place, at its start, or somewhere.
    """
    rng = np.random.default_rng(N)
    scores = rng.normal(0, 3, (N, N)) + np.linspace(-250, 250, N)[:, None]
    for row in range(N):
        place = (N - 1, min(1, N - 1), 0, rng.integers(N), None, None)[row % 6]
        if place is not None:
            scores[row, place] += 120
    return scores.astype(np.float32)


def _scores(case: Case) -> Arguments:
    N = case["N"]
    return {"S": _levels(N), "P": np.zeros((N, N), np.float32), "N": N}


def _softmax(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    S = arguments["S"].astype(np.float64)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return {"P": P / P.sum(axis=1, keepdims=True)}


def _rows(case: Case) -> Arguments:
    N = case["N"]
    return {"S": _levels(N), "M": np.zeros(N, np.float32), "N": N}


def _largest(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"M": arguments["S"].astype(np.float64).max(axis=1)}


def _value(kernel: Kernel, name: str) -> int:
    return kernel.parameters[name].value


def _square_tiles(rows: str, columns: str):
    """A block of TILE x TILE threads for each tile of the result, x along rows."""

    def launch(case: Case, kernel: Kernel) -> Launch:
        tile = _value(kernel, "TILE")
        return (cdiv(case[rows], tile), cdiv(case[columns], tile)), (tile, tile), 0

    return launch


def _coarse_tiles(case: Case, kernel: Kernel) -> Launch:
    tile, N = _value(kernel, "TILE"), case["N"]
    return (cdiv(N, tile), cdiv(N, tile * _value(kernel, "COARSE"))), (tile, tile), 0


def _thread_a_row(case: Case, kernel: Kernel) -> Launch:
    size = _value(kernel, "BLOCK_SIZE")
    return (cdiv(case["N"], size),), (size,), 0


def _block_a_row(case: Case, kernel: Kernel) -> Launch:
    return (case["N"],), (_value(kernel, "BLOCK_SIZE"),), 0


_BARRIERS = Goal(
    "barriers",
    "A barrier that nothing needs makes all threads of a block wait for nothing.",
    name="barriers, summed over all warps",
)
_FROM_TILES = Goal(
    "global_load_bytes",
    "Elements are loaded that another thread of the block has loaded already: take them from the "
    "tiles.",
    name="bytes loaded from global memory",
)
_SHARED_WORK = Goal(
    "global_load_bytes",
    "The threads of a block share a row: none of them has to read all of it.",
    slack=1.25,
    name="bytes loaded from global memory",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="02_scores",
        chapter=2,
        title="who computes what",
        task="Fill three gaps: a thread's row and column, the guard, and one product of the sum.",
        hint=(
            "A block covers `TILE` rows and as many columns, so block number `b` begins at row "
            "`b * TILE`. The last blocks reach over the edge of $S$. In $Q$, row number `row` "
            "begins at element `row * d`."
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 19}, {"N": 16, "d": 33}, {"N": 21, "d": 5, "TILE": 8}),
        launch=_square_tiles("N", "N"),
        arguments=_queries_and_keys,
        outputs=("S",),
        expected=_products,
        timed={"N": 2048, "d": 64},
    ),
    Exercise(
        name="02_safe_softmax",
        chapter=2,
        title="a softmax that does not overflow",
        task=(
            "This softmax is right for small scores and gives NaN for large ones. Subtract each "
            "row's largest score, as the formula allows."
        ),
        hint=(
            "The largest of numbers that may all be negative cannot start from 0. Start from the "
            "row's first score, and look at all others."
        ),
        entry="softmax",
        cases=({"N": 37}, {"N": 70}, {"N": 1}),
        launch=_thread_a_row,
        arguments=_scores,
        outputs=("P",),
        expected=_softmax,
        timed={"N": 2048},
    ),
    Exercise(
        name="03_edges",
        chapter=3,
        title="tiles at the edge",
        task="Load the two tiles. Past the edges of $Q$ and $K$ they hold zeros.",
        hint=(
            "`s_Q[tx][ty]` is element (`row`, `i + ty`) of $Q$; `s_K[tx][ty]` is element (`col`, "
            "`i + tx`) of $K$, since `s_K` holds a tile of its transpose. Each has two edges to "
            "mind, and `c ? a : b` loads `a` only where `c` holds."
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 19}, {"N": 16, "d": 33}, {"N": 21, "d": 5, "TILE": 8}),
        launch=_square_tiles("N", "N"),
        arguments=_queries_and_keys,
        outputs=("S",),
        expected=_products,
        goals=(_FROM_TILES,),
        counted={"N": 37, "d": 19},
        timed={"N": 2048, "d": 64},
    ),
    Exercise(
        name="03_barriers",
        chapter=3,
        title="two barriers",
        task="This product is right only if all threads keep step. Make it right in any order.",
        hint=(
            "Who has written the element of `s_P` that a thread reads, and who may overwrite it, "
            "in the next turn, before the thread has read it?"
        ),
        entry="pv_multiply",
        cases=({"N": 37, "d": 19}, {"N": 48, "d": 16}, {"N": 21, "d": 13, "TILE": 8}),
        launch=_square_tiles("N", "d"),
        arguments=_weights_and_values,
        outputs=("O",),
        expected=_weighted_rows,
        goals=(_BARRIERS, _FROM_TILES),
        timed={"N": 2048, "d": 64},
    ),
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
        arguments=_scores,
        outputs=("P",),
        expected=_softmax,
        goals=(_BARRIERS, _SHARED_WORK),
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
            _BARRIERS,
            _SHARED_WORK,
        ),
        timed={"N": 2048},
    ),
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
        arguments=_queries_and_keys,
        outputs=("S",),
        expected=_products,
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
