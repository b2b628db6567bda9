"""Device addresses: every piece of host memory that a kernel may reach has one while it lives.

An array's address stays the same from launch to launch, so that a kernel may store it (in a list,
a struct, a table of pointers) and another may follow it. Each owner of memory has a slot of 2**36
bytes: no index that runs off one array lands in another.
"""

from __future__ import annotations

import heapq
import weakref

import numpy as np

from ..errors import SimulatorError

SLOT = 1 << 36
MOST = (1 << 14) - 1  # slots below the window of shared memory


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
