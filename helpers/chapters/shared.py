"""What exercises of several chapters are made of: inputs, results, launches, goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..exercises.spec import Case, Goal, Shape
from ..kernels.kernel import Kernel
from ..problem.attention import cdiv, make_inputs

Arguments = dict[str, Any]


Launch = tuple[Shape, Shape, int]


def queries_and_keys(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    Q, K, _ = make_inputs(N, d, seed=N)
    return {"Q": Q, "K": K, "S": np.zeros((N, N), np.float32), "N": N, "d": d}


def products(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    Q, K = (arguments[name].astype(np.float64) for name in "QK")
    return {"S": Q @ K.T / np.sqrt(case["d"])}


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


def softmax(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    S = arguments["S"].astype(np.float64)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return {"P": P / P.sum(axis=1, keepdims=True)}


def parameter(kernel: Kernel, name: str) -> int:
    return kernel.parameters[name].value


def square_tiles(rows: str, columns: str):
    """A block of TILE x TILE threads for each tile of the result, x along rows."""

    def launch(case: Case, kernel: Kernel) -> Launch:
        tile = parameter(kernel, "TILE")
        return (cdiv(case[rows], tile), cdiv(case[columns], tile)), (tile, tile), 0

    return launch


BARRIERS = Goal(
    "barriers",
    "A barrier that nothing needs makes all threads of a block wait for nothing.",
    name="barriers, summed over all warps",
)


# Goals that several exercises share.
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


def tiled(rows: str, columns: str, size: int = 0):
    """A launch with a block of TILE x TILE (or size x size) threads for each tile of a result."""

    def launch(case: Case, kernel: Kernel) -> Launch:
        edge = size or kernel.parameters["TILE"].value
        return (cdiv(case[columns], edge), cdiv(case[rows], edge)), (edge, edge), 0

    return launch


def keys(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    return {"K": normal(N, d), "KT": empty(d, N), "N": N, "d": d}


def keys_transposed(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"KT": arguments["K"].T.astype(np.float64)}


def scores(case: Case, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    Q, K = (arguments[name].astype(np.float64) for name in "QK")
    return {"S": Q @ K.T / np.sqrt(Q.shape[1])}
