"""Chapter 03, tiles: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import SQUARES, products

_V, _P = "V[(size_t)(i + j) * d + col]", "P[(size_t)row * N + i + j]"
_FILL = "s_X[j] = at >= 0 && at < n ? X[at] : 0.0f;"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "03_rectangle": (
        Wrong(
            "V read as K is",
            ((_V, "V[(size_t)col * d + i + j]"),),
            "right",
            ("as if it were K",),
        ),
        Wrong(
            "V stands still",
            ((_V, "V[(size_t)j * d + col]"),),
            "right",
            ("first tile of V",),
        ),
        Wrong(
            "one element carried into all places",
            (
                (_P, "P[(size_t)row * N + i + ty]"),
                ("row < N && i + j < N", "row < N && i + ty < N"),
            ),
            "right",
            ("same element into all its places of s_P",),
        ),
        Wrong(
            "one element each, as with squares",
            (
                ("for (int j = ty; j < DEPTH; j += COLS) {\n            s_P[tx][j]",
                 "{\n            s_P[tx][ty]"),
                ("row < N && i + j < N", "row < N && i + ty < N"),
                (_P, "P[(size_t)row * N + i + ty]"),
                ("for (int j = tx; j < DEPTH; j += ROWS) {\n            s_V[j][ty]",
                 "{\n            s_V[tx][ty]"),
                ("i + j < N && col < d", "i + tx < N && col < d"),
                (_V, "V[(size_t)(i + tx) * d + col]"),
            ),
            "right",
            ("as with squares",),
        ),
        Wrong(
            "steps exchanged",
            (("j += COLS", "j += STEP"), ("j += ROWS", "j += COLS"), ("j += STEP", "j += ROWS")),
            "right",
            ("steps of the two loops are exchanged",),
        ),
        Wrong(
            "no guard along N",
            (("row < N && i + j < N ?", "row < N ?"),),
            "right",
            ("out-of-bounds read",),
        ),
        Wrong(
            "places exchanged",
            (("s_V[j][ty] =", "s_V[ty][j] ="),),
            "right",
            ("indices of s_V are exchanged",),
        ),
        Wrong(
            "past the tiles",
            (("sum += s_P[tx][k] * s_V[k][ty];",
              "{ if (row < N && col < d && i + k < N) sum += P[(size_t)row * N + i + k] *"
              " V[(size_t)(i + k) * d + col]; }"),),
            "goal",
            ("bytes loaded from global memory", "shared memory"),
        ),
    ),
    "03_window": (
        Wrong("one too few", (("k <= 2 *", "k < 2 *"),), "right", ("one number too early",)),
        Wrong(
            "cut at the stretch",
            ((_FILL, "s_X[j] = j >= RADIUS && j < BLOCK_SIZE + RADIUS && at < n ? X[at] : 0.0f;"),),
            "right",
            ("ends where its stretch ends",),
        ),
        Wrong(
            "ends repeated",
            ((_FILL, "s_X[j] = X[min(max(at, 0), n - 1)];"),),
            "right",
            ("the last number is repeated",),
        ),
        Wrong(
            "from the number itself on",
            (("at = start - RADIUS + j", "at = start + j"),),
            "right",
            ("begins at its own number",),
        ),
        Wrong(
            "one number each",
            (("for (int j = tid; j < BLOCK_SIZE + 2 * RADIUS; j += BLOCK_SIZE) {",
              "{ const int j = tid;"),),
            "right",
            ("stay empty",),
        ),
        Wrong(
            "the first barrier alone",
            (("sum += s_X[tid + k];\n        __syncthreads();", "sum += s_X[tid + k];"),),
            "no race",
            ("s_X", "no barrier between"),
        ),
        Wrong(
            "the second barrier alone",
            (("}\n        __syncthreads();\n        for (int k", "}\n        for (int k"),),
            "no race",
            ("s_X", "no barrier between"),
        ),
        Wrong(
            "past shared memory",
            (("sum += s_X[tid + k];",
              "{ const int at = start + tid - RADIUS + k;"
              " if (at >= 0 && at < n) sum += X[at]; }"),),
            "goal",
            ("bytes loaded from global memory", "shared memory"),
        ),
    ),
}  # fmt: skip

TRIALS = {"03_tiled.cu": products(*SQUARES)}
