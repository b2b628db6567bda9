"""The picture of a difference: each element where it is, and large arrays in cells."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.panels.difference_map import COLUMNS, LEVELS, ROWS, difference_map
from helpers.problem.poison import poison

SIGN = {name: sign for sign, name, _ in LEVELS}


def signs(found):
    return [line.split("  ")[-1].strip() for line in repr(found).split("\n")[2:-1]]


def test_each_element_has_its_sign():
    want = np.array([[1.0, -8.0, 2.0], [np.nan, np.inf, 3.0]])
    got = np.array([[1.0, -7.5, 9.0], [np.nan, np.inf, -20.0]], np.float32)
    found = difference_map(got, want, 1e-4, "A")
    assert signs(found) == ["".join(SIGN[n] for n in names.split()) for names in (
        "right near off", "right right far")]  # fmt: skip
    got[1, 1] = 0
    empty = np.empty(1, np.float32)
    poison(empty)
    got[1, 2] = empty[0]
    got[0, 0] = np.frombuffer(np.uint32(0x7FFFFFFF).tobytes(), np.float32)[0]  # a GPU's own NaN
    found = difference_map(got, want, 1e-4, "A")
    assert signs(found)[0][0] == SIGN["nan"] and signs(found)[1][1:] == SIGN["far"] + "-"
    assert [name for _, name, _ in found.legend] == [n for _, n, _ in LEVELS]
    html = str(found.html())
    assert 'role="img"' in html and "column" in html and html.count("kd-unwritten") == 2


def test_one_wrong_element_of_a_large_array_is_seen():
    want = np.zeros((3 * ROWS + 1, 5 * COLUMNS - 2))
    want[0, 0] = 1
    got = want.astype(np.float32)
    got[70, 200] = 0.05
    found = difference_map(got, want, 1e-4, "A")
    down, across = found.cell
    assert (down, across) == (4, 5) and len(found.levels) <= ROWS
    assert max(map(len, found.levels)) <= COLUMNS
    wrong = [
        (r, c) for r, row in enumerate(found.levels) for c, level in enumerate(row) if level > 0
    ]
    assert wrong == [(70 // down, 200 // across)]
    assert found.rows[70 // down] <= 70 < found.rows[70 // down] + down
    assert "A cell is 4 × 5 elements" in repr(found)
    for line in repr(found).split("\n"):
        assert len(line) <= 110


@pytest.mark.parametrize("size", [1, 7, 32, 33, 133, 5000])
def test_a_list_is_shown_in_rows(size):
    want = np.arange(1.0, size + 1)
    got = want.astype(np.float32)
    got[size // 2] = -1
    found = difference_map(got, want, 1e-4, "Y")
    each = found.cell[1]
    row, column = divmod(size // 2 // each, len(found.columns))
    assert found.levels[row][column] > 0
    assert sum(level > 0 for row in found.levels for level in row) == 1
    assert sum(level >= 0 for row in found.levels for level in row) == -(-size // each)
    assert found.rows[row] == row * each * len(found.columns)


def test_of_matrices_the_first_wrong_one_is_shown():
    want = np.ones((2, 3, 4, 5))
    got = want.astype(np.float32)
    got[1, 0, 2, 3] = 0
    found = difference_map(got, want, 1e-4, "S")
    assert found.title == "S[1, 0]" and found.levels[2][3] > 0
    with pytest.raises(ValueError, match="expected"):
        difference_map(got[0], want, 1e-4, "S")
