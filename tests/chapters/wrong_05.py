"""Chapter 05, coarser threads: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import products, with_one

_P = "s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;"
_V = "s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;"
_P_ROW = "row = block_row + c * TILE + tx;\n            s_P"
_Q_LOAD = "s_Q[h][tx][ty] = row < N && i + ty < d ? q[i + ty] : 0.0f;"
_FIRST_BARRIER = "        __syncthreads();\n        for (int k"
_SECOND_BARRIER = "        }\n        __syncthreads();\n    }"
_SUM = "sum[h] += s_Q[h][tx][k] * s_K[k][ty];"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "05_keep_v": (
        Wrong(
            "V's tile in the inner loop",
            ((f"        {_V}\n", ""), (f"            {_P}", f"            {_V}\n            {_P}")),
            "goal",
            ("bytes loaded from global memory", "loaded again"),
        ),
        Wrong("one sum for all", (("sum[c] +=", "sum[0] +="),), "right", ("the first sum",)),
        Wrong(
            "one sum, stored to all",
            (("sum[c] +=", "sum[0] +="), ("= sum[c]", "= sum[0]")),
            "right",
            ("in one sum, and every row",),
        ),
        Wrong(
            "V's tile only once in all",
            (("        s_V[tx][ty] = i", "        if (i == 0) s_V[tx][ty] = i"),),
            "right",
            ("V is copied only once",),
        ),
        Wrong(
            "the block's first rows of P in every turn",
            ((_P_ROW, "row = block_row + tx;\n            s_P"),),
            "right",
            ("the same tile of P",),
        ),
        Wrong(
            "neighbours are copied, rows a tile apart are stored",
            ((_P_ROW, "row = block_row + COARSE * tx + c;\n            s_P"),),
            "right",
            ("one place counts rows a tile apart",),
        ),
        Wrong(
            "V's tile along its row",
            (("s_V[k][ty]", "s_V[ty][k]"),),
            "right",
            ("The tile of V is stored one way and read the other",),
        ),
        Wrong(
            "rows past the last one",
            (("s_P[tx][ty] = row < N && i", "s_P[tx][ty] = i"),),
            "right",
            ("out-of-bounds", "P["),
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
