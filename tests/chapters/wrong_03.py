"""Chapter 03, tiles: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import SQUARES, products

WRONG: dict[str, tuple[Wrong, ...]] = {
    "03_edges": (
        Wrong(
            "no guard along d",
            (("row < N && i + ty < d ?", "row < N ?"),),
            "right",
            ("out-of-bounds read", "guard"),
        ),
        Wrong(
            "K's tile the other way round",
            (("s_K[tx][ty] = col < N", "s_K[ty][tx] = col < N"),),
            "right",
            ("S[",),
        ),
        Wrong(
            "nothing in place of the zeros",
            (
                ("s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;",
                 "if (row < N && i + ty < d) s_Q[tx][ty] = Q[(size_t)row * d + i + ty];"),
                ("s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;",
                 "if (col < N && i + tx < d) s_K[tx][ty] = K[(size_t)col * d + i + tx];"),
            ),
            "right",
            ("nothing has written", "s_"),
        ),
        Wrong(
            "past the tiles",
            (("sum += s_Q[tx][k] * s_K[k][ty];",
              "{ if (row < N && col < N && i + k < d) sum += Q[(size_t)row * d + i + k] *"
              " K[(size_t)col * d + i + k]; }"),),
            "goal",
            ("bytes loaded from global memory", "tiles"),
        ),
    ),
    "03_barriers": (
        Wrong(
            "the first alone",
            (("s_V[k][ty];\n        __syncthreads();", "s_V[k][ty];"),),
            "no race",
            ("s_", "__syncthreads()"),
        ),
        Wrong(
            "the second alone",
            ((": 0.0f;\n        __syncthreads();", ": 0.0f;"),),
            "no race",
            ("s_", "__syncthreads()"),
        ),
        Wrong(
            "for each warp alone",
            ((": 0.0f;\n        __syncthreads();", ": 0.0f;\n        __syncwarp();"),),
            "no race",
            ("race on s_", "put __syncthreads() between the two"),
        ),
        Wrong(
            "in the inner loop",
            (
                ("sum += s_P[tx][k] * s_V[k][ty];\n        __syncthreads();",
                 "{ sum += s_P[tx][k] * s_V[k][ty]; __syncthreads(); }"),
            ),
            "goal",
            ("barriers",),
        ),
        Wrong(
            "only where there is an element",
            ((": 0.0f;\n        __syncthreads();",
              ": 0.0f;\n        if (row < N && col < d) __syncthreads();"),),
            "right",
            ("barrier",),
        ),
        Wrong(
            "past the tiles",
            (
                (": 0.0f;\n        __syncthreads();", ": 0.0f;"),
                ("sum += s_P[tx][k] * s_V[k][ty];\n        __syncthreads();",
                 "{ if (row < N && col < d && i + k < N) sum += P[(size_t)row * N + i + k] *"
                 " V[(size_t)(i + k) * d + col]; }"),
            ),
            "goal",
            ("bytes loaded from global memory", "tiles"),
        ),
    ),
}  # fmt: skip

TRIALS = {"03_tiled.cu": products(*SQUARES)}
