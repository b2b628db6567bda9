"""Attention for one head: inputs, the float64 reference, and the error of a result."""

from typing import NamedTuple

import numpy as np

from .ladder import rung  # noqa: F401 (chapters take all that is attention's from here)

# What `relative_error` of an fp32 rung's output stays under, for standard normal inputs: some 16
# times the rounding error of fp32, 2^-23, which the sums over d and N gather.
TOLERANCE = 2e-6


class Reference(NamedTuple):
    """What attention gives in float64: scores S and weights P, [N, N], and the output O, [N, d]."""

    S: np.ndarray
    P: np.ndarray
    O: np.ndarray  # noqa: E741 (the field's letter)


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up: how many pieces of b cover a."""
    return -(-a // b)


def make_inputs(N: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V of shape [N, d], float32, standard normal; the same for the same seed.

    Raises:
        ValueError: N or d is under 1.
    """
    return normal((N, d), seed)


def normal(shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three arrays of a shape, float32, standard normal; the same for the same seed.

    Raises:
        ValueError: a size is under 1.
    """
    if min(shape) < 1:
        raise ValueError(f"Sizes are 1 or more, not {', '.join(map(str, shape))}.")
    draw = np.random.default_rng(seed).standard_normal
    return tuple(draw(shape, dtype=np.float32) for _ in range(3))


def reference(Q, K, V) -> Reference:
    """O = softmax(Q Kᵀ / √d) V in float64, with S and P on the way.

    The largest score of each row is subtracted before the exponential, which changes nothing in
    exact arithmetic and keeps it from overflowing. Formula: Vaswani et al., "Attention Is All You
    Need", 2017, equation 1.

    Args:
        Q, K, V: [N, d]; NumPy or device arrays.
    """
    Q, K, V = (on_host(x).astype(np.float64) for x in (Q, K, V))
    S, P = exponentials(Q, K)
    P /= P.sum(axis=1, keepdims=True)
    return Reference(S, P, P @ V)


def exponentials(Q: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores S = Q Kᵀ / √d, [N, N], and exp of each less the largest of its row."""
    S = Q @ K.T / np.sqrt(Q.shape[1])
    return S, np.exp(S - S.max(axis=1, keepdims=True))


def relative_error(result, expected) -> float:
    """How far a result is from `expected`: ‖result − expected‖ / ‖expected‖, Frobenius norms.

    Infinite where the result has a NaN or an infinity, so that an element that no thread wrote
    cannot pass.

    Args:
        result, expected: arrays of one shape, NumPy or device.

    Raises:
        ValueError: the shapes differ, or there are no elements.
    """
    result, expected = on_host(result), on_host(expected)
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


def on_host(x) -> np.ndarray:
    """A NumPy array of `x`, copied from the device if that is where it lies."""
    return np.asarray(x.get() if hasattr(x, "get") else x)
