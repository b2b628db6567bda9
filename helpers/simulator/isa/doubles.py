"""f64 arithmetic with one rounding, in all four modes (PTX ISA 9.0, "Floating Point Instructions").

NumPy has no fused multiply-add. It is built from error-free transformations, which need factors
and addend to be moderate; an element outside that range is computed with exact rationals.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from .instruction_types import F64, I64, U64, Operation, form, uniform
from .rounding import MODE, step, to_odd, two_sum

_SPLITTER = 2.0**27 + 1
_SMALLEST, _LARGEST = 2.0**-300, 2.0**300


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b rounded, and the exact error (T. Dekker, Numerische Mathematik 18, 1971)."""
    product = a * b
    a_high = _SPLITTER * a
    a_high = a_high - (a_high - a)
    a_low = a - a_high
    b_high = _SPLITTER * b
    b_high = b_high - (b_high - b)
    b_low = b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _all_moderate(*inputs: np.ndarray) -> bool:
    """Whether no input is zero, and none so near overflow or underflow that errors are inexact."""
    for a in inputs:
        magnitude = np.absolute(a)
        if not magnitude.item(magnitude.argmin()) > _SMALLEST:
            return False
        if not magnitude.item(magnitude.argmax()) < _LARGEST:
            return False
    return True


def _moderate(*inputs: np.ndarray) -> np.ndarray:
    """Where all inputs are zero, or so far from overflow and underflow that errors are exact."""
    fine = np.True_
    for a in inputs:
        magnitude = np.absolute(a)
        fine = fine & (np.equal(magnitude, 0) | ((magnitude > _SMALLEST) & (magnitude < _LARGEST)))
    return fine


def _round_rational(exact: Fraction, zero: float, mode: str) -> float:
    """An exact number rounded to float64; `zero` is the result, with its sign, where it is 0."""
    if exact == 0:
        return zero
    try:
        nearest = exact.numerator / exact.denominator  # Python rounds this once, to nearest
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if nearest == 0:
        nearest = math.copysign(0.0, exact)
    if mode == "rn":
        return nearest
    if math.isinf(nearest):
        above, below = nearest > 0, nearest < 0
    else:
        above, below = Fraction(nearest) > exact, Fraction(nearest) < exact
    down = mode == "rm" or (mode == "rz" and exact > 0)
    if above and down:
        return math.nextafter(nearest, -math.inf)
    if below and not down:
        return math.nextafter(nearest, math.inf)
    return nearest


def _sum_of_zeros(x: float, y: float, mode: str) -> float:
    """The zero that x + y = 0 gives: -0 if both are -0, or towards minus infinity if either is."""
    signs = (math.copysign(1, x), math.copysign(1, y))
    return -0.0 if max(signs) < 0 or (mode == "rm" and min(signs) < 0) else 0.0


def _fma_one(a: float, b: float, c: float, mode: str) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    sign = math.copysign(1, a) * math.copysign(1, b)
    product = Fraction(a) * Fraction(b)
    if product == 0 and c == 0:
        return _sum_of_zeros(math.copysign(0.0, sign), c, mode)
    return _round_rational(product + Fraction(c), -0.0 if mode == "rm" else 0.0, mode)


def _mul_one(a: float, b: float, mode: str) -> float:
    plain = a * b
    if not (math.isfinite(a) and math.isfinite(b)):
        return plain
    return _round_rational(Fraction(a) * Fraction(b), math.copysign(0.0, plain), mode)


def _div_one(a: float, b: float, mode: str) -> float:
    if b == 0 or not (math.isfinite(a) and math.isfinite(b)):
        return float(np.divide(np.float64(a), np.float64(b)))
    zero = math.copysign(1, a) * math.copysign(1, b) * 0.0
    return _round_rational(Fraction(a) / Fraction(b), zero, mode)


def _one_by_one(compute: Callable[..., float], mode: str, *inputs: np.ndarray) -> np.ndarray:
    """An exact computation of every element: microseconds each."""
    rows = zip(*[a.tolist() for a in inputs], strict=True)
    return np.array([compute(*row, mode) for row in rows], F64)


def directed(result: np.ndarray, error: np.ndarray, mode: str) -> np.ndarray:
    """A nearest float64, moved to the neighbour where the mode asks for it.

    `error` has the sign of the exact value minus `result`.
    """
    positive = result > 0
    if mode == "rm":
        wrong, away = error < 0, ~positive
    elif mode == "rp":
        wrong, away = error > 0, positive
    else:
        wrong, away = np.where(positive, error < 0, error > 0), np.False_
    return step(result.view(U64), wrong, away).view(F64)


def _with_exceptions(
    usual: Callable[..., np.ndarray], one: Callable[..., float], mode: str
) -> Callable:
    """`usual` where all inputs are moderate, the exact computation elsewhere."""

    def evaluate(*inputs: np.ndarray) -> np.ndarray:
        result = usual(*inputs)
        if mode == "rn" and _all_moderate(*inputs):
            return result
        strange = ~_moderate(*inputs)
        if mode != "rn":
            strange = strange | np.equal(result, 0)  # the sign of a zero depends on the mode
        if np.count_nonzero(strange):
            strange = np.broadcast_to(strange, result.shape)
            parts = [np.broadcast_to(a, result.shape)[strange] for a in inputs]
            result[strange] = _one_by_one(one, mode, *parts)
        return result

    return evaluate


def fused_multiply_add(mode: str) -> Callable:
    """`fma.f64` in a rounding mode."""

    def usual(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        high, low = two_product(a, b)
        addend_high, addend_low = two_sum(c, low)
        top, rest = two_sum(high, addend_high)
        tail, tail_error = two_sum(addend_low, rest)
        odd = to_odd(tail, tail_error)
        result = top + odd
        if mode == "rn":
            # the parts lose the sign of a zero; where the result is one, so is a * b + c
            zero = result == 0
            return np.where(zero, a * b + c, result) if zero.any() else result
        return directed(result, odd - (result - top), mode)

    return _with_exceptions(usual, _fma_one, mode)


def _sum(mode: str, sign: float) -> Callable:
    if mode == "rn":
        return np.add if sign > 0 else np.subtract

    def usual(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return directed(*two_sum(a, b), mode)

    evaluate = _with_exceptions(usual, lambda a, b, mode: _fma_one(a, 1.0, b, mode), mode)
    return evaluate if sign > 0 else lambda a, b: evaluate(a, -b)


def _mul(mode: str) -> Callable:
    if mode == "rn":
        return np.multiply
    return _with_exceptions(lambda a, b: directed(*two_product(a, b), mode), _mul_one, mode)


def _div(mode: str) -> Callable:
    if mode == "rn":
        return np.divide

    def usual(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        quotient = a / b
        product, error = two_product(quotient, b)
        remainder = (a - product) - error
        return directed(quotient, np.where(b > 0, remainder, -remainder), mode)

    return _with_exceptions(usual, _div_one, mode)


def _rcp(mode: str) -> Callable:
    divide = _div(mode)
    one = np.ones(1)
    return lambda a: divide(one, a)


def _sqrt(mode: str) -> Callable:
    if mode == "rn":
        return np.sqrt

    def evaluate(a: np.ndarray) -> np.ndarray:
        # Scaled by an even power of two, so that the square of the root has an exact error.
        fraction, exponent = np.frexp(a)
        odd = exponent & 1
        fraction, exponent = np.ldexp(fraction, odd), exponent - odd
        root = np.sqrt(fraction)
        square, error = two_product(root, root)
        root = directed(root, (fraction - square) - error, mode)
        finite = np.isfinite(a) & (a > 0)
        return np.where(finite, np.ldexp(root, exponent >> 1), np.sqrt(a))

    return evaluate


# opcode -> (maker for a rounding mode, operands, flops)
_ARITHMETIC: dict[str, tuple[Callable[[str], Callable], int, int]] = {
    "add": (lambda mode: _sum(mode, 1.0), 2, 1),
    "sub": (lambda mode: _sum(mode, -1.0), 2, 1),
    "mul": (_mul, 2, 1),
    "fma": (fused_multiply_add, 3, 2),
    "mad": (fused_multiply_add, 3, 2),
    "div": (_div, 2, 0),
    "rcp": (_rcp, 1, 0),
    "sqrt": (_sqrt, 1, 0),
}


@form(f"(add|sub|mul)[.({MODE})].f64", f"(fma|mad|div|rcp|sqrt).({MODE}).f64")
def _arithmetic(opcode: str, mode: str | None) -> Operation:
    make, operands, flops = _ARITHMETIC[opcode]
    return uniform(make(mode or "rn"), "f64", operands, flops=flops)


def _upper_word(a: np.ndarray) -> np.ndarray:
    """The number that the upper 32 bits give, subnormals flushed."""
    a = (a.view(I64) & np.int64(-(1 << 32))).view(F64)
    return np.where(np.absolute(a) < 2.0**-1022, np.copysign(0.0, a), a)


@form("(rcp|rsqrt).approx[.ftz].f64")
def _approximate(opcode: str, ftz: str | None) -> Operation:
    """`approx.ftz.f64` reads and writes the upper 32 bits only."""
    compute = np.reciprocal if opcode == "rcp" else lambda a: 1.0 / np.sqrt(a)
    if ftz:
        return uniform(lambda a: _upper_word(compute(_upper_word(a))), "f64", 1)
    return uniform(compute, "f64", 1)
