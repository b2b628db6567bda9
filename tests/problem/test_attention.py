"""Inputs, the float64 reference and the error that chapters report."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from helpers import cp
from helpers.problem.attention import cdiv, make_inputs, memory, reference, relative_error


def test_inputs_are_normal_and_repeat():
    Q, K, V = make_inputs(400, 50, seed=3)
    assert {x.shape for x in (Q, K, V)} == {(400, 50)}
    assert {x.dtype for x in (Q, K, V)} == {np.dtype(np.float32)}
    for x in (Q, K, V):
        assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    assert not np.array_equal(Q, K) and not np.array_equal(K, V)
    assert all(map(np.array_equal, (Q, K, V), make_inputs(400, 50, seed=3)))
    assert not np.array_equal(Q, make_inputs(400, 50, seed=4)[0])
    with pytest.raises(ValueError, match="1 or more, not 0, 4"):
        make_inputs(0, 4)


def test_the_reference_against_many_digits():
    """The formula once more, row by row and without the shift, in 50 digits."""
    Q, K, V = make_inputs(5, 3, seed=2)
    Q = Q * 20  # far apart scores
    exact = reference(Q, K, V)
    with mpmath.workdps(50):
        q, k, v = (mpmath.matrix(x.astype(float).tolist()) for x in (Q, K, V))
        for i in range(5):
            scores = [mpmath.fdot(q[i, :], k[j, :]) / mpmath.sqrt(3) for j in range(5)]
            weights = [mpmath.exp(s) for s in scores]
            total = mpmath.fsum(weights)
            out = [
                mpmath.fsum(w * v[j, c] for j, w in enumerate(weights)) / total for c in range(3)
            ]
            np.testing.assert_allclose(exact.S[i], [float(s) for s in scores], rtol=1e-14)
            np.testing.assert_allclose(
                exact.P[i], [float(w / total) for w in weights], rtol=1e-12, atol=1e-30
            )
            np.testing.assert_allclose(exact.O[i], [float(x) for x in out], rtol=1e-12)


def test_the_reference_survives_large_scores_and_takes_device_arrays():
    Q = cp.asarray(np.array([[1000.0], [-1000.0]], np.float32))
    exact = reference(Q, Q, Q)
    np.testing.assert_array_equal(exact.P, np.eye(2))
    np.testing.assert_array_equal(exact.O, [[1000.0], [-1000.0]])


def test_relative_error_is_the_norm_of_the_difference():
    expected = np.array([[3.0, 0.0], [0.0, 4.0]])
    result = np.array([[3.0, 0.3], [-0.4, 4.0]], np.float32)
    assert relative_error(result, expected) == pytest.approx(0.1, rel=1e-6)
    assert relative_error(cp.asarray(result), expected) == pytest.approx(0.1, rel=1e-6)
    assert relative_error(expected, expected) == 0
    assert relative_error(np.zeros(2), np.zeros(2)) == 0


def test_relative_error_lets_nothing_pass():
    expected = np.ones((2, 3))
    for bad in (np.nan, np.inf, -np.inf):
        result = expected.copy()
        result[1, 2] = bad
        assert relative_error(result, expected) == math.inf
    assert relative_error(np.full(2, 1e-9), np.zeros(2)) == math.inf
    with pytest.raises(ValueError, match=r"shape \(3, 2\), and \(2, 3\) is expected"):
        relative_error(expected.T, expected)
    with pytest.raises(ValueError, match="no elements"):
        relative_error(np.ones(0), np.ones(0))


def test_one_wrong_element_of_many_shows():
    exact = reference(*make_inputs(257, 8))
    P = exact.P.astype(np.float32)
    assert relative_error(P, exact.P) < 1e-7
    P[200, 100] *= 1.5
    assert relative_error(P, exact.P) > 1e-6


def test_memory_in_bytes():
    assert memory(65_536, 64)["S"] == memory(65_536, 64)["P"] == 16 * 2**30
    assert memory(65_536, 64)["Q"] == memory(65_536, 64)["O"] == 16 * 2**20
    assert memory(100, 7, itemsize=2) == {"Q": 1400, "K": 1400, "V": 1400, "O": 1400,
                                          "S": 20_000, "P": 20_000}  # fmt: skip


def test_cdiv_rounds_up():
    assert [cdiv(n, 8) for n in (1, 7, 8, 9, 16)] == [1, 1, 1, 2, 2]
