"""f32 and f64 instructions that no rounding mode touches, and the approximations.

PTX ISA 9.0, "Floating Point Instructions": `abs`, `neg`, `min`, `max`, `copysign`, `testp`, and
`rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`. The approximations are computed in
float64 and rounded, closer than the hardware's own error of a few units in the last place.
"""

from collections.abc import Callable

import numpy as np

from .directed import DIRECTED
from .floats import canonical, flush, flushing
from .instruction_types import F32, F64, TYPES, U32, U64, Operation, form, signature, uniform
from .rounding import FORMATS, MODE, encode

_BITS = {F32: U32, F64: U64}


def _in_double(compute: Callable) -> Callable:
    return lambda a: canonical(compute(a.astype(F64)).astype(F32))


def _reduced(a: np.ndarray) -> np.ndarray:
    """The angle that the hardware takes the sine of (seen on an H200, to 3e-7 everywhere).

    It multiplies by 1/(2 pi) in f32, rounding towards zero, and keeps the fraction: angles of many
    turns come out wrong.
    """
    turns = encode(a * float(np.float32(0.15915494)), FORMATS["f32"], "rz").view(F32).astype(F64)
    fraction = turns - np.rint(turns)
    return 2 * np.pi * np.where(np.equal(fraction, 0), np.copysign(0.0, a), fraction)


_APPROXIMATE: dict[str, Callable] = {
    # Correctly rounded in float32 already, since NumPy divides and takes roots as IEEE 754 asks.
    "rcp": lambda a: canonical(np.divide(np.float32(1), a)),
    "sqrt": lambda a: canonical(np.sqrt(a)),
    "rsqrt": _in_double(lambda a: 1.0 / np.sqrt(a)),
    "sin": _in_double(lambda a: np.sin(_reduced(a))),
    "cos": _in_double(lambda a: np.cos(_reduced(a))),
    "lg2": _in_double(np.log2),
    "ex2": _in_double(np.exp2),
    "tanh": _in_double(np.tanh),
}


@form(
    f"({'|'.join(_APPROXIMATE)}).(approx)[.ftz].f32",
    f"(rcp|sqrt).({MODE})[.ftz].f32",
)
def _function(opcode: str, mode: str, ftz: str | None) -> Operation:
    evaluate = _APPROXIMATE[opcode]
    if mode not in ("approx", "rn"):
        evaluate = DIRECTED[opcode](mode, bool(ftz))
    return uniform(flushing(evaluate) if ftz else evaluate, "f32", 1)


_SIGN = {"abs": np.absolute, "neg": np.negative}


@form("(abs|neg).f64")
def _sign_f64(opcode: str) -> Operation:
    return uniform(_SIGN[opcode], "f64", 1)


@form("(abs|neg)[.ftz].f32")
def _sign_f32(opcode: str, ftz: str | None) -> Operation:
    change = _SIGN[opcode]
    finish = flush if ftz else lambda a: a
    return uniform(lambda a: finish(canonical(change(a))), "f32", 1)


def _extremum(opcode: str, nan: bool) -> Callable:
    """min or max of f32 or f64, by IEEE 754-2008 but for -0 < +0; `nan`: a NaN wins."""
    least = opcode == "min"
    pick, zero = (np.minimum, np.bitwise_or) if least else (np.maximum, np.bitwise_and)

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = pick(a, b)
        magnitudes = np.absolute(result)
        smallest = magnitudes.item(magnitudes.argmin())
        if smallest > 0:
            return result
        if smallest != smallest:
            if not nan:  # not `fmin`, which treats a signalling NaN now this way, now that
                result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
            if result.dtype == F32:
                result = canonical(result)
        bits = _BITS[result.dtype]
        zeros = np.equal(a, 0) & np.equal(b, 0)  # NumPy takes -0 and +0 as equal
        if np.count_nonzero(zeros):
            np.copyto(result.view(bits), zero(a.view(bits), b.view(bits)), where=zeros)
        return result

    return evaluate


@form("(min|max).f64")
def _min_max_f64(opcode: str) -> Operation:
    return uniform(_extremum(opcode, False), "f64", 2)


@form("(min|max)[.ftz][.NaN][.xorsign.abs].f32")
def _min_max_f32(opcode: str, ftz: str | None, nan: str | None, signs: str | None) -> Operation:
    """`min` and `max` with `.ftz`, `.NaN` and `.xorsign.abs` (PTX ISA 9.0, `min`, `max`)."""
    pick = _extremum(opcode, bool(nan))

    def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = pick(np.absolute(a), np.absolute(b)) if signs else pick(a, b)
        if signs:
            sign = (a.view(U32) ^ b.view(U32)) & np.uint32(1 << 31)
            result = canonical((result.view(U32) | sign).view(F32))
        # Flushing keeps the order, so that flushing the result is enough.
        return flush(result) if ftz else result

    return uniform(evaluate if ftz or signs else pick, "f32", 2)


@form("copysign.(f32|f64)")
def _copysign(kind: str) -> Operation:
    """`copysign`: the sign of a on the magnitude of b."""
    return uniform(lambda a, b: np.copysign(b, a), kind, 2)


@form("testp.(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)")
def _testp(prop: str, kind: str) -> Operation:
    """`testp`: is the operand finite, infinite, a number, no number, normal or subnormal."""
    tiny = np.finfo(TYPES[kind]).tiny
    tests: dict[str, Callable] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        # zero counts as normal (seen on an H200)
        "normal": lambda a: np.isfinite(a) & ((np.absolute(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.absolute(a) < tiny),
    }
    return signature(tests[prop], kind, "pred")
