"""Counting, finding, extracting and inserting bits, and the dot products of bytes (PTX ISA 9.0,
"Integer Arithmetic Instructions")."""

import numpy as np

from .instruction_types import TYPES, WORDS, Operation, form, signature, uniform, width

_U8, _U32 = np.uint8, np.uint32
_NONE = _U32(0xFFFFFFFF)


@form("popc.(b32|b64)")
def _popc(kind: str) -> Operation:
    """`popc`: the number of ones."""
    return signature(lambda a: np.bitwise_count(a).astype(_U32), kind, "u32")


def _bit_length(a: np.ndarray) -> np.ndarray:
    """The position of the highest one of an unsigned array, counted from 1; 0 for 0 (int32)."""
    # Clearing the bit below every one keeps float64's rounding from carrying into a new power.
    return np.frexp((a & ~(a >> a.dtype.type(1))).astype(np.float64))[1]


@form("clz.(b32|b64)")
def _clz(kind: str) -> Operation:
    """`clz`: the number of leading zeros, the width for 0."""
    bits = np.int32(width(kind))
    return signature(lambda a: (bits - _bit_length(a)).view(_U32), kind, "u32")


@form(f"bfind[.shiftamt].({WORDS})")
def _bfind(shift_amount: str | None, kind: str) -> Operation:
    """`bfind`: the position of the highest bit that is no sign bit, or all ones if there is none;
    with `.shiftamt` the left shift that would bring it to the top."""
    top, unsigned = np.int32(width(kind) - 1), TYPES["u" + kind[1:]]

    def evaluate(a: np.ndarray) -> np.ndarray:
        if kind[0] == "s":
            a = (a ^ (a >> a.dtype.type(top))).view(unsigned)
        position = _bit_length(a) - np.int32(1)
        if not shift_amount:
            return position.view(_U32)
        return np.where(position < 0, _NONE, (top - position).view(_U32))

    return signature(evaluate, kind, "u32")


@form("brev.(b32|b64)")
def _brev(kind: str) -> Operation:
    """`brev`: the bits in reverse order."""
    # swap neighbouring bits, pairs, nibbles; then the bytes
    masks = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))
    word, every = TYPES[kind].type, (1 << width(kind)) - 1
    swaps = [(word(shift), word(mask & every)) for shift, mask in masks]

    def evaluate(a: np.ndarray) -> np.ndarray:
        for shift, mask in swaps:
            a = (a >> shift & mask) | (a & mask) << shift
        return a.byteswap()

    return signature(evaluate, kind, kind)


@form("fns.b32")
def _fns() -> Operation:
    """`fns`: the n-th set bit of a mask from a base on, upwards or downwards; all ones if none."""

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


@form(f"bfe.({WORDS})")
def _bfe(kind: str) -> Operation:
    """`bfe`: `length` bits from `start` on, sign- or zero-extended."""
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


@form("bfi.(b32|b64)")
def _bfi(kind: str) -> Operation:
    """`bfi`: the low `length` bits of a put into b at `start`."""
    dtype, bits, used = TYPES[kind], _U32(width(kind)), _used_bits(kind)

    def evaluate(a: np.ndarray, b: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        start = (start & used).astype(dtype)
        length = np.minimum(length & used, bits).astype(dtype)
        mask = ~(~dtype.type(0) << length) << start
        return b & ~mask | a << start & mask

    return signature(evaluate, f"{kind} {kind} u32 u32", kind)


@form("szext.(clamp|wrap).(u32|s32)")
def _szext(mode: str, kind: str) -> Operation:
    """`szext`: sign- or zero-extend the low n bits; n over 31 wraps or means the whole register."""
    dtype = TYPES[kind]

    def evaluate(a: np.ndarray, count: np.ndarray) -> np.ndarray:
        kept = count & _U32(31)
        if mode == "clamp":
            kept = np.minimum(count, _U32(32))
        unused = (_U32(32) - kept).astype(dtype)
        extended = a << unused >> np.minimum(unused, dtype.type(31))
        return np.where(kept == 0, dtype.type(0), extended)

    return signature(evaluate, f"{kind} u32", kind)


@form("bmsk.(clamp|wrap).b32")
def _bmsk(mode: str) -> Operation:
    """`bmsk`: a mask of b ones from bit a on."""

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if mode == "wrap":
            a, b = a & _U32(31), b & _U32(31)
        first = np.minimum(a, _U32(32))
        return (_NONE << first) & ~(_NONE << (first + np.minimum(b, _U32(32))))

    return uniform(evaluate, "b32", 2)


def lanes_of(a: np.ndarray, kind: str, size: int) -> np.ndarray:
    """Parts of `size` bytes of u32 or s32 registers as int64, along a new last axis."""
    part = f"{'i' if kind == 's32' else 'u'}{size}"
    return np.ascontiguousarray(a)[..., np.newaxis].view(part).astype(np.int64)


@form("(dp4a).(u32|s32).(u32|s32)", "(dp2a).(lo|hi).(u32|s32).(u32|s32)")
def _dot_product(opcode: str, *words: str) -> Operation:
    """`dp4a` (bytes by bytes) and `dp2a.lo/hi` (halves by two of the bytes), added to c."""
    *half, a_kind, b_kind = words
    size = 1 if opcode == "dp4a" else 2
    part = slice(2, 4) if half == ["hi"] else slice(2) if half == ["lo"] else slice(4)
    kind = "u32" if a_kind == b_kind == "u32" else "s32"

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        products = lanes_of(a, a_kind, size) * lanes_of(b, b_kind, 1)[..., part]
        return (products.sum(-1) + c).astype(TYPES[kind])

    return signature(evaluate, f"b32 b32 {kind}", kind)
