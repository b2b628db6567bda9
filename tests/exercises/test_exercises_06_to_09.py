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
    ("07_float2", "eleven pairs a row", (("pitch = 18;", "pitch = 22;"),)),
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
        "08_causal",
        "hidden keys have a finite score",
        (
            ("score = minus_infinity();", "score = -1e30f;"),
            ("        new_max = fmaxf(new_max, -1e30f);\n", ""),
        ),
    ),
    (
        "08_causal",
        "nothing is corrected before the first key",
        (
            ("        new_max = fmaxf(new_max, -1e30f);\n", ""),
            (
                "exp2f(row_max - new_max)",
                "new_max == minus_infinity() ? 0.0f : exp2f(row_max - new_max)",
            ),
            ("        row_max = new_max;\n", "        row_max = fmaxf(new_max, -1e30f);\n"),
        ),
    ),
    (
        "10_ahead",
        "copies past the last tile, which read nothing",
        (("if (next < tiles) start_copy(", "start_copy("),),
    ),
    (
        "08_causal",
        "whole tiles",
        (("first - window + 1)", "first - window + 1) / B_C * B_C"),),
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
    (
        "09_narrow",
        "a map of elements",
        (
            ("    where = chunk ^ (row / 2 % 4);\n", ""),
            ("+ 8 * where;", "+ (8 * where ^ 8 * (row / 2 % 4));"),
        ),
    ),
    (
        "00_few_threads",
        "a half for each block",
        (
            ("gridDim.x * blockDim.x", "(n + 1) / 2, begin = blockIdx.x * step"),
            ("int i = first; i < n; i += step", "int t = threadIdx.x; t < step; t += blockDim.x"),
            ("b[i] = a[i] * a[i]", "if (begin + t < n) b[begin + t] = a[begin + t] * a[begin + t]"),
        ),
    ),
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
    marked = [text.split("\n")[n - 1].strip() for n in verdict.lines]
    assert marked[0].startswith("word = ") and "= s_K[place(lane, warp)];" in marked[1]
    assert "16 lanes of a warp read column 0 of rows 0, 2, 4 ... 30 at once" in verdict.todo


# (exercise, edits of the solution, words of the cause, and a text on each line that is marked)
SEEN = [
    pytest.param(name, edits, words, lines, id=f"{name}-{what}")
    for name, what, edits, words, lines in (
        (
            "07_transpose",
            "a place shared",
            (("(col ^ (row / 2))", "(col + row) % 15"),),
            "Two columns of a row share a place: 0 and 15 of row 0 both go to place 0",
            ("% 15",),
        ),
        (
            "07_transpose",
            "padding",
            (("16 * row + (col ^ (row / 2))", "17 * row + col"),),
            "Rows begin 17 apart here",
            ("17 * row",),
        ),
        (
            "07_transpose",
            "exchanged in one call",
            (("place(lane, warp)", "place(warp, lane)"),),
            "row and column are exchanged where the map is called",
            ("place(warp, lane)",),
        ),
        (
            "09_narrow",
            "a negative remainder",
            (("chunk ^ (row / 2 % 4)", "(chunk - row / 2) % 4"),),
            "goes to place -1, and a row has places 0 to 3. The remainder of a negative number",
            ("(chunk - row / 2)",),
        ),
        (
            "09_narrow",
            "the map in the loads alone",
            (
                ("where = chunk ^ (row / 2 % 4)", "where = chunk"),
                ("s_Q + place(lane % 16, 2 * k + lane / 16)",
                 "s_Q + place(lane % 16, 2 * k + lane / 16 ^ lane / 2 % 4)"),
            ),
            "It goes through the map, but what is passed to the map or added after it",
            ("lane / 2 % 4",),
        ),
        (
            "09_repair",
            "out of the tile of O",
            (("place(row, j) / 2 + lane", "40 * row + place(row, j) / 2 + lane"),),
            "writes row 2 of its tile, and row 1 belongs there",
            ("40 * row +",),
        ),
        (
            "09_repair",
            "a rotation that wraps",
            (("chunk ^ (row / 4 % 2)", "(chunk + row % 8) % 10"),),
            "at places 4 and 0 of them, which are in the same bank",
            ("% 10", "ldmatrix_x4_trans"),
        ),
        (
            "06_transpose",
            "down a column of K",
            (("KT[row * N + col] = *element", "KT[row * N + col] = K[col * d + row]"),),
            "32 lanes of a warp load K[0], K[32]",
            ("K[col * d + row]",),
        ),
        (
            "07_float2",
            "a pointer to pairs",
            (("*(const float2*)&s_K[tx * pitch + k]", "((const float2*)s_K)[tx * pitch + k]"),),
            "counts pairs, and `ty * pitch + k` counts floats",
            ("(const float2*)s_K)",),
        ),
        (
            "08_parts",
            "a factor that is not used",
            (("now * l", "l"), ("now * a", "a")),
            "The new part was not brought to the common maximum",
            ("row_sum + l;", "out + a;"),
        ),
        (
            "08_parts",
            "without the last part",
            (("part < parts;", "part < parts - 1;"),),
            "The last part is left out",
            ("parts - 1",),
        ),
    )
]  # fmt: skip


@pytest.mark.parametrize(("name", "edits", "words", "lines"), SEEN)
def test_the_cause_is_seen_in_the_run(name, edits, words, lines):
    text = Wrong("", edits, "", ()).text(name)
    verdict = check(name, text)
    assert words in f"{verdict.failed.message} {verdict.todo}", verdict
    marked = [text.split("\n")[n - 1] for n in verdict.lines]
    assert [all(part in row for part, row in zip(lines, marked, strict=True))] == [True], verdict
