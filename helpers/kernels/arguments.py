"""What a launch passes, checked against the kernel's signature and the limits of a GPU."""

import operator

import numpy as np

from ..simulator.compile.signature import Argument
from ..simulator.launch_rules import check_array, check_number, is_array, kind_of
from ..simulator.limits import SIMULATED
from .source import CannotRun, KernelError


def shared_memory(
    kernel: str, dynamic, static: int = 0, limit: int = SIMULATED.opt_in_shared
) -> int:
    """Return the bytes of dynamic shared memory as an int.

    Raises:
        CannotRun: if it is no number of bytes or, with the kernel's `static` bytes, exceeds
            `limit`.
    """
    try:
        size = operator.index(dynamic)
    except TypeError:
        size = -1
    if size < 0:
        raise CannotRun(f"{kernel}: shared_mem is a number of bytes, not {dynamic!r}.")
    if size + static > limit:
        beside = f" beside the {static:,} that it declares" if static else ""
        raise CannotRun(
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
    check_number(kernel, [argument.name for argument in signature], args, KernelError)
    return tuple(
        _array(f"{kernel}: {a.name}", a, value, array_type)
        if a.pointer
        else _value(f"{kernel}: {a.name}", a, value)
        for a, value in zip(signature, args, strict=True)
    )


def _array(where: str, argument: Argument, array, array_type):
    name = argument.name
    if not is_array(array):
        dtype = f", np.{argument.dtypes[0]}" if argument.dtypes else ""
        fix = f"; pass cp.asarray({name}{dtype})" if isinstance(array, (list, tuple)) else ""
        raise KernelError(
            f"{where} must be an array for `{argument.declaration}`, but is {kind_of(array)}{fix}."
        )
    if not isinstance(array, array_type):
        if isinstance(array, np.ndarray):
            raise KernelError(
                f"{where} is a NumPy array in host memory, which a kernel cannot reach; pass "
                f"cp.asarray({name})."
            )
        raise KernelError(f"{where} is not an array of cp; pass cp.asarray({name}).")
    check_array(where, array, argument, _fits, KernelError)
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
            f"{where} is {kind_of(value)}, but `{argument.declaration}` takes a struct; pass a "
            "NumPy array of one element whose dtype has the struct's layout."
        )
    kind = argument.dtypes[0]
    if kind == "bfloat16":
        if isinstance(value, np.generic) and value.dtype.name in argument.dtypes:
            return value
        raise KernelError(
            f"{where} is {kind_of(value)}, but `{argument.declaration}` needs bfloat16; pass its "
            "16 bits as np.uint16."
        )
    dtype = np.dtype(kind)
    if not isinstance(value, (bool, int, float, complex, np.generic)) or (
        isinstance(value, np.generic) and value.dtype.kind not in "biufc"
    ):
        raise KernelError(
            f"{where} must be a number for `{argument.declaration}`, but is {kind_of(value)}."
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
