"""Logic, shifts and byte permutation (PTX ISA 9.0, "Logic and Shift Instructions", and `prmt` and
`mov` of "Data Movement and Conversion Instructions")."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from .instruction_types import TYPES, Operation, form, signature, uniform

_U32, _U64 = np.uint32, np.uint64
_LOGIC = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "cnot": lambda a: np.equal(a, 0).astype(a.dtype),
}


@form("(and|or|xor|not).(b16|b32|b64|pred)", "(cnot).(b16|b32|b64)")
def _logic(opcode: str, kind: str) -> Operation:
    return uniform(_LOGIC[opcode], kind, 1 if opcode.endswith("not") else 2)


@form(f"mov.({'|'.join(TYPES)})")
def _mov(kind: str) -> Operation:
    return uniform(np.copy, kind, 1)


def _shift_left(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    # NumPy gives 0 for a count of the width or more. The count must have the value's type, and
    # one that does not fit it is as good as the width.
    if a.itemsize < 4:
        count = np.minimum(count, _U32(32))
    return np.left_shift(a, count.astype(a.dtype))


def _shift_right(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    if a.itemsize < 4 or a.dtype.kind == "i":
        count = np.minimum(count, _U32(64))
    return np.right_shift(a, count.astype(a.dtype))


@form("shl.(b16|b32|b64)")
def _shl(kind: str) -> Operation:
    """`shl`: counts of the width or more give 0."""
    shift = np.left_shift if kind == "b32" else _shift_left
    return signature(shift, f"{kind} u32", kind)


@form("shr.(b16|b32|b64|u16|u32|u64|s16|s32|s64)")
def _shr(kind: str) -> Operation:
    """`shr`: counts of the width or more give 0, or the sign for signed types."""
    shift = np.right_shift if kind in ("b32", "u32") else _shift_right
    return signature(shift, f"{kind} u32", kind)


@form("shf.(l|r).(clamp|wrap).b32")
def _shf(direction: str, mode: str) -> Operation:
    """`shf`: shift the 64 bits b:a and keep the upper (`l`) or lower (`r`) 32 of them."""

    def evaluate(a: np.ndarray, b: np.ndarray, count: np.ndarray) -> np.ndarray:
        both = b.astype(_U64) << _U64(32) | a
        count = count & _U32(31) if mode == "wrap" else np.minimum(count, _U32(32))
        if direction == "l":
            return (both << count.astype(_U64) >> _U64(32)).astype(_U32)
        return (both >> count.astype(_U64)).astype(_U32)

    return signature(evaluate, "b32 b32 u32", "b32")


# The Boolean functions of b and c by their truth table, whose bit 2b+c is the value there.
_OF_TWO: tuple[Callable, ...] = (
    lambda b, c: _U32(0),
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: _U32(0xFFFFFFFF),
)


def _lop3(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Any function of three bits; bit 4a+2b+c of the (immediate) table is its value."""
    number = table.item(0) & 0xFF
    where_zero, where_one = number & 15, number >> 4
    if where_zero == 0:
        return a & _OF_TWO[where_one](b, c)
    changed = a & _OF_TWO[where_zero ^ where_one](b, c)
    return _OF_TWO[where_zero](b, c) ^ changed


@form("lop3.b32")
def _lop3_plain() -> Operation:
    """`lop3.b32 d, a, b, c, table`"""
    return signature(_lop3, "b32 b32 b32 u32", "b32")


@form("lop3.(and|or).b32")
def _lop3_tested(name: str) -> Operation:
    """`lop3.or.b32 d|p, a, b, c, table, q`"""
    combine = np.logical_and if name == "and" else np.logical_or

    def evaluate(a, b, c, table, q) -> tuple[np.ndarray, np.ndarray]:
        result = _lop3(a, b, c, table)
        return result, combine(np.not_equal(result, 0), q)

    return signature(evaluate, "b32 b32 b32 u32 pred", "b32 pred")


# mode -> for n in 0..3, which byte of b:a becomes byte i of the result (PTX ISA 9.0, `prmt`)
_BYTE_MODES: dict[str, Callable[[int, int], int]] = {
    "f4e": lambda n, i: n + i,
    "b4e": lambda n, i: (n - i) & 7,
    "rc8": lambda n, i: n,
    "ecl": lambda n, i: max(n, i),
    "ecr": lambda n, i: min(n, i),
    "rc16": lambda n, i: 2 * (n & 1) + (i & 1),
}


@lru_cache(maxsize=256)
def _moves(selector: int) -> tuple[tuple[int, int, np.uint32], ...]:
    """A constant selector as moves (source 0 or 1, shift to the left, mask of the result)."""
    masks: dict[tuple[int, int], int] = {}
    for i in range(4):
        source = selector >> (4 * i) & 7
        move = (source >> 2, 8 * (i - (source & 3)))
        masks[move] = masks.get(move, 0) | 0xFF << (8 * i)
    return tuple((source, shift, _U32(mask)) for (source, shift), mask in masks.items())


def _permute_constant(a: np.ndarray, b: np.ndarray, selector: int) -> np.ndarray:
    result = None
    for source, shift, mask in _moves(selector):
        part = b if source else a
        if shift > 0:
            part = part << _U32(shift)
        elif shift < 0:
            part = part >> _U32(-shift)
        part = part & mask
        result = part if result is None else result | part
    for i in range(4):
        if selector >> (4 * i) & 8:  # replicate the byte's sign instead
            sign = result >> _U32(8 * i + 7) & _U32(1)
            result = result & _U32(~(0xFF << (8 * i)) & 0xFFFFFFFF) | sign * _U32(0xFF << (8 * i))
    return result


def _permute(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    if selector.size == 1:
        return _permute_constant(a, b, selector.item() & 0xFFFF)
    both = b.astype(_U64) << _U64(32) | a
    result = _U32(0)
    for i in range(4):
        nibble = selector >> _U32(4 * i)
        byte = (both >> ((nibble & _U32(7)) << _U32(3)).astype(_U64)).astype(_U32) & _U32(0xFF)
        signs = (byte >> _U32(7)) * _U32(0xFF)
        byte = np.where(nibble & _U32(8), signs, byte)
        result = result | byte << _U32(8 * i)
    return result


@form(f"prmt.b32[.({'|'.join(_BYTE_MODES)})]")
def _prmt(mode: str | None) -> Operation:
    """`prmt`: any four bytes of a and b, by a selector of four nibbles or by a mode."""
    if mode is None:
        return signature(_permute, "b32 b32 u32", "b32")
    place = _BYTE_MODES[mode]
    selectors = np.array([sum(place(n, i) << (4 * i) for i in range(4)) for n in range(4)], _U32)
    return signature(lambda a, b, c: _permute(a, b, selectors[c & _U32(3)]), "b32 b32 u32", "b32")
