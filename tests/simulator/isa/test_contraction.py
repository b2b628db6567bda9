"""Products and sums of halves, joined where an H200's assembler does so."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator

CODE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(const TYPE* x, TYPE* o, int n) {
    TYPE a = x[0], b = x[1], c = x[2], d = x[3], e = x[4];
    BODY
}
"""
# What an H200 gave for the sums below of default_rng(0)'s halves, as bits.
H200 = """
16494 16420 16653 17167 15966 16578 16568 16076 16158 16316 16932 16805 16482 15730 16437 16237
16607 16833 16490 16926 16472 16786 16926 16719 16647 15807 15973 16420 16496 16523 17025 16867
"""


def run(body: str, x: np.ndarray, kind: str = "half", options=()) -> np.ndarray:
    o = np.zeros(8, x.dtype)
    code = CODE.replace("TYPE", kind).replace("BODY", body)
    simulator.launch(code, "k", (1,), (1,), (x, o, np.int32(1)), options=options)
    return o


def fused(a, b, c) -> np.float16:
    """a b + c rounded once: exact in float64 for the halves below."""
    return np.float16(float(a) * float(b) + float(c))


# Of these, one rounding and two differ for the sums below, and the order of two products tells.
A, B, C, D, E = (np.float16(v) for v in (1.222, 0.926, 1.772, 1.855, 1.374))
X = np.array([A, B, C, D, E])


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("o[0] = __hadd(__hmul(a, b), e);", [fused(A, B, E)]),
        ("o[0] = __hadd(e, __hmul(a, b));", [fused(A, B, E)]),
        ("o[0] = __hsub(__hmul(a, b), e);", [fused(A, B, -E)]),
        ("o[0] = __hsub(e, __hmul(a, b));", [fused(-A, B, E)]),
        # all that reads the product is a sum
        ("half m = __hmul(a, b); o[0] = __hadd(m, c); o[1] = __hsub(m, e);",
         [fused(A, B, C), fused(A, B, -E)]),
        ("half m = __hmul(a, b); o[0] = __hadd(m, e); __syncthreads(); o[1] = m;",
         [A * B + E, A * B]),
        ("half m = __hmul(a, b); o[0] = __hadd(m, m);", [A * B + A * B]),
        ("half m = __hmul(a, b); if (n > 3) o[0] = m; o[1] = __hadd(m, e);", [0, A * B + E]),
        # of two products the one that is read less often, or else the first
        ("o[0] = __hadd(__hmul(a, b), __hmul(c, d));", [fused(A, B, C * D)]),
        ("half m = __hmul(a, b); o[0] = __hadd(m, __hmul(c, d)); o[1] = __hadd(m, e);",
         [fused(C, D, A * B), A * B + E]),
        # who says .rn has two roundings
        ("o[0] = __hadd(__hmul_rn(a, b), e);", [A * B + E]),
        ("o[0] = __hadd_rn(__hmul(a, b), e);", [A * B + E]),
    ],
)  # fmt: skip
def test_a_product_is_joined_with_its_sums(body, wanted):
    np.testing.assert_array_equal(run(body, X)[: len(wanted)], np.array(wanted, np.float16))


def test_the_halves_above_tell_one_rounding_from_two():
    assert fused(A, B, E) != A * B + E and fused(A, B, -E) != A * B - E
    assert fused(A, B, C * D) != fused(C, D, A * B)


def test_without_fmad_nothing_is_joined():
    body = "o[0] = __hadd(__hmul(a, b), e);"
    assert run(body, X, options=("-fmad=false",))[0] == A * B + E


def test_bfloat16_is_joined_too():
    x = np.array([0x3F81, 0x3F83, 0x3EAB, 0, 0], np.uint16)  # 1 + 2^-7, 1 + 3 · 2^-7, 171 · 2^-9
    a, b, c = (1 + 2.0**-7, 1 + 3 * 2.0**-7, 171 * 2.0**-9)
    once = np.float32(a * b + c).view(np.uint32)
    wanted = (int(once) + 0x7FFF + (int(once) >> 16 & 1)) >> 16
    assert run("o[0] = __hadd(__hmul(a, b), c);", x, "__nv_bfloat16")[0] == wanted


def test_a_sum_of_products_is_an_h200s_to_the_bit():
    code = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const half* a, const half* b, half* o) {
        int t = threadIdx.x;
        half s = o[t];
        for (int i = 0; i < 8; i++) s = __hadd(s, __hmul(a[t * 8 + i], b[t * 8 + i]));
        o[t] = s;
    }"""
    rng = np.random.default_rng(0)
    a, b = (rng.random(256).astype(np.float16) for _ in range(2))
    o = np.zeros(32, np.float16)
    simulator.launch(code, "k", (1,), (32,), (a, b, o))
    np.testing.assert_array_equal(o.view(np.uint16), np.array(H200.split(), np.uint16))
