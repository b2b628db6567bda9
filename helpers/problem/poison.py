"""What arrays are filled with before a kernel runs, so that what it does not write is seen."""

import numpy as np

UNSIGNED = 0xA5


def poison(array: np.ndarray) -> None:
    """Fill an array with what no kernel writes: NaN, or the smallest integer."""
    if array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).min if array.dtype.kind == "i" else UNSIGNED)


def poisoned(array: np.ndarray) -> np.ndarray:
    """Where an array still holds its poison, as a boolean array of its shape.

    NumPy's NaN has other bits than the NaN that a GPU computes (0x7fc00000, and 0x7fffffff for
    float32; PTX ISA, "Floating-Point Instructions"), so the two can be told apart.
    """
    kind = array.dtype.kind
    if kind == "i":
        return array == np.iinfo(array.dtype).min
    if kind == "u":
        return array == UNSIGNED
    if kind != "f" and array.dtype.name != "bfloat16":
        return np.isnan(array.astype(np.complex128))
    bits = np.dtype(f"u{array.dtype.itemsize}")
    same = np.ascontiguousarray(array).view(bits).reshape(array.shape)
    return same == np.array([np.nan], array.dtype).view(bits)[0]
