"""Slips of beginners: what the verdict says, and which line it points to."""

from __future__ import annotations

import dataclasses

import pytest

from helpers.exercises import EXERCISES, check, exercise, solution, spec
from helpers.exercises.answer import kernel_of
from helpers.exercises.checking import run
from helpers.exercises.slips import slips

RIGHT = solution("02_scores")
GUARD = "if (row >= N || col >= N) return;"
PRODUCT = "sum += Q[(size_t)row * d + i] * K[(size_t)col * d + i];"
LOOP = "for (int i = 0; i < d; i++) {"

# (what, old text, new text, step, the line that is marked, words)
SLIPS = [
    ("no semicolon", "float sum = 0.0f;", "float sum = 0.0f", "compiles", "for (int i",
     "Look at the end of line 28"),
    ("a name misspelt", "row >= N", "rwo >= N", "compiles", "rwo >= N", "Did you mean row?"),
    ("a function misspelt", "sqrtf", "sqrt_f", "compiles", "sqrt_f", "Did you mean sqrtf?"),
    ("a member in capitals", "threadIdx.x", "threadIdx.X", "compiles", "threadIdx.X", "x, y and z"),
    ("another bracket", "* d + i] * K", "* d + i) * K", "compiles", "sum +=",
     "The [ in line 30 is not closed by a ]"),
    ("a bracket left out", GUARD, GUARD.replace(") return", " return"), "compiles", "if (row",
     "The ( in line 20"),
    ("a brace too many", "    }\n    S[", "    }\n    }\n    S[", "compiles", "S[",
     "The } in line 34 closes nothing"),
    ("the last brace left out", "sqrtf((float)d);\n}", "sqrtf((float)d);", "compiles", ") {",
     "The { in line 17 is never closed"),
    ("Python's condition", GUARD, "if row >= N or col >= N: return", "compiles", "if row",
     "write if (...)"),
    ("Python's loop", LOOP, "for i in range(d) {", "compiles", "in range",
     "for (int i = 0; i < n; i++)"),
    ("Python's comment", "// Gap", "# Gap", "compiles", "# Gap", "A comment starts with //"),
    ("Python's power", "sqrtf((float)d)", "d**0.5f", "compiles", "**", "powf(x, y)"),
    ("two indices", "Q[(size_t)row * d + i]", "Q[row][i]", "compiles", "Q[row][i]",
     "[row * d + i]"),
    ("a minus from a text", "* d + i] * K", "* d \u2212 i] * K", "compiles", "\u2212",
     "minus sign"),
    ("a space from a page", "float sum", "float\u00a0sum", "compiles", "sum = 0.0f",
     "no-break space"),
    ("a main()", "extern", "int main() { go<<<1, 1>>>(0); }\nextern", "compiles", "int main",
     "no main()"),
    ("a ; behind for", LOOP, LOOP.replace(" {", "; {"), "compiles", LOOP.replace(" {", "; {"),
     "ends it there"),
    ("a ; behind if", GUARD, GUARD.replace(") return", "); return"), "right", "if (row",
     "ends it there"),
    ("= for ==", "row >= N ||", "row = N ||", "right", "row = N", "= sets, == compares"),
    ("twice in a row", GUARD, "if (!(0 <= row < N) || col >= N) return;", "right", "0 <= row",
     "joined by &&"),
    ("= for +=", "sum += Q", "sum = Q", "right", "sum = Q", "+= adds to it"),
    ("+ for +=", "sum += Q", "sum + Q", "right", "sum + Q", "expression has no effect"),
    ("an int for a float", "float sum = 0.0f", "int sum = 0", "right", "sum += Q",
     "turns a float into an int"),
    ("no first value", "float sum = 0.0f", "float sum", "right", "sum += Q",
     "may not have been given a value"),
    ("a second variable", "        sum +=", "        float sum = 0.0f;\n        sum +=", "right",
     "        float sum", "Line 30 declares a second sum, which hides that of line 28"),
    ("a comment that goes on", "sum += Q", "// this \\\n        sum += Q", "right", "// this",
     "a part of the comment"),
    ("nobody gets there", GUARD, "return;", "right", "    return;", "Every thread ends here"),
    ("names exchanged", "int N, int d", "int d, int N", "compiles", "extern", "int d, int N"),
    ("another name", "scaled_dot_product(", "scores(", "compiles", "scores(",
     "The check calls scaled_dot_product"),
    ("choices taken out", "  // [8, 16, 32]", "  // 8, 16, 32:", "compiles", "#ifndef TILE",
     "put back"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "step", "line", "words"),
    [pytest.param(*rest, id=what) for what, *rest in SLIPS],
)
def test_a_slip_is_told_with_its_line(old, new, step, line, words):
    assert RIGHT.count(old) >= 1
    text = RIGHT.replace(old, new, 1)
    verdict = check("02_scores", text)
    assert verdict.failed.name == step, verdict
    assert words in f"{verdict.failed.message} {verdict.todo}", verdict
    rows = text.split("\n")
    assert any(line in rows[n - 1] for n in verdict.lines), verdict


def test_no_solution_looks_like_a_slip():
    for one in EXERCISES:
        assert not slips(kernel_of(one, one.solution, one.cases[0]), nan=True), one.name


def test_a_cell_copied_whole_is_an_answer():
    assert check("02_scores", f"%%kernel 02_scores.cu\n{RIGHT}").passed


@pytest.mark.parametrize(
    "edit", [None, ("//!", ""), ("i += DEPTH", "i += 0"), ("sum = 0.0f;", "sum = 0.0f")]
)
def test_a_changed_solution_is_not_blamed_on_the_student(edit, tmp_path, monkeypatch):
    file, right = exercise("03_rectangle").file, solution("03_rectangle")
    text = file.read_text(encoding="utf-8")
    if edit:
        (tmp_path / file.name).write_text(text.replace(*edit), encoding="utf-8")
    monkeypatch.setattr(spec, "FOLDER", tmp_path)
    verdict = run(dataclasses.replace(exercise("03_rectangle")), right)
    changed = "The course's own kernels/exercises/03_rectangle.cu has been changed"
    assert changed in verdict.failed.message
    assert "git checkout" in verdict.failed.message


# ------------------------------------------------------------------ sizes that nobody knows


@pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.name)
def test_a_case_is_tried_that_no_answer_is_made_for(one):
    found = [one.unseen(f"{one.solution}{blanks * ' '}") for blanks in range(8)]
    assert len({tuple(case.items()) for case in found}) > 1  # the text decides
    for case in found:
        for name, value in case.items():
            seen = [c[name] for c in one.cases if name in c]
            assert name.isupper() and len(name) > 1 or value > max(seen)
        assert one.unseen(one.solution) == one.unseen(one.solution)


ONLY_TESTED = [
    ("02_scores", "float sum = 0.0f;",
     "if (N != 37 && N != 16 && N != 21) return;\n    float sum = 0.0f;"),
    ("02_scores", "i < d;", "i < d && i < 33;"),
    ("02_received", "i < N;", "i < N && i < 70;"),
    ("05_both_ways", "sum[COARSE][COARSE]", "sum[3][3]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new"), ONLY_TESTED)
def test_what_is_right_at_the_tested_sizes_alone_fails(name, old, new):
    text = solution(name)
    assert text.count(old) == 1
    verdict = check(name, text.replace(old, new))
    assert verdict.failed.name == "right", verdict
    case = exercise(name).unseen(text.replace(old, new))
    assert all(f"{key} = {value}" in verdict.failed.message for key, value in case.items())
