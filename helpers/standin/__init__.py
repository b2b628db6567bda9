"""The stand-in for CuPy on a machine without a GPU.

It has the calls that the chapters use, with CuPy's signatures. Arrays are NumPy's in the host's
memory (`arrays`), kernels run on the simulator (`kernels`), and random numbers follow CuPy's
distributions but not its streams. Where a GPU answers, `helpers.cp` is CuPy itself and nothing of
this is loaded.
"""

import builtins as _builtins
import sys as _sys

import numpy as _np

from . import cuda, linalg, missing, random, testing
from .arrays import from_either as _from_either
from .arrays import ndarray, ufunc
from .arrays import of_numpy as _of_numpy
from .arrays import upload as _upload
from .memory_pools import get_default_memory_pool, get_default_pinned_memory_pool
from .raw_kernels import RawKernel, RawModule

__version__ = f"stand-in (NumPy {_np.__version__})"

_SAME = """
    bool bool_ long ulong byte short intc int_ longlong ubyte ushort uintc uint ulonglong int8
    int16 int32 int64 uint8 uint16 uint32 uint64 intp uintp half single double float16 float32
    float64 csingle cdouble complex64 complex128 finfo iinfo result_type promote_types can_cast
    issubdtype isdtype min_scalar_type common_type mintypecode generic floating complexfloating
    inexact integer signedinteger unsignedinteger number euler_gamma newaxis pi e inf nan ndim
    shape size isscalar s_ index_exp broadcast_shapes binary_repr base_repr
    format_float_positional format_float_scientific get_printoptions set_printoptions
    printoptions isfortran iscomplexobj isrealobj
""".split()

# These take NumPy arrays too, as CuPy's do.
_FROM_EITHER = """
    allclose arange bartlett blackman empty empty_like eye frombuffer fromfile fromfunction
    fromiter fromstring full full_like genfromtxt hamming hanning identity indices kaiser linspace
    load loadtxt logspace meshgrid ones ones_like tri zeros zeros_like
""".split()

_ON_DEVICE = """
    abs absolute acos acosh add all amax amin angle any append apply_along_axis apply_over_axes
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort
    argwhere around array2string array_equal array_equiv array_repr array_split array_str asin
    asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bincount bitwise_and
    bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor broadcast_arrays broadcast_to cbrt ceil choose clip column_stack compress
    concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos cosh
    count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees
    delete diag diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod
    dot dsplit dstack ediff1d einsum equal exp exp2 expand_dims expm1 extract fabs
    fill_diagonal fix flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin
    fmod frexp gcd gradient greater greater_equal heaviside histogram histogram2d histogramdd
    hsplit hstack hypot i0 imag inner interp intersect1d invert isclose iscomplex isfinite isin
    isinf isnan isneginf isposinf isreal ix_ kron lcm ldexp left_shift less less_equal lexsort
    log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    mask_indices matmul matrix_transpose max maximum may_share_memory mean median min minimum
    mod modf moveaxis multiply nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax
    nanmean nanmedian nanmin nanprod nanstd nansum nanvar negative nextafter nonzero not_equal
    outer packbits pad partition percentile permute_dims piecewise place poly polyadd polyfit
    polymul polysub polyval positive pow power prod ptp put put_along_axis putmask quantile
    rad2deg radians ravel ravel_multi_index real real_if_close reciprocal remainder repeat
    reshape resize right_shift rint roll rollaxis roots rot90 round save savetxt savez
    savez_compressed searchsorted select setdiff1d setxor1d shares_memory sign signbit sin sinc
    sinh sort sort_complex split sqrt square squeeze stack std subtract sum swapaxes take
    take_along_axis tan tanh tensordot tile trace transpose trapezoid tril tril_indices
    tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc union1d
    unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index
    unwrap vander var vdot vsplit vstack where
""".split()  # fmt: skip

globals().update({name: getattr(_np, name) for name in _SAME})
globals().update({name: _from_either(getattr(_np, name)) for name in _FROM_EITHER})
globals().update({name: _of_numpy(getattr(_np, name)) for name in _ON_DEVICE})


class _Types(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, _np.dtype)


class dtype(metaclass=_Types):  # noqa: N801 (CuPy's name)
    """`cp.dtype(...)` makes NumPy's dtypes, and every one of them is a `cp.dtype`."""

    def __new__(cls, *args, **kwargs):
        try:
            return _np.dtype(*args, **kwargs)
        except TypeError:
            if args and str(args[0]) in missing.TYPES:
                raise TypeError(missing.TYPES[str(args[0])]) from None
            raise


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


def clear_memo() -> None:
    """Forget what CuPy remembers of kernels: nothing that a notebook sees."""


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
    "clear_memo",
    "cuda",
    "dtype",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "linalg",
    "ndarray",
    "random",
    "testing",
    "ufunc",
]


def __dir__() -> list[str]:
    return sorted(__all__)
