"""Conversions with packed or unusual results (PTX ISA 9.0, "cvt", "cvt.pack", "Alternate
Floating-Point Data Formats"): f16x2, bf16x2, tf32, and pairs of 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import flush
from .halves import (
    HALVES,
    narrow_to_bf16,
    narrow_to_f16,
    pack,
    relu,
    unpack,
)
from .instruction_types import Operation, signature
from .rounding import F64, FORMATS, U16, U32, encode

_16 = np.uint32(16)
_NAN_TF32 = np.uint32(0x7FFFE000)


def _pair(kind: str, flags: list[str]) -> Callable:
    """`cvt.rn.f16x2.f32 d, a, b`: a goes to the upper half, b to the lower."""
    half = HALVES[kind.removesuffix("x2")]
    form = FORMATS[half.name]
    nearest = narrow_to_bf16 if half.name == "bf16" else lambda a: narrow_to_f16(a).view(U16)

    def convert(a: np.ndarray) -> np.ndarray:
        if "ftz" in flags:
            a = flush(a)
        bits = nearest(a) if "rn" in flags else encode(a.astype(F64), form, "rz")
        return relu(bits, half) if "relu" in flags else bits

    return lambda a, b: convert(a).astype(U32) << _16 | convert(b)


def _tf32(flags: list[str]) -> Callable:
    """f32 with 10 bits of fraction; `rna` rounds halves away from zero."""

    def convert(a: np.ndarray) -> np.ndarray:
        bits = a.view(U32)
        if "rna" in flags:
            rounded = bits + np.uint32(0x1000)
        elif "rn" in flags:
            rounded = bits + ((bits >> np.uint32(13) & np.uint32(1)) + np.uint32(0xFFF))
        else:
            rounded = bits
        finite = np.isfinite(a)
        rounded = np.where(finite, rounded, bits) & np.uint32(0xFFFFE000)
        if "satfinite" in flags:
            beyond = np.greater_equal(rounded & np.uint32(0x7FFFFFFF), np.uint32(0x7F800000))
            rounded = np.where(beyond, rounded - np.uint32(0x2000), rounded)
        if "relu" in flags:
            rounded = np.where(np.signbit(a), np.uint32(0), rounded)
        # Seen on an H200: rna cuts a NaN like any number, the others give one NaN.
        return rounded if "rna" in flags else np.where(np.isnan(a), _NAN_TF32, rounded)

    return convert


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


def _byte_pair(modifiers: tuple[str, ...]) -> Operation | None:
    match modifiers:
        case ("rn", "satfinite", *flags, kind, source) if kind in _BYTE_FORMATS:
            if flags not in ([], ["relu"]):
                return None
            convert = _to_byte(kind, bool(flags))
            if source == "f32":

                def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                    upper = convert(a.astype(F64)).astype(U16) << np.uint16(8)
                    return upper | convert(b.astype(F64))

                return signature(join, "f32 f32", "b16")
            if source in ("f16x2", "bf16x2"):
                widen = HALVES[source.removesuffix("x2")].widen

                def join_pair(a: np.ndarray) -> np.ndarray:
                    return np.ascontiguousarray(convert(widen(unpack(a)))).view(U16)[..., 0]

                return signature(join_pair, source, "b16")
        case ("rn", *flags, "f16x2", kind) if kind in _BYTE_FORMATS and flags in ([], ["relu"]):
            values = _BYTE_FORMATS[kind][1]
            half = HALVES["f16"]

            def split(a: np.ndarray) -> np.ndarray:
                codes = np.ascontiguousarray(a)[..., np.newaxis].view(np.uint8)
                bits = encode(values[codes], FORMATS["f16"])
                return pack(relu(bits, half) if flags else bits)

            return signature(split, "b16", "f16x2")
    return None


_NARROW = {"u16": 16, "s16": 16, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "u2": 2, "s2": 2}


def _clamp_to(kind: str) -> Callable:
    """32-bit integers clamped to a narrow type, as the low bits of uint32."""
    bits = _NARROW[kind]
    low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    mask = np.uint32(2**bits - 1)

    def clamp(a: np.ndarray) -> np.ndarray:
        return np.clip(a.astype(np.int64), low, high).astype(U32) & mask

    return clamp


def _integer_pack(modifiers: tuple[str, ...]) -> Operation | None:
    """`cvt.pack.sat`: a above b, below what there is of c."""
    match modifiers:
        case ("pack", "sat", "u16" | "s16" as kind, "s32"):
            clamp = _clamp_to(kind)
            return signature(lambda a, b: clamp(a) << _16 | clamp(b), "s32 s32", "b32")
        case ("pack", "sat", kind, "s32", "b32") if _NARROW.get(kind, 16) < 16:
            clamp, bits = _clamp_to(kind), np.uint32(_NARROW[kind])
            both = np.uint32(2 * _NARROW[kind])
            return signature(
                lambda a, b, c: c << both | clamp(a) << bits | clamp(b), "s32 s32 b32", "b32"
            )
    return None


def packed(modifiers: tuple[str, ...]) -> Operation | None:
    """The builder of every `cvt` form whose result is packed or has no plain type."""
    *flags, to, source = modifiers
    if to in ("f16x2", "bf16x2") and source == "f32":
        if flags[:1] in (["rn"], ["rz"]) and set(flags[1:]) <= {"relu", "ftz"}:
            return signature(_pair(to, flags), "f32 f32", to)
        return None
    if to == "tf32" and source == "f32":
        if flags[:1] in (["rna"], ["rn"], ["rz"]) and set(flags[1:]) <= {"relu", "satfinite"}:
            return signature(_tf32(flags), "f32", "tf32")
        return None
    return _byte_pair(modifiers) or _integer_pack(modifiers)
