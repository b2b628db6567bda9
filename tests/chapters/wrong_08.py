"""Chapter 08, FlashAttention: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import flash

_MASK = "            if (key + j >= n) score = minus_infinity();\n"
_CORRECT_O = """        #pragma unroll
        for (int c = 0; c < HEAD_DIM; c++) r_O[c] *= correction;
"""
_WAIT = "    cp_async_commit();\n    cp_async_wait<0>();\n    __syncthreads();\n"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "08_online": (
        Wrong("no mask", ((_MASK, ""),), "right", ("n = 13", "elements of O")),
        Wrong("O is not corrected", ((_CORRECT_O, ""),), "right", ("n = 65", "elements of O")),
        Wrong(
            "the sum is not corrected",
            (("        row_sum *= correction;\n", ""),),
            "right",
            ("n = 65", "elements of O"),
        ),
        Wrong(
            "the other way round",
            (("expf(row_max - new_max)", "expf(new_max - row_max)"),),
            "right",
            ("every one of them is NaN",),
        ),
        Wrong(
            "corrected after the maximum was replaced",
            (
                ("        row_max = new_max;\n", ""),
                (
                    "        const float correction",
                    "        row_max = new_max;\n        const float correction",
                ),
            ),
            "right",
            ("n = 65", "elements of O"),
        ),
        Wrong(
            "a constant in place of the maximum",
            (("float new_max = row_max;", "float new_max = 30.0f;"),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "past the end of registers",
            (("c < HEAD_DIM; c++) r_O[c] *=", "c <= HEAD_DIM; c++) r_O[c] *="),),
            "right",
            ("line 65", "out-of-bounds", "local arrays"),
        ),
        Wrong(
            "a small weight in place of none",
            (("score = minus_infinity();", "score = -20.0f;"),),
            "right",
            ("elements of O",),
        ),
    ),
    "08_copies": (
        Wrong("no wait", (("    cp_async_wait<0>();\n", ""),), "no race", ("cp.async",)),
        Wrong("no group", (("    cp_async_commit();\n", ""),), "no race", ("cp.async",)),
        Wrong(
            "the wait comes first",
            ((_WAIT, "    cp_async_wait<0>();\n    cp_async_commit();\n    __syncthreads();\n"),),
            "no race",
            ("cp.async",),
        ),
        Wrong(
            "no barrier",
            ((_WAIT, "    cp_async_commit();\n    cp_async_wait<0>();\n"),),
            "no race",
            ("s_K", "__syncthreads()"),
        ),
        Wrong(
            "rows past the last one",
            (("first + row < n ? 16 : 0", "16"),),
            "right",
            ("out-of-bounds", "K["),
        ),
        Wrong(
            "loads and stores",
            (
                (
                    "cp_async_16(&s_K[row][chunk], from, first + row < n ? 16 : 0);",
                    "s_K[row][chunk] = first + row < n ? *(const float4*)from"
                    " : make_float4(0, 0, 0, 0);",
                ),
            ),
            "goal",
            ("cp_async_16", "expected"),
        ),
        Wrong(
            "a byte too many",
            (("n ? 16 : 0", "n ? 17 : 0"),),
            "right",
            ("copies 16 bytes and is to read 17",),
        ),
    ),
    "08_fragments": (
        Wrong(
            "neighbouring registers",
            (("r_K[0], r_K[2]", "r_K[0], r_K[1]"), ("r_K[1], r_K[3]", "r_K[2], r_K[3]")),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "rows and columns of a lane",
            (("lane / 4 + 8", "lane % 4 + 8"), ("2 * (lane % 4)", "2 * (lane / 4)")),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "no lower half", (("lane / 4 + 8 * (i / 2)", "lane / 4"),), "right", ("elements of S",)
        ),
        Wrong(
            "no pairs",
            (("2 * (lane % 4) + i % 2", "lane % 4 + 4 * (i % 2)"),),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "one product",
            (("        mma_m16n8k16<half>(r_S[1], r_Q, r_K[1], r_K[3]);\n", ""),),
            "right",
            ("elements of S",),
        ),
    ),
}

TRIALS = {"08_flash_baseline.cu": flash}
