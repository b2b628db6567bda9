"""Many rounds at once give what the rounds one by one give: results, counts and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator
from helpers.simulator.errors import SimulatorError
from helpers.simulator.machine import machine, rounds

rng = np.random.default_rng(7)


def kernel(body: str, parameters: str = "int n, const float* x, float* y") -> str:
    return f'extern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


def run(code: str, n: int, threads: int = 1, count: bool = False, x=None, kind=np.float32):
    """(y, rounds run together, report) of a launch on n + 5 numbers."""
    x = np.linspace(-3, 5, n + 5).astype(kind) if x is None else x
    y = np.arange(n + 5).astype(kind)
    ran = []
    folded = rounds.fold

    def counted(*given):
        ran.append(folded(*given))
        return ran[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "fold", counted)
        report = simulator.launch(code, "k", 1, threads, (np.int32(n), x, y), count=count)
    return y, sum(ran), report


def one_by_one(*given, **more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "TRIES", 0)
        return run(*given, **more)


FREE = [  # body, threads
    ("for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += x[i];", 1),
    ("for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[n - 1 - i] * 3;", 7),
    ("for (int i = n - 1; i >= 0; i--) y[i] = y[i] * x[i] - i;", 1),
    ("float s = 0.1f; for (int i = 0; i < n; i++) s += x[i]; y[0] = s;", 1),
    ("float s = 0; for (int i = 0; i < n; i++) s += x[i] * x[n - i]; y[0] = s;", 1),
    ("float s = 0; for (int i = threadIdx.x; i < n; i += 3) s += x[i] * y[i] + 1; "
     "y[threadIdx.x] = s;", 3),
    ("int s = 5; for (int i = 0; i < n; i++) s += i * i; y[0] = s % 1000;", 1),
    ("for (int i = threadIdx.x; i < n; i += 2) if (i != 9) y[i + 1] = x[i]; else y[0] = 2;", 2),
]  # fmt: skip


@pytest.mark.parametrize(("body", "threads"), FREE)
def test_results_are_the_same(body, threads):
    got, together, _ = run(kernel(body), 2717, threads)
    want, none, _ = one_by_one(kernel(body), 2717, threads)
    assert np.array_equal(got, want)
    assert none == 0
    if "if" not in body and "int s" not in body:
        assert together >= 128


def test_sums_are_rounded_after_each_addition():
    x = (rng.standard_normal(4005) * 2.0 ** rng.integers(-12, 12, 4005)).astype(np.float32)
    got, together, _ = run(kernel(FREE[4][0]), 4000, x=x)
    total = np.float32(0)
    for i in range(4000):  # an fma rounds once: exact in extended precision, then to fp32
        exact = np.longdouble(x[i]) * np.longdouble(x[4000 - i]) + np.longdouble(total)
        total = np.float32(exact)
    assert together > 500 and got[0] == total


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n; i++) y[i + 1] = y[i] * 0.5f + x[i];",  # a scan
        "for (int i = 0; i < n; i++) y[(i * 7) % 64] += x[i];",  # a histogram
        "for (int i = 0; i < n; i++) { y[i] = x[i]; y[i] = y[i] + y[i]; }",
        "float s = 0; for (int i = 0; i < n; i++) { s += x[i]; y[i] = s; }",
        "float s = 1; for (int i = 0; i < n; i++) s = s * x[i] + 1; y[0] = s;",
        "for (int i = 0; i < n; i++) if (y[i] < 0) y[0] = i;",
    ],
)
def test_rounds_that_need_each_other_run_one_by_one(body):
    got, _, _ = run(kernel(body), 1501)
    want, _, _ = one_by_one(kernel(body), 1501)
    assert np.array_equal(got, want)


def test_counts_are_the_same():
    code = kernel(FREE[0][0])
    together = run(code, 3 * 2201, 3, count=True)
    alone = one_by_one(code, 3 * 2201, 3, count=True)
    assert together[1] > 2048 and alone[1] == 0
    assert together[2].counters == alone[2].counters
    assert together[2].by_line == alone[2].by_line
    with pytest.raises(SimulatorError, match="trace of this launch was dropped"):
        together[2].accesses()


def test_an_index_out_of_bounds_is_told_as_ever():
    code = kernel("for (int i = 0; i < n + 9; i++) y[i] = x[0];")
    with pytest.raises(SimulatorError, match=r"line 2: out-of-bounds write to y\[3005\]"):
        run(code, 3000)


def test_a_million_elements_by_one_thread():
    n = 1 << 20
    y, together, _ = run(kernel(FREE[0][0]), n, x=np.ones(n + 5, np.float32))
    assert np.array_equal(y[:n], np.arange(n, dtype=np.float32) + 1) and together > n - 100


@pytest.mark.parametrize(
    "body",
    [
        "for (unsigned i = 1; i != 0u + n; i += 2) y[i & 7] = i;",
        "volatile int* f = (volatile int*)y; while (*f < 100) { }",
        "for (int i = 0; i < n; i += (int)x[1000] * 0) y[0] = i;",
    ],
)
def test_what_never_ends_is_still_stopped(body):
    with pytest.raises(SimulatorError) as caught:
        run(kernel(body), 1000, x=np.zeros(1005, np.float32))
    assert caught.value.kind == "endless_loop"


def test_lanes_that_do_not_go_round_keep_what_they_had():
    """One thread sums, the others have left the loop; each stores its own sum."""
    body = (
        "float a = threadIdx.x;\n"
        "for (int j = 0; threadIdx.x == 0 && j < n; j++) a += x[j];\n"
        "y[threadIdx.x] = a;\n"
    )
    x = np.arange(205, dtype=np.float32)
    y, together, _ = run(kernel(body), 200, threads=64, x=x)
    assert together > 0
    want = np.arange(64)
    want[0] = x[:200].sum()
    np.testing.assert_array_equal(y[:64], want)
