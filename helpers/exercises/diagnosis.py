"""Why a result is wrong: what is sure in the text, or a mistake that gives the same result.

The exercise's own misconceptions come first, then small changes of the solution and of the answer
(see `first_order`). Nothing is said that is not borne out: a mistake fits at every case, wrong ones
and right ones, or a change of the answer puts it right at every case.
"""

import difflib
import functools
import itertools
import re
import time
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel
from ..panels.difference import ELEMENT
from ..problem.poison import poisoned
from ..simulator.compile.source_text import line_of, mask
from .answer import body, declared, kernel_of_solution
from .comparing import Behaviour, Candidate, behaviour, distance, fits, tokens
from .small_changes.first_order import Change, changes
from .small_changes.naming import OTHERWISE, of_group
from .small_changes.repairs import repairs
from .small_changes.statements import statements
from .small_changes.toward import (
    Piece,
    groups,
    meet,
    names_of_its_own,
    pieces,
    put_in,
    same,
    unused_then,
)
from .spec import Exercise
from .trial import given
from .variants import compiled

_NUMBERS = 4  # that are wrong, from which on they tell one mistake from others
_WORK = 40_000  # instructions of kernels that are tried at most, all together
_LEAST, _LARGEST = 64, 160  # kernels that are tried, at least and at most
_SECONDS = 1.2  # of the processor, after which no more are tried
_NEAREST = 32  # changes that are tried before all others
_AT_EDGES = re.compile(r"[Gg]uard|ondition|omparison|loop|look at|one too|unit|depend|missing")
_NO_GUARD = re.compile(r"guard is missing|does not look at|one end only")
_SURE = re.compile(
    "Only lane 0|wait counts groups|nothing is stored: there"
)  # few, and looked at first
_FACTORS = re.compile(r"factor|division|root|Multiplication|number|function")
_ABOUT = {
    "out-of-bounds": _AT_EDGES,
    "not a multiple": re.compile(r"unit|number|factor|term"),
}
_SIZE_T = re.compile(r"size_t\b(?<!\wsize_t)")  # a word; begins as it is, and is soon found
_NO_BRACKETS = str.maketrans("()", "  ")
_EVEN = 1e-3  # that factors of one number may differ by
_ABOVE = 3  # lines above, at most, in which a condition may hold for the lines below
_PLACE = 32  # words and signs, at most, that are told as the place of a mistake
_AT_ONCE = 16  # that are compiled together
_LIKE = 0.6  # of two lines, from which on one is taken for the other's place


@dataclass(frozen=True)
class Diagnosis:
    """What is said of a wrong result.

    Attributes:
        said: the mistake; empty if no more is known than where it is.
        lines: numbers of the lines of the answer that it is about.
        exact: whether these lines are the very text of the mistake.
        pieces: that were put in, or that a known mistake is about.
    """

    said: str
    lines: tuple[int, ...]
    exact: bool = False
    pieces: tuple[Piece, ...] = ()


def unfilled(exercise: Exercise, text: str) -> bool:
    """Whether nothing is filled in yet, whatever comments and blanks are there."""
    return tokens(body(text)) == tokens(exercise.skeleton)


def named(exercise: Exercise, text: str, seen: list[Behaviour]) -> Diagnosis | None:
    """The misconception of the exercise that gives what was seen.

    If several do, it is the only one that is about lines which are not as in the solution.

    Args:
        text: the answer.
        seen: what it does at the cases, the wrong ones first.
    """
    text = whole(text)
    found, same_text = _written(exercise, text, seen)
    if len(found) > 1:
        rows, solved = _rows(text), _rows(exercise.solution)
        found = [one for one in found if any(rows[n - 1] not in solved for n in one[1])]
    if len(found) != 1:
        return None
    said, lines, changed = found[0]
    if same_text:
        return Diagnosis(said, tuple(lines), True)
    small = _runs(kernel_of_solution(exercise, tuple(exercise.cases[0].items()))) == _LARGEST
    place = mended(exercise, text, seen, rules=small)
    near = changed and 2 * distance(text, changed) <= distance(text, exercise.solution)
    if place and place.said and changed and not near and len(place.pieces) == 1:
        if not meet(place.pieces, pieces(changed, exercise.solution)):
            return place  # another mistake that gives the same
    return Diagnosis(said, place.lines if place else lines if near else ())


def whole(text: str) -> str:
    """An answer with as many lines, the line that names its cell left empty."""
    return "\n" * (text != body(text)) + body(text)


def _written(
    exercise: Exercise, text: str, seen: list[Behaviour]
) -> tuple[list[tuple[str, list[int], str]], bool]:
    """Misconceptions that fit, with lines and text; and whether one is in the very text."""
    ranked = []
    for number, wrong in enumerate(exercise.misconceptions):
        candidate = Candidate.of(wrong, exercise.solution)
        apart = distance(text, candidate.text) if candidate.text else 1
        ranked.append((apart, number, candidate))
    ranked.sort(key=lambda one: one[:2])
    for _, _, candidate in ranked:
        if candidate.text and same(text, candidate.text) and fits(exercise, candidate, seen):
            lines = places(exercise.solution, candidate.text, text)
            return [(candidate.sentence, lines, candidate.text)], True
    if not any(_tells(exercise, one) for one in seen):  # the text has to be like it as well
        nearest = distance(text, exercise.solution) * max(_likeness(one) for one in seen)
        ranked = [one for one in ranked if one[2].text and one[0] <= nearest]
    kernels = _of_misconceptions(exercise, tuple(seen[0].case.items())) if ranked else {}
    found: dict[str, tuple[list[int], str]] = {}
    for _, _, candidate in ranked:
        if fits(exercise, candidate, seen, kernels.get(candidate.text)):
            lines = places(exercise.solution, candidate.text, text) if candidate.text else []
            found.setdefault(candidate.sentence, (lines, candidate.text))
    return [(said, *more) for said, more in found.items()], False


@functools.lru_cache(maxsize=32)
def _of_misconceptions(exercise: Exercise, case: tuple) -> dict[str, Kernel | None]:
    """The kernels of all misconceptions at a case, by text: the same for each answer."""
    candidates = (Candidate.of(wrong, exercise.solution) for wrong in exercise.misconceptions)
    texts = list(dict.fromkeys(one.text for one in candidates if one.text))
    return dict(zip(texts, compiled(exercise, texts, dict(case)), strict=True))


def _likeness(seen: Behaviour) -> float:
    """How far from an answer a mistake's text may be, by how much what was seen tells of it."""
    arrays = [] if seen.right else list(seen.arrays.values())
    finite = any((np.isfinite(a) & ~poisoned(a)).any() for a in arrays)
    nan = any((np.isnan(a) & ~poisoned(a)).any() for a in arrays)
    return 4 if finite and nan else 1 if finite else 0.25


def _tells(exercise: Exercise, seen: Behaviour) -> bool:
    """Whether a wrong result holds several wrong numbers, so that hardly two mistakes give it."""
    if seen.error or seen.right:
        return False
    numbers: set[float] = set()
    right = 0
    for name, want in given(exercise, seen.case)[1].items():
        got = seen.arrays[name]
        size = np.nan_to_num(np.abs(want), posinf=0)
        with np.errstate(invalid="ignore"):
            near = (got == want) | (np.abs(got - want) <= ELEMENT * exercise.tolerance * size)
        right += int(near.sum())
        numbers |= set(got[~near & np.isfinite(got) & ~poisoned(got)].tolist())
    return len(numbers) >= (1 if right > _NUMBERS else _NUMBERS)


def _words(exercise: Exercise) -> list[str]:
    """Names of sizes."""
    kernel = kernel_of_solution(exercise, tuple(exercise.cases[0].items()))
    return [a.name for a in kernel.arguments if not a.pointer] + list(declared(exercise))


def mended(
    exercise: Exercise,
    text: str,
    seen: list[Behaviour],
    rules: bool = True,
    at: Collection[int] = (),
) -> Diagnosis | None:
    """The small change of the answer that makes it right at every case, without a race.

    Pieces of the solution are put in first, and then what is likely in any kernel.

    Args:
        seen: what it does at the cases, the wrong ones first; all of them may be right, and then
            it has a race.
        rules: whether to look on where no piece of the solution does it.
        at: numbers of the lines at which something was seen to go wrong, if they are known.
    """
    text = whole(text)
    lines, words = own_lines(exercise, text), _words(exercise)
    ruled = _of_rules(exercise, text, lines, words, seen, at)
    known = {_plain(change.text): change.said for change in ruled if change.said}
    known.pop(_plain(text), None)
    about = {one.line: one for one in statements(text, range(1, text.count("\n") + 2), words)}
    runs = _runs(kernel_of_solution(exercise, tuple(exercise.cases[0].items())))
    alone, together = [], []
    rows = _rows(text)
    mapped = _map_lines(exercise, text)  # what is wrong there is told by `certain`
    found = [p for p in pieces(text, exercise.solution) if p.line not in mapped]
    own = names_of_its_own(text, exercise.solution)
    for group in groups(found):
        changed = put_in(text, group)
        unused = unused_then(own, text, changed)  # what sets it may be at fault as well
        others = len(found) - len(group)
        said = "" if unused else known.get(_plain(changed)) or of_group(group, about, others)
        at = unused | {_with_code(rows, p.line) for p in group}
        one = changed, Diagnosis(said, tuple(sorted(at)), pieces=group)
        near = others <= (2 if len(group) == 1 else 0)  # else an answer is written otherwise
        if any(p.new and own & set(p.old) for p in group):
            continue  # it would undo what the answer is about
        if said or (near and sum(p.size for p in group) <= _PLACE):
            weak = not said or " And: " in said or said == OTHERWISE
            (together if weak else alone).append(one)
    small = [
        (change.text, Diagnosis(change.said, change.lines))
        for change in ruled
        if rules and not mapped & set(change.lines)
    ]
    tried: dict[str, Diagnosis] = {}
    for changed, told in (*alone, *small):
        tried.setdefault(changed, told)
    left = list(tried)[:runs]
    begun = time.process_time()  # which other programs do not make longer
    for start in range(0, len(left), _AT_ONCE):
        if time.process_time() - begun > _SECONDS:
            break
        if good := _good(exercise, left[start : start + _AT_ONCE], seen):
            return tried[good]
    together.sort(key=lambda one: not one[1].said)
    last = dict(together[:_AT_ONCE])
    return last.get(_good(exercise, list(last), seen))


def _map_lines(exercise: Exercise, text: str) -> set[int]:
    """Numbers of the lines of the map of an exercise's tiles; a map may be right in many ways."""
    if exercise.place is None:
        return set()
    found = re.search(rf"\b{exercise.place.name}\s*\([^()]*\)\s*\{{.*?\n\}}", mask(text), re.DOTALL)
    return (
        set(range(line_of(text, found.start()), line_of(text, found.end()) + 1)) if found else set()
    )


def _with_code(rows: list[str], line: int) -> int:
    """A line; where it has a bracket alone, one above it that has more."""
    while line > 1 and not re.search(r"\w", rows[line - 1]):
        line -= 1
    return line


def _of_rules(
    exercise: Exercise, text: str, lines, words, seen: list[Behaviour], at: Collection[int]
) -> list[Change]:
    """Small changes of an answer, the likelier first.

    Where something went wrong is looked at first, and what was seen tells what to look for: edges
    if an array was left, units if an access is not aligned, factors if all is wrong by one.
    """
    few, many = changes(text, lines, words)
    for some in (few, many):
        some.sort(key=lambda change: distance(change.text, exercise.solution))
    likely, later = repairs(text, lines, words)
    later.sort(key=lambda change: distance(change.text, exercise.solution))
    mixed = itertools.zip_longest(many, later)
    found = [*few[:_NEAREST], *likely, *few[_NEAREST:], *(c for two in mixed for c in two if c)]
    near = _near(text, lines, at)
    about = next((a for word, a in _ABOUT.items() if any(word in one.error for one in seen)), None)
    if about is None and _by_a_factor(exercise, seen[0]):
        about = _FACTORS
    first = (about or _NO_GUARD).search

    def rank(change: Change) -> tuple[bool, bool, bool]:
        return (
            not _SURE.search(change.said),
            not near & set(change.lines),
            bool(first(change.said)) == (about is None),
        )

    return sorted(found, key=rank)


def _near(text: str, lines: Collection[int], at: Collection[int]) -> set[int]:
    """Those of a student's lines at which something went wrong, or that set what is used there."""
    rows = mask(text).split("\n")
    near = {n for n in at if n in lines}
    used = {word for n in at for word in re.findall(r"\w+", rows[n - 1])}
    for n in sorted(lines, reverse=True):  # what is set by what is set before it as well
        sets = re.match(r"\s*(?:for \()?(?:const )?(?:\w+[ *]+)?(\w+) *[-+*/]?=(?!=)", rows[n - 1])
        asks = re.match(r"\s*(?:if|while|for)\b", rows[n - 1])
        used_here = set(re.findall(r"\w+", rows[n - 1])) & used - {"if", "for", "int"}
        if not any(n <= m for m in at):
            continue
        if (sets and sets[1] in used) or (asks and (used_here or n + _ABOVE >= min(at))):
            near.add(n)
            used |= set(re.findall(r"\w+", rows[n - 1]))
    return near


def _by_a_factor(exercise: Exercise, seen: Behaviour) -> bool:
    """Whether all of a result is what it should be times the same number."""
    if seen.error or seen.right:
        return False
    for name, want in given(exercise, seen.case)[1].items():
        with np.errstate(all="ignore"):
            times = seen.arrays[name][want != 0] / want[want != 0]
        if times.size < _NUMBERS or not np.isfinite(times).all() or np.ptp(times) > _EVEN:
            return False
    return True


def _plain(text: str) -> str:
    """A text without blanks and brackets, which rules and solutions set otherwise."""
    text = text.translate(_NO_BRACKETS)  # hundreds of texts a check: sooner than by one pattern
    return "".join(_SIZE_T.sub(" ", text).split())


def _good(exercise: Exercise, some: list[str], seen: list[Behaviour]) -> str:
    """The first of some texts that is right, or empty."""
    left = some
    looks = [(one, True) for one in seen]
    if not seen[0].right:
        looks.insert(0, (seen[0], False))  # soon done with what stays wrong
    for one, sanitize in looks:
        if not left:
            return ""
        kernels = compiled(exercise, left, one.case)
        left = [
            text
            for text, kernel in zip(left, kernels, strict=True)
            if kernel and behaviour(exercise, text, one.case, kernel, sanitize=sanitize).right
        ]
    return left[0] if left else ""


def _runs(kernel: Kernel) -> int:
    """How many kernels are tried: fewer if they are long, so that nobody waits."""
    size = sum(len(f.instructions) for f in kernel.ptx()[0].functions.values())
    return max(_LEAST, min(_LARGEST, _WORK // max(1, size)))


def own_lines(exercise: Exercise, text: str) -> set[int]:
    """Numbers of the lines of an answer that are not in the skeleton."""
    return {n for n in _new_lines(exercise.skeleton, text) if mask(text).split("\n")[n - 1].strip()}


def _rows(text: str) -> list[str]:
    return [" ".join(tokens(row)) for row in mask(text).split("\n")]


def _new_lines(old: str, new: str) -> list[int]:
    pairs = difflib.SequenceMatcher(None, _rows(old), _rows(new), autojunk=False).get_opcodes()
    return [n + 1 for tag, _, _, c, d in pairs if tag != "equal" for n in range(c, d)]


def places(solution: str, changed: str, text: str) -> list[int]:
    """Lines of an answer that stand where the solution was changed."""
    about = {n - 1 for n in _new_lines(changed, solution)}
    rows = _rows(text)
    pairs = difflib.SequenceMatcher(None, _rows(solution), rows, autojunk=False).get_opcodes()
    found: set[int] = set()
    for tag, a, b, c, d in pairs:
        hit = about & set(range(a, b))
        if hit and tag == "equal":
            found |= {c + n - a + 1 for n in hit}
        elif hit and tag == "replace" and b - a == d - c:
            found |= {c + n - a + 1 for n in hit}
        elif hit:
            for n in hit:
                found |= _likest(_rows(solution)[n], rows, range(c, d))
    return sorted(n for n in found if 0 < n <= len(rows) and rows[n - 1])


def _likest(line: str, rows: list[str], among: range) -> set[int]:
    """Numbers of the lines among which one has to look: the one that is most like it, or all."""
    like = {n: difflib.SequenceMatcher(None, line, rows[n], autojunk=False).ratio() for n in among}
    best = max(like.values(), default=0)
    return {n + 1 for n in among if best < _LIKE or like[n] == best}


def all_seen(exercise: Exercise, text: str, first: Behaviour) -> list[Behaviour]:
    """What an answer does at all cases, one known already; wrong ones first, small ones first."""
    seen = [first]
    for other in (*exercise.cases, exercise.unseen(text)):
        if other != first.case:
            seen.append(behaviour(exercise, text, other))
    seen.sort(key=lambda one: (one.right, sum(a.size for a in one.arrays.values())))
    return seen
