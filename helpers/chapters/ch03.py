"""Chapter 03, tiles: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.attention import make_inputs
from ..problem.fp32 import NAIVE_SOFTMAX, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import BARRIERS, TOGETHER, Arguments, covering, normal

RUNGS = (
    ThreeKernels(
        name="tiled",
        chapter=3,
        steps=steps("03_tiled.cu", rows_first, NAIVE_SOFTMAX),
        draws=("reads", "tree"),
    ),
)


def _weights_and_values(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    P = np.random.default_rng(N).dirichlet(np.full(N, 0.5), N).astype(np.float32)
    V = make_inputs(N, d, seed=N)[2]
    return {"P": P, "V": V, "O": np.zeros((N, d), np.float32), "N": N, "d": d}


def _numbers(case: Case) -> Arguments:
    n = case["n"]
    return {"X": normal(n, seed=n), "Y": np.zeros(n, np.float32), "n": n}


def _windows(X: np.ndarray) -> np.ndarray:
    """Sums of each number and its five neighbours; past the ends there are zeros."""
    return np.convolve(X, np.ones(11))[5:-5]


def _one_sided(X: np.ndarray) -> np.ndarray:
    """Windows that begin with the number itself."""
    return np.convolve(X, np.ones(11))[10:]


def _repeated_ends(X: np.ndarray) -> np.ndarray:
    return np.convolve(np.pad(X, 5, mode="edge"), np.ones(11), "valid")


_FROM_TILES = Goal(
    "global_load_bytes",
    "Elements are loaded that another thread of the block has loaded already: take them from "
    "shared memory.",
    name="bytes loaded from global memory",
)

# Of the rectangle: a tile filled by a loop, and by one element of each thread.
_FILL_P = """for (int j = ty; j < DEPTH; j += COLS) {
            s_P[tx][j] = row < N && i + j < N ? P[(size_t)row * N + i + j] : 0.0f;
        }"""
_ONE_P = "s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;"
_FILL_V = """for (int j = tx; j < DEPTH; j += ROWS) {
            s_V[j][ty] = i + j < N && col < d ? V[(size_t)(i + j) * d + col] : 0.0f;
        }"""
_ONE_V = "s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="03_rectangle",
        title="tiles that are no squares",
        task=(
            "This block has `ROWS` × `COLS` threads and computes as many elements of $O$. Its "
            "tiles are longer than that: `s_P` holds `ROWS` × `DEPTH` elements and `s_V` holds "
            "`DEPTH` × `COLS`. Fill them. A thread has several elements to carry into each tile, "
            "and not as many into one as into the other."
        ),
        hints=(
            (
                "Row `tx` of `s_P` is filled by the `COLS` threads that have this `tx`. How far "
                "apart are the elements that one of them copies? And who fills column `ty` of "
                "`s_V`?"
            ),
            (
                "For each tile write a loop over the position `j` along $N$, within the tile. For "
                "`s_P` it starts at `ty` and goes on in steps of `COLS`. Element `j` of the "
                "tile's row lies at position `i + j` of the matrix; ask for the edge with that."
            ),
        ),
        entry="pv_multiply",
        cases=(
            {"N": 37, "d": 19},
            {"N": 21, "d": 9, "ROWS": 8, "COLS": 4},
            {"N": 64, "d": 16, "DEPTH": 64},
        ),
        launch=covering(("ROWS", "COLS"), ("N", "ROWS"), ("d", "COLS")),
        arguments=_weights_and_values,
        results={"O": lambda P, V: P @ V},
        goals=(_FROM_TILES, BARRIERS, TOGETHER),
        timed={"N": 2048, "d": 64},
        misconceptions=(
            Misconception(
                "V is read as if it were K: row and position along N have changed places. Element "
                "(position, column) of V is wanted, not (column, position).",
                (("V[(size_t)(i + j) * d + col]", "V[(size_t)col * d + i + j]"),),
            ),
            Misconception(
                "P is read down a column: row and position along N have changed places in its "
                "index.",
                (("P[(size_t)row * N + i + j]", "P[(size_t)(i + j) * N + row]"),),
            ),
            Misconception(
                "Every turn of the loop fills s_V with the first tile of V: its index does not "
                "move on along N.",
                (("V[(size_t)(i + j) * d + col]", "V[(size_t)j * d + col]"),),
            ),
            Misconception(
                "Every turn of the loop fills s_P with the first tile of P: its index does not "
                "move on along N.",
                (("P[(size_t)row * N + i + j]", "P[(size_t)row * N + j]"),),
            ),
            Misconception(
                "A thread carries the same element into all its places of s_V: the place moves in "
                "its loop, and the element of V does not.",
                (
                    ("V[(size_t)(i + j) * d + col]", "V[(size_t)(i + tx) * d + col]"),
                    ("i + j < N && col < d", "i + tx < N && col < d"),
                ),
            ),
            Misconception(
                "A thread carries the same element into all its places of s_P: the place moves in "
                "its loop, and the element of P does not.",
                (
                    ("P[(size_t)row * N + i + j]", "P[(size_t)row * N + i + ty]"),
                    ("row < N && i + j < N", "row < N && i + ty < N"),
                ),
            ),
            Misconception(
                "The edge is asked for with the thread's first element alone: the elements that it "
                "carries after that may lie past the edge, or are left out.",
                (
                    ("row < N && i + j < N", "row < N && i + ty < N"),
                    ("i + j < N && col < d", "i + tx < N && col < d"),
                ),
            ),
            Misconception(
                "V is read as if its columns lay side by side in memory: its rows do.",
                (("V[(size_t)(i + j) * d + col]", "V[(size_t)col * N + i + j]"),),
            ),
            Misconception(
                "The rows of P are taken to be d numbers long: P has N numbers in a row.",
                (("P[(size_t)row * N + i + j]", "P[(size_t)row * d + i + j]"),),
            ),
            Misconception(
                "Positions from d on count as 0: the guard asks for d, and the sum goes along N.",
                (("row < N && i + j < N", "row < N && i + j < d"),),
            ),
            Misconception(
                "Every turn fills both tiles with the first ones: neither index moves on along N.",
                (
                    ("row < N && i + j < N", "row < N && j < N"),
                    ("P[(size_t)row * N + i + j]", "P[(size_t)row * N + j]"),
                    ("= i + j < N && col < d", "= j < N && col < d"),
                    ("V[(size_t)(i + j) * d + col]", "V[(size_t)j * d + col]"),
                ),
            ),
            Misconception(
                "The loop's i is taken for the number of a tile: it is a position along N already.",
                (
                    ("row < N && i + j < N", "row < N && i * DEPTH + j < N"),
                    ("P[(size_t)row * N + i + j]", "P[(size_t)row * N + i * DEPTH + j]"),
                    ("= i + j < N && col < d", "= i * DEPTH + j < N && col < d"),
                    ("V[(size_t)(i + j) * d + col]", "V[(size_t)(i * DEPTH + j) * d + col]"),
                ),
            ),
            Misconception(
                "Past the edges the tiles hold ones: only zeros add nothing to the sums.",
                (
                    ("+ i + j] : 0.0f", "+ i + j] : 1.0f"),
                    ("+ col] : 0.0f", "+ col] : 1.0f"),
                ),
            ),
            Misconception(
                "A thread carries one element into each tile, as with squares: other places stay "
                "empty.",
                ((_FILL_P, _ONE_P), (_FILL_V, _ONE_V)),
            ),
            Misconception(
                "The steps of the two loops are exchanged: a row of s_P and a column of s_V are "
                "not shared by equally many threads.",
                (
                    ("int j = ty; j < DEPTH; j += COLS", "int j = ty; j < DEPTH; j += ROWS"),
                    ("int j = tx; j < DEPTH; j += ROWS", "int j = tx; j < DEPTH; j += COLS"),
                ),
            ),
            Misconception(
                "The row of s_P is shared out by tx: the threads of a row all have the same tx, "
                "so they carry the same places, and others stay empty.",
                (("int j = ty; j < DEPTH; j += COLS", "int j = tx; j < DEPTH; j += ROWS"),),
            ),
        ),
        explanation=(
            "A carrier's work depends on the tile, not on the element of $O$ that the thread will "
            "calculate. The threads of one `tx` share row `tx` of `s_P`, and there are `COLS` of "
            "them, so each takes every `COLS`th element. The threads of one `ty` share column `ty` "
            "of `s_V`, and there are `ROWS` of them. A block of this shape loads $N^2 d$ (1/`ROWS` "
            "+ 1/`COLS`) elements, and a longer tile needs fewer barriers."
        ),
    ),
    Exercise(
        name="03_window",
        title="a window that slides",
        task=(
            "`Y[i]` is the sum of `X[i]` and its five neighbours on either side. Eleven threads "
            "need each number, so let the block load it once. Fill `s_X`, which begins `RADIUS` "
            "numbers before the block's stretch, and add from there. The block takes two "
            "stretches, one after the other."
        ),
        hints=(
            (
                "`s_X` has 2 × `RADIUS` words more than the block has threads. Who copies those? "
                "And which two things may not happen too early, in this turn and in the next?"
            ),
            (
                "Word `j` of `s_X` is number `start - RADIUS + j` of `X`, or 0 if there is none, "
                "for `j` = `tid`, `tid + BLOCK_SIZE`, ... The thread's own window is the 2 × "
                "`RADIUS` + 1 words from `tid` on. It is read between the two barriers."
            ),
        ),
        entry="window_sum",
        cases=({"n": 300}, {"n": 131, "TURNS": 3}, {"n": 61}),
        launch=covering(("BLOCK_SIZE",), ("n", "BLOCK_SIZE", "TURNS")),
        arguments=_numbers,
        results={"Y": _windows},
        goals=(_FROM_TILES, BARRIERS, TOGETHER),
        counted={"n": 300},
        timed={"n": 1 << 22},
        misconceptions=(
            Misconception(
                "A window ends one number too early: it has RADIUS neighbours before the number "
                "and RADIUS after it, and the number itself.",
                (("k <= 2 * RADIUS", "k < 2 * RADIUS"),),
            ),
            Misconception(
                "A window begins at its own number and has the neighbours on one side only: word 0 "
                "of s_X is to be the number RADIUS before the stretch.",
                results={"Y": _one_sided},
            ),
            Misconception(
                "A window ends where its stretch ends: the neighbours that belong to other "
                "threads' stretches are missing.",
                (("at >= 0 && at < n ?", "j >= RADIUS && j < BLOCK_SIZE + RADIUS && at < n ?"),),
            ),
            Misconception(
                "Past the ends of X the last number is repeated. Neighbours that are not there "
                "count as 0.",
                results={"Y": _repeated_ends},
            ),
            Misconception(
                "A mean is stored and not a sum: nothing is divided here.",
                results={"Y": lambda X: _windows(X) / 11},
            ),
            Misconception(
                "The number itself is missing from its window: it holds the neighbours alone.",
                results={"Y": lambda X: _windows(X) - X},
            ),
            Misconception(
                "Only the neighbours on one side are added, those before the number.",
                results={"Y": lambda X: np.convolve(X, np.ones(6))[:-5]},
            ),
            Misconception(
                "The neighbours after the stretch are the wrong ones: the first of them follows "
                "its last number at once.",
                (
                    (
                        "at = start - RADIUS + j;",
                        "at = start - RADIUS + j + (j >= BLOCK_SIZE + RADIUS ? RADIUS : 0);",
                    ),
                ),
            ),
            Misconception(
                "The neighbours before the stretch stand in the wrong places: word 0 of s_X is "
                "the one that is furthest from it.",
                (
                    (
                        "at = start - RADIUS + j;",
                        "at = j < RADIUS ? start - j : start - RADIUS + j;",
                    ),
                ),
            ),
            Misconception(
                "The neighbours behind the stretch are stored over its last numbers: they belong "
                "RADIUS words further.",
                (("s_X[j] =", "s_X[j < BLOCK_SIZE + RADIUS ? j : j - RADIUS] ="),),
            ),
            Misconception(
                "Word 0 of s_X is taken for the first number of the stretch: it is the number "
                "RADIUS before that.",
                (("s_X[tid + k]", "s_X[tid + k - RADIUS]"),),
            ),
            Misconception(
                "The last words of s_X stay empty: it has more words than the block has threads.",
                (("j += BLOCK_SIZE) {", "j += 2 * BLOCK_SIZE) {"),),
            ),
            Misconception(
                "Past the ends of X the window goes on at the other end. Neighbours that are not "
                "there count as 0.",
                results={
                    "Y": lambda X: np.convolve(np.pad(X, 5, mode="wrap"), np.ones(11), "valid")
                },
            ),
        ),
        explanation=(
            "It is the same pattern as with tiles: carry together, wait, calculate, wait. What is "
            "new is that the words which a block needs overlap with those of its neighbours, by 2 "
            "× `RADIUS`. So a few threads carry two numbers, and zeros stand past both ends. The "
            "second barrier keeps a quick warp from filling `s_X` for the next stretch while "
            "others still add."
        ),
    ),
)
