"""Chapter 06, coalescing: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import COALESCED, products

_P_IS_INSIDE = "i + ty < N && first_row + tx < N"
_P = "inside ? P[(i + ty) * N + first_row + tx] : 0.0f"
_BARRIER = "    __syncthreads();  // the tile is whole before any thread reads what others copied\n"
_SUM = "s_P[k][ty] * s_dO[k][tx]"

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
            ("elements of KT",),
        ),
        Wrong(
            "the tile stays in its place",
            (
                ("row = first_col + ty", "row = first_row + ty"),
                ("col = first_row + tx", "col = first_col + tx"),
            ),
            "right",
            ("elements of KT",),
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
    "06_gradient": (
        Wrong(
            "a thread copies down a column",
            (
                (_P_IS_INSIDE, "i + tx < N && row < N"),
                (_P, "inside ? P[(i + tx) * N + row] : 0.0f"),
                (_SUM, "s_P[ty][k] * s_dO[k][tx]"),
            ),
            "goal",
            ("global load sectors",),
        ),
        Wrong(
            "P is not transposed",
            ((_SUM, "s_P[ty][k] * s_dO[k][tx]"),),
            "right",
            ("elements of dV",),
        ),
        Wrong(
            "rows of P past the last one",
            ((_P_IS_INSIDE, "first_row + tx < N"),),
            "right",
            ("out-of-bounds", "P["),
        ),
        Wrong(
            "another row of P", ((_SUM, "s_P[k][tx] * s_dO[k][tx]"),), "right", ("elements of dV",)
        ),
        Wrong(
            "columns of P past the last one",
            ((_P_IS_INSIDE, "i + ty < N"),),
            "right",
            ("out-of-bounds", "P["),
        ),
    ),
}

TRIALS = {"06_coalesced.cu": products(*COALESCED)}
