"""Right answers to the exercises of chapters 06 to 09 that are not the solution."""

from __future__ import annotations

import pytest
from exercise_answers import Wrong

from helpers.exercises import check, exercise

_WAIT = "    cp_async_commit();\n    cp_async_wait<0>();\n"

# (exercise, what, edits of the solution)
RIGHT = [
    (
        "06_transpose",
        "turned on the way in",
        (("s_K[ty][tx] = K", "s_K[tx][ty] = K"), ("&s_K[tx][ty]", "&s_K[ty][tx]")),
    ),
    (
        "06_gradient",
        "turned on the way in",
        (("s_P[ty][tx] = inside", "s_P[tx][ty] = inside"), ("s_P[k][ty]", "s_P[ty][k]")),
    ),
    ("07_padding", "another odd pitch", (("pitch = 33;", "pitch = 35;"),)),
    (
        "07_padding",
        "an XOR",
        (
            ("pitch = 33;", "pitch = 32;"),
            ("s_K[ty * pitch + tx]", "s_K[ty * pitch + (tx ^ ty)]"),
            ("s_K[tx * pitch + ty]", "s_K[tx * pitch + (ty ^ tx)]"),
        ),
    ),
    (
        "07_xor",
        "a rotation",
        (("s_K[ty][tx ^ ty]", "s_K[ty][(tx + ty) % 16]"), ("[k ^ tx]", "[(k + tx) % 16]")),
    ),
    (
        "07_xor",
        "pairs of rows alike",
        (("s_K[ty][tx ^ ty]", "s_K[ty][tx ^ (ty / 2)]"), ("[k ^ tx]", "[k ^ (tx / 2)]")),
    ),
    (
        "08_online",
        "only where the maximum has grown",
        (
            ("expf(row_max - new_max);", "new_max > row_max ? __expf(row_max - new_max) : 1.0f;"),
            ("score = minus_infinity()", "score = -1e30f"),
        ),
    ),
    (
        "08_copies",
        "all copies waited for",
        ((_WAIT, '    asm volatile("cp.async.wait_all;" ::: "memory");\n'),),
    ),
    (
        "08_copies",
        "zeros without a copy",
        (
            (
                "cp_async_16(&s_K[row][chunk], from, first + row < n ? 16 : 0);",
                "if (first + row < n) cp_async_16(&s_K[row][chunk], from, 16);\n"
                "else s_K[row][chunk] = make_float4(0, 0, 0, 0);",
            ),
        ),
    ),
    (
        "08_fragments",
        "other lanes pass the rows of K",
        (
            (
                "&s_K[lane % 16][k + 8 * (lane / 16)]",
                "&s_K[lane % 8 + 8 * (lane / 16)][k + 8 * (lane / 8 % 2)]",
            ),
            ("r_K[0], r_K[2]", "r_K[0], r_K[1]"),
            ("r_K[1], r_K[3]", "r_K[2], r_K[3]"),
        ),
    ),
    ("09_latin", "a rotation", (("row ^ col", "(row + col) % 8"),)),
    ("09_latin", "backwards", (("row ^ col", "(8 + row - col) % 8"),)),
    ("09_latin", "no straight line", (("row ^ col", "(3 * col + 5 * (row ^ 6)) % 8 ^ 1"),)),
    ("09_paths", "a rotation", (("chunk ^ (row % 8)", "(chunk + row) % 8"),)),
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
    text = exercise("07_xor").solution.replace("[k ^ tx]", "[k]").replace("[tx ^ ty]", "[tx]")
    verdict = check("07_xor", text)
    assert "sum += s_Q[ty][k] * s_K[tx][k];" in text.split("\n")[verdict.line - 1]
