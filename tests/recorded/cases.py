"""What a recorded case is, and random numbers that stay the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

# With these two, NaN is one value: kernels that look at the bits of a float go through them.
BITS = """
__device__ __forceinline__ unsigned bits(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }
__device__ __forceinline__ unsigned long long bits(double x) {
  return x != x ? 0x7fffffffffffffffull : (unsigned long long)__double_as_longlong(x);
}
"""


class Stream:
    """Random numbers from PCG64's raw output, which NumPy promises never to change."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.PCG64(np.random.SeedSequence(seed))

    def words(self, count: int) -> np.ndarray:
        """`count` random uint64."""
        return self._generator.random_raw(count)

    def below(self, bound: int) -> int:
        """A random integer in [0, bound)."""
        return int(self._generator.random_raw()) % bound

    def between(self, low: int, high: int) -> int:
        """A random integer in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, choices: Sequence):
        """One of `choices`."""
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 cases."""
        return self.below(100) < percent

    def uniform(self, count: int) -> np.ndarray:
        """`count` float64 in [0, 1)."""
        return (self.words(count) >> np.uint64(11)) * 2.0**-53


@dataclass(frozen=True)
class Case:
    """One launch: a kernel, its geometry and its arguments.

    `make_args` gives fresh arguments, NumPy arrays and NumPy scalars in order; `outputs` are the positions of the
    arrays that the kernel writes. `notes` is for the comparison (see `tests/simulator/observe/test_recorded_h200.py`).
    """

    name: str
    code: str
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make_args: Callable[[], list]
    outputs: tuple[int, ...]
    options: tuple[str, ...] = ()
    shared_mem: int = 0
    notes: dict = field(default_factory=dict)

    def digest(self) -> str:
        """A fingerprint of code, launch and inputs: recorded results hold for this text and these inputs alone."""
        sha = hashlib.sha256(self.code.encode())
        sha.update(
            repr((self.entry, self.grid, self.block, self.options, self.shared_mem)).encode()
        )
        for value in self.make_args():
            array = np.asarray(value)
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()[:16]
