"""Chapter 06, coalescing: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
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
    chosen = np.random.default_rng(N).integers(0, N, (M, N), dtype=np.int32)
    W, V = normal(M, N), normal(N, d, seed=1)
    return {"W": W, "keys": chosen, "V": V, "O": empty(N, d), "N": N, "M": M, "d": d}


def _gathered(W: np.ndarray, keys: np.ndarray, V: np.ndarray) -> np.ndarray:
    """O of sparse attention: of each query the sum of its keys' rows of V, weighted."""
    return np.einsum("mn,mnd->nd", W, V[keys.astype(np.intp)])


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
            "The guard of the store asks for a place in K: KT has d rows and N columns.",
            (("row < d && col < N", "row < N && col < d"),),
        ),
        Misconception(
            "The store is guarded by what the thread has copied: it has to be guarded by the row "
            "and the column of KT that it writes.",
            (("row < d && col < N", "first_row + ty < N && first_col + tx < d"),),
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

_W, _KEYS = "W[(m + ty) * N + owner]", "keys[(m + ty) * N + owner]"
_WEIGHT, _KEY = "s_W[k][ty]", "s_keys[k][ty]"
_STORED = "s_W[ty][tx] =", "s_keys[ty][tx] ="

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
        "All threads of a query need the same list. Copy `TILE` places of it at a time and let "
        "them read these from shared memory. In memory the queries lie side by side, so `tx` has "
        "to choose the query while you copy, and `ty` the place. While you add, it is `ty` that "
        "chooses the query.",
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
    goals=(
        Goal(
            "global_load_sectors",
            "A sector costs too much in three ways here. Neighbouring lanes read far apart and use "
            "a part of it; each thread loads again what one copy in shared memory would give to "
            "the whole block; or it is loaded for a query, a place or a column that does not "
            "exist.",
        ),
        SECTORS[1],
    ),
    timed={"N": 4096, "M": 256, "d": 64},
    unlike={"TILE": 32},
    misconceptions=(
        Misconception(
            "A place in the list is taken for a row of V: the list says which row it is.",
            results={"O": lambda W, V: W.T @ V[: len(W)]},
        ),
        Misconception(
            "The weights are those of another query than the list: both belong to the query whose "
            "element the thread computes.",
            ((_WEIGHT, "s_W[k][tx]"),),
        ),
        Misconception(
            "The list is that of another query than the weights: both belong to the query whose "
            "element the thread computes.",
            ((_KEY, "s_keys[k][tx]"),),
        ),
        Misconception(
            "List and weights are those of another query: `ty` says which query a thread works "
            "for, and `tx` is its column.",
            ((_WEIGHT, "s_W[k][tx]"), (_KEY, "s_keys[k][tx]")),
        ),
        Misconception(
            "The tile of weights is stored one way and read the other, with its two indices "
            "exchanged: the place in the list comes first in it, then the query.",
            ((_STORED[0], "s_W[tx][ty] ="),),
        ),
        Misconception(
            "Both tiles are stored one way and read the other, with their two indices exchanged: "
            "the place in the list comes first in them, then the query.",
            ((_STORED[0], "s_W[tx][ty] ="), (_STORED[1], "s_keys[tx][ty] =")),
        ),
        Misconception(
            "Each thread copies from the list of the query that it computes for. Then `ty` chooses "
            "the query and the place as well, so most of the lists never come.",
            (("owner = blockIdx.y * TILE + tx", "owner = query"),),
        ),
        Misconception(
            "The lists are read as if the places of a list lay side by side. Here the queries do.",
            ((_W, "W[owner * M + m + ty]"), (_KEYS, "keys[owner * M + m + ty]")),
        ),
        Misconception(
            "The weights are left out: the rows are added up as they are.",
            results={"O": lambda W, keys, V: _gathered(np.ones_like(W), keys, V)},
        ),
        Misconception(
            "The tiles hold only the places from `m` on, so within them a place is numbered by `k` "
            "alone.",
            ((_WEIGHT, "s_W[m + k][ty]"), (_KEY, "s_keys[m + k][ty]")),
        ),
        Misconception(
            "The first places of each list are used again and again: the copy of list and weights "
            "has to move on with `m`.",
            ((_W, "W[ty * N + owner]"), (_KEYS, "keys[ty * N + owner]")),
        ),
        Misconception(
            "The weights stay at the first places while the list moves on: both move with `m`.",
            ((_W, "W[ty * N + owner]"),),
        ),
        Misconception(
            "Every place brings the query's own row of V: the list says which row it is.",
            results={"O": lambda W, V: W.sum(axis=0)[:, None] * V},
        ),
        Misconception(
            "`tx` stands for the query while the sums are made, but the sums take the list of "
            "query `ty`.",
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
            (("s_keys[k][ty] * d", "s_keys[k][ty] * M"),),
        ),
    ),
    explanation=(
        "The list decides which rows of $V$ are read, and nobody can make those neighbours. But a "
        "row has neighbours in itself: with `tx` along the columns, 16 lanes read two whole "
        "sectors. The lists come in whole sectors too, if `tx` runs along the queries while they "
        "are copied. So a thread carries for another query than it computes for, as it carried "
        "another element of $K$. Read one by one, all lanes of a query would fetch a sector to use "
        "4 bytes of it."
    ),
)

EXERCISES: tuple[Exercise, ...] = (TRANSPOSE, GATHER)
