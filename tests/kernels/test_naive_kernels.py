"""The kernels of chapters 00 and 02 through `load_kernel`, on the simulator and on a GPU."""

import numpy as np
import pytest

from helpers import standin
from helpers.gpu import device
from helpers.kernels import KernelError, load_kernel
from helpers.simulator.errors import SimulatorError


@pytest.fixture(params=["simulator", pytest.param("GPU", marks=pytest.mark.gpu)])
def cp(request, monkeypatch):
    """`cp`, once as the stand-in and once as CuPy."""
    if request.param == "simulator":
        module = standin
    else:
        import cupy as module
    monkeypatch.setattr(device, "cp", module)
    return module


def blocks(n, size):
    return -(-n // size)


def relative_error(result, reference):
    """Frobenius norm of the error over that of the reference."""
    return np.linalg.norm(result - reference) / np.linalg.norm(reference)


def inputs(N, d):
    rng = np.random.default_rng([N, d])
    return [rng.standard_normal((N, d), dtype=np.float32) for _ in range(3)]


@pytest.mark.parametrize("n", [1, 31, 257])
@pytest.mark.parametrize("block", [32, 100])
def test_vector_add(cp, n, block):
    rng = np.random.default_rng(n)
    a, b = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    c = cp.full(n + 3, np.nan, np.float32)
    load_kernel("00_vector_add.cu")(blocks(n, block), block, (cp.asarray(a), cp.asarray(b), c, n))
    np.testing.assert_array_equal(cp.asnumpy(c)[:n], a + b)
    assert np.isnan(cp.asnumpy(c)[n:]).all()


@pytest.mark.parametrize(
    ("N", "d", "values"),
    [
        (1, 1, {}),
        (1, 80, {"TILE": 8}),
        (31, 33, {"TILE": 32, "BLOCK_SIZE": 64}),
        (31, 64, {}),
        (257, 1, {"BLOCK_SIZE": 128}),
        (257, 33, {}),
        (257, 64, {"TILE": 8}),
        (257, 80, {"TILE": 32}),
    ],
)
def test_attention_at_odd_sizes(cp, N, d, values):
    q, k, v = inputs(N, d)
    Q, K, V = (cp.asarray(x) for x in (q, k, v))
    S, P, out = (cp.full(shape, np.nan, np.float32) for shape in ((N, N), (N, N), (N, d)))
    products, rows, outputs = (
        load_kernel("02_naive.cu", name, **values)
        for name in ("scaled_dot_product", "softmax", "pv_multiply")
    )
    tile = products.parameters["TILE"].value
    size = rows.parameters["BLOCK_SIZE"].value
    products((blocks(N, tile), blocks(N, tile)), (tile, tile), (Q, K, S, N, d))
    rows(blocks(N, size), size, (S, P, N))
    outputs((blocks(N, tile), blocks(d, tile)), (tile, tile), (P, V, out, N, d))

    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(d)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    assert relative_error(cp.asnumpy(S), scores) < 1e-6
    assert relative_error(cp.asnumpy(P), weights) < 1e-6
    assert relative_error(cp.asnumpy(out), weights @ v.astype(np.float64)) < 1e-6


def test_softmax_survives_large_scores(cp):
    N = 70
    s = np.linspace(-3e38, 3e38, N * N, dtype=np.float32).reshape(N, N)
    s[0] = 200.0  # expf(200) would overflow
    s[1, :-1] = -np.inf
    P = cp.full((N, N), np.nan, np.float32)
    load_kernel("02_naive.cu", "softmax")(1, 256, (cp.asarray(s), P, N))
    p = cp.asnumpy(P)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(p[0], 1.0 / N, rtol=1e-6)
    assert p[1].tolist() == [0.0] * (N - 1) + [1.0]


def test_counts_stand_at_their_lines(cp):
    # A warp is 16 rows by 2 columns of S. With d = 8 a row of Q or K is one sector of 32 bytes, so
    # q[i] touches 16 sectors and k[i] 2; the pair of columns that it stores shares a sector.
    N, d, warps = 64, 8, 64 * 64 // 32
    q, k, _ = inputs(N, d)
    S = cp.full((N, N), np.nan, np.float32)
    kernel = load_kernel("02_naive.cu", "scaled_dot_product")
    report = kernel.count((4, 4), (16, 16), (cp.asarray(q), cp.asarray(k), S, N, d))
    (sums,) = kernel.lines("sum +=")
    (stores,) = kernel.lines("S[(size_t)row * N + col] =")
    assert report.by_line[sums]["global_load_requests"] == warps * d * 2
    assert report.by_line[sums]["global_load_sectors"] == warps * d * (16 + 2)
    assert report.by_line[stores]["global_store_requests"] == warps
    assert report.by_line[stores]["global_store_sectors"] == warps * 16
    assert np.isnan(cp.asnumpy(S)).all()  # counting leaves the arrays alone

    shown = kernel.show(report, mark="sum +=")
    assert shown.columns == (
        "global_load_requests",
        "global_load_sectors",
        "global_store_requests",
        "global_store_sectors",
    )
    assert shown.sums == (warps * d * 2, warps * d * 18, warps, warps * 16)
    assert shown.sums[1] == report.counters["global_load_sectors"]


def test_counting_takes_numpy_arrays(cp):
    a = np.ones(64, np.float32)
    report = load_kernel("00_vector_add.cu").count(2, 32, (a, a, np.empty_like(a), 64))
    assert report.counters["global_load_sectors"] == 16
    assert report.counters["global_store_sectors"] == 8


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"block": (33, 33)}, "the block 33 × 33 has 1,089 threads"),
        ({"Q": lambda cp, q: cp.asarray(q.astype(np.float64))}, r"Q is float64.*astype\(np\.float"),
        ({"Q": lambda cp, q: cp.asarray(q.T.copy()).T}, r"pass cp\.ascontiguousarray\(Q\)"),
        ({"Q": lambda cp, q: q}, r"Q is a NumPy array in host memory.*cp\.asarray\(Q\)"),
        ({"drop": True}, r"takes 5 arguments \(Q, K, S, N, d\), got 4: d is missing"),
    ],
)
def test_launches_that_cannot_work(cp, change, sentence):
    N, d = 20, 12
    q, k, _ = inputs(N, d)
    S = cp.zeros((N, N), np.float32)
    Q = change["Q"](cp, q) if "Q" in change else cp.asarray(q)
    args = (Q, cp.asarray(k), S, N, d)
    kernel = load_kernel("02_naive.cu", "scaled_dot_product")
    with pytest.raises(KernelError, match=sentence):
        kernel((2, 2), change.get("block", (16, 16)), args[:4] if "drop" in change else args)
    assert not cp.asnumpy(S).any()


def test_more_than_48_kb_of_shared_memory(cp, tmp_path):
    (tmp_path / "big.cu").write_text(
        'extern "C" __global__ void turn(const float* a, float* b, int n) {\n'
        "    extern __shared__ float s_a[];\n"
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) s_a[i] = a[i];\n"
        "    __syncthreads();  // s_a is read in another order\n"
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) b[i] = s_a[n - 1 - i];\n"
        "}\n"
    )
    kernel = load_kernel("big.cu", kernels_dir=tmp_path)
    n = 15_000
    a = np.arange(n, dtype=np.float32)
    b = cp.zeros(n, np.float32)
    kernel(1, 256, (cp.asarray(a), b, n), shared_mem=4 * n)
    np.testing.assert_array_equal(cp.asnumpy(b), a[::-1])
    report = kernel.count(1, 256, (cp.asarray(a), b, n), shared_mem=4 * n)
    assert report.counters["shared_load_bank_conflicts"] == 0


def test_a_compile_error_has_the_files_line(cp, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "twice.cuh").write_text(
        "__device__ float twice(float x)\n{\n    return 2.0f * y;\n}\n"
    )
    text = '#include "twice.cuh"\n\nextern "C" __global__ void k(float* a) {\n    a[0] = b;\n}\n'
    (tmp_path / "a.cu").write_text(text)
    kernel = load_kernel("a.cu", kernels_dir=tmp_path)
    with pytest.raises(SimulatorError) as caught:
        kernel(1, 1, (cp.zeros(1, np.float32),))
    assert caught.value.kind == "compile"
    assert str(caught.value).startswith(
        'include/twice.cuh:3: error: identifier "y" is undefined.\n\n  3 |     return 2.0f * y;\n'
    )
    assert 'a.cu(4): error: identifier "b" is undefined' in str(caught.value)
