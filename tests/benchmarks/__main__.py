"""`make bench`: the ladder beside PyTorch on a GPU; without one, how fast the simulator is.

The latter as ratios within one run on this machine.

Prints a table; the targets beside the ratios are those that the simulator was built for. Nothing
here is a test: a busy machine is slow, and that is no fault.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from helpers import device, simulator

from . import benches, on_gpu, sanitized

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TILE = 16
NUMBA = """
import os, time
import numpy as np
from numba import cuda

@cuda.jit
def qk(Q, K, S, N, d):
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < N and col < N:
        total = np.float32(0)
        for i in range(d):
            total += Q[row, i] * K[col, i]
        S[row, col] = total

N, d = 32, 16
rng = np.random.default_rng(1)
Q, K = (rng.standard_normal((N, d), dtype=np.float32) for _ in range(2))
S = np.zeros((N, N), np.float32)
qk[(1, 1), (2, 2)](Q, K, S, 2, 2)
start = time.perf_counter()
qk[(2, 2), (16, 16)](Q, K, S, N, d)
print((time.perf_counter() - start) / (N * N * d))
assert np.allclose(S, Q @ K.T, atol=1e-4)
"""


def inputs(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q, K (n, d) and a poisoned S (n, n)."""
    rng = np.random.default_rng(n)
    q, k = (rng.standard_normal((n, d), dtype=np.float32) for _ in range(2))
    return q, k, np.full((n, n), np.nan, np.float32)


def simulated(n: int, d: int, count: bool) -> float:
    """Seconds of one launch of the naive product."""
    q, k, s = inputs(n, d)
    source = (KERNELS / "02_naive.cu").read_text()
    blocks = -(-n // TILE)
    start = time.perf_counter()
    simulator.launch(
        source, "scaled_dot_product", (blocks, blocks), (TILE, TILE),
        (q, k, s, np.int32(n), np.int32(d)), (f"-DTILE={TILE}",), 0, count, progress=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    expected = q.astype(np.float64) @ k.T.astype(np.float64) / np.sqrt(d)
    assert np.abs(s - expected).max() < 1e-5 * np.abs(expected).max()
    return seconds


def plain_numpy(n: int, d: int) -> float:
    """Seconds that whole-array NumPy needs for the same gathers, multiplications and sums."""
    q, k, s = inputs(n, d)
    row, col = np.divmod(np.arange(n * n), n)
    start = time.perf_counter()
    total = np.zeros(n * n, np.float32)
    for i in range(d):
        total += q.reshape(-1)[row * d + i] * k.reshape(-1)[col * d + i]
    s.reshape(-1)[row * n + col] = total / np.float32(np.sqrt(d))
    return time.perf_counter() - start


def best(function, *args, repeats: int = 3) -> float:
    """The shortest of a few runs."""
    return min(function(*args) for _ in range(repeats))


def numba_per_step() -> float | None:
    """Seconds a thread-iteration under Numba's CUDA simulator, or None without Numba."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run(
        [sys.executable, "-c", NUMBA], capture_output=True, text=True, env=environment
    )
    if run.returncode:
        print(run.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return float(run.stdout)


def main() -> None:
    """Run all benchmarks and print them."""
    simulated(64, 64, True)
    rows = []
    n, d = 1024, 64
    numpy_seconds = best(plain_numpy, n, d)
    counted = best(simulated, n, d, True)
    uncounted = best(simulated, n, d, False)
    rows.append((f"counted run of naive QK^T, N={n}, d={d}: plain NumPy's times",
                 counted / numpy_seconds, "at most 6, aiming at 3"))  # fmt: skip
    rows.append(("the same with count=False", uncounted / numpy_seconds, ""))
    per_step = numba_per_step()
    if per_step is not None:
        faster = per_step / (uncounted / (n * n * d))
        what = "times faster than Numba's CUDA simulator, count=False"
        rows.append((what, faster, "at least 400, aiming at 1,000"))
    per_thread = {}
    for size in (256, 512, 1024, 2048):
        per_thread[size] = best(simulated, size, d, True, repeats=2) / size**2
        rows.append((f"N={size}: nanoseconds a thread", per_thread[size] * 1e9, ""))
    rows.append(("from N=256 to N=2048, time a thread grows by", per_thread[2048] / per_thread[256],
                 "about 1 or less: linear"))  # fmt: skip
    worst = max((after / before, name) for name, before, after in sanitized.costs(2))
    rows.append((f"sanitized: counted runs' times, at worst ({worst[1]})", worst[0], "at most 4"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append(("peak memory of all this in GiB", peak, "under 1.5"))
    print(f"NumPy {np.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    for what, value, target in rows:
        print(f"{what:<62} {value:>10,.2f}   {target}")
    print("Benches: seconds from a change to its picture")
    benches.benches(benches.names())


if __name__ == "__main__":
    if device.is_gpu:
        raise SystemExit(on_gpu.main())
    main()
