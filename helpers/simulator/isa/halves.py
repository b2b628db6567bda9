"""f16, bf16 and their packed pairs (PTX ISA 9.0, "Half Precision Floating Point Instructions").

Computed in float64, rounded to odd where float64 is inexact, and rounded once to the format. A NaN
result is 0x7fff (seen on an H200). A packed register is worked on as its two halves along one more
axis.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .floats import canonical
from .instruction_types import F16, F32, F64, U16, U32, Operation, form, uniform
from .rounding import FORMATS, encode, round_bits_bf16, to_odd, two_sum, widen_bf16

_SIGN, _MAGNITUDE, _NAN = np.uint16(0x8000), np.uint16(0x7FFF), np.uint16(0x7FFF)
PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
_KINDS = "f16|f16x2|bf16|bf16x2"


@dataclass(frozen=True, slots=True)
class Half:
    """A 16-bit format: the infinity's bits, and how to widen its bits."""

    name: str
    infinity: int
    smallest_normal: int
    widen: Callable[[np.ndarray], np.ndarray]  # uint16 bits -> float64


HALVES = {
    "f16": Half("f16", 0x7C00, 0x0400, lambda bits: bits.view(F16).astype(F64)),
    "bf16": Half("bf16", 0x7F80, 0x0080, lambda bits: widen_bf16(bits).astype(F64)),
}


def unpack(pairs: np.ndarray) -> np.ndarray:
    """The two 16-bit halves of 32-bit registers, the lower one first, along a new last axis."""
    return np.ascontiguousarray(pairs)[..., np.newaxis].view(U16)


def pack(halves: np.ndarray) -> np.ndarray:
    """The inverse of `unpack`."""
    return np.ascontiguousarray(halves).view(U32)[..., 0]


def on_halves(evaluate: Callable) -> Callable:
    """An instruction on 16-bit values applied to both halves of packed registers."""
    return lambda *inputs: pack(evaluate(*[unpack(a) for a in inputs]))


def widen_f16(a: np.ndarray) -> np.ndarray:
    """float16 to float32 (`cvt.f32.f16`)."""
    if a.size < 2048:
        return canonical(a.astype(F32))
    # NumPy converts one element at a time. Instead put the exponent and fraction in place, and
    # correct the exponent's bias by a multiplication, which also normalises subnormals.
    bits = a.view(U16).astype(U32)
    np.left_shift(bits, np.uint32(16), bits)
    np.right_shift(bits.view(np.int32), np.int32(3), bits.view(np.int32))
    np.bitwise_and(bits, np.uint32(0x8FFFFFFF), bits)
    wide = bits.view(F32)
    np.multiply(wide, np.float32(2.0**112), wide)
    magnitudes = np.absolute(wide)
    if magnitudes.item(magnitudes.argmax()) >= 65536.0:
        return canonical(a.astype(F32))
    return wide


def narrow_to_bf16(a: np.ndarray) -> np.ndarray:
    """float32 to bf16 bits, to nearest even (`cvt.rn.bf16.f32`)."""
    bits = round_bits_bf16(a.view(U32))
    if not a.item(a.argmax()) <= np.inf:
        bits = np.where(np.isnan(a), np.uint16(0x7FFF), bits)
    return bits


def narrow_to_f16(a: np.ndarray) -> np.ndarray:
    """float32 or float64 to float16, to nearest even (`cvt.rn.f16.f32`)."""
    result = a.astype(F16)
    largest = a.item(a.argmax())
    if largest != largest:
        result.view(U16)[np.isnan(a)] = 0x7FFF
    return result


def is_nan(bits: np.ndarray, half: Half) -> np.ndarray:
    """Whether 16-bit patterns are NaNs."""
    return np.greater(bits & _MAGNITUDE, U16.type(half.infinity))


def _flush(bits: np.ndarray, half: Half) -> np.ndarray:
    tiny = np.less(bits & _MAGNITUDE, U16.type(half.smallest_normal))
    return np.where(tiny, bits & _SIGN, bits)


def clamp(bits: np.ndarray, half: Half) -> np.ndarray:
    """`.sat`: to [0, 1], where NaN and -0 become +0."""
    one = U16.type(0x3C00 if half.name == "f16" else 0x3F80)
    kept = np.where(np.greater(bits, one), one, bits)  # positive bits order as the values do
    return np.where(np.greater_equal(bits, _SIGN) | is_nan(bits, half), U16.type(0), kept)


def relu(bits: np.ndarray, half: Half) -> np.ndarray:
    """`.relu`: negative results become +0, a NaN stays the canonical NaN."""
    negative = np.greater_equal(bits, _SIGN) & ~is_nan(bits, half)
    return np.where(negative, U16.type(0), bits)


def _add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return to_odd(*two_sum(a, b))


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return to_odd(*two_sum(a * b, c))


# opcode -> (the value in float64, exact or rounded to odd; operands; flops)
_ARITHMETIC: dict[str, tuple[Callable, int, int]] = {
    "add": (_add, 2, 1),
    "sub": (lambda a, b: _add(a, -b), 2, 1),
    "mul": (np.multiply, 2, 1),
    "fma": (_fma, 3, 2),
    # what the assembler makes of a product and a difference, which PTX has no name for
    "fms": (lambda a, b, c: _fma(a, b, -c), 3, 2),
    "fnma": (lambda a, b, c: _fma(-a, b, c), 3, 2),
}


def _operation(
    evaluate: Callable, kind: str, flags: tuple, operands: int, flops: int = 0
) -> Operation:
    """An Operation of PTX type `kind` from a function of uint16 bits, with modifiers around it."""
    half = half_of(kind)

    def modified(*inputs: np.ndarray) -> np.ndarray:
        if ".ftz" in flags:
            inputs = tuple(_flush(a, half) for a in inputs)
        bits = evaluate(*inputs)
        if ".ftz" in flags:
            bits = _flush(bits, half)
        if ".sat" in flags:
            bits = clamp(bits, half)
        if ".relu" in flags:
            bits = relu(bits, half)
        return bits

    on_bits = modified if any(flags) else evaluate
    if kind in PACKED:
        return uniform(on_halves(on_bits), kind, operands, flops=2 * flops)
    if kind == "f16":
        evaluate_f16 = lambda *inputs: on_bits(*[a.view(U16) for a in inputs]).view(F16)  # noqa: E731
        return uniform(evaluate_f16, kind, operands, flops=flops)
    return uniform(on_bits, kind, operands, flops=flops)


def half_of(kind: str) -> Half:
    """The format of a type, or of both halves of a packed one."""
    return HALVES[PACKED.get(kind, kind)]


@form("(add|sub|mul|fma)[.rn][.ftz][.sat].(f16|f16x2)", "(add|sub|mul)[.rn].(bf16|bf16x2)",
      "(fma)[.rn][.ftz][.relu].(f16|f16x2)", "(fma)[.rn][.relu].(bf16|bf16x2)",
      "(fms|fnma).rn[.ftz][.sat].(f16|f16x2)", "(fms|fnma).rn.(bf16|bf16x2)")  # fmt: skip
def _arithmetic(opcode: str, *words: str | None) -> Operation:
    compute, operands, flops = _ARITHMETIC[opcode]
    _, *flags, kind = words
    half, ftz = half_of(kind), ".ftz" in flags

    def evaluate(*inputs: np.ndarray) -> np.ndarray:
        exact = compute(*[half.widen(a) for a in inputs])
        return encode(exact, FORMATS[half.name], "rn", ftz)

    return _operation(evaluate, kind, tuple(flags), operands, flops)


@form(f"(abs|neg)[.ftz].({_KINDS})")
def _sign(opcode: str, ftz: str | None, kind: str) -> Operation:
    half = half_of(kind)

    def evaluate(bits: np.ndarray) -> np.ndarray:
        changed = bits & _MAGNITUDE if opcode == "abs" else bits ^ _SIGN
        return np.where(is_nan(bits, half), _NAN, changed)

    return _operation(evaluate, kind, (ftz,), 1)


def _ordered(bits: np.ndarray) -> np.ndarray:
    """int16 that orders as the values do, with -0 below +0. Its own inverse."""
    signed = bits.view(np.int16)
    return signed ^ ((signed >> np.int16(15)) & np.int16(0x7FFF))


@form(f"(min|max)[.ftz][.NaN][.xorsign.abs].({_KINDS})")
def _min_max(
    opcode: str, ftz: str | None, nan: str | None, signs: str | None, kind: str
) -> Operation:
    half, pick = half_of(kind), np.minimum if opcode == "min" else np.maximum

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sign = (a ^ b) & _SIGN
        if signs:
            a, b = a & _MAGNITUDE, b & _MAGNITUDE
        result = _ordered(pick(_ordered(a), _ordered(b)).view(U16)).view(U16)
        a_nan, b_nan = is_nan(a, half), is_nan(b, half)
        if nan:
            result = np.where(a_nan | b_nan, _NAN, result)
        else:
            result = np.where(a_nan, b, np.where(b_nan, a, result))
        if signs:
            result = result | sign
        return np.where(is_nan(result, half), _NAN, result)

    return _operation(evaluate, kind, (ftz,), 2)


def _ex2(x: np.ndarray, half: Half, ftz: bool) -> np.ndarray:
    """2^x in bits. Seen on an H200, for every operand: cut off, not rounded; infinite from the
    power of two that follows the largest number; and 1 from -2^-23 on upwards to 0."""
    form = FORMATS[half.name]
    values = np.exp2(np.where((x < 0) & (x > -(2.0**-23)), 0.0, x))
    beyond = 2.0**16 if half.name == "f16" else 2.0**128
    values = np.where(values >= beyond, np.inf, values)
    return encode(values, form, "rz", ftz)


def _tanh(x: np.ndarray, half: Half, ftz: bool) -> np.ndarray:
    """tanh x in bits, as an H200 has it but for one operand in a thousand, which is off by one
    unit: x itself near 0, cut off elsewhere, and 1 from 8 on."""
    magnitude = np.absolute(x)
    values = np.where(magnitude < 2.0**-8 * (1 + 2.0**-7), x, np.tanh(x))
    values = np.where(magnitude >= 8, np.copysign(1.0, x), values)
    return encode(values, FORMATS[half.name], "rz", ftz)


@form(f"(ex2|tanh).approx[.ftz].({_KINDS})")
def _function(opcode: str, ftz: str | None, kind: str) -> Operation:
    half, compute = half_of(kind), _ex2 if opcode == "ex2" else _tanh
    return _operation(lambda bits: compute(half.widen(bits), half, bool(ftz)), kind, (ftz,), 1)
