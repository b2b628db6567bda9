"""Logic, shifts and bit fields (PTX ISA 9.0, "Logic and Shift Instructions", the bit operations of
"Integer Arithmetic Instructions", and `prmt` of "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from helpers.simulator.instruction_types import (
    TYPES,
    Builder,
    Operation,
    signature,
    width,
)

_LOGIC_TYPES = frozenset(("b16", "b32", "b64", "pred"))
_SHIFT_RIGHT_TYPES = frozenset(
    kind + bits for kind in "bus" for bits in ("16", "32", "64")
)


def _same_type(evaluate: Callable, operands: int, kinds: frozenset[str]) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        if len(modifiers) != 1 or modifiers[0] not in kinds:
            return None
        return signature(evaluate, " ".join(modifiers * operands), modifiers[0])

    return build


def _shift_left(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    # NumPy gives 0 for a count of the width or more; the count must have the value's type, and
    # one that does not fit it is as good as the width.
    if a.itemsize < 4:
        count = np.minimum(count, 32)
    return np.left_shift(a, count.astype(a.dtype, copy=False))


def _shift_right(a: np.ndarray, count: np.ndarray) -> np.ndarray:
    if a.itemsize < 4:
        count = np.minimum(count, 32)
    if a.dtype.kind == "i":
        count = np.minimum(count, 63)
    return np.right_shift(a, count.astype(a.dtype, copy=False))


def _shl(modifiers: tuple[str, ...]) -> Operation | None:
    """`shl`: counts of the width or more give 0."""
    match modifiers:
        case ("b32",):
            return signature(np.left_shift, "b32 u32", "b32")
        case ("b16" | "b64" as kind,):
            return signature(_shift_left, f"{kind} u32", kind)
    return None


def _shr(modifiers: tuple[str, ...]) -> Operation | None:
    """`shr`: counts of the width or more give 0, or the sign for signed types."""
    match modifiers:
        case ("b32" | "u32" as kind,):
            return signature(np.right_shift, f"{kind} u32", kind)
        case (kind,) if kind in _SHIFT_RIGHT_TYPES:
            return signature(_shift_right, f"{kind} u32", kind)
    return None


def _cnot(a: np.ndarray) -> np.ndarray:
    return np.equal(a, 0).astype(a.dtype)


def _popc(modifiers: tuple[str, ...]) -> Operation | None:
    """`popc`: the number of ones, as u32."""
    match modifiers:
        case ("b32" | "b64" as kind,):
            return signature(
                lambda a: np.bitwise_count(a).astype(np.uint32), kind, "u32"
            )
    return None


def _bit_length(a: np.ndarray) -> np.ndarray:
    """The position of the highest one of an unsigned array, counted from 1; 0 for 0 (int32)."""
    # Clearing the bit below every one keeps float64's rounding from carrying into a new power.
    return np.frexp((a & ~(a >> a.dtype.type(1))).astype(np.float64))[1]


def _clz(modifiers: tuple[str, ...]) -> Operation | None:
    """`clz`: leading zeros, the width for 0."""
    match modifiers:
        case ("b32" | "b64" as kind,):
            bits = np.int32(width(kind))
            return signature(
                lambda a: (bits - _bit_length(a)).view(np.uint32), kind, "u32"
            )
    return None


BUILDERS: dict[str, Builder] = {
    "and": _same_type(np.bitwise_and, 2, _LOGIC_TYPES),
    "or": _same_type(np.bitwise_or, 2, _LOGIC_TYPES),
    "xor": _same_type(np.bitwise_xor, 2, _LOGIC_TYPES),
    "not": _same_type(np.invert, 1, _LOGIC_TYPES),
    "cnot": _same_type(_cnot, 1, frozenset(("b16", "b32", "b64"))),
    "mov": _same_type(np.copy, 1, frozenset(TYPES)),
    "shl": _shl,
    "shr": _shr,
    "popc": _popc,
    "clz": _clz,
}
