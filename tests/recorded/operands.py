"""Operand values for single instructions: random bits mixed with the values where instructions differ."""

from __future__ import annotations

import numpy as np

from .cases import Stream

_INTEGERS = [
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    4096,
    65535,
    65536,
]


def _integers(width: int) -> list[int]:
    top = 1 << (width - 1)
    values = _INTEGERS + [
        top,
        top - 1,
        top - 2,
        top + 1,
        top // 2,
        0x5555555555555555,
        0x0F0F0F0F0F0F0F0F,
    ]
    values += [-v for v in values]
    return [v % (1 << width) for v in values]


def _floats(exponent: int, mantissa: int) -> list[int]:
    """Bit patterns of special values of a binary format, both signs."""
    bias = (1 << (exponent - 1)) - 1
    inf = ((1 << exponent) - 1) << mantissa

    def power(n: int) -> int:
        return (n + bias) << mantissa

    ulp, half = 1, 1 << (mantissa - 1)
    values = [
        0,
        0,
        inf,
        inf,
        inf | half,
        inf | half | 5,
        inf | 1,
        inf - 1,
    ]  # quiet and signalling NaN, largest
    values += [
        1,
        2,
        3,
        half,
        half - 1,
        (1 << mantissa) - 1,
        1 << mantissa,
        (1 << mantissa) + 1,
    ]  # subnormal
    for n in (-3, -2, -1, 0, 1, 2, 3, 4, bias, -bias + 2, bias // 2, -(bias // 2), bias - 1):
        values += [power(n), power(n) + ulp, power(n) - ulp, power(n) | half]
    for n in (
        6,
        7,
        8,
        14,
        15,
        16,
        30,
        31,
        32,
        62,
        63,
        64,
    ):  # where conversions to integers leave the range
        if n < bias:
            values += [power(n), power(n) - ulp, power(n) + ulp]
    for n in range(min(mantissa, bias)):  # n + 0.5: ties when rounding to an integer
        values += [power(n) | (half >> n)] if n < mantissa else []
    sign = 1 << (exponent + mantissa)
    return values + [v | sign for v in values]


_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
_SPECIAL = {kind: np.array(_floats(*shape), np.uint64) for kind, shape in _FORMATS.items()}
_SPECIAL.update({f"b{width}": np.array(_integers(width), np.uint64) for width in (8, 16, 32, 64)})
_WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "b8": 8, "b16": 16, "b32": 32, "b64": 64}


def _mix(stream: Stream, kind: str, count: int) -> np.ndarray:
    """Half specials, a quarter random bits, a quarter values of middling size."""
    width = _WIDTH[kind]
    mask = np.uint64((1 << width) - 1)
    special = _SPECIAL[kind][(stream.words(count) % np.uint64(len(_SPECIAL[kind]))).astype(np.intp)]
    bits = stream.words(count) & mask
    if kind in _FORMATS:
        exponent, mantissa = _FORMATS[kind]
        bias = (1 << (exponent - 1)) - 1
        spread = min(12, bias - 2)
        power = stream.words(count) % np.uint64(2 * spread) + np.uint64(bias - spread)
        middling = (bits & np.uint64((1 << mantissa) - 1 | 1 << (exponent + mantissa))) | (
            power << np.uint64(mantissa)
        )
    else:
        middling = bits >> (stream.words(count) % np.uint64(width))
        negative = (stream.words(count) & np.uint64(1)).astype(bool)
        middling = np.where(negative, (np.uint64(0) - middling) & mask, middling)
    choice = stream.words(count) % np.uint64(4)
    return np.where(choice < 2, special, np.where(choice == 2, bits, middling))


def _near(stream: Stream, narrow: str, wide: str, count: int) -> np.ndarray:
    """Values of `wide` that are, or lie beside, the middle between two neighbours of `narrow`."""
    low = _mix(stream, narrow, count)
    unsigned, floating = {
        "f16": (np.uint16, np.float16),
        "bf16": (np.uint32, np.float32),
        "f32": (np.uint32, np.float32),
    }[narrow]
    place = np.uint64(16 if narrow == "bf16" else 0)
    with np.errstate(all="ignore"):
        first, second = (
            ((low + np.uint64(step)) << place).astype(unsigned).view(floating).astype(np.float64)
            for step in (0, 1)
        )
        middle = np.where(stream.words(count) % np.uint64(4) == 0, first, (first + second) / 2)
        unsigned, floating = {"f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64)}[wide]
        bits = (
            np.where(np.isnan(middle), 1, middle).astype(floating).view(unsigned).astype(np.uint64)
        )
    nudge = stream.words(count) % np.uint64(3) - np.uint64(1)
    value = (bits + nudge) & np.uint64((1 << _WIDTH[wide]) - 1)
    return np.where(stream.words(count) % np.uint64(4) == 0, _mix(stream, wide, count), value)


def _tied(stream: Stream, width: int, count: int) -> np.ndarray:
    """Integers at and beside the middle between two neighbouring f32 or f64."""
    mask = np.uint64((1 << width) - 1)
    keep = 24 if width == 32 else (24, 53)[stream.below(2)]
    lost = np.uint64(64 - keep)
    tail = np.uint64(1) << (lost - np.uint64(1))
    nudge = stream.words(count) % np.uint64(3) - np.uint64(1)
    value = ((stream.words(count) | np.uint64(1 << 63)) >> lost << lost) | tail
    shift = np.uint64(64 - width) + stream.words(count) % np.uint64(4)
    value = ((value >> shift) + nudge) & mask
    return np.where(
        stream.words(count) % np.uint64(2) == 0, _mix(stream, f"b{width}", count), value
    )


def operand(stream: Stream, kind: str, count: int) -> np.ndarray:
    """`count` values of `kind` as uint64 whose low bits hold them.

    Kinds: `b8` ... `b64`, `f16`, `bf16`, `f32`, `f64`; `f16x2`, `bf16x2`, `b16x2`, `b8x4` (lanes drawn apart);
    `shift` (mostly 0 to 70), `pred` (0 or 1), `angle` (f32, mostly in [-2 pi, 2 pi]), `lane` (0 to 31);
    `f64>f32` and the like (near a tie of that conversion), `b32>f`, `b64>f` (the same for integers).
    """
    if kind in ("b32>f", "b64>f"):
        return _tied(stream, int(kind[1:3]), count)
    if ">" in kind:
        wide, narrow = kind.split(">")
        return _near(stream, narrow, wide, count)
    if kind in _WIDTH:
        return _mix(stream, kind, count)
    if kind in ("f16x2", "bf16x2", "b16x2"):
        low, high = (_mix(stream, kind[:-2], count) for _ in range(2))
        return low | (high << np.uint64(16))
    if kind == "b8x4":
        parts = [_mix(stream, "b8", count) << np.uint64(8 * i) for i in range(4)]
        return parts[0] | parts[1] | parts[2] | parts[3]
    if kind == "shift":
        small = stream.words(count) % np.uint64(71)
        rare = stream.words(count) % np.uint64(8) == 0
        return np.where(rare, stream.words(count) & np.uint64(0xFFFFFFFF), small)
    if kind == "pred":
        return stream.words(count) & np.uint64(1)
    if kind == "lane":
        return stream.words(count) % np.uint64(32)
    if kind == "angle":
        angles = ((stream.uniform(count) * 2 - 1) * 6.2831853).astype(np.float32).view(np.uint32)
        few = np.array(
            [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000005], np.uint64
        )
        rare = stream.words(count) % np.uint64(8) == 0
        pick = few[(stream.words(count) % np.uint64(len(few))).astype(np.intp)]
        return np.where(rare, pick, angles.astype(np.uint64))
    raise ValueError(f"no operand kind {kind!r}")


def related(stream: Stream, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """`second` with one value in eight replaced by `first`'s: equal operands, which random bits rarely give."""
    same = stream.words(len(first)) % np.uint64(8) == 0
    return np.where(same, first, second)
