"""Chapter 06, coalescing: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Misconception
from ..problem.fp32 import REDUCTION, TRANSPOSES, columns_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import SECTORS, TILES, Arguments, covering, empty, keys, normal

RUNGS = (
    ThreeKernels(
        name="coalesced",
        chapter=6,
        steps=steps("06_coalesced.cu", columns_first, REDUCTION),
        variants=TRANSPOSES,
        draws=("sectors and banks",),
    ),
)


def _lists_and_values(case: Case) -> Arguments:
    N, M, d = case["N"], case["M"], case["d"]
    chosen = np.random.default_rng(N).integers(0, N, (N, M), dtype=np.int32)
    W, V = normal(N, M), normal(N, d, seed=1)
    return {"W": W, "keys": chosen, "V": V, "O": empty(N, d), "N": N, "M": M, "d": d}


def _gathered(W: np.ndarray, keys: np.ndarray, V: np.ndarray) -> np.ndarray:
    """O of sparse attention: of each query the sum of its keys' rows of V, weighted."""
    return np.einsum("nm,nmd->nd", W, V[keys.astype(np.intp)])


TRANSPOSE = Exercise(
    name="06_transpose",
    title="rows in, rows out",
    task=(
        "This kernel transposes $K$. Its loads are coalesced and its stores are not. Let each "
        "thread write another element of the tile, so that the stores are as well."
    ),
    hints=(
        "Neighbouring lanes differ in `tx`. Where must `tx` stand so that they write neighbours?",
        "`tx` has to run along a row of `KT`. Rows of `KT` are columns of `K`, so this tile begins "
        "at row `first_col` and column `first_row` of `KT`. Then ask who has copied the element "
        "that belongs there.",
    ),
    entry="transpose",
    cases=({"N": 21, "d": 38}, {"N": 33, "d": 9, "TILE": 8}, {"N": 48, "d": 32}),
    launch=covering(TILES, ("d", "TILE"), ("N", "TILE")),
    arguments=keys,
    results={"KT": lambda K: K.T},
    goals=SECTORS,
    timed={"N": 16384, "d": 1024},
    misconceptions=(
        Misconception(
            "Place and element do not belong together: `tx` and `ty` are exchanged in one of them "
            "and not in the other, so each tile is in its place but not turned.",
            (("&s_K[tx][ty]", "&s_K[ty][tx]"),),
        ),
        Misconception(
            "The tile is turned but stays at its place in K: the numbers of a tile's first row and "
            "first column are exchanged in a transpose, too.",
            (
                ("row = first_col + ty", "row = first_row + ty"),
                ("col = first_row + tx", "col = first_col + tx"),
            ),
        ),
        Misconception(
            "Row and column use the same one of `tx` and `ty`, so the threads write a diagonal.",
            (("col = first_row + tx", "col = first_row + ty"),),
        ),
        Misconception(
            "Row and column use the same one of `tx` and `ty`, so the threads write a diagonal: "
            "here it is `tx`.",
            (("row = first_col + ty", "row = first_col + tx"),),
        ),
    ),
    explanation=(
        "The tile is in shared memory, so any thread can take any element of it. A warp has copied "
        "rows of $K$. Now it writes rows of $K^{\\mathsf T}$: `tx` runs along them, and `ty` "
        "chooses one. The element for that place was copied by the thread with `tx` and `ty` "
        "exchanged, so the barrier between the two is needed."
    ),
)

_W, _KEYS = "W[query * M + m + tx]", "keys[query * M + m + tx]"
_ROW_OF_V = "V[s_keys[ty][k] * d + col]"

GATHER = Exercise(
    name="06_gather",
    title="rows that a list names",
    task=(
        "In sparse attention a query has a list of keys, and rows of $V$ are gathered from "
        "anywhere. Let this kernel ask for as few sectors as it can: of $V$, and of the lists."
    ),
    hints=(
        "Two rows of $V$ may lie far apart. Within a row there are neighbours. Which of a thread's "
        "two numbers should choose the query, and which the column?",
        "All threads of a query need the same list. Copy it `TILE` places at a time, with `tx` "
        "along the list, and let them read it from shared memory. There `ty` says whose list it "
        "is, and `k` the place.",
    ),
    entry="sparse_output",
    cases=(
        {"N": 21, "M": 9, "d": 38},
        {"N": 19, "M": 13, "d": 9, "TILE": 8},
        {"N": 32, "M": 20, "d": 32},
    ),
    launch=covering(TILES, ("d", "TILE"), ("N", "TILE")),
    arguments=_lists_and_values,
    results={"O": _gathered},
    goals=SECTORS,
    timed={"N": 4096, "M": 256, "d": 64},
    unlike={"TILE": 32},
    misconceptions=(
        Misconception(
            "A place in the list is taken for a row of V: the list says which row it is.",
            results={"O": lambda W, V: W @ V[: W.shape[1]]},
        ),
        Misconception(
            "The weights are those of another query than the list: both belong to the query whose "
            "element the thread computes.",
            (("s_W[ty][k]", "s_W[tx][k]"),),
        ),
        Misconception(
            "The list is that of another query than the weights: both belong to the query whose "
            "element the thread computes.",
            (("s_keys[ty][k]", "s_keys[tx][k]"),),
        ),
        Misconception(
            "List and weights are those of another query: `ty` says which query a thread works "
            "for, and `tx` is its column.",
            (("s_W[ty][k]", "s_W[tx][k]"), ("s_keys[ty][k]", "s_keys[tx][k]")),
        ),
        Misconception(
            "The tile of weights is stored one way and read the other, with its two indices "
            "exchanged: the query comes first in it, then the place in the list.",
            (("s_W[ty][tx]", "s_W[tx][ty]"),),
        ),
        Misconception(
            "Both tiles are stored one way and read the other, with their two indices exchanged: "
            "the query comes first in them, then the place in the list.",
            (("s_W[ty][tx]", "s_W[tx][ty]"), ("s_keys[ty][tx]", "s_keys[tx][ty]")),
        ),
        Misconception(
            "The weights are left out: the rows are added up as they are.",
            results={
                "O": lambda W, keys, V: _gathered(np.ones_like(W), keys, V),
            },
        ),
        Misconception(
            "The first places of each list are used again and again: the copy of list and weights "
            "has to move on with `m`.",
            ((_W, "W[query * M + tx]"), (_KEYS, "keys[query * M + tx]")),
        ),
        Misconception(
            "The weights stay at the first places while the list moves on: both move with `m`.",
            ((_W, "W[query * M + tx]"),),
        ),
        Misconception(
            "Places past the end of a list count, too: their weight has to be 0.",
            ((f"{_W} : 0.0f", f"{_W} : 1.0f"),),
        ),
        Misconception(
            "Every place brings the query's own row of V: the list says which row it is.",
            results={"O": lambda W, V: W.sum(axis=1, keepdims=True) * V},
        ),
        Misconception(
            "`tx` stands for the query in one line and for the place in its list in another. While "
            "the lists are copied, `ty` has to say whose list it is.",
            (
                ("query = blockIdx.y * TILE + ty", "query = blockIdx.y * TILE + tx"),
                ("col = blockIdx.x * TILE + tx", "col = blockIdx.x * TILE + ty"),
            ),
        ),
        Misconception(
            "Each place of the list replaces the sum: its part has to be added.",
            (("sum += s_W", "sum = s_W"),),
        ),
        Misconception(
            "Rows of V are taken to be as long as a list: they have d elements.",
            ((_ROW_OF_V, "V[s_keys[ty][k] * M + col]"),),
        ),
    ),
    explanation=(
        "The list decides which rows of $V$ are read, and nobody can make those neighbours. But a "
        "row has neighbours in itself: with `tx` along the columns, 16 lanes read two whole "
        "sectors. The lists come in whole sectors too, if `tx` runs along them while they are "
        "copied. Read one by one, all lanes of a query would fetch a sector to use 4 bytes of it."
    ),
)

EXERCISES: tuple[Exercise, ...] = (TRANSPOSE, GATHER)
