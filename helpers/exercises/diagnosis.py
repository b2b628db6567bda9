"""Why a result is wrong: what is sure in the text, or a mistake that gives the same result.

The exercise's own misconceptions come first, then small changes of the solution and of the answer
(see `first_order`). Nothing is said that is not borne out: a mistake fits at every case, wrong ones
and right ones, or a change of the answer puts it right at every case.
"""

import difflib
import re
import time
from dataclasses import dataclass

import numpy as np

from ..kernels.kernel import Kernel
from ..panels.difference import difference
from ..simulator.compile.source_text import mask
from .answer import body, declared, kernel_of_solution
from .comparing import Behaviour, Candidate, behaviour, distance, fits, tokens
from .small_changes.first_order import Change, changes
from .small_changes.repairs import repairs
from .small_changes.truth import is_true
from .spec import Exercise
from .trial import given
from .variants import compiled

_MOST = 2  # mistakes that are told as alternatives
_WORK = 9000  # instructions of kernels that are tried at most, all together
_LEAST, _LARGEST = 12, 72  # kernels that are tried, at least and at most
_SECONDS = 1.5  # of the processor, after which no more are tried
_AT_ONCE = 16  # that are compiled together
_PIECES = 4  # of an answer that are looked at one by one
_MOST_LINES = 4  # that are marked in place of right ones
_LIKE = 0.6  # of two lines, from which on one is taken for the other's place
_NAME = re.compile(r"[A-Za-z_]\w*")
_EDGE = re.compile(r"(The (?:guard|condition) does not look at) (.+)\.$")
_NAMED = re.compile(r"\b(?:over|uses|depend on|comparison of|index of|with|and|in) ([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Diagnosis:
    """What is said of a wrong result.

    Attributes:
        sentences: the mistake; or two, each of which gives this result.
        lines: numbers of the lines of the answer that it is about.
        exact: whether these lines are the very text of the mistake.
    """

    sentences: tuple[str, ...]
    lines: tuple[int, ...]
    exact: bool = False

    @property
    def said(self) -> str:
        """All in one text."""
        if len(self.sentences) == 1:
            return self.sentences[0]
        first, second = self.sentences
        return f"One of two mistakes gives this result. Either: {first} Or: {second}"


def unfilled(exercise: Exercise, text: str) -> bool:
    """Whether nothing is filled in yet, whatever comments and blanks are there."""
    return tokens(body(text)) == tokens(exercise.skeleton)


def named(exercise: Exercise, text: str, seen: list[Behaviour]) -> Diagnosis | None:
    """The misconception of the exercise that gives what was seen, or two of them.

    Where an array is exchanged on its other way, stored or read, that is said; and what the text
    shows, where all that is wrong is NaN, which many mistakes give.

    Args:
        text: the answer.
        seen: what it does at the cases, the wrong ones first.
    """
    text = whole(text)
    found, same_text = _written(exercise, text, seen)
    if found and not same_text:
        shown = _small_changes(exercise, text, seen, only_exact=True)
        alike = all(np.isnan(a).all() for one in seen if not one.right for a in one.arrays.values())
        if shown and (alike or any(_contradicts(said, shown[0][0]) for said, _ in found)):
            found = shown
    found = [(said, _not_right(exercise, text, at)) for said, at in found]
    return _told(found, same_text) or _one_for_each(exercise, seen)


def _not_right(exercise: Exercise, text: str, lines: list[int]) -> list[int]:
    """Lines without those that are as they should be; where all are, what else differs."""
    differ = set(_new_lines(exercise.solution, text))
    differ = {n for n in differ if _rows(text)[n - 1]}
    return sorted(differ & set(lines)) or sorted(differ)[:_MOST_LINES] or lines


def _contradicts(named: str, shown: str) -> bool:
    """Whether two sentences tell of the two ways of an array: one stores it, one reads it."""
    ways = ("stored", " read")
    return any(a in named and b not in named and b in shown for a, b in (ways, ways[::-1]))


def _one_for_each(exercise: Exercise, seen: list[Behaviour]) -> Diagnosis | None:
    """Two mistakes, each of which explains one of two outputs."""
    wrong = [name for name in exercise.outputs if any(_is_wrong(exercise, o, name) for o in seen)]
    if len(wrong) != _MOST or any(one.error for one in seen):
        return None
    said = []
    for name in wrong:
        alone = [o for o in seen if _is_wrong(exercise, o, name)]
        fit = [
            m.sentence
            for m in exercise.misconceptions
            if fits(exercise, Candidate.of(m, exercise.solution), alone, only=name)
        ]
        said += fit if len(fit) == 1 else []
    if len(set(said)) != _MOST:
        return None
    return Diagnosis((f"{said[0]} And: {said[1]}",), ())


def _is_wrong(exercise: Exercise, seen: Behaviour, name: str) -> bool:
    want = given(exercise, seen.case)[1][name]
    got = seen.arrays.get(name)
    return got is not None and difference(got, want, exercise.tolerance, name) is not None


def derived(exercise: Exercise, text: str, seen: list[Behaviour]) -> Diagnosis | None:
    """The same of mistakes that the exercise does not name."""
    return _told(_small_changes(exercise, whole(text), seen))


def whole(text: str) -> str:
    """An answer with as many lines, the line that names its cell left empty."""
    return "\n" * (text != body(text)) + body(text)


def _told(found: list[tuple[str, list[int]]], exact: bool = False) -> Diagnosis | None:
    if not 1 <= len(found) <= _MOST:
        return None
    lines = {line for _, at in found for line in at}
    return Diagnosis(tuple(sentence for sentence, _ in found), tuple(sorted(lines)), exact)


def _written(
    exercise: Exercise, text: str, seen: list[Behaviour]
) -> tuple[list[tuple[str, list[int]]], bool]:
    """Sentences of misconceptions that fit, with lines; and whether one is in the very text."""
    ranked = []
    for number, wrong in enumerate(exercise.misconceptions):
        candidate = Candidate.of(wrong, exercise.solution)
        apart = distance(text, candidate.text) if candidate.text else 1
        ranked.append((apart, number, candidate))
    ranked.sort(key=lambda one: one[:2])
    if ranked and not ranked[0][0]:
        first = ranked.pop(0)[2]
        if fits(exercise, first, seen):
            return [(first.sentence, places(exercise.solution, first.text, text))], True
    if not any(_tells(one) for one in seen):  # NaN is like NaN: the text has to be like it as well
        nearest = distance(text, exercise.solution)
        ranked = [one for one in ranked if one[2].text and 4 * one[0] <= nearest]
    texts = [candidate.text for *_, candidate in ranked if candidate.text]
    kernels = dict(zip(texts, compiled(exercise, texts, seen[0].case), strict=True))
    found: dict[str, list[int]] = {}
    for _, _, candidate in ranked:
        if fits(exercise, candidate, seen, kernels.get(candidate.text)):
            lines = places(exercise.solution, candidate.text, text) if candidate.text else []
            found.setdefault(candidate.sentence, lines)
    return list(found.items()), False


def _tells(seen: Behaviour) -> bool:
    """Whether a wrong result holds numbers to compare, or an error."""
    return bool(seen.error) or (
        not seen.right and any(np.isfinite(array).any() for array in seen.arrays.values())
    )


def _small_changes(
    exercise: Exercise, text: str, seen: list[Behaviour], only_exact: bool = False
) -> list[tuple[str, list[int]]]:
    """The same of small changes of the solution, nearest to what was written first.

    What is said has to be true of the answer's own text: see `is_true`.
    """
    solution = exercise.solution
    kernel = kernel_of_solution(exercise, tuple(exercise.cases[0].items()))
    nearest = distance(text, solution)
    tried: list[tuple[int, int, Change]] = []
    for change in changes(solution, exercise.marked, _words(exercise)):
        apart = distance(text, change.text)
        if change.mistake and apart < nearest:
            tried.append((apart, len(tried), change))
    tried = sorted(tried, key=lambda t: t[:2])[: _runs(kernel) // 2]
    if only_exact:
        tried = [one for one in tried if not one[0]][:1]
    found: dict[str, list[int]] = {}
    best = None
    kernels = compiled(exercise, [change.text for *_, change in tried], seen[0].case)
    for (apart, _, change), made in zip(tried, kernels, strict=True):
        if best is not None and apart > best:
            break
        lines = places(solution, change.text, text)
        said = _in_own_names(change.mistake, solution, text)
        if made is None or said in found or not said or not is_true(said, text, lines):
            continue
        if fits(exercise, Candidate(said, change.text), seen, made):
            found[said], best = lines, apart
            if not apart:
                break
    return list(found.items())


def _words(exercise: Exercise) -> list[str]:
    """Names of sizes."""
    kernel = kernel_of_solution(exercise, tuple(exercise.cases[0].items()))
    return [a.name for a in kernel.arguments if not a.pointer] + list(declared(exercise))


def mended(exercise: Exercise, text: str, seen: list[Behaviour]) -> Diagnosis | None:
    """The small change of the answer that makes it right at every case, without a race.

    Args:
        seen: what it does at the cases, the wrong ones first; all of them may be right, and then
            it has a race.
    """
    text = whole(text)
    lines, words = own_lines(exercise, text), _words(exercise)
    kernel = kernel_of_solution(exercise, tuple(exercise.cases[0].items()))
    tried: dict[str, Change] = {}
    known = [change for change in changes(text, lines, words) if change.mended]
    known.sort(key=lambda change: distance(change.text, exercise.solution))
    likely = repairs(text, lines, words)
    runs = _runs(kernel)
    for change in (*known[: runs // 3], *likely, *known):
        tried.setdefault(change.text, change)
    left = list(tried.values())
    begun = time.process_time()  # which other programs do not make longer
    for start in range(0, runs, _AT_ONCE):
        if time.process_time() - begun > _SECONDS:
            break
        some = left[start : min(runs, start + _AT_ONCE)]
        if good := _good(exercise, some, seen):
            return Diagnosis((good.mended,), (good.line,))
    return None


def _good(exercise: Exercise, some: list[Change], seen: list[Behaviour]) -> Change | None:
    """The first of some changes after which all is right."""
    left = some
    looks = [(one, True) for one in seen]
    if not seen[0].right:
        looks.insert(0, (seen[0], False))  # soon done with what stays wrong
    for one, sanitize in looks:
        if not left:
            return None
        kernels = compiled(exercise, [change.text for change in left], one.case)
        left = [
            change
            for change, kernel in zip(left, kernels, strict=True)
            if kernel
            and behaviour(exercise, change.text, one.case, kernel, sanitize=sanitize).right
        ]
    return left[0] if left else None


def _in_own_names(said: str, solution: str, text: str) -> str:
    """A mistake that was made in the solution, told of an answer that may have other names.

    Empty if it tells of a name or of a condition that the answer has not.
    """
    code = mask(text)
    own = set(_NAME.findall(code))
    asks = re.search(r"\bif\s*\(" if said.startswith("The condition") else r"\bif\s*\(|\?", code)
    if re.match("The (?:condition|guard) ", said) and not asks:
        return ""
    if (edge := _EDGE.match(said)) and set(_NAME.findall(edge[2])) - own:
        return f"{edge[1]} an edge."
    others = set(_NAME.findall(mask(solution))) - own
    return "" if any(found[1] in others for found in _NAMED.finditer(said)) else said


def _runs(kernel: Kernel) -> int:
    """How many kernels are tried: fewer if they are long, so that nobody waits."""
    size = sum(len(f.instructions) for f in kernel.ptx()[0].functions.values())
    return max(_LEAST, min(_LARGEST, _WORK // max(1, size)))


def _puts_right(exercise, text: str, seen: list[Behaviour], kernel: Kernel | None = None) -> bool:
    kernels = [kernel, *[None] * len(seen)]
    return all(
        behaviour(exercise, text, one.case, made).right
        for one, made in zip(seen, kernels, strict=False)
    )


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


def at_fault(exercise: Exercise, text: str, seen: list[Behaviour]) -> list[int]:
    """Lines without which the answer would be right: one piece of several that differ.

    Empty if there is one piece only, or no piece alone is at fault.
    """
    text = whole(text)
    right, own = exercise.solution.split("\n"), text.split("\n")
    matcher = difflib.SequenceMatcher(None, _rows(exercise.solution), _rows(text), autojunk=False)
    pieces = [p for p in matcher.get_opcodes() if p[0] != "equal"]
    pieces = [(a, b, c, d) for _, a, b, c, d in pieces if _code(right[a:b]) or _code(own[c:d])]
    if not 2 <= len(pieces) <= _PIECES:
        return []
    for a, b, c, d in pieces:
        mended = "\n".join([*own[:c], *right[a:b], *own[d:]])
        if _puts_right(exercise, mended, seen):
            return [n + 1 for n in range(c, d) if _code(own[n : n + 1])]
    return []


def _code(rows: list[str]) -> bool:
    return bool(mask("\n".join(rows)).strip())


def all_seen(exercise: Exercise, text: str, first: Behaviour) -> list[Behaviour]:
    """What an answer does at all cases, one known already; wrong ones first, small ones first."""
    seen = [first]
    for other in exercise.cases:
        if other != first.case:
            seen.append(behaviour(exercise, text, other))
    seen.sort(key=lambda one: (one.right, sum(a.size for a in one.arrays.values())))
    return seen


def stores_by_adding(exercise: Exercise, text: str) -> list[int]:
    """Lines that add to an output by an atomic, where no line stores to it."""
    code = mask(text)
    names = "|".join(exercise.outputs)
    if re.search(rf"\b(?:{names})\s*\[[^;]*\]\s*=(?!=)", code):
        return []
    rows = code.split("\n")
    pattern = rf"\batomic\w+\s*\(\s*(?:&\s*)?(?:{names})\b"
    return [n for n, row in enumerate(rows, 1) if re.search(pattern, row)]
