"""When warps came to the barriers of their block, against the counter and the order of a run."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.simulator import launch
from helpers.simulator.errors import SimulatorError

CODE = """
extern "C" __global__ void turns(float* out, int n) {
    __shared__ float s[96];
    for (int k = 0; k < n; k++) {
        s[threadIdx.x] = k;
        __syncthreads();
        if (threadIdx.x < 40) out[blockIdx.x * 96 + threadIdx.x] += s[95 - threadIdx.x];
        __syncthreads();
    }
}
"""


def run(schedule: str, n: int = 3, **options):
    out = np.zeros((2, 96), np.float32)
    args = (out, np.int32(n))
    return launch(CODE, "turns", 2, 96, args, schedule=schedule, progress=False, **options)


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "warps_reversed"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_every_warp_comes_to_every_barrier(schedule, n):
    report = run(schedule, n)
    each = [report.arrivals((block, 0, 0)) for block in (0, 1)]
    assert sum(len(a.warps) for found in each for a in found) == report.counters["barriers"]
    for found in each:
        for warp in range(3):
            assert [a.line for a in found if warp in a.warps] == [6, 8] * n


def test_arrivals_stand_between_the_accesses():
    report = run("warps", 1)
    stores = [a.order for a in report.of_block(kind="store", space="shared")]
    first = [a for a in report.arrivals() if a.line == 6]
    assert [a.warps for a in first] == [(0,), (1,), (2,)]
    assert [a.order for a in first] == stores  # each warp stores, and comes
    assert [a.warps for a in run("warps_reversed", 1).arrivals()][:3] == [(2,), (1,), (0,)]


def test_without_a_trace_there_are_none():
    with pytest.raises(SimulatorError, match="count=False"):
        run("lockstep", count=False).arrivals()
    with pytest.raises(SimulatorError, match="was dropped"):
        run("lockstep", trace_bytes=1).arrivals()
