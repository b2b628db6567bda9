"""Diagnosis by comparison: the mistake that gives the same result is named, and none is guessed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from exercise_answers import Wrong

from helpers.exercises import Misconception, check, exercise, solution
from helpers.exercises.checking import run
from helpers.exercises.comparing import Behaviour, Candidate, behaviour, distance, fits
from helpers.exercises.diagnosis import own_lines, unfilled
from helpers.panels.difference import difference

GUESSES = ("every 3rd", "/ and %", "Check the indices", "Compute one element", "race", "nan of")


def said(verdict) -> str:
    return f"{verdict.failed.message} {verdict.todo}"


def answer(name, *edits):
    return Wrong("", edits, "", ()).text(name)


# ------------------------------------------------------------------ each misconception by itself


@pytest.mark.parametrize("name", ["03_window", "07_float2"])
def test_each_misconception_is_told_in_its_own_words(name):
    """As a kernel that has other names and blanks than the one that is compared with."""
    one = exercise(name)
    for wrong in one.misconceptions:
        if wrong.changes:
            text = wrong.text(one.solution).replace("sum", "total").replace("    ", "  ")
            verdict = check(name, text.replace("s_total", "s_sum"))
            if verdict.failed and verdict.failed.name == "right":
                assert wrong.sentence in verdict.todo, verdict


def test_misconceptions_differ_from_what_is_right_and_from_each_other():
    """At a case at least; two that are alike everywhere could never be told as one."""
    one = exercise("05_shared_keys")
    for wrong in one.misconceptions:
        candidate = Candidate.of(wrong, one.solution)
        right = [behaviour(one, one.solution, case) for case in one.cases]
        assert not fits(one, candidate, right)


def test_a_misconception_has_to_fit_at_every_case():
    """Right at one case and wrong at another is not the same as wrong at both."""
    one = exercise("05_both_ways")
    wrong = one.misconceptions[0]
    candidate = Candidate.of(wrong, one.solution)
    seen = [behaviour(one, candidate.text, case) for case in one.cases]
    assert fits(one, candidate, seen)
    half = [seen[0], behaviour(one, one.solution, one.cases[1])]
    assert not fits(one, candidate, half)
    moved = dict(seen[0].arrays)
    moved["S"] = moved["S"] * np.float32(1.001)
    assert not fits(one, candidate, [Behaviour(one.cases[0], moved)])


def test_a_result_of_nothing_but_nan_is_told_of_a_text_that_is_like_the_mistake():
    """Else every kernel that gives NaN everywhere would have made the same mistake."""
    old, new, now = "expf(row_max - new_max)", "expf(new_max - row_max)", "expf(m - new_max)"
    upside_down = ((old, new), (now, "expf(new_max - m)"))
    text = answer("08_parts", *upside_down).replace("before", "factor")
    assert "Factors are upside down" in check("08_parts", text).todo
    verdict = check("08_parts", answer("08_parts", (old, "logf(row_max - new_max)")))
    assert "every one of them is NaN" in said(verdict)
    sentences = [wrong.sentence for wrong in exercise("08_parts").misconceptions]
    assert not any(sentence in verdict.todo for sentence in sentences), verdict


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_compared_as_it_is(special):
    one = exercise("05_shared_keys")

    def there(Q, K):
        S = one.results["S"](Q, K)
        S[0, 1, 2] = special
        return S

    case = one.cases[0]
    arguments = one.arguments(case)
    got = there(arguments["Q"].astype(float), arguments["K"].astype(float)).astype(np.float32)
    candidate = Candidate("It is so.", results={"S": there})
    assert fits(one, candidate, [Behaviour(case, {"S": got})])
    got[0, 1, 2] = 7
    assert not fits(one, candidate, [Behaviour(case, {"S": got})])


def test_two_that_fit_are_none_and_what_puts_the_answer_right_is_told():
    one = exercise("03_window")
    text = answer("03_window", ("sum += s_X[tid + k]", "sum += 2 * s_X[tid + k]"))
    twice = one.results["Y"]
    ways = [Misconception(f"It is way {n}.", results={"Y": lambda X: 2 * twice(X)})
            for n in range(2)]  # fmt: skip
    two = run(dataclasses.replace(one, misconceptions=tuple(ways)), text)
    assert two.todo == "There is a factor too many in the line that sets sum: `2 *`."
    one_way = run(dataclasses.replace(one, misconceptions=tuple(ways[:1])), text)
    assert one_way.todo == "It is way 0."


def test_a_misconception_is_either_a_kernel_or_a_function():
    for how in ({}, {"changes": (("a", "b"),), "results": {"Y": abs}}):
        with pytest.raises(ValueError, match="either"):
            Misconception("It is so.", **how)
    with pytest.raises(ValueError, match="2 times"):
        Misconception("It is so.", (("a", "b"),)).text("a a")


# ------------------------------------------------------------------ what no exercise names

# (exercise, old, new, words): mistakes that the engine derives, in both directions
DERIVED = [
    ("03_rectangle", "row < N && i + j < N ?", "row < N || i + j < N ?", "both have to"),
    ("03_rectangle", "s_P[tx][j] =", "s_P[j][tx] =", "two indices of s_P are exchanged"),
    ("03_window", "at >= 0 && at < n", "at > 0 && at < n", "off by one"),
    ("03_window", "k = 0; k <= 2", "k = 1; k <= 2", "leaves out its first turn"),
    ("04_moments", "s_sum[tid] += s_sum", "s_sum[tid] = s_sum", "what it held before is lost"),
    ("05_both_ways", "row < N && col < N) S[", "row < N && col < N - 1) S[", "leaves out the last"),
    ("07_gradient", "add_multiple(sum[1], p.y, o);", "", "gets no products"),
    ("08_transposed", "lane / 4 + 8", "lane % 4 + 8", "Division and remainder"),
    ("09_narrow", "row / 2 % 4", "row / 2 % 2", ""),  # right, and only slower
]


@pytest.mark.parametrize(("name", "old", "new", "words"), DERIVED)
def test_small_changes_are_named(name, old, new, words):
    verdict = check(name, answer(name, (old, new)))
    assert words in verdict.todo, verdict
    if words:
        assert verdict.failed.name == "right" and not verdict.picture


# (exercise, old, new, words, marked line): a change of the answer tells the cause
MENDED = [
    ("00_differences", "if (i < n - 1)", "if (i == n - 1) return;\n", "none beyond", "if (i =="),
    ("00_few_threads", "i += step", "i++", "wrong step", "for (int i"),
    ("03_window", "at >= 0 && at < n", "at < n", "one end only", "s_X[j]"),
]


@pytest.mark.parametrize(("name", "old", "new", "words", "line"), MENDED, ids=lambda v: str(v)[:14])
def test_the_cause_is_told_before_what_follows_from_it(name, old, new, words, line):
    text = answer(name, (old, new))
    verdict = check(name, text)
    assert words in verdict.todo and "__sync" not in said(verdict), verdict
    assert [text.split("\n")[n - 1].strip()[: len(line)] for n in verdict.lines] == [line]


def test_a_change_that_puts_the_answer_right_tells_the_mistake():
    """In a kernel that is written otherwise than the solution, so that no text is near it."""
    tree = solution("04_best_key")
    a, b = tree.index("    for (int stride = 16"), tree.index("    if (lane == 0)")
    own = """
    for (int far = 1; far < 16; far *= 2) {
        float v = __shfl_xor_sync(0xffffffff, m, far);
        int w = __shfl_xor_sync(0xffffffff, at, far);
        bool better = v > m;
        if (v == m) better = w < at;
        m = better ? v : m;
        at = better ? w : at;
    }
"""
    verdict = check("04_best_key", tree[:a] + own + tree[b:])
    assert verdict.failed.name == "right"
    assert "level of the tree is missing" in said(verdict)
    assert check("04_best_key", tree[:a] + own.replace("far < 16", "far < 32") + tree[b:]).passed


# ------------------------------------------------------------------ what nothing explains


def test_what_nothing_explains_is_shown_and_not_guessed():
    own = """for (int turn = 0; turn < 4; turn++) {
        const int at = turn * 128 + first;
        const float x = at < n ? a[at] : 0.0f;
        if (at < n) b[at] = x * fabsf(x) + 0.25f * (at % 3);
    }"""
    loop = "for (int i = first; i < n; i += step) b[i] = a[i] * a[i];"
    verdict = check("00_few_threads", answer("00_few_threads", (loop, own)))
    assert verdict.failed.name == "right" and verdict.picture
    assert verdict.todo == "The picture shows which elements are wrong."
    assert not verdict.lines
    for guess in GUESSES:
        assert guess not in said(verdict)
    assert "Which elements of b are wrong" in repr(verdict)
    assert "kernel-difference" in verdict._repr_html_()


def test_of_several_pieces_the_one_at_fault_is_marked():
    """Where all pieces but one could stay as they are."""
    one = exercise("05_both_ways")
    text = answer(
        "05_both_ways",
        ("s_K[c][k][ty];", "fabsf(s_K[c][k][ty] + ty % 3);"),
        ("if (row < N && col < N) S[", "if (col < N && row < N) S["),
    )
    verdict = check("05_both_ways", text)
    assert "The marked lines are at fault" in verdict.todo
    assert [text.split("\n")[n - 1].strip()[:6] for n in verdict.lines] == ["sum[r]"]
    assert set(verdict.lines) <= own_lines(one, text)


def test_a_number_too_small_for_fp32_is_0():
    want = np.array([1e-60, 1.0])
    found = difference(np.array([-np.inf, 1.0], np.float32), want, 1e-6)
    assert found.expected == 0.0 and "in place of 0." in found.sentence
    assert difference(np.array([5.0, 1.0], np.float64), want, 1e-6).expected == 1e-60


def test_what_is_filled_in_counts_and_comments_do_not():
    one = exercise("03_window")
    assert unfilled(one, one.skeleton) and not unfilled(one, one.solution)
    assert unfilled(one, "// %%kernel 03_window.cu\n" + one.skeleton.replace("//", "// own "))
    assert distance(one.skeleton, one.skeleton.replace("    ", "\t")) == 0
    assert distance(one.skeleton, one.solution) > 0


def test_a_barrier_exercise_names_no_line_before_something_waits():
    """And never the barrier itself, which is what it asks for."""
    lines = solution("03_window").split("\n")
    without = "\n".join(line for line in lines if "__sync" not in line)
    verdict = check("03_window", without)
    assert verdict.failed.name in ("right", "no race") and "__syncthreads" not in said(verdict)
    if verdict.failed.name == "no race":
        assert not verdict.lines
    first = [n for n, line in enumerate(lines) if "__sync" in line][0]
    verdict = check("03_window", "\n".join(lines[:first] + lines[first + 1 :]))
    assert verdict.lines and "__syncthreads" not in said(verdict)
