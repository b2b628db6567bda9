"""Device arrays of the stand-in: NumPy arrays that behave as CuPy's do.

They live in the host's memory, but keep to CuPy's rules, so that a cell which runs here also runs
on a GPU: a device array and a NumPy array do not mix, an element or a sum is again a device array
(with no dimensions), and overflow or NaN gives no warning. One rule cannot be kept: `np.asarray(x)`
is an error for a CuPy array and a view of a device array here.
"""

import functools
from typing import Any

import numpy as np

from . import cuda, missing
from .pointers import MemoryPointer


class ndarray(np.ndarray):  # noqa: N801 (CuPy's name)
    """An array on the device, as `cp.asarray`, `cp.zeros` and the like make it.

    Args:
        shape, dtype, order: as NumPy's.
        memptr: memory to be an array over, such as `module.get_global(name)`; new without it.
        strides: bytes from one element to the next along each axis.

    Raises:
        ValueError: the memory is too small.
    """

    def __new__(cls, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            return np.empty(shape, dtype, order or "C").view(cls)
        if not isinstance(memptr, MemoryPointer):
            raise TypeError(f"memptr must be a MemoryPointer, not {type(memptr).__name__}")
        made = np.ndarray(
            shape, dtype, memptr.buffer, memptr.offset, strides=strides, order=order or "C"
        )
        return made.view(cls)

    def get(self, stream=None, order: str = "C", out: np.ndarray | None = None, blocking=True):
        """Copy to the host.

        Args:
            stream, blocking: accepted as in CuPy; a copy here is always complete.
            order: memory order of the copy, `C`, `F` or `A`.
            out: a NumPy array of the same shape and dtype to fill instead.

        Raises:
            ValueError: `out` has another shape.
            TypeError: `out` has another dtype.
        """
        if out is None:
            return np.array(self.view(np.ndarray), order=order)
        if out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}, the array has {self.shape}")
        if out.dtype != self.dtype:
            raise TypeError(f"out has dtype {out.dtype}, the array has {self.dtype}")
        out[...] = self.view(np.ndarray)
        return out

    def set(self, arr: np.ndarray, stream=None) -> None:
        """Fill from a NumPy array of the same shape and dtype."""
        if not isinstance(arr, np.ndarray) or isinstance(arr, ndarray):
            raise TypeError("set takes a NumPy array")
        if arr.shape != self.shape:
            raise ValueError(f"the NumPy array has shape {arr.shape}, this one {self.shape}")
        if arr.dtype != self.dtype:
            raise TypeError(f"the NumPy array has dtype {arr.dtype}, this one {self.dtype}")
        self.view(np.ndarray)[...] = arr

    @property
    def data(self) -> MemoryPointer:
        """Where the array lies."""
        return MemoryPointer.of(self)

    @property
    def device(self):
        """The simulated device."""
        return cuda.Device(0)

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(found, np.ndarray):
            return found
        # one element: a view of it, as in CuPy, and not a copy
        key = key if isinstance(key, tuple) else (key,)
        return super().__getitem__((*key, Ellipsis))

    def __setitem__(self, key, value):
        if _is_host(value):
            raise ValueError(
                "A NumPy array cannot be assigned into a device array: use "
                "x[...] = cp.asarray(value)."
            )
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        inputs = tuple(plain(x) for x in inputs)
        if out:
            kwargs["out"] = tuple(plain(x) for x in out)
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*inputs, **kwargs)
        if out and all(x is not None for x in out):
            return out[0] if len(out) == 1 else out
        return to_device(result)

    def __array_function__(self, func, types, args, kwargs):
        return on_device(func)(*args, **kwargs)

    def __getattr__(self, name):
        raise missing.unknown("x", name, dir(type(self)))

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __str__(self) -> str:
        return str(self.view(np.ndarray))

    def __format__(self, spec: str) -> str:
        return format(self.view(np.ndarray), spec)


def _is_host(x: Any) -> bool:
    return isinstance(x, np.ndarray) and not isinstance(x, ndarray) and x.ndim > 0


def plain(x: Any) -> Any:
    """A device array as the NumPy array beneath it (no copy); anything else as it is.

    Raises:
        TypeError: x is a NumPy array, which CuPy does not take either.
    """
    if isinstance(x, ndarray):
        return x.view(np.ndarray)
    if _is_host(x):
        raise TypeError(
            f"A NumPy array of shape {x.shape} stands where a device array is needed: bring it "
            "to the device with cp.asarray(x), or the other one back with cp.asnumpy(y)."
        )
    return x


def _plain_all(values: Any) -> Any:
    """`plain` for an argument that may be a list or tuple of arrays."""
    if isinstance(values, (list, tuple)) and not hasattr(values, "_fields"):
        return type(values)(map(_plain_all, values))
    return plain(values)


def to_device(result: Any) -> Any:
    """NumPy's answer as CuPy would give it: arrays, and scalars as arrays of no dimensions."""
    if isinstance(result, np.ndarray):
        return result if isinstance(result, ndarray) else result.view(ndarray)
    if isinstance(result, (np.generic, bool)):
        return np.asarray(result).view(ndarray)
    if isinstance(result, tuple):
        if hasattr(result, "_fields"):  # such as that of unique_counts
            return type(result)(*map(to_device, result))
        return tuple(map(to_device, result))
    if isinstance(result, list):
        return [to_device(item) for item in result]
    return result


def upload(a: Any, dtype=None, order: str | None = "K", ndmin: int = 0) -> ndarray:
    """A new device array with the values of anything that NumPy makes an array of.

    Raises:
        ValueError: a dtype that no GPU array can have, such as text or object.
    """
    made = np.array(a, dtype=dtype, order=order or "K", ndmin=ndmin)
    extension = made.dtype.kind == "V" and made.dtype.fields is None  # bfloat16
    if made.dtype.kind not in "biufc" and not extension and made.dtype.fields is None:
        raise ValueError(f"Unsupported dtype {made.dtype}")
    return made.view(ndarray)


def on_device(function):
    """NumPy's `function` as a function of device arrays."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args, **kwargs):
        given = {name: _plain_all(value) for name, value in kwargs.items()}
        with np.errstate(all="ignore"):  # a GPU has no such warnings
            result = function(*map(_plain_all, args), **given)
        out = kwargs.get("out")
        return out if isinstance(out, ndarray) else to_device(result)

    return call


def from_either(function):
    """NumPy's `function` as one of device arrays that takes NumPy arrays too."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args, **kwargs):
        host = (a.view(np.ndarray) if isinstance(a, ndarray) else a for a in args)
        return to_device(function(*host, **kwargs))

    return call


class ufunc:  # noqa: N801 (CuPy's name)
    """A function of NumPy's that works element by element, with the methods that CuPy gives it.

    Methods: `at`, `reduce`, `accumulate`, `reduceat` and `outer`, as NumPy's.
    """

    def __init__(self, function: np.ufunc):
        self._function = function
        self._call = on_device(function)
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.nin, self.nout, self.nargs = function.nin, function.nout, function.nargs
        self.types = function.types

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        if name in ("at", "reduce", "accumulate", "reduceat", "outer"):
            return on_device(getattr(self._function, name))
        raise missing.unknown(f"cp.{self.name}", name, dir(self))

    def __repr__(self) -> str:
        return f"<ufunc {self.name!r}>"


def of_numpy(function):
    """A function of NumPy's as CuPy has it: one of device arrays, or a `ufunc`."""
    return ufunc(function) if isinstance(function, np.ufunc) else on_device(function)


# NumPy's methods give scalars, or forget the subclass, where CuPy's give device arrays.
for _name in """
    all any argmax argmin argsort clip cumprod cumsum dot max mean min nonzero prod round
    searchsorted std sum take trace var
""".split():
    setattr(ndarray, _name, on_device(getattr(np.ndarray, _name)))
del _name
