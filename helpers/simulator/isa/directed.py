"""f32 arithmetic in the rounding modes rz, rm and rp (PTX ISA 9.0, "Rounding Modifiers")."""

from collections.abc import Callable

import numpy as np

from .instruction_types import F32, F64, U32
from .rounding import FORMATS, encode, to_odd, two_sum

_SMALL = 2.0**-126


def _rounded(exact: Callable) -> Callable[[str, bool], Callable]:
    """An f32 instruction from its float64 value (exact, or rounded to odd)."""

    def make(mode: str, ftz: bool) -> Callable:
        return lambda *inputs: encode(exact(*inputs), FORMATS["f32"], mode, ftz).view(F32)

    return make


def _sum(x: np.ndarray, y: np.ndarray, mode: str, ftz: bool) -> np.ndarray:
    """x + y in f32; towards minus infinity a zero is -0 unless both are +0."""
    total = to_odd(*two_sum(x, y))
    if mode == "rm":
        zero = np.equal(total, 0)
        if np.count_nonzero(zero):
            total = np.where(zero & (np.signbit(x) | np.signbit(y)), -0.0, total)
    return encode(total, FORMATS["f32"], mode, ftz).view(F32)


def _directed_sum(sign: float) -> Callable[[str, bool], Callable]:
    def make(mode: str, ftz: bool) -> Callable:
        return lambda a, b: _sum(a.astype(F64), sign * b.astype(F64), mode, ftz)

    return make


def _directed_fma(mode: str, ftz: bool) -> Callable:
    beyond = np.less if mode == "rp" else np.greater

    def evaluate(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        product, addend = a.astype(F64) * b.astype(F64), c.astype(F64)
        total = product + addend
        nearest = total.astype(F32)
        magnitudes = np.absolute(nearest)
        if mode == "rz" or not magnitudes.item(magnitudes.argmin()) > _SMALL:
            return _sum(product, addend, mode, ftz)
        # `expf` rounds down in every call: the usual case, without zeros, subnormals and NaNs.
        back = nearest.astype(F64)
        wrong = beyond(back, total)
        exact = np.equal(back, total)
        if np.count_nonzero(exact):
            x, y = (np.broadcast_to(part, total.shape)[exact] for part in (product, addend))
            wrong[exact] = beyond(0, two_sum(x, y)[1])
        bits = nearest.view(U32)
        # The neighbour that is larger by value has larger bits where positive, else smaller.
        up = np.signbit(nearest) if mode == "rm" else ~np.signbit(nearest)
        bits += wrong & up
        bits -= wrong & ~up
        return nearest

    return evaluate


# opcode -> maker of the instruction in a rounding mode, with results flushed or not.
# A quotient of 24-bit numbers that is no 25-bit number is further than 2^-50 of itself away from
# one, and a square root likewise, so their rounding to float64 never crosses it.
DIRECTED: dict[str, Callable[[str, bool], Callable]] = {
    "add": _directed_sum(1.0),
    "sub": _directed_sum(-1.0),
    "mul": _rounded(lambda a, b: a.astype(F64) * b.astype(F64)),
    "fma": _directed_fma,
    "div": _rounded(lambda a, b: a.astype(F64) / b.astype(F64)),
    "rcp": _rounded(lambda a: 1.0 / a.astype(F64)),
    "sqrt": _rounded(lambda a: np.sqrt(a.astype(F64))),
}
