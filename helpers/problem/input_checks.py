"""Whether Q, K and V are what the kernels of a rung take, in one sentence if they are not."""

from collections.abc import Sequence

import numpy as np

from ..kernels.source import KernelError

_COUNTS = {2: "two", 4: "four"}


def check_inputs(
    arrays: Sequence, layout: str, dtypes: Sequence[str], kind: str, alignment: int, more: str = ""
) -> None:
    """Check Q, K and V.

    Args:
        arrays: the three, of NumPy or of a device.
        layout: their dimensions, such as `[N, d]`.
        dtypes: names of the types that their elements may have; the first is the usual one.
        kind: what these are called together.
        alignment: what their addresses are a multiple of, in bytes.
        more: what else to say of a wrong shape.

    Raises:
        KernelError: one does not fit.
    """
    dimensions = layout.count(",") + 1
    first = arrays[0]
    for name, array in zip("QKV", arrays, strict=True):
        if not all(hasattr(array, a) for a in ("shape", "dtype", "flags")):
            raise KernelError(
                f"{name} is a {type(array).__name__}: pass an array of {kind} of shape {layout}."
            )
        if len(array.shape) != dimensions or 0 in array.shape:
            raise KernelError(
                f"{name} has the shape {tuple(array.shape)}: these kernels take "
                f"{_COUNTS[dimensions]} dimensions, {layout}, each at least 1{more}."
            )
        if array.dtype.name not in dtypes:
            raise KernelError(
                f"{name} is {array.dtype}, and these kernels are for {kind}: pass "
                f"{name}.astype(np.{dtypes[0]})."
            )
        if not array.flags.c_contiguous:
            raise KernelError(
                f"{name} is not contiguous in memory, row after row: pass "
                f"cp.ascontiguousarray({name})."
            )
        if tuple(array.shape) != tuple(first.shape) or array.dtype != first.dtype:
            raise KernelError(
                f"{name} is {tuple(array.shape)} of {array.dtype} and Q {tuple(first.shape)} of "
                f"{first.dtype}: all three have one shape and one type."
            )
        if _misaligned(array, alignment):
            raise KernelError(
                f"{name} does not start at a multiple of {alignment} bytes, which loads of 16 "
                f"bytes need: pass {name}.copy()."
            )


def _misaligned(array, alignment: int) -> bool:
    """Whether an array starts at an address that a GPU cannot load a float4 from.

    A device array is where its address says; one of NumPy will be where a copy of the array that
    owns its memory begins, plus its offset there.
    """
    if not isinstance(array, np.ndarray):
        return bool(array.data.ptr % alignment)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start, own = (x.__array_interface__["data"][0] for x in (root, array))
    return bool((own - start) % alignment)
