"""`wgmma`: a warpgroup multiplies a matrix of 64 rows by one of up to 256 columns.

Pure functions on NumPy arrays. Fragments are those of PTX ISA 9.0, "Asynchronous Warpgroup Level
Matrix Instructions: Register Fragments": warp w of the four holds rows 16 w to 16 w + 15, in lanes
as `mma_fragments` has them, and the registers of D go from eight columns to the next. What the
tensor core computes is in `tensor_core_arithmetic`: all of an instruction's k at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import tensor_core_arithmetic as arithmetic
from .tensor_core_arithmetic import FRACTION_BITS, LOWEST, power_of_two

THREADS = 128  # of a warpgroup
ROWS = 64
_WARPS = 4
_SIGN = {2: np.uint16(1 << 15), 4: np.uint32(1 << 31)}


@dataclass(frozen=True, slots=True)
class FactorType:
    """A type of factors: the NumPy type of an element in memory, and which sums it may have."""

    dtype: np.dtype
    sums: tuple[str, ...]

    @property
    def chunk(self) -> int:
        """Elements in 16 bytes; twice as many are an instruction's k."""
        return 16 // self.dtype.itemsize


FACTOR_TYPES = {
    "f16": FactorType(np.dtype(np.uint16), ("f32", "f16")),
    "bf16": FactorType(np.dtype(np.uint16), ("f32",)),
    "tf32": FactorType(np.dtype(np.uint32), ("f32",)),
    "s8": FactorType(np.dtype(np.int8), ("s32",)),
    "u8": FactorType(np.dtype(np.uint8), ("s32",)),
}
SUM_TYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "s32": np.dtype(np.int32)}


# ------------------------------------------------------------------ fragments


def a_matrix(registers: Sequence[np.ndarray], kind: str) -> np.ndarray:
    """A, (groups, 64, k), out of its four registers, uint32 (groups, 128) each."""
    dtype = FACTOR_TYPES[kind].dtype
    words = np.stack(registers).view(dtype)  # two halves of rows first, then along k
    split = words.reshape(2, 2, -1, _WARPS, 8, 4, 4 // dtype.itemsize)
    return split.transpose(2, 3, 1, 4, 0, 5, 6).reshape(split.shape[2], ROWS, -1)


def d_matrix(registers: np.ndarray, sums: str) -> np.ndarray:
    """D, (groups, 64, n), out of its registers, uint32 (registers, groups, 128)."""
    split = registers.view(SUM_TYPES[sums])
    if sums == "f16":  # a register holds two elements of a row
        split = split.reshape(-1, 2, split.shape[1], _WARPS, 8, 4, 2)
        return split.transpose(2, 3, 1, 4, 0, 5, 6).reshape(split.shape[2], ROWS, -1)
    split = split.reshape(-1, 2, 2, split.shape[1], _WARPS, 8, 4)
    return split.transpose(3, 4, 1, 5, 0, 6, 2).reshape(split.shape[3], ROWS, -1)


def d_registers(matrix: np.ndarray) -> np.ndarray:
    """The inverse of `d_matrix`: uint32 (registers, groups, 128) of (groups, 64, n)."""
    groups, _, n = matrix.shape
    split = matrix.reshape(groups, _WARPS, 2, 8, n // 8, 4, 2)
    if matrix.dtype == np.float16:
        found = np.ascontiguousarray(split.transpose(4, 2, 0, 1, 3, 5, 6))
        return found.view(np.uint32).reshape(n // 4, groups, THREADS)
    found = np.ascontiguousarray(split.transpose(4, 2, 6, 0, 1, 3, 5))
    return found.view(np.uint32).reshape(n // 2, groups, THREADS)


# ------------------------------------------------------------------ products


def negated(words: np.ndarray) -> np.ndarray:
    """Floating-point factors with their signs turned."""
    return words ^ _SIGN[words.dtype.itemsize]


def multiply(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, kinds: tuple[str, str], saturate: bool = False
) -> np.ndarray:
    """A B + C as one `wgmma` computes it.

    a: words (groups, 64, k) and b: (groups, n, k) of the types `kinds`; c: (groups, 64, n) of the
    type of the sums, in which the result is.
    """
    if c.dtype == np.int32:
        total = np.matmul(a.astype(np.float32), b.astype(np.float32).swapaxes(1, 2))
        total = total.astype(np.int64) + c  # exact: k is 32, so below 2^24
        low, high = (-(2**31), 2**31 - 1) if saturate else (None, None)
        return (np.clip(total, low, high) if saturate else total).astype(np.int32)
    out = np.empty_like(c)
    for group in range(len(c)):  # one at a time stays in the cache
        out[group] = _product(a[group], b[group], c[group], kinds[0])
    return out


@np.errstate(all="ignore")
def _product(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str) -> np.ndarray:
    """A (64, k) times B (n, k), plus C (64, n)."""
    (a_values, a_exponents), (b_values, b_exponents) = (
        (np.ascontiguousarray(each.T) for each in arithmetic.factors(words, kind))
        for words in (a, b)
    )
    c_format = arithmetic.F32 if c.dtype == np.float32 else arithmetic.F16
    c_exponents = c_format.exponents(c.view(c_format.word))
    top, both = np.maximum(c_exponents, LOWEST), np.empty_like(c_exponents)
    for left, right in zip(a_exponents, b_exponents, strict=True):
        np.add(left[:, None], right, out=both)
        np.maximum(top, both, out=top)
    dtype = arithmetic.exact_type(kind, a_exponents, b_exponents)
    # In float32 no product that is not zero has an exponent below -100.
    lowest = np.maximum(top, np.int16(-100)) if dtype is np.float32 else top
    scale = power_of_two(FRACTION_BITS - lowest, dtype)
    total = np.zeros(c.shape, np.int32)
    term, cut = np.empty(c.shape, dtype), np.empty(c.shape, np.int32)
    a_values, b_values = (v.astype(dtype, copy=False) for v in (a_values, b_values))
    for left, right in zip(a_values, b_values, strict=True):
        np.multiply(left[:, None], right, out=term)
        np.multiply(term, scale, out=term)
        np.copyto(cut, term, casting="unsafe")  # cuts off
        total += cut

    def products() -> np.ndarray:
        return np.einsum("km,kn->mn", a_values.astype(np.float64), b_values.astype(np.float64))

    special = max(a_exponents.max(), b_exponents.max()) > arithmetic.FORMATS[kind].bias
    return arithmetic.rounded_sums(total, top, c, c_exponents, products, special)
