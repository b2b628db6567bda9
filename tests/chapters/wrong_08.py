"""Chapter 08, FlashAttention: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import flash

_GUARD = "        new_max = fmaxf(new_max, -1e30f);\n"
_FACTOR = "exp2f(row_max - new_max)"
_LOAD_P, _LOAD_G = "ldmatrix_x4_trans(r_P", "ldmatrix_x4_trans(r_G"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "08_causal": (
        Wrong(
            "each row walks from its own first key",
            (("max(0, ahead + first - window", "max(0, ahead + row - window"),),
            "right",
            ("gives threads of a block another `begin` each",),
        ),
        Wrong(
            "row 0 of Q is taken for token 0 in the mask",
            (("token = ahead + row", "token = row"),),
            "right",
            ("Row 0 of Q is taken for token 0", "last n_q of n_k tokens"),
        ),
        Wrong(
            "row 0 of Q is taken for token 0 everywhere",
            (("ahead = n_k - n_q;", "ahead = 0;"),),
            "right",
            ("in the mask and in the walk",),
        ),
        Wrong(
            "the walk goes along the keys of the first tokens",
            (("ahead + first - window", "first - window"), ("ahead + first + 32", "first + 32")),
            "right",
            ("n_k - n_q keys too early",),
        ),
        Wrong(
            "a walk of one key more",
            (("ahead + first + 32", "ahead + first + 33"),),
            "goal",
            ("outside all windows",),
        ),
        Wrong(
            "a window of one key more",
            (("<= token - window", "< token - window"),),
            "right",
            ("one key too long",),
        ),
        Wrong(
            "the future is seen",
            (("key + j > token || key + j <= token - window", "key + j <= token - window"),),
            "right",
            ("sees keys after itself",),
        ),
        Wrong(
            "only the correction is kept from NaN",
            ((_GUARD, ""), (_FACTOR, f"new_max > minus_infinity() ? {_FACTOR} : 0.0f")),
            "right",
            ("NaN", "below the gap in each weight"),
        ),
        Wrong(
            "the walk ends a key early",
            (("first + 32)", "first + 31)"),),
            "right",
            ("ends one key early",),
        ),
        Wrong(
            "the walk begins a key early",
            (("first - window + 1)", "first - window)"),),
            "goal",
            ("barriers", "outside all windows"),
        ),
        Wrong(
            "a floor that is not low",
            ((_GUARD, "        if (new_max == minus_infinity()) new_max = -1.0f;\n"),),
            "right",
            ("not far below all scores",),
        ),
        Wrong(
            "a tile that nobody sees is left before the barrier",
            ((_GUARD, "        if (new_max == minus_infinity()) continue;\n"),),
            "right",
            (
                "Threads that continue in line",
                "never come to the barrier",
            ),
        ),
    ),
    "08_parts": (
        Wrong(
            "no factors",
            (("expf(row_max - new_max)", "1.0f"), ("expf(m - new_max)", "1.0f")),
            "right",
            ("with a maximum of its own",),
        ),
        Wrong(
            "the sum stays as it is",
            (("row_sum = before * row_sum + now * l", "row_sum += l"),),
            "right",
            ("but not the sum that divides it",),
        ),
        Wrong(
            "a mean of results",
            (
                ("row_sum = before * row_sum + now * l", "row_sum += l > 0.0f ? 1.0f : 0.0f"),
                ("out = before * out + now * a", "out += l > 0.0f ? a / l : 0.0f"),
            ),
            "right",
            ("A mean of the parts' results",),
        ),
        Wrong(
            "maxima without sums",
            (
                ("row_sum = before * row_sum + now * l", "row_sum = before * row_sum + now"),
                ("now * a;", "now * (l > 0.0f ? a / l : 0.0f);"),
            ),
            "right",
            ("by their maxima alone",),
        ),
        Wrong(
            "old sums stay",
            (("before = expf(row_max - new_max)", "before = 1.0f"),),
            "right",
            ("only the new part was",),
        ),
        Wrong(
            "no maximum is kept",
            (("        row_max = new_max;\n", ""),),
            "right",
            ("is never kept",),
        ),
        Wrong(
            "two passes",
            (
                (
                    "    for (int part = 0; part < parts; part++) {",
                    "    for (int p = 0; p < parts; p++)\n"
                    "        row_max = fmaxf(row_max, M[p * n + row]);\n"
                    "    for (int part = 0; part < parts; part++) {",
                ),
            ),
            "goal",
            ("global load sectors", "only once"),
        ),
    ),
    "08_transposed": (
        Wrong(
            "quarters as they come",
            (("r_A[1] = r_P[2]", "r_A[1] = r_P[1]"), ("r_A[2] = r_P[1]", "r_A[2] = r_P[2]")),
            "right",
            ("have to be exchanged once",),
        ),
        Wrong(
            "P without .trans",
            ((_LOAD_P, "ldmatrix_x4(r_P"),),
            "right",
            ("none of them was transposed",),
        ),
        Wrong(
            "G without .trans", ((_LOAD_G, "ldmatrix_x4(r_G"),), "right", ("G was not transposed",)
        ),
        Wrong(
            "G paired like K",
            (("r_G[0], r_G[1]", "r_G[0], r_G[2]"), ("r_G[2], r_G[3]", "r_G[1], r_G[3]")),
            "right",
            ("paired as those of K",),
        ),
        Wrong(
            "rows and columns of a lane",
            (("lane / 4 + 8", "lane % 4 + 8"), ("2 * (lane % 4)", "2 * (lane / 4)")),
            "right",
            ("g and t are exchanged",),
        ),
        Wrong(
            "no lower half",
            (("lane / 4 + 8 * (i / 2)", "lane / 4"),),
            "right",
            ("they belong 8 rows below",),
        ),
        Wrong(
            "no tensor cores",
            (
                ("mma_m16n8k16<half>(r_D[0], r_A, r_G[0], r_G[1]);", ""),
                ("mma_m16n8k16<half>(r_D[1], r_A, r_G[2], r_G[3]);", ""),
                (
                    "                D[row * HEAD_DIM + col] = r_D[j][i];",
                    "float sum = 0.0f;\n"
                    "for (int q = 0; q < m; q++) sum += __half2float(P[q * n + row]) *"
                    " __half2float(G[q * HEAD_DIM + col]);\n"
                    "D[row * HEAD_DIM + col] = sum;",
                ),
            ),
            "goal",
            ("instructions", "4,096 operations"),
        ),
    ),
}

TRIALS = {"08_flash_baseline.cu": flash}
