"""Instructions of a warp whose lanes name different groups, against what the definitions say.

PTX ISA, "Parallel Synchronization and Communication Instructions": vote, match and redux give a
thread the result of the threads that its membermask names.
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator

THREADS = 96
KERNEL = """
extern "C" __global__ void k(const unsigned* masks, const unsigned* values,
                             unsigned* out, int* flags) {
  int t = threadIdx.x; unsigned mask = masks[t], x = values[t]; int flag = 0;
  out[t] = %s;
  flags[t] = flag;
}"""


def masks_of(keys: np.ndarray) -> np.ndarray:
    """For each thread the lanes of its warp that have its key."""
    lanes = keys.reshape(-1, 32)
    same = lanes[:, :, None] == lanes[:, None, :]
    return (same * (1 << np.arange(32, dtype=np.uint64))).sum(-1).astype(np.uint32).ravel()


RANDOM = np.random.default_rng(11)
VALUES = RANDOM.integers(0, 2**32, THREADS, dtype=np.uint64).astype(np.uint32)
LANE = np.arange(THREADS) % 32
GROUPS = {
    "whole warps": masks_of(np.zeros(THREADS, int)),
    "half warps": masks_of(LANE // 16),
    "tiles of four": masks_of(LANE // 4),
    "equal keys": masks_of(RANDOM.integers(0, 5, THREADS)),
    "one warp in parts": masks_of(np.where(np.arange(THREADS) < 32, LANE % 3, 0)),
}


def ballot(lanes: list[int], which) -> int:
    return sum(1 << n for n in lanes if which(n))


# Each takes the lanes of the thread's group, the values of its warp, and the thread.
EXPECTED = {
    "__reduce_add_sync(mask, x)": lambda ls, v, t: int(v[ls].sum()) & 0xFFFFFFFF,
    "__reduce_max_sync(mask, x)": lambda ls, v, t: int(v[ls].max()),
    "__reduce_xor_sync(mask, x)": lambda ls, v, t: int(np.bitwise_xor.reduce(v[ls])),
    "__reduce_min_sync(mask, (int)x)": lambda ls, v, t: (
        int(v[ls].astype(np.uint32).view(np.int32).min()) & 0xFFFFFFFF
    ),
    "__ballot_sync(mask, x & 1)": lambda ls, v, t: ballot(ls, lambda n: v[n] & 1),
    "__any_sync(mask, x % 5 == 0)": lambda ls, v, t: int((v[ls] % 5 == 0).any()),
    "__all_sync(mask, x % 5 != 0)": lambda ls, v, t: int((v[ls] % 5 != 0).all()),
    "__match_any_sync(mask, x % 3)": lambda ls, v, t: (
        ballot(ls, lambda n: v[n] % 3 == v[t % 32] % 3)
    ),
    "__match_all_sync(mask, x % 2, &flag)": lambda ls, v, t: (
        ballot(ls, lambda n: True) if len(set(v[ls] % 2)) == 1 else 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("call", EXPECTED)
def test_each_group_has_its_own_result(call, groups):
    masks = GROUPS[groups]
    out, flags = np.zeros(THREADS, np.uint32), np.zeros(THREADS, np.int32)
    simulator.launch(KERNEL % call, "k", (1,), (THREADS,), (masks, VALUES, out, flags))
    warps = VALUES.astype(np.uint64).reshape(-1, 32)
    expected = [
        EXPECTED[call]([n for n in range(32) if masks[t] >> n & 1], warps[t // 32], t)
        for t in range(THREADS)
    ]
    assert out.tolist() == expected
    if "flag" in call:
        assert flags.tolist() == [int(one != 0) for one in expected]


def test_lanes_that_do_not_run_are_in_no_group():
    """Their masks are whatever they were: two groups run, one of them under a branch."""
    code = """extern "C" __global__ void k(unsigned* out) {
      int t = threadIdx.x; unsigned mask = t < 8 ? 0x000000ffu : 0x00ffff00u;
      if (t < 24) out[t] = __reduce_add_sync(mask, t);
    }"""
    out = np.zeros(32, np.uint32)
    simulator.launch(code, "k", (1,), (32,), (out,))
    assert out.tolist() == 8 * [28] + 16 * [sum(range(8, 24))] + 8 * [0]
