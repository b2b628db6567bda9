"""Chapter 06, coalescing: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import COALESCED, products

_BARRIER = "    __syncthreads();  // the tile is whole before any thread reads what others copied\n"
_WEIGHT, _KEY = "s_W[ty][k]", "s_keys[ty][k]"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "06_transpose": (
        Wrong(
            "the load is scattered in turn",
            (
                (
                    "first_row + ty < N && first_col + tx < d",
                    "first_row + tx < N && first_col + ty < d",
                ),
                (
                    "s_K[ty][tx] = K[(first_row + ty) * d + first_col + tx];",
                    "s_K[tx][ty] = K[(first_row + tx) * d + first_col + ty];",
                ),
            ),
            "goal",
            ("global load sectors", "Let tx run along rows"),
        ),
        Wrong(
            "the tile is not turned",
            (("&s_K[tx][ty]", "&s_K[ty][tx]"),),
            "right",
            ("Place and element do not belong together",),
        ),
        Wrong(
            "the tile stays in its place",
            (
                ("row = first_col + ty", "row = first_row + ty"),
                ("col = first_row + tx", "col = first_col + tx"),
            ),
            "right",
            ("stays at its place in K",),
        ),
        Wrong(
            "the element is turned, its place is not",
            (
                ("row = first_col + ty", "row = first_col + tx"),
                ("col = first_row + tx", "col = first_row + ty"),
            ),
            "right",
            ("Place and element do not belong together",),
        ),
        Wrong(
            "a diagonal",
            (("col = first_row + tx", "col = first_row + ty"),),
            "right",
            ("the threads write a diagonal",),
        ),
        Wrong(
            "rows of KT are d long",
            (("KT[row * N", "KT[row * d"),),
            "right",
            ("out-of-bounds", "KT["),
        ),
        Wrong(
            "no barrier",
            ((_BARRIER, ""),),
            "no race",
            ("s_K", "__syncthreads()"),
        ),
        Wrong(
            "atomics in place of stores",
            (
                ("row = first_col + ty", "row = first_col + tx"),
                ("col = first_row + tx", "col = first_row + ty"),
                ("&s_K[tx][ty]", "&s_K[ty][tx]"),
                ("KT[row * N + col] = *element", "atomicExch(&KT[row * N + col], *element)"),
            ),
            "goal",
            ("atomic operations",),
        ),
    ),
    "06_gather": (
        Wrong(
            "threads keep their roles",
            (
                ("query = blockIdx.y * TILE + ty", "query = blockIdx.y * TILE + tx"),
                ("col = blockIdx.x * TILE + tx", "col = blockIdx.x * TILE + ty"),
                ("query < N && m + tx < M", "query < N && m + ty < M"),
                ("s_W[ty][tx] =", "s_W[tx][ty] ="),
                (" W[query * M + m + tx]", " W[query * M + m + ty]"),
                ("s_keys[ty][tx] =", "s_keys[tx][ty] ="),
                ("keys[query * M + m + tx]", "keys[query * M + m + ty]"),
                (_WEIGHT, "s_W[tx][k]"),
                (_KEY, "s_keys[tx][k]"),
            ),
            "goal",
            ("global load sectors", "Let tx run along rows"),
        ),
        Wrong(
            "lists straight from global memory",
            (
                (
                    "if (col < d) sum += s_W[ty][k] * V[s_keys[ty][k] * d + col];",
                    "if (query < N && col < d && m + k < M)\n"
                    "sum += W[query * M + m + k] * V[keys[query * M + m + k] * d + col];",
                ),
            ),
            "goal",
            ("global load sectors",),
        ),
        Wrong(
            "the place for the row",
            ((_KEY, "(m + k < M ? m + k : 0)"),),
            "right",
            ("A place in the list is taken for a row of V",),
        ),
        Wrong(
            "another query's weights",
            ((_WEIGHT, "s_W[tx][k]"),),
            "right",
            ("The weights are those of another query",),
        ),
        Wrong(
            "another query's list and weights",
            ((_WEIGHT, "s_W[tx][k]"), (_KEY, "s_keys[tx][k]")),
            "right",
            ("List and weights are those of another query",),
        ),
        Wrong(
            "weights stored turned",
            (("s_W[ty][tx]", "s_W[tx][ty]"),),
            "right",
            ("The tile of weights is stored one way and read the other",),
        ),
        Wrong(
            "no weights",
            ((f"{_WEIGHT} * V", "(m + k < M) * V"),),
            "right",
            ("The weights are left out",),
        ),
        Wrong(
            "lists past their end",
            (("query < N && m + tx < M", "query < N"),),
            "right",
            ("out-of-bounds", "W["),
        ),
    ),
}

TRIALS = {"06_coalesced.cu": products(*COALESCED)}
