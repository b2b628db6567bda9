"""Chapter 00, the first kernels: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.targets import matrix_sums, vector_sums

_GUARD = "if (i < n - 1)"
_LOOP = "for (int i = first; i < n; i += step)"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "00_differences": (
        Wrong(
            "the guard of the sum", ((_GUARD, "if (i < n)"),), "right", ("out-of-bounds", "a[100]")
        ),
        Wrong("no guard", ((f"{_GUARD} ", ""),), "right", ("out-of-bounds", "guard")),
        Wrong("one difference too few", ((_GUARD, "if (i < n - 2)"),), "right", ("never written",)),
        Wrong(
            "neighbours exchanged",
            (("a[i + 1] - a[i]", "a[i] - a[i + 1]"),),
            "right",
            ("The two neighbours are exchanged",),
        ),
        Wrong(
            "added",
            (("a[i + 1] - a[i]", "a[i] + a[i + 1]"),),
            "right",
            ("The neighbours are added",),
        ),
        Wrong(
            "the place in the block",
            (("a[i + 1] - a[i]", "a[threadIdx.x + 1] - a[threadIdx.x]"),),
            "right",
            ("Every block reads the elements of block 0",),
        ),
        Wrong(
            "the neighbour before",
            ((_GUARD, "if (i > 0 && i < n - 1)"), ("a[i + 1] - a[i]", "a[i] - a[i - 1]")),
            "right",
            ("The neighbour before was taken",),
        ),
        Wrong(
            "differences of indices",
            (("a[i + 1] - a[i]", "(i + 1) - i"),),
            "right",
            ("Indices were subtracted",),
        ),
    ),
    "00_few_threads": (
        Wrong(
            "one element each",
            ((f"{_LOOP} b[i] = a[i] * a[i]", "if (first < n) b[first] = a[first] * a[first]"),),
            "right",
            ("Each thread takes one element only",),
        ),
        Wrong("one too far", (("i < n;", "i <= n;"),), "right", ("out-of-bounds", "a[500]")),
        Wrong(
            "both blocks alike",
            (("int i = first;", "int i = threadIdx.x;"),),
            "right",
            ("Both blocks start at the same elements",),
        ),
        Wrong(
            "all to the first place",
            (("b[i] =", "b[first] ="),),
            "right",
            ("A thread writes all of its results to its first place",),
        ),
        Wrong(
            "the index",
            (("= a[i] * a[i]", "= i * i"),),
            "right",
            ("The index was squared",),
        ),
        Wrong(
            "a step of a block",
            (("gridDim.x * blockDim.x;", "blockDim.x;"),),
            "no race",
            ("race on b",),
        ),
        Wrong(
            "pieces side by side",
            (
                ("= gridDim.x * blockDim.x;", "= (n + 127) / 128;"),
                (_LOOP, "for (int i = first * step; i < n && i < first * step + step; i++)"),
            ),
            "goal",
            ("lie far apart",),
        ),
    ),
}

TRIALS = {"00_vector_add.cu": vector_sums, "00_matrix_add.cu": matrix_sums}
