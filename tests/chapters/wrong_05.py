"""Chapter 05, coarser threads: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import products, with_one

_PRODUCT = "s_Q[r][tx][k] * s_K[c][k][ty]"
_COPIED = (
    ("first_row + n * TILE + tx", "first_row + COARSE * tx + n"),
    ("first_col + n * TILE + ty", "first_col + COARSE * ty + n"),
)
_STORED = (
    ("row = first_row + r * TILE + tx", "row = first_row + COARSE * tx + r"),
    ("col = first_col + c * TILE + ty", "col = first_col + COARSE * ty + c"),
)
_Q_LOAD = "s_Q[h][tx][ty] = row < N && i + ty < d ? q[i + ty] : 0.0f;"
_FIRST_BARRIER = "        __syncthreads();\n        for (int k"
_SECOND_BARRIER = "        }\n        __syncthreads();\n    }"
_SUM = "sum[h] += s_Q[h][tx][k] * s_K[k][ty];"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "05_both_ways": (
        Wrong(
            "K straight from global memory",
            (
                (
                    f"sum[r][c] += {_PRODUCT};",
                    "const int col = first_col + c * TILE + ty;\n"
                    "const bool inside = col < N && i + k < d;\n"
                    "sum[r][c] += s_Q[r][tx][k] * (inside ? K[(size_t)col * d + i + k] : 0.0f);",
                ),
            ),
            "goal",
            ("bytes loaded from global memory",),
        ),
        Wrong("one sum for all", (("sum[r][c] +=", "sum[0][0] +="),), "right", ("go to one sum",)),
        Wrong(
            "r for c",
            ((_PRODUCT, "s_Q[c][tx][k] * s_K[r][k][ty]"),),
            "right",
            ("The squares have changed places",),
        ),
        Wrong(
            "c for both",
            ((_PRODUCT, "s_Q[c][tx][k] * s_K[c][k][ty]"),),
            "right",
            ("Only squares on the diagonal", "not of its column"),
        ),
        Wrong(
            "a place for all tiles of K",
            (("s_K[n][tx][ty]", "s_K[0][tx][ty]"), ("s_K[c][k][ty]", "s_K[0][k][ty]")),
            "right",
            ("All tiles of K go to one place",),
        ),
        Wrong("neighbours are copied", _COPIED, "right", ("one place counts neighbours",)),
        Wrong(
            "neighbours are stored",
            _STORED,
            "right",
            ("that are stored are not those that were copied",),
        ),
        Wrong(
            "columns past the last one",
            (("s_K[n][tx][ty] = col < N && i", "s_K[n][tx][ty] = i"),),
            "right",
            ("out-of-bounds", "K["),
        ),
    ),
    "05_shared_keys": (
        Wrong(
            "head 0's queries for all",
            (("((size_t)h * N + row) * d", "(size_t)row * d"),),
            "right",
            ("the scores of head 0",),
        ),
        Wrong(
            "heads of a row side by side",
            (("((size_t)h * N + row) * d", "((size_t)row * HEADS + h) * d"),),
            "right",
            ("as if the heads of a row lay side by side",),
        ),
        Wrong(
            "one sum for all heads",
            ((_SUM, _SUM.replace("sum[h]", "sum[0]")),),
            "right",
            ("not scores",),
        ),
        Wrong(
            "scores without the head",
            (("first = (size_t)h * N * N", "first = 0"),),
            "right",
            ("to one matrix",),
        ),
        Wrong(
            "no division", ((" / sqrtf((float)d)", ""),), "right", ("square root of d is missing",)
        ),
        Wrong("no first barrier", ((_FIRST_BARRIER, "        for (int k"),), "no race", ("s_",)),
        Wrong("no second barrier", ((_SECOND_BARRIER, "        }\n    }"),), "no race", ("s_",)),
        Wrong(
            "a barrier for each head",
            ((_Q_LOAD, _Q_LOAD + "\n            __syncthreads();"),),
            "goal",
            ("barriers",),
        ),
    ),
}

TRIALS = {
    "05_coarsened.cu": products(
        *with_one(
            ({"TILE": 8, "COARSE": 2}, 37, 11), ({"TILE": 8, "COARSE": 2}, 11, 37),
            ({"TILE": 8, "COARSE": 2}, 32, 32), ({"TILE": 8, "COARSE": 1}, 19, 21),
        )
    ),
}  # fmt: skip
