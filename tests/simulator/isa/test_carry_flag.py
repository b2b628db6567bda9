"""What NVRTC makes of 128-bit integers, whose division takes the carry flag of a subtraction."""

from __future__ import annotations

import random

import numpy as np

from helpers import simulator

CODE = """
typedef unsigned __int128 u128;
extern "C" __global__ void calculate(const u128* a, const u128* b, u128* out) {
    const int i = threadIdx.x, n = blockDim.x;
    out[i] = a[i] / b[i];
    out[n + i] = a[i] % b[i];
    out[2 * n + i] = a[i] - b[i];
    out[3 * n + i] = (u128)((__int128)a[i] / (__int128)b[i]);
}
extern "C" __global__ void flags(int* out) {
    asm volatile("{.reg .u32 t; sub.cc.u32 t, 5, 3; addc.u32 %0, 0, 0;}" : "=r"(out[0]));
    asm volatile("{.reg .u32 t; sub.cc.u32 t, 3, 5; addc.u32 %0, 0, 0;}" : "=r"(out[1]));
    asm volatile("{.reg .u32 t; add.cc.u32 t, 3, 5; subc.u32 %0, 0, 0;}" : "=r"(out[2]));
    asm volatile("{.reg .u32 t; add.cc.u32 t, 3, -1; subc.u32 %0, 0, 0;}" : "=r"(out[3]));
}
"""
OPTIONS = ("--device-int128",)
MODULUS = 1 << 128


def words(numbers: list[int]) -> np.ndarray:
    return np.array([(n % 2**64, n >> 64) for n in numbers], np.uint64)


def signed(n: int) -> int:
    return n - MODULUS if n >> 127 else n


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_arithmetic_of_128_bits() -> None:
    rng = random.Random(5)
    a, b = ([rng.getrandbits(128) >> rng.randrange(118) or 1 for _ in range(96)] for _ in "ab")
    b[::8] = a[::8]
    out = np.zeros((4, 96, 2), np.uint64)
    simulator.launch(CODE, "calculate", 1, 96, (words(a), words(b), out), options=OPTIONS)
    pairs = list(zip(a, b, strict=True))
    expected = [
        [x // y for x, y in pairs],
        [x % y for x, y in pairs],
        [(x - y) % MODULUS for x, y in pairs],
        [truncated(signed(x), signed(y)) % MODULUS for x, y in pairs],
    ]
    for got, numbers in zip(out, expected, strict=True):
        np.testing.assert_array_equal(got, words(numbers))


def test_a_subtraction_sets_the_flag_where_it_borrows_nothing() -> None:
    out = np.zeros(4, np.int32)
    simulator.launch(CODE, "flags", 1, 1, (out,), options=OPTIONS)
    assert out.tolist() == [1, 0, -1, 0]
