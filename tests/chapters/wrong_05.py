"""Chapter 05, coarser threads: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import products, with_one

WRONG: dict[str, tuple[Wrong, ...]] = {
    "05_keep_the_tile": (
        Wrong(
            "Q's tile in the inner loop",
            (
                ("        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] :"
                 " 0.0f;\n", ""),
                ("            s_K[tx][ty] = ",
                 "            s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] :"
                 " 0.0f;\n            s_K[tx][ty] = "),
            ),
            "goal",
            ("bytes loaded from global memory", "loaded again"),
        ),
        Wrong("one sum for all", (("sum[c] +=", "sum[0] +="),), "right", ("S[",)),
        Wrong(
            "K's tile once",
            (("s_K[tx][ty] = col < N", "if (c == 0) s_K[tx][ty] = col < N"),),
            "right",
            ("S[",),
        ),
        Wrong(
            "Q's tile only once in all",
            (("        s_Q[tx][ty] = row", "        if (i == 0) s_Q[tx][ty] = row"),),
            "right",
            ("S[",),
        ),
    ),
}  # fmt: skip

TRIALS = {
    "05_coarsened.cu": products(
        *with_one(
            ({"TILE": 8, "COARSE": 2}, 37, 11), ({"TILE": 8, "COARSE": 2}, 11, 37),
            ({"TILE": 8, "COARSE": 2}, 32, 32), ({"TILE": 8, "COARSE": 1}, 19, 21),
        )
    ),
}  # fmt: skip
