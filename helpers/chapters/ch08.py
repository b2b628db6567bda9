"""Chapter 08, FlashAttention: its rung and exercises."""

import numpy as np

from ..exercises.spec import Case, Exercise, Goal
from ..problem.attention import cdiv
from ..problem.flash import FLASH_BASELINE
from .mistakes_08 import CAUSAL, PARTS, TRANSPOSED, in_windows, merged, relative
from .shared import Arguments, covering, empty, normal

RUNGS = (FLASH_BASELINE,)


def _attention(case: Case) -> Arguments:
    n_q, n_k, d = case["n_q"], case["n_k"], case["HEAD_DIM"]
    Q, K, V = (normal(n, d, seed=seed) for seed, n in enumerate((n_q, n_k, n_k)))
    # Twice as far apart as usual: the largest score often comes late, and matters. And scores of
    # each row around a level of its own, near 200 or near -200 in turn, so that no constant can be
    # subtracted, and nothing but a number far below all scores does for a maximum to begin with.
    Q *= 2
    K[:, 0] = 4
    levels = np.where(np.arange(n_q) % 2, -1, 1) * np.linspace(150, 200, n_q)
    Q[:, 0] = levels.round() * np.sqrt(d).round() / 4
    sizes = {name: case[name] for name in ("n_q", "n_k", "window")}
    return {"Q": Q, "K": K, "V": V, "O": empty(n_q, d), **sizes}


def _parts(case: Case) -> Arguments:
    """What blocks leave of 40 keys, some each; the last of three has some as well, of five none."""
    n, d, parts = case["n"], case["HEAD_DIM"], case["parts"]
    S = 3.0 * normal(n, 40, seed=1) + np.linspace(-100, 100, n, dtype=np.float32)[:, None]
    V = normal(40, d, seed=2)
    S[:, 25:] += 4.0  # the later a key, the larger its score: maxima grow from part to part
    M, L, A = np.full((parts, n), -np.inf), np.zeros((parts, n)), np.zeros((parts, n, d))
    with_keys = parts if parts == 3 else parts - 1
    for part, keys in enumerate(np.split(np.arange(40), range(7, 7 * with_keys, 7))):
        M[part] = S[:, keys].max(axis=1, initial=-np.inf)
        weights = np.exp(S[:, keys] - M[part][:, None])
        L[part], A[part] = weights.sum(axis=1), weights @ V[keys]
    M, L, A = (x.astype(np.float32) for x in (M, L, A))
    return {"M": M, "L": L, "A": A, "O": empty(n, d), "n": n, "parts": parts}


def _gradient(case: Case) -> Arguments:
    m, n = case["m"], case["n"]
    P, G = normal(m, n, dtype=np.float16), normal(m, 64, seed=1, dtype=np.float16)
    return {"P": P, "G": G, "D": empty(n, 64), "m": m, "n": n}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="08_causal",
        title="a chunk of a long text",
        task=(
            "A server reads a long text in chunks: $K$ and $V$ have all tokens so far, $Q$ only "
            "the last ones. And a token sees no more than the last `window` tokens, itself the "
            "last of them. Walk along the keys that a block needs, hide from each row what it "
            "does not see, and keep its softmax up to date.\n\n"
            "An example: with `n_k` = 10 and `n_q` = 3, rows 0, 1 and 2 of $Q$ are tokens 7, 8 "
            "and 9. With a window of 4, row 0 sees keys 4 to 7, and row 2 sees keys 6 to 9. A "
            "window may be longer than the text so far."
        ),
        hints=(
            "Which token does row 0 of Q belong to? Of all rows of a block, the first one sees the "
            "oldest key, and the last one the newest. A walk from key 0 gave each row a key at "
            "once, and this one does not: a thread can meet a tile in which it sees none. Work "
            "out the two maxima there, and every difference that they are in, in `weight` too.",
            "Row i is token n_k - n_q + i, and key + j is the number of a key: a token is compared "
            "with keys. Minus infinity from minus infinity is NaN, in the correction and in "
            "`weight`. So mend neither of the two lines: let new_max never be less than a finite "
            "number that is far below all scores, before anything uses it.",
        ),
        explanation=(
            "The chapter's rows began at token 0; here the diagonal begins n_k - n_q keys further "
            "right. While a row has met none of its keys, both maxima would be minus infinity. "
            "In the chapter every row sees key 0, which comes first. Here the "
            "correction and all weights of the tile are 2 to the power of -inf - -inf, NaN, which "
            "no later correction removes. With -1e30 in its place the weights are 2 to the power "
            "of -inf + 1e30, which is 0, and the sums stay 0. The first real score is larger, and "
            "the correction, 2 to the power of -1e30 - score, is 0 and multiplies zeros."
        ),
        entry="flash_attention",
        cases=(
            # The first: block 0 begins with key 0, and the 49 keys of block 1 lose the last if the
            # walk ends early. The second: the 48 keys of block 0 are 3 tiles, and 4 if the
            # walk is longer at either end.
            {"n_q": 67, "n_k": 74, "window": 18, "HEAD_DIM": 4},
            {"n_q": 40, "n_k": 72, "window": 17, "HEAD_DIM": 4, "B_C": 16},
        ),
        launch=covering((32,), ("n_q", 32)),
        arguments=_attention,
        results={"O": lambda Q, K, V, window: in_windows(Q, K, V, window)},
        tolerance=3e-5,
        goals=(
            Goal(
                "barriers",
                "Each tile takes two. Some of these tiles are outside all windows of a block: the "
                "walk has to begin and to end with the keys that some row of the block sees.",
                name="barriers, summed over all warps",
            ),
        ),
        timed={"n_q": 4096, "n_k": 8192, "window": 128, "HEAD_DIM": 64},
        unlike={"HEAD_DIM": 8, "B_C": 16},
        misconceptions=CAUSAL,
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
        results={"O": lambda M, L, A: merged(A, L, relative(M), relative(M))},
        goals=(
            Goal(
                "global_load_sectors",
                "Each part has to be read only once: keep a maximum so far, as the chapter does.",
                slack=1.05,
            ),
        ),
        timed={"n": 1 << 16, "parts": 6, "HEAD_DIM": 64},
        misconceptions=PARTS,
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
        misconceptions=TRANSPOSED,
    ),
)
