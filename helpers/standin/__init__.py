"""The stand-in for CuPy on a machine without a GPU.

It has the calls that the chapters use, with CuPy's signatures. Arrays are NumPy's in the host's
memory (`arrays`), kernels run on the simulator (`kernels`), and random numbers follow CuPy's
distributions but not its streams. Where a GPU answers, `helpers.cp` is CuPy itself and nothing of
this is loaded.
"""

from __future__ import annotations

import builtins as _builtins
import sys as _sys

import numpy as _np

from . import cuda, linalg, missing, random, testing
from .arrays import from_either as _from_either
from .arrays import ndarray
from .arrays import on_device as _on_device
from .arrays import upload as _upload
from .memory_pools import get_default_memory_pool, get_default_pinned_memory_pool
from .raw_kernels import RawKernel, RawModule

__version__ = f"stand-in (NumPy {_np.__version__})"

_SAME = """
    bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp float16 float32 float64 complex64
    complex128 dtype finfo iinfo result_type promote_types can_cast floating integer number
    newaxis pi e inf nan ndim shape size isscalar s_ index_exp broadcast_shapes
""".split()

# These take NumPy arrays too, as CuPy's do.
_FROM_EITHER = """
    allclose arange empty empty_like eye full full_like identity indices linspace logspace
    meshgrid ones ones_like tri zeros zeros_like
""".split()

_ON_DEVICE = """
    abs absolute add all any append arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
    argmin argsort argwhere around array_equal array_split atleast_1d atleast_2d atleast_3d
    average bincount bitwise_and bitwise_or bitwise_xor broadcast_arrays broadcast_to cbrt ceil
    clip column_stack concatenate conj copy copysign copyto cos cosh count_nonzero cumprod cumsum
    deg2rad diag diagonal diff digitize divide divmod dot dsplit dstack einsum equal exp exp2
    expand_dims expm1 fabs fill_diagonal flatnonzero flip fliplr flipud float_power floor
    floor_divide fmax fmin fmod frexp gcd greater greater_equal histogram hsplit hstack hypot
    inner interp invert isclose isfinite isin isinf isnan isneginf isposinf kron lcm ldexp
    left_shift less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul max maximum may_share_memory mean median min minimum mod modf moveaxis
    multiply nan_to_num nanargmax nanargmin nanmax nanmean nanmin nanstd nansum nanvar negative
    nextafter nonzero not_equal outer pad percentile permute_dims positive power prod ptp quantile
    rad2deg ravel real reciprocal remainder repeat reshape right_shift rint roll rollaxis rot90
    round searchsorted shares_memory sign signbit sin sinc sinh sort split sqrt square squeeze
    stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose
    tril tril_indices triu triu_indices true_divide trunc unique unravel_index var vdot vsplit
    vstack where
""".split()  # fmt: skip

globals().update({name: getattr(_np, name) for name in _SAME})
globals().update({name: _from_either(getattr(_np, name)) for name in _FROM_EITHER})
globals().update({name: _on_device(getattr(_np, name)) for name in _ON_DEVICE})


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    """A device array with the values of `obj`; always a copy unless `copy` is false."""
    if not copy and ndmin == 0:
        return asarray(obj, dtype, order)
    return _upload(obj, dtype, order, ndmin)


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    """`a` on the device: a device array stays what it is, anything else is copied there."""
    if isinstance(a, ndarray) and not copy:
        return _np.asanyarray(a, dtype=dtype, order=order)
    return _upload(a, dtype, order)


def asanyarray(a, dtype=None, order=None, *, blocking=False):
    """The same as `asarray`."""
    return asarray(a, dtype, order)


def ascontiguousarray(a, dtype=None):
    """`a` on the device, row-major and without gaps, as a kernel needs it."""
    return asarray(a, dtype, "C")


def asfortranarray(a, dtype=None):
    """`a` on the device, column-major and without gaps."""
    return asarray(a, dtype, "F")


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """`a` on the host: a device array is copied, a NumPy array is returned as it is."""
    if isinstance(a, ndarray):
        return a.get(order=order, out=out)
    if out is not None:
        out[...] = a
        return out
    return _np.asarray(a, order=order)


def get_array_module(*args):
    """`cp` if any argument is a device array, otherwise NumPy."""
    if _builtins.any(isinstance(a, ndarray) for a in args):
        return _sys.modules[__name__]
    return _np


def __getattr__(name: str):
    raise missing.unknown("cp", name, __all__)


__all__ = [
    *_SAME,
    *_FROM_EITHER,
    *_ON_DEVICE,
    "RawKernel",
    "RawModule",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "asnumpy",
    "cuda",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "linalg",
    "ndarray",
    "random",
    "testing",
]


def __dir__() -> list[str]:
    return sorted(__all__)
