"""Chapter 08, FlashAttention: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal, Misconception
from ..problem.attention import cdiv
from ..problem.flash import FLASH_BASELINE
from .quarters import by_quarters
from .shared import Arguments, covering, empty, normal, scores, softmax

RUNGS = (FLASH_BASELINE,)


def _attention(case: Case) -> Arguments:
    n, d, window = case["n"], case["HEAD_DIM"], case["window"]
    Q, K, V = (normal(n, d, seed=seed) for seed in range(3))
    # Twice as far apart as usual: the largest score often comes late, and matters. And scores of
    # each row around a level of its own, -100 ... 100, so that no constant can be subtracted.
    Q *= 2
    K[:, 0] = 4
    Q[:, 0] = np.linspace(-100, 100, n).round() * np.sqrt(d).round() / 4
    return {"Q": Q, "K": K, "V": V, "O": empty(n, d), "n": n, "window": window}


def _in_windows(Q: np.ndarray, K: np.ndarray, V: np.ndarray, window: int) -> np.ndarray:
    """O if row i sees the keys i - window + 1 ... i."""
    key, row = np.arange(len(K)), np.arange(len(Q))[:, None]
    hidden = (key <= row - window) | (key > row)
    return softmax(np.where(hidden, -np.inf, scores(Q, K))) @ V


def _parts(case: Case) -> Arguments:
    """What blocks leave that have some of 40 keys each, as many as come; the last one has none."""
    n, d, parts = case["n"], case["HEAD_DIM"], case["parts"]
    S = 3.0 * normal(n, 40, seed=1) + np.linspace(-100, 100, n, dtype=np.float32)[:, None]
    V = normal(40, d, seed=2)
    S[:, 25:] += 4.0  # the later a key, the larger its score: maxima grow from part to part
    M, L, A = np.full((parts, n), -np.inf), np.zeros((parts, n)), np.zeros((parts, n, d))
    for part, keys in enumerate(np.split(np.arange(40), range(7, 7 * parts - 7, 7))):
        M[part] = S[:, keys].max(axis=1, initial=-np.inf)
        weights = np.exp(S[:, keys] - M[part][:, None])
        L[part], A[part] = weights.sum(axis=1), weights @ V[keys]
    M, L, A = (x.astype(np.float32) for x in (M, L, A))
    return {"M": M, "L": L, "A": A, "O": empty(n, d), "n": n, "parts": parts}


def _merged(A: np.ndarray, L: np.ndarray, factor: np.ndarray, of_sum: np.ndarray) -> np.ndarray:
    """O of the parts, each with a factor for its row and one for its sum, [parts, n] both."""
    return (factor[..., None] * A).sum(axis=0) / (of_sum * L).sum(axis=0)[:, None]


def _relative(M: np.ndarray) -> np.ndarray:
    """exp(maximum of a part - maximum of all)."""
    return np.exp(M - M.max(axis=0))


def _shares(L: np.ndarray) -> np.ndarray:
    """1 / L, and 0 where a part has no key."""
    return np.divide(1, L, out=np.zeros_like(L), where=L > 0)


def _gradient(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    P, G = normal(m, n, dtype=np.float16), normal(m, 64, seed=1, dtype=np.float16)
    return {"P": P, "G": G, "D": empty(n, 64), "m": m, "n": n}


def _gradient_if(sentence: str, **how) -> Misconception:
    """What the fragments give that are loaded or used in another way."""
    return Misconception(sentence, results={"D": lambda P, G: by_quarters(P, G, **how)})


_MASK = "if (key + j > row || key + j <= row - window) score = minus_infinity();"
_GUARD = "        new_max = fmaxf(new_max, -1e30f);\n"

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="08_window",
        title="a row that sees a window of keys",
        task=(
            "In long texts a token often sees only the last `window` tokens, itself the last of "
            "them. Walk along the keys that a block needs, hide from each row what it does not "
            "see, and keep its softmax up to date."
        ),
        hints=(
            "The first row of a block sees the first key of all, its last row the last key. For a "
            "score that is hidden the chapter has a value whose weight is 0. And a thread can meet "
            "tiles in which it sees nothing: write down the two maxima then, and their difference.",
            "Rows first ... first + 63 see keys from first - window + 1 on, and key + j is the "
            "number of a key. Minus infinity from minus infinity is NaN. So keep the maximum above "
            "some very small number that is finite, before anything is subtracted from it.",
        ),
        explanation=(
            "While a row has met none of its keys, both maxima would be minus infinity, and "
            "exp(-inf - -inf) is NaN, which no later correction removes. With -1e30 in its place "
            "all weights of such a tile are exp(-inf + 1e30) = 0, and the sums stay 0. The first "
            "real score is larger, and the correction, exp(-1e30 - score) = 0, multiplies zeros."
        ),
        entry="flash_attention",
        cases=(
            {"n": 21, "window": 5, "HEAD_DIM": 16},
            {"n": 83, "window": 13, "HEAD_DIM": 16, "B_C": 16},
        ),
        launch=covering((64,), ("n", 64)),
        arguments=_attention,
        results={"O": _in_windows},
        tolerance=3e-5,
        goals=(
            Goal(
                "barriers",
                "Each tile takes two. Most tiles are outside the windows of a block: the walk has "
                "to begin and to end with the keys that some row of the block sees.",
                slack=1.25,
                name="barriers, summed over all warps",
            ),
        ),
        timed={"n": 4096, "window": 128, "HEAD_DIM": 64},
        unlike={"HEAD_DIM": 16, "B_C": 16},
        misconceptions=(
            Misconception(
                "A row sees keys after itself: what comes later than the row is not hidden.",
                ((_MASK, _MASK.replace("key + j > row || ", "")),),
            ),
            Misconception(
                "A row sees all the keys before itself: what is too long ago is not hidden.",
                ((_MASK, _MASK.replace(" || key + j <= row - window", "")),),
            ),
            Misconception(
                "The window is one key too long: the row itself is the last of its keys.",
                ((_MASK, _MASK.replace("<=", "<")),),
            ),
            Misconception(
                "The window is one key too short at its old end: the row itself is one of its "
                "keys, and as many as are missing to a whole window come before it.",
                ((_MASK, _MASK.replace("row - window", "row - window + 1")),),
            ),
            Misconception(
                "The row does not see the key of its own number: the window ends one key early.",
                ((_MASK, _MASK.replace("j > row", "j >= row")),),
            ),
            Misconception(
                "The window is hidden and the rest is seen: the condition is the wrong way round.",
                ((_MASK, _MASK.replace("if (", "if (!(").replace(") score", ")) score")),),
            ),
            Misconception(
                "A hidden score is set to 0, and 0 is a score like others: its weight is not 0.",
                ((_MASK, _MASK.replace("minus_infinity()", "0.0f")),),
            ),
            Misconception(
                "The number of a key within its tile is compared with the number of a row: a tile "
                "begins at `key`.",
                ((_MASK, _MASK.replace("key + j", "j")),),
            ),
            Misconception(
                "The number of a row within its block is compared with the number of a key: a "
                "block begins at `first`.",
                ((_MASK, _MASK.replace("row", "tid")),),
            ),
            Misconception(
                "The walk begins at the first row of the block, but the windows of its first rows "
                "begin before that.",
                (("begin = max(0, first - window + 1);", "begin = first;"),),
            ),
            Misconception(
                "The sum of the weights is not corrected when the maximum grows.",
                (("        row_sum *= correction;\n", ""),),
            ),
            Misconception(
                "O is not corrected when the maximum grows: only the sum is.",
                (("r_O[c] *= correction;", ";"),),
            ),
            Misconception(
                "The correction is upside down: old sums were made with the smaller maximum and "
                "have to shrink, not grow.",
                (("expf(row_max - new_max)", "expf(new_max - row_max)"),),
            ),
            Misconception(
                "The correction is always 1: the old maximum was replaced before it was computed.",
                (("expf(row_max - new_max)", "1.0f"),),
            ),
            Misconception(
                "Minus infinity was subtracted from minus infinity, which is NaN: as long as a row "
                "has met none of its keys, both maxima are that.",
                ((_GUARD, ""),),
            ),
        ),
    ),
    Exercise(
        name="08_parts",
        title="a softmax in parts",
        task=(
            "The keys of a row were shared out to several blocks. Each of them has left what the "
            "online softmax remembers: $m$, $l$ and a row of $O$ that is not divided yet. Take "
            "the parts together."
        ),
        hints=(
            "Two parts are like two tiles, with one difference: the second one comes as sums, made "
            "with a maximum of its own. So this time not only the old sums may have to shrink.",
            "The larger of the two maxima is the common one. Each side is multiplied by e to the "
            "power of its own maximum minus the common one, the sum and the row alike.",
        ),
        explanation=(
            "A sum made with maximum m is brought to maximum m' by the factor exp(m - m'). One of "
            "the two sides has the larger maximum and keeps its sums, as exp(0) = 1. A part "
            "without a key has the factor exp(-inf) = 0. The order of the parts does not matter, "
            "which is why they can be computed side by side: this is how few rows of Q, as in "
            "writing a text token by token, keep a whole GPU busy."
        ),
        entry="merge",
        cases=({"n": 5, "parts": 3, "HEAD_DIM": 32}, {"n": 9, "parts": 5, "HEAD_DIM": 64}),
        launch=lambda case, kernel: ((case["n"],), (kernel.parameters["HEAD_DIM"].value,), 0),
        arguments=_parts,
        results={"O": lambda M, L, A: _merged(A, L, _relative(M), _relative(M))},
        goals=(
            Goal(
                "global_load_sectors",
                "Each part has to be read only once: keep a maximum so far, as the chapter does.",
                slack=1.05,
            ),
        ),
        timed={"n": 1 << 16, "parts": 6, "HEAD_DIM": 64},
        misconceptions=(
            Misconception(
                "The parts were added as they are, but each was made with a maximum of its own.",
                results={"O": lambda M, L, A: _merged(A, L, np.ones_like(M), np.ones_like(M))},
            ),
            Misconception(
                "The row was brought to the common maximum, but not the sum that divides it.",
                results={"O": lambda M, L, A: _merged(A, L, _relative(M), np.ones_like(M))},
            ),
            Misconception(
                "The sum was brought to the common maximum, but not the row that it divides.",
                results={"O": lambda M, L, A: _merged(A, L, np.ones_like(M), _relative(M))},
            ),
            Misconception(
                "A mean of the parts' results was taken: parts with small scores count as much as "
                "those with large ones.",
                results={"O": lambda L, A: _merged(A, np.ones_like(L), _shares(L), np.sign(L))},
            ),
            Misconception(
                "The parts' results were weighted by their maxima alone: how many keys have come "
                "near the maximum, the part's sum, counts as well.",
                results={
                    "O": lambda M, L, A: _merged(
                        A, np.ones_like(L), _relative(M) * _shares(L), _relative(M)
                    )
                },
            ),
            Misconception(
                "What was added up so far was not brought to the new maximum: only the new part "
                "was.",
                (("before = expf(row_max - new_max)", "before = 1.0f"),),
            ),
            Misconception(
                "The new part was not brought to the common maximum: only what was there before.",
                (("now = expf(m - new_max)", "now = 1.0f"),),
            ),
            Misconception(
                "The maximum of the parts so far is never kept: the next part is compared with "
                "minus infinity.",
                (("        row_max = new_max;\n", ""),),
            ),
            Misconception(
                "Factors are upside down: what was made with the smaller maximum has to shrink.",
                (
                    ("expf(row_max - new_max)", "expf(new_max - row_max)"),
                    ("expf(m - new_max)", "expf(new_max - m)"),
                ),
            ),
            Misconception(
                "The maximum of this part is taken for the common one, even where an earlier part "
                "has a larger one: then exponents are above 0, and overflow.",
                (("fmaxf(row_max, m)", "m"),),
            ),
        ),
    ),
    Exercise(
        name="08_transposed",
        title="a factor that lies on its side",
        task=(
            "Training needs the gradient of $V$, $D = P^{\\mathsf T} G$. $P$ lies in memory row by "
            "row, and `mma` wants fragments of its transpose, this time as $A$. Load them, put "
            "them in order, multiply, and bring each sum to its place."
        ),
        hints=(
            "Draw the tile of $P$ as four squares of 8 × 8 and number them in the order in which "
            "`ldmatrix` loads them. `.trans` transposes each square, but moves none. Where in "
            "$P^{\\mathsf T}$ does each of the four belong?",
            "Square 1 holds queries 8 to 15 of keys 0 to 7. In $P^{\\mathsf T}$ these are rows 0 "
            "to 7, columns 8 to 15; the figure of fragments shows which register of $A$ that is. "
            "$G$ is used as $V$ was. For the sums, that figure shows the rows and columns of $C$.",
        ),
        explanation=(
            "The transpose of a matrix of four squares transposes each of them and exchanges the "
            "two off the diagonal. `.trans` does the first, the order of the registers the second. "
            "(The lanes may pass their rows in another order instead.) For $G$ the queries are "
            "rows of $B$, as the keys were with $V$: transposed, registers 0 and 1 for the first 8 "
            "columns. FlashAttention's backward pass makes its gradients like this."
        ),
        entry="value_gradient",
        cases=({"m": 16, "n": 16}, {"m": 37, "n": 21}),
        launch=lambda case, kernel: ((4, cdiv(case["n"], 16)), (32,), 0),
        arguments=_gradient,
        results={"D": lambda P, G: P.T @ G},
        goals=(
            Goal(
                "instructions",
                "One mma_m16n8k16 of a warp does 4,096 operations: leave all products to it.",
                slack=1.5,
            ),
        ),
        misconceptions=(
            _gradient_if(
                "The four quarters of P^T are in the wrong order: each was transposed, but a "
                "transpose exchanges the two off the diagonal as well.",
                order=(0, 1, 2, 3),
            ),
            _gradient_if(
                "P was not transposed: the fragments hold rows of P, which are queries, where the "
                "rows of P^T are keys.",
                order=(0, 1, 2, 3),
                turned="G",
            ),
            _gradient_if(
                "The quarters of P were put in another order, but none of them was transposed.",
                turned="G",
            ),
            _gradient_if(
                "G was not transposed: a register of B holds neighbours of a column, and "
                "neighbours of a row were loaded.",
                turned="P",
            ),
            _gradient_if(
                "G was not transposed, and the quarters of P^T are in the wrong order.",
                order=(0, 1, 2, 3),
                turned="P",
            ),
            _gradient_if(
                "Neither P nor G was transposed on its way to the registers.",
                order=(0, 1, 2, 3),
                turned="",
            ),
            _gradient_if(
                "Registers of G are paired as those of K were: here the first two hold the upper "
                "and the lower half of the same 8 columns.",
                pairs=(0, 2, 1, 3),
            ),
            _gradient_if(
                "Registers of G are paired as those of K were, and the quarters of P^T are in the "
                "wrong order.",
                order=(0, 1, 2, 3),
                pairs=(0, 2, 1, 3),
            ),
            Misconception(
                "g and t are exchanged in the sums: a row of C belongs to the four lanes with the "
                "same lane / 4.",
                (("lane / 4 + 8", "lane % 4 + 8"), ("2 * (lane % 4)", "2 * (lane / 4)")),
            ),
            Misconception(
                "The last two of a lane's four sums go to the row of the first two: they belong 8 "
                "rows below.",
                (("lane / 4 + 8 * (i / 2)", "lane / 4"),),
            ),
            Misconception(
                "A lane's neighbours in a row are stored apart: its two sums of a row stand side "
                "by side.",
                (("2 * (lane % 4) + i % 2", "lane % 4 + 4 * (i % 2)"),),
            ),
            Misconception(
                "Both products go to the same 8 columns: the second belongs 8 columns on.",
                (("col += 8 * j + 2", "col += 2"),),
            ),
        ),
    ),
)
