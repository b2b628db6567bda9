"""Right answers to the exercises of chapters 06 to 09 that are not the solution."""

from __future__ import annotations

import pytest
from exercise_answers import Wrong

from helpers.exercises import check, exercise

# (exercise, what, edits of the solution)
RIGHT = [
    (
        "06_transpose",
        "turned on the way in",
        (("s_K[ty][tx] = K", "s_K[tx][ty] = K"), ("&s_K[tx][ty]", "&s_K[ty][tx]")),
    ),
    (
        "06_gather",
        "lists stored turned",
        (
            ("s_W[ty][tx]", "s_W[tx][ty]"),
            ("s_keys[ty][tx]", "s_keys[tx][ty]"),
            ("s_W[k][ty]", "s_W[ty][k]"),
            ("s_keys[k][ty]", "s_keys[ty][k]"),
        ),
    ),
    ("07_float2", "a pitch for loads that are joined", (("pitch = 18;", "pitch = 20;"),)),
    (
        "07_transpose",
        "a rotation",
        (("(col ^ (row / 2))", "(col + row / 2) % 16"),),
    ),
    (
        "07_transpose",
        "backwards",
        (("(col ^ (row / 2))", "(15 - col ^ row / 2)"),),
    ),
    (
        "07_gradient",
        "products in another order",
        (
            ("add_multiple(sum[0], p.x, o);", ""),
            (
                "add_multiple(sum[3], p.w, o);",
                "add_multiple(sum[3], p.w, o);\nadd_multiple(sum[0], p.x, o);",
            ),
        ),
    ),
    (
        "08_window",
        "hidden keys have a finite score",
        (
            ("score = minus_infinity();", "score = -1e30f;"),
            ("        new_max = fmaxf(new_max, -1e30f);\n", ""),
        ),
    ),
    (
        "08_window",
        "nothing is corrected before the first key",
        (
            (
                "        new_max = fmaxf(new_max, -1e30f);\n",
                "        if (new_max == minus_infinity()) new_max = 0.0f;\n",
            ),
            ("        row_max = new_max;\n", "        row_max = fmaxf(new_max, -400.0f);\n"),
        ),
    ),
    (
        "08_window",
        "whole tiles",
        (("max(0, first - window + 1)", "max(0, first - window + 1) / B_C * B_C"),),
    ),
    (
        "08_parts",
        "weights against a common level",
        (
            ("row_max - new_max)", "row_max - new_max) * 1.0f"),
            ("now = expf(m - new_max)", "now = m < new_max ? expf(m - new_max) : 1.0f"),
        ),
    ),
    (
        "08_transposed",
        "the lanes pass their rows in another order",
        (
            (
                "&s_P[lane % 16][8 * (lane / 16)]",
                "&s_P[lane % 8 + 8 * (lane / 16)][8 * (lane / 8 % 2)]",
            ),
            ("r_A[1] = r_P[2]", "r_A[1] = r_P[1]"),
            ("r_A[2] = r_P[1]", "r_A[2] = r_P[2]"),
        ),
    ),
    ("09_narrow", "a rotation", (("chunk ^ (row / 2 % 4)", "(chunk + row / 2) % 4"),)),
    ("09_narrow", "backwards", (("chunk ^ (row / 2 % 4)", "(chunk + 16 - row / 2) % 4"),)),
    ("09_repair", "the other half swaps", (("row / 4 % 2", "1 - row / 4 % 2"),)),
]


@pytest.mark.parametrize(
    ("name", "edits"),
    [pytest.param(name, edits, id=f"{name}-{what}") for name, what, edits in RIGHT],
)
def test_another_right_answer_passes(name, edits):
    verdict = check(name, Wrong("", edits, "", ()).text(name))
    assert verdict.passed, verdict


def test_a_conflict_is_marked_where_it_is():
    """The line of the goal's message is the one that a student has to change."""
    text = exercise("07_transpose").solution.replace("(row / 2)", "0")
    verdict = check("07_transpose", text)
    assert "= s_K[place(lane, warp)];" in text.split("\n")[verdict.line - 1]
