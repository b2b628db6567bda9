"""Conversions between types (PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt")."""

import functools
from collections.abc import Callable

import numpy as np

from .doubles import directed
from .floats import canonical, flush, saturated
from .halves import HALVES, clamp, narrow_to_bf16, narrow_to_f16, relu, widen_f16
from .instruction_types import (
    F32,
    F64,
    FLOATS,
    I64,
    INTEGER,
    INTEGERS,
    TYPES,
    U16,
    U64,
    Operation,
    form,
    signature,
)
from .integers import saturate
from .rounding import FORMATS, MODES, Format, encode, to_odd, two_sum, widen_bf16

_TO_INTEGER: dict[str, np.ufunc] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _to_double(kind: str) -> Callable:
    """Any type to float64: exact, or rounded to odd for 64-bit integers."""
    if kind == "bf16":
        return HALVES["bf16"].widen
    if kind not in ("s64", "u64"):
        return lambda a: a.astype(F64)

    return lambda a: to_odd(*_halved(a))


def _halved(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """64-bit integers as the nearest float64, and the error."""
    low = a & a.dtype.type(0x7FF)
    return two_sum((a - low).astype(F64), low.astype(F64))


def float_to_integer(rounding: str, to: str, source: str) -> Callable:
    """`cvt.rzi.s32.f32` and its like: out-of-range values clamp.

    NaN gives 0, but the top bit alone from f64 or to 64 bits (seen on an H200).
    """
    dtype, compute = TYPES[to], _TO_INTEGER[rounding]
    limits = np.iinfo(dtype)
    low, beyond, least = float(limits.min), float(limits.max + 1), float(limits.min - 1)
    wide_nan = source == "f64" or dtype.itemsize == 8
    nan = np.array(wide_nan << (8 * dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype)
    widen = {"bf16": widen_bf16, "f16": widen_f16}.get(source)
    # NumPy converts float64 to uint64 and to narrow types by way of types that may be too small.
    via = I64 if dtype != U64 else U64

    def convert(a: np.ndarray) -> np.ndarray:
        if widen is not None:
            a = widen(a)
        whole = a if rounding == "rzi" else compute(a)
        smallest, largest = whole.item(whole.argmin()), whole.item(whole.argmax())
        # Both are false where there is a NaN. The cast itself cuts off a fraction.
        if smallest > least and largest < beyond:
            return whole.astype(dtype)
        whole = compute(whole.astype(F64))
        inside = np.greater_equal(whole, low) & np.less(whole, beyond)
        result = np.where(inside, whole, 0.0).astype(via).astype(dtype)
        result = np.where(np.less(whole, low), dtype.type(limits.min), result)
        result = np.where(np.greater_equal(whole, beyond), dtype.type(limits.max), result)
        return np.where(np.isnan(whole), nan, result)

    return convert


@form(f"cvt[.sat].({INTEGER}).({INTEGER})")
def _integer_to_integer(sat: str | None, to: str, source: str) -> Operation:
    """Truncates or extends; with `.sat` clamps to the destination's range."""
    dtype = TYPES[to]
    return signature((lambda a: saturate(a, to)) if sat else lambda a: a.astype(dtype), source, to)


@form(f"cvt.({'|'.join(_TO_INTEGER)})[.ftz][.sat].({INTEGER}).({'|'.join(FLOATS)})")
def _float_to_integer(rounding: str, ftz, sat, to: str, source: str) -> Operation:
    convert = float_to_integer(rounding, to, source)
    if ftz and source == "f32" and rounding in ("rmi", "rpi"):
        # Only rounding away from zero tells a subnormal from a zero.
        return signature(lambda a: convert(flush(a)), source, to)
    return signature(convert, source, to)


def _rounded_to_float(to: str, source: str, mode: str, ftz: bool) -> Callable:
    """A conversion to a float type, without `.sat`, `.relu` and the inputs' `.ftz`."""
    if to == "f64":
        if mode == "rn" or source not in ("s64", "u64"):
            return _to_double(source) if source == "bf16" else lambda a: a.astype(F64)
        return lambda a: directed(*_halved(a), mode)
    # Without ftz, bf16 to f32 leaves NaNs as they are (seen on an H200).
    quick: dict[tuple[str, str], Callable] = {
        ("f32", "f16"): widen_f16,
        ("f32", "bf16"): lambda a: flush(canonical(widen_bf16(a))) if ftz else widen_bf16(a),
        ("f32", "f32"): lambda a: canonical(a.astype(F32)),
        ("f16", "f16"): narrow_to_f16,
        ("f16", "f32"): narrow_to_f16,
        ("bf16", "f32"): narrow_to_bf16,
    }
    if mode == "rn" and (to, source) in quick:
        return quick[to, source]
    if mode == "rn" and to == "f32" and source in INTEGERS:
        return lambda a: a.astype(F32)  # one correct rounding, also of 64 bits
    widen, dtype, form = _to_double(source), TYPES[to], FORMATS[to]
    if source == "f64":
        flush_results = ftz and to == "f32"
        return lambda a: _keep_nan(a, encode(a, form, mode, flush_results), form).view(dtype)
    return lambda a: encode(widen(a), form, mode).view(dtype)


def _keep_nan(a: np.ndarray, bits: np.ndarray, form: Format) -> np.ndarray:
    """Conversions from f64 keep a NaN's sign and upper bits, and quiet it (seen on an H200)."""
    nan = np.isnan(a)
    if not np.count_nonzero(nan):
        return bits
    word = bits.dtype.type
    fraction = (a.view(U64) >> np.uint64(52 - form.fraction)).astype(bits.dtype)
    fraction &= word((1 << form.fraction) - 1)
    quiet = word(form.nan & ~((1 << form.fraction - 1) - 1))
    sign = np.signbit(a) * word(form.nan + 1)
    return np.where(nan, sign | quiet | fraction, bits)


def _rounded_to_whole(kind: str, rounding: str) -> Callable:
    """`cvt.rni.f32.f32` and its like: whole numbers of the same type."""
    compute = _TO_INTEGER[rounding]
    if kind == "f32":
        return lambda a: canonical(compute(a))
    if kind == "f64":
        return compute
    widen, dtype, form = _to_double(kind), TYPES[kind], FORMATS[kind]
    return lambda a: encode(compute(widen(a)), form).view(dtype)


def _saturate_float(kind: str) -> Callable:
    if kind in ("f32", "f64"):
        return saturated
    return lambda a: clamp(a.view(U16), HALVES[kind]).view(TYPES[kind])


@form("cvt.f32.f32")
def _copy() -> Operation:
    return signature(np.copy, "f32", "f32")  # also of a NaN (seen on an H200)


@form("cvt.(*.*)")
def _to_float(words: str) -> Operation | None:
    """Integers and floats to a float type, rounded as the first modifier says."""
    *flags, to, source = words.split(".")
    if to not in FLOATS or source not in FLOATS | INTEGERS:
        return None
    mode = flags[0] if flags and flags[0] in MODES else "rn"
    if flags and flags[0] in _TO_INTEGER:
        if to != source:
            return None
        convert = _rounded_to_whole(to, flags[0])
    else:
        convert = _rounded_to_float(to, source, mode, "ftz" in flags)
    rest = set(flags) - MODES - set(_TO_INTEGER)
    if not rest <= {"ftz", "sat", "relu"} or ("relu" in rest and to not in HALVES):
        return None
    steps = [convert]
    if "ftz" in rest and source == "f32" and to != "f16":  # as seen on an H200
        steps.insert(0, flush)
    if "sat" in rest:
        steps.append(_saturate_float(to))
    if "relu" in rest:
        steps.append(lambda a: relu(a.view(U16), HALVES[to]).view(TYPES[to]))
    chained = functools.reduce(lambda first, second: lambda a: second(first(a)), steps)
    return signature(chained, source, to)
