"""The ladder so far, and one kernel through it: recorded times in a table, the chart's labels."""

from __future__ import annotations

import json
import re

import pytest

from helpers import device, timing
from helpers.bench.ladder_bars import Ladder
from helpers.bench.result import Result
from helpers.kernels import KernelError
from helpers.measure.charts import apart, speedup_chart
from helpers.measure.ladder_times import bars, kernel_times, ladder_times
from helpers.measure.recorded import FOLDER, LADDER
from helpers.measure.times import Source, Times

MADE_UP = Source("NVIDIA X1", {"naive": {8: 6.0, 16: 9.0}, "quick": {8: 1.5}}, "a stopwatch")
HERE = Source("NVIDIA Y2", {"naive": {8: 4.0}, "quick": {8: 0.5}}, timing.PROTOCOL)


@pytest.fixture
def stored() -> dict:
    """{what: {name: {N as text: milliseconds}}} of the file, and its protocol."""
    data = json.loads((FOLDER / f"{LADDER}.json").read_text())
    return {"protocol": data["protocol"], **{t["what"]: t["times"] for t in data["tables"]}}


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(device, "is_gpu", False)


def test_without_a_gpu_the_recorded_times_stand_alone(no_gpu, stored):
    times = ladder_times("coalesced")
    assert not times.measured
    assert times.over == (("", 1), ("NVIDIA H200, recorded", 5))
    table = {row[0]: row[1:] for row in times.rows}
    assert times.headings[1:] == ("N = 256", "512", "1,024", "4,096", "16,384")
    assert list(table) == [
        "naive", "tiled", "reduction", "coarsened",
        "coalesced, transpose on load", "coalesced, transpose on store",
    ]  # fmt: skip
    for name, row in table.items():
        for text, value in zip(row, stored["attention"][name].values(), strict=True):
            assert float(text) == pytest.approx(value, rel=0.01)
    assert timing.NO_TIMES not in times.note and stored["protocol"] in times.note


def test_the_last_rung_is_compared_with_the_library(no_gpu):
    for last in ("register_blocked", "fused"):
        names = [row[0] for row in ladder_times(last).rows]
        assert sum("PyTorch" in name for name in names) == 2
        assert ("fused" in names) == (last == "fused")
    assert not any("PyTorch" in row[0] for row in ladder_times("padded").rows)


def test_measured_times_come_first_and_make_the_chart():
    times = Times("rung", HERE, MADE_UP._replace(times={}))
    assert times.over == (("", 1), ("NVIDIA Y2", 1))
    both = Times("rung", HERE, MADE_UP)
    assert both.over == (("", 1), ("NVIDIA Y2", 1), ("NVIDIA X1, recorded", 2))
    assert both.rows == [
        ("naive", "4.000", "6.000", "9.000"),
        ("quick", "0.500", "1.500", ""),
    ]
    assert both.speedups() == ("NVIDIA Y2", {"naive": {8: 1.0}, "quick": {8: 8.0}})
    assert timing.NO_TIMES not in both.note and timing.PROTOCOL in both.note


def test_speedups_are_ratios_at_the_same_n():
    times = Times("rung", None, MADE_UP)
    gpu, found = times.speedups()
    assert gpu == "NVIDIA X1, recorded"
    assert found == {"naive": {8: 1.0, 16: 1.0}, "quick": {8: 4.0}}
    with pytest.raises(ValueError, match="naive"):
        Times("rung", None, MADE_UP._replace(times={"quick": {8: 1.5}})).speedups()


def test_the_chart_says_whose_times_and_how_many_times():
    html = Times("rung", None, MADE_UP).chart()._repr_html_()
    assert "NVIDIA X1, recorded" in html
    assert "quick: 4×" in html and "naive: 1×" in html
    with pytest.raises(ValueError, match="no times"):
        speedup_chart("X1", {})


def test_labels_keep_their_order_and_their_distance():
    places = {"a": 0.5, "b": 0.51, "c": 0.1, "d": 0.505, "e": 0.9}
    moved = apart(places)
    order = sorted(places, key=places.get)
    assert sorted(moved, key=moved.get) == order
    heights = [moved[name] for name in order]
    assert min(b - a for a, b in zip(heights, heights[1:], strict=False)) > 0.06
    assert moved["c"] == 0.1 and moved["e"] == 0.9
    assert moved["d"] == pytest.approx(0.505)  # the middle of the three stays


@pytest.mark.gpu
def test_measures_each_rung_on_a_gpu():
    times = ladder_times("tiled", sizes=(256,))
    assert set(times.measured) == {"naive", "tiled"}
    assert all(0 < by_n[256] < 100 for by_n in times.measured.values())
    assert re.search(r"recorded", times._repr_html_())


@pytest.fixture
def timed(monkeypatch):
    """The launches that were timed on a GPU that is not there, by what each takes."""
    found = []
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "NVIDIA Y2")
    monkeypatch.setattr(timing.gpu_lock, "gpu_uuid", lambda cp: "y2")
    monkeypatch.setattr(timing, "_measured", {})
    monkeypatch.setattr(timing, "measure", lambda run: found.append(run) or float(len(found)))
    return found


def test_what_was_timed_is_not_timed_again(timed):
    rows = kernel_times("coalesced", "pv_multiply", sizes=(16,)).measured
    # Tiled and reduction have one product.
    assert {name: by_n[16] for name, by_n in rows.items()} == {
        "naive": 1, "tiled and reduction": 2, "coarsened": 3,
        "coalesced, transpose on load": 4, "coalesced, transpose on store": 5,
    }  # fmt: skip
    assert len(timed) == 5
    assert kernel_times("coalesced", "pv_multiply", sizes=(16,)).measured == rows
    assert len(timed) == 5
    kernel_times("coarsened", "pv_multiply", sizes=(17,))
    assert len(timed) == 8
    whole = ladder_times("coalesced", sizes=(16,)).measured
    assert len(timed) == 8 + len(whole) == 14
    result = Result("", None, {}, "right", "", (), "NVIDIA Y2", {"N": 16})
    assert list(Ladder("coalesced", measured={}).measure(result)) and len(timed) == 14


# ------------------------------------------------------------------ one kernel


@pytest.mark.parametrize(
    ("kernel", "labels"),
    [
        ("scaled_dot_product", ["naive", "tiled and reduction", "coarsened"]),
        ("softmax", ["naive and tiled", "reduction and coarsened"]),
        ("pv_multiply", ["naive", "tiled and reduction", "coarsened"]),
    ],
)
def test_recorded_times_are_those_of_the_kernel(no_gpu, stored, kernel, labels):
    """Each kernel once, with all rungs that have it; the ladder says how times are taken."""
    shown = kernel_times("coarsened", kernel)
    assert [row[0] for row in shown.rows] == labels
    assert shown.note == "Milliseconds, d = 64."
    for label, text in zip(labels, (row[-1] for row in shown.rows), strict=True):
        own = stored[kernel][label.split(" and ")[0]]["16384"]
        assert float(text) == pytest.approx(own, rel=0.01)


def test_variants_have_a_row_each(no_gpu):
    rows = [row[0] for row in kernel_times("coalesced", "scaled_dot_product").rows]
    assert rows[-2:] == ["coalesced, transpose on load", "coalesced, transpose on store"]
    assert [row[0] for row in kernel_times("coalesced", "softmax").rows][-1].startswith(
        "reduction to"
    )


def test_what_is_not_there_is_refused():
    for times in (ladder_times, bars, lambda name: kernel_times(name, "softmax")):
        with pytest.raises(KernelError, match="no rung 'tilde'"):
            times("tilde")
    with pytest.raises(KernelError, match="No rung has a kernel 'pv'"):
        kernel_times("tiled", "pv")


@pytest.mark.gpu
def test_one_kernel_takes_less_than_all_three():
    alone = kernel_times("tiled", "pv_multiply", sizes=(1024,)).measured
    whole = ladder_times("tiled", sizes=(1024,)).measured
    for name, times in alone.items():
        assert 0 < times[1024] < whole[name][1024]
