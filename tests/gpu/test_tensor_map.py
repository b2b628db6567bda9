"""Tensor maps: what they say of an array, and what the hardware would not take."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from helpers.gpu.tensor_map import tensor_map
from helpers.simulator.isa.tensor.tensor_maps import decode


def test_it_says_where_the_array_is_and_how_it_lies():
    array = np.zeros((2, 300, 4, 64), np.float16)
    view = array[1:, 10:].transpose(0, 2, 1, 3)
    made = tensor_map(view, (1, 1, 128, 64), 128)
    assert made.shape == (1,) and made.nbytes == 128 and made.dtype.kind == "V"
    found = decode(made.tobytes())
    assert found.sizes == (64, 290, 4, 1) and found.box == (64, 128, 1, 1)
    assert found.strides[:2] == (512, 128)  # rows, heads; a stride of one batch is never used
    assert found.itemsize == 2 and found.swizzle == 128 and found.box_bytes == 16384
    again = decode(tensor_map(array, (1, 128, 1, 64), 128).tobytes())
    assert found.address - again.address == array[0].nbytes + 10 * 512
    assert made.array is view and made.box == (1, 1, 128, 64) and made.swizzle == 128
    other = made.of(view.copy())
    assert other.box == made.box and decode(other.tobytes()).address != found.address


@pytest.mark.parametrize("number", range(40))
def test_what_is_encoded_is_decoded(number):
    random = np.random.default_rng(number)
    rank = int(random.integers(1, 6))
    shape = (*random.integers(1, 5, rank - 1).tolist(), 16 * int(random.integers(1, 4)))
    box = (*random.integers(1, 9, rank - 1).tolist(), 16)
    found = decode(tensor_map(np.zeros(shape, np.uint8), box, 0).tobytes())
    assert found.sizes == shape[::-1] and found.box == box[::-1]
    for n, stride in enumerate(np.zeros(shape, np.uint8).strides[-2::-1]):
        assert found.sizes[n + 1] == 1 or found.strides[n] == stride
    assert not found.fault()


@pytest.mark.parametrize(
    ("array", "box", "swizzle", "told"),
    [
        (np.zeros((8, 64), np.float16)[:, ::2], (8, 32), 64, "have to lie side by side"),
        (np.zeros((8, 65), np.float16), (8, 64), 128, r"strides \(130 bytes\) are to be multiples"),
        (np.zeros(1000, np.float16)[1:].reshape(-1, 9), (8, 8), 0, "begins at an address"),
        (np.zeros((8, 64), np.float16), (8, 128), 128, "256 bytes, more than the 128 that are"),
        (np.zeros((8, 64), np.float16), (8, 32), 128, "64 bytes, fewer than the 128 that are"),
        (np.zeros((8, 64), np.float16), (8, 60), 0, "has 120 bytes, which is no multiple of 16"),
        (np.zeros((512, 64), np.float16), (257, 64), 128, "1 to 256 elements along each"),
        (np.zeros((512, 64), np.float16), (0, 64), 128, "1 to 256 elements along each"),
        (np.zeros((8, 64), np.float16), (64,), 128, "the box has 1 dimensions, and the array 2"),
        (np.zeros((8, 64), np.float16), (8, 64), 256, "swizzle is one of 0, 32, 64, 128 bytes"),
        (np.zeros((1,) * 5 + (64,), np.float16), (1,) * 5 + (64,), 128, "has 6 dimensions, and a"),
        (np.zeros((8, 64), "V3"), (8, 64), 128, "elements have 3 bytes"),
        (np.zeros((0, 64), np.float16), (8, 64), 128, "each dimension of the array has to have 1"),
    ],
)  # fmt: skip
def test_what_the_hardware_does_not_take_is_told(array, box, swizzle, told):
    with pytest.raises(ValueError, match=told):
        tensor_map(array, box, swizzle)


def test_a_gpus_driver_is_asked_in_its_own_order(monkeypatch):
    driver = pytest.importorskip("cuda.bindings.driver")
    asked, answer = [], [driver.CUresult.CUDA_SUCCESS]

    def encode(*args):
        asked.append(args)
        made = driver.CUtensorMap()
        made.opaque = [driver.cuuint64_t(n + 1) for n in range(16)]
        return answer[0], made

    monkeypatch.setattr(driver, "cuTensorMapEncodeTiled", encode)
    host = np.zeros((2, 300, 4, 64), np.float16).transpose(0, 2, 1, 3)
    device = SimpleNamespace(
        dtype=host.dtype, size=host.size, shape=host.shape, strides=host.strides, ndim=4,
        data=SimpleNamespace(ptr=0x7F0000001000),
    )  # fmt: skip
    made = tensor_map(device, (1, 1, 128, 64), 128)
    assert made.view(np.uint64).tolist() == list(range(1, 17))
    kind, rank, address, sizes, strides, box, steps, interleave, swizzle, _, fill = asked[0]
    assert kind == driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16
    assert (rank, address) == (4, 0x7F0000001000)
    assert [int(n) for n in sizes] == [64, 300, 4, 2]
    assert [int(n) for n in strides] == [4 * 128, 128, 300 * 4 * 128]
    assert [int(n) for n in box] == [64, 128, 1, 1] and [int(n) for n in steps] == [1] * 4
    assert swizzle == driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B
    assert interleave.name.endswith("NONE") and fill.name.endswith("NONE")
    tensor_map(device, (1, 1, 128, 32), 0)
    assert asked[1][8] == driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE
    answer[0] = driver.CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        tensor_map(device, (1, 1, 128, 64), 128)
