"""Chapter 10, overlap: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong

_PLACE = "        stage = t % STAGES;\n"
_NEXT = "const int next = t + STAGES - 1;"
_START = "if (next < tiles) start_copy(s_V[next % STAGES], V, next * TILE, n);"
_COMMIT = "        cp_async_commit();\n        for (int j"
_BEFORE = "ahead < STAGES - 1"
_MOVED = "if (any_lane(score > row_max)) {"
_FACTOR = "exp2f(row_max - new_max)"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "10_ahead": (
        Wrong(
            "no group where no tile is left",
            (
                (_START, _START.replace("start_copy(", "{ start_copy(") + " cp_async_commit(); }"),
                (_COMMIT, "        for (int j"),
            ),
            "right",
            ("cp.async",),
        ),
        Wrong("one tile ahead before the loop", ((_BEFORE, "ahead < 1"),), "right", ()),
        Wrong("no copy before the loop", ((_BEFORE, "ahead < 0"),), "right", ()),
        Wrong(
            "all first tiles are one group",
            (
                (
                    "        cp_async_commit();\n    }\n    float sum",
                    "    }\n    cp_async_commit();\n    float sum",
                ),
            ),
            "right",
            ("cp.async",),
        ),
        Wrong("always the first place", ((_PLACE, ""),), "right", ("All rounds read the first",)),
        Wrong(
            "the next tile into the place that is read",
            (("s_V[next % STAGES]", "s_V[stage]"),),
            "right",
            (),
        ),
        Wrong("a tile further", ((_NEXT, "const int next = t + STAGES;"),), "right", ()),
        Wrong(
            "a second barrier",
            ((_START, _START + "\n        __syncthreads();"),),
            "goal",
            ("barriers", "One a tile is enough"),
        ),
    ),
    "10_moved": (
        Wrong("the sum is forgotten", (("            row_sum *= correction;\n", ""),), "right",
              ("The sum of the weights still belongs to the old maximum",)),
        Wrong("O is forgotten", (("            r_O *= correction;\n", ""),), "right",
              ("O still belongs to the old maximum",)),
        Wrong("upside down", ((_FACTOR, "exp2f(new_max - row_max)"),), "right",
              ("upside down",)),
        Wrong("each lane decides alone", ((_MOVED, "if (score > row_max) {"),), "right", ()),
        Wrong("four lanes", (("int mask = 16; mask > 0; mask /= 2) {", "int mask = 2; mask > 0; mask /= 2) {"),),
              "right", ("spread over all 32 lanes",)),
        Wrong("the maximum stays", (("            row_max = new_max;\n", ""),), "right", ()),
        Wrong(
            "always corrected",
            ((_MOVED, "{"),),
            "goal",
            ("instructions", "Most groups of 32 scores hold no new maximum"),
        ),
        Wrong(
            "always a maximum, sometimes a correction",
            (
                (_MOVED + "\n            float new_max = fmaxf(row_max, score);",
                 "{\n            float new_max = fmaxf(row_max, score);"),
                ("            const float correction", "            if (new_max == row_max) goto same;\n            const float correction"),
            ),
            "goal",
            (),
        ),
    ),
}  # fmt: skip
