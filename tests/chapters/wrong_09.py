"""Chapter 09, swizzles: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.survivors import Reason
from mutants.targets import by_entry, flash, phases, turns

_NARROW = "chunk ^ (row / 2 % 4)"
_TEN = "chunk ^ (row / 4 % 2)"
_PAIR = "place(row, j) / 2 + lane % 4"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "09_narrow": (
        Wrong(
            "the map for 8 chunks",
            ((_NARROW, "chunk ^ (row % 8)"),),
            "right",
            ("leaves the row", "only two bits"),
        ),
        Wrong("a product", ((_NARROW, "row * chunk % 4"),), "right", ("not one to one",)),
        Wrong("one place", ((_NARROW, "row / 2 % 4"),), "right", ("share one place",)),
        Wrong(
            "rows in place of pairs",
            ((_NARROW, "chunk ^ (row % 4)"),),
            "goal",
            ("shared load bank conflicts", "Two rows fill the banks"),
        ),
        Wrong(
            "two bits where one is right",
            ((_NARROW, "chunk ^ (row / 4 % 4)"),),
            "goal",
            ("shared load bank conflicts", "Two rows fill the banks"),
        ),
        Wrong(
            "all rows alike",
            ((_NARROW, "chunk ^ 1"),),
            "goal",
            ("shared load bank conflicts", "Two rows fill the banks"),
        ),
        Wrong(
            "padding",
            (
                ("half s_Q[16 * HEAD_DIM]", "half s_Q[16 * (HEAD_DIM + 8)]"),
                ("half s_K[16 * HEAD_DIM]", "half s_K[16 * (HEAD_DIM + 8)]"),
                ("return HEAD_DIM * row", "return (HEAD_DIM + 8) * row"),
                (_NARROW, "chunk"),
            ),
            "goal",
            ("bytes of shared memory",),
        ),
    ),
    "09_repair": (
        Wrong(
            "a place that is not halved, in brackets of one's own",
            (
                ("chunk ^ (row / 4 % 2)", "chunk ^ row / 4 % 2"),
                ("place(row, j) / 2 + lane % 4", "place(row, j) + lane % 4"),
            ),
            "right",
            ("`pair` is the number of a pair",),
        ),
        Wrong(
            "only the store", ((f"    where = {_TEN};\n", ""),), "right", ("the one for 16 chunks",)
        ),
        Wrong(
            "the map for rows of 4",
            ((_TEN, "chunk ^ (row / 2 % 4)"),),
            "right",
            ("leaves the row", "Two bits"),
        ),
        Wrong(
            "a remainder of 8",
            ((_TEN, "(chunk + row) % 8"),),
            "right",
            ("Two chunks of a row share a place",),
        ),
        Wrong("only the map", ((_PAIR, "pair"),), "right", ("does not go through the map",)),
        Wrong(
            "the lane is swizzled too",
            ((_PAIR, "place(row, j + lane % 4) / 2"),),
            "right",
            ("as if it were a chunk",),
        ),
        Wrong(
            "elements for pairs",
            ((_PAIR, "place(row, j) + lane % 4"),),
            "right",
            ("Elements are taken for pairs",),
        ),
        Wrong(
            "no swizzle",
            ((_TEN, "chunk"),),
            "goal",
            ("shared load bank conflicts", "Ten chunks are two more than once around"),
        ),
        Wrong(
            "odd rows swap",
            ((_TEN, "chunk ^ (row % 2)"),),
            "goal",
            ("shared load bank conflicts", "Ten chunks are two more than once around"),
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
