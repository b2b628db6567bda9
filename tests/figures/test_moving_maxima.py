"""Where maxima move: against a walk over the kernel's own condition, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.figures.ideas.moving_maxima import TOGETHER, moves, moving_maxima


def scores(rows: int, keys: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, keys)) * 3


@pytest.mark.parametrize("slack", [0.0, 2.5])
def test_rows_take_new_maxima_when_one_of_eight_has_grown_enough(slack):
    S = scores(24, 150)
    found = moves(S, tile=32, slack=slack)
    for group in range(3):
        kept = [-np.inf] * TOGETHER
        for tile in range(5):
            piece = S[8 * group : 8 * group + 8, 32 * tile : 32 * tile + 32]
            grown = [max(row) - old > slack for row, old in zip(piece, kept, strict=True)]
            assert list(found.moved[8 * group : 8 * group + 8, tile]) == grown
            assert found.rescaled[group, tile] == any(grown)
            if any(grown):
                kept = [max(old, *row) for row, old in zip(piece, kept, strict=True)]


def test_a_maximum_moves_as_often_as_the_harmonic_numbers_say():
    found = moves(scores(4000, 640), tile=64)
    expected = [1 / (tile + 1) for tile in range(10)]
    np.testing.assert_allclose(found.moved.mean(axis=0), expected, atol=0.03)
    with pytest.raises(ValueError, match="groups of 8"):
        moves(scores(12, 64))


def test_the_frames_count_what_they_show():
    S = scores(16, 320)
    frames = moving_maxima(S, tile=64, slacks=(0, 8))
    assert [frame.telling for frame in frames] == [False, True, False]
    assert "10 of 10 times" in frames[0].caption
    for frame, slack in zip(frames[1:], (0, 8), strict=True):
        count = int(moves(S, 64, slack).rescaled.sum())
        assert f"rescaled {count} of 10 times" in frame.caption
        assert f">SLACK = {slack}<" in frame.svg
    assert moves(S, 64, 8).rescaled.sum() < moves(S, 64).rescaled.sum()
