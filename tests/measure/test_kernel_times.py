"""Times of one kernel through the ladder: recorded ones, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers import device, timing
from helpers.kernels import KernelError
from helpers.measure import kernel_times

FILE = Path(kernel_times.__file__).parent / "recorded" / "h200_ladder.json"

without_gpu = pytest.mark.skipif(device.is_gpu, reason="there is a GPU")


@without_gpu
@pytest.mark.parametrize("kernel", ["scaled_dot_product", "softmax", "pv_multiply"])
def test_recorded_times_are_those_of_the_kernel(kernel):
    shown = kernel_times.kernel_times("coarsened", kernel)
    stored = json.loads(FILE.read_text())["kernels"]
    names = ["naive", "tiled", "reduction", "coarsened"]
    assert [row[:2] for row in shown.rows] == [("NVIDIA H200, recorded", name) for name in names]
    gpu, times = shown.speedups()
    assert gpu == "NVIDIA H200, recorded"
    for name in names:
        for n in (256, 16384):
            own = stored[name][kernel][str(n)]
            assert times[name][n] == pytest.approx(stored["naive"][kernel][str(n)] / own)
    assert shown.note.startswith(timing.NO_TIMES)


@without_gpu
def test_variants_have_a_row_each():
    rows = kernel_times.kernel_times("coalesced", "softmax").rows
    assert [row[1] for row in rows][-2:] == [
        "coalesced, transpose on load",
        "coalesced, transpose on store",
    ]


def test_what_is_not_there_is_refused():
    with pytest.raises(KernelError, match="no rung 'tilde'"):
        kernel_times.kernel_times("tilde", "softmax")
    with pytest.raises(KernelError, match="No rung has a kernel 'pv'"):
        kernel_times.kernel_times("tiled", "pv")


@pytest.mark.gpu
def test_one_kernel_takes_less_than_all_three():
    from helpers.measure.ladder_times import ladder_times

    alone = kernel_times.kernel_times("tiled", "pv_multiply", sizes=(1024,)).measured
    whole = ladder_times("tiled", sizes=(1024,)).measured
    for name, times in alone.items():
        assert 0 < times[1024] < whole[name][1024]
