"""Exercises: skeletons fail, solutions pass, and wrong answers fail for the right reason."""

from __future__ import annotations

import re

import numpy as np
import pytest
from chapter_cases import wrong_answers

from helpers.exercises import EXERCISES, check, exercise, skeleton, solution
from helpers.exercises.verdict import FAILED, PASSED

NAMES = [one.name for one in EXERCISES]
WRONG = wrong_answers()
ANSWERS = [pytest.param(name, wrong, id=f"{name}-{wrong.what}") for name in NAMES
           for wrong in WRONG[name]]  # fmt: skip

each_exercise = pytest.mark.parametrize("name", NAMES)


def said(verdict) -> str:
    return f"{verdict.failed.message} {verdict.todo}"


@each_exercise
def test_solution_passes(name):
    verdict = check(name, solution(name))
    assert verdict.passed, verdict
    assert not verdict.lines and not verdict.todo and not verdict.printed


@each_exercise
def test_skeleton_fails_and_gives_nothing_away(name):
    """What is unfilled is told so, with what is asked; neither the answer nor its place is."""
    one = exercise(name)
    talk = "\n// My own comment: __syncthreads()\n"
    for text in (one.skeleton, one.skeleton.replace("\n", "  \n\n") + talk):
        verdict = check(name, text)
        assert [step.state for step in verdict.steps[:2]] == [PASSED, FAILED], verdict
        assert verdict.failed.message == "Nothing is filled in yet."
        assert verdict.todo.startswith("What is asked: ") and len(verdict.todo) > 50
        assert "$" not in verdict.todo and "\\" not in verdict.todo
        rows = text.split("\n")
        assert all("Gap" in rows[n - 1] for n in verdict.lines)
        shown = re.sub(r"\s", "", repr(verdict))
        for number in one.marked:
            code = re.sub(r"\s", "", one.solution.split("\n")[number - 1].split("//")[0])
            if len(code) > 3 and code not in re.sub(r"\s", "", text):
                assert code not in shown


@each_exercise
def test_skeleton_is_the_solution_minus_the_marked_lines(name):
    one = exercise(name)
    with_markers = one.file.read_text(encoding="utf-8")
    kept = [line for line in with_markers.split("\n") if not line.endswith("//!")]
    assert skeleton(name) == "\n".join(kept)
    assert 1 <= with_markers.count("//!") == len(one.marked) <= 12
    assert "//!" not in solution(name) + skeleton(name)
    assert re.sub(r"[ \t]*//!$", "", with_markers, flags=re.M) == solution(name)
    assert max(map(len, with_markers.split("\n"))) <= 100


@each_exercise
def test_three_wrong_answers(name):
    assert len(WRONG[name]) >= 3
    assert len({wrong.what for wrong in WRONG[name]}) == len(WRONG[name])


@pytest.mark.parametrize(("name", "wrong"), ANSWERS)
def test_wrong_answer_fails_for_the_right_reason(name, wrong):
    verdict = check(name, wrong.text(name))
    assert not verdict.passed, "the check takes it for right"
    assert verdict.failed.name == wrong.step, verdict
    for words in wrong.words:
        assert words in said(verdict), verdict
    states = [step.state for step in verdict.steps]
    assert states.index(FAILED) == states.count(PASSED)


@each_exercise
def test_texts_and_misconceptions_are_whole(name):
    """Two hints; and misconceptions that can be tried, and are sentences."""
    one = exercise(name)
    assert len(one.hints) == 2 and len(set(one.hints)) == 2
    for said in [*one.hints, *[m.sentence for m in one.misconceptions]]:
        assert len(said) > 20 and said[-1] in ".?!"
    assert len({m.sentence for m in one.misconceptions}) == len(one.misconceptions)
    for wrong in one.misconceptions:
        assert wrong.results or wrong.text(one.solution) != one.solution
        assert set(wrong.results or ()) <= set(one.outputs)


def test_printing_exercises_gives_nothing_away():
    """`print(list(EXERCISES))` has names and titles, and no hint, misconception or answer."""
    shown = repr(list(EXERCISES))
    assert shown.startswith("[Exercise('00_differences', 'between neighbours'), Exercise(")
    assert len(shown) < 80 * len(EXERCISES)
    wrong = EXERCISES[0].misconceptions[0]
    assert wrong.sentence not in repr(wrong) and len(repr(wrong)) < 30


@each_exercise
def test_cases_tell_answers_apart(name):
    """Odd and different sizes, and inputs that no transposed answer is right for."""
    one = exercise(name)
    assert len(one.cases) >= 2
    assert len({tuple(case.items()) for case in one.cases}) == len(one.cases)
    for case in one.cases:
        arrays = one.arguments(case)
        want = one.expected(arrays)
        assert set(want) == set(one.outputs)
        for value in [*arrays.values(), *want.values()]:
            square = getattr(value, "ndim", 0) == 2 and value.shape[0] == value.shape[1] > 1
            if square and not any(value is arrays[name] for name in one.outputs):
                assert not np.array_equal(value, value.T)
