"""Chapter 09, swizzles: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise
from ..problem.flash import FLASH_SWIZZLED
from .shared import LOADS, NO_ROOM, SECTORS, STORES, Arguments, covering, empty, normal

RUNGS = (FLASH_SWIZZLED,)


def _chunks(case: Case) -> Arguments:
    count = case["matrices"]
    return {"rows": normal(count, 8, 8, 4), "columns": empty(count, 8, 8, 4)}


def _p_and_v(case: Case) -> Arguments:
    m = case["m"]
    P, V = normal(m, 64, dtype=np.float16), normal(64, 64, seed=1, dtype=np.float16)
    return {"P": P, "V": V, "O": empty(m, 64, dtype=np.float16), "m": m}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="09_latin",
        title="a square of your own",
        task=(
            "Choose where in its row each chunk lies, so that neither rows nor columns of the "
            "matrix conflict. XOR is one way; find another if you can."
        ),
        hints=(
            "Each row must have every place once, or chunks are lost.",
            "Each column must have every place once as well, or lanes conflict: a Latin square.",
        ),
        entry="turn",
        cases=({"matrices": 1}, {"matrices": 3}),
        launch=covering((8, 8), ("matrices", 1)),
        arguments=_chunks,
        results={"columns": lambda rows: rows.swapaxes(1, 2)},
        goals=(NO_ROOM, LOADS, STORES),
        keeps=(
            "s_rows[y][place(y, x)] = rows[first + 8 * y + x];",
            "columns[first + 8 * y + x] = s_rows[x][place(x, y)];",
        ),
    ),
    Exercise(
        name="09_paths",
        title="one map on every path",
        task=(
            "Swizzle the tiles of this kernel: write the map once, then read $V$ by it, and write "
            "$O$ by it, so that nothing conflicts."
        ),
        hints=(
            "`place` tells where a chunk begins, for those that write it and those that read it.",
            "What lies within the chunk is added to what `place` gives.",
        ),
        entry="weighted_rows",
        cases=({"m": 16}, {"m": 41}),
        launch=covering((32,), ("m", 16)),
        arguments=_p_and_v,
        results={"O": lambda P, V: P @ V},
        tolerance=1e-3,
        goals=(NO_ROOM, LOADS, STORES, *SECTORS),
        timed={"m": 1 << 20},
    ),
)
