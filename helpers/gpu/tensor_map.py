"""Tensor maps: what the tensor memory accelerator of a Hopper GPU is told of an array.

    maps = tensor_map(Q, box=(1, 64, 1, 64), swizzle=128)     # Q is (batch, rows, heads, 64)
    kernel(grid, block, (maps, ...))    # const __grid_constant__ TensorMap map, 128 bytes

On a GPU the driver encodes it (`cuTensorMapEncodeTiled`), and without one the simulator's own code
stands in its 128 bytes. A kernel names coordinates from the innermost dimension outwards; shapes
and boxes stand here as everywhere in Python, the innermost last.
"""

from collections.abc import Sequence

import numpy as np

from ..simulator.isa.tensor.tensor_maps import BYTES, TensorMap
from ..simulator.machine.memory import ALLOCATIONS

_OPAQUE = np.dtype((np.void, BYTES))


class MappedArray(np.ndarray):
    """A tensor map as an argument of a kernel: one element of 128 bytes, passed by value.

    Attributes:
        array: what it is of, kept alive.
        box: elements of the box along each dimension.
        swizzle: bytes of a row that are swizzled, or 0.
    """

    array = None
    box: tuple[int, ...] = ()
    swizzle = 0

    def of(self, array) -> "MappedArray":
        """The same map of another array, such as a copy on the host."""
        return tensor_map(array, self.box, self.swizzle)


def tensor_map(array, box: Sequence[int], swizzle: int = 0) -> MappedArray:
    """Tell the tensor memory accelerator of an array and of the box that a copy moves.

    Args:
        array: of `cp` or, for the simulator, of NumPy; of up to five dimensions, elements of the
            innermost side by side. Other dimensions may be in any order, so views are welcome.
        box: elements along each dimension, 1 to 256; the last has to fill the swizzle.
        swizzle: 0 (none), 32, 64 or 128 bytes.

    Raises:
        ValueError: the hardware does not take it; the message says why.
        RuntimeError: the driver refuses it.
    """
    box = tuple(int(n) for n in box)
    described = _described(array, box, swizzle)
    if fault := described.fault():
        raise ValueError(f"There is no such tensor map: {fault}.")
    data = described.encode() if isinstance(array, np.ndarray) else _encoded(described)
    found = np.frombuffer(data, _OPAQUE).copy().view(MappedArray)
    found.array, found.box, found.swizzle = array, box, swizzle
    return found


def _described(array, box: tuple[int, ...], swizzle: int) -> TensorMap:
    itemsize = array.dtype.itemsize
    if array.ndim and array.size and array.shape[-1] > 1 and array.strides[-1] != itemsize:
        raise ValueError(
            "There is no such tensor map: elements of the innermost dimension have to lie side by "
            "side; copy the array, or put another dimension last."
        )
    sizes, strides, beyond = array.shape[::-1], [], array.shape[-1] * itemsize if array.ndim else 0
    for size, stride in zip(sizes[1:], array.strides[-2::-1], strict=True):
        # of a dimension with one element no stride is ever used
        strides.append(stride if size > 1 else -(-beyond // 16) * 16)
        beyond = max(beyond, strides[-1] * size)
    host = isinstance(array, np.ndarray)
    address = ALLOCATIONS.tell(array) if host else array.data.ptr
    return TensorMap(address, sizes, tuple(strides), box[::-1], itemsize, swizzle)


def _encoded(described: TensorMap) -> bytes:
    """The driver's 128 bytes.

    Raises:
        RuntimeError: it refuses.
    """
    from cuda.bindings import driver  # late: there are no wheels for macOS

    kinds = driver.CUtensorMapDataType
    types = {
        1: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        2: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        8: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT64,
    }
    name = f"CU_TENSOR_MAP_SWIZZLE_{f'{described.swizzle}B' if described.swizzle else 'NONE'}"
    error, encoded = driver.cuTensorMapEncodeTiled(
        types[described.itemsize],
        len(described.sizes),
        described.address,
        [driver.cuuint64_t(n) for n in described.sizes],
        # one at least, of which an array of one dimension makes no use
        [driver.cuuint64_t(n) for n in described.strides or (BYTES,)],
        [driver.cuuint32_t(n) for n in described.box],
        [driver.cuuint32_t(1) for _ in described.box],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, name),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"The driver makes no tensor map of {described}: {error.name}.")
    return np.array([int(word) for word in encoded.opaque], np.uint64).tobytes()
