"""Whether what a kernel wrote is right: compared with float64, and if it is not, where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .attention import relative_error

# An element is wrong on its own where it is further off than this many tolerances of the largest
# element: rounding errors of long sums differ from one element to the next, faults are far larger.
_ELEMENT = 16


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
                f" {self.array}[{index}] is {_short(self.got)} in place of {_short(self.expected)}."
            )
        return "".join(parts)

    def _place(self) -> str:
        axes = ("row", "column") if len(self.where) == 2 else ("index",) * len(self.where)
        spans = []
        for axis, (first, last) in zip(axes, self.where, strict=True):
            plural = {"index": "indices"}.get(axis, f"{axis}s")
            spans.append(f"{axis} {first}" if first == last else f"{plural} {first} to {last}")
        return "in " + " and ".join(spans)


def poison(array: np.ndarray) -> None:
    """Fill an array with what no kernel writes: NaN, or the smallest integer."""
    if array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).min if array.dtype.kind == "i" else 0xA5)


def compare(name: str, result: np.ndarray, expected: np.ndarray, tolerance: float) -> Check:
    """Compare `result` with `expected` of the same shape.

    Raises:
        ValueError: the shapes differ, or there are no elements.
    """
    error = relative_error(result, expected)
    got, want = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    unwritten = np.isnan(got) & ~np.isnan(want)
    limit = _ELEMENT * tolerance * float(np.abs(want).max())
    with np.errstate(invalid="ignore"):
        distance = np.where(np.isfinite(got), np.abs(got - want), np.inf)
    wrong = distance > limit
    right = error <= tolerance and not wrong.any()
    where = worst = ()
    if wrong.any():
        where = tuple((int(axis.min()), int(axis.max())) for axis in np.nonzero(wrong))
        worst = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))
    return Check(
        name,
        bool(right),
        float(error),
        float(tolerance),
        int(wrong.sum()),
        int(unwritten.sum()),
        int(got.size),
        where,
        worst,
        float(got[worst]) if worst else 0.0,
        float(want[worst]) if worst else 0.0,
    )


def power(value: float) -> str:
    """A small number as one writes it: 3.3e-7."""
    if not value or not np.isfinite(value):
        return f"{value:g}"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def _short(value: float) -> str:
    return f"{value:.4g}"
