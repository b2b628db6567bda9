"""What a kernel did at each case, beside what known mistakes do: which of them it is."""

import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..kernels.kernel import Kernel
from ..kernels.source import KernelError
from ..panels.difference import ELEMENT, Difference, difference
from ..problem.poison import poisoned
from ..simulator.compile.source_text import mask
from ..simulator.errors import SimulatorError
from .answer import Refused, kernel_of, kernel_of_solution
from .spec import Case, Exercise, Misconception
from .trial import given, most_steps, simulate

_NUMBER = re.compile(r"\blines? \d+(?: and \d+)?")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_AFRESH = 4  # tolerances that two kernels of one mistake may differ by in rounding


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What a kernel does at a case.

    Attributes:
        case: the case.
        arrays: what it has written, by name; empty if something stopped it.
        error: what stopped it, without numbers of lines; or empty.
        right: whether all outputs are right.
    """

    case: Case
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    error: str = ""
    right: bool = False


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mistake that may be the one: what is said of it, and what gives its results.

    Attributes:
        sentence: what is confused with what.
        text: a kernel that makes the mistake; or empty.
        results: NumPy functions that do, where there is no text.
    """

    sentence: str
    text: str = ""
    results: Mapping | None = None

    @classmethod
    def of(cls, wrong: Misconception, solution: str) -> "Candidate":
        """A misconception of an exercise."""
        text = wrong.text(solution) if wrong.changes else ""
        return cls(wrong.sentence, text, wrong.results)


def behaviour(
    exercise: Exercise, text: str, case: Case, kernel: Kernel | None = None, sanitize: bool = False
) -> Behaviour:
    """Run a text at a case, all threads together; whatever stops it is its behaviour.

    Args:
        kernel: the text's kernel at the case, if it is there already.
        sanitize: whether a race counts as an error.
    """
    try:
        kernel = kernel or kernel_of(exercise, text, case)
        steps = most_steps(exercise, tuple(case.items()))
        outcome = simulate(
            exercise, case, kernel, quiet=True, count=False, sanitize=sanitize, max_steps=steps
        )
    except (SimulatorError, KernelError, Refused) as error:
        return Behaviour(case, error=_fault(error))
    if sanitize and outcome.report.findings:
        return Behaviour(case, outcome.arrays, error=str(outcome.report.findings[0]))
    return Behaviour(case, outcome.arrays, right=outcome.wrong is None)


def _fault(error: Exception) -> str:
    said = re.sub(r"(?<=\w)__\d+(?=[,:])", "", str(error).split("\n")[0])
    said = re.sub(r"after [\d,]+ instructions", "", said)
    return _NUMBER.sub("", said)


def fits(
    exercise: Exercise,
    candidate: Candidate,
    seen: list[Behaviour],
    kernel: Kernel | None = None,
    only: str = "",
) -> bool:
    """Whether a mistake does at every case what was seen, and gives a wrong result somewhere.

    Args:
        seen: what the answer did, at one case that went wrong or more.
        kernel: the candidate's kernel at the first case, if it is there already.
        only: the output that is looked at, if it is one of several.
    """
    kernels = [kernel, *[None] * len(seen)]
    return any(not one.right for one in seen) and all(
        _does(exercise, candidate, one, k, only) for one, k in zip(seen, kernels, strict=False)
    )


def _does(
    exercise: Exercise, candidate: Candidate, seen: Behaviour, kernel: Kernel | None, only: str
) -> bool:
    """Whether a mistake does at a case what was seen there."""
    arguments, want = given(exercise, seen.case)
    want = {name: array for name, array in want.items() if only in ("", name)}
    if candidate.text:
        its = _of_a_mistake(exercise, candidate.text, tuple(seen.case.items()), kernel)
        if seen.error or its.error:
            return bool(seen.error) and seen.error == its.error
        if its.right or seen.right:
            return its.right and seen.right
        arrays = its.arrays
    elif seen.error:
        return False
    else:
        with np.errstate(all="ignore"):
            arrays = {**want, **exercise.expected(arguments, candidate.results)}
        if all(_alike(arrays[n], want[n], want[n], exercise.tolerance) for n in want):
            return seen.right
    return all(
        _alike(seen.arrays[name], arrays[name], want[name], _AFRESH * exercise.tolerance)
        for name in want
    )


@functools.lru_cache(maxsize=256)  # one answer after another is held against the same mistakes
def _of_a_mistake(exercise: Exercise, text: str, case: tuple, kernel: Kernel | None) -> Behaviour:
    """What a mistake does at a case; nobody changes its arrays."""
    return behaviour(exercise, text, dict(case), kernel)


def _alike(got: np.ndarray, other: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    """Whether two wrong arrays are the same up to rounding, NaN, infinities and gaps included."""
    other = np.asarray(other)
    if got.shape != other.shape:
        return False
    if got.dtype == other.dtype and (poisoned(got) != poisoned(other)).any():
        return False
    finite = np.abs(want[np.isfinite(want)])
    a, b = got.astype(np.float64), other.astype(np.float64)
    limit = ELEMENT * tolerance * np.maximum(np.abs(b), finite.max(initial=0.0))
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit)
    return bool((same & (np.isfinite(a) == np.isfinite(b))).all())


def root_of_d(exercise: Exercise, wrong: Difference, seen: list[Behaviour]) -> bool:
    """Whether a factor is 1/√d or √d at every case that went wrong, and these differ in d."""
    sizes = set()
    for one in seen:
        if one.right:
            continue
        known = kernel_of_solution(exercise, tuple(one.case.items())).parameters
        d = one.case.get("d", known["HEAD_DIM"].value if "HEAD_DIM" in known else None)
        if one.error or d is None:
            return False
        want = given(exercise, one.case)[1][wrong.name]
        other = difference(one.arrays[wrong.name], want, exercise.tolerance, name=wrong.name)
        if other is None or f"if d = {d})" not in other.pattern:
            return False
        sizes.add(d)
    return len(sizes) > 1


def tokens(text: str) -> list[str]:
    """The words and signs of a source text, comments apart."""
    return _TOKEN.findall(mask(text))


def distance(one: str, other: str) -> int:
    """How far apart two source texts are: 0 if they are the same but for blanks and comments."""
    a, b = one.split("\n"), other.split("\n")
    # Rows that both begin or end with are not looked at: most texts differ in one.
    above = _alike_rows(a, b)
    a, b = a[above:], b[above:]
    below = _alike_rows(a[::-1], b[::-1])
    first, second = _lines(a[: len(a) - below]), _lines(b[: len(b) - below])
    a, b = _grams(first - second), _grams(second - first)
    return sum(abs(a[gram] - b[gram]) for gram in a.keys() | b.keys())


def _alike_rows(a: list[str], b: list[str]) -> int:
    """How many rows at the beginning of both are the same."""
    different = (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(different, min(len(a), len(b)))


def _lines(rows: list[str]) -> Counter:
    return Counter(" ".join(row.partition("//")[0].split()) for row in rows)


def _grams(lines: Counter) -> Counter:
    """Neighbouring words and signs, three at a time."""
    found: Counter = Counter()
    for line, times in lines.items():
        for gram in _grams_of(line):
            found[gram] += times
    return found


@functools.lru_cache(maxsize=1024)
def _grams_of(line: str) -> tuple[tuple[str, ...], ...]:
    words = ["", *_TOKEN.findall(line), ""]
    return tuple(zip(words, words[1:], words[2:], strict=False))
