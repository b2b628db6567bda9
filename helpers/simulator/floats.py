"""Arithmetic on f32 and f64 (PTX ISA 9.0, "Floating Point Instructions").

Results are rounded once, as PTX defines. A NaN result of an f32 instruction is 0x7fffffff, and
-0 < +0 in `min` and `max` (both seen on an H200).

CuPy compiles with -ftz=true, so nearly every f32 instruction of a real kernel flushes subnormals.
Subnormals and NaNs are rare, so an instruction computes the plain result first and looks with one
or two cheap passes whether anything needs repair.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from helpers.simulator.instruction_types import Builder, Operation, signature

F32, F64, U32 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint32)
NAN = np.uint32(0x7FFFFFFF).view(np.float32)
TINY = np.float32(2.0**-126)
_ZERO = np.float32(0)
# A sum whose magnitude is at least this cannot have felt a flushed addend (see `_add_f32`).
_SAFE_SUM = 2.0**-100
_SAFE_FMA = 2.0**-60


def flush(a: np.ndarray) -> np.ndarray:
    """float32 with subnormals replaced by zeros of their sign (the array itself if it has none)."""
    magnitude = np.absolute(a)
    smallest = magnitude.item(magnitude.argmin())
    if smallest >= TINY:
        return a
    subnormal = np.less(magnitude, TINY)
    if smallest == 0:
        subnormal &= magnitude != 0
        if not np.count_nonzero(subnormal):
            return a
    return np.where(subnormal, np.copysign(_ZERO, a), a)


def canonical(result: np.ndarray) -> np.ndarray:
    """A fresh float32 result, in which every NaN is made 0x7fffffff in place."""
    # argmax stops at the first NaN.
    if result.item(result.argmax()) != result.item(result.argmax()):
        np.copyto(result, NAN, where=np.isnan(result))
    return result


def _add_f32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return canonical(np.add(a, b))


def _flushing(evaluate: Callable) -> Callable:
    return lambda *inputs: flush(evaluate(*(flush(a) for a in inputs)))


def fma_f32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c rounded once to nearest even."""
    product = a.astype(F64) * b.astype(F64)  # exact
    addend = c.astype(F64)
    total = product + addend
    # Round to odd where the float64 sum was inexact: the second rounding is then the only one.
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    if np.count_nonzero(inexact):
        toward = np.where((error > 0) == (total > 0), 1, -1)
        bits += np.where(inexact, toward, 0)
    return canonical(total.astype(F32))


def _binary(combine: np.ufunc, flops: int = 1) -> Builder:
    def build(modifiers: tuple[str, ...]) -> Operation | None:
        match tuple(m for m in modifiers if m != "rn"):
            case ("f32",):
                return signature(
                    lambda a, b: canonical(combine(a, b)), "f32 f32", "f32", flops=flops
                )
            case ("ftz", "f32"):
                evaluate = _flushing(lambda a, b: canonical(combine(a, b)))
                return signature(evaluate, "f32 f32", "f32", flops=flops)
            case ("f64",):
                return signature(combine, "f64 f64", "f64", flops=flops)
        return None

    return build


def _fma(modifiers: tuple[str, ...]) -> Operation | None:
    match tuple(m for m in modifiers if m != "rn"):
        case ("f32",):
            return signature(fma_f32, "f32 f32 f32", "f32", flops=2)
        case ("ftz", "f32"):
            return signature(_flushing(fma_f32), "f32 f32 f32", "f32", flops=2)
    return None


def _unary(compute: Callable) -> Builder:
    """f32 and f64 functions of one operand, any rounding or `approx`, with or without ftz."""

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        kind = modifiers[-1]
        if kind == "f64":
            return signature(compute, "f64", "f64")
        if kind != "f32":
            return None

        def evaluate(a: np.ndarray) -> np.ndarray:
            return canonical(compute(a.astype(F64)).astype(F32))

        return signature(
            _flushing(evaluate) if "ftz" in modifiers else evaluate, "f32", "f32"
        )

    return build


def _min_max(pick: np.ufunc, zero: np.ufunc) -> Builder:
    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = canonical(pick(a, b))
        both_zero = (a == 0) & (b == 0)
        if np.count_nonzero(both_zero):
            np.copyto(result.view(U32), zero(a.view(U32), b.view(U32)), where=both_zero)
        return result

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        match modifiers:
            case ("f32",):
                return signature(evaluate, "f32 f32", "f32")
            case ("ftz", "f32"):
                return signature(_flushing(evaluate), "f32 f32", "f32")
        return None

    return build


BUILDERS: dict[str, Builder] = {
    "add": _binary(np.add),
    "sub": _binary(np.subtract),
    "mul": _binary(np.multiply),
    "div": lambda m: _binary(np.divide, 0)(
        tuple(x for x in m if x not in ("approx", "full"))
    ),
    "fma": _fma,
    "abs": _unary(np.absolute),
    "neg": _unary(np.negative),
    "min": _min_max(np.fmin, np.bitwise_or),
    "max": _min_max(np.fmax, np.bitwise_and),
    "rcp": _unary(np.reciprocal),
    "sqrt": _unary(np.sqrt),
    "rsqrt": _unary(lambda a: 1 / np.sqrt(a)),
    "ex2": _unary(np.exp2),
    "lg2": _unary(np.log2),
    "sin": _unary(np.sin),
    "cos": _unary(np.cos),
    "tanh": _unary(np.tanh),
}
