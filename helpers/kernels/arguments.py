"""What a launch passes, checked against the kernel's signature and the limits of a GPU."""

from __future__ import annotations

import operator

import numpy as np

from ..simulator.compile.signature import Argument
from .source import KernelError

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (9.0).
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_WITHOUT_OPT_IN = 48 * 1024
MAX_SHARED = 227 * 1024

Shape = tuple[int, int, int]


def launch_shape(kernel: str, grid, block) -> tuple[Shape, Shape]:
    """Return grid and block as three integers each.

    Raises:
        KernelError: if one is not an integer or 1 to 3 positive ones, or exceeds a limit.
    """
    grid3 = _three(kernel, "grid", grid)
    block3 = _three(kernel, "block", block)
    for what, shape, limits in (("grid", grid3, MAX_GRID), ("block", block3, MAX_BLOCK)):
        for axis, size, limit in zip("xyz", shape, limits, strict=True):
            if size > limit:
                raise KernelError(
                    f"{kernel}: {what} {axis} is {size:,}, and a GPU allows at most {limit:,}."
                )
    threads = block3[0] * block3[1] * block3[2]
    if threads > MAX_THREADS:
        raise KernelError(
            f"{kernel}: the block {_product(block3)} has {threads:,} threads, and a GPU allows at "
            f"most {MAX_THREADS:,}; use a smaller block and a larger grid."
        )
    return grid3, block3


def shared_memory(kernel: str, dynamic, static: int = 0, limit: int = MAX_SHARED) -> int:
    """Return the bytes of dynamic shared memory as an int.

    Raises:
        KernelError: if it is no number of bytes or, with the kernel's `static` bytes, exceeds
            `limit`.
    """
    try:
        size = operator.index(dynamic)
    except TypeError:
        size = -1
    if size < 0:
        raise KernelError(f"{kernel}: shared_mem is a number of bytes, not {dynamic!r}.")
    if size + static > limit:
        beside = f" beside the {static:,} that it declares" if static else ""
        raise KernelError(
            f"{kernel}: {size:,} bytes of dynamic shared memory{beside} are more than the "
            f"{limit:,} that a block can have; use smaller tiles."
        )
    return size


def checked(
    kernel: str, signature: tuple[Argument, ...], args, array_type: type | tuple[type, ...]
) -> tuple:
    """Return `args` as the kernel needs them: arrays as they are, numbers in the right type.

    Args:
        kernel: its name, for messages.
        signature: the arguments that it declares.
        args: what the caller passes.
        array_type: the type of the arrays that it can reach, `cp.ndarray`, or several.

    Raises:
        KernelError: if the number of arguments is wrong or one of them does not fit.
    """
    if not isinstance(args, (tuple, list)):
        raise KernelError(
            f"{kernel}: the arguments go in a tuple, such as (a, b, n), not {_kind(args)}."
        )
    names = [argument.name for argument in signature]
    if len(args) != len(names):
        listed = f"{len(names)} argument{'s' * (len(names) != 1)}"
        listed += f" ({', '.join(names)})" if names else ""
        missing = names[len(args) :]
        if missing:
            fault = f"{' and '.join(filter(None, [', '.join(missing[:-1]), missing[-1]]))} "
            fault += "is missing" if len(missing) == 1 else "are missing"
        else:
            fault = f"{len(args) - len(names)} too many"
        raise KernelError(f"{kernel} takes {listed}, got {len(args)}: {fault}.")
    return tuple(
        _array(f"{kernel}: {a.name}", a, value, array_type)
        if a.pointer
        else _value(f"{kernel}: {a.name}", a, value)
        for a, value in zip(signature, args, strict=True)
    )


def is_array(value) -> bool:
    """Whether `value` is an array, of the host or of a device."""
    return isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")


def _array(where: str, argument: Argument, array, array_type):
    name = argument.name
    if not is_array(array):
        dtype = f", np.{argument.dtypes[0]}" if argument.dtypes else ""
        fix = f"; pass cp.asarray({name}{dtype})" if isinstance(array, (list, tuple)) else ""
        raise KernelError(
            f"{where} must be an array for `{argument.declaration}`, but is {_kind(array)}{fix}."
        )
    if not isinstance(array, array_type):
        if isinstance(array, np.ndarray):
            raise KernelError(
                f"{where} is a NumPy array in host memory, which a kernel cannot reach; pass "
                f"cp.asarray({name})."
            )
        raise KernelError(f"{where} is not an array of cp; pass cp.asarray({name}).")
    usual = argument.dtypes[0] if argument.dtypes else ""
    if argument.dtypes and not (_fits(array.dtype, argument) and array.dtype.isnative):
        given = array.dtype if array.dtype.isnative else f"{array.dtype.name} in foreign byte order"
        if argument.constant:
            fix = f"pass {name}.astype({_numpy_name(usual)})"
        else:
            fix = f"make it with cp.empty({name}.shape, {_numpy_name(usual)})"
        raise KernelError(
            f"{where} is {given}, but `{argument.declaration}` needs "
            f"{' or '.join(argument.dtypes)}; {fix}."
        )
    if not array.flags.c_contiguous:
        if argument.constant:
            fix = f"pass cp.ascontiguousarray({name})"
        else:
            fix = "pass a contiguous array and copy the result from it"
        raise KernelError(
            f"{where} is a view whose elements do not lie one after the other in memory (a "
            f"transpose or a slice), which the kernel cannot see; {fix}."
        )
    if not argument.constant and not getattr(array.flags, "writeable", True):
        raise KernelError(
            f"{where} is a read-only array, and `{argument.declaration}` may be written; "
            f"pass {name}.copy()."
        )
    _check_vectors(where, argument, array)
    return array


def _check_vectors(where: str, argument: Argument, array) -> None:
    """Check that `float4` and its like find whole, aligned vectors."""
    per_vector = argument.vector
    if per_vector == 1 or array.size == 0:
        return
    numbers = array.size * (2 if array.dtype.kind == "c" else 1)
    if numbers % per_vector:
        raise KernelError(
            f"{where} has {numbers:,} elements, which is no multiple of the {per_vector} that "
            f"`{argument.declaration}` takes at a time."
        )
    on_host = isinstance(array, np.ndarray)
    address = array.__array_interface__["data"][0] if on_host else array.data.ptr
    if address % argument.alignment:
        raise KernelError(
            f"{where} starts at an address that is no multiple of the {argument.alignment} bytes "
            f"that `{argument.declaration}` needs; pass {argument.name}.copy()."
        )


def _value(where: str, argument: Argument, value):
    if is_array(value):
        fix = ""
        if value.size == 1 and isinstance(value, np.ndarray):
            if value.dtype.kind == "V" or argument.vector > 1 or not argument.dtypes:
                return value  # a struct, passed by value
        if value.size == 1:
            fix = f"; pass {argument.name}.item()"
        raise KernelError(
            f"{where} must be a number for `{argument.declaration}`, but is an array{fix}."
        )
    if argument.vector > 1 or not argument.dtypes:
        if isinstance(value, np.generic):
            return value
        raise KernelError(
            f"{where} is {_kind(value)}, but `{argument.declaration}` takes a struct; pass a NumPy "
            "array of one element whose dtype has the struct's layout."
        )
    kind = argument.dtypes[0]
    if kind == "bfloat16":
        if isinstance(value, np.generic) and value.dtype.name in argument.dtypes:
            return value
        raise KernelError(
            f"{where} is {_kind(value)}, but `{argument.declaration}` needs bfloat16; pass its 16 "
            "bits as np.uint16."
        )
    dtype = np.dtype(kind)
    if not isinstance(value, (bool, int, float, complex, np.generic)) or (
        isinstance(value, np.generic) and value.dtype.kind not in "biufc"
    ):
        raise KernelError(
            f"{where} must be a number for `{argument.declaration}`, but is {_kind(value)}."
        )
    if isinstance(value, np.generic) and value.dtype.name in argument.dtypes:
        return value
    number = value.item() if isinstance(value, np.generic) else value
    if dtype.kind in "biu":
        return _integer(where, argument, number, dtype)
    return _floating(where, argument, number, dtype)


def _integer(where: str, argument: Argument, number, dtype: np.dtype) -> np.generic:
    if isinstance(number, (float, complex)):
        whole = isinstance(number, float) and number.is_integer()
        fix = f"int({argument.name})" if whole else "a whole number"
        raise KernelError(
            f"{where} is the float {number}, but `{argument.declaration}` needs an integer; "
            f"pass {fix}."
        )
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= number <= high:
        raise KernelError(
            f"{where} is {number:,}, which does not fit `{argument.declaration}` "
            f"({dtype.name} holds {low:,} to {high:,})."
        )
    return dtype.type(number)


def _floating(where: str, argument: Argument, number, dtype: np.dtype) -> np.generic:
    if isinstance(number, complex) and dtype.kind != "c":
        raise KernelError(f"{where} is complex, but `{argument.declaration}` needs a real number.")
    try:
        with np.errstate(over="ignore", under="ignore"):
            result = dtype.type(number)
    except OverflowError:
        result = dtype.type(np.inf)
    if np.isinf(result) and not (isinstance(number, (float, complex)) and np.isinf(number)):
        given = f"{number:g}" if isinstance(number, float) else f"{number:,}"
        given = given if len(given) < 40 else f"an integer of {len(str(number))} digits"
        raise KernelError(
            f"{where} is {given}, which is too large for `{argument.declaration}` "
            f"({dtype.name} holds up to {np.finfo(dtype).max:.6g})."
        )
    if isinstance(number, int) and int(result.real) != number:
        raise KernelError(
            f"{where} is the integer {number:,}, which `{argument.declaration}` cannot hold "
            f"exactly; pass float({argument.name}) if the nearest {dtype.name} will do."
        )
    return result


def _fits(dtype, argument: Argument) -> bool:
    pairs = {"float32": "complex64", "float64": "complex128"}
    as_complex = argument.vector == 2 and pairs.get(argument.dtypes[0]) == dtype.name
    return dtype.name in argument.dtypes or as_complex


def _numpy_name(dtype: str) -> str:
    return "np.uint16" if dtype == "bfloat16" else "bool" if dtype == "bool" else f"np.{dtype}"


def _three(kernel: str, what: str, shape) -> Shape:
    parts = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        if any(isinstance(part, (bool, np.bool_)) for part in parts):
            raise TypeError
        sizes = [operator.index(part) for part in parts]
    except TypeError:
        sizes = []
    if not 1 <= len(sizes) <= 3:
        raise KernelError(
            f"{kernel}: {what} must be an integer or a tuple of 1 to 3 integers, not {shape!r}."
        )
    if min(sizes) < 1:
        raise KernelError(f"{kernel}: every number of {what} must be at least 1, not {shape!r}.")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _product(shape: Shape) -> str:
    sizes = [*shape]
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return " × ".join(str(size) for size in sizes)


def _kind(value) -> str:
    if value is None:
        return "None"
    if is_array(value):
        return "an array"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
