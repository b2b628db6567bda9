"""The steps of copies of boxes by the tensor memory accelerator: cp.async.bulk.tensor.

PTX ISA 9.0, "Data Movement and Conversion Instructions: Tensor copy", and "Tensors". One thread
copies a box of an array that a tensor map tells of. Elements outside of the array come as zeros,
and are not written. As with bulk copies the bytes are there at once. What an H200 refuses is
refused here: it was recorded, as `tests/recorded/hopper_cases.py` tells.
"""

from typing import NamedTuple

import numpy as np

from ...isa.tensor.matrix_descriptors import CHUNK, swizzled
from ...isa.tensor.tensor_maps import ALIGNMENT, BYTES, TARGET_UNIT, UNIT, TensorMap, decode
from ...ptx.syntax import Instruction, Mem, Vec, items_of
from ..elements import active_mask, guard_getter
from ..faults import everyone, fault, where_is
from ..memory import UNSIGNED, Region, pointer_of
from ..operands import address_getter, getter
from .mbarrier_steps import Objects, arrive

_COORDINATE = np.dtype(np.int32)
_ADDRESS = np.dtype(np.int64)


class TensorBox(NamedTuple):
    """What one thread's copy is about.

    Attributes:
        map: the tensor map. region: the array's memory.
        tile: elements of the array within the box, dimensions from the outermost, a view.
        inside: where these lie in the box. places: the box's chunks in all of shared memory.
    """

    map: TensorMap
    region: Region
    tile: np.ndarray
    inside: tuple[slice, ...]
    places: np.ndarray

    def addresses(self) -> np.ndarray:
        """The global address of each byte of the array within the box."""
        first = pointer_of(self.tile) - pointer_of(self.region.data) + self.region.start
        at = np.full(1, first, np.int64)
        for extent, stride in zip(self.tile.shape, self.tile.strides, strict=True):
            at = (at[:, None] + np.arange(extent) * stride).reshape(-1)
        return (at[:, None] + np.arange(self.map.itemsize)).reshape(-1)


def tensor_step(i: Instruction):
    """cp.async.bulk.tensor.{1d … 5d}, to shared memory (mbarrier) or from it (bulk_group)."""
    kinds = set(i.modifiers)
    dimensions = next(int(m[0]) for m in i.modifiers if m in ("1d", "2d", "3d", "4d", "5d"))
    odd = [m for m in kinds if m.startswith(("im2col", "tile__")) or m == "reduce"]
    if odd or "multicast__cluster" in kinds:
        raise i.unsupported("copies boxes (.tile) to one block: no im2col, reduction or multicast")
    loads = "mbarrier__complete_tx__bytes" in kinds
    shared, tensor = i.operands[:2] if loads else reversed(i.operands[:2])
    pair = items_of(tensor)
    if len(pair) != 2 or not isinstance(pair[1], Vec) or len(pair[1].items) != dimensions:
        raise i.unsupported(f"takes a tensor map and {dimensions} coordinates here")
    base = pair[0]
    map_at = address_getter(i, base) if isinstance(base, Mem) else getter(i, base, _ADDRESS)
    coordinates = [getter(i, c, _COORDINATE) for c in pair[1].items]
    shared_at = address_getter(i, shared)
    named = Objects(i, i.operands[2]) if loads else None
    guard = guard_getter(i)

    def step(S, R):
        mask, some = active_mask(S, guard(S, R) if guard is not None else None)
        if not some:
            return
        where = np.flatnonzero(S.layout.full(everyone(mask)))
        maps, target, *at = (
            S.layout.flat(get(S, R))[where].tolist() for get in (map_at, shared_at, *coordinates)
        )
        S.writes += 1
        objects = named(S, R)[1:3] if named is not None else None
        sizes = []
        for lane, number in enumerate(where.tolist()):
            corner = tuple(c[lane] for c in at)
            box = _find(S, i, maps[lane], corner, target[lane], number, not loads)
            sizes.append(box.map.box_bytes)
            if S.counting:
                S.tally.bulk(S, i, "load" if loads else "store", box.addresses())
            if S.sanitizer is not None:
                word = objects[1][lane] if objects is not None else None
                S.sanitizer.box(S, i, number, box, word)
            (_load if loads else _store)(S, box)
        if objects is not None:
            arrive(S, i, *objects, where, 0, -np.array(sizes, np.int64))

    return step


def _chunks(S) -> np.ndarray:
    """Shared memory in chunks of 16 bytes."""
    return S.shared.bytes.reshape(-1, CHUNK)


def _load(S, box: TensorBox) -> None:
    tile = np.zeros(tuple(reversed(box.map.box)), box.tile.dtype)
    tile[box.inside] = box.tile
    _chunks(S)[box.places] = tile.view(np.uint8).reshape(-1, CHUNK)


def _store(S, box: TensorBox) -> None:
    found = _chunks(S)[box.places].view(box.tile.dtype)
    box.tile[...] = found.reshape(tuple(reversed(box.map.box)))[box.inside]
    box.region.written = True


def _find(S, i: Instruction, at: int, corner, shared: int, number: int, stores: bool) -> TensorBox:
    """What a thread copies.

    Raises:
        SimulatorError: there is no tensor map, or the array that it tells of is not there; the
            place in shared memory is not aligned, or not in it; a store to what is read-only.
    """
    who = where_is(S, number)
    map_ = _map_at(S, i, at, who)
    if len(map_.sizes) != len(corner):
        raise fault(
            S, i.line, "argument", f"{who} copies a box with {len(corner)} coordinates, and the "
            f"tensor map is of an array of {len(map_.sizes)} dimensions.",
        )  # fmt: skip
    _check_corner(S, i, map_, corner, who, stores)
    extent = map_.itemsize * map_.sizes[0]
    extent += sum((n - 1) * s for n, s in zip(map_.sizes[1:], map_.strides, strict=True))
    region = S.space.find(map_.address, map_.address + extent)
    if region is None:
        raise fault(
            S, i.line, "out_of_bounds", f"the tensor map of {who} tells of an array that is no "
            "longer there, or smaller: keep the array, and encode the map of it anew.",
        )  # fmt: skip
    if stores and not region.writable:
        raise fault(
            S, i.line, "argument", f"a copy to {region.name}, which is read-only; pass a "
            "writable array, or do not store through this tensor map.",
        )  # fmt: skip
    start, blocks = shared - S.shared.base, number // S.layout.nthreads
    if shared % TARGET_UNIT or not 0 <= start <= S.shared.nbytes - map_.box_bytes:
        kind = "misaligned" if shared % TARGET_UNIT else "out_of_bounds"
        raise fault(
            S, i.line, kind, f"{who} copies a box of {map_.box_bytes:,} bytes at byte {start:,} of "
            f"shared memory, of which a block has {S.shared.nbytes:,}: the box has to fit in, at "
            f"a multiple of {TARGET_UNIT} bytes.",
        )  # fmt: skip
    chunks = shared + np.arange(0, map_.box_bytes, CHUNK)
    places = (swizzled(chunks, max(map_.swizzle, CHUNK)) - S.shared.base) // CHUNK
    return TensorBox(
        map_, region, *_tile(map_, region, corner), places + blocks * (S.shared.pitch // CHUNK)
    )


def _check_corner(S, i: Instruction, map_: TensorMap, corner, who: str, stores: bool) -> None:
    """Check where a box begins.

    Raises:
        SimulatorError: an H200 stops there with an illegal instruction.
    """
    begins = f"{who} {'stores' if stores else 'loads'} a box that begins at "
    if corner[0] * map_.itemsize % UNIT:
        raise fault(
            S, i.line, "misaligned", f"{begins}element {corner[0]} of the innermost dimension, "
            f"byte {corner[0] * map_.itemsize}, where a GPU meets an illegal instruction: the "
            f"first coordinate has to be a multiple of {UNIT} bytes, here of "
            f"{UNIT // map_.itemsize} elements.",
        )  # fmt: skip
    if stores and min(corner) < 0:
        told = ", ".join(map(str, corner))
        raise fault(
            S, i.line, "out_of_bounds", f"{begins}the coordinates {told}, where a GPU meets an "
            "illegal instruction: only a load may begin before the array, a store may not.",
        )  # fmt: skip


def _map_at(S, i: Instruction, at: int, who: str) -> TensorMap:
    region = S.space.find(at, at + BYTES)
    found = None
    if region is not None and at % ALIGNMENT == 0:
        start = at - region.start
        found = decode(region.data[start : start + BYTES].tobytes())
    if found is None:
        raise fault(
            S, i.line, "argument", f"{who} copies by a tensor map that is none: encode it with "
            "tensor_map(), and pass it as `const __grid_constant__`, aligned to 64 bytes.",
        )  # fmt: skip
    return found


def _tile(map_: TensorMap, region: Region, corner) -> tuple[np.ndarray, tuple[slice, ...]]:
    """The part of a box that lies in the array (a view), and where it lies in the box."""
    whole = np.ndarray(
        tuple(reversed(map_.sizes)), UNSIGNED[map_.itemsize], region.data,
        map_.address - region.start, (*reversed(map_.strides), map_.itemsize),
    )  # fmt: skip
    of_array, of_box = [], []
    for first, extent, size in zip(
        reversed(corner), reversed(map_.box), reversed(map_.sizes), strict=True
    ):
        low, high = min(max(0, first), size), max(0, min(size, first + extent))
        high = max(low, high)
        of_array.append(slice(low, high))
        of_box.append(slice(low - first, high - first) if high > low else slice(0, 0))
    return whole[tuple(of_array)], tuple(of_box)
