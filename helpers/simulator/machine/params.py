"""ld.param and st.param: a kernel's parameters, and the arguments and results of calls."""

import numpy as np

from ..ptx.syntax import Instruction, Mem, items_of
from .memory import UNSIGNED
from .operands import getter, putter


def _param_key(memory: Mem) -> tuple[str, int]:
    return memory.base.name, memory.base.offset + memory.offset


def param_load(i: Instruction, code):
    """ld.param: the kernel's parameters, or arguments and results of a call."""
    name, offset = _param_key(i.operands[1])
    dtype = i.dtype
    puts = [putter(i, item) for item in items_of(i.operands[0])]
    size = dtype.itemsize
    if code.function.entry and any(p.name == name for p in code.function.params):

        def from_kernel(S, R):
            for n, put in enumerate(puts):
                put(S, R, S.parameter(name, offset + n * size, dtype))

        return from_kernel

    def step(S, R):
        for n, put in enumerate(puts):
            put(S, R, read_param(S.frame.params, name, offset + n * size, dtype))

    return step


def read_param(params: dict, name: str, offset: int, dtype: np.dtype) -> np.ndarray:
    """A value of a call's parameter buffer, put together from bytes where widths differ."""
    entries = params.get(name, {})
    value = entries.get(offset)
    if value is not None and value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    wide = UNSIGNED[dtype.itemsize]
    out = np.zeros(1, wide)
    for k in range(dtype.itemsize):
        for start, stored in entries.items():
            at = offset + k - start
            if 0 <= at < stored.dtype.itemsize:
                unsigned = stored.view(UNSIGNED[stored.dtype.itemsize])
                byte = (unsigned >> unsigned.dtype.type(8 * at)) & unsigned.dtype.type(0xFF)
                out = out | (byte.astype(wide) << wide.type(8 * k))
                break
    return out.view(dtype)


def param_store(i: Instruction):
    name, offset = _param_key(i.operands[0])
    dtype = UNSIGNED[i.dtype.itemsize]
    gets = [getter(i, item, dtype) for item in items_of(i.operands[1])]

    def step(S, R):
        entries = S.frame.params.setdefault(name, {})
        for n, get in enumerate(gets):
            store(entries, offset + n * dtype.itemsize, get(S, R), S.mask)

    return step


def store(entries: dict, offset: int, value: np.ndarray, mask) -> None:
    """Put a value into a call's parameter buffer; threads outside the mask keep theirs."""
    old = entries.get(offset)
    if mask is not None and old is not None and old.dtype == value.dtype:
        value = np.where(mask, value, old)
    entries[offset] = value
