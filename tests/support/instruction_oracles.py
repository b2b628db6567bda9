"""What the tests of single PTX instructions share: operands, and exact arithmetic to compare with.

The oracle works on integers and `fractions.Fraction` alone, one element at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from helpers.simulator.isa.instructions import Operation, operation

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def find(name: str) -> Operation:
    """The instruction of a full name such as `fma.rn.ftz.f32`."""
    opcode, *modifiers = name.split(".")
    found = operation(opcode, tuple(modifiers))
    assert found is not None, name
    return found


def run(name: str, *inputs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
    """The instruction's results for operands that are cast or viewed to what it asks for."""
    op = find(name)
    wanted = [*op.inputs, *([np.dtype(bool)] if op.reads_carry else [])]
    assert len(wanted) == len(inputs)
    operands = [np.atleast_1d(as_type(a, dtype)) for a, dtype in zip(inputs, wanted, strict=True)]
    with np.errstate(all="ignore"):
        return op.evaluate(*operands)


def as_type(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array itself, or its bits, in another type of the same size."""
    a = np.asarray(a)
    if a.dtype == dtype:
        return a
    assert a.dtype.itemsize == dtype.itemsize, (a.dtype, dtype)
    return a.view(dtype)


def bits_of(a: np.ndarray) -> list[int]:
    """The raw bits of every element."""
    return np.ascontiguousarray(a).view(UNSIGNED[a.dtype.itemsize]).ravel().tolist()


def signed(value: int, width: int) -> int:
    """The two's complement value of the low `width` bits."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def integers(rng: np.random.Generator, width: int, count: int) -> np.ndarray:
    """Random integers of all magnitudes, and the values where instructions differ."""
    top = 1 << (width - 1)
    special = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, top - 1, top, top + 1, top // 2, 2 * top - 1]
    special += [2 * top - 2, 0x5555555555555555 % (2 * top), 0xFF, 0x80, 0x7F]
    words = rng.integers(0, 2**64, count, dtype=np.uint64) >> rng.integers(
        64 - width, 64, count, dtype=np.uint64
    )
    pick = rng.random(count) < 0.4
    words[pick] = rng.choice(np.array(special, np.uint64), int(pick.sum()))
    return words.astype(UNSIGNED[width // 8])


@dataclass(frozen=True)
class Format:
    """A binary floating-point format."""

    exponent_bits: int
    fraction_bits: int
    nan: int

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    @property
    def least_normal(self) -> int:
        return 1 << self.fraction_bits

    def is_nan(self, bits: int) -> bool:
        return bits & (self.sign_bit - 1) > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & (self.sign_bit - 1) == self.infinity

    def negative(self, bits: int) -> bool:
        return bool(bits & self.sign_bit)

    def flush(self, bits: int) -> int:
        return bits & self.sign_bit if bits & (self.sign_bit - 1) < self.least_normal else bits

    def value(self, bits: int) -> Fraction:
        """The value of a finite number's bits."""
        magnitude = bits & (self.sign_bit - 1)
        exponent, fraction = magnitude >> self.fraction_bits, magnitude & (self.least_normal - 1)
        if exponent:
            fraction |= self.least_normal
        power = max(exponent, 1) - self.bias - self.fraction_bits
        value = Fraction(fraction) * (Fraction(2) ** power)
        return -value if self.negative(bits) else value

    def _units(self, magnitude: Fraction, e: int, mode: str, negative: bool, sticky: bool) -> int:
        """The magnitude, rounded to a multiple of the last place of numbers from 2^e on."""
        scaled = magnitude / Fraction(2) ** (e - self.fraction_bits)
        units = scaled.numerator // scaled.denominator
        rest = scaled - units
        if mode == "rn":
            up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and (sticky or units & 1))
        elif mode == "rna":
            up = rest >= Fraction(1, 2)
        else:
            towards = {"rz": False, "rm": negative, "rp": not negative}[mode]
            up = towards and (rest > 0 or sticky)
        return units + up

    def round(
        self,
        exact: Fraction,
        mode: str,
        zero_sign: int = 0,
        sticky: bool = False,
        flush: bool = False,
    ) -> int:
        """The bits of a rational number rounded in one of PTX's modes.

        `zero_sign` is the sign of an exact zero. `sticky` says that the true magnitude is a
        little larger than `exact`, by less than anything that matters to the rounding. `flush`
        makes what is subnormal a zero: what is too small after a rounding without a least
        exponent (seen on an H200).
        """
        if exact == 0 and not sticky:
            return self.sign_bit if zero_sign else 0
        negative = exact < 0
        sign = self.sign_bit if negative else 0
        magnitude = abs(exact)
        # the exponent e with 2^e <= magnitude < 2^(e+1)
        e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** e:
            e -= 1
        least = 1 - self.bias
        if flush and e < least:
            units = self._units(magnitude, e, mode, negative, sticky)
            if units * Fraction(2) ** (e - self.fraction_bits) < Fraction(2) ** least:
                return sign
        e = max(e, least)
        units = self._units(magnitude, e, mode, negative, sticky)
        # units carries into the exponent field by itself, and so do subnormals
        bits = ((e + self.bias - 1) << self.fraction_bits) + units
        if bits >= self.infinity:
            away = {"rz": False, "rm": negative, "rp": not negative}.get(mode, True)
            bits = self.infinity if away else self.infinity - 1
        return bits | sign


FORMATS = {
    "f16": Format(5, 10, 0x7FFF),
    "bf16": Format(8, 7, 0x7FFF),
    "f32": Format(8, 23, 0x7FFFFFFF),
    "f64": Format(11, 52, 0x7FF8000000000000),
}


def floats(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Bits of floats: random bits, special values, and numbers of middling size."""
    form = FORMATS[kind]
    dtype = UNSIGNED[form.width // 8]
    one = form.bias << form.fraction_bits
    special = [0, 1, 2, form.least_normal - 1, form.least_normal, form.least_normal + 1]
    special += [form.infinity - 1, form.infinity, form.infinity + 1, form.nan]
    special += [form.infinity | form.least_normal >> 1]
    special += [one - 1, one, one + 1, one + (form.least_normal >> 1), one + form.least_normal]
    special += [one // 2, one // 2 + 1, one + one // 2]
    special = np.array(special, dtype)
    words = rng.integers(0, 2**form.width, count, dtype=np.uint64).astype(dtype)
    kind_of = rng.integers(0, 4, count)
    spread = min(14, form.bias - 2)
    exponents = rng.integers(form.bias - spread, form.bias + spread, count).astype(dtype)
    fraction = words & dtype(form.least_normal - 1 | form.sign_bit)
    middling = fraction | exponents << dtype(form.fraction_bits)
    signs = words & dtype(form.sign_bit)
    values = np.where(kind_of == 0, rng.choice(special, count) | signs, words)
    return np.where(kind_of >= 2, middling, values)


def _zero_of_sum(x_negative: bool, y_negative: bool, mode: str) -> int:
    return int((x_negative and y_negative) or (mode == "rm" and (x_negative or y_negative)))


def arithmetic(  # noqa: C901  one branch an operation
    op: str, form: Format, mode: str, *operands: int, flush: bool = False
) -> int:
    """add, sub, mul, fma, div, rcp or sqrt of bits, rounded once, as IEEE 754 defines it."""
    if op == "sub":
        operands = (operands[0], operands[1] ^ form.sign_bit)
        return arithmetic("add", form, mode, *operands, flush=flush)
    if op == "rcp":
        operands = (form.bias << form.fraction_bits, operands[0])
        return arithmetic("div", form, mode, *operands, flush=flush)
    if any(form.is_nan(x) for x in operands):
        return form.nan
    signs = [form.negative(x) for x in operands]
    infinite = [form.is_infinite(x) for x in operands]
    zero = [x & (form.sign_bit - 1) == 0 for x in operands]
    values = [Fraction(0) if i else form.value(x) for x, i in zip(operands, infinite, strict=True)]

    def infinity(negative: bool) -> int:
        return form.infinity | (form.sign_bit if negative else 0)

    if op == "sqrt":
        return _sqrt(form, mode, operands[0], signs[0], infinite[0], zero[0])
    if op == "add":
        if any(infinite):
            if all(infinite) and signs[0] != signs[1]:
                return form.nan
            return infinity(signs[infinite.index(True)])
        zero_sign = _zero_of_sum(signs[0], signs[1], mode)
        return form.round(values[0] + values[1], mode, zero_sign, flush=flush)
    sign = signs[0] != signs[1]
    if op == "div":
        if (infinite[0] and infinite[1]) or (zero[0] and zero[1]):
            return form.nan
        if infinite[0] or zero[1]:
            return infinity(sign)
        if infinite[1]:
            return form.round(Fraction(0), mode, int(sign))
        return form.round(values[0] / values[1], mode, int(sign), flush=flush)
    if (infinite[0] and zero[1]) or (zero[0] and infinite[1]):
        return form.nan
    if op == "mul":
        if infinite[0] or infinite[1]:
            return infinity(sign)
        return form.round(values[0] * values[1], mode, int(sign), flush=flush)
    assert op == "fma"
    if infinite[0] or infinite[1]:
        return form.nan if infinite[2] and signs[2] != sign else infinity(sign)
    if infinite[2]:
        return infinity(signs[2])
    total = values[0] * values[1] + values[2]
    return form.round(total, mode, _zero_of_sum(sign, signs[2], mode), flush=flush)


def _sqrt(form: Format, mode: str, bits: int, negative: bool, infinite: bool, zero: bool) -> int:
    if zero:
        return bits
    if negative:
        return form.nan
    if infinite:
        return bits
    value = form.value(bits)
    shift = 2 * (form.width + form.bias)
    scaled = (value.numerator << (2 * shift)) // value.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and (value.numerator << (2 * shift)) % value.denominator == 0
    return form.round(Fraction(root, 1 << shift), mode, sticky=not exact)


def with_modifiers(
    op: str, form: Format, mode: str, flags: set[str], operands: tuple[int, ...]
) -> int:
    """`arithmetic` with `.ftz`, `.sat` and `.relu`."""
    if "ftz" in flags:
        operands = tuple(form.flush(x) for x in operands)
    return clamp(form, flags, arithmetic(op, form, mode, *operands, flush="ftz" in flags))


def clamp(form: Format, flags: set[str], result: int) -> int:
    """`.sat`: to [0, 1] with NaN as 0; `.relu`: negative numbers become 0."""
    one = form.bias << form.fraction_bits
    if "sat" in flags:
        if form.is_nan(result) or form.negative(result):
            return 0
        return min(result, one)
    if "relu" in flags and form.negative(result) and not form.is_nan(result):
        return 0
    return result


def same(kind: str, got: int, want: int) -> bool:
    """Equal bits; any NaN of f64 is as good as another, since PTX leaves its payload open."""
    form = FORMATS[kind]
    return got == want or (kind == "f64" and form.is_nan(got) and form.is_nan(want))
