"""The video instructions (PTX ISA 9.0, "Scalar Video Instructions" and "SIMD Video Instructions").

Operands are whole registers (or, for the SIMD forms, all their bytes or halves); the sub-word
selectors and masks that may follow a register's name are not part of an instruction's name, so
they are not modelled. All arithmetic is exact in int64 and then cut, or clamped with `.sat`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .instruction_types import TYPES, Builder, Operation, signature
from .integers import saturate

_KINDS = ("u32", "s32")
_I64 = np.int64

_COMBINE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda a, b: np.absolute(a - b),
    "min": np.minimum,
    "max": np.maximum,
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> _I64(1),
}
_COMPARE: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _finish(exact: np.ndarray, kind: str, clamp: bool) -> np.ndarray:
    """Cut to 32 bits, or clamped first: an u32 only from below, as an H200 does it."""
    if clamp:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1) if kind == "s32" else exact.clip(0)
    return exact.astype(TYPES[kind])


def _with_second(
    first: Callable, operands: str, kind: str, second: str | None, between: str | None = None
) -> Operation:
    """The instruction, followed by the optional second operation with one more operand.

    `between` is the type in which the second operation reads the first one's result. Two u32 are
    compared as unsigned 64-bit numbers, for which a `between` of s32 is sign-extended.
    """
    if second is None:
        return signature(first, operands, kind)
    combine = _COMBINE[second]
    dtype, middle = TYPES[kind], TYPES[between or kind]
    wide = np.uint64 if kind == "u32" else _I64

    def evaluate(*inputs: np.ndarray) -> np.ndarray:
        result = first(*inputs[:-1]).view(middle).astype(_I64)
        return combine(result.astype(wide), inputs[-1].astype(wide)).astype(dtype)

    return signature(evaluate, f"{operands} {kind}", kind)


def _scalar(opcode: str) -> Builder:
    combine = _COMBINE[opcode]

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax` `.dtype.atype.btype{.sat}{.op2}`."""
        match modifiers:
            case (kind, a_kind, b_kind, *flags) if {kind, a_kind, b_kind} <= set(_KINDS):
                clamp = flags[:1] == ["sat"]
                rest = flags[1:] if clamp else flags
            case _:
                return None
        if rest not in ([], ["add"], ["min"], ["max"]):
            return None

        def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return _finish(combine(a.astype(_I64), b.astype(_I64)), kind, clamp)

        # Seen on an H200: an absolute difference is unsigned, a sum or difference always signed.
        between = {"absdiff": "u32", "add": "s32", "sub": "s32"}.get(opcode)
        second = rest[0] if rest else None
        return _with_second(evaluate, f"{a_kind} {b_kind}", kind, second, between)

    return build


def _shift(opcode: str) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`vshl`, `vshr` `.dtype.atype.u32{.sat}.clamp/.wrap{.op2}`."""
        match modifiers:
            case (kind, a_kind, "u32", *flags) if {kind, a_kind} <= set(_KINDS):
                clamp = flags[:1] == ["sat"]
                rest = flags[1:] if clamp else flags
            case _:
                return None
        if rest[:1] not in (["clamp"], ["wrap"]) or rest[1:] not in ([], ["add"], ["min"], ["max"]):
            return None

        def evaluate(a: np.ndarray, count: np.ndarray) -> np.ndarray:
            if rest[0] == "wrap":
                count = count & np.uint32(31)
            wide, count = a.astype(_I64), np.minimum(count, np.uint32(32)).astype(_I64)
            if opcode == "vshr":
                return _finish(wide >> count, kind, clamp)
            if not clamp:
                return (wide << count).astype(TYPES[kind])
            # As the manual has it; an H200 gives other numbers here, with no rule to be seen. A
            # u32 shifted by 32 leaves int64. In two steps, what the first brings out of the
            # result's range is cut back to where it still is out of it.
            shifted = np.clip(wide << np.minimum(count, _I64(16)), -(1 << 33), 1 << 33)
            return saturate(shifted << np.maximum(count - _I64(16), _I64(0)), kind)

        return _with_second(evaluate, f"{a_kind} u32", kind, rest[1] if len(rest) > 1 else None)

    return build


def _vmad(modifiers: tuple[str, ...]) -> Operation | None:
    """`vmad.dtype.atype.btype{.po}{.sat}{.shr7/.shr15}`: a*b + c (+ 1), shifted down.

    As seen on an H200: all operands count as signed, and a clamped result is unsigned if a and b
    are; such a result that is negative becomes 0, or all ones if it was shifted.
    """
    match modifiers:
        case (kind, a_kind, b_kind, *flags) if {kind, a_kind, b_kind} <= set(_KINDS):
            pass
        case _:
            return None
    if not set(flags) <= {"po", "sat", "shr7", "shr15"}:
        return None
    shift = _I64(7 if "shr7" in flags else 15 if "shr15" in flags else 0)
    plus_one = _I64("po" in flags)
    unsigned = (a_kind, b_kind) == ("u32", "u32")

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        a, b, c = (x.view(np.int32).astype(_I64) for x in (a, b, c))
        total = a * b + c + plus_one >> shift
        if "sat" not in flags:
            return total.astype(TYPES[kind])
        if not unsigned:
            return saturate(total, "s32").view(TYPES[kind])
        if shift:
            total = np.where(total < 0, _I64(0xFFFFFFFF), total)
        return saturate(total, "u32").view(TYPES[kind])

    return signature(evaluate, f"{a_kind} {b_kind} {kind}", kind)


def _vset(modifiers: tuple[str, ...]) -> Operation | None:
    """`vset.atype.btype.cmp{.op2}`: 1 or 0."""
    match modifiers:
        case (a_kind, b_kind, name, *rest) if name in _COMPARE and {a_kind, b_kind} <= set(_KINDS):
            pass
        case _:
            return None
    if rest not in ([], ["add"], ["min"], ["max"]):
        return None
    compare = _COMPARE[name]

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return compare(a.astype(_I64), b.astype(_I64)).astype(np.uint32)

    return _with_second(evaluate, f"{a_kind} {b_kind}", "u32", rest[0] if rest else None)


def _lanes(a: np.ndarray, kind: str, count: int) -> np.ndarray:
    """The two halves or four bytes of 32-bit registers as int64, along a new last axis."""
    lane = np.dtype(f"{'i' if kind == 's32' else 'u'}{4 // count}")
    return np.ascontiguousarray(a)[..., np.newaxis].view(lane).astype(_I64)


def _join(lanes: np.ndarray, count: int) -> np.ndarray:
    narrow = lanes.astype(f"u{4 // count}")
    return np.ascontiguousarray(narrow).view(np.uint32)[..., 0]


def _simd(opcode: str, count: int) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`vadd2.dtype.atype.btype{.sat/.add} d, a, b, c`: c is added by `.add`, else unused."""
        match modifiers:
            case (kind, a_kind, b_kind) if {kind, a_kind, b_kind} <= set(_KINDS):
                flag = ""
            case (kind, a_kind, b_kind, "sat" | "add" as flag) if {kind, a_kind, b_kind} <= set(
                _KINDS
            ):
                pass
            case _:
                return None
        lane_kind = kind[0] + ("16" if count == 2 else "8")
        combine = _COMBINE[opcode]

        def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            lanes = combine(_lanes(a, a_kind, count), _lanes(b, b_kind, count))
            if flag == "add":
                return (lanes.sum(-1) + c).astype(TYPES[kind])
            if flag == "sat":
                lanes = saturate(lanes, lane_kind)
            return _join(lanes, count).view(TYPES[kind])

        return signature(evaluate, f"{a_kind} {b_kind} {kind}", kind)

    return build


def _simd_set(count: int) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`vset2.atype.btype.cmp{.add} d, a, b, c`: 1 or 0 in every lane, or their sum plus c."""
        match modifiers:
            case (a_kind, b_kind, name, *flags) if {a_kind, b_kind} <= set(_KINDS):
                pass
            case _:
                return None
        if name not in _COMPARE or flags not in ([], ["add"]):
            return None
        compare = _COMPARE[name]

        def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            lanes = compare(_lanes(a, a_kind, count), _lanes(b, b_kind, count))
            if flags:
                return lanes.sum(-1, dtype=np.uint32) + c
            return _join(lanes, count)

        return signature(evaluate, f"{a_kind} {b_kind} u32", "u32")

    return build


BUILDERS: dict[str, Builder] = {
    **{"v" + name: _scalar(name) for name in ("add", "sub", "absdiff", "min", "max")},
    "vshl": _shift("vshl"),
    "vshr": _shift("vshr"),
    "vmad": _vmad,
    "vset": _vset,
    **{
        f"v{name}{count}": _simd(name, count)
        for name in ("add", "sub", "avrg", "absdiff", "min", "max")
        for count in (2, 4)
    },
    "vset2": _simd_set(2),
    "vset4": _simd_set(4),
}
