"""What a bench does not run anew: launches that do again what they did a moment ago."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.bench import Session, counted, sweep
from helpers.bench.subject import subject_of
from helpers.kernels import load_kernel
from helpers.kernels.launches import Launch
from helpers.simulator.errors import SimulatorError

TWO = """
#ifndef STEP
#define STEP 1  // [1, 2, 3] added
#endif
#ifndef LEAP
#define LEAP 5  // [5, 6] added by the other kernel
#endif
extern "C" __global__ void plus(const float* a, float* b) {
    if (threadIdx.x == 0) printf("%d\\n", STEP);
    b[threadIdx.x] = a[threadIdx.x] + STEP;
}
extern "C" __global__ void far(const float* a, float* b) {
    b[threadIdx.x] = a[threadIdx.x] + LEAP;
}
"""


@pytest.fixture
def simulated(monkeypatch):
    """The entries of the launches that are run on the simulator, from an empty memory on."""
    counted._kept.clear()
    ran, real = [], Launch.simulate

    def simulate(self, *given, **options):
        ran.append(self.kernel.entry)
        return real(self, *given, **options)

    monkeypatch.setattr(Launch, "simulate", simulate)
    yield ran
    counted._kept.clear()


def launch(folder, entry="plus", code=TWO, a=None, **values) -> Launch:
    file = folder / "two.cu"
    file.write_text(code)
    a = np.arange(33, dtype=np.float32) if a is None else a
    args = (a, np.zeros(a.shape, np.float32))
    return Launch.of(load_kernel(file, entry, **values), 1, 33, args)


def test_the_same_is_not_run_again(simulated, tmp_path):
    first = launch(tmp_path)
    one = counted.counted(first)
    again = launch(tmp_path)
    other = counted.counted(again)
    assert simulated == ["plus"] and other.report is one.report
    np.testing.assert_array_equal(again.args[1], np.arange(33) + 1)
    assert other.printed == one.printed == "1\n"
    again.args[1][:] = 7  # what a caller does to its arrays does nothing to what is kept
    third = launch(tmp_path)
    counted.counted(third)
    np.testing.assert_array_equal(third.args[1], np.arange(33) + 1)


def test_what_differs_is_run(simulated, tmp_path):
    counted.counted(launch(tmp_path))
    counted.counted(launch(tmp_path, LEAP=6))  # of which this kernel knows nothing
    assert simulated == ["plus"]
    others = (
        launch(tmp_path, STEP=2),
        launch(tmp_path, "far"),
        launch(tmp_path, "far", LEAP=6),
        launch(tmp_path, a=np.ones(33, np.float32)),
        launch(tmp_path, code=TWO.replace("+ STEP", "- STEP")),
        launch(tmp_path, code=TWO + "// a line more\n"),
    )
    for number, one in enumerate(others, 2):
        counted.counted(one)
        assert len(simulated) == number
    np.testing.assert_array_equal(others[2].args[1], np.arange(33) + 6)


def test_views_and_errors_are_not_kept(simulated, tmp_path):
    whole = np.arange(66, dtype=np.float32)
    for n in range(2):
        one = launch(tmp_path, a=whole[33 * n :][:33])
        counted.counted(one)
        np.testing.assert_array_equal(one.args[1], whole[33 * n :][:33] + 1)
    for _ in range(2):
        short = launch(tmp_path, a=np.zeros(32, np.float32))
        with pytest.raises(SimulatorError, match="out-of-bounds"):
            counted.counted(short)
    assert len(simulated) == 4 and not counted._kept


def test_a_control_runs_the_kernels_that_it_changes(simulated):
    subject = subject_of("register_blocked")
    session = Session(subject)
    session.run()
    assert simulated == ["scaled_dot_product", "softmax", "pv_multiply"]
    simulated.clear()
    session.change(BLOCK_SIZE=64)
    assert simulated == ["softmax"]
    counts = {run.entry: run.totals for run in session.result.kernels}
    simulated.clear()
    counted._kept.clear()
    session.run()
    assert len(simulated) == 3
    assert {run.entry: run.totals for run in session.result.kernels} == counts
    assert session.result.status == "right"


def test_a_sweep_counts_as_without_a_memory(simulated, monkeypatch):
    choices = {"PAD": (0, 1), "BLOCK_SIZE": (64, 512)}
    remembered = sweep("padded", choices, start={"N": 32, "d": 16})
    assert len(simulated) == 5  # of twelve: PAD is nothing to the last kernel
    monkeypatch.setattr(counted, "_key", lambda launch: ())
    assert sweep("padded", choices, start={"N": 32, "d": 16}) == remembered
