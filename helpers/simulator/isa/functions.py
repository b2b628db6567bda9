"""f32 and f64 instructions that no rounding mode touches, and the approximations.

PTX ISA 9.0, "Floating Point Instructions": `abs`, `neg`, `min`, `max`, `copysign`, `testp`, and
`rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`. The approximations are computed in
float64 and rounded, closer than the hardware's own error of a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .directed import DIRECTED
from .floats import canonical, flush, flushing
from .instruction_types import Builder, Operation, signature
from .rounding import F32, F64, FORMATS, MODES, U32, U64, encode

_BITS = {F32: U32, F64: U64}


def _in_double(compute: Callable) -> Callable:
    return lambda a: canonical(compute(a.astype(F64)).astype(F32))


def _reciprocal_root(a: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt(a)


def _reduced(a: np.ndarray) -> np.ndarray:
    """The angle that the hardware takes the sine of (seen on an H200, to 3e-7 everywhere).

    It multiplies by 1/(2 pi) in f32, rounding towards zero, and keeps the fraction: angles of many
    turns come out wrong.
    """
    turns = encode(a * float(np.float32(0.15915494)), FORMATS["f32"], "rz").view(F32).astype(F64)
    fraction = turns - np.rint(turns)
    return 2 * np.pi * np.where(np.equal(fraction, 0), np.copysign(0.0, a), fraction)


# Correctly rounded in float32 already, since NumPy divides and takes roots as IEEE 754 asks.
_RECIPROCAL = lambda a: canonical(np.divide(np.float32(1), a))  # noqa: E731
_ROOT = lambda a: canonical(np.sqrt(a))  # noqa: E731

_APPROXIMATE: dict[str, Callable] = {
    "rcp": _RECIPROCAL,
    "sqrt": _ROOT,
    "rsqrt": _in_double(_reciprocal_root),
    "sin": _in_double(lambda a: np.sin(_reduced(a))),
    "cos": _in_double(lambda a: np.cos(_reduced(a))),
    "lg2": _in_double(np.log2),
    "ex2": _in_double(np.exp2),
    "tanh": _in_double(np.tanh),
}


def _function(opcode: str) -> Builder:
    approximate = _APPROXIMATE[opcode]

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`opcode.approx{.ftz}.f32`, and `rcp` and `sqrt` with a rounding mode."""
        match modifiers:
            case ("approx", *flags, "f32") if flags in ([], ["ftz"]):
                evaluate = approximate
            case (mode, *flags, "f32") if flags in ([], ["ftz"]) and mode in MODES:
                if opcode not in ("rcp", "sqrt"):
                    return None
                evaluate = approximate if mode == "rn" else DIRECTED[opcode](mode, bool(flags))
            case _:
                return None
        return signature(flushing(evaluate) if flags else evaluate, "f32", "f32")

    return build


def _abs(modifiers: tuple[str, ...]) -> Operation | None:
    match modifiers:
        case ("f32",):
            return signature(lambda a: canonical(np.absolute(a)), "f32", "f32")
        case ("ftz", "f32"):
            return signature(lambda a: flush(canonical(np.absolute(a))), "f32", "f32")
        case ("f64",):
            return signature(np.absolute, "f64", "f64")
    return None


def _neg(modifiers: tuple[str, ...]) -> Operation | None:
    match modifiers:
        case ("f32",):
            return signature(lambda a: canonical(np.negative(a)), "f32", "f32")
        case ("ftz", "f32"):
            return signature(lambda a: flush(canonical(np.negative(a))), "f32", "f32")
        case ("f64",):
            return signature(np.negative, "f64", "f64")
    return None


def _min_max(opcode: str) -> Builder:
    pick, zero = {
        "min": (np.minimum, np.bitwise_or),
        "max": (np.maximum, np.bitwise_and),
    }[opcode]

    def plain(nan: bool) -> Callable:
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

    def build(modifiers: tuple[str, ...]) -> Operation | None:
        """`min` and `max` with `.ftz`, `.NaN` and `.xorsign.abs` (PTX ISA 9.0, `min`, `max`)."""
        *flags, kind = modifiers
        if kind == "f64" and not flags:
            return signature(plain(False), "f64 f64", "f64")
        rest = [flag for flag in flags if flag not in ("ftz", "NaN")]
        if kind != "f32" or rest not in ([], ["xorsign", "abs"]):
            return None
        evaluate = plain("NaN" in flags)
        if rest:
            unsigned = evaluate

            def evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
                result = unsigned(np.absolute(a), np.absolute(b))
                signs = (a.view(U32) ^ b.view(U32)) & np.uint32(1 << 31)
                return canonical((result.view(U32) | signs).view(F32))

        if "ftz" in flags:
            unflushed = evaluate
            # Flushing keeps the order, so that flushing the result is enough.
            evaluate = lambda a, b: flush(unflushed(a, b))  # noqa: E731
        return signature(evaluate, "f32 f32", "f32")

    return build


def _copysign(modifiers: tuple[str, ...]) -> Operation | None:
    """`copysign`: the sign of a on the magnitude of b."""
    match modifiers:
        case ("f32" | "f64" as kind,):
            return signature(lambda a, b: np.copysign(b, a), f"{kind} {kind}", kind)
    return None


def _testp(modifiers: tuple[str, ...]) -> Operation | None:
    """`testp`: is the operand finite, infinite, a number, no number, normal or subnormal."""
    match modifiers:
        case (prop, "f32" | "f64" as kind):
            tiny = np.finfo(np.float32 if kind == "f32" else np.float64).tiny
            tests: dict[str, Callable] = {
                "finite": np.isfinite,
                "infinite": np.isinf,
                "number": lambda a: ~np.isnan(a),
                "notanumber": np.isnan,
                # zero counts as normal (seen on an H200)
                "normal": lambda a: np.isfinite(a) & ((np.absolute(a) >= tiny) | (a == 0)),
                "subnormal": lambda a: (a != 0) & (np.absolute(a) < tiny),
            }
            if prop in tests:
                return signature(tests[prop], kind, "pred")
    return None


BUILDERS: dict[str, Builder] = {
    **{opcode: _function(opcode) for opcode in _APPROXIMATE},
    "abs": _abs,
    "neg": _neg,
    "min": _min_max("min"),
    "max": _min_max("max"),
    "copysign": _copysign,
    "testp": _testp,
}
