"""What a tensor map says: an array in global memory, the box that a copy moves, its swizzle.

On a GPU its 128 bytes are the driver's own (`cuTensorMapEncodeTiled`, CUDA Driver API, "Tensor Map
Object Management"), which nobody else reads or writes. On the simulator they hold, in this order:
eight letters by which it is known, the array's address, up to five sizes in elements and four
strides in bytes, the box's up to five sizes, the bytes of an element, and the bytes of the swizzle.
Dimensions go from the innermost, whose elements lie side by side, outwards.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

BYTES = 128
ALIGNMENT = 64  # bytes, of a map
SWIZZLES = (0, 32, 64, 128)  # bytes of a row that are swizzled, 0 for none
MOST_DIMENSIONS = 5
MOST_BOX = 256  # elements of a box along a dimension
UNIT = 16  # bytes: of addresses, strides and a box's rows
TARGET_UNIT = 128  # bytes: of addresses in shared memory
_LETTERS = b"boxes ok"
_FORM = struct.Struct("<8sQ5Q4Q5HBBB")
_MOST_SIZE, _MOST_STRIDE = 1 << 32, 1 << 40


@dataclass(frozen=True, slots=True)
class TensorMap:
    """An array and a box in it. Dimensions from the innermost outwards.

    Attributes:
        address: of the array's first element.
        sizes: elements along each dimension; strides: bytes, without the innermost, `itemsize`.
        box: elements along each dimension.
        itemsize: bytes of an element, 1, 2, 4 or 8.
        swizzle: 0, 32, 64 or 128 bytes.
    """

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    itemsize: int
    swizzle: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the box."""
        return self.box[0] * self.itemsize

    @property
    def box_bytes(self) -> int:
        """Bytes of the box in shared memory: what a copy brings, outside of the array too."""
        total = self.itemsize
        for extent in self.box:
            total *= extent
        return total

    def fault(self) -> str:
        """What is wrong with it, in a sentence; empty if a GPU takes it."""
        return next(filter(None, (self._fault_of_array(), self._fault_of_box())), "")

    def _fault_of_array(self) -> str:
        rank = len(self.sizes)
        if not 1 <= rank <= MOST_DIMENSIONS:
            return f"the array has {rank} dimensions, and a tensor map takes 1 to 5"
        if self.itemsize not in (1, 2, 4, 8):
            return f"elements have {self.itemsize} bytes, and a tensor map takes 1, 2, 4 or 8"
        if self.address % UNIT:
            return f"the array begins at an address that is no multiple of {UNIT} bytes"
        if any(not 1 <= size <= _MOST_SIZE for size in self.sizes):
            return "each dimension of the array has to have 1 to 2^32 elements"
        if any(s % UNIT or not 0 < s < _MOST_STRIDE for s in self.strides):
            told = ", ".join(f"{s:,}" for s in reversed(self.strides))
            return (
                f"the array's strides ({told} bytes) are to be multiples of {UNIT} bytes, "
                "positive and below 2^40"
            )
        return ""

    def _fault_of_box(self) -> str:
        if len(self.box) != len(self.sizes):
            return (
                f"the box has {len(self.box)} dimensions, and the array {len(self.sizes)}: a "
                "dimension that the box does not extend along is 1"
            )
        if any(not 1 <= extent <= MOST_BOX for extent in self.box):
            return f"the box has to have 1 to {MOST_BOX} elements along each dimension"
        if self.row_bytes % UNIT:
            return f"a row of the box has {self.row_bytes} bytes, which is no multiple of {UNIT}"
        if self.swizzle not in SWIZZLES:
            return f"the swizzle is one of {', '.join(map(str, SWIZZLES))} bytes"
        if self.swizzle and self.row_bytes > self.swizzle:
            return (
                f"a row of the box has {self.row_bytes} bytes, more than the {self.swizzle} that "
                "are swizzled: let the box be narrower, and copy several"
            )
        if self.swizzle and self.row_bytes < self.swizzle:
            return (
                f"a row of the box has {self.row_bytes} bytes, fewer than the {self.swizzle} that "
                "are swizzled, which leaves gaps: take the swizzle of as many bytes as the row has"
            )
        return ""

    def encode(self) -> bytes:
        """The 128 bytes that the simulator reads again."""

        def filled(values: tuple[int, ...], count: int) -> tuple[int, ...]:
            return values + (0,) * (count - len(values))

        rank = len(self.sizes)
        packed = _FORM.pack(
            _LETTERS, self.address, *filled(self.sizes, 5), *filled(self.strides, 4),
            *filled(self.box, 5), rank, self.itemsize, self.swizzle,
        )  # fmt: skip
        return packed.ljust(BYTES, b"\0")


@lru_cache(maxsize=64)
def decode(data: bytes) -> TensorMap | None:
    """The tensor map in 128 bytes; None where there is none."""
    letters, address, *rest = _FORM.unpack_from(data)
    if letters != _LETTERS:
        return None
    rank, itemsize, swizzle = rest[14:]
    return TensorMap(
        address, tuple(rest[:rank]), tuple(rest[5 : 4 + rank]), tuple(rest[9 : 9 + rank]),
        itemsize, swizzle,
    )  # fmt: skip
