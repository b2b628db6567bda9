"""Inputs for FlashAttention, the float64 reference, bf16 without a NumPy type for it."""

import numpy as np

from ..simulator.isa.halves import narrow_to_bf16
from ..simulator.isa.rounding import widen_bf16
from .attention import exponentials, normal, on_host

# What the relative error of a right result stays under, by element: some units in the last place,
# 2^-11 of fp16 and 2^-8 of bf16, to which the weights and the output are rounded.
TOLERANCE = {"half": 5e-3, "nv_bfloat16": 2e-2}


def make_inputs(
    b: int, h: int, n: int, d: int, element: str = "half", seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V of shape [b, h, n, d], standard normal, as fp16 or as bits of bf16.

    Raises:
        ValueError: a size is under 1, or `element` is neither `half` nor `nv_bfloat16`.
    """
    if element not in TOLERANCE:
        raise ValueError(f"element is half or nv_bfloat16, not {element!r}.")
    arrays = normal((b, h, n, d), seed)
    return tuple(to_bf16(x) if element == "nv_bfloat16" else x.astype(np.float16) for x in arrays)


def reference(Q, K, V, layout: str = "bhnd", causal: bool = False) -> np.ndarray:
    """softmax(Q Kᵀ / √d) V of every head in float64, in the layout of its inputs.

    Args:
        Q, K, V: [b, h, n, d] or, with layout="bnhd", [b, n, h, d]; of NumPy or of a device; any
            float type, or bits of bf16 as uint16.
        causal: whether a row sees only the keys up to its own, as in PyTorch's `is_causal`.
    """
    Q, K, V = (to_float(x) for x in (Q, K, V))
    if layout == "bnhd":
        Q, K, V = (x.transpose(0, 2, 1, 3) for x in (Q, K, V))
    out = np.empty(Q.shape)
    for head in np.ndindex(Q.shape[:2]):  # one at a time: S of all heads may not fit into memory
        S, P = exponentials(Q[head], K[head])
        if causal:  # the largest score of a row may be one that it does not see
            S[np.triu_indices_from(S, 1)] = -np.inf
            P = np.exp(S - S.max(axis=1, keepdims=True))
        out[head] = P @ V[head] / P.sum(axis=1, keepdims=True)
    return out.transpose(0, 2, 1, 3) if layout == "bnhd" else out


def flops(b: int, h: int, n: int, d: int, causal: bool = False) -> int:
    """Floating-point operations of the two products, 4 b h n² d: what TFLOPS are counted by.

    With `causal` half of them, as the FlashAttention papers count.
    """
    return 4 * b * h * n * n * d // (2 if causal else 1)


def to_bf16(x) -> np.ndarray:
    """The bits of float32 values rounded to bf16 (to nearest, ties to even), as uint16."""
    return narrow_to_bf16(np.ascontiguousarray(x, np.float32))


def from_bf16(bits) -> np.ndarray:
    """float32 values of bits of bf16 in uint16."""
    return widen_bf16(np.asarray(bits, np.uint16))


def to_float(x) -> np.ndarray:
    """float64 values of fp16, of bf16 or of bits of bf16; of NumPy or of a device."""
    x = on_host(x)
    return (from_bf16(x) if x.dtype == np.uint16 else x).astype(np.float64)
