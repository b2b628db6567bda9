"""The video instructions (PTX ISA 9.0, "Scalar Video Instructions" and "SIMD Video Instructions").

Operands are whole registers (or, for the SIMD forms, all their bytes or halves); the sub-word
selectors and masks that may follow a register's name are not part of an instruction's name, so
they are not modelled. All arithmetic is exact in int64 and then cut, or clamped with `.sat`.
"""

from collections.abc import Callable

import numpy as np

from .bitfields import lanes_of
from .comparisons import ORDERED
from .instruction_types import TYPES, Operation, form, signature
from .integers import saturate

_KIND = "(u32|s32)"
_I64 = np.int64

_COMBINE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda a, b: np.absolute(a - b),
    "min": np.minimum,
    "max": np.maximum,
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> _I64(1),
}
_TEST = f"({'|'.join(ORDERED)})"
_SECOND = "[.(add|min|max)]"


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


@form(f"v(add|sub|absdiff|min|max).{_KIND}.{_KIND}.{_KIND}[.sat]{_SECOND}")
def _scalar(opcode: str, kind: str, a_kind: str, b_kind: str, sat, second) -> Operation:
    """`vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax` `.dtype.atype.btype{.sat}{.op2}`."""
    combine = _COMBINE[opcode]

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return _finish(combine(a.astype(_I64), b.astype(_I64)), kind, bool(sat))

    # Seen on an H200: an absolute difference is unsigned, a sum or difference always signed.
    between = {"absdiff": "u32", "add": "s32", "sub": "s32"}.get(opcode)
    return _with_second(evaluate, f"{a_kind} {b_kind}", kind, second, between)


@form(f"(vshl|vshr).{_KIND}.{_KIND}.u32[.sat].(clamp|wrap){_SECOND}")
def _shift(opcode: str, kind: str, a_kind: str, sat, mode: str, second) -> Operation:
    """`vshl`, `vshr` `.dtype.atype.u32{.sat}.clamp/.wrap{.op2}`."""

    def evaluate(a: np.ndarray, count: np.ndarray) -> np.ndarray:
        if mode == "wrap":
            count = count & np.uint32(31)
        wide, count = a.astype(_I64), np.minimum(count, np.uint32(32)).astype(_I64)
        if opcode == "vshr":
            return _finish(wide >> count, kind, bool(sat))
        if not sat:
            return (wide << count).astype(TYPES[kind])
        # As the manual has it; an H200 gives other numbers here, with no rule to be seen. A
        # u32 shifted by 32 leaves int64. In two steps, what the first brings out of the
        # result's range is cut back to where it still is out of it.
        shifted = np.clip(wide << np.minimum(count, _I64(16)), -(1 << 33), 1 << 33)
        return saturate(shifted << np.maximum(count - _I64(16), _I64(0)), kind)

    return _with_second(evaluate, f"{a_kind} u32", kind, second)


@form(f"vmad.{_KIND}.{_KIND}.{_KIND}[.po][.sat][.(shr7|shr15)]")
def _vmad(kind: str, a_kind: str, b_kind: str, plus_one, sat, shr: str | None) -> Operation:
    """`vmad.dtype.atype.btype{.po}{.sat}{.shr7/.shr15}`: a*b + c (+ 1), shifted down.

    As seen on an H200: all operands count as signed, and a clamped result is unsigned if a and b
    are; such a result that is negative becomes 0, or all ones if it was shifted.
    """
    shift = _I64((shr or "shr0").removeprefix("shr"))
    unsigned = (a_kind, b_kind) == ("u32", "u32")

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        a, b, c = (x.view(np.int32).astype(_I64) for x in (a, b, c))
        total = a * b + c + _I64(bool(plus_one)) >> shift
        if not sat:
            return total.astype(TYPES[kind])
        if not unsigned:
            return saturate(total, "s32").view(TYPES[kind])
        if shift:
            total = np.where(total < 0, _I64(0xFFFFFFFF), total)
        return saturate(total, "u32").view(TYPES[kind])

    return signature(evaluate, f"{a_kind} {b_kind} {kind}", kind)


@form(f"vset.{_KIND}.{_KIND}.{_TEST}{_SECOND}")
def _vset(a_kind: str, b_kind: str, name: str, second: str | None) -> Operation:
    """`vset.atype.btype.cmp{.op2}`: 1 or 0."""
    compare = ORDERED[name]

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return compare(a.astype(_I64), b.astype(_I64)).astype(np.uint32)

    return _with_second(evaluate, f"{a_kind} {b_kind}", "u32", second)


def _join(lanes: np.ndarray, size: int) -> np.ndarray:
    return np.ascontiguousarray(lanes.astype(f"u{size}")).view(np.uint32)[..., 0]


@form(f"v(add|sub|avrg|absdiff|min|max)(2|4).{_KIND}.{_KIND}.{_KIND}[.(sat|add)]")
def _simd(opcode: str, count: str, kind: str, a_kind: str, b_kind: str, flag) -> Operation:
    """`vadd2.dtype.atype.btype{.sat/.add} d, a, b, c`: c is added by `.add`, else unused."""
    combine, size = _COMBINE[opcode], 4 // int(count)
    lane_kind = f"{kind[0]}{8 * size}"

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        lanes = combine(lanes_of(a, a_kind, size), lanes_of(b, b_kind, size))
        if flag == "add":
            return (lanes.sum(-1) + c).astype(TYPES[kind])
        if flag == "sat":
            lanes = saturate(lanes, lane_kind)
        return _join(lanes, size).view(TYPES[kind])

    return signature(evaluate, f"{a_kind} {b_kind} {kind}", kind)


@form(f"vset(2|4).{_KIND}.{_KIND}.{_TEST}[.add]")
def _simd_set(count: str, a_kind: str, b_kind: str, name: str, add: str | None) -> Operation:
    """`vset2.atype.btype.cmp{.add} d, a, b, c`: 1 or 0 in every lane, or their sum plus c."""
    compare, size = ORDERED[name], 4 // int(count)

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        lanes = compare(lanes_of(a, a_kind, size), lanes_of(b, b_kind, size))
        if add:
            return lanes.sum(-1, dtype=np.uint32) + c
        return _join(lanes, size)

    return signature(evaluate, f"{a_kind} {b_kind} u32", "u32")
