"""The state spaces: global, const and param regions, and the per-block and per-thread buffers.

A global address is a number in the simulator's own address space. Every root buffer (the array that
owns the memory behind an argument) gets a slot of 2**36 bytes, aligned like an allocation of a
GPU, and an argument that is a view keeps its offset in it; so the sectors that a warp touches are
those of a GPU, however NumPy happened to align the array, and an index that runs off an array can
never land in another one. Kernels read and write the caller's memory in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SLOT = 1 << 36
SHARED_WINDOW = 1 << 50
LOCAL_WINDOW = 1 << 51
FUNCTION_WINDOW = 1 << 52
POISON = 0xFF  # what shared and local memory hold before the first write: NaN as floats

UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32),
            8: np.dtype(np.uint64)}  # fmt: skip
SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


@dataclass(slots=True)
class Region:
    """Bytes [start, start + nbytes) of the global address space, backed by `data` (uint8)."""

    name: str
    start: int
    nbytes: int
    data: np.ndarray
    writable: bool
    dtype: np.dtype
    kind: str = "global"
    written: bool = False
    views: dict = field(default_factory=dict)

    def view(self, size: int) -> tuple[np.ndarray, int]:
        """(elements of `size` bytes, address of the first), aligned to `size`."""
        got = self.views.get(size)
        if got is None:
            skip = -self.start % size
            count = max(0, self.nbytes - skip) // size
            elements = self.data[skip : skip + count * size].view(UNSIGNED[size])
            got = self.views[size] = (elements, self.start + skip)
        return got


def root_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory behind a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class AddressSpace:
    """All regions that a launch may touch through global addresses."""

    def __init__(self):
        self.regions: list[Region] = []
        self.roots: dict[int, tuple[int, np.ndarray]] = {}

    def add_array(self, array: np.ndarray, name: str) -> int:
        """Make an argument addressable; returns its address."""
        root = root_of(array)
        pointer = array.__array_interface__["data"][0]
        root_pointer = root.__array_interface__["data"][0]
        if root_pointer not in self.roots:
            self.roots[root_pointer] = ((len(self.roots) + 1) * SLOT, root)
        start = self.roots[root_pointer][0] + pointer - root_pointer
        flat = np.asarray(array).reshape(-1)
        data = flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
        for region in self.regions:
            if region.start == start and region.nbytes == data.nbytes:
                return start
        self.regions.append(
            Region(name, start, data.nbytes, data, array.flags.writeable, array.dtype)
        )
        return start

    def add_bytes(self, data: np.ndarray, name: str, kind: str, writable: bool, dtype) -> int:
        """Make a module variable or the parameters addressable; returns the address."""
        start = (len(self.roots) + 1) * SLOT
        self.roots[-len(self.roots) - 1] = (start, data)
        self.regions.append(Region(name, start, data.nbytes, data, writable, np.dtype(dtype), kind))
        return start

    def find(self, low: int, high: int) -> Region | None:
        """The region that holds all bytes low ≤ address < high."""
        for region in self.regions:
            if region.start <= low and high <= region.start + region.nbytes:
                return region
        return None

    def nearest(self, address: int) -> Region | None:
        """The region that an out-of-bounds address fell beside."""

        def distance(r: Region) -> int:
            if address < r.start:
                return r.start - address
            return max(0, address - (r.start + r.nbytes) + 1)

        regions = [r for r in self.regions if r.kind != "parameter"]
        return min(regions, key=distance, default=None)

    def written(self) -> list[str]:
        """Names of the arguments that have been written to."""
        return [r.name for r in self.regions if r.written and r.kind == "global"]


class Buffer:
    """Shared memory (a row per block) or local memory (a row per thread) of one batch."""

    def __init__(self, rows: int, row_bytes: int, row_index: np.ndarray, base: int):
        self.base = base
        self.nbytes = row_bytes
        self.pitch = -(-row_bytes // 16) * 16
        self.row_index = row_index
        self.bytes = np.full(rows * self.pitch, POISON, np.uint8)
        self._views = {}

    def view(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """(elements of `size` bytes, index of each row's first element)."""
        got = self._views.get(size)
        if got is None:
            offset = (self.row_index * (self.pitch // size)).astype(np.intp)
            got = self._views[size] = (self.bytes.view(UNSIGNED[size]), offset)
        return got

    def grow(self, rows: int, row_bytes: int) -> None:
        """Make rows longer, keeping what they hold."""
        pitch = -(-row_bytes // 16) * 16
        if pitch > self.pitch:
            new = np.full((rows, pitch), POISON, np.uint8)
            new[:, : self.pitch] = self.bytes.reshape(rows, self.pitch)
            self.bytes, self.pitch = new.reshape(-1), pitch
            self._views = {}
        self.nbytes = max(self.nbytes, row_bytes)
