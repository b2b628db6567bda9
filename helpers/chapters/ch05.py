"""Chapter 05, coarser threads: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.fp32 import REDUCTION, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import BARRIERS, TILES, Arguments, covering, empty, normal

RUNGS = (
    ThreeKernels(
        name="coarsened",
        chapter=5,
        steps=steps("05_coarsened.cu", rows_first, REDUCTION),
        draws=("reads", "tree"),
    ),
)


def _weights_and_values(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    return {"P": normal(N, N), "V": normal(N, d, seed=1), "O": empty(N, d), "N": N, "d": d}


def _heads_and_keys(case: Case) -> Arguments:
    N, d, heads = case["N"], case["d"], case.get("HEADS", 4)
    Q, K = normal(heads, N, d), normal(N, d, seed=1)
    return {"Q": Q, "K": K, "S": empty(heads, N, N), "N": N, "d": d}


_P_ROW = "row = block_row + c * TILE + tx;\n            s_P"
_O_ROW = "row = block_row + c * TILE + tx;\n        if"

KEEP_V = Exercise(
    name="05_keep_v",
    title="keep the tile of V",
    task=(
        "Coarsen $PV$ down its rows: a tile of $V$ stays, and serves `COARSE` tiles of $P$. Fill "
        "the four gaps."
    ),
    hints=(
        "Ask of each tile whether it changes with `c`. The sums of a thread belong to one column "
        "of $O$ and to `COARSE` of its rows.",
        "The tile of $V$ depends on `i` alone, so the outer loop copies it. Turn `c` works on rows "
        "that begin `c` tiles below `block_row`. That holds when it copies $P$, and when sum `c` "
        "is stored.",
    ),
    entry="pv_multiply",
    cases=({"N": 21, "d": 5, "TILE": 8, "COARSE": 2}, {"N": 70, "d": 19}),
    launch=covering(TILES, ("N", "TILE", "COARSE"), ("d", "TILE")),
    arguments=_weights_and_values,
    results={"O": lambda P, V: P @ V},
    goals=(
        Goal(
            "global_load_bytes",
            "Is a tile of V loaded again for each tile of P, or an element for each product?",
            name="bytes loaded from global memory",
        ),
    ),
    timed={"N": 4096, "d": 64},
    unlike={"TILE": 8, "COARSE": 8},
    misconceptions=(
        Misconception(
            "Every turn of `c` adds to the first sum, so the thread's other rows stay 0: each row "
            "that a thread computes has a sum of its own.",
            (("sum[c] +=", "sum[0] +="),),
        ),
        Misconception(
            "The products of all tiles of P end up in one sum, and every row of the thread gets "
            "it: each of these rows has a sum of its own.",
            (("sum[c] +=", "sum[0] +="), ("= sum[c]", "= sum[0]")),
        ),
        Misconception(
            "The tile of V is copied only once in all: it stays while `c` runs, but each turn of "
            "`i` needs the next rows of V.",
            (("        s_V[tx][ty] = i", "        if (i == 0) s_V[tx][ty] = i"),),
        ),
        Misconception(
            "All turns of `c` use the same tile of P: it is V's tile that stays, and each turn of "
            "`c` is about other rows of P.",
            (("s_P[tx][ty] = row", "if (c == 0) s_P[tx][ty] = row"),),
        ),
        Misconception(
            "The rows of P that are copied are not the rows of O that are stored: one place counts "
            "rows a tile apart, the other one neighbours.",
            ((_P_ROW, "row = block_row + tx * COARSE + c;\n            s_P"),),
        ),
        Misconception(
            "The rows of P that are copied are not the rows of O that are stored: sums are stored "
            "to neighbouring rows, and their tiles lie a tile apart.",
            ((_O_ROW, "row = block_row + tx * COARSE + c;\n        if"),),
        ),
        Misconception(
            "The tile of V is stored one way and read the other, with its two indices exchanged: "
            "the position along the sum comes first in it, then the column.",
            (("s_V[k][ty]", "s_V[ty][k]"),),
        ),
        Misconception(
            "The tile of P is stored one way and read the other, with its two indices exchanged: "
            "the row comes first in it, then the position along the sum.",
            (("s_P[tx][k]", "s_P[k][tx]"),),
        ),
        Misconception(
            "Both tiles are read with their two indices exchanged: a product needs a row of P's "
            "tile and a column of V's.",
            (("s_P[tx][k]", "s_P[k][tx]"), ("s_V[k][ty]", "s_V[ty][k]")),
        ),
        Misconception(
            "All sums of a thread are stored to one row, each over the one before.",
            ((_O_ROW, "row = block_row + tx;\n        if"),),
        ),
        Misconception(
            "Rows and columns of P are exchanged: this is the product of P's transpose and V.",
            results={"O": lambda P, V: P.T @ V},
        ),
        Misconception(
            "The result is divided by the square root of d: that belongs to the scores, and P has "
            "it already.",
            results={"O": lambda P, V: P @ V / np.sqrt(V.shape[1])},
        ),
    ),
    explanation=(
        "A tile of $V$ depends on `i` and on the block's columns, and not on `c`. So it is loaded "
        "once and stays while `COARSE` tiles of $P$ pass by. Each of those belongs to other rows "
        "of $O$, so each has a sum of its own. The first barrier waits for both tiles. The second "
        "one keeps them until all threads have used them."
    ),
)

_OWN_QUERIES = "((size_t)h * N + row) * d"
_BY_SQRT = "sum[h] / sqrtf((float)d)"

SHARED_KEYS = Exercise(
    name="05_shared_keys",
    title="one K for several heads",
    task=(
        "In grouped-query attention several heads have queries of their own and share one $K$. "
        "Load each tile of $K$ once for all of them, and wait at as few barriers as possible."
    ),
    hints=(
        "The heads are to $K$ what the tiles of a row were in this chapter: each has a sum of its "
        "own. Shared memory has room for one tile of $Q$ for each head.",
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

EXERCISES: tuple[Exercise, ...] = (KEEP_V, SHARED_KEYS)
