"""Boxes copied by the tensor memory accelerator, against NumPy's slices and figures of swizzles."""

from __future__ import annotations

import numpy as np
import pytest
from recorded.hopper import BOXES, PLACES

from helpers import cp, simulator
from helpers.gpu.tensor_map import tensor_map
from helpers.simulator.errors import SimulatorError


def copied(array, box, swizzle: int, corner, threads: int = 32, **options):
    """(shared memory as it was filled, in rows; what a second map's array became).

    The box is stored where it came from, or at the array's beginning if it came from before it.
    """
    out = np.zeros_like(array)
    nbytes = int(np.prod(box)) * array.dtype.itemsize
    raw = np.full(nbytes, 99, np.uint8)
    args = (tensor_map(array, box, swizzle), tensor_map(out, box, swizzle), raw,
            corners(corner), np.int32(nbytes))  # fmt: skip
    simulator.launch(
        BOXES, f"box{array.ndim}", 1, threads, args,
        shared_mem=nbytes, max_dynamic_shared=nbytes, count=False, **options,
    )  # fmt: skip
    return raw.view(array.dtype).reshape(-1, box[-1]), out


def corners(load, store=None) -> np.ndarray:
    """The kernel's argument: where a box is read and written, the innermost dimension first."""
    store = [max(c, 0) for c in load] if store is None else store
    return np.array([load[::-1], store[::-1]], np.int32)


def window(array, box, corner) -> np.ndarray:
    """The box out of the array with zeros around it."""
    around = [(n, n) for n in box]
    padded = np.pad(array, around)
    first = [min(max(c, -n), s) + n for c, n, s in zip(corner, box, array.shape, strict=True)]
    return padded[tuple(slice(f, f + n) for f, n in zip(first, box, strict=True))]


def unswizzled(rows: np.ndarray, swizzle: int) -> np.ndarray:
    """Rows of a box out of shared memory, their chunks put in order by the figures' tables."""
    if not swizzle:
        return rows
    chunks = rows.view(np.uint8).reshape(len(rows), swizzle // 16, 16)
    out = np.empty_like(chunks)
    for row in range(len(rows)):
        for chunk, place in enumerate(PLACES[swizzle][row % 8]):
            out[row, chunk] = chunks[row, place]
    return out.reshape(len(rows), -1).view(rows.dtype)


@pytest.mark.parametrize(
    ("shape", "dtype", "box", "swizzle", "corner"),
    [
        ((37, 72), np.uint16, (21, 64), 128, (5, 8)),
        ((37, 72), np.uint16, (21, 32), 64, (30, 56)),
        ((37, 72), np.uint16, (21, 16), 32, (-3, -8)),
        ((37, 72), np.uint16, (9, 24), 0, (36, 64)),
        ((37, 72), np.uint16, (8, 64), 128, (37, 0)),
        ((20, 36), np.float32, (11, 32), 128, (-1, 4)),
        ((20, 48), np.uint8, (11, 32), 32, (2, 16)),
        ((20, 6), np.float64, (11, 4), 32, (10, -2)),
        ((200,), np.uint16, (64,), 128, (152,)),
        ((3, 19, 40), np.uint16, (2, 7, 32), 64, (-1, 14, 8)),
        ((2, 17, 3, 64), np.uint16, (1, 16, 1, 64), 128, (1, 6, 2, 0)),
        ((2, 3, 5, 7, 16), np.uint16, (2, 2, 3, 2, 16), 32, (1, -1, 3, 6, -8)),
    ],
    ids=str,
)
def test_boxes_of_every_swizzle(shape, dtype, box, swizzle, corner):
    array = (np.arange(1, np.prod(shape) + 1) % 251).astype(dtype).reshape(shape)
    rows, out = copied(array, box, swizzle, corner)
    wanted = window(array, box, corner)
    np.testing.assert_array_equal(unswizzled(rows, swizzle), wanted.reshape(-1, box[-1]))
    stored = np.zeros_like(array)
    for at in np.ndindex(box):
        place = tuple(max(c, 0) + n for c, n in zip(corner, at, strict=True))
        if all(p < s for p, s in zip(place, shape, strict=True)):
            stored[place] = wanted[at]
    np.testing.assert_array_equal(out, stored)


def test_what_dram_has_to_move_is_known():
    array = np.zeros((40, 72), np.float32)
    out = np.zeros_like(array)
    args = (tensor_map(array, (16, 32), 128), tensor_map(out, (16, 32), 128),
            np.zeros(2048, np.uint8), corners((4, 56)), np.int32(2048))  # fmt: skip
    report = simulator.launch(BOXES, "box2", 1, 32, args, shared_mem=2048)
    # 16 rows of the 16 columns that are inside, which begin with a sector: 288 bytes are a row
    assert report.counters["bulk_load_bytes"] == report.counters["bulk_store_bytes"] == 16 * 64
    # both go through L2, beside 2,048 bytes that threads store of what arrived
    assert report.work.bypass_bytes == report.work.store_bytes - 2048 == 16 * 64
    traffic = report.work.traffic
    assert traffic.read == 16 * 2 * 32 + 32  # and the corners' coordinates
    assert traffic.written == 16 * 2 * 32 + 2048


def test_a_view_in_another_order():
    array = np.arange(2 * 17 * 3 * 64, dtype=np.uint16).reshape(2, 17, 3, 64)
    rows, _ = copied(array.transpose(0, 2, 1, 3), (1, 1, 16, 64), 128, (1, 2, 4, 0))
    wanted = np.zeros((16, 64), np.uint16)
    wanted[:13] = array[1, 4:, 2]
    np.testing.assert_array_equal(unswizzled(rows, 128), wanted)


def test_an_array_that_owns_memory_in_another_order():
    array = np.arange(2 * 17 * 3 * 64, dtype=np.uint16).reshape(2, 17, 3, 64)
    array = np.array(array.transpose(0, 2, 1, 3))  # NumPy keeps the order in memory
    assert array.base is None and not array.flags.c_contiguous
    rows, out = copied(array, (1, 1, 16, 64), 128, (1, 2, 0, 0))
    np.testing.assert_array_equal(unswizzled(rows, 128), array[1, 2, :16])
    np.testing.assert_array_equal(out[1, 2, :16], array[1, 2, :16])
    assert np.count_nonzero(out) == 16 * 64


def test_a_slice_of_a_larger_array():
    whole = np.arange(40 * 96, dtype=np.uint16).reshape(40, 96)
    rows, _ = copied(whole[8:24, 16:80], (16, 64), 128, (4, 0))
    np.testing.assert_array_equal(unswizzled(rows, 128)[:12], whole[12:24, 16:80])
    assert not unswizzled(rows, 128)[12:].any()


def test_blocks_of_a_grid_each_have_their_map_and_barrier():
    code = BOXES.replace("const int* c,\n", "const int* d,\n").replace(
        "if (threadIdx.x == 0) {\n    asm volatile(\"prefetch",
        "int first = d[1] + 8 * (int)blockIdx.x, c[4] = {d[0], first, d[0], first};\n"
        "  raw += blockIdx.x * bytes / 16;\n"
        "  if (threadIdx.x == 0) {\n    asm volatile(\"prefetch",
    ).split("KERNEL(1)")[0].replace("if (N != 2)", "") + "KERNEL(2)"  # fmt: skip
    for n in (1, 3, 4, 5):
        code = "\n".join(line for line in code.split("\n") if f"if (N == {n})" not in line)
    code = code.replace('                     "r"(c[4]));\n', "").replace(
        '                      "r"(to[4]));\n', ""
    )
    array = np.arange(40 * 64, dtype=np.uint16).reshape(40, 64)
    raw, out = np.zeros((40, 64), np.uint16), np.zeros_like(array)
    maps = [tensor_map(a, (8, 64), 128) for a in (array, out)]
    corner = np.zeros(4, np.int32)
    args = (*maps, raw, corner, np.int32(1024))
    simulator.launch(code, "box2", 5, 32, args, shared_mem=1024, batch_threads=96)
    np.testing.assert_array_equal(out, array)
    np.testing.assert_array_equal(unswizzled(raw, 128), array)


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({"map": np.zeros(128, np.uint8)}, "argument", "copies by a tensor map that is none"),
        ({"dimensions": 1}, "argument", "with 1 coordinates, and the tensor map is of an array"),
        (
            {"code": ("uint4 s[]", "uint4 s_[]; uint4* s = s_ + 4")},
            "misaligned",
            "fit in, at a multiple of 128",
        ),
        ({"code": (".tile.mb", ".im2col.mb")}, "unsupported", "no im2col, reduction or multicast"),
        ({"bytes": 2048}, "barrier", "whose phase lacks 1,024 bytes"),
    ],
    ids=["map", "dimensions", "alignment", "im2col", "bytes"],
)
def test_what_cannot_be_is_told(change, kind, told):
    array = np.zeros((16, 64), np.uint16)
    in_map = change.get("map", tensor_map(array, (8, 64), 128))
    args = (in_map.view("V128"), tensor_map(array, (8, 64), 128), np.zeros(4096, np.uint8),
            np.zeros(4, np.int32), np.int32(change.get("bytes", 1024)))  # fmt: skip
    code = BOXES.replace(*change.get("code", ("", "")))
    with pytest.raises(SimulatorError, match=told) as caught:
        simulator.launch(
            code, f"box{change.get('dimensions', 2)}", 1, 32, args,
            shared_mem=change.get("bytes", 1024) + 64,
        )  # fmt: skip
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("load", "store", "told"),
    [
        ((2, 4), (2, 8), "loads a box that begins at element 4 of .* dimension, byte 8, where"),
        ((2, 8), (2, 12), "stores a box that begins at element 12 .* of 16 bytes, here of 8"),
        ((2, 0), (-1, 0), "stores a box that begins at the coordinates 0, -1, .* a store may not"),
    ],
    ids=["load", "store", "before"],
)
def test_corners_that_stop_a_gpu(load, store, told):
    array, raw = np.zeros((16, 64), np.uint16), np.zeros(1024, np.uint8)
    maps = [tensor_map(array, (8, 64), 128) for _ in range(2)]
    args = (*maps, raw, corners(load, store), np.int32(1024))
    with pytest.raises(SimulatorError, match=f"{told}.*"):
        simulator.launch(BOXES, "box2", 1, 32, args, shared_mem=1024)


def test_a_map_in_global_memory():
    array, raw = np.arange(16 * 64, dtype=np.uint16).reshape(16, 64), np.zeros(1024, np.uint8)
    maps = [tensor_map(a, (8, 64), 128) for a in (array, np.zeros_like(array))]
    there = np.frombuffer(maps[0].tobytes(), np.uint64).copy()
    code = BOXES.replace("const __grid_constant__ Map in", "const Map* in").replace("(in,", "(*in,")
    args = (there, maps[1], raw, corners((3, 0)), np.int32(1024))
    simulator.launch(code, "box2", 1, 32, args, shared_mem=1024)
    rows = raw.view(np.uint16).reshape(8, 64)
    np.testing.assert_array_equal(unswizzled(rows, 128), array[3:11])


def test_an_array_that_is_gone_is_told():
    array = np.zeros((16, 64), np.uint16)
    gone = np.zeros((16, 64), np.uint16)
    gone_map = tensor_map(gone, (8, 64), 128)
    there = tensor_map(array, (8, 64), 128)
    gone_map.array = None
    del gone
    args = (gone_map, there, np.zeros(1024, np.uint8),
            np.zeros(4, np.int32), np.int32(1024))  # fmt: skip
    with pytest.raises(SimulatorError, match="tells of an array that is no longer there"):
        simulator.launch(BOXES, "box2", 1, 32, args, shared_mem=1024)


def test_nothing_is_written_through_a_map_of_a_read_only_array():
    array, fixed = np.ones((16, 64), np.uint16), np.zeros((16, 64), np.uint16)
    fixed.flags.writeable = False
    args = (tensor_map(array, (8, 64), 128), tensor_map(fixed, (8, 64), 128),
            np.zeros(1024, np.uint8), np.zeros(4, np.int32), np.int32(1024))  # fmt: skip
    with pytest.raises(SimulatorError, match="which is read-only; pass a writable array"):
        simulator.launch(BOXES, "box2", 1, 32, args, shared_mem=1024)
    assert not fixed.any()


def test_the_stand_in_takes_maps_of_its_arrays():
    kernel = cp.RawKernel(BOXES, "box2")
    array, raw = cp.arange(16 * 64, dtype=np.uint16).reshape(16, 64), cp.zeros(1024, np.uint8)
    out, corner = cp.zeros_like(array), cp.zeros(4, np.int32)
    maps = [tensor_map(a, (8, 64), 128) for a in (array, out)]
    kernel((1,), (32,), (*maps, raw, corner, np.int32(1024)), shared_mem=1024)
    assert (cp.asnumpy(out)[:8] == cp.asnumpy(array)[:8]).all()
