"""Checks what a launch is given: the grid, the block, and every argument."""

import functools
import re
from dataclasses import dataclass

import numpy as np

from .compile.signature import Argument as Declared
from .compile.signature import signature
from .compile.source_text import mask
from .errors import SimulatorError
from .launch_rules import check_array, check_number, check_promise, kind_of, launch_shape
from .limits import MULTIPROCESSORS, SIMULATED
from .ptx.syntax import CLUSTERS, Function, Special

_LAUNCH = functools.partial(SimulatorError, "launch")
_ARGUMENT = functools.partial(SimulatorError, "argument")


@dataclass(slots=True)
class Passed:
    """An argument as passed: an array, or the bytes of a value."""

    name: str
    array: np.ndarray | None
    value: bytes
    constant: bool = False  # declared as a pointer to const: the kernel does not write through it


def check_geometry(entry: str, grid, block, function: Function):
    """Grid and block as (x, y, z). Raises SimulatorError ("launch") beyond the H200's limits."""
    grid, block = launch_shape(entry, grid, block, _LAUNCH)
    check_promise(entry, block, function.bounds.get("maxntid"), _LAUNCH)
    _check_clusters(entry, grid, function)
    return grid, block


def _check_clusters(entry: str, grid, function: Function) -> None:
    """Refuse a grid that clusters do not divide, and blocks of a cluster that meet each other."""
    cluster = function.bounds.get("reqnctapercluster", 1)
    if cluster == 1:
        return
    if grid[0] * grid[1] * grid[2] % cluster:
        raise _LAUNCH(
            f"{entry}: the grid has {grid[0] * grid[1] * grid[2]:,} blocks, which is no multiple "
            f"of the {cluster} of a cluster (__cluster_dims__)."
        )
    for i in function.instructions:
        registers = (o.name for o in i.operands if isinstance(o, Special))
        if "cluster" in i.modifiers or any("cluster" in name for name in registers):
            raise SimulatorError(
                "unsupported", f"line {i.line}: the simulator has no {CLUSTERS}.", i.line
            )


def check_cooperative(entry: str, blocks: int, threads: int) -> None:
    """Refuse a grid whose blocks cannot all be on the H200's multiprocessors at once.

    Registers and shared memory may allow fewer still. Raises SimulatorError ("launch").
    """
    together = min(SIMULATED.multiprocessor_blocks, SIMULATED.multiprocessor_threads // threads)
    most = MULTIPROCESSORS * together
    if blocks > most:
        raise _LAUNCH(
            f"{entry} is launched cooperatively with {blocks:,} blocks of {threads} threads, but "
            f"an H200 holds {most:,} of them at once, and a barrier of the grid waits for all: "
            "launch fewer blocks and let each do more."
        )


def macros_of(options: tuple[str, ...]) -> dict[str, str]:
    """What -D options define: {"ELEMENT": "half"} of -DELEMENT=half."""
    defined = (re.match(r"^(?:-D|--define-macro=)(\w+)(?:=(.*))?$", one) for one in options)
    return {m[1]: "1" if m[2] is None else m[2] for m in defined if m}


@functools.lru_cache(maxsize=128)  # a kernel is launched again and again
def declared_arguments(
    entry: str, source: str, options: tuple[str, ...] = ()
) -> tuple[Declared, ...] | None:
    """The arguments as the source declares them, or None where they cannot be found."""
    code = mask(source)
    plain = entry.split("<")[0].split("::")[-1]
    for m in re.finditer(r"\b" + re.escape(plain) + r"\s*\(", code):
        if "__global__" not in code[max(0, code.rfind(";", 0, m.start())) : m.start()]:
            continue
        depth, end = 1, m.end()
        while end < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        try:
            return signature(code[m.end() : end - 1], code, macros_of(options))
        except Exception:  # a declaration that cannot be read is not checked
            return None
    return None


def check_arguments(
    entry: str, source: str, function: Function, args, options: tuple[str, ...] = ()
) -> list[Passed]:
    """Every argument, checked against the kernel.

    Raises SimulatorError ("argument"): a wrong number, an array that is not contiguous or has
    another dtype than the pointer, a scalar of the wrong size, an array for a scalar.
    """
    params = function.params
    declared = declared_arguments(entry, source, options)
    if declared is None or len(declared) != len(params):
        declared = (None,) * len(params)
    names = [d.name if d else f"argument {n}" for n, d in enumerate(declared, 1)]
    check_number(entry, names, args, _ARGUMENT)
    out = []
    for n, (arg, param, d, name) in enumerate(zip(args, params, declared, names, strict=True), 1):
        where = f"{entry}: argument {n} ({name})" if d else f"{entry}: argument {n}"
        by_value = isinstance(arg, np.ndarray) and (
            arg.ndim == 0 or (arg.size == 1 and arg.dtype.kind == "V")
        )
        if isinstance(arg, np.ndarray) and (_is_pointer(param, d) or not by_value):
            constant = d is not None and d.constant
            out.append(Passed(name, _checked_array(where, arg, param, d), b"", constant))
        else:
            out.append(Passed(name, None, _checked_value(where, arg, param, d)))
    return out


def _is_pointer(param, declared: Declared | None) -> bool:
    return declared.pointer if declared else param.type in ("u64", "b64") and param.size == 8


def _checked_array(where: str, array: np.ndarray, param, declared: Declared | None) -> np.ndarray:
    if array.dtype.hasobject or array.dtype.kind in "OSUmM":
        raise _ARGUMENT(f"{where} has dtype {array.dtype}, which no kernel can use.")
    if not _is_pointer(param, declared):
        raise _ARGUMENT(
            f"{where} is declared as `{declared.declaration if declared else param.type}`, a "
            f"value, but is an array of shape {array.shape}: pass a NumPy scalar such as "
            "np.int32(4).",
        )
    check_array(where, array, declared, _dtype_fits, _ARGUMENT)
    return array


def _dtype_fits(dtype: np.dtype, declared: Declared) -> bool:
    """Whether an array may stand behind a pointer. Unsigned words also carry packed or raw data.

    Vectors carry whole words of anything, but a wider float than theirs is a slip: NumPy's float64.
    """
    if dtype.name in declared.dtypes:
        return True
    wanted = np.dtype(declared.dtypes[0]) if declared.dtypes[0] != "bfloat16" else None
    element = 2 if wanted is None else wanted.itemsize
    if declared.vector > 1 and element * declared.vector % dtype.itemsize == 0:
        wider = dtype.kind == "f" and dtype.itemsize > element
        return not wider or (wanted is not None and wanted.kind != "f")
    if wanted is None:
        return dtype.itemsize == 2
    if wanted.kind == "f":
        return dtype.kind == "V" and dtype.itemsize % wanted.itemsize == 0
    if dtype.kind in "fcV" or dtype.itemsize < wanted.itemsize:
        return wanted.kind == "u" or declared.vector > 1 or dtype.kind == "V"
    return (
        declared.vector > 1
        or wanted.itemsize == 1
        or (dtype.kind in "iub" and dtype.itemsize == wanted.itemsize)
    )


def _checked_value(where: str, arg, param, declared: Declared | None) -> bytes:
    kind = declared.declaration if declared else f"a value of {param.size} bytes"
    if _is_pointer(param, declared) and declared is not None:
        if isinstance(arg, (int, np.integer)) and int(arg) == 0:
            return (0).to_bytes(8, "little")  # a null pointer
        raise _ARGUMENT(
            f"{where} is declared as `{kind}`, an array, but is {_describe(arg)}: pass an "
            "array (of cp, to a cp.RawKernel).",
        )
    if isinstance(arg, bool):
        arg = np.bool_(arg)
    if isinstance(arg, int) and (whole := _whole_number(where, arg, param, declared)):
        return whole
    if isinstance(arg, (int, float, complex)):
        arg = np.asarray(arg)[()]  # as CuPy: int64, float64, complex128
        if arg.dtype.itemsize != param.size and isinstance(arg, (np.int64, np.float64)):
            raise _ARGUMENT(
                f"{where} is declared as `{kind}`, but is a Python {type(arg.item()).__name__}, "
                f"which is passed as {arg.dtype}: write np.{_numpy(declared, param)}({arg}).",
            )
    if not isinstance(arg, (np.generic, np.ndarray)):
        raise _ARGUMENT(f"{where} is {_describe(arg)}: pass a NumPy array or a NumPy scalar.")
    raw = np.asarray(arg)
    if raw.dtype.kind not in "biufcV" or not raw.dtype.isnative:
        raise _ARGUMENT(
            f"{where} is declared as `{kind}`, but is {raw.dtype}, which no kernel can use: pass "
            f"np.{_numpy(declared, param)}(...).",
        )
    if raw.nbytes != param.size:
        raise _ARGUMENT(
            f"{where} is declared as `{kind}` ({_bytes(param.size)}), but is {raw.dtype} "
            f"({_bytes(raw.nbytes)}): pass np.{_numpy(declared, param)}(...).",
        )
    wanted = declared.dtypes[0] if declared and declared.dtypes and declared.vector == 1 else ""
    if wanted not in ("", "bfloat16"):
        kinds = raw.dtype.kind, np.dtype(wanted).kind
        if kinds.count("f") == 1 and kinds[0] in "fiub" and kinds[1] in "fiu":
            raise _ARGUMENT(
                f"{where} is declared as `{kind}`, but is {raw.dtype}: pass np.{wanted}(...).",
            )
    return raw.tobytes()


def _whole_number(where: str, number: int, param, declared: Declared | None) -> bytes:
    """A Python int as the bytes of the integer that is declared; none if that is no integer.

    CuPy passes 8 bytes, and a GPU reads as many as are declared, from the low end.
    """
    kind = _numpy(declared, param)
    if declared is not None and (declared.vector > 1 or not declared.dtypes):
        return b""
    if kind == "bfloat16" or param.type[0] == "f" or np.dtype(kind).kind not in "iub":
        return b""
    info = np.iinfo(np.uint8 if kind == "bool" else kind)
    low, high = (0, 1) if kind == "bool" else (int(info.min), int(info.max))
    if param.size == 8:
        low = min(low, -(2**63))
    if not low <= number <= high:
        declaration = declared.declaration if declared else f"a value of {param.size} bytes"
        raise _ARGUMENT(
            f"{where} is declared as `{declaration}`, which holds {low:,} to {high:,}, but is "
            f"{number:,}: make it fit, and pass np.{kind}(...)."
        )
    return number.to_bytes(param.size, "little", signed=number < 0)


def _numpy(declared: Declared | None, param) -> str:
    if declared and declared.dtypes:
        return declared.dtypes[0]
    return {"f32": "float32", "f64": "float64"}.get(param.type, f"int{8 * param.size}")


def _bytes(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"


def _describe(arg) -> str:
    return repr(arg) if isinstance(arg, (int, float, np.generic)) else kind_of(arg)
