"""Rounding a float64 once, to any narrower format and in any of PTX's four modes.

A value that float64 cannot hold is first rounded *to odd*: where it was inexact, the last bit of
the float64 is made one. Such a float64 lies on the same side of every number and every midpoint of
a format with at most 51 bits as the exact value does, so rounding it gives what rounding the exact
value would (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .instruction_types import F16, F32, F64, I64, U16, U32

MODES = frozenset(("rn", "rz", "rm", "rp"))
MODE = "|".join(sorted(MODES))  # for patterns of `form`


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded, and the exact error of that rounding (D. Knuth, TAOCP 2, section 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def to_odd(total: np.ndarray, error: np.ndarray) -> np.ndarray:
    """float64 `total + error` rounded to odd; `total` must be `total + error` to nearest."""
    bits = total.view(I64)
    even = np.equal(bits & 1, 0)
    even &= np.not_equal(error, 0) & np.isfinite(total)
    if not np.count_nonzero(even):
        return total
    toward = np.where(np.equal(error > 0, total > 0), 1, -1)
    return (bits + np.where(even, toward, 0)).view(F64)


@dataclass(frozen=True, slots=True)
class Format:
    """A floating-point format as bits in an unsigned integer array.

    `nearest` rounds float64 to the nearest number, ties to even, and gives its bits; `value` is
    the float64 of such bits; `nan` is the pattern every NaN result takes; `fraction` is the
    number of explicit fraction bits; `normal` is the smallest normal number.
    """

    nearest: Callable[[np.ndarray], np.ndarray]
    value: Callable[[np.ndarray], np.ndarray]
    nan: int
    fraction: int
    normal: float


def step(bits: np.ndarray, where: np.ndarray, away: np.ndarray | bool) -> np.ndarray:
    """Sign-and-magnitude bits moved to the neighbour, away from zero or towards it."""
    one = bits.dtype.type(1)
    back = np.invert(bits.dtype.type(0))  # minus one, wrapped around
    return bits + np.where(where, np.where(away, one, back), bits.dtype.type(0))


def _tiny(values: np.ndarray, to: Format, mode: str) -> np.ndarray:
    """Where values stay below the smallest normal number when rounded with no least exponent."""
    magnitudes = np.absolute(values)
    down = magnitudes < to.normal
    away = magnitudes <= to.normal * (1 - 2.0 ** -(to.fraction + 1))
    if mode == "rn":
        return magnitudes < to.normal * (1 - 2.0 ** -(to.fraction + 2))
    if mode == "rz":
        return down
    return np.where(np.signbit(values) == (mode == "rm"), away, down)


def encode(
    values: np.ndarray, to: Format, mode: str = "rn", flush_results: bool = False
) -> np.ndarray:
    """The bits of float64 values (exact, or rounded to odd) rounded to a format.

    `mode` is rn, rz, rm or rp (PTX ISA 9.0, "Rounding Modifiers"). With `flush_results`,
    subnormal results become zeros of their sign; as seen on an H200, a result is subnormal if
    it is too small after a rounding that knows no smallest exponent.
    """
    bits = to.nearest(values)
    if mode != "rn":
        back = to.value(bits)
        if mode == "rz":
            bits = step(bits, np.absolute(back) > np.absolute(values), False)
        elif mode == "rm":
            bits = step(bits, back > values, np.signbit(values))
        else:
            bits = step(bits, back < values, ~np.signbit(values))
    if flush_results:
        tiny = _tiny(values, to, mode)
        if np.count_nonzero(tiny):
            sign = np.signbit(values) * bits.dtype.type(to.nan + 1)
            bits = np.where(tiny, sign, bits)
    nan = np.isnan(values)
    if np.count_nonzero(nan):
        bits = np.where(nan, bits.dtype.type(to.nan), bits)
    return bits


def _nearest_bf16(values: np.ndarray) -> np.ndarray:
    narrow = values.astype(F32)
    bits = narrow.view(U32)
    back = narrow.astype(F64)
    inexact = np.not_equal(back, values)
    if np.count_nonzero(inexact):
        # Truncate, then set the last bit: rounded to odd in f32, for the second rounding.
        bits = step(bits, np.absolute(back) > np.absolute(values), False)
        bits |= inexact
    return round_bits_bf16(bits)


def round_bits_bf16(bits: np.ndarray) -> np.ndarray:
    """f32 bits (not of a NaN) rounded to the nearest bf16 bits, ties to even."""
    shift = np.uint32(16)
    return ((bits + ((bits >> shift & np.uint32(1)) + np.uint32(0x7FFF))) >> shift).astype(U16)


def widen_bf16(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bf16 bits."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def _of_numpy(dtype: np.dtype, bits: np.dtype, fraction: int, normal: float) -> Format:
    """A format that is a NumPy type."""
    return Format(
        lambda values: values.astype(dtype).view(bits),
        lambda patterns: patterns.view(dtype).astype(F64),
        2 ** (8 * bits.itemsize - 1) - 1, fraction, normal,
    )  # fmt: skip


FORMATS: dict[str, Format] = {
    "f32": _of_numpy(F32, U32, 23, 2.0**-126),
    "f16": _of_numpy(F16, U16, 10, 2.0**-14),
    "bf16": Format(_nearest_bf16, lambda bits: widen_bf16(bits).astype(F64), 0x7FFF, 7, 2.0**-126),
}
