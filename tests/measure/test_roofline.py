"""The rungs under the roofline: no bound above a recorded time, and what the chart draws."""

from __future__ import annotations

import pytest

from helpers.kernels import KernelError
from helpers.measure import roofline as module
from helpers.measure.charts import apart
from helpers.measure.ladder_times import bars
from helpers.measure.recorded import LADDER, load
from helpers.measure.roofline import (
    LEVELS,
    SIZE,
    kernel_bounds,
    least,
    parts,
    roofline,
)  # fmt: skip
from helpers.measure.roofline_chart import RungPoint, roofline_chart
from helpers.problem.ladder import ladder, rung


def test_the_table_holds_each_rung_and_the_share_that_is_explained():
    found = roofline("padded")
    assert [row[0] for row in found.rows] == list(bars("padded"))
    times = load(LADDER).times()
    for name, _, least_ms, ms, share in found.rows:
        assert float(ms) == pytest.approx(times[name][SIZE], rel=0.01)
        assert float(share.rstrip("%")) == pytest.approx(100 * float(least_ms) / float(ms), abs=1)
    assert "NVIDIA H200, recorded, ms" in found.headings
    assert [row[0] for row in roofline("flash_baseline").rows] == [
        *bars("fused"),
        "flash_baseline",
    ]
    with pytest.raises(KernelError, match="no rung 'tilde'"):
        roofline("tilde")
    later = [row[0] for row in roofline("flash_tma", since="flash_rescale").rows]
    assert later == ["flash_rescale", "flash_wgmma", "flash_tma"]
    transposed = roofline("padded", since="coalesced").rows
    assert [row[0].partition(",")[0] for row in transposed] == ["coalesced"] * 2 + ["padded"] * 2
    with pytest.raises(KernelError, match="'naive' comes before 'flash_tma'"):
        roofline("naive", since="flash_tma")


def test_times_of_a_run_stand_in_place_of_recorded_ones():
    """N = 16,384, d = 64: 4 N² d operations in two seconds."""
    found = roofline("padded", {"naive": 2.0}, "some H200")
    assert found.standings["naive"].seconds == 2.0
    assert found.standings["tiled"] == roofline("padded").standings["tiled"]
    assert found.gpu == "some H200" and "some H200, ms" in found.headings
    assert "some H200" in found.chart()._repr_html_()


def test_one_kernel_and_the_parts_that_it_keeps_busy():
    table = kernel_bounds("coarsened", "softmax")
    assert [row[0] for row in table.rows] == ["naive and tiled", "reduction and coarsened"]
    times = load(LADDER).times("softmax")
    for label, limit, least_ms, ms, _ in table.rows:
        name = label.split(" and ")[0]
        assert max(least(name)["softmax"], key=least(name)["softmax"].get) == limit
        assert float(least_ms) == pytest.approx(1e3 * least(name)["softmax"][limit], rel=0.01)
        assert float(ms) == pytest.approx(times[name][SIZE], rel=0.01)
    rows = parts("flash_swizzled").rows
    shares = [float(share.rstrip("%")) for _, _, share in rows]
    assert shares == sorted(shares, reverse=True) and shares[0] < 100
    assert {"DRAM", "L2", "shared memory", "tensor cores"} <= {part for part, *_ in rows}


def test_no_point_is_above_its_roof(monkeypatch):
    drawn = {}
    monkeypatch.setattr(module, "roofline_chart", lambda *given: drawn.update(given=given))
    found = roofline("flash_tma")
    found.chart()
    gpu, rates, ceilings, points = drawn["given"]
    assert gpu == "NVIDIA H200, recorded" and list(rates) == list(LEVELS)
    assert [point.name for point in points] == [
        *bars("fused"), *(one.name for one in ladder("flash")), "flash_wgmma", "flash_tma",
    ]  # fmt: skip
    units = {"fp32": "fp32", "flash": "mma.sync", "hopper": "wgmma"}
    for point in points:
        ceiling = ceilings[units[rung(point.name.partition(",")[0]).kind]]
        assert point.tflops < ceiling and point.fraction < 1
        for level, intensity in point.intensities.items():
            assert point.tflops < intensity * rates[level]
        if point.limit in point.intensities:
            roof = point.intensities[point.limit] * rates[point.limit]
            assert point.tflops / roof <= point.fraction + 1e-9


def test_the_chart_names_gpu_levels_and_shares():
    points = [RungPoint("slow", 0.5, {"far": 2.0, "near": 0.1}, "near", 0.83)]
    points.append(RungPoint("quick, by half", 5.0, {"near": 3.0}, "far", 0.4))
    chart = roofline_chart("NVIDIA X1", {"far": 4.4, "near": 33.0}, {"fp32": 60.0}, points)
    html = chart._repr_html_()
    for text in ("NVIDIA X1", "far, 4.40 TB/s", "near, 33.0 TB/s", "slow: 83%", "by half: 40%"):
        assert text in html
    with pytest.raises(ValueError, match="no rungs"):
        roofline_chart("X1", {"far": 4.4}, {"fp32": 60.0}, [])


def test_names_stand_apart_below_the_top():
    places = apart({"a": 0.1, "b": 0.97, "c": 0.98, "d": 0.99}, 0.05)
    heights = [places[name] for name in "bcd"]
    assert places["a"] == 0.1 and heights == pytest.approx([0.9, 0.95, 1.0])
    assert list(apart({"x": 0.5, "y": 0.5}).values()) == pytest.approx([0.469, 0.531])
