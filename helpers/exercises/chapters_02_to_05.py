"""Exercises of chapters 02 to 05: the naive kernels, tiles, the reduction, coarser threads."""

from __future__ import annotations

import numpy as np

from ..attention import cdiv  # noqa: F401
from .spec import Case, Exercise, Goal


def _scores(case: Case) -> dict:
    """Scores with rows of very different levels, some of which overflow an exponential in fp32."""
    N = case["N"]
    rng = np.random.default_rng(N)
    levels = np.linspace(-250, 250, N)[:, None]
    S = (rng.normal(0, 3, (N, N)) + levels).astype(np.float32)
    return {"S": S, "P": np.empty((N, N), np.float32), "N": N}


def _softmax(case: Case, arguments) -> dict[str, np.ndarray]:
    S = arguments["S"].astype(np.float64)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return {"P": P / P.sum(axis=1, keepdims=True)}


def _block_a_row(case: Case, kernel):
    return (case["N"],), (kernel.parameters["BLOCK_SIZE"].value,), 0


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="04_missing_barrier",
        chapter=4,
        title="the missing barrier",
        task="This softmax has four barriers and needs five. Put the fifth where it belongs.",
        hint=(
            "Two lines touch s_data[0] one after the other: some threads still read what the tree "
            "left there, and thread 0 already writes. Which two?"
        ),
        entry="softmax",
        cases=({"N": 9}, {"N": 70}, {"N": 131, "BLOCK_SIZE": 64}),
        launch=_block_a_row,
        arguments=_scores,
        outputs=("P",),
        expected=_softmax,
        goals=(
            Goal(
                "barriers",
                "A barrier that nothing needs makes all threads of the block wait for nothing.",
            ),
        ),
        timed={"N": 4096},
    ),
)
