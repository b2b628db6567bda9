"""The FlashAttention kernels' table of TFLOPS, its chart, and their bench."""

from __future__ import annotations

import sys

import pytest
from recorded.flash_cases import RUNGS

from helpers import device, timing
from helpers.bench import sweep
from helpers.kernels import KernelError
from helpers.measure import flash_times as flash_module
from helpers.measure.charts import rate_chart
from helpers.measure.flash_times import LARGE, flash_times, reach
from helpers.measure.recorded import load_flash
from helpers.problem.flash import FLASH_BASELINE

NOTHING = "No recorded times of a GPU are here either."
without_gpu = pytest.mark.skipif(device.is_gpu, reason="there is a GPU")


@without_gpu
def test_recorded_rates_stand_alone():
    times = flash_times(variants=["early V"])
    stored = load_flash().tflops[LARGE]
    names = ["baseline", "swizzled", "early V", "FlashAttention-2", "cuDNN"]
    assert [row[0] for row in times.rows] == names
    assert times.over == (("", 1), ("NVIDIA H200, recorded", 3))
    for name, tflops, share, ms in times.rows:
        assert tflops == f"{stored[name]:.0f}"
        assert float(share) == pytest.approx(stored[name] / stored["FlashAttention-2"], abs=0.005)
        # 4 b h n² d operations
        assert float(ms) == pytest.approx(4 * 64 * 4096**2 * 128 / stored[name] / 1e9, abs=0.005)
    assert times.measured == {} and times.recorded == {n: {LARGE: stored[n]} for n in names}
    assert "no milliseconds" not in times.note and "n = 4,096, d = 128" in times.note
    assert [row[0] for row in flash_times("flash_baseline").rows][:2] == [
        "baseline",
        "FlashAttention-2",
    ]


def test_busy_tensor_cores_are_a_share_of_what_mma_sync_reaches():
    """Two counts that know nothing of each other: TFLOPS by a clock, busy cycles by a profiler."""
    rows = {name: values for name, *values in reach().rows}
    assert list(rows)[2:] == ["baseline", "swizzled", "FlashAttention-2", "cuDNN"]
    assert rows["mma.sync alone, measured"][:2] == ["629", "100 %"]
    for name in ("baseline", "swizzled", "FlashAttention-2"):
        share, busy = (float(text.removesuffix(" %")) for text in rows[name][1:])
        assert share == pytest.approx(busy, abs=0.5)
    assert float(rows["cuDNN"][1].removesuffix(" %")) > 100  # so its instructions are others
    assert "swizzled" not in {row[0] for row in reach("flash_baseline").rows}


@pytest.mark.parametrize("text", ["seen = True", "1 / 0"], ids=["whole", "broken"])
def test_a_notebook_on_a_gpu_imports_pytorch_ahead(monkeypatch, tmp_path, text):
    (tmp_path / "slow_package.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    ahead = flash_module.import_ahead
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(device, "is_gpu", False, raising=False)
    assert ahead("slow_package") is None  # nothing is timed without a GPU
    monkeypatch.setattr(device, "is_gpu", True, raising=False)
    assert ahead("no_such_package.part") is None
    ahead("slow_package").join()
    assert ("slow_package" in sys.modules) == ("seen" in text)
    sys.modules.pop("slow_package", None)
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert ahead("slow_package") is None  # a program imports what it needs itself


@without_gpu
def test_a_size_that_nobody_recorded():
    times = flash_times(shape=(1, 1, 64, 64))
    assert times.rows == [] and times.note == f"{timing.NO_TIMES} {NOTHING}"
    with pytest.raises(ValueError, match="no times"):
        times.chart()


def test_what_is_measured_comes_first(monkeypatch):
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "a GPU")
    monkeypatch.setattr(flash_module, "launches", lambda rungs, shape: ({}, ["A note."]))
    work = 4 * 64 * 4096**2 * 128 / 1e9  # operations, as 10^12 a millisecond
    taken = {"baseline": [work / 2] * 3, "FlashAttention-2": [work / 8, work, work / 9]}
    monkeypatch.setattr(timing, "in_turn", lambda *_, **__: taken)
    times = flash_times("flash_baseline", samples=3)
    gpu, rates = times.rates()
    assert gpu == "a GPU" and rates == pytest.approx({"baseline": 2.0, "FlashAttention-2": 8.0})
    assert times.over == (("", 1), ("a GPU", 3), ("NVIDIA H200, recorded", 3))
    assert [(name, *row[:2], *row[3:5]) for name, *row in times.rows[:2]] == [
        ("baseline", "2", "0.25", "48", "0.13"),
        ("FlashAttention-2", "8", "1.00", "356", "1.00"),
    ]
    assert "median of 3 samples" in times.note and times.note.endswith("A note.")


def test_samples_are_taken_in_rounds(monkeypatch):
    """Each kernel as often as fills a sample, in turn; what warms it up is not kept."""
    taken, made = [], []

    def between(cp, launch, launches, host):
        taken.append((launch(), launches))
        return {"a": 2.0, "b": 40.0}[taken[-1][0]] + 0.1 * len(taken)

    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(timing, "between_events", between)
    launches = {name: (lambda name=name: made.append(name) or name) for name in "ab"}
    times = timing.in_turn(launches, 3, 20, most=100)
    full = round(20 / 2.1)
    assert taken[:3] == [("a", 1), ("a", full), ("b", 1)]  # how long one takes, and a warm-up
    assert taken[3:] == [("a", full), ("b", 1)] * 3
    # Samples 4, 6 and 8 are a's, 5, 7 and 9 are b's.
    assert [*times["a"], *times["b"]] == pytest.approx([2.4, 2.6, 2.8, 40.5, 40.7, 40.9])


def test_what_runs_on_a_gpu_is_the_rungs_and_pytorch(monkeypatch):
    """As far as it goes without a GPU: what is launched, and what is said where PyTorch is not."""
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "a GPU")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(timing, "between_events", lambda cp, launch, launches, host: 0.5)
    times = flash_times(shape=(1, 1, 16, 64), samples=1)
    assert times.rates()[1] == pytest.approx(
        {name: 4 * 16 * 16 * 64 / 0.5e-3 / 1e12 for name in ("baseline", "swizzled")}
    )
    assert "PyTorch cannot be timed here" in times.note
    assert [row[0] for row in times.rows] == ["baseline", "swizzled"]
    assert times.over == (("", 1), ("a GPU", 3))


def test_no_such_rung():
    with pytest.raises(KernelError, match="no rung 'swizzled'"):
        flash_times("swizzled")


def test_the_chart_names_its_bars():
    chart = rate_chart("a GPU", {"baseline": 46.4, "cuDNN": 650.0})
    assert chart.label == "TFLOPS on a GPU: baseline 46, cuDNN 650."
    assert ">46<" in chart.svg() and ">cuDNN<" in chart.svg()
    with pytest.raises(ValueError, match="no rates"):
        rate_chart("a GPU", {})


@pytest.mark.parametrize("rung", RUNGS.values(), ids=lambda rung: rung.name)
def test_the_bench_runs_and_refuses(rung):
    found = sweep(
        rung,
        {"B_R": [32, 64], "WARPS": [2], "HEAD_DIM": [64], "ELEMENT": ["half", "nv_bfloat16"]},
        n=[70, 128],
        time=False,
    )
    by_setting = {(r["settings"]["B_R"], r["settings"]["ELEMENT"]): r for r in found}
    for b_r in (32, 64):
        assert by_setting[b_r, "half"]["status"] == "right"
        assert "take half for ELEMENT" in str(by_setting[b_r, "nv_bfloat16"])


def test_the_bench_tells_what_does_not_go_together():
    (found,) = sweep("flash_swizzled", {"B_R": [16]}, time=False)
    assert found["status"] == "refused" and "no multiple of 16 * WARPS" in str(found)


@pytest.mark.gpu
def test_rates_of_this_gpu():
    times = flash_times(shape=(1, 16, 2048, 128), samples=3)
    _, rates = times.rates()
    assert rates["swizzled"] > 2 * rates["baseline"] > 0
    assert FLASH_BASELINE.name not in rates and rates.keys() == times.measured.keys()
