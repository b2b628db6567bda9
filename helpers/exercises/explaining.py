"""What a check says of a wrong result, of a launch that was stopped, and of a race.

What is certain comes first: slips in the text, findings of the sanitizer. Then a mistake that gives
the same result, and where none does, which elements are wrong. Nothing is guessed.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..kernels.kernel import Kernel
from ..panels.difference import ELEMENT
from ..panels.difference_map import DifferenceMap, difference_map
from ..panels.error_panels import panel_of
from ..problem.poison import poisoned
from ..simulator.compile.source_text import line_of, mask
from ..simulator.errors import SimulatorError
from ..simulator.observe.findings import Finding
from .clues.certain import certain, stores_by_adding
from .clues.place_maps import setting
from .clues.row_lengths import of_the_rows
from .clues.tiles_left import part_stored
from .comparing import Behaviour, behaviour, root_of_d
from .diagnosis import (
    Diagnosis,
    all_seen,
    mended,
    named,
    own_lines,
    whole,
)
from .slips import Clue, slips, slips_of_text
from .small_changes.naming import BARRIER
from .spec import Case, Exercise
from .trial import Outcome, given, simulate
from .wording import in_words, said

_CLUES = 2  # that are told at a time
_NEAR = 6  # lines below a given one, in which the step is that a student wrote next
# Advice for those who call the simulator themselves.
_IN_LAUNCH = re.compile(
    r", or (?:give launch\(\) a larger max_steps|pass a larger shared_mem)"
    r"|run this kernel on a GPU, or (?=write the line another way)"
)
_GUARD = re.compile(r"; guard the access with an if\.")
_ADVICE = re.compile(r"(; |(?<=has written): |(?<=under way): )(?:(?!; ).)*$", re.DOTALL)
_BEFORE = " The sanitizer found before: "
_WAITS = re.compile(r"__sync(?:threads|warp)\w*|cp_async_wait\b|wait_(?:group|all)|\bbarrier\b")
_BARRIERS_FROM = 3  # the chapter that has them first
_NO_BARRIER = re.compile(r" with no barrier between(?:, which lanes of one warp need as well)?")
_NO_ORDER = " Nothing says which of the two comes first."
_TWO_OF_ONE = f"{_NO_ORDER} Each element of the result should be one thread's alone."
_ADDS = (
    "The marked line adds to what the array held before, which may be anything: store the result "
    "with =."
)
_MARKED = "The marked lines are at fault: all else in the kernel is right."
_XOR = "^ is no power in C: it is the XOR of two integers."
_LEFT_OUT = (
    "Threads or turns that leave in line {} store nothing, and the elements that were never "
    "written are theirs."
)
_SHOWN = "The picture shows which elements are wrong."
_HERE = f"{_MARKED} {_SHOWN}"


class Reason(NamedTuple):
    """Why an answer fails.

    Attributes:
        message: what was seen.
        lines: numbers of the lines that matter.
        todo: the mistake, or what to try next.
        picture: which elements are wrong, if nothing else is known of them.
    """

    message: str
    lines: Sequence[int] = ()
    todo: str = ""
    picture: DifferenceMap | None = None


def of_a_result(
    exercise: Exercise,
    text: str,
    case: Case,
    kernel: Kernel,
    outcome: Outcome,
    finding: Finding | None,
) -> Reason:
    """Why a result is wrong.

    Args:
        text: the answer.
        case: where it is wrong; outcome: what it gave there.
        kernel: the answer's kernel at that case.
        finding: the sanitizer's first one, if there is one.
    """
    case_said = f"With {in_words(case)}: "
    message = case_said + said(outcome.wrong)
    if clues := slips_of_text(text):
        return _by(message, clues)
    if adding := stores_by_adding(exercise, text):
        return Reason(message, adding, _ADDS)
    seen = all_seen(exercise, text, Behaviour(case, outcome.arrays))
    message = case_said + said(outcome.wrong, root=root_of_d(exercise, outcome.wrong, seen))
    own = () if finding is None else finding.lines
    fact = ""  # that a mistake is found tells what a read of nothing or a race only shows
    if finding is not None and finding.kind not in ("uninitialised", "race"):
        fact = f" A clue: {without_advice(finding)}"
    found = _tried(named, exercise, text, seen)
    if exercise.place and not (found and found.exact):  # a map may give the same result in two ways
        found = _tried(certain, exercise, text, case, kernel, lines=True) or found
    if found:
        meet = own if finding is not None and finding.kind == "race" else ()
        lines = of_a_student(exercise, text, found.lines or meet)
        return Reason(message + fact, lines, found.said)
    if found := _tried(certain, exercise, text, case, kernel):
        return Reason(message, found.lines, found.said)
    if clues := slips(kernel, math.isnan(outcome.wrong.got)):
        return _by(message, clues)
    found = _tried(of_the_rows, exercise, text, case, kept=True)
    found = found or _tried(mended, exercise, text, seen, at=own)
    if not (found and found.said):
        found = _tried(of_the_rows, exercise, text, case) or found
    if found and found.said:
        return Reason(message + fact, of_a_student(exercise, text, found.lines), found.said)
    if finding is not None:  # what would mend it is not told: the numbers are wrong without it
        if left := _tried(part_stored, exercise, text, case, kernel, finding):
            return Reason(f"{message} A clue: {without_advice(finding)}", left[1], left[0])
        shared = _over_output(exercise, finding)
        clue = _told(exercise, finding) if shared else without_advice(finding)
        return Reason(f"{message} A clue: {clue}", own)
    if left := _tried(_left_out, exercise, text, outcome, case):
        return Reason(message, [left], _LEFT_OUT.format(left))
    lines = found.lines if found else ()
    return _shown(exercise, text, Reason(message, lines), kernel, case, outcome)


def of_a_student(exercise: Exercise, text: str, lines: Sequence[int]) -> list[int]:
    """Lines that a mistake is about; in place of one that was given, what a student wrote for it.

    That is the line that sets what the given one uses; else the next one, where a step is missing.
    """
    own = own_lines(exercise, whole(text))
    if kept := [n for n in lines if n in own]:
        return kept
    sets = {n for line in lines for n in setting(exercise, text, line)}
    later = [n for n in sorted(own) if any(line < n <= line + _NEAR for line in lines)]
    return sorted(sets) or later[:1]


def _left_out(exercise: Exercise, text: str, outcome: Outcome, case: Case) -> int | None:
    """A student's line by which threads leave, without which nothing would stay unwritten."""
    if not outcome.wrong.wrong or outcome.wrong.wrong != outcome.wrong.unwritten:
        return None
    rows = whole(text).split("\n")
    for n in sorted(own_lines(exercise, whole(text))):
        row = re.sub(r"\b(?:return|continue)\s*;", ";", rows[n - 1])
        if row == rows[n - 1]:
            continue
        changed = "\n".join([*rows[: n - 1], row, *rows[n:]])
        arrays = behaviour(exercise, changed, case).arrays.values()
        if arrays and not any(poisoned(array).any() for array in arrays):
            return n
    return None


def _tried(look, exercise: Exercise, text: str, *seen, **how) -> Diagnosis | None:
    """A diagnosis; none where looking for one fails, since an answer may be anything."""
    try:
        return look(exercise, text, *seen, **how)
    except Exception:
        return None


def _shown(exercise, text, reason: Reason, kernel, case, outcome) -> Reason:
    """Facts and a picture, where no more is known than the lines, if they are."""
    report = simulate(exercise, case, kernel, count=True, quiet=True).report
    if not any(n and c.get("global_store_requests") for n, c in report.by_line.items()):
        return Reason(reason.message, *_never_reached(exercise, text))
    name = outcome.wrong.name
    want = given(exercise, case)[1][name]
    largest = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
    limit = ELEMENT * exercise.tolerance * largest
    picture = difference_map(outcome.arrays[name], want, limit, name)
    return Reason(reason.message, reason.lines, _HERE if reason.lines else _SHOWN, picture)


def _by(message: str, clues: list[Clue]) -> Reason:
    """What is sure in the text."""
    lines = [line for found, _ in clues[:_CLUES] for line in found]
    return Reason(message, lines, " ".join(sentence for _, sentence in clues[:_CLUES]))


def of_an_error(
    exercise: Exercise, text: str, case: Case | None, error: SimulatorError, lines: list[int]
) -> Reason:
    """Why a kernel did not compile or was stopped.

    Args:
        case: at which it was launched, or None before that.
        lines: of the answer that the error is about.
    """
    panel = panel_of(error)
    message = _IN_LAUNCH.sub("", panel.said[0])
    clues = slips_of_text(text)[:_CLUES]
    lines = [*lines, *(line for found, _ in clues for line in found)]
    todo = [panel.todo, *(sentence for _, sentence in clues)]
    if "enum type" in message and any("^" in mask(text).split("\n")[n - 1] for n in lines):
        todo.append(_XOR)
    if error.kind == "unsupported":
        todo.append("A check runs on the simulator, even where there is a GPU.")
    elif case is not None and error.kind != "compile" and not clues:
        seen = all_seen(exercise, text, behaviour(exercise, text, case))
        mistake = _tried(named, exercise, text, seen)
        mistake = mistake or _tried(certain, exercise, text, case)
        mistake = mistake or _tried(of_the_rows, exercise, text, case, kept=True)
        mistake = mistake or _tried(mended, exercise, text, seen, at=lines)
        mistake = mistake or _tried(of_the_rows, exercise, text, case)
        if mistake is not None:
            lines = list(mistake.lines) or lines
            if _BEFORE in message:  # what would mend that is not told beside the mistake
                message = f"{_ADVICE.sub('', message).rstrip('.')}."
            todo.append(mistake.said or _MARKED)
        if mistake is not None or re.search(r"\bif\s*\(|\?", mask(text)):
            message = _GUARD.sub(".", message)  # there is one, or it is not what is missing
    return Reason(message, lines, " ".join(filter(None, todo)))


def of_a_race(exercise: Exercise, text: str, finding: Finding, otherwise: str) -> Reason:
    """What the sanitizer has found where the result is right when all threads go together.

    Args:
        otherwise: what is wrong in another order of the warps, or empty.
    """
    if _asks_for_waits(exercise) and _waits(text) <= _waits(exercise.skeleton):
        place = re.search(r"race on (.+?): ", str(finding))
        where = f" over {place[1]}" if place else ""
        return Reason(
            f"Threads get in each other's way{where}: nothing that is filled in lets one of them "
            "wait for the others.", (), otherwise,
        )  # fmt: skip
    seen = [Behaviour(case, right=True) for case in (*exercise.cases, exercise.unseen(text))]
    if found := _tried(mended, exercise, text, seen, at=finding.lines):
        lines = finding.lines if found.said == BARRIER else found.lines
        return Reason(_bare(exercise, finding), lines, found.said or otherwise)
    return Reason(_told(exercise, finding), finding.lines, otherwise)


def _told(exercise: Exercise, finding: Finding) -> str:
    """A finding; without its mend where the mend is what the exercise asks for, or another one."""
    if _not_by_waiting(exercise, finding):
        shared = _over_output(exercise, finding)
        return _bare(exercise, finding) + (_TWO_OF_ONE if shared else _NO_ORDER)
    return without_advice(finding) if _asks_for_waits(exercise) else str(finding)


def _bare(exercise: Exercise, finding: Finding) -> str:
    """A finding without its mend, and without barriers where none would mend it."""
    said = without_advice(finding)
    return _NO_BARRIER.sub("", said) if _not_by_waiting(exercise, finding) else said


def _not_by_waiting(exercise: Exercise, finding: Finding) -> bool:
    """Whether it is a race that no barrier mends, or that one would who knows barriers."""
    early = exercise.chapter < _BARRIERS_FROM
    return finding.kind == "race" and (early or _over_output(exercise, finding))


def _over_output(exercise: Exercise, finding: Finding) -> bool:
    """Whether it is a race on a result, each element of which one thread should have alone."""
    names = "|".join(exercise.outputs)
    return bool(re.search(rf"race on (?:{names})\[", str(finding)))


def _asks_for_waits(exercise: Exercise) -> bool:
    return _waits(exercise.solution) > _waits(exercise.skeleton)


def _waits(text: str) -> int:
    return len(_WAITS.findall(mask(text)))


def without_advice(finding: Finding) -> str:
    """What was found, and not what to do."""
    return f"{_ADVICE.sub('', str(finding)).rstrip('.')}."


def _never_reached(exercise: Exercise, text: str) -> tuple[list[int], str]:
    """Lines that would store the result and those that return before, and what is said."""
    code = mask(text)
    names = "|".join(exercise.outputs)
    found = re.search(rf"\b(?:{names})\s*\[[^;]*\]\s*=(?!=)", code)
    if not found:
        return [], "No line of the kernel stores anything to global memory."
    store, rows = line_of(code, found.start()), code.split("\n")
    ways = [n for n in range(1, store) if re.search(r"\breturn\b", rows[n - 1])]
    return [*ways, store], (
        f"No thread came to line {store}, which stores the result: look at the conditions on the "
        "way to it."
    )
