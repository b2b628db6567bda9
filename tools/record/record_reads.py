"""Measure how much a GPU reads from its memory by warps an SM and by loads that a warp has in flight.

    python tools/record/record_reads.py --into helpers/measure/recorded/h200_facts.json

Needs CuPy and a GPU, the one whose facts the file has. Each thread walks an array of 1 GiB by 4-byte loads:
so many of them, side by side for the warp, then their sum. The median of 3 samples after a warm-up is kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

WARPS, LOADS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8)
FLOATS = 1 << 28
SAMPLES = 3
CODE = """
extern "C" __global__ void read(const float* a, float* b, long long n) {
    const long long step = gridDim.x * (long long)blockDim.x;
    float sum = 0.0f;
    #pragma unroll 1
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step * LOADS) {
        float value[LOADS];
        #pragma unroll
        for (int l = 0; l < LOADS; l++) value[l] = i + l * step < n ? __ldcg(a + i + l * step) : 0.0f;
        #pragma unroll
        for (int l = 0; l < LOADS; l++) sum += value[l];
    }
    if (sum == 1.5f) b[0] = sum;  // never, but the compiler does not know
}
"""


def measure() -> dict[str, dict[str, float]]:
    """{loads: {warps: TB/s}} on this machine's GPU."""
    import cupy as cp

    sms = cp.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
    a, b = cp.zeros(FLOATS, cp.float32), cp.zeros(1, cp.float32)
    found: dict[str, dict[str, float]] = {}
    for loads in LOADS:
        kernel = cp.RawKernel(CODE, "read", options=("-std=c++17", f"-DLOADS={loads}"))
        for warps in WARPS:
            blocks, threads = sms * max(1, warps // 32), 32 * min(warps, 32)
            times = []
            for _ in range(SAMPLES + 1):
                start, end = cp.cuda.Event(), cp.cuda.Event()
                start.record()
                kernel((blocks,), (threads,), (a, b, cp.int64(FLOATS)))
                end.record()
                end.synchronize()
                times.append(cp.cuda.get_elapsed_time(start, end))
            rate = a.nbytes / statistics.median(times[1:]) / 1e9
            found.setdefault(str(loads), {})[str(warps)] = rate
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    path = parser.parse_args().into
    facts = json.loads(path.read_text("utf-8"))
    facts["measured"]["dram_read_TBps_by_loads_and_warps"] = measure()
    path.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
