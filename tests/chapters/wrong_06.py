"""Chapter 06, coalescing: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import COALESCED, products

_BARRIER = "    __syncthreads();  // the tile is whole before any thread reads what others copied\n"
_WEIGHT = "s_W[k][ty]"

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
            ("s_K", "A barrier is missing"),
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
            "lists straight from global memory",
            (
                (
                    "sum += s_W[k][ty] * V[s_keys[k][ty] * d + col];",
                    "sum += W[(m + k) * N + query] * V[keys[(m + k) * N + query] * d + col];",
                ),
            ),
            "goal",
            ("global load sectors", "one copy in shared memory"),
        ),
        Wrong(
            "V is loaded past the end of a list",
            ((" && m + k < M && col < d", " && col < d"),),
            "goal",
            ("global load sectors", "a place or a column that does not exist"),
        ),
        Wrong(
            "each copies its own query's list",
            (("owner = blockIdx.y * TILE + tx", "owner = query"),),
            "right",
            ("chooses the query and the place as well",),
        ),
        Wrong(
            "another query's weights",
            ((_WEIGHT, "s_W[k][tx]"),),
            "right",
            ("The weights are those of another query",),
        ),
        Wrong(
            "lists of M places in a row",
            (
                ("W[(m + ty) * N + owner]", "W[owner * M + m + ty]"),
                ("keys[(m + ty) * N + owner]", "keys[owner * M + m + ty]"),
            ),
            "right",
            ("Here the queries do",),
        ),
        Wrong(
            "weights stored turned",
            (("s_W[ty][tx]", "s_W[tx][ty]"),),
            "right",
            ("The tile of weights is stored one way and read the other",),
        ),
        Wrong(
            "no weights",
            ((f"{_WEIGHT} * V", "V"),),
            "right",
            ("The weights are left out",),
        ),
        Wrong(
            "lists past their end",
            (("owner < N && m + ty < M", "owner < N"),),
            "right",
            ("out-of-bounds", "W["),
        ),
    ),
}

TRIALS = {"06_coalesced.cu": products(*COALESCED)}
