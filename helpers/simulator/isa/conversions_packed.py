"""Conversions with packed or unusual results (PTX ISA 9.0, "cvt", "cvt.pack", "Alternate
Floating-Point Data Formats"): f16x2, bf16x2, tf32, and pairs of 8-bit floats."""

from collections.abc import Callable

import numpy as np

from .floats import flush
from .halves import HALVES, narrow_to_bf16, narrow_to_f16, pack, relu, unpack
from .instruction_types import F64, U16, U32, Operation, form, signature
from .rounding import FORMATS, encode

_16 = np.uint32(16)
_NAN_TF32 = np.uint32(0x7FFFE000)


@form("cvt.(rn|rz)[.ftz][.relu].(f16x2|bf16x2).f32")
def _pair(mode: str, ftz: str | None, relu_too: str | None, kind: str) -> Operation:
    """`cvt.rn.f16x2.f32 d, a, b`: a goes to the upper half, b to the lower."""
    half = HALVES[kind.removesuffix("x2")]
    nearest = narrow_to_bf16 if half.name == "bf16" else lambda a: narrow_to_f16(a).view(U16)

    def convert(a: np.ndarray) -> np.ndarray:
        if ftz:
            a = flush(a)
        bits = nearest(a) if mode == "rn" else encode(a.astype(F64), FORMATS[half.name], "rz")
        return relu(bits, half) if relu_too else bits

    return signature(lambda a, b: convert(a).astype(U32) << _16 | convert(b), "f32 f32", kind)


@form("cvt.(rna|rn|rz)[.satfinite][.relu].tf32.f32")
def _tf32(mode: str, satfinite: str | None, relu_too: str | None) -> Operation:
    """f32 with 10 bits of fraction; `rna` rounds halves away from zero."""

    def convert(a: np.ndarray) -> np.ndarray:
        bits = rounded = a.view(U32)
        if mode == "rna":
            rounded = bits + np.uint32(0x1000)
        elif mode == "rn":
            rounded = bits + ((bits >> np.uint32(13) & np.uint32(1)) + np.uint32(0xFFF))
        rounded = np.where(np.isfinite(a), rounded, bits) & np.uint32(0xFFFFE000)
        if satfinite:
            beyond = np.greater_equal(rounded & np.uint32(0x7FFFFFFF), np.uint32(0x7F800000))
            rounded = np.where(beyond, rounded - np.uint32(0x2000), rounded)
        if relu_too:
            rounded = np.where(np.signbit(a), np.uint32(0), rounded)
        # Seen on an H200: rna cuts a NaN like any number, the others give one NaN.
        return rounded if mode == "rna" else np.where(np.isnan(a), _NAN_TF32, rounded)

    return signature(convert, "f32", "tf32")


def _values_of_byte(fraction_bits: int, bias: int) -> np.ndarray:
    """The values of the non-negative codes of an 8-bit float, as if all were numbers."""
    codes = np.arange(128)
    exponent, fraction = codes >> fraction_bits, codes & ((1 << fraction_bits) - 1)
    normal = exponent > 0
    scale = np.where(normal, exponent, 1) - bias - fraction_bits
    return np.ldexp((fraction + (normal << fraction_bits)).astype(F64), scale)


# name -> (values of the finite codes, value or NaN of every one of the 256 codes)
_BYTE_FORMATS: dict[str, tuple[np.ndarray, np.ndarray]] = {}
for _name, _fraction_bits, _bias, _finite in (("e4m3x2", 3, 7, 127), ("e5m2x2", 2, 15, 124)):
    _numbers = _values_of_byte(_fraction_bits, _bias)
    _positive = np.where(np.arange(128) < _finite, _numbers, np.nan)
    if _name == "e5m2x2":
        _positive[124] = np.inf
    _BYTE_FORMATS[_name] = (_numbers[:_finite], np.concatenate([_positive, -_positive]))


def _to_byte(kind: str, relu_too: bool) -> Callable:
    """float64 to the nearest 8-bit float, ties to even; beyond them the largest (satfinite)."""
    numbers = _BYTE_FORMATS[kind][0]
    halfway = (numbers[1:] + numbers[:-1]) / 2

    def convert(values: np.ndarray) -> np.ndarray:
        magnitudes = np.absolute(values)
        code = np.searchsorted(halfway, magnitudes)
        tie = np.equal(halfway[np.minimum(code, halfway.size - 1)], magnitudes)
        code = code + (tie & (code % 2 == 1))
        negative = np.signbit(values)
        code = np.where(negative, 0 if relu_too else code + 128, code)
        return np.where(np.isnan(values), 0x7F, code).astype(np.uint8)

    return convert


_BYTES = "|".join(_BYTE_FORMATS)


@form(f"cvt.rn.satfinite[.relu].({_BYTES}).(f32|f16x2|bf16x2)")
def _to_bytes(relu_too: str | None, kind: str, source: str) -> Operation:
    convert = _to_byte(kind, bool(relu_too))
    if source == "f32":

        def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            upper = convert(a.astype(F64)).astype(U16) << np.uint16(8)
            return upper | convert(b.astype(F64))

        return signature(join, "f32 f32", "b16")
    widen = HALVES[source.removesuffix("x2")].widen

    def join_pair(a: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(convert(widen(unpack(a)))).view(U16)[..., 0]

    return signature(join_pair, source, "b16")


@form(f"cvt.rn[.relu].f16x2.({_BYTES})")
def _from_bytes(relu_too: str | None, kind: str) -> Operation:
    values, half = _BYTE_FORMATS[kind][1], HALVES["f16"]

    def split(a: np.ndarray) -> np.ndarray:
        codes = np.ascontiguousarray(a)[..., np.newaxis].view(np.uint8)
        bits = encode(values[codes], FORMATS["f16"])
        return pack(relu(bits, half) if relu_too else bits)

    return signature(split, "b16", "f16x2")


def _clamp_to(kind: str) -> Callable:
    """32-bit integers clamped to a narrow type, as the low bits of uint32."""
    bits = int(kind[1:])
    low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    mask = np.uint32(2**bits - 1)

    def clamp(a: np.ndarray) -> np.ndarray:
        return np.clip(a.astype(np.int64), low, high).astype(U32) & mask

    return clamp


@form("cvt.pack.sat.(u16|s16).s32", "cvt.pack.sat.(u8|s8|u4|s4|u2|s2).s32.(b32)")
def _integer_pack(kind: str, below: str | None = None) -> Operation:
    """`cvt.pack.sat`: a above b, below what there is of c."""
    clamp, bits = _clamp_to(kind), np.uint32(kind[1:])
    if below is None:
        return signature(lambda a, b: clamp(a) << bits | clamp(b), "s32 s32", "b32")
    both = bits * np.uint32(2)
    return signature(lambda a, b, c: c << both | clamp(a) << bits | clamp(b), "s32 s32 b32", "b32")
