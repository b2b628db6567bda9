"""The `__device__` and `__constant__` variables of a module, and the heap of its `malloc`."""

from __future__ import annotations

import functools

import numpy as np

from ..ptx.syntax import TYPE_SIZES, Imm, Module, Sym, Variable
from .memory import ALLOCATIONS, FUNCTION_WINDOW, POISON

ELEMENT_DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize, if nobody sets it (CUDA C++ Programming Guide)
HEAP_ALIGNMENT = 16


def element_dtype(variable: Variable) -> np.dtype:
    """The NumPy type of a variable's elements."""
    return np.dtype(ELEMENT_DTYPES.get(variable.element, f"u{TYPE_SIZES[variable.element]}"))


class ModuleState:
    """Memory that lives as long as a module: a launch that is given one goes on with its values."""

    def __init__(self, module: Module):
        self.functions = {
            name: FUNCTION_WINDOW + 256 * n for n, name in enumerate(module.functions)
        }
        found = [*module.variables.values()]
        for function in module.functions.values():
            found += function.variables.values()
        self.variables = {v.name: v for v in found if v.space in ("global", "const")}
        self._bytes: dict[str, np.ndarray] = {}

    @functools.cached_property
    def heap(self) -> Heap:
        """What `malloc` takes from."""
        return Heap()

    def bytes_of(self, name: str) -> np.ndarray:
        """A variable's memory (bytes), which holds its initial value until somebody writes to it.

        Raises:
            KeyError: the module has no such variable.
        """
        if name not in self._bytes:
            variable = self.variables[name]
            data = self._bytes[name] = np.zeros(max(variable.size, 1), np.uint8)
            size = TYPE_SIZES[variable.element]
            for n, item in enumerate(variable.initial):
                raw = (self._number(item, size) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
                data[n * size : (n + 1) * size] = np.frombuffer(raw, np.uint8)
            ALLOCATIONS.tell(data)  # a kernel may store a variable's address
        return self._bytes[name]

    def _number(self, item: Imm | Sym, size: int) -> int:
        if isinstance(item, Imm):
            as_written = item.bits is not None and item.bits_size == size
            return item.bits if as_written else int(item.value)
        if item.name in self.variables:
            return ALLOCATIONS.tell(self.bytes_of(item.name)) + item.offset
        return self.functions.get(item.name, 0) + item.offset


class Heap:
    """What `malloc` takes from on the device: 8 MB, as on a GPU of which nothing else is asked."""

    def __init__(self):
        self.data = np.full(HEAP_BYTES, POISON, np.uint8)
        self.start = ALLOCATIONS.tell(self.data)
        self._sizes: dict[int, int] = {}
        self._free: list[tuple[int, int]] = [(0, HEAP_BYTES)]  # (offset, bytes), by offset

    def take(self, nbytes: int) -> int:
        """The address of `nbytes` bytes, 0 if there is no such piece left."""
        wanted = -(-max(nbytes, 1) // HEAP_ALIGNMENT) * HEAP_ALIGNMENT
        for n, (offset, size) in enumerate(self._free):
            if size >= wanted:
                self._free[n : n + 1] = [(offset + wanted, size - wanted)] if size > wanted else []
                self._sizes[offset] = wanted
                return self.start + offset
        return 0

    def give_back(self, address: int) -> bool:
        """Free what `take` gave; False if `address` is nothing of that kind."""
        if address == 0:
            return True
        offset = address - self.start
        size = self._sizes.pop(offset, None)
        if size is None:
            return False
        merged: list[tuple[int, int]] = []
        for start, length in sorted([*self._free, (offset, size)]):
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self._free = merged
        return True
