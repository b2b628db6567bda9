"""Whether what a kernel wrote is right: compared with float64, and if it is not, where."""

from dataclasses import dataclass

import numpy as np

from ..panels.difference import difference
from ..panels.numbers import power, short
from ..problem.attention import relative_error

# Patterns that rows and columns do not tell already.
_TELLING = (
    "transposed", "transposed tiles", "swapped tiles", "factor", "factor of each line", "offset",
    "shifted", "zeros", "nan", "nan rows", "infinite", "unmasked", "every k-th", "triangle",
    "first block right",
)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """How far an array is from what it should hold.

    Attributes:
        array: its name.
        right: whether it is within the tolerance, as a whole and in each element.
        error: relative error, Frobenius norms; infinite with a NaN in the array.
        tolerance: the largest that is right.
        wrong: elements that are wrong by themselves.
        unwritten: those of them that still are what they were poisoned with.
        total: all elements.
        where: first and last index of the wrong ones along each axis.
        worst: index of the element furthest off, or of the first that is unwritten.
        got, expected: what it holds there, and should.
        pattern: what they have in common, a clause; empty if the place says it all.
    """

    array: str
    right: bool
    error: float
    tolerance: float
    wrong: int
    unwritten: int
    total: int
    where: tuple[tuple[int, int], ...] = ()
    worst: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    pattern: str = ""

    def __str__(self) -> str:
        """One sentence, or two where it is wrong."""
        if self.right:
            return (
                f"The relative error of {self.array} against float64 is {power(self.error)}, and "
                f"up to {power(self.tolerance)} is rounding."
            )
        if not self.wrong:
            return (
                f"{self.array} is not exact enough: its relative error against float64 is "
                f"{power(self.error)}, and only up to {power(self.tolerance)} is rounding."
            )
        parts = [f"{self.wrong:,} of {self.total:,} elements of {self.array} are wrong"]
        if self.unwritten == self.wrong:
            parts = [
                f"{self.wrong:,} of {self.total:,} elements of {self.array} were never written"
            ]
        elif self.unwritten:
            parts.append(f" ({self.unwritten:,} of them were never written)")
        parts.append(f", {self._place()}.")
        index = ", ".join(map(str, self.worst))
        if self.unwritten != self.wrong:
            parts.append(
                f" {self.array}[{index}] is {short(self.got)} in place of {short(self.expected)}."
            )
        if self.pattern:
            parts.append(f" {self.pattern[0].upper()}{self.pattern[1:]}.")
        return "".join(parts)

    def _place(self) -> str:
        axes = ("row", "column") if len(self.where) == 2 else ("index",) * len(self.where)
        spans = []
        for axis, (first, last) in zip(axes, self.where, strict=True):
            plural = {"index": "indices"}.get(axis, f"{axis}s")
            spans.append(f"{axis} {first}" if first == last else f"{plural} {first} to {last}")
        return "in " + " and ".join(spans)


def compare(name: str, result: np.ndarray, expected: np.ndarray, tolerance: float) -> Check:
    """Compare `result` with `expected` of the same shape.

    Raises:
        ValueError: the shapes differ, or there are no elements.
    """
    error = relative_error(result, expected)
    found = difference(result, expected, tolerance, name)
    if found is None:
        return Check(name, True, error, tolerance, 0, 0, result.size)
    worst = () if not found.wrong else found.at if found.far else found.first
    return Check(
        name,
        False,
        found.error,
        tolerance,
        found.wrong,
        found.unwritten,
        found.total,
        found.where,
        worst,
        float(result[worst]) if worst else 0.0,
        float(expected[worst]) if worst else 0.0,
        found.pattern if found.kind in _TELLING else "",
    )
