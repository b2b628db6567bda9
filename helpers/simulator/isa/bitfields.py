"""Counting, finding, extracting and inserting bits, and the dot products of bytes (PTX ISA 9.0,
"Integer Arithmetic Instructions")."""

from __future__ import annotations

import numpy as np

from .instruction_types import TYPES, Builder, Operation, signature, width

_U8, _U32 = np.uint8, np.uint32
_NONE = _U32(0xFFFFFFFF)


def _popc(modifiers: tuple[str, ...]) -> Operation | None:
    """`popc`: the number of ones."""
    match modifiers:
        case ("b32" | "b64" as kind,):
            return signature(lambda a: np.bitwise_count(a).astype(_U32), kind, "u32")
    return None


def _bit_length(a: np.ndarray) -> np.ndarray:
    """The position of the highest one of an unsigned array, counted from 1; 0 for 0 (int32)."""
    # Clearing the bit below every one keeps float64's rounding from carrying into a new power.
    return np.frexp((a & ~(a >> a.dtype.type(1))).astype(np.float64))[1]


def _clz(modifiers: tuple[str, ...]) -> Operation | None:
    """`clz`: the number of leading zeros, the width for 0."""
    match modifiers:
        case ("b32" | "b64" as kind,):
            bits = np.int32(width(kind))
            return signature(lambda a: (bits - _bit_length(a)).view(_U32), kind, "u32")
    return None


def _bfind(modifiers: tuple[str, ...]) -> Operation | None:
    """`bfind`: the position of the highest bit that is no sign bit, or all ones if there is none;
    with `.shiftamt` the left shift that would bring it to the top."""
    match modifiers:
        case ("u32" | "s32" | "u64" | "s64" as kind,):
            shift_amount = False
        case ("shiftamt", "u32" | "s32" | "u64" | "s64" as kind):
            shift_amount = True
        case _:
            return None
    top, unsigned = np.int32(width(kind) - 1), TYPES["u" + kind[1:]]

    def evaluate(a: np.ndarray) -> np.ndarray:
        if kind[0] == "s":
            a = (a ^ (a >> a.dtype.type(top))).view(unsigned)
        position = _bit_length(a) - np.int32(1)
        if not shift_amount:
            return position.view(_U32)
        return np.where(position < 0, _NONE, (top - position).view(_U32))

    return signature(evaluate, kind, "u32")


def _brev(modifiers: tuple[str, ...]) -> Operation | None:
    """`brev`: the bits in reverse order."""
    if modifiers not in (("b32",), ("b64",)):
        return None
    (kind,) = modifiers
    # swap neighbouring bits, pairs, nibbles; then the bytes
    swaps = [
        (TYPES[kind].type(shift), TYPES[kind].type(mask & (1 << width(kind)) - 1))
        for shift, mask in (
            (1, 0x5555555555555555),
            (2, 0x3333333333333333),
            (4, 0x0F0F0F0F0F0F0F0F),
        )
    ]

    def evaluate(a: np.ndarray) -> np.ndarray:
        for shift, mask in swaps:
            a = (a >> shift & mask) | (a & mask) << shift
        return a.byteswap()

    return signature(evaluate, kind, kind)


def _fns(modifiers: tuple[str, ...]) -> Operation | None:
    """`fns`: the n-th set bit of a mask from a base on, upwards or downwards; all ones if none."""
    if modifiers != ("b32",):
        return None

    def evaluate(mask: np.ndarray, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        position = base.astype(np.int64)
        direction = np.sign(offset)
        wanted = np.maximum(np.absolute(offset.astype(np.int64)), 1)
        found = np.full(np.broadcast_shapes(mask.shape, base.shape, offset.shape), _NONE)
        for _ in range(32):
            inside = (position >= 0) & (position < 32)
            bit = mask >> np.where(inside, position, 0).astype(_U32) & _U32(1)
            wanted = wanted - (inside & (bit == 1))
            found = np.where(inside & (bit == 1) & (wanted == 0), position, found).astype(_U32)
            position = np.where(direction == 0, -1, position + direction)
        return found

    return signature(evaluate, "b32 u32 s32", "b32")


def _used_bits(kind: str) -> np.uint32:
    """The bits of a field's position and length that count: 8, but all for 64-bit registers.

    The manual leaves numbers above 255 open; this is what an H200 does with them.
    """
    return _U32(0xFF) if width(kind) == 32 else _NONE


def _bfe(modifiers: tuple[str, ...]) -> Operation | None:
    """`bfe`: `length` bits from `start` on, sign- or zero-extended."""
    if modifiers not in (("u32",), ("s32",), ("u64",), ("s64",)):
        return None
    (kind,) = modifiers
    dtype, bits = TYPES[kind], _U32(width(kind))
    # a signed shift must leave a sign bit; an unsigned one may shift everything out
    most = _U32(bits - 1) if kind[0] == "s" else bits
    used = _used_bits(kind)

    def evaluate(a: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        start = np.minimum(start & used, most).astype(dtype)
        length = length & used
        unused = (bits - np.minimum(length, bits)).astype(dtype)
        field = (a >> start) << unused
        return np.where(length == 0, dtype.type(0), field >> np.minimum(unused, dtype.type(most)))

    return signature(evaluate, f"{kind} u32 u32", kind)


def _bfi(modifiers: tuple[str, ...]) -> Operation | None:
    """`bfi`: the low `length` bits of a put into b at `start`."""
    if modifiers not in (("b32",), ("b64",)):
        return None
    (kind,) = modifiers
    dtype, bits, used = TYPES[kind], _U32(width(kind)), _used_bits(kind)

    def evaluate(a: np.ndarray, b: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        start = (start & used).astype(dtype)
        length = np.minimum(length & used, bits).astype(dtype)
        mask = ~(~dtype.type(0) << length) << start
        return b & ~mask | a << start & mask

    return signature(evaluate, f"{kind} {kind} u32 u32", kind)


def _szext(modifiers: tuple[str, ...]) -> Operation | None:
    """`szext`: sign- or zero-extend the low n bits; n over 31 wraps or means the whole register."""
    match modifiers:
        case ("clamp" | "wrap" as mode, "u32" | "s32" as kind):
            pass
        case _:
            return None
    dtype = TYPES[kind]

    def evaluate(a: np.ndarray, count: np.ndarray) -> np.ndarray:
        kept = count & _U32(31)
        if mode == "clamp":
            kept = np.minimum(count, _U32(32))
        unused = (_U32(32) - kept).astype(dtype)
        extended = a << unused >> np.minimum(unused, dtype.type(31))
        return np.where(kept == 0, dtype.type(0), extended)

    return signature(evaluate, f"{kind} u32", kind)


def _bmsk(modifiers: tuple[str, ...]) -> Operation | None:
    """`bmsk`: a mask of b ones from bit a on."""
    match modifiers:
        case ("clamp" | "wrap" as mode, "b32"):
            pass
        case _:
            return None

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if mode == "wrap":
            a, b = a & _U32(31), b & _U32(31)
        first = np.minimum(a, _U32(32))
        return (_NONE << first) & ~(_NONE << (first + np.minimum(b, _U32(32))))

    return signature(evaluate, "b32 b32", "b32")


def _lanes(a: np.ndarray, kind: str) -> np.ndarray:
    """The bytes or halves of 32-bit registers as int64, along a new last axis."""
    return np.ascontiguousarray(a)[..., np.newaxis].view(kind).astype(np.int64)


def _dot_product(opcode: str) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`dp4a` (bytes by bytes) and `dp2a.lo/hi` (halves by two bytes), added to c."""
        if opcode == "dp2a":
            if modifiers[:1] not in (("lo",), ("hi",)):
                return None
            part = slice(0, 2) if modifiers[0] == "lo" else slice(2, 4)
            modifiers = modifiers[1:]
        else:
            part = slice(0, 4)
        match modifiers:
            case ("u32" | "s32" as a_kind, "u32" | "s32" as b_kind):
                pass
            case _:
                return None
        a_lane = ("i" if a_kind == "s32" else "u") + ("1" if opcode == "dp4a" else "2")
        b_lane = "i1" if b_kind == "s32" else "u1"
        kind = "u32" if (a_kind, b_kind) == ("u32", "u32") else "s32"

        def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            products = _lanes(a, a_lane) * _lanes(b, b_lane)[..., part]
            return (products.sum(-1) + c).astype(TYPES[kind])

        return signature(evaluate, f"b32 b32 {kind}", kind)

    return build


BUILDERS: dict[str, Builder] = {
    "popc": _popc,
    "clz": _clz,
    "bfind": _bfind,
    "brev": _brev,
    "fns": _fns,
    "bfe": _bfe,
    "bfi": _bfi,
    "szext": _szext,
    "bmsk": _bmsk,
    "dp4a": _dot_product("dp4a"),
    "dp2a": _dot_product("dp2a"),
}
