"""The causal figure: tiles counted by hand, pairs by the definition, and what is drawn of them."""

from __future__ import annotations

import numpy as np
import pytest
from figure_texts import texts

from helpers.figures.pictures.causal_tiles import causal_tiles, run_causal

SQUARE = {"B_R": 32, "B_C": 32, "WARPS": 2}


@pytest.fixture(scope="module")
def frames():
    return causal_tiles(**SQUARE)


@pytest.mark.parametrize(
    ("n", "b_r", "b_c", "warps"),
    [(128, 32, 32, 2), (100, 32, 64, 1), (77, 64, 32, 2)],
)
def test_tiles_at_or_below_the_diagonal(n, b_r, b_c, warps):
    run = run_causal(n, CAUSAL=1, B_R=b_r, B_C=b_c, WARPS=warps)
    rows, keys = np.ogrid[:n, :n]
    np.testing.assert_array_equal(run.weights != 0, keys <= rows)
    assert len(run.walks) == -(-n // b_r)
    for walk in run.walks:
        first, last = walk.rows
        assert first % b_r == 0 and last == min(n, first + b_r) - 1
        assert [tile.keys[0] for tile in walk.tiles] == list(range(0, last + 1, b_c))
        for tile in walk.tiles:
            held = min(n, tile.keys[0] + b_c) - tile.keys[0]
            assert tile.keys[1] == tile.keys[0] + held - 1
            assert tile.bytes == 2 * held * 128 * 2
            assert tile.products == b_r // 16 * 2 * (b_c // 8) * 8  # of 16 x 8 x 16 each
            hidden = tile.keys[1] > first or held < b_c
            assert tile.masked == hidden, (walk.rows, tile)


def test_nothing_is_skipped_or_masked_without_it():
    run = run_causal(64, CAUSAL=0, **SQUARE)
    assert [len(walk.tiles) for walk in run.walks] == [2, 2] and run.total("masked") == 0
    assert (run.weights > 0).all()


def test_more_tokens_than_columns():
    with pytest.raises(ValueError, match="128 columns, one for each key: 129"):
        run_causal(129)


def test_what_is_said_and_drawn(frames):
    assert len(frames) == 5 and frames[-1].telling
    assert frames[0].caption == (
        "Block 0 has rows 96–127. It loads 4 tiles of keys and masks that of keys 96–127."
    )
    assert frames[-1].caption == (
        "10 of 16 pairs of tiles are loaded and multiplied, 4 of them masked. The other 6 are "
        "skipped."
    )
    shown = texts(frames[-1].svg)
    assert shown.count("masked") == 4 and shown.count("skipped") == 6
    assert "8,256 pairs that count" in shown  # 128 * 129 / 2
    assert "1,984 pairs multiplied, then masked" in shown  # 10 * 32 * 32 - 8,256
    assert "160" in shown and "KB copied of K and V, of 256" in shown
    assert "1,280" in shown and "mma of all warps, of 2,048" in shown
