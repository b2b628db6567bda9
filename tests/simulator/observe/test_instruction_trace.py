"""The instructions of a warp, against the counter of instructions and the order of the source."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.simulator import launch
from helpers.simulator.errors import SimulatorError

COPIES = """
__device__ void copy(float* s, const float* from) {
    unsigned to = (unsigned)__cvta_generic_to_shared(s);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}
extern "C" __global__ void copies(const float* A, const float* B, float* out, int n) {
    __shared__ __align__(16) float s[2][64 * 4];
    int t = threadIdx.x;
    copy(&s[0][4 * t], A + 4 * t);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int k = 0; k < n; k++) {
        copy(&s[1][4 * t], B + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (t >= 32) out[t] += s[0][252 - 4 * t + k];
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
    }
}
"""
PRODUCT = """
extern "C" __global__ void product(const unsigned* from, float* out) {
    __shared__ __align__(16) unsigned s[2][128];
    int lane = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        s[0][32 * k + lane] = from[32 * k + lane];
        s[1][32 * k + lane] = from[128 + 32 * k + lane];
    }
    __syncwarp();
    unsigned a[4], b[4];
    float c[4] = {};
    unsigned at_a = (unsigned)__cvta_generic_to_shared(&s[0][4 * lane]);
    unsigned at_b = (unsigned)__cvta_generic_to_shared(&s[1][4 * lane]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at_a));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at_b));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2]), "r"(b[3]));
    for (int i = 0; i < 4; i++) out[4 * lane + i] = c[i];
}
"""


def copies(n: int = 2, **options):
    A, B = (np.arange(first, first + 256, dtype=np.float32) for first in (0, 1000))
    out = np.zeros(64, np.float32)
    args = (A, B, out, np.int32(n))
    return launch(COPIES, "copies", 2, 64, args, progress=False, **options)


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "warps_reversed"])
def test_all_instructions_of_all_warps_are_there(schedule):
    report = copies(3, schedule=schedule)
    each = [report.issued((block, 0, 0), warp=warp) for block in (0, 1) for warp in (0, 1)]
    assert sum(map(len, each)) == report.counters["instructions"]
    assert len(each[0]) < len(each[1])  # warp 1 adds to `out`, warp 0 goes past that
    assert [one.number for one in each[0]] == list(range(len(each[0])))


@pytest.mark.parametrize("schedule", ["lockstep", "warps_reversed"])
def test_copies_groups_and_barriers_stand_in_the_order_of_the_source(schedule):
    found = copies(2, schedule=schedule).issued(warp=1)
    told = [(one.kind, one.line, one.left) for one in found
            if one.kind in ("copy", "commit", "wait", "barrier")]  # fmt: skip
    one_round = [("copy", 4, None), ("commit", 13, None), ("wait", 14, 1), ("barrier", 15, None),
                 ("wait", 17, 0), ("barrier", 18, None)]  # fmt: skip
    assert told == [("copy", 4, None), ("commit", 10, None), *one_round, *one_round]


@pytest.mark.parametrize("schedule", ["lockstep", "warps_reversed"])
def test_an_instruction_has_the_accesses_of_its_own_round(schedule):
    found = copies(3, schedule=schedule).issued(warp=1)
    where = ["A", "B", "B", "B"]
    for one in found:
        if one.kind == "copy":
            read, written = one.accesses
            assert (read.array, read.kind, written.kind) == (where.pop(0), "load", "copy")
            assert read.indices[read.active].tolist() == list(range(128, 256, 4))
            assert read.active[1].all() and not read.active[0].any()
    loads = [one.accesses[0] for one in found if one.kind == "load" and one.accesses]
    shared = [a.indices[1].tolist() for a in loads if a.space == "shared"]
    assert shared == [[252 - 4 * t + k for t in range(32, 64)] for k in range(3)]


def test_the_loads_behind_a_product_are_known():
    from_ = np.zeros(256, np.uint32)
    out = np.zeros(128, np.float32)
    found = launch(PRODUCT, "product", 1, 32, (from_, out), progress=False).issued()
    (mma,) = [one for one in found if one.kind == "mma"]
    assert mma.name.startswith("mma.sync.aligned.m16n8k16")
    for numbers, first in zip(mma.operands, (0, 128), strict=True):
        (number,) = numbers
        assert found[number].name.startswith("ldmatrix")
        assert found[number].accesses[0].indices[0, 0] == first


def test_without_a_trace_there_is_nothing_to_tell():
    for options in ({"count": False}, {"trace_bytes": 1000}):
        with pytest.raises(SimulatorError, match="trace"):
            copies(2, **options).issued()


def test_a_launch_of_too_many_instructions_is_told(monkeypatch):
    monkeypatch.setattr("helpers.simulator.observe.tally._RAN_BYTES", 500)
    report = copies(2)
    assert report.accesses()
    with pytest.raises(SimulatorError, match="ran too many: trace a smaller grid"):
        report.issued()


def test_there_is_no_such_warp():
    assert copies().issued(warp=2) == [] == copies().issued((5, 0, 0))
