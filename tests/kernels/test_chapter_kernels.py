"""The kernels of the chapters against float64: odd sizes, every parameter, poisoned outputs.

The tests with `-m gpu` are the same ones through real CuPy; the others run on whatever `cp` is.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from helpers import cp, device
from helpers.kernels import load_kernel
from helpers.problem.attention import cdiv, make_inputs, reference, relative_error

SIZES = list(itertools.product((1, 31, 257), (1, 33, 64, 80)))
TOLERANCE = 1e-6

on_each_device = pytest.mark.parametrize(
    "wanted",
    [
        pytest.param("simulator", marks=pytest.mark.skipif(device.is_gpu, reason="cp is CuPy")),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ],
)
each_tile = pytest.mark.parametrize(
    "tile", load_kernel("02_naive.cu", "softmax").parameters["TILE"].choices
)
each_block_size = pytest.mark.parametrize(
    "block_size", load_kernel("02_naive.cu", "softmax").parameters["BLOCK_SIZE"].choices
)
each_size = pytest.mark.parametrize(("N", "d"), SIZES)


def poisoned(*shape):
    return cp.full(shape, cp.nan, dtype=cp.float32)


def on_device(array):
    return cp.asarray(array.astype(np.float32))


def scores(Q, K, tile):
    (N, d), S = Q.shape, poisoned(len(Q), len(Q))
    k = load_kernel("02_naive.cu", "scaled_dot_product", TILE=tile)
    k((cdiv(N, tile), cdiv(N, tile)), (tile, tile), (Q, K, S, N, d))
    return S


def softmax(S, block_size):
    N, P = len(S), poisoned(*S.shape)
    k = load_kernel("02_naive.cu", "softmax", BLOCK_SIZE=block_size)
    k(cdiv(N, block_size), block_size, (S, P, N))
    return P


def pv_multiply(P, V, tile):
    (N, d), out = V.shape, poisoned(*V.shape)
    k = load_kernel("02_naive.cu", "pv_multiply", TILE=tile)
    k((cdiv(N, tile), cdiv(d, tile)), (tile, tile), (P, V, out, N, d))
    return out


@on_each_device
@each_tile
@each_size
def test_scores(wanted, N, d, tile):
    Q, K, V = make_inputs(N, d, seed=N + d)
    S = scores(on_device(Q), on_device(K), tile)
    assert relative_error(S, reference(Q, K, V).S) < TOLERANCE


@on_each_device
@each_block_size
@pytest.mark.parametrize("N", (1, 31, 257))
def test_softmax(wanted, N, block_size):
    """Rows of very different levels, some with scores whose exponential overflows in fp32."""
    rng = np.random.default_rng(N)
    S = (rng.normal(0, 3, (N, N)) + rng.uniform(-300, 300, (N, 1))).astype(np.float32)
    shifted = np.exp(S.astype(np.float64) - S.max(axis=1, keepdims=True))
    P = softmax(on_device(S), block_size)
    assert relative_error(P, shifted / shifted.sum(axis=1, keepdims=True)) < TOLERANCE
    sums = cp.asnumpy(P).sum(axis=1, dtype=np.float64)
    assert abs(sums - 1).max() < 2e-6


@on_each_device
@each_tile
@each_size
def test_pv_multiply(wanted, N, d, tile):
    rng = np.random.default_rng(N * d)
    P = rng.uniform(0, 2 / N, (N, N)).astype(np.float32)  # not symmetric, rows of unlike sums
    V = rng.standard_normal((N, d)).astype(np.float32)
    out = pv_multiply(on_device(P), on_device(V), tile)
    assert relative_error(out, P.astype(np.float64) @ V.astype(np.float64)) < TOLERANCE


@on_each_device
@each_size
def test_attention_from_end_to_end(wanted, N, d):
    Q, K, V = make_inputs(N, d, seed=1)
    P = softmax(scores(on_device(Q), on_device(K), 16), 256)
    out = pv_multiply(P, on_device(V), 16)
    exact = reference(Q, K, V)
    assert relative_error(P, exact.P) < TOLERANCE
    assert relative_error(out, exact.O) < TOLERANCE


@on_each_device
def test_extreme_rows_of_softmax(wanted):
    """A row of one value, a row with one overwhelming score, a row that reaches to -inf."""
    S = np.zeros((4, 4), np.float32)
    S[1] = [0, 500, 0, 0]
    S[2] = [-np.inf, 0, -np.inf, 0]
    S[3] = [-1000, -1000, -999, -1000]
    P = cp.asnumpy(softmax(on_device(S), 64))
    e = np.exp(1)
    expected = np.array(
        [[0.25] * 4, [0, 1, 0, 0], [0, 0.5, 0, 0.5], np.array([1, 1, e, 1]) / (3 + e)]
    )
    np.testing.assert_allclose(P, expected, rtol=1e-6)


@on_each_device
@pytest.mark.parametrize("n", (1, 31, 32, 1000))
@pytest.mark.parametrize("block", (1, 20, 256))
def test_vector_add(wanted, n, block):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n), dtype=np.float32)
    c = poisoned(n)
    load_kernel("00_vector_add.cu")(cdiv(n, block), block, (cp.asarray(a), cp.asarray(b), c, n))
    np.testing.assert_array_equal(cp.asnumpy(c), a + b)


def test_a_sum_of_matrices_at_odd_sizes():
    rng = np.random.default_rng(3)
    for rows, columns, tile in ((5, 3, 4), (19, 37, 8), (33, 31, 32)):
        a, b = rng.standard_normal((2, rows, columns), dtype=np.float32)
        c, grid = poisoned(rows, columns), (cdiv(columns, tile), cdiv(rows, tile))
        k = load_kernel("00_matrix_add.cu", TILE=tile)
        k(grid, (tile, tile), (cp.asarray(a), cp.asarray(b), c, rows, columns))
        np.testing.assert_array_equal(cp.asnumpy(c), a + b)


def test_the_guards_keep_to_the_matrices():
    """Nothing beyond the last element is written: the outputs are views into a larger buffer."""
    N, d, tile = 31, 33, 16
    Q, K, V = map(cp.asarray, make_inputs(N, d))
    buffer = poisoned(2 * N * N)
    S = buffer[: N * N].reshape(N, N)
    k = load_kernel("02_naive.cu", "scaled_dot_product", TILE=tile)
    k((cdiv(N, tile) + 1, cdiv(N, tile)), (tile, tile), (Q, K, S, N, d))
    values = cp.asnumpy(buffer)
    assert np.isfinite(values[: N * N]).all() and np.isnan(values[N * N :]).all()


@pytest.mark.parametrize("tile", (8, 16, 32))
def test_sectors_of_the_products(tile):
    """A warp covers `tile` rows and 32 / tile columns of the result (chapter 02 says so)."""
    N = d = 32
    Q, K, V = map(cp.asarray, make_inputs(N, d))
    S, tiles = poisoned(N, N), N // tile
    k = load_kernel("02_naive.cu", "scaled_dot_product", TILE=tile)
    counters = k.count((tiles, tiles), (tile, tile), (Q, K, S, N, d)).counters
    warps = N * N // 32
    assert counters["global_load_requests"] == 2 * warps * d
    assert counters["global_load_sectors"] == (tile + 32 // tile) * warps * d
    assert counters["global_store_sectors"] == tile * warps
    k = load_kernel("02_naive.cu", "pv_multiply", TILE=tile)
    counters = k.count((tiles, tiles), (tile, tile), (S, V, poisoned(N, d), N, d)).counters
    assert counters["global_load_sectors"] == (tile + 1) * warps * N
