"""Integer arithmetic (PTX ISA 9.0, "Integer Arithmetic Instructions" and "Extended-Precision
Integer Arithmetic Instructions"). Everything wraps around; division truncates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .instruction_types import (
    SIGNED,
    TYPES,
    UNSIGNED,
    Builder,
    Operation,
    first_of,
    signature,
    width,
)

_INTEGERS = SIGNED | UNSIGNED
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_S32_MIN, _S32_MAX = np.int64(-(2**31)), np.int64(2**31 - 1)


def saturate(values: np.ndarray, kind: str) -> np.ndarray:
    """Wider integers, clamped to the range of `kind` (the `.sat` modifier)."""
    limits = np.iinfo(TYPES[kind])
    low = values.dtype.type(max(limits.min, np.iinfo(values.dtype).min))
    high = values.dtype.type(min(limits.max, np.iinfo(values.dtype).max))
    return np.minimum(np.maximum(values, low), high).astype(TYPES[kind])


def _halves_of(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a & np.uint64(0xFFFFFFFF), a >> np.uint64(32)


def _multiply_high_u64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a0, a1 = _halves_of(a)
    b0, b1 = _halves_of(b)
    low, high = _halves_of(a0 * b1)
    middle = a1 * b0 + low + (a0 * b0 >> np.uint64(32))
    return a1 * b1 + high + (middle >> np.uint64(32))


def _multiply_high_s64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Read as unsigned, a negative factor is 2^64 too large: take the other factor off the top.
    high = _multiply_high_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return high - (a >> np.int64(63) & b) - (b >> np.int64(63) & a)


def _multiply_wide(kind: str) -> Callable:
    wider = TYPES[_WIDER[kind]]

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a.astype(wider) * b.astype(wider)

    return multiply


def _multiply_high(kind: str) -> Callable:
    if kind == "u64":
        return _multiply_high_u64
    if kind == "s64":
        return _multiply_high_s64
    wider, narrow = TYPES[_WIDER[kind]], TYPES[kind]
    shift = wider.type(width(kind))

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        product = a.astype(wider) * b.astype(wider)
        return np.right_shift(product, shift).astype(narrow)

    return multiply


def _mul(modifiers: tuple[str, ...]) -> Operation | None:
    """`mul.lo`, `mul.hi`, `mul.wide`."""
    match modifiers:
        case ("lo", kind) if kind in _INTEGERS:
            return signature(np.multiply, f"{kind} {kind}", kind)
        case ("hi", kind) if kind in _INTEGERS:
            return signature(_multiply_high(kind), f"{kind} {kind}", kind)
        case ("wide", kind) if kind in _WIDER:
            return signature(_multiply_wide(kind), f"{kind} {kind}", _WIDER[kind])
    return None


def _mad(modifiers: tuple[str, ...]) -> Operation | None:
    """`mad.lo`, `mad.hi` (with `.sat` for s32), `mad.wide`."""
    match modifiers:
        case ("lo", kind) if kind in _INTEGERS:
            return signature(lambda a, b, c: a * b + c, f"{kind} {kind} {kind}", kind)
        case ("hi", kind) if kind in _INTEGERS:
            high = _multiply_high(kind)
            return signature(lambda a, b, c: high(a, b) + c, f"{kind} {kind} {kind}", kind)
        case ("hi", "sat", "s32"):
            high = _multiply_high("s32")
            return signature(
                lambda a, b, c: saturate(high(a, b).astype(np.int64) + c, "s32"),
                "s32 s32 s32",
                "s32",
            )
        case ("wide", kind) if kind in _WIDER:
            wide = _multiply_wide(kind)
            return signature(
                lambda a, b, c: wide(a, b) + c,
                f"{kind} {kind} {_WIDER[kind]}",
                _WIDER[kind],
            )
    return None


def _low_24(kind: str) -> Callable:
    """The low 24 bits of a 32-bit value, sign- or zero-extended into 64 bits."""
    if kind == "u32":
        return lambda a: (a & np.uint32(0xFFFFFF)).astype(np.uint64)
    return lambda a: ((a << np.int32(8)) >> np.int32(8)).astype(np.int64)


def _mul24(modifiers: tuple[str, ...]) -> Operation | None:
    """`mul24`: the 48-bit product of two 24-bit values, its low or its high 32 bits."""
    match modifiers:
        case ("lo" | "hi" as half, "u32" | "s32" as kind):
            product = _product_24(half, kind)
            return signature(product, f"{kind} {kind}", kind)
    return None


def _product_24(half: str, kind: str) -> Callable:
    cut, narrow = _low_24(kind), TYPES[kind]
    if half == "lo":
        return lambda a, b: (cut(a) * cut(b)).astype(narrow)
    shift = TYPES[_WIDER[kind]].type(16)
    return lambda a, b: (cut(a) * cut(b) >> shift).astype(narrow)


def _mad24(modifiers: tuple[str, ...]) -> Operation | None:
    """`mad24.lo`, `mad24.hi` and `mad24.hi.sat.s32`."""
    match modifiers:
        case ("lo" | "hi" as half, "u32" | "s32" as kind):
            product = _product_24(half, kind)
            return signature(lambda a, b, c: product(a, b) + c, f"{kind} {kind} {kind}", kind)
        case ("hi", "sat", "s32"):
            high = _product_24("hi", "s32")
            return signature(
                lambda a, b, c: saturate(high(a, b).astype(np.int64) + c, "s32"),
                "s32 s32 s32",
                "s32",
            )
    return None


def _saturating(combine: Callable) -> Operation:
    return signature(
        lambda a, b: saturate(combine(a.astype(np.int64), b.astype(np.int64)), "s32"),
        "s32 s32",
        "s32",
    )


def _pairwise(combine: Callable, kind: str) -> Operation:
    """The same operation on both 16-bit halves of packed registers."""
    half = np.dtype(np.uint16 if kind == "u16x2" else np.int16)

    def evaluate(*inputs: np.ndarray) -> np.ndarray:
        low = combine(*(a.astype(half) for a in inputs))
        high = combine(*((a >> np.uint32(16)).astype(half) for a in inputs))
        return low.astype(np.uint16) | high.astype(np.uint16).astype(np.uint32) << np.uint32(16)

    return signature(evaluate, f"{kind} {kind}", kind)


def _add(modifiers: tuple[str, ...]) -> Operation | None:
    """`add`, `add.sat.s32`, `add.cc` (which writes the carry) and `add.u16x2`."""
    match modifiers:
        case (kind,) if kind in _INTEGERS:
            return signature(np.add, f"{kind} {kind}", kind)
        case ("sat", "s32"):
            return _saturating(np.add)
        case ("u16x2" | "s16x2" as kind,):
            return _pairwise(np.add, kind)
        case ("cc", "u32" | "s32" | "u64" | "s64" as kind):
            return signature(_add_carry_out, *_unsigned(kind, 2), writes_carry=True)
    return None


def _sub(modifiers: tuple[str, ...]) -> Operation | None:
    """`sub`, `sub.sat.s32` and `sub.cc` (which writes the borrow)."""
    match modifiers:
        case (kind,) if kind in _INTEGERS:
            return signature(np.subtract, f"{kind} {kind}", kind)
        case ("sat", "s32"):
            return _saturating(np.subtract)
        case ("cc", "u32" | "s32" | "u64" | "s64" as kind):
            return signature(
                lambda a, b: (a - b, np.less(a, b)),
                *_unsigned(kind, 2),
                writes_carry=True,
            )
    return None


def _unsigned(kind: str, count: int) -> tuple[str, str]:
    """Carry chains work on bits: the operand types of `count` unsigned inputs, one output."""
    kind = "u" + kind[1:]
    return " ".join([kind] * count), kind


def _add_carry_out(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    return total, np.less(total, b)


def _add_with_carry(
    a: np.ndarray, b: np.ndarray, carry: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    partial = a + b
    total = partial + carry
    return total, np.less(partial, b) | np.less(total, partial)


def _subtract_with_borrow(
    a: np.ndarray, b: np.ndarray, borrow: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    partial = a - b
    return partial - borrow, np.less(a, b) | np.less(partial, borrow)


def _carried(
    operands: int,
    evaluate: Callable[..., tuple[np.ndarray, np.ndarray]],
    kind: str,
    writes: bool,
) -> Operation:
    if writes:
        return signature(evaluate, *_unsigned(kind, operands), reads_carry=True, writes_carry=True)
    return signature(
        lambda *inputs: evaluate(*inputs)[0],
        *_unsigned(kind, operands),
        reads_carry=True,
    )


def _addc(modifiers: tuple[str, ...]) -> Operation | None:
    """`addc` and `addc.cc`: add with the carry of an earlier `.cc` instruction."""
    match modifiers:
        case ("cc", "u32" | "s32" | "u64" | "s64" as kind):
            return _carried(2, _add_with_carry, kind, True)
        case ("u32" | "s32" | "u64" | "s64" as kind,):
            return _carried(2, _add_with_carry, kind, False)
    return None


def _subc(modifiers: tuple[str, ...]) -> Operation | None:
    """`subc` and `subc.cc`: subtract with the borrow of an earlier `.cc` instruction."""
    match modifiers:
        case ("cc", "u32" | "s32" | "u64" | "s64" as kind):
            return _carried(2, _subtract_with_borrow, kind, True)
        case ("u32" | "s32" | "u64" | "s64" as kind,):
            return _carried(2, _subtract_with_borrow, kind, False)
    return None


def _mad_carry(modifiers: tuple[str, ...]) -> Operation | None:
    """`mad.lo.cc` and `mad.hi.cc`: multiply and add, writing the carry of the addition."""
    match modifiers:
        case ("lo" | "hi" as half, "cc", "u32" | "s32" | "u64" | "s64" as kind):
            multiply = _product(half, kind)
            return signature(
                lambda a, b, c: _add_carry_out(multiply(a, b), c),
                *_unsigned(kind, 3),
                writes_carry=True,
            )
    return None


def _product(half: str, kind: str) -> Callable:
    """The low or high half of a product, on registers that hold unsigned bits."""
    if half == "lo":
        return np.multiply
    high, signed, unsigned = _multiply_high(kind), TYPES[kind], TYPES["u" + kind[1:]]
    return lambda a, b: high(a.view(signed), b.view(signed)).view(unsigned)


def _madc(modifiers: tuple[str, ...]) -> Operation | None:
    """`madc.lo`, `madc.hi`, with or without `.cc`: multiply, add and add the carry."""
    match modifiers:
        case ("lo" | "hi" as half, *rest, "u32" | "s32" | "u64" | "s64" as kind) if rest in (
            [],
            ["cc"],
        ):
            multiply = _product(half, kind)
            return _carried(
                3,
                lambda a, b, c, carry: _add_with_carry(multiply(a, b), c, carry),
                kind,
                bool(rest),
            )
    return None


def _divided(kind: str) -> Callable:
    """Truncating division; a zero divisor gives all ones (seen on an H200)."""
    dtype = TYPES[kind]
    ones = dtype.type(np.iinfo(dtype).max if kind in UNSIGNED else -1)

    def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if kind in UNSIGNED:
            return np.floor_divide(a, b)
        if kind == "s64":
            # Without its remainder the dividend divides evenly, and floor is truncation.
            return np.floor_divide(a - np.fmod(a, b), b)
        # A quotient of 32-bit integers that is no integer is further than 2^-32 of itself away
        # from one, so float64 never rounds it onto one.
        return np.divide(a, b).astype(np.int64).astype(dtype)

    def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if np.count_nonzero(b) == b.size:
            return exact(a, b)
        return np.where(b == 0, ones, exact(a, np.where(b == 0, dtype.type(1), b)))

    return divide


def _remainder(kind: str) -> Callable:
    """Remainder with the dividend's sign; a zero divisor gives all ones (seen on an H200)."""
    dtype = TYPES[kind]
    ones = dtype.type(np.iinfo(dtype).max if kind in UNSIGNED else -1)

    def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if np.count_nonzero(b) == b.size:
            return np.fmod(a, b)
        return np.where(b == 0, ones, np.fmod(a, np.where(b == 0, dtype.type(1), b)))

    return remainder


def _of_type(make: Callable[[str], Callable], operands: int, kinds: frozenset[str]) -> Builder:
    """A builder for `opcode.type` with `operands` inputs and one output of that type."""

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        if len(modifiers) != 1 or modifiers[0] not in kinds:
            return None
        kind = modifiers[0]
        return signature(make(kind), " ".join([kind] * operands), kind)

    return build


def _sad(kind: str) -> Callable:
    return lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b))


def _min_max(pick: np.ufunc) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`min`, `max`: plain, `.relu` for s32, and on packed 16-bit pairs."""
        match modifiers:
            case (kind,) if kind in _INTEGERS:
                return signature(pick, f"{kind} {kind}", kind)
            case ("relu", "s32"):
                zero = np.int32(0)
                return signature(lambda a, b: np.maximum(pick(a, b), zero), "s32 s32", "s32")
            case ("u16x2" | "s16x2" as kind,):
                return _pairwise(pick, kind)
            case ("relu", "s16x2") | ("s16x2", "relu"):
                return _pairwise(lambda a, b: np.maximum(pick(a, b), np.int16(0)), "s16x2")
        return None

    return build


BUILDERS: dict[str, Builder] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "mad": first_of(_mad, _mad_carry),
    "mul24": _mul24,
    "mad24": _mad24,
    "addc": _addc,
    "subc": _subc,
    "madc": _madc,
    "sad": _of_type(_sad, 3, _INTEGERS),
    "div": _of_type(_divided, 2, _INTEGERS),
    "rem": _of_type(_remainder, 2, _INTEGERS),
    "abs": _of_type(lambda kind: np.absolute, 1, SIGNED),
    "neg": _of_type(lambda kind: np.negative, 1, SIGNED),
    "min": _min_max(np.minimum),
    "max": _min_max(np.maximum),
}
