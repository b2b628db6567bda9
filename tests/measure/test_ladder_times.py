"""The ladder so far: recorded times in a table, the order of the rungs, the chart's labels."""

from __future__ import annotations

import json
import re

import pytest

from helpers import device, timing
from helpers.measure.charts import apart, speedup_chart
from helpers.measure.ladder_times import LadderTimes, ladder_times
from helpers.measure.recorded import FOLDER, Recorded

MADE_UP = Recorded("NVIDIA X1", "a stopwatch", {"naive": {8: 6.0, 16: 9.0}, "quick": {8: 1.5}})


@pytest.fixture
def stored() -> dict:
    return json.loads((FOLDER / "h200_ladder.json").read_text())


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(device, "is_gpu", False)


def test_without_a_gpu_the_recorded_times_stand_alone(no_gpu, stored):
    times = ladder_times("coalesced")
    assert not times.measured
    assert all(row[0] == "NVIDIA H200, recorded" for row in times.rows)
    table = {row[1]: row[2:] for row in times.rows}
    assert times.headings[2:] == ("N = 256", "512", "1,024", "4,096", "16,384")
    assert list(table) == [
        "naive", "tiled", "reduction", "coarsened",
        "coalesced, transpose on load", "coalesced, transpose on store",
    ]  # fmt: skip
    for name, row in table.items():
        for text, value in zip(row, stored["milliseconds"][name].values(), strict=True):
            assert float(text) == pytest.approx(value, rel=0.01)
    assert timing.NO_TIMES in times.note and stored["protocol"] in times.note


def test_the_last_rung_is_compared_with_the_library(no_gpu):
    names = [row[1] for row in ladder_times("register_blocked").rows]
    assert sum("PyTorch" in name for name in names) == 2
    assert not any("PyTorch" in row[1] for row in ladder_times("padded").rows)


def test_measured_times_come_first_and_make_the_chart():
    times = LadderTimes("NVIDIA Y2", {"naive": {8: 4.0}, "quick": {8: 0.5}}, MADE_UP, list("ab"))
    assert [row[0] for row in times.rows] == ["NVIDIA Y2", "NVIDIA Y2"]
    both = LadderTimes("NVIDIA Y2", times.measured, MADE_UP, ["naive", "quick"])
    assert [row[:2] for row in both.rows] == [
        ("NVIDIA Y2", "naive"),
        ("NVIDIA Y2", "quick"),
        ("NVIDIA X1, recorded", "naive"),
        ("NVIDIA X1, recorded", "quick"),
    ]
    assert both.speedups() == ("NVIDIA Y2", {"naive": {8: 1.0}, "quick": {8: 8.0}})
    assert timing.NO_TIMES not in both.note and timing.PROTOCOL in both.note


def test_speedups_are_ratios_at_the_same_n():
    times = LadderTimes(None, {}, MADE_UP, ["naive", "quick"])
    gpu, found = times.speedups()
    assert gpu == "NVIDIA X1, recorded"
    assert found == {"naive": {8: 1.0, 16: 1.0}, "quick": {8: 4.0}}
    with pytest.raises(ValueError, match="naive"):
        LadderTimes(None, {}, MADE_UP, ["quick"]).speedups()


def test_the_chart_says_whose_times_and_how_many_times():
    html = LadderTimes(None, {}, MADE_UP, ["naive", "quick"]).chart()._repr_html_()
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
