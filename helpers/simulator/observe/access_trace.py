"""The trace of a launch's accesses: lane by lane, or of all warps of a block at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..compile.declared_elements import element_size
from ..errors import SimulatorError
from ..limits import LANES
from ..machine.faults import plain_name
from ..ptx.ptxas import SHARED_BASE

KINDS = ("load", "store", "atomic", "copy")
SPACES = ("global", "shared")


class AccessRecord(NamedTuple):
    """One access of one lane, in the order in which the warps made them.

    `order` numbers the warp-wide accesses, `block` and `thread` are (x, y, z), `array` is the
    name of the array or shared variable, and `index` the flat index of its element.
    `bytes` is how much the lane moved, `address` its byte address (for shared memory: the
    offset from the start of the block's shared memory).
    """

    order: int
    line: int
    kind: str
    space: str
    block: tuple[int, int, int]
    warp: int
    lane: int
    thread: tuple[int, int, int]
    array: str
    index: int
    bytes: int
    address: int


class BlockAccess(NamedTuple):
    """One access of all warps of a block, as arrays of (warps, 32) lanes.

    `addresses` and `indices` (flat, of the first element) are meaningless where `active` is not.
    """

    order: int
    line: int
    kind: str
    space: str
    array: str
    bytes: int
    addresses: np.ndarray
    indices: np.ndarray
    active: np.ndarray


class Arrival(NamedTuple):
    """Warps of a block that came to a barrier at the same time.

    `order` is the number of the last access before, of `BlockAccess.order`.
    """

    order: int
    line: int
    warps: tuple[int, ...]


class AccessTrace:
    """The part of `Report` that gives the accesses of a launch."""

    def accesses(
        self, line: int | None = None, *, kind: str | None = None, space: str | None = None
    ) -> list[AccessRecord]:
        """Every access of every lane, in order; of one source line, kind or space if given.

        Raises SimulatorError ("launch") where there is no trace (a run with count=False, or one
        whose trace grew too long) and for a kind or space that no access has.
        """
        return list(self.iterate(line, kind=kind, space=space))

    def iterate(
        self,
        line: int | None = None,
        *,
        kind: str | None = None,
        space: str | None = None,
        block: tuple[int, int, int] | None = None,
        warp: int | None = None,
    ) -> Iterator[AccessRecord]:
        """Like `accesses`, one at a time; of one block (x, y, z) and one of its warps if given."""
        for access in self._trace(line, kind, space):
            yield from self._lanes(access, block, warp)

    def of_block(
        self,
        block: tuple[int, int, int] = (0, 0, 0),
        *,
        warp: int | None = None,
        kind: str | None = None,
        space: str | None = None,
        line: int | None = None,
    ) -> Iterator[BlockAccess]:
        """The accesses of one block, or one of its warps, in order: faster than lane by lane.

        Raises SimulatorError as `accesses` does.
        """
        places: dict[object, tuple[int, ...] | None] = {}  # of the block, by layout
        for access in self._trace(line, kind, space):
            layout = access.layout
            if layout not in places:
                places[layout] = place_of(layout, block)
            at = places[layout]
            found = self._in_block(access, at, warp) if at is not None else None
            if found is not None:
                yield found

    def _in_block(self, access, at: tuple[int, ...], warp: int | None) -> BlockAccess | None:
        """What a block had of an access, or one of its warps; None if nothing."""
        layout = access.layout
        active = np.True_ if access.active is None else access.active
        active = block_lanes(active, layout, at)
        if warp is not None:
            active = active & (np.arange(layout.warps) == warp)[:, None]
        if not active.any():
            return None
        addresses = block_lanes(access.lanes, layout, at).astype(np.int64)
        first = int(addresses[active][0])
        name, start, unit = self._array_at(access.space, first, access.size)
        indices = (addresses - start) // unit
        if access.space == "shared":
            addresses = addresses - SHARED_BASE
        return BlockAccess(
            access.order, access.instruction.line, access.kind, access.space, name, access.size,
            addresses, indices, active,
        )  # fmt: skip

    def arrivals(self, block: tuple[int, int, int] = (0, 0, 0)) -> list[Arrival]:
        """When the warps of a block came to each `__syncthreads()` or other barrier of a block.

        Raises SimulatorError as `accesses` does.
        """
        next(self._trace(None, None, None), None)  # says where there is none
        found = []
        for order, i, active, layout in self._run.tally.arrived:
            at = place_of(layout, block)
            if at is not None:
                active = block_lanes(np.True_ if active is None else active, layout, at)
                warps = tuple(np.flatnonzero(active.any(axis=-1)).tolist())
                if warps:
                    found.append(Arrival(order, i.line, warps))
        return found

    def warp_accesses(
        self, line: int | None = None, *, kind: str | None = None, space: str | None = None
    ) -> int:
        """How many accesses the warps made, as the compiler wrote them: of 32 lanes each, or fewer.

        Raises SimulatorError as `accesses` does.
        """
        return sum(
            a.layout.nblocks * a.layout.warps
            if a.active is None
            else int(_active(a).any(axis=-1).sum())
            for a in self._trace(line, kind, space)
        )

    def _trace(self, line: int | None, kind: str | None, space: str | None) -> Iterator:
        for name, asked, known in (("kind", kind, KINDS), ("space", space, SPACES)):
            if asked is not None and asked not in known:
                raise SimulatorError(
                    "launch",
                    f"{self.entry}: {name} is one of {', '.join(known)}, or None for all, not "
                    f"{asked!r}.",
                )
        if not self.counted:
            raise SimulatorError(
                "launch",
                f"{self.entry} ran with count=False, so there is no trace: use count=True.",
            )
        tally = self._run.tally
        if tally.trace_cut:
            raise SimulatorError(
                "launch",
                f"{self.entry}: the trace of this launch was dropped, since it grew beyond its "
                "memory: trace a smaller grid, or pass a larger trace_bytes to launch().",
            )
        for access in tally.trace:
            found = (access.instruction.line, access.kind, access.space)
            if all(a is None or a == b for a, b in zip((line, kind, space), found, strict=True)):
                yield access

    def _lanes(self, access, wanted_block=None, wanted_warp=None) -> Iterator[AccessRecord]:
        layout = access.layout
        active = _active(access)
        addresses = np.broadcast_to(access.lanes, layout.lanes_shape)
        addresses = addresses.reshape(active.shape)
        if wanted_warp is not None:
            active = active & (np.arange(layout.warps) == wanted_warp)[:, None]
        i = access.instruction
        for block, warp, lane in np.argwhere(active):
            place = layout.block_at(int(block))
            if wanted_block is not None and place != wanted_block:
                continue
            address = int(addresses[block, warp, lane])
            array, start, unit = self._array_at(access.space, address, access.size)
            thread = int(warp) * LANES + int(lane)
            yield AccessRecord(
                access.order, i.line, access.kind, access.space, place,
                int(warp), int(lane), layout.thread_at(thread), array, (address - start) // unit,
                access.size,
                address - SHARED_BASE if access.space == "shared" else address,
            )  # fmt: skip

    @cached_property
    def _shared_names(self) -> list[tuple[int, str, int | None]]:
        """Where each shared variable begins, its name, bytes of an element; the last one first."""
        variables = sorted(self._run.shared_variables, key=lambda pair: pair[0], reverse=True)
        return [
            (start, name, element_size(name, "shared", self.source))
            for start, variable in variables
            for name in (plain_name(variable.name),)
        ]

    def _array_at(self, space: str, address: int, size: int) -> tuple[str, int, int]:
        """The array or shared variable at an address, where it begins, bytes of an element."""
        if space == "shared":
            for start, name, bytes_each in self._shared_names:
                if start <= address:
                    return name, start, bytes_each or min(size, 4)
            return "shared", SHARED_BASE, 4
        region = self._run.space.find(address, address + size)
        if region is None:
            return "?", 0, 1
        return region.name, region.start, region.dtype.itemsize


def place_of(layout, block: tuple[int, int, int]) -> tuple[int, ...] | None:
    """Where a block (x, y, z) lies in arrays of a layout; None if it is not among its blocks."""
    for n in range(layout.nblocks):
        if layout.block_at(n) == block:
            return tuple(map(int, np.unravel_index(n, layout.bshape))) if layout.bshape else ()
    return None


def block_lanes(values: np.ndarray, layout, at: tuple[int, ...]) -> np.ndarray:
    """(warps, 32) of one block, out of values that fit the layout's lanes; nothing is copied."""
    if values.ndim == len(at) + 2:
        values = values[tuple(i if n > 1 else 0 for i, n in zip(at, values.shape, strict=False))]
    elif values.ndim > 2:
        values = np.broadcast_to(values, layout.lanes_shape)[at]
    shape = (layout.warps, LANES)
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _active(access) -> np.ndarray:
    """bool (blocks, warps, 32): the lanes that took part."""
    layout = access.layout
    shape = layout.lanes_shape
    active = np.True_ if access.active is None else access.active
    return np.broadcast_to(active, shape).reshape(-1, layout.warps, LANES)
