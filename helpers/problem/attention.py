"""Attention for one head: inputs, the float64 reference, the error of a result, and the ladder of
kernels that compute it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.source import KernelError
from . import ladder
from .flash import FLASH, FlashRung
from .ladder import Rung, cdiv

__all__ = [
    "LADDER",
    "TOLERANCE",
    "FlashRung",
    "Reference",
    "Rung",
    "cdiv",
    "make_inputs",
    "memory",
    "reference",
    "relative_error",
    "rung",
]

# Every rung, from the naive kernels up. Those of chapters 02 to 07 take one head in fp32, [N, d],
# those that follow [batch, heads, n, d] in fp16 or bf16.
LADDER: tuple[Rung | FlashRung, ...] = (*ladder.LADDER, *FLASH)

# What `relative_error` of an fp32 rung's output stays under, for standard normal inputs: some 16
# times the rounding error of fp32, 2^-23, which the sums over d and N gather.
TOLERANCE = 2e-6


class Reference(NamedTuple):
    """What attention gives in float64: scores S and weights P, [N, N], and the output O, [N, d]."""

    S: np.ndarray
    P: np.ndarray
    O: np.ndarray  # noqa: E741 (the field's letter)


def rung(name: str) -> Rung | FlashRung:
    """The rung of that name.

    Raises:
        KernelError: there is none.
    """
    for one in LADDER:
        if one.name == name:
            return one
    listed = ", ".join(one.name for one in LADDER)
    raise KernelError(f"There is no rung {name!r}; the ladder has {listed}.")


def make_inputs(N: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V of shape [N, d], float32, standard normal; the same for the same seed.

    Raises:
        ValueError: N or d is under 1.
    """
    if N < 1 or d < 1:
        raise ValueError(f"N and d are 1 or more, not {N} and {d}.")
    normal = np.random.default_rng(seed).standard_normal
    return tuple(normal((N, d), dtype=np.float32) for _ in range(3))


def reference(Q, K, V) -> Reference:
    """O = softmax(Q Kᵀ / √d) V in float64, with S and P on the way.

    The largest score of each row is subtracted before the exponential, which changes nothing in
    exact arithmetic and keeps it from overflowing. Formula: Vaswani et al., "Attention Is All You
    Need", 2017, equation 1.

    Args:
        Q, K, V: [N, d]; NumPy or device arrays.
    """
    Q, K, V = (_host(x).astype(np.float64) for x in (Q, K, V))
    S = Q @ K.T / np.sqrt(Q.shape[1])
    P = np.exp(S - S.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return Reference(S, P, P @ V)


def relative_error(result, expected) -> float:
    """How far a result is from `expected`: ‖result − expected‖ / ‖expected‖, Frobenius norms.

    Infinite where the result has a NaN or an infinity, so that an element that no thread wrote
    cannot pass.

    Args:
        result, expected: arrays of one shape, NumPy or device.

    Raises:
        ValueError: the shapes differ, or there are no elements.
    """
    result, expected = _host(result), _host(expected)
    if result.shape != expected.shape:
        raise ValueError(f"The result has shape {result.shape}, and {expected.shape} is expected.")
    if not result.size:
        raise ValueError("There are no elements to compare.")
    result = result.astype(np.float64)
    if not np.isfinite(result).all():
        return float("inf")
    deviation, scale = np.linalg.norm(result - expected), np.linalg.norm(expected)
    if not scale:
        return float("inf") if deviation else 0.0
    return float(deviation / scale)


def memory(N: int, d: int, itemsize: int = 4) -> dict[str, int]:
    """Bytes of each matrix of one head; `itemsize` is the bytes of an element, 4 for fp32."""
    return {
        **dict.fromkeys(("Q", "K", "V", "O"), N * d * itemsize),
        **dict.fromkeys(("S", "P"), N * N * itemsize),
    }


def _host(x) -> np.ndarray:
    """A NumPy array of `x`, copied from the device if that is where it lies."""
    return np.asarray(x.get() if hasattr(x, "get") else x)
