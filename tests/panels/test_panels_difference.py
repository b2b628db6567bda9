"""Where and in which pattern a wrong result is wrong, in words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from helpers.panels import difference
from helpers.panels.places import place
from helpers.problem.attention import relative_error
from helpers.problem.poison import poison, poisoned

TOLERANCE = 2e-6
WANT, SQUARE = (
    np.copysign(np.abs(normal) + 0.1, normal)  # none so small that 0 would be right
    for normal in (
        np.random.default_rng(1).standard_normal((100, 72)),
        np.random.default_rng(2).standard_normal((64, 64)),
    )
)
COMPUTED_NAN = np.array([0x7FFFFFFF], np.uint32).view(np.float32)[0]  # as a GPU computes it


def changed(change, want=WANT, dtype=np.float32):
    result = want.astype(dtype)
    change(result)
    return result


def seen(result, want=WANT, **options):
    found = difference(result, want, TOLERANCE, **options)
    assert found is not None
    return found


def at(*index, value=0):
    return lambda a: a.__setitem__(index if len(index) > 1 else index[0], value)


S = slice


@pytest.mark.parametrize(
    ("change", "options", "kind", "words"),
    [
        (at(S(None), value=np.nan), {}, "unwritten", "before the kernel ran"),
        (at(S(None), value=COMPUTED_NAN), {}, "nan", "every one of them is NaN"),
        (at(S(None), value=np.inf), {}, "infinite", "infinite"),
        (at([3, 7, 9], value=COMPUTED_NAN), {}, "nan rows", "rows 3, 7 and 9, and every one"),
        (at(5, value=0), {}, "row", "row 5, and every one of them is 0"),
        (at(S(None), 5, value=9), {}, "column", "column 5"),
        (at([3, 4, 50], value=9), {}, "rows", "rows 3, 4 and 50"),
        (at(S(96, None), value=np.nan), {"tile": 16}, "last tile", "(rows 96 to 99), which has 4"),
        (at(S(96, None), value=0), {"tile": (32, 16)}, "last tile", "which has 4 rows of 32"),
        (at(S(None), S(64, None), value=0), {"tile": 16}, "last tile", "has 8 columns of 16"),
        (at(99, value=0), {"tile": 33}, "last tile", "(row 99), which has 1 row of 33"),
        (at(S(None), S(56, 64), value=0), {"tile": 16}, "columns", "columns 56 to 63"),
        (at(S(96, None), value=np.nan), {}, "last rows", "rows 96 to 99"),
        (at(S(30, None), value=np.nan), {}, "first tile right", "only rows 0 to 29 are right"),
        (at(S(0, 25), value=0), {"tile": 25}, "first tile", "rows 0 to 24"),
        (at(S(None), S(3, None, 4), value=0), {}, "every k-th", "every 4th column, from 3"),
        (at(S(1, None, 2), value=np.nan), {}, "every k-th", "every 2nd row, from 1"),
        (at(S(None), S(None, None, 3), value=0), {}, "every k-th", "every 3rd column, from 0"),
        (at(S(None), [c for c in range(72) if c % 8 > 3], value=0), {}, "every k-th",
         "the columns 4 to 7 of every 8"),
        (at(S(None), [c for c in range(72) if c % 6 != 2], value=0), {}, "every k-th",
         "only every 6th column, from 2, is right"),
        (at(5, S(None, None, 9), value=4), {}, "row", "row 5, every 9th column, from 0"),
        (at(S(10, 20), S(30, 33), value=4), {}, "one block", "rows 10 to 19 and columns 30 to 32"),
        (at(S(16, 32), S(48, 64), value=4), {"tile": 16}, "one tile", "the tile (1, 3)"),
        (at(17, 33, value=4), {}, "one element", "row 17 and column 33 alone"),
    ],
)  # fmt: skip
def test_places(change, options, kind, words):
    result = changed(change)
    found = seen(result, **options)
    assert (found.kind, words in found.pattern) == (kind, True), found.pattern
    wrong = ~np.isclose(result, WANT, rtol=0, atol=1e-3)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    assert found.first == first
    assert (found.wrong, found.total) == (int(wrong.sum()), WANT.size)
    assert found.where == tuple((int(i.min()), int(i.max())) for i in np.nonzero(wrong))


def test_tiles_at_both_edges():
    def change(a):
        a[96:] = np.nan
        a[:, 64:] = np.nan

    found = seen(changed(change), tile=16)
    assert found.kind == "last tile" and found.unwritten == found.wrong == 4 * 72 + 96 * 8
    assert "rows from 96 and columns from 64" in found.pattern


@pytest.mark.parametrize("options", [{}, {"tile": 16}])
def test_only_the_first_block_is_right(options):
    def change(a):
        kept = a[:16, :16].copy()
        a.fill(np.nan)
        a[:16, :16] = kept

    found = seen(changed(change), **options)
    assert found.kind == "first block right" and "only block (0, 0) is right" in found.pattern
    assert "rows 0 to 15, columns 0 to 15" in found.pattern


def tiles(a, edge, order):
    down, across = a.shape[0] // edge, a.shape[1] // edge
    return a.reshape(down, edge, across, edge).transpose(order).reshape(a.shape)


@pytest.mark.parametrize(
    ("result", "want", "kind", "words"),
    [
        (SQUARE.T, SQUARE, "transposed", "it is the transpose"),
        (WANT.T.reshape(WANT.shape), WANT, "transposed", "as those of the transpose do"),
        (tiles(SQUARE, 16, (0, 3, 2, 1)), SQUARE, "transposed tiles", "every tile of 16 × 16"),
        (tiles(SQUARE, 16, (2, 1, 0, 3)), SQUARE, "swapped tiles", "block row and column are exch"),
        (WANT * 8, WANT, "factor", "8 times what it should be (√64: 1/√d is missing if d = 64)"),
        (WANT * np.sqrt(48), WANT, "factor", "√48: 1/√d is missing"),
        (WANT / np.sqrt(72), WANT, "factor", "1/√72: 1/√d too often"),
        (-WANT, WANT, "factor", "(the sign)"),
        (WANT * 1.1, WANT, "factor", "1.1 times what it should be"),
        (WANT * np.log2(np.e), WANT, "factor", "log₂ e"),
        (WANT * np.linspace(2, 5, 100)[:, None], WANT, "factor of each line", "row is off by a"),
        (WANT * np.linspace(2, 5, 72), WANT, "factor of each line", "column is off by a factor"),
        (np.roll(WANT, 1, 1), WANT, "shifted", "one column: column 1 holds column 0"),
        (np.roll(WANT, -1, 0), WANT, "shifted", "one row: row 0 holds row 1"),
        (np.roll(WANT[0], 1), WANT[0], "shifted", "one position: index 1 holds index 0"),
        (np.roll(WANT, -16, 1), WANT, "shifted", "16 columns: column 0 holds column 16"),
        (WANT * 0, WANT, "zeros", "every one of them is 0"),
        (WANT + 1, WANT, "offset", "each of them is 1 too much"),
        (SQUARE[::-1], SQUARE, "everywhere", "no pattern"),
    ],
)
def test_contents(result, want, kind, words):
    found = seen(result.astype(np.float32), want, tile=16 if kind != "transposed" else None)
    assert (found.kind, words in found.pattern) == (kind, True), found.pattern
    assert found.error == pytest.approx(relative_error(result.astype(np.float32), want))
    far = np.abs(result.astype(np.float32) - want)
    assert found.largest == pytest.approx(far.max()) and far[found.at] == far.max()


def test_a_mean_of_eleven_is_no_root_of_a_heads_columns():
    found = seen((WANT / 11).astype(np.float32), WANT)
    assert found.kind == "factor" and "√" not in found.pattern


def test_transposed_tiles_are_found_without_a_tile_too():
    found = seen(tiles(SQUARE, 8, (0, 3, 2, 1)).astype(np.float32), SQUARE)
    assert found.kind == "transposed tiles" and "8 × 8" in found.pattern


def test_a_symmetric_matrix_is_no_transpose():
    symmetric = SQUARE + SQUARE.T
    assert difference(symmetric.T, symmetric, TOLERANCE) is None


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (np.triu_indices(64, 1), "above the diagonal"),
        (np.tril_indices(64, -1), "below the diagonal"),
        (np.triu_indices(64), "the diagonal and what lies above it"),
        (np.diag_indices(64), "they are the diagonal"),
    ],
)
def test_masks(part, words):
    found = seen(changed(at(part, value=7), SQUARE), SQUARE)
    assert found.kind in ("triangle", "diagonal") and words in found.pattern


def test_scattered_and_flat_periods():
    random = np.random.default_rng(3).random(WANT.shape) < 0.1
    found = seen(changed(at(random, value=7)))
    assert found.kind == "scattered" and found.wrong == random.sum() and "race" in found.advice

    def change(a):
        a.reshape(-1)[4::5] = 7

    found = seen(changed(change))
    assert found.kind == "every k-th" and "every 5th element, from 4, counted" in found.pattern


def test_stacks_of_matrices_name_batch_and_head():
    want = np.random.default_rng(4).standard_normal((2, 3, 20, 8))
    found = seen(changed(at(1, 2, value=0), want), want)
    assert found.kind == "batch" and "batch 1 and head 2" in found.pattern
    found = seen(changed(at(S(None), 1, S(16, None), value=0), want), want, tile=(16, 8))
    assert found.kind == "last tile" and "head 1, and there they lie in the last" in found.pattern
    found = seen(changed(at(S(None), S(None), 4, value=0), want), want)
    assert found.kind == "row" and found.wrong == 2 * 3 * 8


def test_poison_and_computed_nans_are_told_apart():
    def change(a):
        a[:10] = np.nan
        a[20:30] = COMPUTED_NAN

    found = seen(changed(change))
    assert (found.wrong, found.unwritten) == (20 * 72, 10 * 72)
    assert "720 were never written, 720 are NaN" in found.pattern


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.int32,
                                   np.uint8])  # fmt: skip
def test_poison_is_recognised_in_every_type(dtype):
    array = np.zeros((3, 5), dtype)
    poison(array)
    array[1, 2] = 1
    expected = np.ones((3, 5), bool)
    expected[1, 2] = False
    np.testing.assert_array_equal(poisoned(array), expected)
    np.testing.assert_array_equal(poisoned(array.T), expected.T)
    found = seen(array, np.ones((3, 5)))
    assert found.unwritten == 14


def test_what_is_right():
    assert difference(WANT.astype(np.float32), WANT, TOLERANCE) is None
    half = WANT.astype(np.float16)
    assert difference(half, WANT, 1e-3) is None
    masked = np.where(np.tri(64, dtype=bool), SQUARE, -np.inf)
    assert difference(masked.astype(np.float32), masked, TOLERANCE) is None
    with_nan = np.where(np.tri(64, dtype=bool), SQUARE, np.nan)
    assert difference(with_nan.astype(np.float32), with_nan, TOLERANCE) is None
    assert difference(np.zeros((3, 2)), np.zeros((3, 2)), TOLERANCE) is None
    assert difference(np.float32(2), 2.0, TOLERANCE) is None


def test_a_finite_number_in_place_of_a_mask_is_wrong():
    masked = np.where(np.tri(64, dtype=bool), SQUARE, -np.inf)
    found = seen(SQUARE.astype(np.float32), masked)
    assert found.kind == "triangle" and found.wrong == 64 * 63 // 2
    assert "should be −∞ and is a finite number" in found.pattern
    assert found.error == np.inf and "in place of -inf" in found.how_far


def test_the_limits_of_rounding():
    found = seen(WANT * (1 + 3e-6))
    assert found.kind == "imprecise" and found.wrong == 0
    assert difference(WANT * (1 + 1e-6), WANT, TOLERANCE) is None
    want = np.random.default_rng(5).standard_normal(100_000) * 1000
    result = want.copy()
    result[77] += 0.2  # as a whole within the tolerance
    assert seen(result, want).first == (77,)
    assert seen(np.full(3, 1e-30), np.zeros(3)).wrong == 3


def test_sentence_and_panel():
    found = seen(changed(at(S(96, None), value=0)), name="P", tile=16)
    error = relative_error(changed(at(S(96, None), value=0)), WANT)
    assert found.sentence.startswith(
        "288 of 7,200 elements of P are wrong: they lie in the last tile (rows 96 to 99), which "
        f"has 4 rows of 16, and every one of them is 0. P[96, 0] is 0 in place of {WANT[96, 0]:.4g}"
    )
    assert f"{error:.4g}" in found.sentence and "up to 2e-6 is rounding" in found.sentence
    panel = found.panel()
    assert panel.title == "P is wrong" and found.pattern in panel.said[0] and "grid" in panel.todo
    assert str(found) == found.sentence


def test_numbers_of_the_sentence():
    assert seen(changed(at(3, 4, value=9))).sentence.startswith("1 of 7,200 elements of S is wrong")
    assert seen(WANT * 2).count == "All 7,200 elements of S are wrong"
    assert seen(np.float32(3), 2.0).count == "1 of 1 element of S is wrong"
    assert (
        seen(WANT.T).sentence == "S has the wrong shape: it is 72 × 100, and 100 × 72 is expected."
    )


@pytest.mark.parametrize("wrong", [np.ones((1, 1), bool), np.ones((1, 7), bool), np.ones(1, bool)])
def test_tiny_arrays(wrong):
    assert place(wrong, None).words
    found = seen(np.full(wrong.shape, 7.0), np.zeros(wrong.shape), tile=16)
    assert found.wrong == wrong.size


def test_what_cannot_be_compared():
    with pytest.raises(ValueError, match="no elements"):
        difference(np.zeros((0, 3)), np.zeros((0, 3)), TOLERANCE)
    with pytest.raises(ValueError, match="tolerance"):
        difference(WANT, WANT, 0)
    for tile in (0, -1, 1.5, "16"):
        with pytest.raises(ValueError, match="tile"):
            difference(WANT, WANT, TOLERANCE, tile=tile)


def test_inputs_are_not_changed():
    result, want = changed(at(5, value=np.nan)), WANT.copy()
    before = result.copy()
    difference(result, want, TOLERANCE)
    np.testing.assert_array_equal(result, before)
    np.testing.assert_array_equal(want, WANT)
