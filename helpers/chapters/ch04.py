"""Chapter 04, the reduction: its rung and exercises."""

import dataclasses

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.fp32 import REDUCTION, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import BARRIERS, TOGETHER, Arguments, covering, scores_to_normalise, softmax

RUNGS = (
    ThreeKernels(
        name="reduction",
        chapter=4,
        steps=steps("03_tiled.cu", rows_first, REDUCTION),
        draws=("tree", "reads"),
    ),
)


def _rows_far_from_zero(case: Case) -> Arguments:
    N, d = case["N"], case["d"]
    rng = np.random.default_rng(N)
    spread, level = rng.uniform(1, 3, (N, 1)), rng.uniform(100, 300, (N, 1))
    X = (rng.standard_normal((N, d)) * spread + level).astype(np.float32)
    return {"X": X, "mean": np.zeros(N, np.float32), "variance": np.zeros(N, np.float32),
            "N": N, "d": d}  # fmt: skip


def _mean(X: np.ndarray) -> np.ndarray:
    return X.mean(axis=1)


def _variance(X: np.ndarray) -> np.ndarray:
    return X.var(axis=1)


def _from_first(X: np.ndarray) -> np.ndarray:
    """The numbers of a row less its first."""
    return X - X[:, :1]


def _scores_with_equals(case: Case) -> Arguments:
    """Quarters below 0, so that the largest stands in many places, and few are whole numbers."""
    N = case["N"]
    S = (np.random.default_rng(N).integers(-9, -1, (N, N)) / 4).astype(np.float32)
    S[::3] -= 20
    return {"S": S, "best": np.zeros(N, np.int32), "N": N}


def _in_the_lowest_lane(S: np.ndarray) -> np.ndarray:
    """Where the lowest lane has a largest score; a lane takes every 32nd place."""
    return np.array([min(np.flatnonzero(row == row.max()), key=lambda j: j % 32) for row in S])


# One more for a block that has no row left is no matter, one more in each turn is.
_BARRIERS = dataclasses.replace(BARRIERS, slack=1.02)

_SHARED_WORK = Goal(
    "global_load_bytes",
    "The threads of a block share a row: none of them has to read all of it.",
    slack=1.25,
    name="bytes loaded from global memory",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="04_rows_in_turn",
        title="several rows a block",
        task=(
            "A block takes `ROWS` neighbouring rows here, one after the other. Say which row it is "
            "in each turn. Then look for what the chapter's softmax can do without and this one "
            "cannot: one more `__syncthreads();`, on a line of its own."
        ),
        hints=(
            (
                "The blocks before this one have taken `ROWS` rows each. And in the last block, "
                "who has to know that there is no row left: one thread, or all of them?"
            ),
            (
                "No barrier follows the chapter's second tree. What do all threads read after it, "
                "and who is the next to write there, now that another row comes?"
            ),
        ),
        entry="softmax",
        cases=({"N": 9}, {"N": 70, "BLOCK_SIZE": 64, "ROWS": 3}),
        launch=covering(("BLOCK_SIZE",), ("N", "ROWS")),
        arguments=scores_to_normalise,
        results={"P": softmax},
        goals=(_BARRIERS, _SHARED_WORK, TOGETHER),
        timed={"N": 2048},
        misconceptions=(
            Misconception(
                "The blocks overlap: each begins one row after the block before it, though that "
                "one takes several rows.",
                (("blockIdx.x * ROWS + r", "blockIdx.x + r"),),
            ),
            Misconception(
                "All blocks take the same rows, the first ones: which block it is does not come "
                "into the row's number.",
                (("blockIdx.x * ROWS + r", "r"),),
            ),
            Misconception(
                "A block takes one row in all of its turns: the turn does not come into the row's "
                "number.",
                (("blockIdx.x * ROWS + r", "blockIdx.x"),),
            ),
            Misconception(
                "A block does not go on to the next row from turn to turn: only every ROWS-th row "
                "is ever written.",
                (("blockIdx.x * ROWS + r", "blockIdx.x * ROWS"),),
            ),
            Misconception(
                "The rows are one too far: the first turn has number 0.",
                (("blockIdx.x * ROWS + r", "blockIdx.x * ROWS + r + 1"),),
            ),
            Misconception(
                "That a block takes 2 rows is built in: ROWS says how many, and has other values "
                "too.",
                (("blockIdx.x * ROWS + r", "blockIdx.x * 2 + r"),),
            ),
            Misconception(
                "The rows of a block are counted by its threads: a block takes ROWS rows, however "
                "many threads it has.",
                (("blockIdx.x * ROWS + r", "blockIdx.x * BLOCK_SIZE + r"),),
            ),
            Misconception(
                "The last row is left out: the rows end with number N - 1, and that one counts.",
                (("row >= N", "row >= N - 1"),),
            ),
            Misconception(
                "Block and turn have changed places: the turn is multiplied by ROWS, and the "
                "block's number is added.",
                (("blockIdx.x * ROWS + r", "r * ROWS + blockIdx.x"),),
            ),
        ),
        explanation=(
            "`break` is taken by all threads of the block or by none, so no barrier waits for a "
            "thread that has left. In the chapter's kernel nothing is written to `s_data` after "
            "the second tree. Here the next row is: a quick warp puts its maximum of the next row "
            "into `s_data[0]` while a slow one has yet to read the sum of this row. The barrier "
            "can stand anywhere between these two lines."
        ),
    ),
    Exercise(
        name="04_moments",
        title="mean and variance in one pass",
        task=(
            "A layer norm needs the mean of each row, and its variance: the mean square of what "
            "is left when the mean is taken off. Both follow from two sums that one pass can "
            "collect, of `x - a` and of its square, for any number `a`. The kernel takes the "
            "row's first number for it, `shift`. Collect the two sums, and reduce both in one "
            "tree. The block's threads are no power of two here: some level of the tree has an odd "
            "number of words to join."
        ),
        hints=(
            (
                "Each thread has two registers in place of one, and two words of shared memory. "
                "What it adds up is `x[j] - shift` and the square of that."
            ),
            (
                "One loop over the levels serves both arrays. Of n words the last n / 2 are added "
                "to the first ones. If n is odd, the word in the middle waits for the next level, "
                "which then has (n + 1) / 2 words."
            ),
        ),
        entry="moments",
        cases=({"N": 5, "d": 150}, {"N": 3, "d": 300, "BLOCK_SIZE": 160}, {"N": 4, "d": 50}),
        launch=covering(("BLOCK_SIZE",), ("N", 1)),
        arguments=_rows_far_from_zero,
        results={"mean": _mean, "variance": _variance},
        tolerance=5e-6,
        # A tree of powers of two has a level more, and is right as well.
        goals=(_SHARED_WORK, dataclasses.replace(BARRIERS, slack=1.15), TOGETHER),
        counted={"N": 5, "d": 150},
        timed={"N": 2048, "d": 1024},
        misconceptions=(
            Misconception(
                "The square of a thread's sum is taken. Wanted is the sum of the squares.",
                (
                    ("local_squares += (x[j] - shift) * (x[j] - shift);", ""),
                    ("s_squares[tid] = local_squares;", "s_squares[tid] = local_sum * local_sum;"),
                ),
            ),
            Misconception(
                "The numbers themselves are squared: the shift is not taken off before.",
                results={
                    "variance": lambda X: (X**2).mean(axis=1) - _from_first(X).mean(axis=1) ** 2
                },
            ),
            Misconception(
                "The numbers themselves are added: the shift is not taken off, and then comes on "
                "top of their mean.",
                (("local_sum += x[j] - shift", "local_sum += x[j]"),),
            ),
            Misconception(
                "The shift is taken off nowhere: both sums are of x, and the last lines of the "
                "kernel expect x - shift.",
                (
                    ("local_sum += x[j] - shift", "local_sum += x[j]"),
                    ("(x[j] - shift) * (x[j] - shift)", "x[j] * x[j]"),
                ),
            ),
            Misconception(
                "The square of a difference is taken for the difference of two squares.",
                (("(x[j] - shift) * (x[j] - shift)", "x[j] * x[j] - shift * shift"),),
            ),
            Misconception(
                "Each number replaces those before it: a thread keeps its last one, not the sum.",
                (
                    ("local_sum +=", "local_sum ="),
                    ("local_squares +=", "local_squares ="),
                ),
            ),
            Misconception(
                "The sums are divided by d twice: the last lines of the kernel do that already.",
                (
                    ("local_sum += x[j] - shift", "local_sum += (x[j] - shift) / d"),
                    ("(x[j] - shift) * (x[j] - shift)", "(x[j] - shift) * (x[j] - shift) / d"),
                ),
            ),
            Misconception(
                "A level that has an odd number of words loses one: a half is rounded down, and "
                "the word that is left over is joined to none.",
                (
                    ("n = (n + 1) / 2", "n = n / 2"),
                    ("s_sum[tid + (n + 1) / 2]", "s_sum[tid + n / 2]"),
                    ("s_squares[tid + (n + 1) / 2]", "s_squares[tid + n / 2]"),
                ),
            ),
            Misconception(
                "A level that has an odd number of words loses the last one and counts the one in "
                "the middle twice: partners are too near, by a half that is rounded down.",
                (
                    ("s_sum[tid + (n + 1) / 2]", "s_sum[tid + n / 2]"),
                    ("s_squares[tid + (n + 1) / 2]", "s_squares[tid + n / 2]"),
                ),
            ),
            Misconception(
                "A level that has an odd number of words counts one twice: a half is rounded up, "
                "and the word in the middle is added to itself.",
                (
                    ("if (tid < n / 2) s_sum", "if (tid < (n + 1) / 2) s_sum"),
                    ("if (tid < n / 2) s_squares", "if (tid < (n + 1) / 2) s_squares"),
                    ("s_sum[tid + (n + 1) / 2]", "s_sum[tid + n / 2]"),
                    ("s_squares[tid + (n + 1) / 2]", "s_squares[tid + n / 2]"),
                ),
            ),
            Misconception(
                "A level that has an odd number of words takes one too many: the thread of the "
                "word in the middle adds as well, and its partner is past the words that are left.",
                (
                    ("if (tid < n / 2) s_sum", "if (tid < (n + 1) / 2) s_sum"),
                    ("if (tid < n / 2) s_squares", "if (tid < (n + 1) / 2) s_squares"),
                ),
            ),
            Misconception(
                "The levels are those of the next power of two: threads join words that no thread "
                "has, past the end of the array.",
                (("int n = BLOCK_SIZE;", "int n = 256;"),),
            ),
            Misconception(
                "The tree is missing: the results come from the share of thread 0 alone.",
                (("int n = BLOCK_SIZE;", "int n = 1;"),),
            ),
            Misconception(
                "The tree keeps the larger of two partial sums: sums are to be added.",
                (
                    (
                        "s_sum[tid] += s_sum[tid + (n + 1) / 2]",
                        "s_sum[tid] = fmaxf(s_sum[tid], s_sum[tid + (n + 1) / 2])",
                    ),
                    (
                        "s_squares[tid] += s_squares[tid + (n + 1) / 2]",
                        "s_squares[tid] = fmaxf(s_squares[tid], s_squares[tid + (n + 1) / 2])",
                    ),
                ),
            ),
            Misconception(
                "The tree adds partial sums to the squares: each array is joined with itself.",
                (
                    (
                        "s_squares[tid] += s_squares[tid + (n + 1) / 2]",
                        "s_squares[tid] += s_sum[tid + (n + 1) / 2]",
                    ),
                ),
            ),
            Misconception(
                "The last level of the tree is missing: two partial results are left, and one of "
                "them is used.",
                (("n > 1;", "n > 2;"),),
            ),
            Misconception(
                "The first level of the tree is missing: half of the partial results go into no "
                "sum.",
                (("int n = BLOCK_SIZE;", "int n = BLOCK_SIZE / 2;"),),
            ),
            Misconception(
                "The division of the row among the threads rounds down, so the numbers that are "
                "left over at its end are nobody's.",
                (("int j = tid; j < d;", "int j = tid; j < d / BLOCK_SIZE * BLOCK_SIZE;"),),
            ),
            Misconception(
                "Each thread takes one number: those past the first BLOCK_SIZE of a row are left "
                "out.",
                (("j += BLOCK_SIZE", "j += d"),),
            ),
            Misconception(
                "Each thread walks through the row from its own number to the end: the later a "
                "number stands, the more threads add it.",
                (("j += BLOCK_SIZE", "j++"),),
            ),
            Misconception(
                "Each thread walks through the whole row, so that every number counts as often as "
                "the block has threads.",
                (("int j = tid; j < d; j += BLOCK_SIZE", "int j = 0; j < d; j++"),),
            ),
            Misconception(
                "The tree joins the sums only: of the squares there is the share of one thread.",
                (("if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2];", ""),),
            ),
            Misconception(
                "The differences are added without their sign: a number below the shift has to "
                "count against the sum.",
                (("local_sum += x[j] - shift", "local_sum += fabsf(x[j] - shift)"),),
            ),
        ),
        explanation=(
            "Let $y = x - a$. The mean of $x$ is $a$ plus the mean of $y$. The variance is the "
            "mean of $y^2$ less the square of the mean of $y$, whatever $a$ is. With $a = 0$ that "
            "would be the difference of two large numbers, of which fp32 keeps seven digits. With "
            "an $a$ near the mean it is exact enough. One pass is enough because both sums are "
            "collected at once, and one tree has as many barriers for two sums as for one. A level "
            "of 3 words joins one pair and leaves the word in the middle, so the next has 2."
        ),
    ),
    Exercise(
        name="04_best_key",
        title="where the largest score stands",
        task=(
            "Which key does each query look at most? One warp takes a row, and each lane knows the "
            "largest score of its share, `m`, and where that stands, `at`. Join the 32 pairs in "
            "registers, so that lane 0 has the place in the end. Of equal scores the first in the "
            "row counts."
        ),
        hints=(
            (
                "Two shuffles in each level: a lane gets the score of another lane, and its place. "
                "Fetch both before you decide."
            ),
            (
                "Take strides of 16, 8, 4, 2 and 1. A lane takes over the other lane's pair if its "
                "score is larger. It also does if the score is equal and stands further ahead in "
                "the row."
            ),
        ),
        entry="best_key",
        cases=({"N": 37}, {"N": 70, "ROWS": 2}, {"N": 9}),
        launch=covering((32, "ROWS"), ("N", "ROWS")),
        arguments=_scores_with_equals,
        results={"best": lambda S: S.argmax(axis=1)},
        goals=(
            Goal(
                "shared_bytes",
                "The lanes of a warp can read each other's registers: no shared memory is needed.",
                at_most=0,
                name="bytes of shared memory a block",
            ),
            BARRIERS,
            _SHARED_WORK,
            dataclasses.replace(
                TOGETHER,
                said="Each level halves the number of pairs that are left, so that 32 of them need "
                "five levels.",
            ),
        ),
        counted={"N": 37},
        timed={"N": 2048},
        signs=(
            (
                r"\bat\s*=\s*(?:lane|threadIdx\.x)\s*[\^+]\s*\w+\s*;",
                "The number of a lane is taken for a place: what another lane has in its `at` is "
                "asked of that lane.",
            ),
            (
                r"\b(\w+)\s*=\s*(?:lane|threadIdx\.x)\s*[\^+]\s*\w+\s*;(?=[\s\S]*\bat\s*=\s*\1\s*;)",
                "The number of a lane is taken for a place: what another lane has in its `at` is "
                "asked of that lane.",
            ),
        ),
        misconceptions=(
            Misconception(
                "Lane 0 stores its own place, whatever other lanes have found. Either the place "
                "does not follow the score that a lane takes over, or the pairs never come down "
                "to lane 0.",
                (("            at = place;\n", ""),),
            ),
            Misconception(
                "A lane takes over the place of another lane and keeps its own score: m and at no "
                "longer belong together.",
                (("            m = other;\n", ""),),
            ),
            Misconception(
                "Of equal scores the lower lane's stays, and that one need not be the first in the "
                "row: lane 1 may have place 33, and lane 2 place 2.",
                ((" || (other == m && place < at)", ""),),
            ),
            Misconception(
                "Of equal scores the higher lane's is taken, and that one need not be the first in "
                "the row.",
                (("other > m || (other == m && place < at)", "other >= m"),),
            ),
            Misconception(
                "Of equal scores the last in the row is taken; the first one counts.",
                (("place < at", "place > at"),),
            ),
            Misconception(
                "Of equal scores the one in the lowest lane is taken, and that one need not be "
                "the first in the row.",
                results={"best": _in_the_lowest_lane},
            ),
            Misconception(
                "The number of a lane is taken for a place: what stands in the row at that place "
                "is another score.",
                ((" || (other == m && place < at)", ""), ("at = place;", "at = lane + stride;")),
            ),
            Misconception(
                "Scores and places are joined apart: the largest place does not belong to the "
                "largest score.",
                (
                    (
                        "            at = place;\n        }",
                        "        }\n        at = max(at, place);",
                    ),
                ),
            ),
            Misconception(
                "Scores and places are joined apart: the smallest place does not belong to the "
                "largest score.",
                (
                    (
                        "            at = place;\n        }",
                        "        }\n        at = min(at, place);",
                    ),
                ),
            ),
            Misconception(
                "A lane takes over every pair that it reads, whether the score is larger or not.",
                (("if (other > m || (other == m && place < at)) {", "{"),),
            ),
            Misconception(
                "The last level of the tree is missing: lanes 0 and 1 have a result each, and the "
                "one of lane 0 is stored.",
                (("stride >= 1;", "stride > 1;"),),
            ),
            Misconception(
                "A level of the tree is missing: the results of the lanes from 16 on never "
                "reach lane 0.",
                (("stride = 16", "stride = 8"),),
            ),
            Misconception(
                "A smaller place is taken over with a smaller score, too: the place decides only "
                "between equal scores.",
                (("(other == m && place < at)", "place < at"),),
            ),
            Misconception(
                "All levels look as far as the last one: how far a lane looks has to halve.",
                (("m, stride)", "m, 1)"), ("at, stride)", "at, 1)")),
            ),
            Misconception(
                "The shuffle stands under a condition: lanes that others read from do not take "
                "part.",
                (("stride /= 2) {\n", "stride /= 2) {\n        if (lane >= stride) continue;\n"),),
            ),
            Misconception(
                "The smallest score is looked for, not the largest.",
                (("other > m", "other < m"),),
            ),
        ),
        explanation=(
            "A pair travels as two shuffles, and both come before the decision, since a lane that "
            "has changed its `m` hands on the new one. `fmaxf` is not enough, as the place has to "
            "follow the score. The order of the lanes is not the order of the row: with 37 scores "
            "lane 1 has places 1 and 33. So equal scores are decided by their places."
        ),
    ),
)
