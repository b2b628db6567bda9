"""Chapter 05, coarser threads: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.fp32 import REDUCTION, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import (
    BARRIERS,
    TILES,
    TOGETHER,
    Arguments,
    covering,
    empty,
    normal,
    queries_and_keys,
    scores,
)

RUNGS = (
    ThreeKernels(
        name="coarsened",
        chapter=5,
        steps=steps("05_coarsened.cu", rows_first, REDUCTION),
        draws=("reads", "tree"),
    ),
)


def _heads_and_keys(case: Case) -> Arguments:
    N, d, heads = case["N"], case["d"], case.get("HEADS", 4)
    Q, K = normal(heads, N, d), normal(N, d, seed=1)
    return {"Q": Q, "K": K, "S": empty(heads, N, N), "N": N, "d": d}


_Q_TILE, _K_TILE = "s_Q[n][tx][ty] = row", "s_K[n][tx][ty] = col"
_PRODUCT = "s_Q[r][tx][k] * s_K[c][k][ty]"
_ROW, _COL = "row = first_row + r * TILE + tx", "col = first_col + c * TILE + ty"

BOTH_WAYS = Exercise(
    name="05_both_ways",
    title="save on both",
    task=(
        "Let a block compute `COARSE` × `COARSE` squares of $S$, so that tiles of $Q$ and tiles of "
        "$K$ are loaded `COARSE` times less often. Fill the three gaps."
    ),
    hints=(
        "A turn of `i` needs `COARSE` tiles of $Q$ and as many of $K$. Each of them is copied once "
        "and used `COARSE` times.",
        "Tile `n` of either matrix begins `n` tiles after the first. The square in row `r` and "
        "column `c` needs tile `r` of $Q$ and tile `c` of $K$. Its elements are stored `r` tiles "
        "down and `c` tiles to the right.",
    ),
    entry="scaled_dot_product",
    cases=({"N": 21, "d": 5, "TILE": 8, "COARSE": 2}, {"N": 53, "d": 19}),
    launch=covering(TILES, ("N", "TILE", "COARSE"), ("N", "TILE", "COARSE")),
    arguments=queries_and_keys,
    results={"S": scores},
    goals=(
        Goal(
            "global_load_bytes",
            "Is a tile loaded again for each square, or an element for each product?",
            name="bytes loaded from global memory",
        ),
        BARRIERS,
        TOGETHER,
    ),
    timed={"N": 2048, "d": 64},
    unlike={"TILE": 8, "COARSE": 4},
    misconceptions=(
        Misconception(
            "The products of all squares go to one sum: each square that a thread works for needs "
            "a sum of its own.",
            (("sum[r][c] +=", "sum[0][0] +="),),
        ),
        Misconception(
            "The squares have changed places: rows of squares belong to tiles of Q, columns to "
            "tiles of K.",
            ((_PRODUCT, "s_Q[c][tx][k] * s_K[r][k][ty]"),),
        ),
        Misconception(
            "Only squares on the diagonal get both of their tiles: the tile of Q has the number of "
            "the square's row, not of its column.",
            ((_PRODUCT, "s_Q[c][tx][k] * s_K[c][k][ty]"),),
        ),
        Misconception(
            "Only squares on the diagonal get both of their tiles: the tile of K has the number of "
            "the square's column, not of its row.",
            ((_PRODUCT, "s_Q[r][tx][k] * s_K[r][k][ty]"),),
        ),
        Misconception(
            "All tiles of Q go to one place in shared memory, so that the last one is left: each "
            "needs a place of its own.",
            ((_Q_TILE, "s_Q[0][tx][ty] = row"), ("s_Q[r][tx][k]", "s_Q[0][tx][k]")),
        ),
        Misconception(
            "All tiles of K go to one place in shared memory, so that the last one is left: each "
            "needs a place of its own.",
            ((_K_TILE, "s_K[0][tx][ty] = col"), ("s_K[c][k][ty]", "s_K[0][k][ty]")),
        ),
        Misconception(
            "All tiles are copies of the first one: tile n begins n tiles further.",
            (
                ("first_row + n * TILE + tx", "first_row + tx"),
                ("first_col + n * TILE + ty", "first_col + ty"),
            ),
        ),
        Misconception(
            "All tiles of K are copies of the first one: tile n begins n tiles further.",
            (("first_col + n * TILE + ty", "first_col + ty"),),
        ),
        Misconception(
            "All tiles of Q are copies of the first one: tile n begins n tiles further.",
            (("first_row + n * TILE + tx", "first_row + tx"),),
        ),
        Misconception(
            "Tiles are taken to be `COARSE` elements apart: each is `TILE` long.",
            (
                ("first_row + n * TILE + tx", "first_row + n * COARSE + tx"),
                ("first_col + n * TILE + ty", "first_col + n * COARSE + ty"),
            ),
        ),
        Misconception(
            "`tx` and `ty` are exchanged where the rows and columns to copy are chosen: `tx` "
            "counts rows of S, and `ty` columns.",
            (
                ("first_row + n * TILE + tx", "first_row + n * TILE + ty"),
                ("first_col + n * TILE + ty", "first_col + n * TILE + tx"),
            ),
        ),
        Misconception(
            "`tx` chooses both the row of Q and the position along d, so only a diagonal is "
            "copied: one of them belongs to `ty`.",
            (
                (
                    "i + ty < d ? Q[(size_t)row * d + i + ty]",
                    "i + tx < d ? Q[(size_t)row * d + i + tx]",
                ),
            ),
        ),
        Misconception(
            "All rows of squares are stored to the first one, each over the one before.",
            ((_ROW, "row = first_row + tx"),),
        ),
        Misconception(
            "The rows and columns that are copied are not those that are stored: one place counts "
            "neighbours, the other one elements a tile apart.",
            (
                ("first_row + n * TILE + tx", "first_row + tx * COARSE + n"),
                ("first_col + n * TILE + ty", "first_col + ty * COARSE + n"),
            ),
        ),
        Misconception(
            "The rows and columns that are stored are not those that were copied: one place counts "
            "neighbours, the other one elements a tile apart.",
            (
                (_ROW, "row = first_row + tx * COARSE + r"),
                (_COL, "col = first_col + ty * COARSE + c"),
            ),
        ),
        Misconception(
            "All squares are stored to one place, each over the one before.",
            ((_ROW, "row = first_row + tx"), (_COL, "col = first_col + ty")),
        ),
        Misconception(
            "The tiles of Q are stored one way and read the other, with two indices exchanged: the "
            "row comes before the position along d.",
            ((_Q_TILE, "s_Q[n][ty][tx] = row"),),
        ),
        Misconception(
            "The tiles of K are stored one way and read the other, with two indices exchanged: the "
            "position along d comes before the column.",
            ((_K_TILE, "s_K[n][ty][tx] = col"),),
        ),
        Misconception(
            "The division by the square root of d is missing.",
            results={"S": lambda Q, K: Q @ K.T},
        ),
    ),
    explanation=(
        "In a turn of `i` a block copies `COARSE` tiles of each matrix and computes `COARSE`² "
        "squares, so each tile serves `COARSE` of them. The loads of both matrices fall to one in "
        "`COARSE`, where the chapter's kernel saved on $Q$ alone. Two barriers a turn are enough. "
        "The price is the chapter's, squared: `COARSE`² times fewer blocks, and as many sums in "
        "registers."
    ),
)

_OWN_QUERIES = "((size_t)h * N + row) * d"
_BY_SQRT = "sum[h] / sqrtf((float)d)"

SHARED_KEYS = Exercise(
    name="05_shared_keys",
    title="one K for several heads",
    task=(
        "In grouped-query attention several heads have queries of their own and share one $K$. "
        "Load each tile of $K$ once for all of them. The barriers are yours to place: a turn of "
        "the loop over `i` needs as many of them for one head as for eight."
    ),
    hints=(
        "The heads are to $K$ what the squares of a row were in this chapter: each has a sum of "
        "its own. Shared memory has room for one tile of $Q$ for each head.",
        "All threads first copy all tiles, then multiply for all heads. A barrier belongs where "
        "threads begin to read what others have copied, and one where they begin to copy anew. "
        "Head `h` begins `h` matrices further, in $Q$ and in $S$.",
    ),
    entry="scaled_dot_product",
    cases=({"N": 19, "d": 11, "TILE": 8, "HEADS": 2}, {"N": 34, "d": 21}),
    launch=covering(TILES, ("N", "TILE"), ("N", "TILE")),
    arguments=_heads_and_keys,
    results={"S": lambda Q, K: Q @ K.T / np.sqrt(K.shape[1])},
    goals=(
        Goal(
            "global_load_bytes",
            "Is a tile loaded again for each head, or an element for each product?",
            name="bytes loaded from global memory",
        ),
        BARRIERS,
        TOGETHER,
    ),
    timed={"N": 2048, "d": 64},
    unlike={"TILE": 8, "HEADS": 8},
    misconceptions=(
        Misconception(
            "All heads get the scores of head 0: each has queries, a tile and a sum of its own.",
            ((_OWN_QUERIES, "(size_t)row * d"),),
        ),
        Misconception(
            "Q is read as if the heads of a row lay side by side: here all rows of a head come "
            "before those of the next one.",
            ((_OWN_QUERIES, "((size_t)row * HEADS + h) * d"),),
        ),
        Misconception(
            "The products of all heads go to one sum: the heads share keys, not scores.",
            (("sum[h] +=", "sum[0] +="),),
        ),
        Misconception(
            "The tiles of all heads go to one place in shared memory, so that the last head's is "
            "left: each needs a place of its own.",
            (("s_Q[h][tx][ty]", "s_Q[0][tx][ty]"), ("s_Q[h][tx][k]", "s_Q[0][tx][k]")),
        ),
        Misconception(
            "The number of the row is not multiplied by the length of a row of Q.",
            ((_OWN_QUERIES, "(size_t)h * N * d + row"),),
        ),
        Misconception(
            "S is stored as if the heads of a row lay side by side: here the whole matrix of a "
            "head comes before that of the next one.",
            (
                ("first = (size_t)h * N * N", "first = (size_t)h * N"),
                ("first + row * N + col", "first + (size_t)row * HEADS * N + col"),
            ),
        ),
        Misconception(
            "S is stored as if the scores of all heads lay side by side for each row and column: "
            "here the whole matrix of a head comes before that of the next one.",
            (
                ("first = (size_t)h * N * N", "first = h"),
                ("first + row * N + col", "first + ((size_t)row * N + col) * HEADS"),
            ),
        ),
        Misconception(
            "The sum still holds what the heads before have left: each head's begins at 0.",
            results={"S": lambda Q, K: np.cumsum(Q @ K.T, axis=0) / np.sqrt(K.shape[1])},
        ),
        Misconception(
            "The scores of all heads are stored to one matrix, each over the one before.",
            (("first = (size_t)h * N * N", "first = 0"),),
        ),
        Misconception(
            "A head's scores begin where its queries would: a matrix of S has N rows of N.",
            (("first = (size_t)h * N * N", "first = (size_t)h * N * d"),),
        ),
        Misconception(
            "The tile of Q is stored one way and read the other, with its two indices exchanged: "
            "the row comes first in it, then the position along d.",
            (("s_Q[h][tx][ty]", "s_Q[h][ty][tx]"),),
        ),
        Misconception(
            "The division by the square root of d is missing.",
            results={"S": lambda Q, K: Q @ K.T},
        ),
        Misconception(
            "The scores are divided by d and not by its square root.",
            results={"S": lambda Q, K: Q @ K.T / K.shape[1]},
        ),
        Misconception(
            "The scores are divided by the square root of N: what matters is d, how many products "
            "a score adds up.",
            results={"S": lambda Q, K: Q @ K.T / np.sqrt(K.shape[0])},
        ),
    ),
    explanation=(
        "The tile of $K$ is the same for all heads, so it is loaded once in a turn of `i`. With a "
        "tile of $Q$ for each head in shared memory, two barriers are enough for all of them: one "
        "before the products, one after. In the loop over `k` an element of `s_K` serves all heads "
        "from a register. Models with grouped queries save the same loads, and memory for keys."
    ),
)

EXERCISES: tuple[Exercise, ...] = (BOTH_WAYS, SHARED_KEYS)
