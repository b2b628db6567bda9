"""Comparison and selection (PTX ISA 9.0, "Comparison and Selection Instructions" and "Half Precision
Comparison Instructions")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from helpers.simulator.instruction_types import (
    BITS,
    FLOATS,
    SIGNED,
    TYPES,
    UNSIGNED,
    Builder,
    Operation,
    signature,
)

_ORDERED: dict[str, np.ufunc] = {
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


def _either_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.isnan(a) | np.isnan(b)


def _float_comparison(name: str) -> Callable | None:
    """Ordered comparisons are false where an operand is NaN, unordered ones (`equ` ...) true."""
    if name == "ne":
        return lambda a, b: np.not_equal(a, b) & ~_either_nan(a, b)
    if name in _ORDERED:
        return _ORDERED[name]
    if name == "nan":
        return _either_nan
    if name == "num":
        return lambda a, b: ~_either_nan(a, b)
    if name == "neu":
        return np.not_equal
    opposite = {
        "equ": None,
        "ltu": np.greater_equal,
        "leu": np.greater,
        "gtu": np.less_equal,
    }
    opposite["geu"] = np.less
    if name not in opposite:
        return None
    if name == "equ":
        return lambda a, b: np.equal(a, b) | _either_nan(a, b)
    negated = opposite[name]
    return lambda a, b: ~negated(a, b)


def comparison(name: str, kind: str) -> Callable | None:
    """The comparison `name` on operands of PTX type `kind`, as boolean array, or None."""
    if kind in FLOATS:
        return _float_comparison(name)
    if kind in SIGNED:
        return _ORDERED.get(name)
    if kind in UNSIGNED:
        return _ORDERED.get(_UNSIGNED_NAMES.get(name, name))
    if kind in BITS and name in ("eq", "ne"):
        return _ORDERED[name]
    return None


def flushed_comparison(compare: Callable) -> Callable:
    """The comparison on float32 operands whose subnormals count as zeros."""
    tiny = np.float32(2.0**-126)

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Only two operands that are both subnormal or zero compare differently when flushed.
        small, large = (a, b) if a.size < b.size else (b, a)
        magnitude = np.absolute(small)
        if magnitude.item(magnitude.argmin()) >= tiny:
            return compare(a, b)
        return compare(
            np.where(np.absolute(a) < tiny, np.float32(0), a),
            np.where(np.absolute(b) < tiny, np.float32(0), b),
        )

    return evaluate


def _setp(modifiers: tuple[str, ...]) -> Operation | None:
    """`setp`: compare, combine with a predicate, and give the result and its negation."""
    rest = tuple(m for m in modifiers if m != "ftz")
    compare = comparison(rest[0], rest[-1]) if len(rest) in (2, 3) else None
    if compare is None:
        return None
    kind = rest[-1]
    if "ftz" in modifiers and kind == "f32":
        compare = flushed_comparison(compare)
    if len(rest) == 2:

        def evaluate(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            holds = compare(a, b)
            return holds, np.logical_not(holds)

        return signature(evaluate, f"{kind} {kind}", "pred pred")
    combine = _COMBINE.get(rest[1])
    if combine is None:
        return None

    def evaluate_combined(
        a: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        holds = compare(a, b)
        return combine(holds, c), combine(np.logical_not(holds), c)

    return signature(evaluate_combined, f"{kind} {kind} pred", "pred pred")


def _selp(modifiers: tuple[str, ...]) -> Operation | None:
    """`selp`: a where the predicate holds, b elsewhere."""
    if len(modifiers) != 1 or modifiers[0] not in TYPES or modifiers[0] == "pred":
        return None
    (kind,) = modifiers
    return signature(lambda a, b, c: np.where(c, a, b), f"{kind} {kind} pred", kind)


BUILDERS: dict[str, Builder] = {
    "setp": _setp,
    "selp": _selp,
}
