"""Elements that nobody wrote, counted where the array is: on a GPU, of as large an array as it has.

CuPy's own sum of a comparison does the same, and compiles for a second before.
"""

from __future__ import annotations

import functools

import numpy as np

from . import device

_CODE = r"""
extern "C" __global__ void count_nan(
    const void* words, long long n, int bytes, unsigned infinity, unsigned long long* count
) {
    const long long step = (long long)gridDim.x * blockDim.x;
    unsigned found = 0;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const unsigned word = bytes == 4 ? ((const unsigned*)words)[i] & 0x7fffffffu
                                         : ((const unsigned short*)words)[i] & 0x7fffu;
        found += word > infinity;
    }
    if (found) atomicAdd(count, (unsigned long long)found);
}
"""
_INFINITY = {"float32": 0x7F800000, "float16": 0x7C00, "bfloat16": 0x7F80}  # as a word
_BLOCKS, _THREADS = 1024, 256


def count_nan(array) -> int:
    """How many elements of an array of `cp` are no number.

    Args:
        array: of any shape; quick if its elements lie one after the other.
    """
    infinity = _INFINITY.get(array.dtype.name)
    if infinity is None or not array.flags.c_contiguous:
        return int((array != array).sum())
    count = device.cp.zeros(1, np.uint64)
    blocks = max(1, min(_BLOCKS, -(-array.size // _THREADS)))
    args = (array, np.int64(array.size), np.int32(array.itemsize), np.uint32(infinity), count)
    _kernel()((blocks,), (_THREADS,), args)
    return int(device.cp.asnumpy(count)[0])


@functools.cache
def _kernel():
    return device.cp.RawKernel(_CODE, "count_nan")
