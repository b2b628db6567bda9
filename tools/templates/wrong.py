"""Chapter 99, skeleton: wrong answers, and trials of changed kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from exercise_answers import Wrong
from mutants.targets import Data, Trial

WRONG: dict[str, tuple[Wrong, ...]] = {
    "99_rows": (
        Wrong(
            "no guard",
            (("    if (row >= m || col >= n) return;\n", ""),),
            "right",
            ("out-of-bounds", "guard"),
        ),
        Wrong(
            "a number for each column",
            (("* g[row]", "* g[col]"),),
            "right",
            ("elements of Y",),
        ),
        Wrong(
            "lanes down a column",
            (
                ("row = blockIdx.y * TILE + threadIdx.y", "row = blockIdx.y * TILE + threadIdx.x"),
                ("col = blockIdx.x * TILE + threadIdx.x", "col = blockIdx.x * TILE + threadIdx.y"),
            ),
            "goal",
            ("global load sectors", "Let tx run along rows"),
        ),
    ),
}


def _data(m: int, n: int) -> Data:
    rng = np.random.default_rng(m)
    X, g = rng.standard_normal((m, n), np.float32), rng.uniform(0.5, 1.5, n).astype(np.float32)
    Y = np.full((m, n), np.nan, np.float32)
    return Data((X, g, Y, np.int32(m), np.int32(n)), 2, X.astype(np.float64) * g, 1e-6)


def _trials(file: str, entry: str) -> Iterator[Trial]:
    """What the kernel is run on when something in it is changed: `python -m tests.mutants`."""
    for m, n in ((19, 11), (11, 21), (16, 8), (1, 1)):
        grid = -(-n // 8), -(-m // 8)
        yield Trial(
            file, entry, {"TILE": 8}, f"m={m}, n={n}", grid, (8, 8), 0, lambda m=m, n=n: _data(m, n)
        )


TRIALS = {"99_skeleton.cu": _trials}
