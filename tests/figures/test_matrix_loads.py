"""`ldmatrix` as a figure: the simulator's registers against the definition in the PTX manual."""

from __future__ import annotations

import re

import numpy as np
import pytest

from helpers.figures.pictures.matrix_loads import LDMATRIX_STEPS, ldmatrix_steps, run_ldmatrix


def manual(trans: bool) -> np.ndarray:
    """(4, 32, 2) elements by register and lane: PTX ISA, "Warp-level matrix load: ldmatrix".

    Lanes 8 m to 8 m + 7 give the rows of matrix m. Lane l gets elements 2 (l % 4) and the next of
    row l / 4, and with `.trans` of column l / 4.
    """
    tile = np.arange(256).reshape(16, 16)
    rows = np.array([tile[n % 16, n // 16 * 8 :][:8] for n in range(32)])
    matrices = rows.reshape(4, 8, 8)
    if trans:
        matrices = matrices.transpose(0, 2, 1)
    return matrices.reshape(4, 32, 2)


@pytest.mark.parametrize("trans", [False, True])
def test_registers_hold_what_the_manual_says(trans):
    load = run_ldmatrix(trans)
    np.testing.assert_array_equal(load.registers, manual(trans))
    lane = np.arange(32)
    np.testing.assert_array_equal(load.starts, lane % 16 * 16 + lane // 16 * 8)


def test_b_is_the_tile_with_trans_and_its_rows_turned_without():
    tile = np.arange(256).reshape(16, 16)
    for number, part in ((0, slice(0, 8)), (1, slice(8, 16))):
        # As in the flash kernels: K lies in rows of keys, which are columns of B; V as B does.
        np.testing.assert_array_equal(run_ldmatrix(False).operand(number), tile[part].T)
        np.testing.assert_array_equal(run_ldmatrix(True).operand(number), tile[:, part])


@pytest.mark.parametrize("trans, lane", [(False, 7), (False, 13), (True, 13), (True, 31)])
def test_frames_write_the_elements_of_the_lane(trans, lane):
    frames = ldmatrix_steps(trans, lane)
    assert len(frames) == len(LDMATRIX_STEPS)
    assert [frame.telling for frame in frames] == [False, True, False]
    for frame in frames[1:]:
        found = re.findall(r"\((\d+),(\d+)\) \((\d+),(\d+)\)", frame.svg)
        pairs = [[16 * int(r) + int(c) for r, c in (one[:2], one[2:])] for one in found]
        assert pairs == manual(trans)[:, lane].tolist()
        # Four pairs of the tile, and in the last step those of B.
        numbers = re.findall(rf">{lane}<", frame.svg)
        assert len(numbers) == {1: 5, 2: 9}[frames.index(frame)]
    row, column = lane % 16, lane // 16 * 8
    assert (
        f"Lane {lane} points at row {row}, columns {column} to {column + 7}." in frames[0].caption
    )


@pytest.mark.parametrize("lane", [-1, 32])
def test_a_lane_that_is_none_is_refused(lane):
    with pytest.raises(ValueError, match="lanes 0 to 31"):
        ldmatrix_steps(lane=lane)
