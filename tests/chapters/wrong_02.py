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
            ("With ",),
        ),
        Wrong(
            "the row of P, whole",
            (("if (i != j) ", ""), (_PLACE, "P[(size_t)j * N + i]")),
            "right",
            ("With ",),
        ),
        Wrong("its own weight, too", (("if (i != j) ", ""),), "right", ("With ",)),
        Wrong("only those before", (("i < N; i++", "i < j; i++"),), "right", ("With ",)),
        Wrong("a row too many", (("i < N;", "i <= N;"),), "right", ("out-of-bounds", "P[1369]")),
        Wrong("the first row left out", (("i = 0;", "i = 1;"),), "right", ("With ",)),
        Wrong("a mean", (("R[j] = sum;", "R[j] = sum / N;"),), "right", ("With ",)),
        Wrong(
            "rows as long as a block",
            ((_PLACE, "P[(size_t)i * BLOCK_SIZE + j]"),),
            "right",
            ("out-of-bounds",),
        ),
    ),
    "02_scores": (
        Wrong("the other side", ((_MASK, "if (col < row)"),), "right", ("With ",)),
        Wrong("the diagonal as well", ((_MASK, "if (col >= row)"),), "right", ("With ",)),
        Wrong("one column late", ((_MASK, "if (col > row + 1)"),), "right", ("With ",)),
        Wrong("0", (("= MINUS_INFINITY;", "= 0.0f;"),), "right", ("With ",)),
        Wrong(
            "tiles",
            ((_MASK, "if (blockIdx.y > blockIdx.x)"),),
            "right",
            ("With ",),
        ),
        Wrong(
            "stored again",
            (("        return;\n", ""),),
            "right",
            ("With ",),
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
