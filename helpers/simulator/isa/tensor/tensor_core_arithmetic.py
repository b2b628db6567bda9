"""What a Hopper tensor core computes: D = A B + C with its own way of rounding.

The hardware does not add one product after another. For each element of D, over all of an
instruction's k at once,

1. every product is exact; its exponent is taken as the sum of its factors' exponents, not
   normalised (a subnormal factor counts with the smallest normal exponent, a zero not at all);
2. the products and the element of C are aligned to the largest of their exponents and cut off,
   towards zero, below 2^-25 of it;
3. the terms are added exactly, and the sum is cut off towards zero to float32, or rounded to
   nearest for a float16 result. Subnormal numbers are kept, an overflow gives infinity, a sum that
   comes to zero is +0, every NaN is 0x7fffffff (0x7fff).

Steps 1 to 3 are the model of P. Xie, Y. Wang, F. Yang and M. Yang, "MMA-Sim: Bit-Accurate Reference
Model of Tensor Cores and Matrix Cores", arXiv:2511.10909. That zeros do not count, and that no
result is -0, was read off an H200. Of 2.6 million elements computed on that H200 (float16, bfloat16
and TF32 factors; narrow, wide and full ranges of exponents, subnormals, infinities, NaN,
cancellation) this module gives every one to the last bit. A result is less exact than a float64 sum
rounded once, often by several units in the last place.

Float64 products are added one after another with fused multiply-adds, in the order of k (so the
same H200 did in 1.1 million elements); integers are exact and wrap around.

Matrices stand here with the warps (or any other batch) along the last axis, A as (k, m, warps), B
as (k, n, warps), C and D as (m, n, warps): every step is then one pass over contiguous memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..rounding import widen_bf16

FRACTION_BITS = 25  # kept below the largest exponent
_ZERO = np.int16(-4096)  # stands for the exponent of zero, below every other, also when doubled
LOWEST = np.int16(-300)  # below every exponent of a product that is not zero
_WARPS = 32  # at once, so that the products stay in the cache


@dataclass(frozen=True, slots=True)
class FragmentFormat:
    """A floating-point format of factors: `exponent_bits` above `fraction_bits` in a word."""

    word: np.dtype
    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    def exponents(self, bits: np.ndarray) -> np.ndarray:
        """int16 exponents of words in this format: `_ZERO` for 0, one too large for inf and NaN."""
        one = self.word.type(1)
        fields = bits >> self.word.type(self.fraction_bits)
        fields &= self.word.type(2**self.exponent_bits - 1)
        exponents = np.maximum(fields, one).astype(np.int16)
        exponents -= np.int16(self.bias)
        magnitude = bits & self.word.type(2 ** (self.exponent_bits + self.fraction_bits) - 1)
        exponents[magnitude == 0] = _ZERO
        return exponents


F16 = FragmentFormat(np.dtype(np.uint16), 5, 10)
BF16 = FragmentFormat(np.dtype(np.uint16), 8, 7)
F32 = FragmentFormat(np.dtype(np.uint32), 8, 23)
FORMATS = {"f16": F16, "bf16": BF16, "tf32": F32}


def factors(bits: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Float32 values and int16 exponents of words that hold factors.

    bits: uint16 for `kind` f16 and bf16, uint32 for tf32, of which the hardware ignores the last
    13 bits.
    """
    if kind in ("f16", "bf16"):
        values, exponents = _all_factors(kind)
        return values.take(bits), exponents.take(bits)
    bits = bits & np.uint32(0xFFFFE000)
    return bits.view(np.float32), FORMATS[kind].exponents(bits)


@cache
def _all_factors(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Float32 values and int16 exponents of all words of 16 bits."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(np.float16).astype(np.float32) if kind == "f16" else widen_bf16(bits)
    return values, FORMATS[kind].exponents(bits)


@np.errstate(all="ignore")
def multiply_accumulate(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind: str) -> np.ndarray:
    """A B + C as a Hopper tensor core computes it in one instruction.

    a: words (k, m, warps) and b: words (k, n, warps), uint16 for `kind` f16 or bf16, uint32 for
    tf32; k at most 16. c: (m, n, warps) float32, or float16 for the form that accumulates in
    float16. Returns an array like c.
    """
    a_values, a_exponents = factors(a, kind)
    b_values, b_exponents = factors(b, kind)
    c_bits = c.view(np.uint32 if c.dtype == np.float32 else np.uint16)
    c_exponents = (F32 if c.dtype == np.float32 else F16).exponents(c_bits)
    product_type = exact_type(kind, a_exponents, b_exponents)
    a_values = a_values.astype(product_type, copy=False)
    b_values = b_values.astype(product_type, copy=False)
    out = np.empty(c.shape, c.dtype)
    for start in range(0, c.shape[-1], _WARPS):
        part = np.s_[..., start : start + _WARPS]
        out[part] = _fused_sums(
            (a_values[part], a_exponents[part]),
            (b_values[part], b_exponents[part]),
            (c[part], c_exponents[part]),
            FORMATS[kind].bias,
        )
    return out


def exact_type(kind: str, a_exponents: np.ndarray, b_exponents: np.ndarray) -> type:
    """float32 where it holds all products exactly and without overflow, otherwise float64."""
    if kind == "f16" or not a_exponents.size:
        return np.float32
    highest = int(a_exponents.max()) + int(b_exponents.max())
    lowest = sum(int(np.where(e == _ZERO, 0, e).min()) for e in (a_exponents, b_exponents))
    return np.float32 if highest <= 120 and lowest >= -100 else np.float64


def _fused_sums(a, b, c, bias: int) -> np.ndarray:
    """Steps 1 to 3 for a few warps; a, b and c are pairs of values and exponents."""
    (a_values, a_exponents), (b_values, b_exponents), (c_values, c_exponents) = a, b, c
    # Of few warps the inner loops are short: an array laid out is quicker than a broadcast one.
    columns = b_values.shape[1]
    exponents = a_exponents[:, :, None].repeat(columns, axis=2)
    exponents += b_exponents[:, None]
    top = np.maximum(exponents.max(axis=0), c_exponents)
    np.maximum(top, LOWEST, out=top)
    terms = a_values[:, :, None].repeat(columns, axis=2)
    terms *= b_values[:, None]
    if terms.dtype == np.float32:
        # No product that is not zero has an exponent below -100 here.
        terms *= power_of_two(FRACTION_BITS - np.maximum(top, np.int16(-100)), np.float32)
    else:
        terms *= power_of_two(FRACTION_BITS - top, np.float64)
    # Sixteen terms of less than 2^27 each: the sum of the products fits 32 bits.
    total = terms.astype(np.int32).sum(axis=0, dtype=np.int32)

    def products() -> np.ndarray:
        return (a_values.astype(np.float64)[:, :, None] * b_values.astype(np.float64)[:, None]).sum(
            axis=0
        )

    special = max(a_exponents.max(), b_exponents.max()) > bias
    return rounded_sums(total, top, c_values, c_exponents, products, special)


def rounded_sums(
    total: np.ndarray,
    top: np.ndarray,
    c_values: np.ndarray,
    c_exponents: np.ndarray,
    products: Callable[[], np.ndarray],
    special: bool,
) -> np.ndarray:
    """Add C to sums of products, and round: the end of step 2, and step 3.

    Args:
        total: int32, the sums of the products in units of 2^(top - 25), each cut off.
        top: int16, the largest exponent of each element's terms, C's among them.
        c_values, c_exponents: of C, whose type the result has.
        products: gives the sums in float64, which tell of infinities and NaN.
        special: whether some factor is infinite or NaN.
    """
    total = total.astype(np.float64)
    wide_c = c_values.astype(np.float64)
    total += np.trunc(wide_c * power_of_two(FRACTION_BITS - top, np.float64))
    total *= power_of_two(top - FRACTION_BITS, np.float64)
    narrow = np.float32 if c_values.dtype == np.float32 else np.float16
    special = special or c_exponents.max() >= (128 if narrow is np.float32 else 16)
    if special:
        plain = products() + wide_c
        total = np.where(np.isfinite(plain), total, plain)
    return (_to_float32 if narrow is np.float32 else _to_float16)(total, special)


def power_of_two(exponent: np.ndarray, dtype: type) -> np.ndarray:
    """2**exponent for int16 exponents in the normal range of float32 or float64."""
    if dtype is np.float32:
        return ((exponent + np.int16(127)).astype(np.int32) << np.int32(23)).view(np.float32)
    return ((exponent + np.int16(1023)).astype(np.int64) << np.int64(52)).view(np.float64)


def _to_float32(values: np.ndarray, special: bool) -> np.ndarray:
    """float64 cut off towards zero to float32; from 2**128 on infinity; never -0."""
    cut = (values.view(np.int64) & np.int64(-(1 << 29))).view(np.float64)
    result = cut.astype(np.float32)
    tiny = np.abs(cut) < 2.0**-126
    if tiny.any():  # subnormal: fewer bits are left
        result[tiny] = np.trunc(cut[tiny] * 2.0**149) * 2.0**-149 + 0.0
    if special:
        result.view(np.uint32)[np.isnan(values)] = 0x7FFFFFFF
    return result


def _to_float16(values: np.ndarray, special: bool) -> np.ndarray:
    """float64 rounded to the nearest float16, ties to even; never -0."""
    result = values.astype(np.float16)
    bits = result.view(np.uint16)
    bits[bits == 0x8000] = 0
    if special:
        bits[np.isnan(values)] = 0x7FFF
    return result


def multiply_accumulate_integers(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, saturate: bool = False
) -> np.ndarray:
    """A B + C of 8-bit integers, wrapping around or (`.satfinite`) held at the ends of int32.

    a: int8 or uint8 (k, m, warps); b: (k, n, warps); c: int32 (m, n, warps), k at most 32 for
    8-bit values, or 256 for smaller ones.
    """
    left = a.transpose(2, 1, 0).astype(np.float32)
    right = b.transpose(2, 0, 1).astype(np.float32)
    # At most 32 * 255 * 255 < 2^24: exact in float32.
    total = np.matmul(left, right).transpose(1, 2, 0).astype(np.int64) + c
    if saturate:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total.astype(np.int32)


def multiply_accumulate_bits(a: np.ndarray, b: np.ndarray, c: np.ndarray, op: str) -> np.ndarray:
    """C plus the number of ones in each row of A `op` ("xor" or "and") each column of B.

    a: int8 (k, m, warps) and b: (k, n, warps) of zeros and ones; c: int32 (m, n, warps).
    """
    both = multiply_accumulate_integers(a, b, np.zeros_like(c))
    if op == "and":
        return both + c
    left, right = (matrix.sum(axis=0, dtype=np.int32) for matrix in (a, b))
    return left[:, None] + right[None] - 2 * both + c


@np.errstate(all="ignore")
def multiply_accumulate_doubles(a: np.ndarray, b: np.ndarray, c: np.ndarray, fma) -> np.ndarray:
    """A B + C in float64, one fused multiply-add a step of k, in ascending order.

    a: (k, m, warps), b: (k, n, warps), c: (m, n, warps); fma(x, y, z) is x y + z rounded once.
    """
    total = c
    for left, right in zip(a, b, strict=True):
        total = fma(left[:, None], right[None], total)
    return total
