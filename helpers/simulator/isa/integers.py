"""Integer arithmetic (PTX ISA 9.0, "Integer Arithmetic Instructions" and "Extended-Precision
Integer Arithmetic Instructions"). Everything wraps around; division truncates."""

from collections.abc import Callable

import numpy as np

from .instruction_types import (
    INTEGER,
    SIGNED,
    TYPES,
    UNSIGNED,
    WORDS,
    Operation,
    form,
    signature,
    uniform,
    width,
)

_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_UFUNCS = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}


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


def _low_24(kind: str) -> Callable:
    """The low 24 bits of a 32-bit value, sign- or zero-extended into 64 bits."""
    if kind == "u32":
        return lambda a: (a & np.uint32(0xFFFFFF)).astype(np.uint64)
    return lambda a: ((a << np.int32(8)) >> np.int32(8)).astype(np.int64)


def _product(opcode: str, half: str, kind: str) -> Callable:
    """The low or high half of a product; of `mul24` and `mad24`, 32 of its 48 bits."""
    if not opcode.endswith("24"):
        return np.multiply if half == "lo" else _multiply_high(kind)
    cut, narrow = _low_24(kind), TYPES[kind]
    shift = TYPES[_WIDER[kind]].type(16 if half == "hi" else 0)
    return lambda a, b: (cut(a) * cut(b) >> shift).astype(narrow)


@form(f"(mul).(lo|hi).({INTEGER})", "(mul24).(lo|hi).(u32|s32)")
def _mul(opcode: str, half: str, kind: str) -> Operation:
    return uniform(_product(opcode, half, kind), kind, 2)


@form(f"(mad).(lo|hi).({INTEGER})", "(mad24).(lo|hi).(u32|s32)")
def _mad(opcode: str, half: str, kind: str) -> Operation:
    multiply = _product(opcode, half, kind)
    return uniform(lambda a, b, c: multiply(a, b) + c, kind, 3)


@form("(mad|mad24).(hi).sat.(s32)")
def _mad_saturated(opcode: str, half: str, kind: str) -> Operation:
    high = _product(opcode, half, kind)
    return uniform(lambda a, b, c: saturate(high(a, b).astype(np.int64) + c, kind), kind, 3)


@form("mul.wide.(u16|s16|u32|s32)")
def _mul_wide(kind: str) -> Operation:
    return signature(_multiply_wide(kind), f"{kind} {kind}", _WIDER[kind])


@form("mad.wide.(u16|s16|u32|s32)")
def _mad_wide(kind: str) -> Operation:
    wide, wider = _multiply_wide(kind), _WIDER[kind]
    return signature(lambda a, b, c: wide(a, b) + c, f"{kind} {kind} {wider}", wider)


# ---------------------------------------------------------------- sums, extrema, absolute values


@form(f"(add|sub|min|max).({INTEGER})")
def _plain(opcode: str, kind: str) -> Operation:
    return uniform(_UFUNCS[opcode], kind, 2)


@form("(add|sub).sat.s32")
def _saturating(opcode: str) -> Operation:
    combine = _UFUNCS[opcode]
    return uniform(
        lambda a, b: saturate(combine(a.astype(np.int64), b.astype(np.int64)), "s32"), "s32", 2
    )


@form("(min|max).relu.s32", "(min|max).s32.relu")
def _relu(opcode: str) -> Operation:
    pick, zero = _UFUNCS[opcode], np.int32(0)
    return uniform(lambda a, b: np.maximum(pick(a, b), zero), "s32", 2)


@form("(add|min|max).(u16x2|s16x2)", "(min|max).(s16x2).(relu)", "(min|max).(relu).(s16x2)")
def _pairwise(opcode: str, *words: str | None) -> Operation:
    """The same operation on both 16-bit halves of packed registers."""
    kind = "u16x2" if "u16x2" in words else "s16x2"
    half = np.dtype(np.uint16 if kind == "u16x2" else np.int16)
    relu = len(words) > 1

    def combine(*inputs: np.ndarray) -> np.ndarray:
        picked = _UFUNCS[opcode](*inputs)
        return (np.maximum(picked, half.type(0)) if relu else picked).astype(np.uint16)

    def evaluate(*inputs: np.ndarray) -> np.ndarray:
        low = combine(*(a.astype(half) for a in inputs))
        high = combine(*((a >> np.uint32(16)).astype(half) for a in inputs))
        return low | high.astype(np.uint32) << np.uint32(16)

    return uniform(evaluate, kind, 2)


@form(f"(abs|neg).({'|'.join(sorted(SIGNED))})")
def _sign(opcode: str, kind: str) -> Operation:
    return uniform(np.absolute if opcode == "abs" else np.negative, kind, 1)


@form(f"sad.({INTEGER})")
def _sad(kind: str) -> Operation:
    return uniform(lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), kind, 3)


# ---------------------------------------------------------------- carry chains
# The carry flag of a subtraction is that of `a + ~b + 1`, which is set where nothing is borrowed:
# NVRTC's division of 128-bit integers reads it with `addc` after `sub.cc`.


def _add_carry_out(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    return total, np.less(total, b)


def _add_with_carry(
    a: np.ndarray, b: np.ndarray, carry: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    partial = a + b
    total = partial + carry
    return total, np.less(partial, b) | np.less(total, partial)


_CHAINED = {
    "add": _add_carry_out,
    "addc": _add_with_carry,
    "sub": lambda a, b: (a - b, np.greater_equal(a, b)),
    "subc": lambda a, b, carry: _add_with_carry(a, ~b, carry),
}


def _chained(evaluate: Callable, kind: str, operands: int, reads: bool, writes: bool) -> Operation:
    """An instruction of a carry chain, which works on bits: its operands count as unsigned."""
    changed = evaluate if writes else lambda *inputs: evaluate(*inputs)[0]
    return uniform(changed, "u" + kind[1:], operands, reads_carry=reads, writes_carry=writes)


@form(f"(add|sub).(cc).({WORDS})", f"(addc|subc)[.cc].({WORDS})")
def _carry(opcode: str, cc: str | None, kind: str) -> Operation:
    """`.cc` writes the carry flag, `addc` and `subc` take that of an earlier instruction."""
    return _chained(_CHAINED[opcode], kind, 2, opcode.endswith("c"), bool(cc))


@form(f"(mad).(lo|hi).(cc).({WORDS})", f"(madc).(lo|hi)[.cc].({WORDS})")
def _mad_carry(opcode: str, half: str, cc: str | None, kind: str) -> Operation:
    """Multiply and add, with the carry of the addition."""
    multiply, signed, unsigned = _product(opcode, half, kind), TYPES[kind], TYPES["u" + kind[1:]]
    add = _add_with_carry if opcode == "madc" else _add_carry_out

    def evaluate(a: np.ndarray, b: np.ndarray, *rest: np.ndarray) -> tuple:
        return add(multiply(a.view(signed), b.view(signed)).view(unsigned), *rest)

    return _chained(evaluate, kind, 3, opcode == "madc", bool(cc))


# ---------------------------------------------------------------- division


def _quotient(kind: str) -> Callable:
    """Truncating division by what is not zero."""
    if kind in UNSIGNED:
        return np.floor_divide
    if kind == "s64":
        # Without its remainder the dividend divides evenly, and floor is truncation.
        return lambda a, b: np.floor_divide(a - np.fmod(a, b), b)
    # A quotient of 32-bit integers that is no integer is further than 2^-32 of itself away
    # from one, so float64 never rounds it onto one.
    return lambda a, b: np.divide(a, b).astype(np.int64).astype(TYPES[kind])


@form(f"(div|rem).({INTEGER})")
def _divide(opcode: str, kind: str) -> Operation:
    """Division truncates, a remainder has the dividend's sign; a zero divisor gives all ones.

    (The last was seen on an H200.)
    """
    dtype = TYPES[kind]
    ones = dtype.type(np.iinfo(dtype).max if kind in UNSIGNED else -1)
    exact = _quotient(kind) if opcode == "div" else np.fmod

    def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if np.count_nonzero(b) == b.size:
            return exact(a, b)
        return np.where(b == 0, ones, exact(a, np.where(b == 0, dtype.type(1), b)))

    return uniform(divide, kind, 2)
