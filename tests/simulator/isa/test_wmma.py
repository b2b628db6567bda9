"""<mma.h> as CUDA C: every shape, type and layout against NumPy, and what loads and stores cost.

The fragments' layout and the machine instructions that fetch them (ldmatrix from shared memory,
ordinary loads elsewhere) are those that the assembler of CUDA 13 gives for sm_90.
"""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from helpers import simulator
from helpers.simulator.errors import SimulatorError

HEAD = """
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
namespace sub = wmma::experimental::precision;
"""
# C type of a factor -> (fragment type, NumPy type)
TYPES = {
    "half": ("half", np.float16),
    "__nv_bfloat16": ("__nv_bfloat16", ml_dtypes.bfloat16),
    "signed char": ("signed char", np.int8),
    "unsigned char": ("unsigned char", np.uint8),
    "float": ("wmma::precision::tf32", np.float32),
    "double": ("double", np.float64),
    "int": ("int", np.int32),
}
WIDE = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
FORMS = [
    *itertools.product(WIDE, ["half"], ["float", "half"]),
    *itertools.product(WIDE, ["__nv_bfloat16"], ["float"]),
    *itertools.product(WIDE, ["signed char", "unsigned char"], ["int"]),
    ((16, 16, 8), "float", "float"),
    ((8, 8, 4), "double", "double"),
]
LAYOUTS = list(itertools.product(("row", "col"), repeat=2))

# Loads A from global and B from shared memory, changes every element of the sum, and stores it.
KERNEL = """
extern "C" __global__ void %(name)s(const %(t)s* a, const %(t)s* b, const %(c)s* c, %(c)s* d,
                                    int lda, int ldb, int ldc, int ldd, int size) {
  extern __shared__ __align__(128) char memory[];
  %(t)s* shared = (%(t)s*)memory;
  for (int i = threadIdx.x; i < size; i += 32) shared[i] = b[i];
  __syncthreads();
  wmma::fragment<wmma::matrix_a, %(mnk)s, %(f)s, wmma::%(la)s_major> fa;
  wmma::fragment<wmma::matrix_b, %(mnk)s, %(f)s, wmma::%(lb)s_major> fb;
  wmma::fragment<wmma::accumulator, %(mnk)s, %(c)s> fc, zero;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, shared, ldb);
  wmma::load_matrix_sync(fc, c, ldc, wmma::mem_%(la)s_major);
  wmma::fill_fragment(zero, %(c)s(0));
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] + fc.x[i] + zero.x[i];
  wmma::store_matrix_sync(d, fc, ldd, wmma::mem_%(lb)s_major);
}"""


def name_of(form, layouts) -> str:
    (m, n, k), t, c = form
    return f"m{m}n{n}k{k}_{t}_{c}_{'_'.join(layouts)}".replace(" ", "_")


def source() -> str:
    kernels = [
        KERNEL
        % {
            "name": name_of(form, (la, lb)),
            "mnk": ", ".join(map(str, form[0])),
            "t": form[1],
            "c": form[2],
            "f": TYPES[form[1]][0],
            "la": la,
            "lb": lb,
        }
        for form in FORMS
        for la, lb in LAYOUTS
    ]
    return HEAD + "\n".join(kernels)


SOURCE = source()


def laid_out(matrix: np.ndarray, dtype, layout: str, padding: int) -> np.ndarray:
    """A matrix in memory, each line with some elements more that are not to be touched."""
    lines = matrix if layout == "row" else matrix.T
    memory = np.full((lines.shape[0], lines.shape[1] + padding), 77).astype(dtype)
    memory[:, : lines.shape[1]] = lines
    return memory


@pytest.mark.parametrize("form", FORMS, ids=lambda form: name_of(form, ()))
def test_every_shape_type_and_layout(form):
    (m, n, k), t, c = form
    dtype, sums = TYPES[t][1], TYPES[c][1]
    padding = 16 // np.dtype(dtype).itemsize
    for la, lb in LAYOUTS:
        rng = np.random.default_rng(m + n + len(la + 2 * lb))
        low = 0 if t == "unsigned char" else -4
        a, b = rng.integers(low, 5, (m, k)), rng.integers(low, 5, (k, n))
        c0 = rng.integers(-50, 50, (m, n))
        a_memory, b_memory = laid_out(a, dtype, la, padding), laid_out(b, dtype, lb, padding)
        c_memory = laid_out(c0, sums, la, 8)
        d_memory = np.full(laid_out(c0, sums, lb, 8).shape, 55, sums)
        leading = (np.int32(x.shape[1]) for x in (a_memory, b_memory, c_memory, d_memory))
        simulator.launch(
            SOURCE, name_of(form, (la, lb)), 1, 32,
            (a_memory, b_memory, c_memory, d_memory, *leading, np.int32(b_memory.size)),
            shared_mem=b_memory.nbytes,
        )  # fmt: skip
        lines = d_memory[:, :-8]
        got = lines if lb == "row" else lines.T
        np.testing.assert_array_equal(got.astype(np.float64), 2.0 * (a @ b + c0))
        assert (d_memory[:, -8:] == 55).all()


# ---------------------------------------------------------------- elements


DUMP = """
extern "C" __global__ void dump(const half* p, const float* q, half* a, float* c, int lines) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, p, 16);
  wmma::load_matrix_sync(fc, q, 16, wmma::mem_row_major);
  for (int i = 0; i < fa.num_elements; i++) a[i * 32 + threadIdx.x] = fa.x[i];
  for (int i = 0; i < fc.num_elements; i++) c[i * 32 + threadIdx.x] = fc.x[i];
}"""


def test_elements_lie_as_those_of_mma_sync():
    p, q = np.arange(256, dtype=np.float16), np.arange(256, dtype=np.float32)
    a, c = np.zeros((16, 32), np.float16), np.zeros((8, 32), np.float32)
    simulator.launch(HEAD + DUMP, "dump", 1, 32, (p, q, a, c, np.int32(16)))
    lane, i = np.arange(32), np.arange(8)[:, None]
    g, t = lane // 4, lane % 4
    row = g + 8 * (i // 2 % 2)
    expected = 16 * row + 2 * t + i % 2 + 8 * (i // 4)
    np.testing.assert_array_equal(a[:8], expected)
    np.testing.assert_array_equal(a[8:], expected)  # sixteen elements where eight would do
    np.testing.assert_array_equal(c, expected)


# ---------------------------------------------------------------- types that go apart


MIXED = """
template <class C, class D> __device__ void mixed(const half* a, const half* b, C* c, D* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, C> fc;
  wmma::fragment<wmma::accumulator, 16, 16, 16, D> fd;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  wmma::mma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d, fd, 16, wmma::mem_row_major);
}
extern "C" __global__ void widen(const half* a, const half* b, half* c, float* d) {
  mixed(a, b, c, d);
}
extern "C" __global__ void narrow(const half* a, const half* b, float* c, half* d) {
  mixed(a, b, c, d);
}
extern "C" __global__ void saturate(const signed char* a, const signed char* b, int* c, int* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc, fd;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  wmma::mma_sync(fd, fa, fb, fc, true);
  wmma::store_matrix_sync(d, fd, 16, wmma::mem_row_major);
  wmma::mma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d + 256, fd, 16, wmma::mem_row_major);
}
template <class T, class P> __device__ void nibbles(const P* a, const P* b, int* d) {
  wmma::fragment<wmma::matrix_a, 8, 8, 32, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, T, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> fd;
  wmma::fill_fragment(fd, 5);
  wmma::load_matrix_sync(fa, a, 32);
  wmma::load_matrix_sync(fb, b, 32);
  wmma::mma_sync(fd, fa, fb, fd);
  wmma::store_matrix_sync(d, fd, 8, wmma::mem_row_major);
}
extern "C" __global__ void s4(const void* a, const void* b, int* d) { nibbles<sub::s4>(a, b, d); }
extern "C" __global__ void u4(const void* a, const void* b, int* d) { nibbles<sub::u4>(a, b, d); }
extern "C" __global__ void ones(const sub::b1* a, const sub::b1* b, int* d) {
  wmma::fragment<wmma::matrix_a, 8, 8, 128, sub::b1, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, sub::b1, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> fc, fd;
  wmma::fill_fragment(fc, 5);
  wmma::load_matrix_sync(fa, a, 128);
  wmma::load_matrix_sync(fb, b, 128);
  wmma::bmma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d, fd, 8, wmma::mem_row_major);
  wmma::bmma_sync(fd, fa, fb, fc, wmma::experimental::bmmaBitOpAND);
  wmma::store_matrix_sync(d + 64, fd, 8, wmma::mem_row_major);
}"""


def test_sums_of_another_type():
    """float16 into float32 keeps what a float16 could not hold; the way back rounds once."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.integers(-40, 40, (16, 16)).astype(np.float16) for _ in range(3))
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    assert (np.abs(exact) > 2048).any()
    wide, narrow = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float16)
    simulator.launch(HEAD + MIXED, "widen", 1, 32, (a, b, c, wide))
    np.testing.assert_array_equal(wide, exact)
    simulator.launch(HEAD + MIXED, "narrow", 1, 32, (a, b, c.astype(np.float32), narrow))
    np.testing.assert_array_equal(narrow, exact.astype(np.float16))


def test_integers_saturate_or_wrap():
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-128, 128, (16, 16)).astype(np.int8) for _ in range(2))
    c = rng.choice([2**31 - 1, -(2**31), 7], (16, 16)).astype(np.int32)
    d = np.zeros((2, 16, 16), np.int32)
    simulator.launch(HEAD + MIXED, "saturate", 1, 32, (a, b, c, d))
    exact = a.astype(np.int64) @ b.T.astype(np.int64) + c
    np.testing.assert_array_equal(d[0], np.clip(exact, -(2**31), 2**31 - 1))
    np.testing.assert_array_equal(d[1], (exact + 2**31) % 2**32 - 2**31)


@pytest.mark.parametrize(("kernel", "low"), [("s4", -8), ("u4", 0)])
def test_four_bits(kernel, low):
    rng = np.random.default_rng(7)
    a, b = rng.integers(low, low + 16, (2, 8, 32))
    packed = [(m[:, ::2] & 15 | (m[:, 1::2] & 15) << 4).astype(np.uint8) for m in (a, b)]
    d = np.zeros((8, 8), np.int32)
    simulator.launch(HEAD + MIXED, kernel, 1, 32, (*packed, d))
    np.testing.assert_array_equal(d, a @ b.T + 5)


def test_single_bits():
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 2, (2, 8, 128)).astype(np.uint8)
    packed = [np.packbits(m, axis=1, bitorder="little").view(np.uint32) for m in (a, b)]
    d = np.zeros((2, 8, 8), np.int32)
    simulator.launch(HEAD + MIXED, "ones", 1, 32, (*packed, d))
    np.testing.assert_array_equal(d[0], (a[:, None] ^ b[None]).sum(-1) + 5)
    np.testing.assert_array_equal(d[1], (a[:, None] & b[None]).sum(-1, dtype=np.int32) + 5)


# ---------------------------------------------------------------- counters


COUNTED = """
extern "C" __global__ void counted(const half* p, float* q, int ld, int ldc) {
  __shared__ __align__(128) half tile[16 * 40];
  for (int i = threadIdx.x; i < 16 * ld; i += 32) tile[i] = p[i];
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.f);
  wmma::load_matrix_sync(fa, tile, ld);
  wmma::load_matrix_sync(fb, p, ld);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(q, fc, ldc, LAYOUT);
}"""


@pytest.mark.parametrize(
    ("ld", "layout", "wavefronts"), [(40, "row", 4), (32, "row", 16), (16, "col", 8)]
)
def test_what_loads_and_stores_cost(ld, layout, wavefronts):
    """Shared: one ldmatrix of four 8 x 8 matrices. Global: four loads and four or eight stores."""
    code = HEAD + COUNTED.replace("LAYOUT", f"wmma::mem_{layout}_major")
    p, q = np.ones((16, ld), np.float16), np.zeros((16, 16), np.float32)
    report = simulator.launch(code, "counted", 1, 32, (p, q, np.int32(ld), np.int32(16)))
    assert (q == 16).all()
    line = {text.split("(")[0].split("::")[-1] + text[text.find("(") : text.find(",")]: n
            for n, text in enumerate(code.splitlines(), 1) if "_sync(" in text}  # fmt: skip
    shared = report.by_line[line["load_matrix_sync(fa"]]
    assert shared["ldmatrix_instructions"] == 1
    assert shared["shared_load_wavefronts"] == wavefronts
    assert shared["shared_load_bank_conflicts"] == wavefronts - 4
    loaded = report.by_line[line["load_matrix_sync(fb"]]
    assert loaded["global_load_requests"] == 4
    # sixteen bytes of eight rows each: a sector a row
    assert loaded["global_load_sectors"] == 32
    stored = report.by_line[line["store_matrix_sync(q"]]
    assert stored["global_store_requests"] == (4 if layout == "row" else 8)
    assert stored["global_store_sectors"] == 32
    assert report.by_line[line["mma_sync(fc"]]["flops"] == 2 * 16**3


# ---------------------------------------------------------------- faults


def test_a_leading_dimension_that_breaks_rows_is_a_fault():
    p, q = np.ones((16, 40), np.float16), np.zeros((16, 16), np.float32)
    code = HEAD + COUNTED.replace("LAYOUT", "wmma::mem_row_major")
    with pytest.raises(SimulatorError, match="multiple of 4 elements") as caught:
        simulator.launch(code, "counted", 1, 32, (p, q, np.int32(40), np.int32(15)))
    assert caught.value.kind == "misaligned"
    with pytest.raises(SimulatorError, match="out-of-bounds write to q"):
        simulator.launch(code, "counted", 1, 32, (p, q, np.int32(40), np.int32(20)))


def test_the_sanitizer_sees_fragments():
    code = HEAD + COUNTED.replace("LAYOUT", "wmma::mem_row_major")
    args = np.ones((16, 40), np.float16), np.zeros((16, 16), np.float32), np.int32(40), np.int32(16)
    assert not simulator.launch(code, "counted", 1, 32, args, sanitize=True).findings
    hasty = code.replace("__syncthreads();", "")
    assert simulator.launch(hasty, "counted", 1, 32, args, sanitize=True).findings


@pytest.mark.parametrize(
    ("instruction", "operands", "says"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite",
         "{%r0,%r0,%r0,%r0},{%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0},"
         "{%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0},{%r0,%r0,%r0,%r0}",
         "saturates only sums of integers"),
        ("wmma.load.a.sync.aligned.row.m16n16k8.global.f16",
         "{%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0},[%1]", "no shape m16n16k8 with f16 factors"),
    ],
)  # fmt: skip
def test_what_hopper_has_not_is_refused(instruction, operands, says):
    text = operands.replace("%r0", "%0")
    code = (
        'extern "C" __global__ void k(float* p) { int r = 1;'
        f'asm volatile("{instruction} {text};" : "+r"(r) : "l"(p)); p[0] = r; }}'
    )
    with pytest.raises(SimulatorError, match=says):
        simulator.launch(code, "k", 1, 32, (np.zeros(256, np.float32),))
