"""Conversions between types (PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from helpers.simulator.floats import canonical
from helpers.simulator.instruction_types import (
    SIGNED,
    TYPES,
    UNSIGNED,
    Builder,
    Operation,
    signature,
)
from helpers.simulator.integers import saturate

_INTEGERS = SIGNED | UNSIGNED
_TO_INTEGER: dict[str, Callable] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _float_to_integer(rounding: str, to: str, source: str) -> Callable:
    dtype, compute = TYPES[to], _TO_INTEGER[rounding]
    limits = np.iinfo(dtype)
    nan = 0 if source != "f64" and dtype.itemsize < 8 else 1 << (dtype.itemsize * 8 - 1)
    low, beyond = float(limits.min), float(limits.max + 1)

    def evaluate(a: np.ndarray) -> np.ndarray:
        whole = compute(a.astype(np.float64))
        inside = (whole >= low) & (whole < beyond)
        result = np.where(inside, whole, 0).astype(dtype)
        if np.count_nonzero(inside) != inside.size:
            result = np.where(whole < low, dtype.type(limits.min), result)
            result = np.where(whole >= beyond, dtype.type(limits.max), result)
            bits = np.array(nan, TYPES["u" + to[1:]]).view(dtype)
            result = np.where(np.isnan(whole), bits, result)
        return result

    return evaluate


def _cvt(modifiers: tuple[str, ...]) -> Operation | None:
    if len(modifiers) < 2 or not all(kind in TYPES for kind in modifiers[-2:]):
        return None
    *flags, to, source = modifiers
    if to in _INTEGERS and source in _INTEGERS:
        if "sat" in flags:
            return signature(lambda a: saturate(a, to), source, to)
        return signature(lambda a: a.astype(TYPES[to]), source, to)
    if to in _INTEGERS and source in ("f16", "f32", "f64") and flags[:1]:
        if flags[0] in _TO_INTEGER:
            return signature(_float_to_integer(flags[0], to, source), source, to)
        return None
    if to in ("f16", "f32", "f64") and flags in ([], ["rn"], ["ftz"], ["rn", "ftz"]):
        if source in _INTEGERS or source in ("f16", "f32", "f64"):
            if to == "f32":
                return signature(lambda a: canonical(a.astype(np.float32)), source, to)
            return signature(lambda a: a.astype(TYPES[to]), source, to)
    return None


BUILDERS: dict[str, Builder] = {"cvt": _cvt}
