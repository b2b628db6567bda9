# ruff: noqa: E501 (kernel text reads better unbroken)
"""A case with memory counters: geometry, arguments and defines in one line."""

from __future__ import annotations

import functools

import numpy as np

from ..cases import Case, Stream

TYPES = {
    "T": {
        "float": ("float32", 1),
        "float2": ("float32", 2),
        "float4": ("float32", 4),
        "double": ("float64", 1),
        "unsigned short": ("uint16", 1),
        "unsigned char": ("uint8", 1),
        "short2": ("int16", 2),
    }
}


def _fill(stream: Stream, what: str, shape: list[int], dtype: str, limit: int) -> np.ndarray:
    count = int(np.prod(shape))
    if what == "out":
        return np.full(shape, np.nan if dtype.startswith("float") else 0, dtype)
    if what == "index":
        return (stream.words(count) % np.uint64(limit)).astype(dtype).reshape(shape)
    if what == "permutation":  # of each row
        rows = [
            np.argsort(stream.words(shape[-1]), kind="stable") for _ in range(count // shape[-1])
        ]
        return np.array(rows).astype(dtype).reshape(shape)
    if what == "half":
        return (stream.uniform(count) * 2 - 1).astype(np.float16).view(np.uint16).reshape(shape)
    if dtype.startswith("float"):
        return (stream.uniform(count) * 2 - 1).astype(dtype).reshape(shape)
    return stream.words(count).astype(dtype).reshape(shape)


def make_arguments(name: str, specification: list) -> list:
    """Arguments of a case: `[what, shape, dtype(, limit)]` or an integer, as NumPy arrays and int32."""
    stream = Stream(66, *name.encode())
    values: list = []
    for item in specification:
        if isinstance(item, int):
            values.append(np.int32(item))
        else:
            what, shape, dtype, *limit = item
            values.append(_fill(stream, what, shape, dtype, *(limit or [0])))
    return values


def case(
    name: str,
    code: str,
    grid,
    block,
    specification: list,
    shared_mem: int = 0,
    exact=False,
    **defines,
) -> Case:
    grid = grid if isinstance(grid, tuple) else (grid,)
    block = block if isinstance(block, tuple) else (block,)
    entry = f"m_{name}"
    code = code.replace("KERNEL", entry).replace("INFINITY_", "__int_as_float(0x7f800000)")
    # Numbers are compiler options; texts stand in the source, after the compiler's own headers.
    code = "".join(f"#define {k} {v}\n" for k, v in defines.items() if isinstance(v, str)) + code
    options = tuple(f"-D{k}={v}" for k, v in defines.items() if isinstance(v, int))
    outputs = tuple(
        i for i, item in enumerate(specification) if not isinstance(item, int) and item[0] == "out"
    )
    notes = {"args": specification, "exact": exact}
    make = functools.partial(make_arguments, name, specification)
    return Case(name, code, entry, grid, block, make, outputs, options, shared_mem, notes)


def array(shape: list[int], dtype: str = "float32") -> list:
    return ["in", shape, dtype]


def result(shape: list[int], dtype: str = "float32") -> list:
    return ["out", shape, dtype]
