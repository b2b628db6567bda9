"""What exercises of several chapters are made of: inputs, results, launches, goals."""

import math
from typing import Any

import numpy as np

from ..exercises.spec import Case, Goal, Shape
from ..kernels.kernel import Kernel
from ..problem.attention import cdiv, make_inputs

Arguments = dict[str, Any]


def queries_and_keys(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K, _ = make_inputs(N, d, seed=N)
    return {"Q": Q, "K": K, "S": np.zeros((N, N), np.float32), "N": N, "d": d}


def scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """S of attention."""
    return Q @ K.T / np.sqrt(Q.shape[1])


def levels(N: int) -> np.ndarray:
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


def scores_to_normalise(case: Case) -> Arguments:
    N = case["N"]
    return {"S": levels(N), "P": np.zeros((N, N), np.float32), "N": N}


def softmax(S: np.ndarray) -> np.ndarray:
    """P of attention: the softmax of each row."""
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


TILES = ("TILE", "TILE")


def covering(block: tuple[int | str, ...], *axes: tuple[int | str, ...]):
    """A launch of as many blocks along each axis of the grid as cover a size of the case.

    An axis is the name of a size and how many of it a block covers, factors that are multiplied.
    Names among these, and in `block`, are parameters of the kernel's file:
    `covering(("TILE", "TILE"), ("N", "TILE"), ("d", "TILE", "COARSE"))`.
    """

    def launch(case: Case, kernel: Kernel) -> tuple[Shape, Shape, int]:
        def value(extent: int | str) -> int:
            return extent if isinstance(extent, int) else kernel.parameters[extent].value

        grid = tuple(cdiv(case[size], math.prod(map(value, factors))) for size, *factors in axes)
        return grid, tuple(map(value, block)), 0

    return launch


# Goals that several exercises share.
BARRIERS = Goal(
    "barriers",
    "Either work is done twice, barriers and all, or two steps that could share a barrier have one "
    "each, or threads wait where nothing is read that others have written.",
    name="barriers, summed over all warps",
)

TOGETHER = Goal(
    "instructions",
    "An instruction of a warp counts once, whether one lane takes part or all 32: what one thread "
    "does alone costs as much as what a warp does at once.",
    slack=2,
    name="instructions, summed over all warps",
)

SECTORS = (
    Goal(
        "global_load_sectors",
        "Lanes that read neighbours share a sector of 32 bytes; here, sectors are read for a part "
        "of what they hold. Let tx run along rows of the array that is loaded.",
    ),
    Goal(
        "global_store_sectors",
        "Lanes that write neighbours share a sector of 32 bytes; here, sectors are written for a "
        "part of what they hold. Let tx run along rows of the array that is stored.",
    ),
)

LOADS = Goal(
    "shared_load_bank_conflicts",
    "Lanes of a warp read different words of the same bank, and wait for each other.",
    at_most=0,
)

STORES = Goal(
    "shared_store_bank_conflicts",
    "Lanes of a warp write different words of the same bank, and wait for each other.",
    at_most=0,
)


NO_ROOM = Goal(
    "shared_bytes",
    "This exercise is about doing without padding: give the tile its size back.",
    name="bytes of shared memory a block",
)


def normal(*shape: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    """Standard normal numbers, others for each seed."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def empty(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def keys(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    return {"K": normal(N, d), "KT": empty(d, N), "N": N, "d": d}
