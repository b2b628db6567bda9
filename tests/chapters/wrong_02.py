"""Chapter 02, the naive kernels: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import SQUARES, by_entry, products, softmaxes

WRONG: dict[str, tuple[Wrong, ...]] = {
    "02_scores": (
        Wrong(
            "the block's y for rows as well",
            (("row = blockIdx.x * TILE", "row = blockIdx.y * TILE"),),
            "right",
            ("never written",),
        ),
        Wrong(
            "no guard",
            (("    if (row >= N || col >= N) return;\n", ""),),
            "right",
            ("out-of-bounds read", "guard"),
        ),
        Wrong(
            "guard off by one",
            (("row >= N || col >= N", "row >= N - 1 || col >= N - 1"),),
            "right",
            ("never written", "row"),
        ),
        Wrong(
            "K read as if it were transposed",
            (("K[(size_t)col * d + i]", "K[(size_t)i * N + col]"),),
            "right",
            ("S",),
        ),
        Wrong(
            "the same row of Q and K",
            (("K[(size_t)col * d + i]", "K[(size_t)row * d + i]"),),
            "right",
            ("S[",),
        ),
    ),
    "02_safe_softmax": (
        Wrong("starting from 0", (("    row_max = s[0];\n", ""),), "right", ("NaN", "P")),
        Wrong(
            "without the loop, and far below",
            (("row_max = s[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);",
              "row_max = s[0] - 100.0f;"),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "the largest of the first row",
            (("s[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);",
              "S[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, S[j]);"),),
            "right",
            ("P",),
        ),
        Wrong(
            "one score too many",
            (("for (int j = 1; j < N; j++) row_max", "for (int j = 1; j <= N; j++) row_max"),),
            "right",
            ("out-of-bounds read", "S[1369]"),
        ),
        Wrong(
            "the first score alone",
            (("\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);", ""),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "without the last score",
            (("j = 1; j < N; j++", "j = 1; j < N - 1; j++"),),
            "right",
            ("column 36", "NaN"),
        ),
    ),
}  # fmt: skip

TRIALS = {
    "02_naive.cu": by_entry(
        others=products(*SQUARES), softmax=softmaxes((70, False), (67, True), (1, True))
    ),
}
