"""Ordinary teaching kernels against NumPy: in every schedule and batch, counted and sanitized.

The kernels stand in `data/teaching_kernels.cu`; each has a function here that gives its launch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from helpers import simulator

CODE = (Path(__file__).parents[2] / "data" / "teaching_kernels.cu").read_text()
RNG = np.random.default_rng(11)
T = np.arange(2048)


@dataclass
class Launch:
    """One launch, and what the arguments hold afterwards: {position: values}."""

    grid: int | tuple
    block: int | tuple
    args: tuple
    expected: dict
    tolerance: float = 0.0
    shared: int = 0
    ordered: bool = True  # False where the order of atomics decides the bits or the places
    waits: bool = False  # for other threads: counts depend on the schedule, races are meant
    together: bool = False  # its blocks wait for each other in no order: they need one batch


LAUNCHES = {}


def launch(function):
    """Register the launch of the kernel with the function's name."""
    LAUNCHES[function.__name__] = cache(function)
    return function


def run(name, **more):
    """(arguments after the launch, report)."""
    it = LAUNCHES[name]()
    args = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in it.args)
    opted = it.shared or None
    report = simulator.launch(
        CODE, name, it.grid, it.block, args, shared_mem=it.shared, max_dynamic_shared=opted, **more
    )
    return args, report


def check(name, args):
    it = LAUNCHES[name]()
    for position, expected in it.expected.items():
        got = args[position]
        expected = np.asarray(expected).reshape(got.shape)
        if it.tolerance:
            np.testing.assert_allclose(got, expected, rtol=it.tolerance, atol=it.tolerance)
        else:
            np.testing.assert_array_equal(got, expected)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def ints(low, high, *shape):
    return RNG.integers(low, high, shape).astype(np.int32)


def zeros(n, dtype=np.int32):
    return np.zeros(n, dtype)


I = np.int32  # noqa: E741


# ---------------------------------------------------------------- histograms, scans, sorting


@launch
def hist_global():
    d = ints(0, 37, 1000)
    return Launch(8, 128, (d, zeros(37), I(1000)), {1: np.bincount(d, minlength=37)})


@launch
def hist_shared():
    d = ints(0, 37, 1000)
    return Launch(3, 97, (d, zeros(37, np.uint32), I(1000)), {1: np.bincount(d, minlength=37)})


@launch
def hillis_steele():
    x = ints(-50, 50, 77)
    return Launch(1, 77, (x, I(77)), {0: np.cumsum(x)}, shared=2 * 77 * 4)


@launch
def blelloch():
    x = ints(-50, 50, 256)
    return Launch(1, 128, (x,), {0: np.cumsum(x) - x})


@launch
def warp_scan():
    x = ints(-9, 9, 500)
    return Launch(1, 512, (x, I(500)), {0: np.cumsum(x)})


@launch
def bitonic():
    x = ints(-100, 100, 128)
    return Launch(1, 128, (x,), {0: np.sort(x)})


@launch
def oddeven():
    x = floats(51)
    return Launch(1, 64, (x, I(51)), {0: np.sort(x)})


@launch
def radix_bit_split():
    x = ints(0, 2**30, 200).astype(np.uint32)
    return Launch(1, 256, (x, I(200)), {0: np.sort(x)})


@launch
def enum_sort_rank():
    x = ints(0, 90, 200).astype(np.uint32)
    return Launch(1, 200, (x, zeros(200, np.uint32), I(200)), {1: np.sort(x)})


# ---------------------------------------------------------------- threads that wait for others


@launch
def lookback():
    x = ints(0, 9, 1280)
    args = (x, zeros(1), zeros(20), zeros(20), zeros(20))
    return Launch(20, 64, args, {0: np.cumsum(x)}, ordered=False, waits=True)


@launch
def lookback_volatile():
    x = ints(0, 9, 16)
    return Launch(16, 32, (x, zeros(16), zeros(16)), {1: np.cumsum(x)}, waits=True)


@launch
def flag_after_barrier():
    expected = {0: np.repeat(np.arange(1, 6), 64)}
    return Launch(5, 64, (np.ones(320, I), zeros(5)), expected, waits=True)


@launch
def flag_reverse_barrier():
    expected = {0: np.repeat(np.arange(1, 6), 64)}
    return Launch(5, 64, (np.ones(320, I), zeros(5)), expected, waits=True, together=True)


@launch
def grid_barrier():
    expected = {0: np.full(224, 6), 2: np.repeat([1, 3, 6], 224)}
    args = (zeros(224), zeros(2), zeros(672))
    return Launch(7, 32, args, expected, waits=True, together=True)


@launch
def spin_counted():
    return Launch(2, 64, (zeros(1), zeros(1)), {1: [1]}, ordered=False, waits=True, together=True)


@launch
def nanosleep_backoff_lock():
    return Launch(3, 40, (zeros(1), zeros(1)), {0: [0], 1: [120]}, waits=True)


@launch
def ticket_lock():
    return Launch(9, 32, (zeros(1),), {0: [511]}, waits=True)


@launch
def warp_producer_consumer():
    return Launch(1, 64, (zeros(32),), {0: np.arange(32, 64) * 3}, waits=True)


@launch
def lane_spin_same_warp():
    return Launch(1, 32, (zeros(1),), {0: [5]}, waits=True)


# ---------------------------------------------------------------- transposes, stencils


@launch
def transpose_naive():
    a = floats(45, 70)
    return Launch((5, 3), (16, 16), (a, np.zeros((70, 45), np.float32), I(45), I(70)), {1: a.T})


@launch
def transpose_tiled():
    a = floats(45, 70)
    return Launch((3, 2), (32, 8), (a, np.zeros((70, 45), np.float32), I(45), I(70)), {1: a.T})


@launch
def stencil1d_shared():
    x = floats(203)
    around = np.pad(x.astype(float), 3)
    expected = sum(around[k : k + 203] for k in range(7))
    return Launch(4, 64, (x, zeros(203, np.float32), I(203)), {1: expected}, 1e-5)


@launch
def laplace2d():
    a = floats(19, 23)
    w = a.astype(float)
    expected = np.zeros((19, 23))
    expected[1:-1, 1:-1] = w[:-2, 1:-1] + w[2:, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:]
    expected[1:-1, 1:-1] -= 4 * w[1:-1, 1:-1]
    return Launch((3, 5), (8, 4), (a, np.zeros_like(a), I(19), I(23)), {1: expected}, 1e-5)


@launch
def stencil3d():
    a = floats(5, 6, 7)
    p = np.pad(a.astype(float), 1)
    expected = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1]
    expected += p[1:-1, 2:, 1:-1] + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
    args = (a, np.zeros_like(a), I(5), I(6), I(7))
    return Launch((2, 2, 3), (4, 4, 2), args, {1: expected}, 1e-5)


@launch
def conv_constant():
    a = floats(20, 27)
    k = (np.arange(25).reshape(5, 5) * 0.01).astype(np.float32)
    p = np.pad(a.astype(float), 2)
    expected = sum(k[i, j] * p[i : i + 20, j : j + 27] for i in range(5) for j in range(5))
    return Launch((4, 3), (12, 12), (a, np.zeros_like(a), I(20), I(27)), {1: expected}, 1e-5)


@launch
def game_of_life():
    a = RNG.integers(0, 2, (9, 13)).astype(np.uint8)
    n = sum(np.roll(a, (i, j), (0, 1)).astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1)) - a
    expected = (n == 3) | ((n == 2) & (a == 1))
    return Launch(1, (13, 9), (a, np.zeros_like(a), I(9), I(13)), {1: expected})


# ---------------------------------------------------------------- matrices and rows


def product(dtype, result, tile, tolerance):
    m, n, k = 21, 18, 35
    a, b = RNG.standard_normal((m, k)), RNG.standard_normal((k, n))
    if not tolerance:
        a, b = a * 50, b * 50
    a, b = a.astype(dtype), b.astype(dtype)
    wide = float if tolerance else np.int64
    args = (a, b, np.zeros((m, n), result), I(m), I(n), I(k))
    expected = {2: a.astype(wide) @ b.astype(wide)}
    return Launch((-(-n // tile), -(-m // tile)), (tile, tile), args, expected, tolerance)


for _name, _settings in {
    "mm_float": (np.float32, np.float32, 16, 1e-5),
    "mm_double": (np.float64, np.float64, 16, 1e-12),
    "mm_int8": (np.int8, np.int32, 16, 0),
    "mm_int": (np.int32, np.int64, 16, 0),
    "mm_half": (np.float16, np.float32, 8, 1e-4),
    "mm_bf16": (ml_dtypes.bfloat16, np.float32, 8, 1e-4),
}.items():
    LAUNCHES[_name] = cache(lambda settings=_settings: product(*settings))


@launch
def mm_regtile():
    a, b = floats(32, 24), floats(24, 32)
    args = (a, b, np.zeros((32, 32), np.float32))
    return Launch(1, (8, 8), args, {2: a.astype(float) @ b.astype(float)}, 1e-5)


@launch
def dp4a():
    a, b = (RNG.integers(-128, 127, (32, 16)).astype(np.int8) for _ in range(2))
    expected = (a.astype(int) * b).sum(1)
    return Launch(1, 32, (a.view(np.int32), b.view(np.int32), zeros(32)), {2: expected})


@launch
def matvec_warp_row():
    a, v = floats(30, 45), floats(45)
    args = (a, v, zeros(30, np.float32), I(30), I(45))
    return Launch(8, (32, 4), args, {2: a.astype(float) @ v.astype(float)}, 1e-5)


def softmax(a):
    e = np.exp(a.astype(float) - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@launch
def softmax_block():
    a = floats(30, 45)
    return Launch(30, 128, (a, np.zeros_like(a), I(45)), {1: softmax(a)}, 1e-6)


@launch
def softmax_online():
    a = floats(30, 45)
    return Launch(2, 17, (a, np.zeros_like(a), I(30), I(45)), {1: softmax(a)}, 1e-6)


@launch
def layernorm_welford():
    a = floats(30, 45)
    w = a.astype(float)
    expected = (w - w.mean(1, keepdims=True)) / np.sqrt(w.var(1, keepdims=True) + 1e-5)
    return Launch(30, 32, (a, np.zeros_like(a), I(45)), {1: expected}, 1e-5)


@launch
def nbody():
    p = floats(50, 4)
    w = p.astype(float)
    d = w[None, :, :3] - w[:, None, :3]
    f = w[None, :, 3:] / ((d**2).sum(-1) + 0.01)[..., None] ** 1.5
    args = (p, np.zeros((50, 3), np.float32), I(50))
    return Launch(4, 16, args, {1: (d * f).sum(1)}, 2e-4)


@launch
def mandelbrot():
    h, w, one = 12, 17, np.float32
    expected = np.zeros((h, w), I)
    for y, x in np.ndindex(h, w):
        cr, ci = one(-2) + one(x) * one(0.1875), one(-1) + one(y) * one(0.125)
        a = b = one(0)
        while expected[y, x] < 50 and a * a + b * b <= 4:
            a, b = a * a - b * b + cr, one(2) * a * b + ci
            expected[y, x] += 1
    return Launch((3, 4), (7, 3), (np.zeros((h, w), I), I(h), I(w)), {0: expected})


# ---------------------------------------------------------------- reductions


def reduction(grid, block, slots=1, shared=0, ordered=True, n=1000):
    x = floats(n)
    args = (x, zeros(slots, np.float32), I(n))
    parts = np.pad(x.astype(float), (0, grid * block - n) if slots > 1 else 0).reshape(slots, -1)
    return Launch(grid, block, args, {1: parts.sum(1)}, 1e-4, shared, ordered)


LAUNCHES["red_interleaved"] = cache(lambda: reduction(8, 128, shared=512, ordered=False))
LAUNCHES["red_sequential_odd"] = cache(lambda: reduction(8, 131, slots=8, shared=524))
LAUNCHES["red_shfl_block"] = cache(lambda: reduction(1, 160))


@launch
def red_unrolled_warp_volatile():
    x = floats(128)
    return Launch(1, 64, (x, zeros(1, np.float32)), {1: [x.astype(float).sum()]}, 1e-4)


@launch
def red_sync_add():
    x = ints(-1000, 1000, 1000)
    expected = {1: [x.sum(), x.max(), np.bitwise_or.reduce(x)]}
    return Launch(10, 128, (x, np.array([0, -99999, 0], I), I(1000)), expected)


@launch
def red_last_block():
    x = floats(1000)
    args = (x, zeros(5, np.float32), zeros(1, np.float32), I(1000))
    return Launch(5, 128, args, {2: [x.astype(float).sum()]}, 1e-4, waits=True)


@launch
def argmax_packed64():
    x = np.abs(floats(1000))
    bits = int(x.max().view(np.uint32)) | 0x80000000
    expected = {1: np.array([bits << 32 | (0xFFFFFFFF - int(x.argmax()))], np.uint64)}
    return Launch(8, 128, (x, zeros(1, np.uint64), I(1000)), expected)


@launch
def red_double_cas():
    args = (np.arange(100.0) * 1.5, zeros(1, np.float64), I(100))
    return Launch(3, 40, args, {1: [4950 * 1.5]}, waits=True)


# ---------------------------------------------------------------- random numbers and bits


@launch
def xorshift():
    x = np.arange(1, 151, dtype=np.uint32) * np.uint32(2654435761)
    for _ in range(20):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
    return Launch(3, 50, (zeros(150, np.uint32),), {0: x})


@launch
def pcg_hash():
    expected = []
    for i in range(100):
        s = (i * 747796405 + 2891336453) & 0xFFFFFFFF
        w = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) & 0xFFFFFFFF
        expected.append((w >> 22) ^ w)
    return Launch(1, 100, (zeros(100, np.uint32),), {0: expected})


@launch
def lcg64():
    states = list(range(33))
    for _ in range(10):
        states = [(s * 6364136223846793005 + 1442695040888963407) % 2**64 for s in states]
    expected = {0: np.array(states, np.uint64), 1: [(s >> 11) / 2**53 for s in states]}
    return Launch(1, 33, (zeros(33, np.uint64), zeros(33, np.float64)), expected)


@launch
def philox():
    low = 0xFFFFFFFF
    rows = []
    for i in range(40):
        c, k = [i, 0, 0, 0], [42, 7]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
            k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
        rows.append(c)
    return Launch(1, 40, (np.zeros((40, 4), np.uint32),), {0: rows})


@launch
def bits():
    x = RNG.integers(0, 2**32, 64, dtype=np.uint64).astype(np.uint32)
    x[:3] = 0, 1, 0xFFFFFFFF
    v, low = [int(n) for n in x], 0xFFFFFFFF
    turned = [(n << i % 32 | n >> (32 - i % 32)) & low for i, n in enumerate(v)]
    back = [(n >> i % 32 | n << (32 - i % 32)) & low for i, n in enumerate(v)]
    bytewise = (x.view(np.uint8).reshape(64, 4) + np.array([4, 3, 2, 1], np.uint8)).view(np.uint32)
    expected = [
        *(n.bit_count() for n in v),
        *(32 - n.bit_length() for n in v),
        *((n & -n).bit_length() for n in v),
        *(int(f"{n:032b}"[::-1], 2) for n in v),
        *x.byteswap(), *turned, *back, *bytewise[:, 0],
    ]  # fmt: skip
    return Launch(1, 64, (x, zeros(512, np.uint32)), {1: expected})


@launch
def gray_morton():
    x, y = np.meshgrid(np.arange(16), np.arange(8))
    expected = sum(((x >> b & 1) << 2 * b) | ((y >> b & 1) << 2 * b + 1) for b in range(4))
    return Launch(1, (16, 8), (np.zeros((8, 16), np.uint32),), {0: expected})


@launch
def ptx_carry128():
    pairs = [(2**64 - 1 - t, 2 * t + 1) for t in range(32)]
    rows = [(a + b) for a, b in pairs] + [a * b for a, b in pairs]
    expected = np.array([(n % 2**64, n >> 64) for n in rows], np.uint64)
    return Launch(1, 32, (zeros(128, np.uint64),), {0: expected})


# ---------------------------------------------------------------- C++ and control flow


@launch
def templates_variadic():
    return Launch(1, 33, (zeros(33, np.float32),), {0: T[:33] + 6.5})


@launch
def class_complex():
    z = (floats(40) + 1j * floats(40)).astype(np.complex64)
    w = z.astype(complex) ** 2 + z
    return Launch(1, 40, (z, zeros(40, np.float32)), {0: w, 1: np.abs(w) ** 2}, 1e-5)


@launch
def virtual_class():
    return Launch(1, 40, (zeros(40),), {0: [x * 7 if x % 2 else x + 1 for x in range(40)]})


@launch
def switch_fallthrough_goto():
    def one(x):
        if x % 5 < 2:
            return 22 - 2 * (x % 5)
        if x % 5 == 2:
            return 0 if x > 20 else 10
        return 2 * sum(range(0, min(x, 7), 2)) if x % 5 == 3 else -2 * x

    return Launch(1, 45, (zeros(45),), {0: [one(x) for x in range(45)]})


@launch
def divergent_nested():
    def one(t):
        r = 0
        for i in range(t % 7):
            if i % 2:
                r += sum(j for j in range(i) if j != t % 3)
            elif t & 4:
                r += 100
            elif i == 4:
                break
            else:
                r -= 1
        return r

    return Launch(1, 70, (zeros(70),), {0: [one(t) for t in range(70)]})


@launch
def funcptr_table_dev():
    expected = [(x, x * x, -x)[x % 3] + (x, x * x, -x)[(x + 1) % 3] + 1 for x in range(40)]
    return Launch(1, 40, (zeros(40),), {0: expected})


@launch
def ackermann():
    def ack(m, n):
        return n + 1 if m == 0 else ack(m - 1, ack(m, n - 1) if n else 1)

    return Launch(1, 12, (zeros(12),), {0: [ack(x % 3, x % 4) for x in range(12)]})


@launch
def quicksort_recursive():
    x = ints(-50, 50, 9, 20)
    return Launch(1, 9, (x,), {0: np.sort(x, 1)})


@launch
def hanoi_stack():
    return Launch(1, 20, (zeros(20),), {0: [2 ** (x % 7) - 1 for x in range(20)]})


@launch
def union_pun():
    x = floats(32)
    return Launch(1, 32, (x, zeros(32, np.uint32)), {0: -x, 1: x.view(np.uint32) >> 23 & 255})


@launch
def bitfields_struct_array():
    expected = []
    for t in (T[:33] + 1) % 33:
        narrow = ((t & 31) ^ 16) - 16  # five bits with a sign
        expected.append(narrow - 100.0 * t + 2000.0 * t + 0.5 * t)
    return Launch(1, 33, (zeros(33, np.float64),), {0: expected})


@launch
def launch_bounds_namespace():
    return Launch(1, 128, (zeros(128, np.float32),), {0: 10 * T[:128]})


@launch
def globals_init():
    text = b"hello" + bytes(30)
    expected = [
        (1, 2, 3, -4, 0)[t % 5] + (1, 2, 3, 4, 5, 6)[t % 2 * 3 + t % 3] + 20 + text[t]
        + (1e300, -1, 0.25)[t % 3] for t in range(30)
    ]  # fmt: skip
    return Launch(1, 30, (zeros(30, np.float64),), {0: expected})


@launch
def static_const_lut():
    expected = [(0.5, 1.5, 2.5, 3.5)[t % 4] * (3, 1, 2)[t % 3] for t in range(30)]
    return Launch(1, 30, (zeros(30, np.float32),), {0: expected})


@launch
def bool_args_scalars():
    values = (
        np.bool_(True),
        np.int8(-3),
        np.int16(300),
        np.int64(10**12),
        np.float64(0.25),
        np.uint32(4e9),
    )
    expected = {0: [-3 + 300 + 10**12 + 0.25 + 4 * 10**9] * 3}
    return Launch(1, 3, (zeros(3, np.float64), *values), expected)


# ---------------------------------------------------------------- memory of every sort


def vectors(dtype, n):
    v = RNG.integers(1, 100, (37, n)).astype(dtype)
    return Launch(1, 37, (v, np.zeros_like(v)), {1: v[:, ::-1] + np.ones((), dtype)})


for _type, _dtype in {
    "char2": np.int8, "char4": np.int8, "uchar4": np.uint8, "short2": np.int16,
    "ushort4": np.uint16, "int2": np.int32, "uint4": np.uint32, "longlong2": np.int64,
    "float2": np.float32, "float4": np.float32, "double2": np.float64,
}.items():  # fmt: skip
    LAUNCHES[f"vec_{_type}"] = cache(
        lambda dtype=_dtype, n=int(_type[-1]): vectors(dtype, n),
    )


@launch
def vec3():
    v = RNG.integers(1, 100, (37, 3)).astype(np.float32)
    c = RNG.integers(0, 255, (37, 3)).astype(np.uint8)
    return Launch(1, 37, (v, c, np.zeros_like(v)), {2: v[:, ::-1] + c})


@launch
def dyn_carve():
    expected = {0: T[44::-1] * (1 + 2e3 + 3e6 + 1e9)}
    args = (zeros(45, np.float64), I(45))
    return Launch(1, 45, args, expected, shared=45 * 15)


@launch
def cacheops():
    x = RNG.integers(0, 9, 64).astype(np.float32)
    expected = {1: np.tile(x * 6, 4), 2: np.tile(x.reshape(16, 4), (4, 1))}
    return Launch(1, 64, (x, zeros(256, np.float32), np.zeros((64, 4), np.float32)), expected)


@launch
def void_generic_memcpy():
    x = RNG.integers(0, 255, 100).astype(np.uint8)
    rows = [[17] * 3 + list(x[t * 5 : t * 5 + 16]) + [17] * 5 for t in range(9)]
    return Launch(1, 9, (x, np.zeros((9, 24), np.uint8)), {1: rows})


@launch
def generic_select_shared_global():
    expected = [(-t, t * 10, t % 4 + 1)[t % 3] + 1 for t in range(64)]
    return Launch(1, 64, (np.arange(64, dtype=I) * 10, zeros(64)), {1: expected})


# ---------------------------------------------------------------- inline PTX, warps, geometry


@launch
def ptx_braces():
    expected = [3 * x if 3 * x > 40 else 3 * x + 1000 for x in range(32)]
    return Launch(1, 32, (zeros(32, np.uint32),), {0: expected})


@launch
def ptx_loop_label():
    return Launch(1, 40, (zeros(40, np.uint32),), {0: T[:40] * (T[:40] + 1) // 2})


@launch
def ptx_special():
    return Launch(1, 40, (zeros(40, np.uint32),), {0: T[:40] % 32 + 11100})


@launch
def ptx_cvta_ldshared():
    return Launch(1, 64, (zeros(64, np.float32),), {0: 2 * T[63::-1]})


@launch
def vote_match():
    first, alike = T[:64] < 32, []
    for t in range(64):
        alike.append(sum(1 << k for k in range(32) if (t // 32 * 32 + k) % 3 == t % 3))
    odd, every = np.full(64, 0xAAAAAAAA), np.full(64, 0xFFFFFFFF)
    args = (zeros(64), *(zeros(64, np.uint32) for _ in range(3)), zeros(64))
    return Launch(1, 64, args, {0: 3 * first, 1: alike, 2: odd, 3: every, 4: np.ones(64)})


@launch
def shfl_width_double():
    t = T[:32]
    expected = {0: (t // 8 * 8 + 2) * 1.5, 1: np.where(t % 16 + 3 < 16, t + 3, t) * 10**10}
    return Launch(1, 32, (zeros(32, np.float64), zeros(32, np.int64)), expected)


@launch
def warp_aggregated_inc():
    x = ints(-5, 5, 280)
    return Launch(3, 96, (x, zeros(280), zeros(1), I(280)), {2: [(x > 0).sum()]}, ordered=False)


@launch
def launch3d():
    z, y, x = np.meshgrid(np.arange(10), np.arange(6), np.arange(6), indexing="ij")
    return Launch((2, 3, 2), (3, 2, 5), (zeros(360),), {0: x + 100 * y + 10000 * z})


@launch
def half2_ops():
    x = RNG.integers(-8, 8, (32, 2)).astype(np.float16)
    expected = np.maximum(x * 2 + np.array([1, -1], np.float16), np.float16(0))
    return Launch(1, 32, (x, zeros(32, np.float32)), {0: expected, 1: expected.sum(1)})


@launch
def math_funcs():
    x = floats(40)
    w, a = x.astype(float), np.abs(x.astype(float))
    rows = [np.sin(w), np.cos(w), np.tan(w), np.exp(w), np.log(a), a**1.7, np.tanh(w)]
    rows += [[math.erf(v) for v in w], np.cbrt(w), np.arctan2(w, 2), np.fmod(x, np.float32(0.7))]
    return Launch(1, 40, (x, zeros(480, np.float32)), {1: [*rows, np.hypot(w, 3)]}, 2e-5)


@launch
def double_math():
    x = RNG.standard_normal(40)
    a = np.abs(x)
    expected = np.exp(x) + np.sin(x) * np.log(a + 1) + 2.5**x + np.sqrt(a) / 3 + np.ceil(x)
    expected += [math.gamma(v + 1) for v in a]
    expected += np.copysign(np.floor(a + 0.5), x) + np.rint(x * 2) + np.trunc(x) + x * x + x
    return Launch(1, 40, (x, zeros(40, np.float64)), {1: expected}, 1e-12)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("name", LAUNCHES)
def test_results_in_every_schedule(name):
    """NumPy's values; the same bits and counts whatever runs together; no finding."""
    it = LAUNCHES[name]()
    first, report = run(name)
    check(name, first)
    runs = [{"schedule": "warps_reversed", "count": False}, {"count": False, "sanitize": True}]
    runs.append({"schedule": "warps"} if it.together else {"batch_threads": 100})
    for settings in runs:
        args, other = run(name, **settings)
        check(name, args)
        if it.ordered:
            assert [a.tobytes() for a in args] == [a.tobytes() for a in first], settings
        if not it.waits:
            assert other.findings == []
            if other.counted:
                assert other.counters == report.counters


def test_every_kernel_of_the_file_is_launched():
    assert CODE.count('extern "C" __global__') == len(LAUNCHES) + 1  # block_sizes is below


@pytest.mark.parametrize("block", [1, 2, 31, 33, 63, 65, 96, 127, 255, 257, 1023, 1024])
def test_block_sizes(block):
    t = np.arange(block)
    o = np.full(2 * block, -1, np.int32)
    simulator.launch(CODE, "block_sizes", 2, block, (o,))
    partner = np.where((t ^ 1) < block, t ^ 1, t)
    expected = np.where(t % 2 == 0, -1, (block - 1 - t) + (block - 1 - partner))
    np.testing.assert_array_equal(o, np.tile(expected, 2))


def test_counts_known_by_hand():
    """The requests, sectors and wavefronts that Nsight Compute's rules give."""
    counters = run("transpose_tiled")[1].counters
    # 45 x 70: rows of 280 bytes are read in warps of 32, 32 and 6 floats
    assert counters["global_load_requests"] == 45 * 3
    starts = [
        (row * 280 + x * 128, min(32, 70 - 32 * x) * 4) for row in range(45) for x in range(3)
    ]
    assert counters["global_load_sectors"] == sum(
        (s + n - 1) // 32 - s // 32 + 1 for s, n in starts
    )
    assert counters["shared_load_bank_conflicts"] == 0
    assert counters["shared_store_bank_conflicts"] == 0
    counters = run("hist_global")[1].counters
    assert counters["global_load_requests"] == 32
    assert counters["global_load_sectors"] == 125  # 4,000 bytes
    assert counters["global_atomic_requests"] == 32
    assert run("vec_float4")[1].counters["global_load_sectors"] == -(-37 * 16 // 32)
