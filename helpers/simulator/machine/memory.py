"""The state spaces: global, const and param regions, and the per-block and per-thread buffers.

A global address is a number in the simulator's own address space (`Allocations`): the memory behind
an argument is aligned like an allocation of a GPU, and an argument that is a view keeps its offset
in it; so the sectors that a warp touches are those of a GPU, however NumPy happened to align the
array, and an index that runs off an array can never land in another one. A pointer that the kernel
finds in memory leads to the array there, if it lives. Kernels read and write in place.
"""

import heapq
import weakref
from dataclasses import dataclass, field

import numpy as np

from ..errors import SimulatorError

SLOT = 1 << 36
MOST = (1 << 14) - 1  # slots below the window of shared memory
SHARED_WINDOW = 1 << 50
LOCAL_WINDOW = 1 << 51
FUNCTION_WINDOW = 1 << 52
POISON = 0xFF  # what shared and local memory hold before the first write: NaN as floats

UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32),
            8: np.dtype(np.uint64)}  # fmt: skip
SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


def root_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory behind a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def pointer_of(array: np.ndarray) -> int:
    """Where the host keeps the array's first element."""
    return array.__array_interface__["data"][0]


class Allocations:
    """Slots by the host's pointer, given to an owner of memory for as long as it lives."""

    def __init__(self):
        self._slots: dict[int, int] = {}
        self._owners: dict[int, weakref.ref] = {}
        self._free: list[int] = []
        self._told: set[int] = set()

    def tell(self, array: np.ndarray) -> int:
        """The device address of an array, to somebody who may store it anywhere."""
        address = self.address(array)
        self._told.add(address // SLOT)
        return address

    def address(self, array: np.ndarray) -> int:
        """The device address of an array's first element.

        Raises:
            SimulatorError: of kind "argument", with more than 16,383 arrays alive.
        """
        root = root_of(array)
        pointer = pointer_of(root)
        slot = self._slots.get(pointer)
        if slot is None or self._owners[slot]() is None:
            slot = self._take(root, pointer)
        return slot * SLOT + pointer_of(array) - pointer

    def _take(self, root: np.ndarray, pointer: int) -> int:
        slot = heapq.heappop(self._free) if self._free else len(self._owners) + 1
        if slot > MOST:
            raise SimulatorError(
                "argument", f"More than {MOST:,} arrays are in use at once: let go of some."
            )

        def gone(owner: weakref.ref) -> None:
            if self._owners.get(slot) is owner:
                self._owners[slot] = _NOBODY
                self._told.discard(slot)
                heapq.heappush(self._free, slot)
                if self._slots.get(pointer) == slot:
                    del self._slots[pointer]

        self._slots[pointer] = slot
        self._owners[slot] = weakref.ref(root, gone)
        return slot

    def owner(self, address: int) -> np.ndarray | None:
        """The array whose memory holds a device address; None if nobody was told that address."""
        if address // SLOT not in self._told:
            return None
        root = self._owners.get(address // SLOT, _NOBODY)()
        return root if root is not None and address % SLOT < root.nbytes else None


def _NOBODY() -> None:  # noqa: N802 (a reference to nothing)
    return None


ALLOCATIONS = Allocations()


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
    root: np.ndarray | None = None  # whose memory it is, kept alive
    views: dict = field(default_factory=dict)
    element: str = ""  # what the source calls the type of a variable's elements, where it is known

    def view(self, size: int) -> tuple[np.ndarray, int]:
        """(elements of `size` bytes, address of the first), aligned to `size`."""
        got = self.views.get(size)
        if got is None:
            skip = -self.start % size
            count = max(0, self.nbytes - skip) // size
            elements = self.data[skip : skip + count * size].view(UNSIGNED[size])
            got = self.views[size] = (elements, self.start + skip)
        return got


class AddressSpace:
    """All regions that a launch may touch through global addresses."""

    def __init__(self):
        self.regions: list[Region] = []
        self.keeps_variables = False  # whether __device__ variables outlive the launch

    def add_array(self, array: np.ndarray, name: str) -> int:
        """Make an argument addressable; returns its address."""
        start = ALLOCATIONS.address(array)
        flat = np.asarray(array).reshape(-1)
        data = flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
        for region in self.regions:
            if region.start == start and region.nbytes == data.nbytes:
                return start
        region = Region(
            name, start, data.nbytes, data, array.flags.writeable, array.dtype, root=root_of(array)
        )
        self.regions.append(region)
        return start

    def add_bytes(
        self, data: np.ndarray, name: str, kind: str, writable: bool, dtype, element: str = ""
    ) -> int:
        """Make a module variable or the parameters addressable; returns the address."""
        start, dtype = ALLOCATIONS.address(data), np.dtype(dtype)
        region = Region(name, start, data.nbytes, data, writable, dtype, kind, element=element)
        self.regions.append(region)
        return start

    def find(self, low: int, high: int) -> Region | None:
        """The region that holds all bytes low ≤ address < high."""
        for region in self.regions:
            if region.start <= low and high <= region.start + region.nbytes:
                return region
        return self._before_slice(low, high) or self._behind_pointer(low, high)

    def _before_slice(self, low: int, high: int) -> Region | None:
        """The whole array of which an argument is a slice: `in[-1]` may be meant there.

        What lies behind the slice's end stays out of bounds.
        """
        for region in self.regions:
            if region.kind == "global" and region.start // SLOT == low // SLOT:
                break
        else:
            return None
        start, root = low // SLOT * SLOT, region.root
        if not start <= low < high <= region.start + region.nbytes:
            return None
        flat = root.ravel(order="K").view(np.uint8)[: region.start + region.nbytes - start]
        return self._add(region.name, start, flat, root, "slice")

    def _behind_pointer(self, low: int, high: int) -> Region | None:
        """The array that a pointer found in memory leads to: no argument, but alive."""
        root = ALLOCATIONS.owner(low)
        if root is None:
            return None
        start = low // SLOT * SLOT
        flat = root.ravel(order="K").view(np.uint8)  # no gaps, axes in any order: no copy
        name = f"array({', '.join(map(str, root.shape))})"
        return self._add(name, start, flat, root) if high <= start + root.nbytes else None

    def _add(self, name: str, start: int, data: np.ndarray, root: np.ndarray, kind="global"):
        writable = root.flags.writeable
        region = Region(name, start, data.nbytes, data, writable, root.dtype, kind, root=root)
        self.regions.append(region)
        return region

    def nearest(self, address: int) -> Region | None:
        """The region that an out-of-bounds address fell beside."""

        def distance(r: Region) -> int:
            if address < r.start:
                return r.start - address
            return max(0, address - (r.start + r.nbytes) + 1)

        regions = [r for r in self.regions if r.kind not in ("parameter", "slice")]
        return min(regions, key=distance, default=None)

    def written(self) -> list[str]:
        """Names of the arguments, and of variables that stay, that have been written to."""
        told = ("global", "slice", "device" if self.keeps_variables else "global")
        return list(dict.fromkeys(r.name for r in self.regions if r.written and r.kind in told))


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
