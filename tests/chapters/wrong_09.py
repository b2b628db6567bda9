"""Chapter 09, swizzles: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.survivors import Reason
from mutants.targets import by_entry, flash, phases, turns

_PLACE_V = "s_V + place(16 * k + lane % 16, j + lane / 16)"
_PLACE_O = "s_P + place(row, j) + 2 * (lane % 4)"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "09_latin": (
        Wrong(
            "data are lost", (("row ^ col", "row * col % 8"),), "right", ("elements of columns",)
        ),
        Wrong(
            "pairs of rows alike",
            (("row ^ col", "(row / 2) ^ col"),),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "all rows alike", (("row ^ col", "col ^ 5"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "past the end of a row",
            (("row ^ col", "row + col"),),
            "right",
            ("out-of-bounds", "s_rows"),
        ),
        Wrong(
            "padding",
            (("float4 s_rows[8][8];", "float4 s_rows[8][9];"), ("row ^ col", "col")),
            "goal",
            ("bytes of shared memory",),
        ),
        Wrong(
            "the read path forgets it",
            (("s_rows[x][place(x, y)]", "s_rows[x][y]"),),
            "right",
            ("elements of columns",),
        ),
        Wrong(
            "without the tile",
            (
                ("s_rows[x][place(x, y)]", "rows[first + 8 * x + y]"),
                ("    s_rows[y][place(y, x)] = rows[first + 8 * y + x];\n", ""),
            ),
            "goal",
            ("put back", "s_rows"),
        ),
    ),
    "09_paths": (
        Wrong("half a swizzle", (("row % 8", "row % 4"),), "goal", ("shared load bank conflicts",)),
        Wrong(
            "no swizzle", (("chunk ^ (row % 8)", "chunk"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "V is read as if it were not swizzled",
            ((_PLACE_V, "s_V + 64 * (16 * k + lane % 16) + 8 * (j + lane / 16)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "O is written as if it were not swizzled",
            ((_PLACE_O, "s_P + 64 * row + 8 * j + 2 * (lane % 4)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "the offset is swizzled too",
            ((_PLACE_O, "s_P + place(row, j + lane % 4)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "the whole row",
            (("chunk ^ (row % 8)", "chunk ^ row"),),
            "right",
            ("out-of-bounds", "s_V"),
        ),
        Wrong(
            "O past its tile",
            (
                (
                    "*to = pair;",
                    "if (first + row < m)\n"
                    "*(unsigned*)(O + (first + row) * 64 + 8 * j + 2 * (lane % 4)) = pair;",
                ),
                ("        if (first + row < m) {", "        if (false) {"),
            ),
            "goal",
            ("global store sectors",),
        ),
    ),
}

TRIALS = {
    "09_flash_swizzled.cu": flash,
    "09_toy_swizzle.cu": by_entry(
        turn=turns(
            ("float", 8, "XOR"), ("float", 8, "LATIN"), ("float", 8, "NONE"), ("float4", 32, "XOR"),
            ("float", 32, "LATIN"), ("float4", 8, "LATIN"), ("float", 4, "XOR"),
        ),
        others=phases(3, 8, 1),
    ),
}  # fmt: skip

REASONS = (
    Reason(
        r"09_flash_swizzled\.cu",
        "place",
        r".*swizzle\(row, chunk\);  ->  .*swizzle\(row \+ 1, chunk\);",
        "Every path asks the same function, and eight neighbouring rows still have the eight "
        "different permutations, each one row earlier.",
    ),
)
