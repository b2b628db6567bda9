"""What every launch must fit, whoever starts it: its geometry, the number of arguments, arrays.

Each check raises the error that it is given, made from one sentence: the simulator's own calls and
`load_kernel`'s kernels tell the same faults in the same words, each with its own type.
"""

import operator
from collections.abc import Callable, Sequence

import numpy as np

from .compile.signature import Argument as Declared
from .limits import SIMULATED

Shape = tuple[int, int, int]
Refusal = Callable[[str], Exception]


def launch_shape(kernel: str, grid, block, refusal: Refusal) -> tuple[Shape, Shape]:
    """Grid and block as three integers each.

    Raises:
        what `refusal` makes: one is not an integer or 1 to 3 positive ones, or exceeds a limit.
    """
    grid3 = _three(kernel, "grid", grid, refusal)
    block3 = _three(kernel, "block", block, refusal)
    for what, shape in (("grid", grid3), ("block", block3)):
        for axis, size, limit in zip("xyz", shape, getattr(SIMULATED, what), strict=True):
            if size > limit:
                raise refusal(
                    f"{kernel}: {what} {axis} is {size:,}, and a GPU allows at most {limit:,}."
                )
    threads = block3[0] * block3[1] * block3[2]
    if threads > SIMULATED.threads:
        raise refusal(
            f"{kernel}: the block {_product(block3)} has {threads:,} threads, and a GPU allows at "
            f"most {SIMULATED.threads:,}; use a smaller block and a larger grid."
        )
    return grid3, block3


def check_promise(kernel: str, block: Shape, promised: int | None, refusal: Refusal) -> None:
    """Refuse more threads than the kernel's `__launch_bounds__` promise; None is no promise."""
    threads = block[0] * block[1] * block[2]
    if promised is not None and threads > promised:
        raise refusal(
            f"{kernel}: a block has {threads:,} threads, and its __launch_bounds__ promise at most "
            f"{promised:,}."
        )


def check_number(kernel: str, names: Sequence[str], args, refusal: Refusal) -> None:
    """Refuse what is no tuple or list of as many arguments as the kernel has names for."""
    if not isinstance(args, (tuple, list)):
        raise refusal(
            f"{kernel}: the arguments go in a tuple, such as (a, b, n), not {kind_of(args)}."
        )
    if len(args) == len(names):
        return
    listed = f"{len(names)} argument{'s' * (len(names) != 1)}"
    listed += f" ({', '.join(names)})" if names else ""
    fault = f"{len(args) - len(names)} too many"
    if missing := names[len(args) :]:
        named = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        fault = f"{named} {'is' if len(missing) == 1 else 'are'} missing"
    raise refusal(f"{kernel} takes {listed}, got {len(args)}: {fault}.")


def check_array(
    where: str, array, declared: Declared | None, fits: Callable[..., bool], refusal: Refusal
) -> None:
    """Refuse an array of another type than the pointer, or whose elements lie apart in memory.

    Args:
        where: the argument, for messages.
        array: of the host or of a device.
        declared: how the kernel declares it; None if that is not known.
        fits: `fits(dtype, declared)`, whether such elements may stand behind the pointer.
        refusal: makes the error of a sentence.
    """
    name = declared.name if declared else "..."
    constant = declared is None or declared.constant
    types = declared.dtypes if declared else ()
    if not array.dtype.isnative or (types and not fits(array.dtype, declared)):
        given = array.dtype if array.dtype.isnative else f"{array.dtype.name} in foreign byte order"
        usual = _numpy_name(types[0] if types else array.dtype.name)
        fix = _other_elements(declared, array.dtype, usual)
        needs = f", but `{declared.declaration}` needs {' or '.join(types)}" if types else ""
        raise refusal(f"{where} is {given}{needs}; {fix}.")
    if not array.flags.c_contiguous:
        fix = f"pass cp.ascontiguousarray({name})"
        if not constant:
            fix = "pass a contiguous array and copy the result from it"
        raise refusal(
            f"{where} is a view whose elements do not lie one after the other in memory (a "
            f"transpose or a slice), which the kernel cannot see; {fix}."
        )


def _other_elements(declared: Declared | None, given: np.dtype, usual: str) -> str:
    """How to make an array of `usual` elements of one of others."""
    name = declared.name if declared else "..."
    if given.kind == "c" and usual.startswith("np.float"):
        parts = {"np.float32": np.complex64, "np.float64": np.complex128}.get(usual)
        whole = "" if parts in (None, given.type) else f".astype(np.{np.dtype(parts)})"
        narrow = "" if parts else f".astype({usual})"
        real = usual if parts else f"np.float{4 * given.itemsize}"
        return (
            f"pass {name}{whole}.view({real}){narrow}, which has each real part before its "
            "imaginary one"
        )
    anew = f"pass {name}.view({usual}) to read its bytes anew"
    if given.kind == "c":
        return anew
    fix = f"pass {name}.astype({usual})"
    if declared is not None and not declared.constant:
        fix = f"make it with cp.empty({name}.shape, {usual})"
    # numbers of another precision are hardly ever meant as the bytes of these
    precise = given.kind == "f" and usual.startswith("np.float")
    if not given.isnative or (precise and (declared is None or declared.vector == 1)):
        return fix
    return f"{fix}, or {anew}"


def is_array(value) -> bool:
    """Whether `value` is an array, of the host or of a device."""
    return isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")


def kind_of(value) -> str:
    """What a value is, in words: `a list`, `an array`, `None`."""
    if value is None:
        return "None"
    if is_array(value):
        return "an array"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _three(kernel: str, what: str, shape, refusal: Refusal) -> Shape:
    listed = shape.tolist() if isinstance(shape, np.ndarray) else shape
    parts = tuple(listed) if isinstance(listed, (tuple, list)) else (listed,)
    try:
        if any(isinstance(part, (bool, np.bool_)) for part in parts):
            raise TypeError
        sizes = [operator.index(part) for part in parts]
    except TypeError:
        sizes = []
    if not 1 <= len(sizes) <= 3:
        raise refusal(
            f"{kernel}: {what} must be an integer or a tuple of 1 to 3 integers, not {shape!r}."
        )
    if min(sizes) < 1:
        raise refusal(f"{kernel}: every number of {what} must be at least 1, not {shape!r}.")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _product(shape: Shape) -> str:
    axes = max((n for n, size in enumerate(shape, 1) if size > 1), default=1)
    return " × ".join(map(str, shape[:axes]))


def _numpy_name(dtype: str) -> str:
    return "np.uint16" if dtype == "bfloat16" else "bool" if dtype == "bool" else f"np.{dtype}"
