"""Chapter 02, the naive kernels: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import SQUARES, by_entry, products, softmaxes

_PLACE = "P[(size_t)i * N + j]"
_MASK = "if (col > row)"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "02_received": (
        Wrong(
            "the row of P",
            ((_PLACE, "P[(size_t)j * N + i]"),),
            "right",
            ("what token j gives to the others",),
        ),
        Wrong(
            "the row of P, whole",
            (("if (i != j) ", ""), (_PLACE, "P[(size_t)j * N + i]")),
            "right",
            ("the weights of a row add up to 1",),
        ),
        Wrong(
            "its own weight, too", (("if (i != j) ", ""),), "right", ("own weight is in the sum",)
        ),
        Wrong("only those before", (("i < N; i++", "i < j; i++"),), "right", ("Only the tokens",)),
        Wrong("a row too many", (("i < N;", "i <= N;"),), "right", ("out-of-bounds", "P[1369]")),
        Wrong("the first row left out", (("i = 0;", "i = 1;"),), "right", ("The first row",)),
        Wrong("a mean", (("R[j] = sum;", "R[j] = sum / N;"),), "right", ("the mean",)),
        Wrong(
            "rows as long as a block",
            ((_PLACE, "P[(size_t)i * BLOCK_SIZE + j]"),),
            "right",
            ("out-of-bounds",),
        ),
    ),
    "02_scores": (
        Wrong("the other side", ((_MASK, "if (col < row)"),), "right", ("on the wrong side:",)),
        Wrong("the diagonal as well", ((_MASK, "if (col >= row)"),), "right", ("The diagonal",)),
        Wrong("one column late", ((_MASK, "if (col > row + 1)"),), "right", ("one column late",)),
        Wrong("0", (("= MINUS_INFINITY;", "= 0.0f;"),), "right", ("A masked element is 0",)),
        Wrong(
            "tiles",
            ((_MASK, "if (blockIdx.y > blockIdx.x)"),),
            "right",
            ("Whole tiles are masked",),
        ),
        Wrong(
            "stored again",
            (("        return;\n", ""),),
            "right",
            ("No element is masked in the end",),
        ),
        Wrong(
            "masked after the product",
            (
                ("        return;\n    }\n", "    }\n"),
                (
                    "    S[(size_t)row * N + col] = sum",
                    "    if (col <= row) S[(size_t)row * N + col] = sum",
                ),
            ),
            "goal",
            ("whose product nobody needs",),
        ),
    ),
}

TRIALS = {
    "02_naive.cu": by_entry(
        others=products(*SQUARES), softmax=softmaxes((70, False), (67, True), (1, True))
    ),
}
