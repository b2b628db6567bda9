"""Mistakes that answers to the exercises of chapter 08 make, and what they give.

In NumPy where it can be, as that compiles nothing: `in_windows`, `merged` and `by_quarters` give
the right results as well.
"""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from ..exercises.spec import Misconception
from ..problem.attention import cdiv
from .shared import scores, softmax

# ---------------------------------------------------------------- 08_causal


def in_windows(
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    window: int,
    hides: Callable | None = None,
    score: float = -np.inf,
    late: bool = False,
) -> np.ndarray:
    """O if token i sees the keys i - window + 1 ... i; or what a mistake makes of it.

    Args:
        Q: of the last tokens.
        K, V: of all tokens.
        hides: `hides(key, token, window, tile, block, ahead)` says which keys a token does not see;
            tile and block are the first key and the first token of those, `ahead` are the tokens
            before the first of Q.
        score: what a hidden key gets.
        late: whether a block's walk begins with its own tokens.
    """
    ahead = len(K) - len(Q)
    O = np.zeros_like(Q)  # noqa: E741
    for first in range(0, len(Q), 32):
        rows = np.arange(first, min(len(Q), first + 32))
        tokens, block = ahead + rows[:, None], ahead + first
        begin = block if late else max(0, block - window + 1)
        keys = np.arange(begin, begin + 16 * cdiv(tokens[-1, 0] + 1 - begin, 16))
        tiles = begin + (keys - begin) // 16 * 16
        k, v = (np.pad(x, ((0, 32), (0, 0)))[keys] for x in (K, V))
        hidden = (hides or _unseen)(keys, tokens, window, tiles, block, ahead)
        with np.errstate(invalid="ignore"):
            O[rows] = softmax(np.where(hidden, score, scores(Q[rows], k))) @ v
    return O


def _unseen(key, token, window, *_):
    return (key > token) | (key <= token - window)


def _mask_if(sentence: str, hides: Callable) -> Misconception:
    """What another mask gives."""
    return Misconception(
        sentence, results={"O": lambda Q, K, V, window: in_windows(Q, K, V, window, hides)}
    )


def merged(A: np.ndarray, L: np.ndarray, factor: np.ndarray, of_sum: np.ndarray) -> np.ndarray:
    """O of the parts, each with a factor for its row and one for its sum, [parts, n] both."""
    return (factor[..., None] * A).sum(axis=0) / (of_sum * L).sum(axis=0)[:, None]


def relative(M: np.ndarray) -> np.ndarray:
    """exp(maximum of a part - maximum of all)."""
    return np.exp(M - M.max(axis=0))


def _rising(M: np.ndarray, L: np.ndarray, A: np.ndarray, alone: bool = False) -> np.ndarray:
    """O of the parts that raise the maximum; or of the last of them, and those below it."""
    row_max, row_sum, out = M[0], L[0], A[0]
    for m, l, a in zip(M[1:], L[1:], A[1:], strict=True):  # noqa: E741
        top = np.maximum(row_max, m)
        old, new = np.exp(row_max - top), np.exp(m - top)
        above = m > row_max
        old, new = (np.where(above, 0, 1), new) if alone else (old, np.where(above, 1, 0))
        row_sum, out = old * row_sum + new * l, old[:, None] * out + new[:, None] * a
        row_max = top
    return out / row_sum[:, None]


def _shares(L: np.ndarray) -> np.ndarray:
    """1 / L, and 0 where a part has no key."""
    return np.divide(1, L, out=np.zeros_like(L), where=L > 0)


def by_quarters(
    P: np.ndarray,
    G: np.ndarray,
    order: tuple[int, ...] = (0, 2, 1, 3),
    turned: str = "PG",
    pairs: tuple[int, ...] = (0, 1, 2, 3),
) -> np.ndarray:
    """D = P^T G, made of tiles whose quarters come as `ldmatrix` brings them.

    Args:
        P: of shape (m, n).
        G: of shape (m, 64).
        order: the quarters of P's tile in the registers of A.
        turned: of which of the two each quarter is transposed.
        pairs: the quarters of G's tile for the first 8 columns, and for the last.
    """
    p, g = (_quarters(x, name in turned) for name, x in (("P", P), ("G", G)))
    A = np.block([[p[order[0]], p[order[2]]], [p[order[1]], p[order[3]]]])
    # A register of B holds neighbours of a column: as if transposed quarters were multiplied.
    g = [x.swapaxes(2, 3) for x in g]
    B = np.block([[g[pairs[0]], g[pairs[2]]], [g[pairs[1]], g[pairs[3]]]])
    D = np.einsum("qkab,qcbd->kacd", A, B)
    return D.reshape(-1, G.shape[1])[: P.shape[1]]


def _quarters(x: np.ndarray, turned: bool) -> list[np.ndarray]:
    """The quarters of all tiles of 16 x 16, [row of tiles, column of tiles, 8, 8] each."""
    rows, columns = (-(-size // 16) for size in x.shape)
    padded = np.zeros((16 * rows, 16 * columns))
    padded[: x.shape[0], : x.shape[1]] = x
    tiles = padded.reshape(rows, 16, columns, 16).swapaxes(1, 2)
    first, last = slice(0, 8), slice(8, 16)
    found = [tiles[:, :, r, c] for c in (first, last) for r in (first, last)]
    return [q.swapaxes(2, 3) if turned else q for q in found]


def _gradient_if(sentence: str, **how) -> Misconception:
    """What the fragments give that are loaded or used in another way."""
    return Misconception(sentence, results={"D": lambda P, G: by_quarters(P, G, **how)})


_QUARTERS = ("upper left", "upper right", "lower left", "lower right")  # of P^T, as they come


def _ordered(order: tuple[int, ...]) -> Misconception:
    """The quarters of P^T in some order."""
    names = ", ".join(_QUARTERS[quarter] for quarter in order)
    return _gradient_if(
        f"The quarters of P^T are in the wrong order: registers 0 to 3 hold the {names} one.",
        order=order,
    )


_MASK = "if (key + j > token || key + j <= token - window) score = minus_infinity();"
_GUARD = "        new_max = fmaxf(new_max, -1e30f);\n"
_EMPTY = "        if (new_max == minus_infinity()) new_max = 0.0f;\n"
_FACTOR = "exp2f(row_max - new_max)"

CAUSAL = (
    _mask_if(
        "Row 0 of Q is taken for token 0: Q has the last n_q of n_k tokens, so its rows begin "
        "n_k - n_q tokens later.",
        lambda key, token, window, tile, block, ahead: _unseen(key, token - ahead, window),
    ),
    Misconception(
        "Row 0 of Q is taken for token 0, in the mask and in the walk: Q has the last n_q of n_k "
        "tokens, so both begin n_k - n_q keys later.",
        results={
            "O": lambda Q, K, V, window: in_windows(Q, K[: len(Q)], V[: len(Q)], window),
        },
    ),
    Misconception(
        "The walk begins and ends n_k - n_q keys too early, as if Q began with token 0.",
        (
            ("ahead + first - window + 1)", "first - window + 1)"),
            ("min(n_k, ahead + first + 32)", "min(n_k, first + 32)"),
        ),
    ),
    Misconception(
        "The walk ends n_k - n_q keys too early, as if Q began with token 0.",
        (("min(n_k, ahead + first + 32)", "min(n_k, first + 32)"),),
    ),
    Misconception(
        "Tokens are counted the wrong way round: there are n_k - n_q of them before row 0 of Q.",
        (("ahead = n_k - n_q;", "ahead = n_q - n_k;"),),
    ),
    _mask_if(
        "A row sees keys after itself: what comes later than the row is not hidden.",
        lambda key, row, window, *_: key <= row - window,
    ),
    _mask_if(
        "A row sees all the keys before itself: what is too long ago is not hidden.",
        lambda key, row, *_: key > row,
    ),
    _mask_if(
        "The window is one key too long: the row itself is the last of its keys.",
        lambda key, row, window, *_: _unseen(key, row, window + 1),
    ),
    _mask_if(
        "The window is one key too short at its old end: the row itself is one of its "
        "keys, and as many as are missing to a whole window come before it.",
        lambda key, row, window, *_: _unseen(key, row, window - 1),
    ),
    _mask_if(
        "The row does not see the key of its own number: the window ends one key early.",
        lambda key, row, window, *_: (key >= row) | (key <= row - window),
    ),
    _mask_if(
        "The window is hidden and the rest is seen: the condition is the wrong way round.",
        lambda key, row, window, *_: ~_unseen(key, row, window),
    ),
    _mask_if(
        "The window lies around the row: keys after the row are seen as well.",
        lambda key, row, window, *_: abs(key - row) >= window,
    ),
    _mask_if(
        "The number of a key within its tile is compared with the number of a row: a tile "
        "begins at `key`.",
        lambda key, row, window, tile, *_: _unseen(key - tile, row, window),
    ),
    _mask_if(
        "All keys of a tile are treated as its first one: `key` is where the tile begins.",
        lambda key, row, window, tile, *_: _unseen(tile, row, window),
    ),
    _mask_if(
        "The number of a row within its block is compared with the number of a key: a "
        "block begins at `first`.",
        lambda key, row, window, tile, block, _: _unseen(key, row - block, window),
    ),
    Misconception(
        "A hidden score is set to 0, and 0 is a score like others: its weight is not 0.",
        results={
            "O": lambda Q, K, V, window: in_windows(Q, K, V, window, score=0.0),
        },
    ),
    Misconception(
        "The walk begins at the first row of the block, but the windows of its first rows "
        "begin before that.",
        results={
            "O": lambda Q, K, V, window: in_windows(Q, K, V, window, late=True),
        },
    ),
    Misconception(
        "The walk begins with the first key that the last row of a block sees: the rows above it "
        "see older ones.",
        (("max(0, ahead + first - window + 1)", "max(0, ahead + first + 31 - window + 1)"),),
    ),
    Misconception(
        "The walk of the first block begins before the first key, whose number is 0.",
        (("max(0, ahead + first - window + 1)", "ahead + first - window + 1"),),
    ),
    Misconception(
        "Every weight counts twice in row_sum: the loop below the gaps adds it as well.",
        results={
            "O": lambda Q, K, V, window: in_windows(Q, K, V, window) / 2,
        },
    ),
    Misconception(
        "O was divided by the correction, and the sum multiplied: both have to shrink.",
        (("r_O[c] *= correction", "r_O[c] /= correction"),),
    ),
    Misconception(
        "The walk ends one key early: the last row of a block sees the key of its own number.",
        (("first + 32)", "first + 31)"),),
    ),
    Misconception(
        "The walk begins one key late: the first row of a block sees `window` keys, itself among "
        "them.",
        (("first - window + 1)", "first - window + 2)"),),
    ),
    Misconception(
        "The walk ends before the block's own rows, but each of them sees the key of its "
        "own number.",
        (("end = min(n_k, ahead + first + 32);", "end = ahead + first;"),),
    ),
    Misconception(
        "A hidden score is not stored, so an old one of the tile before is in its place.",
        ((_MASK, _MASK.replace("score = minus_infinity()", "continue")),),
    ),
    Misconception(
        "The correction was added to the sum of the weights: it is a factor.",
        (("row_sum *= correction", "row_sum += correction"),),
    ),
    Misconception(
        "The difference of the maxima is taken for the factor: it is the exponent.",
        ((_FACTOR, "row_max - new_max"),),
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
        ((_FACTOR, "exp2f(new_max - row_max)"),),
    ),
    Misconception(
        "The correction is always 1: the old maximum was replaced before it was computed.",
        ((_FACTOR, "1.0f"),),
    ),
    Misconception(
        "The correction is a power of e, and here all weights are powers of 2.",
        ((_FACTOR, "expf(row_max - new_max)"),),
    ),
    Misconception(
        "Minus infinity was subtracted from minus infinity, which is NaN. Until a row meets a key "
        "of its own, `new_max` is that, and it is subtracted twice: in the correction, and below "
        "the gap in each weight. To mend the correction alone leaves the weights NaN.",
        ((_GUARD, ""),),
    ),
    Misconception(
        "What stands for the maximum of a row that has met no key is not far below all scores. A "
        "row with scores far below it keeps it: its weights are 0 then, and 0 is divided by 0.",
        ((_GUARD, _EMPTY),),
    ),
    Misconception(
        "The least that a maximum can be is not far below all scores. A row whose scores are far "
        "below it has that for its maximum: its weights are 0 then, and 0 is divided by 0.",
        ((_GUARD, _GUARD.replace("-1e30f", "0.0f")),),
    ),
)

PARTS = (
    Misconception(
        "The parts were added as they are, but each was made with a maximum of its own.",
        results={"O": lambda M, L, A: merged(A, L, np.ones_like(M), np.ones_like(M))},
    ),
    Misconception(
        "The row was brought to the common maximum, but not the sum that divides it.",
        results={"O": lambda M, L, A: merged(A, L, relative(M), np.ones_like(M))},
    ),
    Misconception(
        "The sum was brought to the common maximum, but not the row that it divides.",
        results={"O": lambda M, L, A: merged(A, L, np.ones_like(M), relative(M))},
    ),
    Misconception(
        "A mean of the parts' results was taken: parts with small scores count as much as "
        "those with large ones.",
        results={"O": lambda L, A: merged(A, np.ones_like(L), _shares(L), np.sign(L))},
    ),
    Misconception(
        "The parts' results were weighted by their maxima alone: how many keys have come "
        "near the maximum, the part's sum, counts as well.",
        results={
            "O": lambda M, L, A: merged(A, np.ones_like(L), relative(M) * _shares(L), relative(M))
        },
    ),
    Misconception(
        "The new part's row was brought to the common maximum, but not its sum.",
        (("now * l", "l"),),
    ),
    Misconception(
        "The new part's sum was brought to the common maximum, but not its row.",
        (("now * a;", "a;"),),
    ),
    Misconception(
        "When the maximum grows the old row shrinks, but the old sum does not.",
        (("before * row_sum", "row_sum"),),
    ),
    Misconception(
        "When the maximum grows the old sum shrinks, but the old row does not.",
        (("before * out", "out"),),
    ),
    Misconception(
        "The two factors are exchanged: each side has to shrink by its own maximum minus the "
        "common one.",
        (
            ("before * row_sum + now * l", "now * row_sum + before * l"),
            ("before * out + now * a", "now * out + before * a"),
        ),
    ),
    Misconception(
        "The parts' rows were divided by their own sums, and the sum of all divides them "
        "once more.",
        (("now * a;", "now * a / l;"),),
    ),
    Misconception(
        "Each part was multiplied by exp(its maximum) and by nothing else: that overflows, "
        "as scores may be large.",
        (("expf(row_max - new_max)", "1.0f"), ("expf(m - new_max)", "expf(m)")),
    ),
    Misconception(
        "What was added up so far was not brought to the new maximum: only the new part was.",
        (("before = expf(row_max - new_max)", "before = 1.0f"),),
    ),
    Misconception(
        "The new part was not brought to the common maximum: only what was there before.",
        (("now = expf(m - new_max)", "now = 1.0f"),),
    ),
    Misconception(
        "The last part is left out: it may have keys, like the others.",
        (("part < parts;", "part < parts - 1;"),),
    ),
    Misconception(
        "The first part is left out: parts are numbered from 0.",
        (("int part = 0;", "int part = 1;"),),
    ),
    Misconception(
        "A part whose maximum is smaller than the one so far is left out: its sums count as well, "
        "once they have shrunk.",
        results={"O": lambda M, L, A: _rising(M, L, A)},
    ),
    Misconception(
        "A part whose maximum is the largest so far replaces what was there: the old sums count as "
        "well, once they have shrunk.",
        results={"O": lambda M, L, A: _rising(M, L, A, alone=True)},
    ),
    Misconception(
        "The old sums are used up but not kept: each part replaces them.",
        (("before * row_sum + now * l", "now * l"), ("before * out + now * a", "now * a")),
    ),
    Misconception(
        "The parts of a row are read as if each had its number alone: a part holds all n rows, one "
        "after the other.",
        (("M[part * n + row]", "M[row * parts + part]"),),
    ),
    Misconception(
        "The maximum of the last part is kept, and not the common one: the sums belong to that.",
        (("row_max = new_max;", "row_max = m;"),),
    ),
    Misconception(
        "The row is divided by the sum in every turn: it has to be divided once, at the end.",
        (
            (
                "        row_max = new_max;\n",
                "        row_max = new_max;\n        out /= row_sum;\n",
            ),
        ),
    ),
    Misconception(
        "A part's row is multiplied by its sum: each holds the weights already.",
        (("now * a;", "now * l * a;"),),
    ),
    Misconception(
        "The factors are powers of 2: the parts were made with powers of e.",
        (("before = expf(", "before = exp2f("), ("now = expf(", "now = exp2f(")),
    ),
    Misconception(
        "Two exponentials are divided: each of them overflows where scores are large, though the "
        "one of the difference does not.",
        (("now = expf(m - new_max)", "now = expf(m) / expf(new_max)"),),
    ),
    Misconception(
        "The factor of the old side was used for the new part as well: it has one of its own.",
        (
            ("before * row_sum + now * l", "before * (row_sum + l)"),
            ("before * out + now * a", "before * (out + a)"),
        ),
    ),
    Misconception(
        "The sum of the weights is never added up, and the row is divided by it.",
        (("        row_sum = before * row_sum + now * l;\n", ""),),
    ),
    Misconception(
        "The factor of the new part is upside down: its exponent must not be above 0.",
        (("expf(m - new_max)", "expf(new_max - m)"),),
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
)

TRANSPOSED = (
    _gradient_if(
        "The two quarters off the diagonal are in each other's place: they have to be exchanged "
        "once, by the registers or by the lanes' addresses. Never, or twice, is wrong.",
        order=(0, 1, 2, 3),
    ),
    *(_ordered(order) for order in permutations(range(4)) if order[:1] != (0,)),
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
        "G was treated as K was, with no transpose and in pairs of every second register. "
        "Its rows are rows of B, and those of K were columns.",
        turned="P",
        pairs=(0, 2, 1, 3),
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
    _gradient_if(
        "The halves of G's columns are exchanged: r_D[0] is for the first 8 columns.",
        pairs=(2, 3, 0, 1),
    ),
    _gradient_if(
        "In each pair the lower half of G came before the upper half.",
        pairs=(1, 0, 3, 2),
    ),
    Misconception(
        "Only the last 16 queries are in the sums: they begin at 0 again in every turn.",
        results={"D": lambda P, G: P[(len(P) - 1) // 16 * 16 :].T @ G[(len(P) - 1) // 16 * 16 :]},
    ),
    Misconception(
        "Only the first 16 queries are in the sums: the tiles have to move on with `query`.",
        results={"D": lambda P, G: P[:16].T @ G[:16]},
    ),
    Misconception(
        "One product is missing: half of the columns are never added up.",
        (("        mma_m16n8k16<half>(r_D[1], r_A, r_G[2], r_G[3]);\n", ""),),
    ),
    Misconception(
        "Both products were added to the same sums: each of them has 8 columns of its own.",
        (("(r_D[1], r_A", "(r_D[0], r_A"),),
    ),
    Misconception(
        "Lanes pass the rows of P in another order: neighbours pass the chunks of one row, "
        "and then a matrix of 8 rows is made of four.",
        (("&s_P[lane % 16][8 * (lane / 16)]", "&s_P[lane / 2][8 * (lane % 2)]"),),
    ),
    Misconception(
        "The second index of a tile counts elements, and a chunk has 8 of them.",
        (("&s_P[lane % 16][8 * (lane / 16)]", "&s_P[lane % 16][lane / 16]"),),
    ),
    Misconception(
        "The bits of i are exchanged: a lane's first two sums are neighbours in a row, and "
        "the last two stand below them.",
        (("8 * (i / 2)", "8 * (i % 2)"), ("+ i % 2;", "+ i / 2;")),
    ),
    Misconception(
        "Two sums of a lane go to the same element: they are neighbours in a row.",
        (("2 * (lane % 4) + i % 2", "2 * (lane % 4)"),),
    ),
    Misconception(
        "Lanes overlap: each of them has two neighbours of a row, so the next lane is two "
        "columns on.",
        (("2 * (lane % 4) + i % 2", "lane % 4 + i % 2"),),
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
        "A lane's neighbours in a row are stored apart: its two sums of a row stand side by side.",
        (("2 * (lane % 4) + i % 2", "lane % 4 + 4 * (i % 2)"),),
    ),
    Misconception(
        "Both products go to the same 8 columns: the second belongs 8 columns on.",
        (("col += 8 * j + 2", "col += 2"),),
    ),
)
