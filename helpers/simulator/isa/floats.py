"""Additions, products and quotients of f32 (PTX ISA 9.0, "Floating Point Instructions").

Results are rounded once, as PTX defines. A NaN result is 0x7fffffff (seen on an H200).

CuPy compiles with -ftz=true, so nearly every f32 instruction of a real kernel flushes subnormals.
Subnormals, NaNs and sums that need care are rare: an instruction computes the plain result first
and looks, with one or two cheap passes, whether anything needs repair. `argmin` and `argmax` do
the looking: they are NumPy's cheapest reductions, and both stop at a NaN.
"""

from collections.abc import Callable

import numpy as np

from .directed import DIRECTED
from .instruction_types import F32, F64, I32, I64, U32, U64, Operation, form, uniform
from .rounding import FORMATS, MODE, encode, to_odd, two_sum

NAN = np.uint32(0x7FFFFFFF).view(F32)
TINY = 2.0**-126  # the smallest normal f32
_F32 = FORMATS["f32"]
_ZERO, _ONE = np.array(0, F32), np.array(1, F32)
_BIT = np.array(1, U32)
_EIGHT = np.array(8, U32)
_35 = np.array(35, I64)
# A sum at least this large did not feel whether a subnormal addend was flushed: the addend is
# below half a unit in the last place of the other one (in an fma, of the exact product).
_SAFE_SUM = 2.0**-100
_SAFE_FMA = 2.0**-60
_ABOVE_TINY = TINY * (1 + 2.0**-23)
# The bits of these limits less one: made once, for making them takes longer than looking.
_BITS = {x: int(np.float32(x).view(U32)) - 1 for x in (TINY, _ABOVE_TINY, _SAFE_SUM)}
_FEW = 4096  # elements; with fewer, what counts is how often NumPy is called


def flush(a: np.ndarray) -> np.ndarray:
    """float32 with subnormals replaced by zeros of their sign (`a` itself if it has none)."""
    if a.size == 1:
        magnitude = abs(a.item())
        if magnitude >= TINY or magnitude == 0 or magnitude != magnitude:
            return a
        return np.copysign(_ZERO, a)
    magnitudes = np.absolute(a)
    if magnitudes.item(magnitudes.argmin()) >= TINY or not _has_tiny(magnitudes):
        return a
    return np.where(np.less(np.absolute(a), TINY), np.copysign(_ZERO, a), a)


def _has_tiny(magnitudes: np.ndarray, below: float = TINY) -> bool:
    """Whether any of the magnitudes, which are overwritten, is below a limit of `_BITS`, but 0."""
    bits = magnitudes.view(U32)
    np.subtract(bits, _BIT, bits)  # zero wraps to the top
    return bits.item(bits.argmin()) < _BITS[below]


def canonical(result: np.ndarray) -> np.ndarray:
    """The fresh float32 array `result` with every NaN made 0x7fffffff in place."""
    largest = result.item(result.argmax())
    if largest != largest:
        np.copyto(result, NAN, where=np.isnan(result))
    return result


def _settled(result: np.ndarray, safe: float) -> bool:
    """Make NaNs canonical in place; whether all other results are zero or at least `safe`."""
    magnitudes = np.absolute(result)
    smallest = magnitudes.item(magnitudes.argmin())
    if smallest >= safe:
        return True
    if smallest != smallest:
        np.copyto(result, NAN, where=np.isnan(result))
    return not _has_tiny(magnitudes, safe)


def flushing_inputs(evaluate: Callable) -> Callable:
    """The f32 instruction with subnormal inputs made zero."""
    return lambda *inputs: evaluate(*[flush(a) for a in inputs])


def flushing(evaluate: Callable) -> Callable:
    """The f32 instruction with subnormal inputs and results made zero (`.ftz`)."""
    return lambda *inputs: flush(evaluate(*[flush(a) for a in inputs]))


def saturated(result: np.ndarray) -> np.ndarray:
    """Clamped to [0, 1], where NaN and -0 become +0 (the `.sat` modifier)."""
    clamped = result.clip(_ZERO, _ONE)
    np.add(clamped, _ZERO, clamped)
    largest = clamped.item(clamped.argmax())
    if largest != largest:
        np.copyto(clamped, _ZERO, where=np.isnan(clamped))
    return clamped


def _sum_flushing(combine: np.ufunc) -> Callable:
    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = combine(a, b)
        if _settled(result, _SAFE_SUM):
            return result
        return flush(canonical(combine(flush(a), flush(b))))

    return evaluate


def _flushing_results(combine: np.ufunc) -> Callable:
    """`mul.ftz` and `div.ftz`: what seems no larger than the smallest normal is looked at again."""

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = flush(a), flush(b)
        result = combine(a, b)
        if _settled(result, _ABOVE_TINY):
            return result
        return encode(combine(a.astype(F64), b.astype(F64)), _F32, "rn", True).view(F32)

    return evaluate


def _wide_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c of float32 arrays in float64, rounded once there: the product is exact."""
    product, factor = a.astype(F64), b.astype(F64)
    if product.shape == factor.shape:
        np.multiply(product, factor, product)
    else:
        product = product * factor
    addend = c.astype(F64)
    if product.shape == addend.shape:
        return np.add(product, addend, product)
    return product + addend


def _has_tie(total: np.ndarray) -> bool:
    """Whether any float64 lies half-way between two (normal) float32, by its last 29 bits."""
    if total.size < _FEW:  # the fewest calls
        top = np.left_shift(total.view(I64), _35)
        return top.item(top.argmin()) == -(2**63)
    low = total.view(U64).astype(U32)  # the fewest bytes
    np.multiply(low, _EIGHT, low)
    low = low.view(I32)
    return low.item(low.argmin()) == -(2**31)


def _exact_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c in float64, rounded to odd."""
    return to_odd(*two_sum(a.astype(F64) * b.astype(F64), c.astype(F64)))


def _repair(
    result: np.ndarray, where: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> None:
    """Recompute the elements of an fma at `where`, with no double rounding.

    Where the sum in float64 was exact, which is usual where it lies half-way, there was none.
    """
    if result.size < _FEW:
        _, lost = two_sum(a.astype(F64) * b.astype(F64), c.astype(F64))
        if not np.count_nonzero(np.logical_and(where, lost)):
            return
    shape = result.shape
    exact = _exact_fma(*[np.broadcast_to(x, shape)[where] for x in (a, b, c)])
    result[where] = exact.astype(F32)


def _ties(total: np.ndarray) -> np.ndarray:
    return np.equal(total.view(U64) & np.uint64(0x1FFFFFFF), np.uint64(0x10000000))


def fma_f32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c rounded once to nearest even (`fma.rn.f32`, subnormals kept)."""
    total = _wide_fma(a, b, c)
    result = total.astype(F32)
    doubtful = _ties(total) if _has_tie(total) else None
    magnitudes = np.absolute(result)
    smallest = magnitudes.item(magnitudes.argmin())
    if not smallest > TINY:
        if smallest != smallest:
            np.copyto(result, NAN, where=np.isnan(result))
        # float32 has fewer bits among the subnormals, so ties lie elsewhere there.
        small = np.less_equal(magnitudes, TINY) & np.not_equal(total, 0)
        doubtful = small if doubtful is None else doubtful | small
    if doubtful is not None:
        _repair(result, doubtful, a, b, c)
    return result


def fma_f32_flushing(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c rounded once to nearest even, subnormals flushed (`fma.rn.ftz.f32`)."""
    a, b = flush(a), flush(b)
    total = _wide_fma(a, b, c)
    result = total.astype(F32)
    if _has_tie(total):
        _repair(result, _ties(total), a, b, flush(c))
    magnitudes = np.absolute(result)
    smallest = magnitudes.item(magnitudes.argmin())
    if smallest >= _SAFE_FMA:
        return result
    flushed = flush(c)
    if flushed is not c or _has_tiny(magnitudes, _ABOVE_TINY):
        return encode(_exact_fma(a, b, flushed), _F32, "rn", True).view(F32)
    if smallest != smallest:
        np.copyto(result, NAN, where=np.isnan(result))
    return result


def _canonical_of(combine: Callable) -> Callable:
    return lambda *inputs: canonical(combine(*inputs))


def _divide_approximately(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`div.approx`: beyond |b| = 2^126 the quotient is 0, or NaN for an infinite numerator."""
    result = np.divide(a, b)
    beyond = np.greater(np.absolute(b), 2.0**126) & np.isfinite(b)
    if np.count_nonzero(beyond):
        sign = np.copysign(_ONE, a) * np.copysign(_ONE, b)
        result = np.where(beyond, np.where(np.isinf(a), NAN, _ZERO * sign + a * _ZERO), result)
    return canonical(result)


# opcode -> (to nearest, to nearest with ftz, operands, flops)
_ARITHMETIC: dict[str, tuple[Callable, Callable, int, int]] = {
    "add": (_canonical_of(np.add), _sum_flushing(np.add), 2, 1),
    "sub": (_canonical_of(np.subtract), _sum_flushing(np.subtract), 2, 1),
    "mul": (_canonical_of(np.multiply), _flushing_results(np.multiply), 2, 1),
    "fma": (fma_f32, fma_f32_flushing, 3, 2),
    "div": (_canonical_of(np.divide), _flushing_results(np.divide), 2, 0),
}


@form(f"(add|sub|mul)[.({MODE})][.ftz][.sat].f32", f"(fma|mad|div).({MODE})[.ftz][.sat].f32")
def _arithmetic(opcode: str, mode: str | None, ftz: str | None, sat: str | None) -> Operation:
    opcode = "fma" if opcode == "mad" else opcode
    plain, with_ftz, operands, flops = _ARITHMETIC[opcode]
    evaluate = with_ftz if ftz else plain
    if mode not in (None, "rn"):
        evaluate = DIRECTED[opcode](mode, bool(ftz))
        if ftz:
            evaluate = flushing_inputs(evaluate)
    unclamped = evaluate
    if sat:
        evaluate = lambda *inputs: saturated(unclamped(*inputs))  # noqa: E731
    return uniform(evaluate, "f32", operands, flops=flops)


@form("div.(approx|full)[.ftz].f32")
def _approximate_div(method: str, ftz: str | None) -> Operation:
    evaluate = _divide_approximately if method == "approx" else _canonical_of(np.divide)
    return uniform(flushing(evaluate) if ftz else evaluate, "f32", 2)
