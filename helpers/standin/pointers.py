"""`x.data`: where device memory lies, with the copies that CuPy's pointers make."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ..simulator.machine.memory import ALLOCATIONS, pointer_of, root_of
from . import missing


class Memory:
    """What an array's pointer keeps alive: `ptr` its start on the device, `size` its bytes."""

    device_id = 0

    def __init__(self, buffer: np.ndarray):
        self._buffer = buffer

    @property
    def ptr(self) -> int:
        """The first byte's address."""
        return ALLOCATIONS.tell(self._buffer)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._buffer.nbytes

    def __getattr__(self, name):
        raise missing.unknown("x.data.mem", name, dir(type(self)))


def _at_once(copy):
    """`copy` with the argument for a stream that CuPy has; it is complete on return here."""

    @functools.wraps(copy)
    def call(self, what, size: int, stream=None) -> None:
        copy(self, what, size)

    return call


class MemoryPointer:
    """A place in device memory: byte `offset` of `buffer`, the array of bytes that owns it."""

    device_id = 0

    def __init__(self, buffer: np.ndarray, offset: int):
        self.buffer, self.offset = buffer, offset

    @classmethod
    def of(cls, array: np.ndarray) -> MemoryPointer:
        """Where an array begins."""
        root = root_of(array)
        flat = root.reshape(-1, order="A").view(np.ndarray)
        buffer = flat.view(np.uint8) if flat.size else np.zeros(0, np.uint8)
        return cls(buffer, pointer_of(array) - pointer_of(root) if flat.size else 0)

    @property
    def ptr(self) -> int:
        """The address, as kernels see it; it stays the same while the array lives."""
        return ALLOCATIONS.tell(self.buffer) + self.offset

    @property
    def mem(self) -> Memory:
        """The memory that this is a place in."""
        return Memory(self.buffer)

    @property
    def device(self):
        """The simulated device."""
        from . import cuda  # late: cuda's runtime tells of arrays, which have pointers

        return cuda.Device(0)

    def copy_from_host(self, mem, size: int) -> None:
        """Fill `size` bytes from the host's memory at `mem`, a ctypes pointer or an address."""
        there = (ctypes.c_char * size).from_address(_address(mem))
        self._bytes(size)[:] = np.frombuffer(there, np.uint8)

    def copy_to_host(self, mem, size: int) -> None:
        """Copy `size` bytes to the host's memory at `mem`, a ctypes pointer or an address."""
        ctypes.memmove(_address(mem), self._bytes(size).tobytes(), size)

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Fill `size` bytes from another place of the device."""
        self._bytes(size)[:] = src._bytes(size).copy()

    def copy_from(self, mem, size: int) -> None:
        """Fill `size` bytes from a place of the device or of the host."""
        on_device = isinstance(mem, MemoryPointer)
        (self.copy_from_device if on_device else self.copy_from_host)(mem, size)

    def memset(self, value: int, size: int) -> None:
        """Set `size` bytes to `value`."""
        self._bytes(size)[:] = value & 0xFF

    copy_from_host_async = _at_once(copy_from_host)
    copy_to_host_async = _at_once(copy_to_host)
    copy_from_device_async = _at_once(copy_from_device)
    copy_from_async = _at_once(copy_from)
    memset_async = _at_once(memset)

    def _bytes(self, size: int) -> np.ndarray:
        room = self.buffer.nbytes - self.offset
        if not 0 <= size <= room:
            raise ValueError(f"{size} bytes do not fit into the {room} that lie at this pointer")
        return self.buffer[self.offset : self.offset + size]

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.buffer, self.offset + offset)

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -offset

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<MemoryPointer {self.ptr:#x}>"

    def __getattr__(self, name):
        raise missing.unknown("x.data", name, dir(type(self)))


def _address(mem) -> int:
    """The host address in a ctypes pointer or array, or a number."""
    if isinstance(mem, int):
        return mem
    if isinstance(mem, ctypes.c_void_p):
        return mem.value or 0
    return ctypes.cast(mem, ctypes.c_void_p).value or 0
