"""Comparison and selection (PTX ISA 9.0, "Comparison and Selection Instructions" and "Half
Precision Comparison Instructions")."""

from collections.abc import Callable

import numpy as np

from .floats import flush
from .halves import HALVES, PACKED, unpack
from .instruction_types import (
    BITS,
    F16,
    SIGNED,
    TYPES,
    U16,
    UNSIGNED,
    Operation,
    form,
    signature,
)
from .rounding import widen_bf16

ORDERED: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE: dict[str, np.ufunc] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_FLOATS = frozenset(("f16", "f32", "f64", "bf16", "f16x2", "bf16x2"))


def _either_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isnan(a) | np.isnan(b)


_UNORDERED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "nan": _either_nan,
    "num": lambda a, b: ~_either_nan(a, b),
    "equ": lambda a, b: np.equal(a, b) | _either_nan(a, b),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~np.greater_equal(a, b),
    "leu": lambda a, b: ~np.greater(a, b),
    "gtu": lambda a, b: ~np.less_equal(a, b),
    "geu": lambda a, b: ~np.less(a, b),
}


def _float_comparison(name: str) -> Callable | None:
    """Ordered comparisons are false where an operand is NaN, unordered ones (`equ` ...) true."""
    if name == "ne":
        return lambda a, b: np.less(a, b) | np.greater(a, b)
    return ORDERED.get(name) or _UNORDERED.get(name)


def _flushed(compare: Callable) -> Callable:
    """The comparison of f32 whose subnormals count as zeros."""
    tiny = 2.0**-126

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Only where both are subnormal or zero can flushing change the outcome.
        magnitudes = np.absolute(a if a.size < b.size else b)
        if magnitudes.item(magnitudes.argmin()) >= tiny:
            return compare(a, b)
        return compare(flush(a), flush(b))

    return evaluate


def _on_bits(compare: Callable, kind: str, ftz: bool) -> Callable:
    """The comparison of 16-bit floats given as bits."""
    half = HALVES[kind]

    def widen(bits: np.ndarray) -> np.ndarray:
        if ftz:
            tiny = (bits & U16.type(0x7FFF)) < U16.type(half.smallest_normal)
            bits = np.where(tiny, bits & U16.type(0x8000), bits)
        return bits.view(F16) if kind == "f16" else widen_bf16(bits)

    return lambda a, b: compare(widen(a), widen(b))


def comparison(name: str, kind: str, ftz: bool = False) -> Callable | None:
    """The comparison `name` of two arrays of PTX type `kind`, or None if there is none.

    It gives a boolean array; packed types give one with an axis of two more at the end.
    """
    if kind in _FLOATS:
        compare = _float_comparison(name)
        if compare is None or kind == "f64":
            return compare
        if kind == "f32":
            return _flushed(compare) if ftz else compare
        if kind == "f16" and not ftz:
            return compare
        on_bits = _on_bits(compare, PACKED.get(kind, kind), ftz)
        if kind in PACKED:
            return lambda a, b: on_bits(unpack(a), unpack(b))
        return on_bits if kind == "bf16" else lambda a, b: on_bits(a.view(U16), b.view(U16))
    if kind in SIGNED:
        return ORDERED.get(name)
    if kind in UNSIGNED:
        return ORDERED.get(_UNSIGNED_NAMES.get(name, name))
    if kind in BITS and name in ("eq", "ne"):
        return ORDERED[name]
    return None


_NAMES = "|".join((*ORDERED, *_UNORDERED, *_UNSIGNED_NAMES))
_TESTS = f"({_NAMES})[.({'|'.join(_COMBINE)})][.ftz]"
_KINDS = "|".join(TYPES)


@form(f"setp.{_TESTS}.({_KINDS})")
def _setp(name: str, boolean: str | None, ftz: str | None, kind: str) -> Operation | None:
    """`setp`: compare, combine with a predicate, and give the result and its negation.

    For packed operands the two predicates are those of the lower and the upper halves.
    """
    compare = comparison(name, kind, bool(ftz))
    if compare is None:
        return None

    def both(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        holds = compare(a, b)
        if kind in PACKED:
            return holds[..., 0].copy(), holds[..., 1].copy()
        return holds, np.logical_not(holds)

    if boolean is None:
        return signature(both, f"{kind} {kind}", "pred pred")
    combine = _COMBINE[boolean]

    def combined(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, q = both(a, b)
        return combine(p, c), combine(q, c)

    return signature(combined, f"{kind} {kind} pred", "pred pred")


_SET_RESULTS = {
    **{
        kind: frozenset(("u32", "s32", "f32", "f16", "bf16"))
        for kind in ("f32", "f64", *SIGNED, *UNSIGNED, *BITS)
    },
    "f16": frozenset(("f16", "u16", "s16", "u32", "s32")),
    "bf16": frozenset(("bf16", "u16", "s16", "u32", "s32")),
    "f16x2": frozenset(("f16x2",)),
    "bf16x2": frozenset(("bf16x2",)),
}
_TRUE_BITS = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


@form(f"set.{_TESTS}.({_KINDS}).({_KINDS})")
def _set(name: str, boolean: str | None, ftz: str | None, to: str, kind: str) -> Operation | None:
    """`set`: the comparison as a number, 1.0 for floats and all ones for integers."""
    compare = comparison(name, kind, bool(ftz))
    if compare is None or to not in _SET_RESULTS.get(kind, ()):
        return None
    dtype = TYPES[PACKED.get(to, to)]
    bits = np.dtype(f"u{dtype.itemsize}")
    true = bits.type(_TRUE_BITS.get(PACKED.get(to, to), (1 << 8 * dtype.itemsize) - 1))

    def number(holds: np.ndarray) -> np.ndarray:
        marks = np.multiply(holds, true, dtype=bits)
        return marks.view(np.uint32)[..., 0] if to in PACKED else marks.view(dtype)

    if boolean is None:
        return signature(lambda a, b: number(compare(a, b)), f"{kind} {kind}", to)

    combine = _COMBINE[boolean]

    def combined(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return number(combine(compare(a, b), c[..., np.newaxis] if to in PACKED else c))

    return signature(combined, f"{kind} {kind} pred", to)


def select(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a where c holds, b elsewhere; a and b have the same dtype."""
    if c.size < 4096:
        return np.where(c, a, b)
    # `where` is slow on large arrays with an irregular condition: b ^ ((a ^ b) if c else 0).
    bits = np.dtype(f"u{a.itemsize}")
    a, b = a.view(bits), b.view(bits)
    chosen = c.astype(bits) * (a ^ b)
    if b.shape == chosen.shape:
        np.bitwise_xor(chosen, b, chosen)
    else:
        chosen = chosen ^ b
    return chosen


@form(f"selp.({_KINDS})")
def _selp(kind: str) -> Operation | None:
    """`selp`: a where the predicate holds, b elsewhere."""
    if kind == "pred":
        return None
    dtype = TYPES[kind]
    return signature(lambda a, b, c: select(c, a, b).view(dtype), f"{kind} {kind} pred", kind)


@form(f"slct.({_KINDS}).(s32|f32)", f"slct.ftz.({_KINDS}).f32")
def _slct(kind: str, test: str = "ftz") -> Operation | None:
    """`slct`: a where c >= 0, b elsewhere (also where c is NaN)."""
    if kind in PACKED or TYPES[kind].itemsize == 1:
        return None
    dtype = TYPES[kind]
    # A negative subnormal counts as -0 when flushed, and -0 >= 0.
    least = np.float32(-(2.0**-126))
    holds = (lambda c: c > least) if test == "ftz" else (lambda c: c >= 0)
    types = f"{kind} {kind} {test if test != 'ftz' else 'f32'}"
    return signature(lambda a, b, c: select(holds(c), a, b).view(dtype), types, kind)
