"""What fences and atomics order between blocks, and shuffles of lanes that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator

TICKET = """
__device__ unsigned ticket;
extern "C" __global__ void k(const float* a, float* part, float* sum) {
    __shared__ bool last;
    __shared__ float s[64];
    s[threadIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float mine = 0;
        for (int i = 0; i < blockDim.x; i++) mine += s[i];
        part[blockIdx.x] = mine;
        FENCE
        last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) atomicAdd(sum, part[threadIdx.x]);
}
"""
ALL_WRITE = """
extern "C" __global__ void k(int* o, int* flag, int* seen) {
    if (blockIdx.x == 0) {
        o[threadIdx.x] = 7;
        BEFORE
        __syncthreads();
        if (threadIdx.x == 0) { AFTER atomicExch(flag, 1); }
    } else {
        if (threadIdx.x == 0) while (atomicAdd(flag, 0) == 0) { }
        __syncthreads();
        seen[threadIdx.x] = o[threadIdx.x];
    }
}
"""
LOCK = """
extern "C" __global__ void k(int* lock, int* o) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1)) { }
        ENTER
        o[0] += blockIdx.x;
        LEAVE
        atomicExch(lock, 0);
    }
}
"""
POLLED = """
extern "C" __global__ void k(int* o, volatile int* flag, int* seen) {
    if (blockIdx.x == 0) { o[0] = 5; FENCE flag[0] = 1; }
    else { while (flag[0] == 0) { } ORDER seen[0] = o[0]; }
}
"""


def findings(code: str, grid: int, block: int, *args, **words: str):
    for name, text in words.items():
        code = code.replace(name, text)
    return simulator.launch(code, "k", grid, block, args, sanitize=True).findings


def zeros(n: int, kind=np.int32):
    return np.zeros(n, kind)


@pytest.mark.parametrize("fence", ["__threadfence();", "__threadfence_system();"])
def test_the_last_block_reads_what_all_have_published(fence):
    total = zeros(1, np.float32)
    args = (np.ones(11 * 48, np.float32), zeros(11, np.float32), total)
    assert not findings(TICKET, 11, 48, *args, FENCE=fence)
    assert total[0] == 11 * 48


@pytest.mark.parametrize("fence", ["", "__threadfence_block();"])
def test_without_a_fence_nothing_is_published(fence):
    args = (np.ones(11 * 48, np.float32), zeros(11, np.float32), zeros(1, np.float32))
    found = findings(TICKET, 11, 48, *args, FENCE=fence)
    assert found and found[0].kind == "race" and set(found[0].lines) == {11, 16}
    assert "__syncthreads" not in found[0].message


@pytest.mark.parametrize(
    ("before", "after", "clean"),
    [
        ("", "__threadfence();", True),  # the barrier's knowledge goes through the fence
        ("__threadfence();", "", True),  # each has fenced what it wrote
        ("", "", False),
    ],
)
def test_a_block_publishes_by_one_thread(before, after, clean):
    found = findings(ALL_WRITE, 2, 40, zeros(40), zeros(1), zeros(40), BEFORE=before, AFTER=after)
    assert bool(found) is not clean
    if not clean:
        assert "o[" in found[0].message


def test_a_fence_in_front_of_the_write_is_too_early():
    early = ALL_WRITE.replace("o[threadIdx.x] = 7;", "__threadfence(); o[threadIdx.x] = 7;")
    assert findings(early, 2, 40, zeros(40), zeros(1), zeros(40), BEFORE="", AFTER="")


@pytest.mark.parametrize(
    ("enter", "leave", "clean"),
    [("__threadfence();", "__threadfence();", True), ("__threadfence();", "", False)],
)
def test_a_lock_orders_what_is_done_under_it(enter, leave, clean):
    o = zeros(1)
    found = findings(LOCK, 6, 32, zeros(1), o, ENTER=enter, LEAVE=leave)
    assert o[0] == 15 and bool(found) is not clean


def test_a_flag_that_is_polled():
    args = (zeros(1), zeros(1), zeros(1))
    fence = "__threadfence();"
    assert not findings(POLLED, 2, 1, *args, FENCE=fence, ORDER=fence)
    args = (zeros(1), zeros(1), zeros(1))
    found = findings(POLLED, 2, 1, *args, FENCE="", ORDER=fence)
    assert [f.lines for f in found] == [(3, 4)]
    assert "__threadfence()" in found[0].message and "two kernels" not in found[0].message


def test_another_word_orders_nothing():
    late = "atomicExch(flag, 1); __threadfence(); atomicExch(flag + 1, 1);"
    code = ALL_WRITE.replace("atomicExch(flag, 1);", late)
    assert findings(code, 2, 40, zeros(40), zeros(2), zeros(40), BEFORE="", AFTER="")


def test_advice_fits_the_case():
    counter = 'extern "C" __global__ void k(int* n) { n[0] = n[0] + 1; }'
    (told,) = {f.message.rsplit("; ", 1)[1][:13] for f in findings(counter, 1, 32, zeros(1))}
    assert told == "use an atomic"
    assert "use an atomic" in findings(counter, 2, 1, zeros(1))[0].message
    steps = (
        'extern "C" __global__ void k(int* o) { __shared__ int s[32]; int t = threadIdx.x;'
        " s[t] = t; __syncthreads(); if (t < 16) s[t] += s[t + 16]; if (t < 8) s[t] += s[t + 8];"
        " o[t] = s[0]; }"
    )
    found = findings(steps, 1, 32, zeros(32))
    assert any("__syncwarp()" in f.message for f in found)


BRANCH = """
extern "C" __global__ void k(float* o) {
    int t = threadIdx.x;
    float m = o[t];
    for (int s = 16; s >= 1; s /= 2)
        if (t < s) m = fmaxf(m, __shfl_down_sync(0xffffffff, m, s));
    if (t == 0) o[0] = m;
}
"""


def test_a_shuffle_reads_lanes_that_take_no_part():
    found = findings(BRANCH, 1, 32, np.arange(32, dtype=np.float32))
    assert {f.lines for f in found} == {(6,)}
    assert "reads lanes 16 to 31 by a shuffle" in found[0].message


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("if (t >= 16) return; o[t] = __shfl_sync(0xffff, t, 20);", "lane 20"),
        ("if (t & 1) o[t] = __shfl_xor_sync(0xaaaaaaaa, t, 1);", "lanes 0, 2, 4"),
        ("if (t < 24) o[t] = __shfl_up_sync(0xffffff, t, 3);", None),
        ("if (t < 16) o[t] = __shfl_down_sync(0xffff, t, 8, 16);", None),
        ("o[t] = __shfl_down_sync(0xffffffff, t, 8);", None),
    ],
)
def test_lanes_that_are_read_must_be_there(body, what):
    code = f'extern "C" __global__ void k(int* o) {{ int t = threadIdx.x; {body} }}'
    found = findings(code, 1, 32, zeros(32))
    assert bool(found) is (what is not None)
    if what:
        assert what in found[0].message


def test_a_lane_that_takes_no_part_gives_what_an_h200_gives():
    """Read on an H200 (2026-11-30): 0, whether the lane has left, is elsewhere or never was."""
    codes = {
        "if (t >= 16) return; o[t] = __shfl_down_sync(0xffff, v, 8);": [*range(108, 116), *[0] * 8],
        "if (t < 16) o[t] = __shfl_xor_sync(0xffffffff, v, 16);": [0] * 16,
        "if (t & 1) o[t] = __shfl_xor_sync(0xaaaaaaaa, v, 1); else o[t] = 9;": [9, 0] * 8,
    }
    for body, expected in codes.items():
        o = zeros(32)
        code = (
            f'extern "C" __global__ void k(int* o) {{ int t = threadIdx.x, v = t + 100; {body} }}'
        )
        simulator.launch(code, "k", 1, 32, (o,))
        assert o[:16].tolist() == expected
    o = zeros(20)
    code = 'extern "C" __global__ void k(int* o) { int t = threadIdx.x; o[t] = '
    simulator.launch(code + "__shfl_down_sync(~0u, t + 100, 12); }", "k", 1, 20, (o,))
    assert o.tolist() == [*range(112, 120), *[0] * 12]
