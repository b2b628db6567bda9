"""Chapter 02, the naive kernels: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.fp32 import NAIVE_SOFTMAX, rows_first, steps
from ..problem.three_kernels import ThreeKernels
from .shared import TILES, Arguments, covering, empty, queries_and_keys, scores, softmax

RUNGS = (
    ThreeKernels(
        name="naive",
        chapter=2,
        steps=steps("02_naive.cu", rows_first, NAIVE_SOFTMAX),
        draws=("sectors",),
    ),
)


def _weights(case: Case) -> Arguments:
    """Weights of a head with some strong likes, so that rows and columns differ much."""
    N = case["N"]
    drawn = np.random.default_rng(N).normal(0, 2, (N, N)) + np.linspace(-1, 2, N)
    return {"P": softmax(drawn).astype(np.float32), "R": empty(N), "N": N}


def _masked(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Scores, and −∞ where a key comes after its query."""
    S = scores(Q, K)
    return np.where(np.tri(len(S), dtype=bool), S, -np.inf)


_SUM = "sum += P[(size_t)i * N + j];"
_MASK = "if (col > row) {"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="02_received",
        title="who is looked at?",
        task=(
            "How much do the other tokens look at token j? Sum column j of P, and leave out what "
            "the token gives to itself."
        ),
        hints=(
            "Row i of P says where token i looks. So what token j gets from token i stands in row "
            "i, column j. Which of the two changes in the loop, and which one stays?",
            "Rows have N elements each, so row i begins at element i * N. Go through all rows, and "
            "take column j of each, except where i is j.",
        ),
        explanation=(
            "The loop walks down a column, N elements further in each turn. That looks bad and is "
            "good: the lanes of a warp have 32 neighbouring columns, so in every turn they read "
            "128 bytes side by side, in 4 or 5 sectors. In softmax each lane has a row, and a "
            "request takes 32 sectors."
        ),
        entry="received",
        cases=({"N": 37}, {"N": 70, "BLOCK_SIZE": 128}, {"N": 65}),
        launch=covering(("BLOCK_SIZE",), ("N", "BLOCK_SIZE")),
        arguments=_weights,
        results={"R": lambda P: P.sum(axis=0) - np.diag(P)},
        goals=(
            Goal(
                "global_load_sectors",
                "Each weight is needed by one thread alone, once. Which elements do the lanes of a "
                "warp read at the same time?",
                slack=1.25,
            ),
        ),
        timed={"N": 4096},
        misconceptions=(
            Misconception(
                "Rows and columns of P are exchanged: this is what token j gives to the others, "
                "not what it gets from them.",
                ((_SUM, "sum += P[(size_t)j * N + i];"),),
            ),
            Misconception(
                "The token's own weight is in the sum: the element on the diagonal of P was not "
                "left out.",
                (("if (i != j) ", ""),),
            ),
            Misconception(
                "Rows and columns of P are exchanged, and the token's own weight is in the sum: "
                "the weights of a row add up to 1.",
                ((f"if (i != j) {_SUM}", "sum += P[(size_t)j * N + i];"),),
            ),
            Misconception(
                "Only the tokens before token j are in the sum. Those after it look at it, too.",
                (("i < N; i++", "i < j; i++"),),
            ),
            Misconception(
                "Only the tokens after token j are in the sum. Those before it look at it, too.",
                (("int i = 0;", "int i = j + 1;"),),
            ),
            Misconception(
                "This is what the token gives to itself, and that is what was to be left out.",
                (("if (i != j)", "if (i == j)"),),
            ),
            Misconception(
                "The diagonal of P was summed: the column has to stay that of token j.",
                ((_SUM, "sum += P[(size_t)i * N + i];"),),
            ),
            Misconception(
                "This is the largest weight that the token gets, and the sum was asked for.",
                ((_SUM, "sum = fmaxf(sum, P[(size_t)i * N + j]);"),),
            ),
            Misconception(
                "The first row was left out: rows are numbered from 0.",
                (("int i = 0;", "int i = 1;"),),
            ),
            Misconception(
                "What was taken off is what token 0 gives, and not what token j gives to itself.",
                results={"R": lambda P: P.sum(axis=0) - P[0]},
            ),
            Misconception(
                "This is the mean of what the tokens give, and the sum was asked for.",
                (("R[j] = sum;", "R[j] = sum / N;"),),
            ),
            Misconception(
                "This is the mean of what the others give, and the sum was asked for.",
                (("R[j] = sum;", "R[j] = sum / (N - 1);"),),
            ),
            Misconception(
                "A row of P has N elements, but the index goes on by the number of threads of a "
                "block.",
                (("(size_t)i * N + j", "(size_t)i * BLOCK_SIZE + j"),),
            ),
        ),
    ),
    Exercise(
        name="02_scores",
        title="do not look ahead",
        task=(
            "A model that writes text must not see the words to come: token i may look at itself "
            "and at those before it. Store −∞ where it must not look, and compute no product there."
        ),
        hints=(
            "Draw S for four tokens and cross out what must not be seen. What do the row and the "
            "column of every crossed element have in common?",
            "The key must not come after the query, and a token may see itself. A thread with such "
            "an element stores −∞ and is done: what stands below must not run for it.",
        ),
        explanation=(
            "The key's token is the column, the query's the row, so the upper right triangle is "
            "masked, without the diagonal. e^−∞ is 0, so softmax gives these elements no weight. "
            "A warp makes no load where all of its elements are masked, which spares half of "
            "them for long texts. Where only some are masked, their lanes wait for the others."
        ),
        entry="scaled_dot_product",
        cases=({"N": 37, "d": 19}, {"N": 16, "d": 33}, {"N": 21, "d": 5, "TILE": 8}),
        launch=covering(TILES, ("N", "TILE"), ("N", "TILE")),
        arguments=queries_and_keys,
        results={"S": _masked},
        goals=(
            Goal(
                "global_load_requests",
                "Masked elements load rows of Q and K whose product nobody needs.",
            ),
        ),
        counted={"N": 37, "d": 19},
        timed={"N": 2048, "d": 64},
        misconceptions=(
            Misconception(
                "The mask is on the wrong side: a token sees what comes after it, and not what "
                "came before.",
                ((_MASK, "if (col < row) {"),),
            ),
            Misconception(
                "The diagonal is masked, too: a token may look at itself.",
                ((_MASK, "if (col >= row) {"),),
            ),
            Misconception(
                "The mask begins one column late: each token sees the one after it.",
                ((_MASK, "if (col > row + 1) {"),),
            ),
            Misconception(
                "The mask is on the wrong side, and it has taken the diagonal, too.",
                ((_MASK, "if (col <= row) {"),),
            ),
            Misconception(
                "A masked element is 0, which is a score like any other: softmax gives it a weight "
                "of e^0 = 1 before it divides. A score of −∞ has none.",
                (("= MINUS_INFINITY;", "= 0.0f;"),),
            ),
            Misconception(
                "A masked element is +∞: softmax would look at nothing else.",
                (("= MINUS_INFINITY;", "= -MINUS_INFINITY;"),),
            ),
            Misconception(
                "A masked element is NaN, which makes NaN of every sum that it comes into: softmax "
                "would lose the whole row.",
                (("= MINUS_INFINITY;", "= __int_as_float(0x7fffffff);"),),
            ),
            Misconception(
                "A masked element is a large negative number. Softmax would give it no weight "
                "either, but the task asks for −∞, which is below every score.",
                (("= MINUS_INFINITY;", "= -1e9f;"),),
            ),
            Misconception(
                "All but the diagonal is masked: a token may also look at those before it.",
                ((_MASK, "if (col != row) {"),),
            ),
            Misconception(
                "Only the diagonal is masked, the one place where a token may always look.",
                ((_MASK, "if (col == row) {"),),
            ),
            Misconception(
                "The mask follows the other diagonal, from the lower left to the upper right.",
                ((_MASK, "if (col >= N - row) {"),),
            ),
            Misconception(
                "Places in the block are compared, and not the row and the column of the element.",
                ((_MASK, "if (threadIdx.y > threadIdx.x) {"),),
            ),
            Misconception(
                "Whole tiles are masked: blocks are compared, and not the row and the column of "
                "each element.",
                ((_MASK, "if (blockIdx.y > blockIdx.x) {"),),
            ),
            Misconception(
                "No element is masked in the end: the scores are stored after the −∞, or the mask "
                "never holds.",
                (("        return;", "        ;"),),
            ),
        ),
    ),
)
