"""Times: measured by events on a GPU, recorded ones or a sentence where there is none."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

from helpers import cp, device, timing
from helpers.measure import recorded
from helpers.measure.facts import FACTS
from helpers.measure.tables import Table, size_of
from helpers.measure.times import Source, Times

TIMES = {"scaled_dot_product": {256: 0.0123, 1024: 0.5}, "softmax": {256: 0.25, 1024: 20.0}}


@pytest.fixture
def stored(tmp_path):
    tables = [
        {"what": what, "unit": "ms", "times": {"naive": TIMES[what], "other": {256: 9.0}}}
        for what in TIMES
    ]
    tables.append({"what": "attention", "unit": "ms", "times": {"naive": {256: 1.0}}})
    data = {"device": "NVIDIA H200", "protocol": "median of five", "tables": tables}
    (tmp_path / f"{recorded.LADDER}.json").write_text(json.dumps(data))
    return tmp_path


def never(N):
    pytest.fail("Nothing is launched without a GPU.")


without_gpu = pytest.mark.skipif(device.is_gpu, reason="there is a GPU")


def test_recorded_times_come_back(stored):
    found = recorded.load(recorded.LADDER, stored)
    assert (found.device, found.protocol) == ("NVIDIA H200", "median of five")
    assert found.tables["softmax"].unit == "ms"
    assert {what: found.times(what)["naive"] for what in TIMES} == TIMES
    assert found.times("pv_multiply") == {} and found.profile("x") is None
    assert recorded.load("other", stored) is None


@without_gpu
def test_the_simulator_is_never_timed():
    with pytest.raises(RuntimeError, match="has no milliseconds"):
        timing.measure(lambda: None)


@without_gpu
def test_without_recorded_times_there_is_a_sentence(tmp_path):
    times = timing.sweep(never, [256], recorded="naive", folder=tmp_path)
    assert times.rows == []
    assert repr(times) == (
        "A simulated run has no milliseconds: it counts what a kernel does, and only a GPU can be "
        "timed. No recorded times of a GPU are here either."
    )
    assert "<table" not in times._repr_html_()


@without_gpu
def test_recorded_times_are_named(stored):
    times = timing.sweep(never, [256], recorded="naive", folder=stored)
    assert times.measured == {}
    assert times.over == (("", 1), ("NVIDIA H200, recorded", 2))
    assert times.headings == ("kernel", "N = 256", "N = 1,024")
    assert times.rows == [
        ("scaled_dot_product", "0.0123", "0.500"),
        ("softmax", "0.250", "20.0"),
        ("all", "0.262", "20.5"),
    ]
    assert times.note == "Milliseconds: median of five."


def test_measured_times_stand_side_by_side_with_recorded_ones():
    here = Source("A GPU", {"softmax": {1024: 7.0}, "new": {1024: 1.0}}, timing.PROTOCOL)
    times = Times("kernel", here, Source("NVIDIA H200", TIMES, "median of five"), total=True)
    assert times.over == (("", 1), ("A GPU", 1), ("NVIDIA H200, recorded", 2))
    assert times.headings == ("kernel", "N = 1,024", "N = 256", "N = 1,024")
    assert times.rows == [
        ("softmax", "7.000", "0.250", "20.0"),
        ("new", "1.000", "", ""),
        ("scaled_dot_product", "", "0.0123", "0.500"),
        ("all", "8.000", "0.262", "20.5"),
    ]
    assert times.note == f"Milliseconds: {timing.PROTOCOL}."
    assert times._repr_html_().count("NVIDIA H200") == 1
    first, second, *_ = repr(times).splitlines()
    assert first.index("A GPU") < second.index("N = 256") == first.index("NVIDIA H200")


@pytest.mark.parametrize(
    ("milliseconds", "samples", "before"), [(0.01, 21, 2), (4, 12, 1), (16, 3, 1), (400, 3, 0)]
)
def test_what_takes_long_is_sampled_less_often(monkeypatch, milliseconds, samples, before):
    now, asked = [0.0], []

    def between(cp, launch, launches, host):
        asked.append(launches)
        now[0] += milliseconds * launches / 1000
        return milliseconds

    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(timing, "between_events", between)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing.gpu_lock, "one_at_a_time", lambda uuid: contextlib.nullcontext())
    assert timing.measure(lambda: None) == milliseconds
    assert len(asked) - before == samples
    assert 0 < asked[-1] * milliseconds <= max(0.3, milliseconds)
    assert len(timing.in_turn({"a": dict, "b": dict}, 9)["b"]) == 9


@pytest.mark.gpu
def test_a_longer_kernel_takes_longer():
    code = """extern "C" __global__ void spin(long long cycles, int* done) {
        const long long start = clock64();
        while (clock64() - start < cycles) {
        }
        *done = 1;
    }"""
    spin, done = cp.RawKernel(code, "spin"), cp.zeros(1, dtype=cp.int32)
    # At 1 to 2 GHz 200,000 cycles are 0.1 to 0.2 ms; a launch's own time is some µs.
    short, long = (
        timing.measure(lambda n=n: spin((1,), (1,), (np.int64(n), done)), samples=5)
        for n in (200_000, 1_000_000)
    )
    assert 0.08 < short < 0.3
    assert long / short == pytest.approx(5, rel=0.15)


@pytest.mark.gpu
def test_sweep_measures_on_this_gpu():
    def launches(N):
        x = cp.zeros(N, dtype=cp.float32)
        return {"fill": lambda: x.fill(1)}

    times = timing.sweep(launches, [1000, 2000])
    assert set(times.measured["fill"]) == {1000, 2000}
    assert all(time > 0 for time in times.measured["fill"].values())
    assert times.over[1] == (device.name(), 2)


# ------------------------------------------------------------------ tables


def test_a_table_sets_numbers_right_and_text_left():
    table = Table(["kernel", "sectors"], [("softmax", 1_234_567), ("pv", 2.5)], "A note.")
    assert repr(table).splitlines() == [
        "kernel     sectors",
        "softmax  1,234,567",
        "pv             2.5",
        "A note.",
    ]
    html = table._repr_html_()
    assert '<td class="kt-text">softmax</td><td>1,234,567</td>' in html
    assert '<p class="kernel-note">A note.</p>' in html
    signed = Table(["schedule", "S"], [("warps", "-1.92"), ("lockstep", "nan"), ("other", "−3")])
    assert repr(signed).splitlines()[1:] == [
        "warps     -1.92",
        "lockstep    nan",
        "other        −3",
    ]


def test_a_table_escapes_and_refuses():
    html = Table(["x"], [("a < b",)])._repr_html_()
    assert '<td class="kt-text">a &lt; b</td>' in html
    with pytest.raises(ValueError, match="2 values and there are 1 headings"):
        Table(["x"], [(1, 2)])
    with pytest.raises(ValueError, match="does not stand over 2 columns"):
        Table(["x", "y"], [(1, 2)], over=[("both", 3)])


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (3 * 2**19, "1.5 MiB"),
     (1000 * 2**20, "1000 MiB"), (2**35, "32 GiB"), (2**42, "4 TiB")],
)  # fmt: skip
def test_bytes_in_words(amount, words):
    assert size_of(amount) == words


# ------------------------------------------------------------------ the files


FILES = sorted(path for path in recorded.FOLDER.glob("*.json") if path.stem != FACTS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_files_are_complete(path):
    """From a named GPU, by a protocol that is told; medians are those of the samples."""
    stored = recorded.load(path.stem)
    assert stored.device.startswith("NVIDIA") and "median" in stored.protocol and stored.tables
    for table in stored.tables.values():
        for name, by_size in table.times.items():
            assert min(by_size.values()) > 0
            for size, samples in table.samples.get(name, {}).items():
                middle = np.median(samples)
                if table.unit == "TFLOPS":
                    b, h, n, d = size
                    middle = 4 * b * h * n * n * d / middle / 1e9
                assert by_size[size] == pytest.approx(middle, rel=1e-3)


def test_every_launch_is_recorded_at_every_size():
    for table in recorded.load(recorded.LADDER).tables.values():
        assert len({tuple(times) for times in table.times.values()}) == 1
