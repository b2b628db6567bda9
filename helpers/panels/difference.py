"""Where and how a result differs from what it should be, in words that lead to the fault."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..problem.attention import on_host
from ..problem.poison import poisoned
from .numbers import power, short, size
from .panel import Panel
from .places import Found, place
from .values import value

# An element is wrong on its own where it is further off than this many tolerances of the largest
# element: rounding errors of long sums differ from one element to the next, faults are far larger.
ELEMENT = 16

_SPECIFIC = ("everywhere", "scattered")  # places that say less than what the elements hold
_ADVICE = {
    "shape": "Give the kernel an array of the right shape.",
    "imprecise": "Sum in float32 or wider, and look for a function that is only approximate.",
    "unwritten": "Check that the kernel stores its result, and that the grid covers the array.",
    "nan": "Look for 0/0, ∞ − ∞ or memory that was read before anything was stored in it.",
    "nan rows": "Look at what a row divides by, and at a row whose elements are all −∞: its "
    "largest element cannot be subtracted.",
    "infinite": "Look for exp() of a large number (subtract the row's largest first) or a "
    "division by 0.",
    "zeros": "Check that the sum is stored after its last term, and to the right place.",
    "row": "Check the guards and the row's index.",
    "column": "Check the guards and the column's index.",
    "one element": "Check the first and the last index of the loops.",
    "last tile": "The last tile is narrower than the others: check its guards (row < N, "
    "column < d), that the grid is rounded up, and that loads beyond the end put 0 in their place.",
    "last": "Check that the grid is rounded up and that loops run to the end.",
    "first": "Check how the index uses blockIdx, and that the grid covers the array.",
    "every k-th": "Check the stride of the loop over the elements of a thread, and how an index "
    "is split with / and %.",
    "transposed": "Exchange the two indices of the store, or those of the operand that is read "
    "the wrong way round.",
    "transposed tiles": "threadIdx.x and threadIdx.y are exchanged on the way into or out of the "
    "tile; the block's place is right.",
    "swapped tiles": "blockIdx.x and blockIdx.y are exchanged; the place within the tile is right.",
    "factor": "Look for a scale that is missing or applied twice.",
    "factor of each line": "Check the division by the row's sum, and how the sum is rescaled when "
    "the largest element changes.",
    "offset": "Look for a term that is added twice or left out.",
    "shifted": "An index is off by one: look for <= in place of <, and for + 1 or − 1.",
    "unmasked": "Check that the mask is applied before the largest element and the sum are taken.",
    "diagonal": "Check the case of equal indices, in a mask for example.",
    "triangle": "Check the direction of the comparison in the mask.",
    "scattered": "Results without a pattern point to a race: look for a missing __syncthreads(), "
    "or run on the simulator with sanitize=True.",
    "everywhere": "Compute one element by hand and compare what each step gives.",
}


@dataclass(frozen=True)
class Difference:
    """How a result differs from what it should be.

    Attributes:
        name: the array's name.
        kind: the pattern's name: `unwritten`, `nan`, `nan rows`, `infinite`, `row`, `rows`,
            `column`, `columns`, `one element`, `last tile`, `last rows`, `first block right`,
            `every k-th`, `transposed`, `transposed tiles`, `swapped tiles`, `factor`,
            `factor of each line`, `offset`, `shifted`, `zeros`, `unmasked`, `one tile`, `triangle`,
            `scattered`, `everywhere`, `imprecise`, `shape` and a few more.
        pattern: the pattern in words.
        wrong, unwritten, total: how many elements are wrong, how many of them were never written,
            and how many there are.
        first: index of the first wrong element; got, expected: what it holds, and should.
        error: relative error, Frobenius norms, as `helpers.problem.attention.relative_error`;
            infinite with a NaN or an infinity that should not be there.
        tolerance: the largest relative error that is rounding.
        largest: the largest absolute error among finite elements; at: its index; far: whether that
            element is wrong.
        where: first and last index of the wrong elements along each axis.
    """

    name: str
    kind: str
    pattern: str
    wrong: int
    unwritten: int
    total: int
    first: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    error: float = 0.0
    tolerance: float = 0.0
    largest: float = 0.0
    at: tuple[int, ...] = ()
    far: bool = False
    where: tuple[tuple[int, int], ...] = ()

    @property
    def count(self) -> str:
        """How many elements are wrong, as the start of a sentence."""
        if self.kind == "shape":
            return f"{self.name} has the wrong shape"
        if self.kind == "imprecise":
            return f"{self.name} is not exact enough"
        what = "elements" if self.total != 1 else "element"
        if self.wrong == self.unwritten:
            verb = "was never written" if self.wrong == 1 else "were never written"
        else:
            verb = "is wrong" if self.wrong == 1 else "are wrong"
        if self.wrong == self.total > 1:
            return f"All {self.total:,} elements of {self.name} {verb}"
        return f"{self.wrong:,} of {self.total:,} {what} of {self.name} {verb}"

    @property
    def how_far(self) -> str:
        """The first wrong element, and how far off the array is."""
        if self.kind == "shape":
            return ""
        error = (
            f"The relative error against float64 is {size(self.error)}, and only up to "
            f"{power(self.tolerance)} is rounding"
        )
        if not self.wrong:
            return f"{error}."
        parts = []
        if self.wrong != self.unwritten:
            parts.append(
                f"{self.name}{_index(self.first)} is {short(self.got)} in place of "
                f"{short(self.expected)}."
            )
        if np.isfinite(self.error):
            parts.append(f"{error}; {self.name}{_index(self.at)} is furthest off, by "
                         f"{short(self.largest)}.")  # fmt: skip
        elif self.far:
            parts.append(f"Of the finite ones {self.name}{_index(self.at)} is furthest off, by "
                         f"{short(self.largest)}.")  # fmt: skip
        return " ".join(parts)

    @property
    def sentence(self) -> str:
        """All in a few sentences: how many, which pattern, how far."""
        return " ".join(filter(None, [f"{self.count}: {self.pattern}.", self.how_far]))

    @property
    def advice(self) -> str:
        """What to look for in the kernel."""
        for kind in (self.kind, self.kind.split()[0]):
            if kind in _ADVICE:
                return _ADVICE[kind]
        return _ADVICE["everywhere"] if self.wrong == self.total else "Check the indices there."

    def panel(self) -> Panel:
        """The same to look at, with what to look for in the kernel."""
        said = (f"{self.count}: {self.pattern}.", self.how_far)
        return Panel(f"{self.name} is wrong", tuple(filter(None, said)), self.advice)

    def __str__(self) -> str:
        return self.sentence


def difference(
    actual,
    expected,
    tolerance: float,
    name: str = "S",
    tile: int | Sequence[int] | None = None,
) -> Difference | None:
    """Compare a result with what it should be; None if it is right.

    It is right if its relative error is within the tolerance and no element is further off than
    16 tolerances of the largest one. A NaN or an infinity is right where it is expected.

    Args:
        actual: the result, NumPy or device. What it was filled with before (see `poison`) counts
            as never written.
        expected: what it should be, of the same shape; exact, such as float64.
        tolerance: relative error that is rounding.
        name: what the array is called.
        tile: edge of the kernel's tiles, one for all axes or one each.

    Raises:
        ValueError: there are no elements, or the tolerance or tile is no positive number.
    """
    actual, expected = on_host(actual), on_host(expected)
    edges = _edges(tile, actual.ndim)
    if not tolerance > 0:
        raise ValueError(f"The tolerance is a relative error above 0, not {tolerance!r}.")
    if actual.shape != expected.shape:
        said = f"it is {_shape(actual.shape)}, and {_shape(expected.shape)} is expected"
        return Difference(name, "shape", said, 0, 0, actual.size, tolerance=tolerance)
    if not actual.size:
        raise ValueError(f"{name} has no elements to compare.")
    actual, expected = np.atleast_1d(actual, expected)
    return _compared(name, actual, expected.astype(np.float64), float(tolerance), edges)


def _compared(name: str, actual, want, tolerance: float, edges) -> Difference | None:
    """The same of arrays of one shape."""
    got = actual.astype(np.float64)
    distance = _distances(got, want)
    finite = want[np.isfinite(want)]
    limit = ELEMENT * tolerance * float(np.abs(finite).max(initial=0.0))
    wrong, error = distance > limit, _relative(distance, finite)
    if not wrong.any() and error <= tolerance:
        return None
    measured = np.where(np.isfinite(distance), distance, -1.0)
    at = _position(measured.argmax(), got.shape)
    far = Difference(
        name,
        "imprecise",
        "every element is a little off, more than rounding would be",
        0,
        0,
        got.size,
        error=error,
        tolerance=tolerance,
        largest=max(float(measured[at]), 0.0),
        at=at,
        far=bool(measured[at] > limit),
    )
    if not wrong.any():
        return far
    unwritten = wrong & poisoned(actual)
    found = _pattern(got, want, wrong, unwritten, limit, edges)
    first = _position(wrong.argmax(), got.shape)
    return replace(
        far,
        kind=found.kind,
        pattern=found.words,
        wrong=int(wrong.sum()),
        unwritten=int(unwritten.sum()),
        first=first,
        got=float(got[first]),
        expected=_as_stored(want[first], actual.dtype),
        where=tuple((int(axis.min()), int(axis.max())) for axis in np.nonzero(wrong)),
    )


def _distances(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How far off each element is: 0 for a NaN or an infinity that should be there."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got - want)
    distance[(got == want) | (np.isnan(got) & np.isnan(want))] = 0.0
    distance[np.isnan(distance)] = np.inf
    return distance


def _pattern(got, want, wrong, unwritten, limit, edges) -> Found:
    """What is known of place and contents in one clause, named after what says more."""
    here = place(wrong, edges)
    with np.errstate(all="ignore"):
        holds = value(got, want, wrong, unwritten, limit, edges)
    if holds is None:
        return here
    if holds.kind in ("transposed", "transposed tiles", "swapped tiles", "shifted"):
        return holds
    if unwritten.all():
        return Found("unwritten", "they still hold what was there before the kernel ran")
    if holds.kind == "nan" and wrong.all():
        return Found("nan", "every one of them is NaN")
    if holds.kind == "nan" and here.kind in ("row", "rows"):
        return Found("nan rows", f"{here.words}, and {holds.words}")
    if unwritten[wrong].all():
        return here  # that they were never written is said of their number
    if here.kind == "everywhere":
        return holds
    words = f"{here.words}, and {holds.words}"
    if here.kind in _SPECIFIC and holds.kind != "mixed":
        return Found(holds.kind, words)
    return Found(here.kind, words)


def _as_stored(value: np.float64, dtype: np.dtype) -> float:
    """A number as an array of that type holds it: 0 where it is too small for it."""
    if dtype.kind != "f":
        return float(value)
    with np.errstate(over="ignore", under="ignore"):
        stored = float(np.asarray(value).astype(dtype))
    return stored if np.isfinite(stored) else float(value)


def _relative(distance: np.ndarray, want: np.ndarray) -> float:
    """‖result − expected‖ / ‖expected‖ over what is finite; infinite if a NaN is amiss."""
    if not np.isfinite(distance).all():
        return float("inf")
    deviation, scale = float(np.linalg.norm(distance)), float(np.linalg.norm(want))
    if not scale:
        return float("inf") if deviation else 0.0
    return deviation / scale


def _edges(tile, ndim: int) -> tuple[int, ...] | None:
    if tile is None:
        return None
    several = isinstance(tile, (tuple, list)) and tile
    edges = tuple(tile) if several else (tile,) * max(ndim, 1)
    if len(edges) < ndim:  # of matrices in a stack
        edges = (1,) * (ndim - len(edges)) + edges
    if not all(isinstance(e, (int, np.integer)) and e > 0 for e in edges):
        raise ValueError(f"tile is the edge of a tile, or one for each axis, not {tile!r}.")
    return tuple(int(e) for e in edges[len(edges) - max(ndim, 1) :])


def _position(flat, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(flat), shape))


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "a single number"
