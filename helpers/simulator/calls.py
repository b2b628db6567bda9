"""Calls that the simulator answers itself: printf, assert, trap."""

from __future__ import annotations

import re
import struct

import numpy as np

from .elements import pieces_of
from .errors import SimulatorError
from .operands import unsupported
from .ptx import Instruction

_SPEC = re.compile(r"%([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGaAcsp%])")


def alloca_step(i: Instruction, code):
    """alloca and stacksave are not part of the simulator."""
    raise unsupported(i, "does not have dynamic stack allocation")


def _bytes_at(S, i, address: int, block: int, thread: int, count: int) -> bytes:
    """Bytes behind one thread's generic address."""
    out = bytearray()
    full = np.zeros(S.layout.shape, np.bool_)
    full.reshape(-1)[block * S.layout.nthreads + thread] = True
    for k in range(count):
        where = np.array([address + k], np.int64)
        pieces = pieces_of(S, i, "generic", where, 1, 1, full, {}, False)
        _, view, index, _ = pieces[0]
        at = np.broadcast_to(index, S.layout.shape).reshape(-1)[block * S.layout.nthreads + thread]
        out.append(int(view[at]))
    return bytes(out)


def _string_at(S, i, address: int, block: int, thread: int) -> str:
    """A zero-terminated string in global or constant memory, or in a thread's own memory."""
    region = S.space.find(address, address + 1)
    if region is not None:
        data = region.data[address - region.start :].tobytes()
        return data.split(b"\0")[0].decode("utf-8", "replace")
    out = bytearray()
    while len(out) < 4096:
        byte = _bytes_at(S, i, address + len(out), block, thread, 1)
        if byte == b"\0":
            break
        out += byte
    return out.decode("utf-8", "replace")


def format_printf(text: str, read) -> str:
    """C's printf formatting; `read(size)` gives the next argument's bytes."""

    def one(m: re.Match) -> str:
        flags, width, precision, length, kind = m.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(struct.unpack("<i", read(4))[0])
        if precision == "*":
            precision = str(struct.unpack("<i", read(4))[0])
        spec = "%" + flags + (width or "") + ("." + precision if precision is not None else "")
        if kind in "dicouxX":
            size = 8 if length in ("l", "ll", "z", "j", "t") else 4
            number = int.from_bytes(read(size), "little", signed=kind in "di")
            if kind == "c":
                return (spec + "s") % chr(number & 0xFF)
            if length == "hh":
                number &= 0xFF
            elif length == "h":
                number &= 0xFFFF
            return (spec + ("d" if kind in "iu" else kind)) % number
        if kind in "eEfFgGaA":
            number = struct.unpack("<d", read(8))[0]
            if kind in "aA":
                return number.hex()
            if number != number or number in (float("inf"), float("-inf")):
                plain = "%" + flags.replace("0", "") + (width or "") + "s"
                return plain % str(number)
            return (spec + kind) % number
        address = int.from_bytes(read(8), "little")
        if kind == "p":
            return (spec.split(".")[0] + "s") % hex(address)
        return (spec + "s") % read.string(address)

    return _SPEC.sub(one, text)


class _Arguments:
    """Reads a vprintf argument buffer: each value aligned to its own size."""

    def __init__(self, S, i, address, block, thread):
        self.S, self.i, self.address = S, i, address
        self.block, self.thread, self.offset = block, thread, 0

    def __call__(self, size: int) -> bytes:
        self.offset = -(-self.offset // size) * size
        data = _bytes_at(self.S, self.i, self.address + self.offset, self.block, self.thread, size)
        self.offset += size
        return data

    def string(self, address: int) -> str:
        """The string that a %s argument points at."""
        return _string_at(self.S, self.i, address, self.block, self.thread)


def vprintf(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """printf from a kernel: threads print in the order of blocks, then of threads."""
    formats = S.layout.full(arguments[0].view(np.int64)).reshape(-1)
    buffers = S.layout.full(arguments[1].view(np.int64)).reshape(-1)
    mask = np.ones(1, np.bool_) if S.mask is None else S.mask
    for flat in np.flatnonzero(S.layout.full(mask)):
        block, thread = divmod(int(flat), S.layout.nthreads)
        text = _string_at(S, i, int(formats[flat]), block, thread)
        S.print(format_printf(text, _Arguments(S, i, int(buffers[flat]), block, thread)))
    return np.zeros(1, np.int32)


def assertion(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """A failed assert() stops the launch."""
    mask = np.ones(1, np.bool_) if S.mask is None else S.mask
    block, thread = S.layout.locate(mask)
    flat = int(np.argmax(S.layout.full(mask)))
    message = _string_at(
        S, i, int(S.layout.full(arguments[0].view(np.int64)).reshape(-1)[flat]), 0, 0
    )
    raise SimulatorError(
        "assert",
        f"{S.entry}, line {i.line}: assertion `{message}` failed in thread {thread} of block "
        f"{block}.",
        i.line,
    )


BUILTIN = {"vprintf": vprintf, "__assertfail": assertion}
