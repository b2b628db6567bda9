"""Chapter 10, overlap: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

import functools

from exercise_answers import Wrong
from mutants.survivors import Reason
from mutants.targets import flash

_PLACE = "        stage = t % STAGES;\n"
_NEXT = "const int next = t + STAGES - 1;"
_START = "if (next < tiles) start_copy(s_V[next % STAGES], V, next * TILE, n);"
_COMMIT = "        cp_async_commit();\n        for (int j"
_BEFORE = "ahead < STAGES - 1"
_MOVED = "if (any_lane(score > row_max)) {"
_FACTOR = "exp2f(row_max - new_max)"
_MASKS = "(int mask = 16; mask > 0; mask /= 2) {"
_EACH = "        cp_async_commit();\n    }\n    float sum"
_FOUND = """float found = score;
        for (int mask = 16; mask > 0; mask /= 2) found = fmaxf(found, shuffle_xor(found, mask));
"""

WRONG: dict[str, tuple[Wrong, ...]] = {
    "10_ahead": (
        Wrong(
            "the first place stays empty",
            (("int ahead = 0; ahead < STAGES - 1", "int ahead = 1; ahead < STAGES"),),
            "right",
            ("leave out tile 0 and its place",),
        ),
        Wrong(
            "the first copies begin with tile 1",
            (("V, ahead * TILE, n)", "V, TILE * (1 + ahead), n)"),),
            "right",
            ("nobody copies tile 0",),
        ),
        Wrong(
            "no group where no tile is left",
            (
                (_START, _START.replace("start_copy(", "{ start_copy(") + " cp_async_commit(); }"),
                (_COMMIT, "        for (int j"),
            ),
            "no race",
            ("No group is made where", "the wait counts groups"),
        ),
        Wrong(
            "no group for first tiles that do not exist",
            (
                ("        start_copy(s_V[ahead]", "if (ahead < tiles) {\nstart_copy(s_V[ahead]"),
                (_EACH, _EACH.replace("cp_async_commit();", "cp_async_commit();\n}")),
            ),
            "no race",
            ("No group is made where", "the wait counts groups"),
        ),
        Wrong("one tile ahead before the loop", ((_BEFORE, "ahead < 1"),), "right", ("cp.async",)),
        Wrong(
            "no copy before the loop",
            ((_BEFORE, "ahead < 0"),),
            "right",
            ("every one of them is NaN",),
        ),
        Wrong(
            "all first tiles are one group",
            ((_EACH, "    }\n    cp_async_commit();\n    float sum"),),
            "no race",
            ("A step is missing: a call of cp_async_commit",),
        ),
        Wrong("always the first place", ((_PLACE, ""),), "right", ("All rounds read the first",)),
        Wrong(
            "the next tile into the place that is read",
            (("s_V[next % STAGES]", "s_V[stage]"),),
            "right",
            ("to the place of the tile that is worked on",),
        ),
        Wrong(
            "a tile further",
            ((_NEXT, "const int next = t + STAGES;"),),
            "right",
            ("into the place of tile t, which it still reads",),
        ),
        Wrong(
            "waited for at once",
            ((_COMMIT, _COMMIT.replace("    for", "    cp_async_wait<0>();\n        for")),),
            "goal",
            ("started only just now",),
        ),
        Wrong(
            "the last tile again and again",
            ((_START, "start_copy(s_V[next % STAGES], V, min(next, tiles - 1) * TILE, n);"),),
            "goal",
            ("Which tile is copied a second time",),
        ),
        Wrong(
            "a second barrier",
            ((_START, _START + "\n        __syncthreads();"),),
            "goal",
            ("barriers", "One a tile is enough"),
        ),
    ),
    "10_moved": (
        Wrong(
            "the sum is forgotten",
            (("            row_sum *= correction;\n", ""),),
            "right",
            ("The sum of the weights still belongs to the old maximum",),
        ),
        Wrong(
            "O is forgotten",
            (("            r_O *= correction;\n", ""),),
            "right",
            ("O still belongs to the old maximum",),
        ),
        Wrong(
            "multiplied in every turn",
            (
                (_MOVED, f"float new_max = row_max;\n        {_MOVED}"),
                ("float new_max = fmaxf(row", "new_max = fmaxf(row"),
                (
                    "            const float correction",
                    "        }\n            const float correction",
                ),
                ("row_max = new_max;\n        }", "row_max = new_max;"),
            ),
            "goal",
            ("the factor is 1",),
        ),  # fmt: skip
        Wrong("upside down", ((_FACTOR, "exp2f(new_max - row_max)"),), "right", ("upside down",)),
        Wrong(
            "each lane decides alone",
            ((_MOVED, "if (score > row_max) {"),),
            "right",
            ("a shuffle in which it does not take part",),
        ),
        Wrong(
            "four lanes",
            ((_MASKS, "(int mask = 2; mask > 0; mask /= 2) {"),),
            "right",
            ("spread over all 32 lanes",),
        ),
        Wrong(
            "what a float bears is too much for a sum",
            ((_MOVED, "if (any_lane(score - row_max > 127.5f - 0.5f)) {"),),
            "right",
            ("A maximum that is far larger is not taken",),
        ),
        Wrong("the first for ever", ((_MOVED, "if (key == 0) {"),), "right", ("is kept for ever",)),
        Wrong(
            "always corrected",
            ((_MOVED, "{"),),
            "goal",
            ("instructions", "Most groups of 32 scores hold no new maximum"),
        ),
        Wrong(
            "always a maximum, sometimes a correction",
            ((_MOVED, _FOUND + "        if (found > row_max) {"),),
            "goal",
            ("instructions", "Most groups of 32 scores hold no new maximum"),
        ),
    ),
}

# Fewer keys than a tile has rows: the copy before the loop ends within it.
_SHORT = (({"HEAD_DIM": 64, "B_R": 32, "B_C": 32, "WARPS": 2}, (1, 2, 21), "bhnd", "half", False),)
_ONE = functools.partial(flash, also=_SHORT)
_TWO = functools.partial(flash, stages=2, also=_SHORT)

TRIALS = {
    "10a_eager.cu": _ONE,
    "10b_registers.cu": _ONE,
    "10c_double_buffer.cu": _TWO,
    "10d_wide_warps.cu": _TWO,
    "10e_rescale.cu": functools.partial(_TWO, more={"SLACK": (0, 8, 0, -1, 8)}),
}

REASONS = (
    Reason(
        r"10e_rescale\.cu",
        "update_softmax",
        r"for \(int i = 0; i < 2 \* ROW_TILES; i\+\+\) \{  ->  .* <= .*",
        "The maximum too many lies past the end of its array, and no row reads it: the compiler "
        "drops what would be stored there.",
    ),
    Reason(
        r"10e_rescale\.cu",
        "update_softmax",
        r"const int m = i / 2, h = i % 2;  ->  .* h = \(i \+ 1\) % 2;",
        "The two rows that a lane has of a tile are taken in the other order; neither knows of the "
        "other.",
    ),
    Reason(
        r"10e_rescale\.cu",
        "update_softmax",
        r"if \(SLACK < 0 .*any_lane.*  ->  if \(SLACK < 0 \|\| \(growth > SLACK\)\) \{",
        "The four lanes of a row have one growth, so each row decides for itself, which is as "
        "right. Lanes of a warp part then, and the machine takes both ways one after the other.",
    ),
)
