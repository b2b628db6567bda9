"""Chapter 99, skeleton: wrong answers, and trials of changed kernels."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from exercise_answers import Wrong
from mutants.targets import Trial

from helpers.problem.problem import Problem

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


def _problem(m: int, n: int) -> Problem:
    rng = np.random.default_rng(m)
    X, g = rng.standard_normal((m, n), np.float32), rng.uniform(0.5, 1.5, n).astype(np.float32)
    inputs = {"X": X, "g": g, "Y": np.empty((m, n), np.float32), "m": m, "n": n}
    return Problem((), inputs, {"Y": X.astype(np.float64) * g}, 1e-6)


def _trials(file: str, entry: str) -> Iterator[Trial]:
    """What the kernel is run on when something in it is changed: `python -m tests.mutants`."""
    for m, n in ((19, 11), (11, 21), (16, 8), (1, 1)):
        grid = -(-n // 8), -(-m // 8)
        make = functools.partial(_problem, m, n)
        yield Trial(file, entry, {"TILE": 8}, f"m={m}, n={n}", grid, (8, 8), 0, make)


TRIALS = {"99_skeleton.cu": _trials}
