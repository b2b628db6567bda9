"""Turns operands into small functions: getters read a value in a wanted dtype, putters write one.

A getter is called as get(S, R) with the batch S and the register file R of the running frame.
"""

import struct
from functools import lru_cache

import numpy as np

from ..errors import SimulatorError
from ..ptx.syntax import Imm, Instruction, Mem, Part, Reg, Special, Sym, Vec
from .memory import UNSIGNED

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
SIGNED = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32),
          8: np.dtype(np.int64)}  # fmt: skip


@lru_cache(maxsize=64)
def blank_register(size: int, read: bool = False) -> np.ndarray:
    """What a register holds before it is written, which PTX leaves undefined.

    Args:
        size: its bytes, 0 for a predicate.
        read: whether it may be read before: then all its bits are set, NaN as a float, so that a
            variable without a first value shows in the results; zero otherwise.
    """
    value = np.zeros(1, UNSIGNED.get(size, np.dtype(np.uint64)) if size else BOOL)
    if read and size:
        value = ~value
    value.flags.writeable = False
    return value


def immediate(imm: Imm, dtype: np.dtype) -> np.ndarray:
    """A literal as a one-element array of a dtype, wrapped or rounded as PTX would."""
    if dtype == BOOL:
        value = np.array([bool(imm.value)])
    elif dtype.kind == "f":
        if imm.bits is not None and imm.bits_size == dtype.itemsize:
            value = np.array([imm.bits], UNSIGNED[dtype.itemsize]).view(dtype)
        elif isinstance(imm.value, int) and dtype.itemsize == 2:
            value = np.array([imm.value & 0xFFFF], np.uint16).view(dtype)
        else:
            with np.errstate(all="ignore"):
                value = np.array([imm.value], np.float64).astype(dtype)
    else:
        number = imm.value
        if imm.bits is not None:
            if imm.bits_size == dtype.itemsize:
                number = imm.bits
            elif dtype.itemsize == 4:
                number = struct.unpack("<I", struct.pack("<f", imm.value))[0]
            else:
                number = int(imm.value)
        wrapped = int(number) & ((1 << (8 * dtype.itemsize)) - 1)
        value = np.array([wrapped], UNSIGNED[dtype.itemsize]).view(dtype)
    value.flags.writeable = False
    return value


def register_getter(reg: Reg, dtype: np.dtype):
    """A getter of a register viewed as, or truncated to, a dtype."""
    slot, size = reg.slot, reg.size
    if dtype == BOOL:
        return (lambda S, R: ~R[slot]) if reg.negated else (lambda S, R: R[slot])
    if size == dtype.itemsize:

        def get(S, R):
            value = R[slot]
            return value if value.dtype is dtype else value.view(dtype)

        return get
    narrow = UNSIGNED.get(dtype.itemsize)
    wide = UNSIGNED.get(size)
    if narrow is None or wide is None:
        return None
    return lambda S, R: R[slot].view(wide).astype(narrow).view(dtype)


def getter(i: Instruction, operand, dtype: np.dtype):
    """get(S, R) -> array of `dtype` for any source operand."""
    if isinstance(operand, Reg):
        get = register_getter(operand, dtype)
        if get is None:
            raise i.unsupported(f"cannot read {operand.name} as {dtype}")
        return get
    if isinstance(operand, Imm):
        value = immediate(operand, dtype)
        return lambda S, R: value
    if isinstance(operand, Special):
        name = operand.name

        def special(S, R):
            value = S.layout.special(name)
            if value is None:
                raise special_error(i, name)
            if value.dtype.itemsize != dtype.itemsize:
                return value.astype(dtype)
            return value.view(dtype)

        return special
    if isinstance(operand, Sym):
        name, offset = operand.name, operand.offset

        def symbol(S, R):
            return np.array([S.address_of(name, i) + offset], np.int64).astype(dtype)

        return symbol
    if isinstance(operand, Part):
        narrow = np.dtype(f"{dtype.kind}{operand.size}")
        slot, shift = operand.register.slot, np.uint32(operand.shift)

        def part(S, R):
            value = R[slot].view(np.uint32) >> shift
            return value.astype(UNSIGNED[narrow.itemsize]).view(narrow).astype(dtype)

        return part
    if isinstance(operand, Vec) and len(operand.items) == 1:
        return getter(i, operand.items[0], dtype)
    raise i.unsupported(f"cannot read the operand {operand!r}")


def special_error(i: Instruction, name: str) -> SimulatorError:
    """The error for a special register that the simulator does not have."""
    if name in ("envreg1", "envreg2"):
        return SimulatorError(
            "unsupported",
            f"line {i.line}: a barrier of the whole grid (this_grid().sync()) needs a cooperative "
            "launch: make the kernel with enable_cooperative_groups=True.",
            i.line,
        )
    return i.unsupported(f"does not know the special register %{name}")


def address_getter(i: Instruction, mem: Mem):
    """get(S, R) -> int64 addresses of a memory operand."""
    offset = mem.offset
    base = mem.base
    if isinstance(base, Reg):
        slot = base.slot
        if base.size == 8:

            def get(S, R):
                value = R[slot]
                value = value if value.dtype is INT64 else value.view(INT64)
                return value + offset if offset else value

            return get
        unsigned = UNSIGNED[base.size]
        return lambda S, R: R[slot].view(unsigned).astype(np.int64) + offset
    if isinstance(base, Sym):
        name, offset = base.name, base.offset + offset
        return lambda S, R: np.array([S.address_of(name, i) + offset], np.int64)
    return lambda S, R: np.array([offset], np.int64)


def widened(value: np.ndarray, size: int) -> np.ndarray:
    """A narrower result extended to a register of `size` bytes (by sign for signed dtypes)."""
    if value.dtype.kind == "i":
        return value.astype(SIGNED[size])
    if value.dtype.kind == "f":
        value = value.view(UNSIGNED[value.dtype.itemsize])
    return value.astype(UNSIGNED[size])


def putter(i: Instruction, operand):
    """put(S, R, value, predicate=None): write a destination register.

    Threads that do not execute the instruction keep their old value wherever it may still be
    read: lanes whose `predicate` is false, and threads of other groups for which the register is
    live.
    """
    if operand is None:
        return lambda S, R, value, predicate=None: None
    if not isinstance(operand, Reg):
        raise i.unsupported("cannot write to this operand")
    slot, size = operand.slot, operand.size
    bit = 1 << slot

    def put(S, R, value, predicate=None):
        if size and value.dtype.itemsize < size:
            value = widened(value, size)
        if predicate is not None:
            value = np.where(predicate, value, _as(R[slot], value.dtype))
        if S.keep & bit:
            value = np.where(S.mask, value, _as(R[slot], value.dtype))
        R[slot] = value

    return put


def _as(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return value if value.dtype is dtype else value.view(dtype)


def guarded_putter(i: Instruction, operand):
    """put(S, R, value): write a destination register where the instruction's guard holds."""
    put = putter(i, operand)
    if i.predicate is None:
        return put
    guard = getter(i, i.predicate, BOOL)
    return lambda S, R, value: put(S, R, value, guard(S, R))
