"""Chapter 11's recorded steps: nothing but what was recorded, and bounds by the definition."""

from __future__ import annotations

import json

import pytest

from helpers.measure.bound_gap import explained
from helpers.measure.facts import load_facts
from helpers.measure.flash_times import LARGE, flash_times
from helpers.measure.hopper_steps import least_clocks, moved, reach_of_wgmma, sizes, steps
from helpers.measure.recorded import FOLDER, HOPPER, load
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import ladder, rung
from tools.record.trim_contests import WHOLE_HOPPER, trim

RECORDED = load(HOPPER)
SHOWN = [
    name
    for one in ladder("hopper")
    if (name := one.name.removeprefix("flash_")) in RECORDED.times()
]
RUNGS = [f"flash_{name}" for name in SHOWN]


def test_what_chapters_show_is_what_was_recorded():
    kept = json.loads((FOLDER / f"{HOPPER}.json").read_text("utf-8"))
    assert kept == trim(json.loads(WHOLE_HOPPER.read_text("utf-8")))
    assert RUNGS == [one.name for one in ladder("hopper")]  # none came after the recording


def test_steps_are_told_by_both_protocols():
    table = steps("flash_tma", "flash_ahead, waits early")
    cold, warm = (RECORDED.times(what) for what in ("attention, cold", "attention"))
    for row, name in zip(table.rows, ("tma", "ahead, waits early"), strict=True):
        rates = [times[name][LARGE] for times in (cold, warm)]
        shares = [r / t["cuDNN"][LARGE] for r, t in zip(rates, (cold, warm), strict=True)]
        assert row[:3] == (name, *(f"{rate:.0f}" for rate in rates))
        assert row[3:5] == tuple(f"{share:.2f}" for share in shares)
    assert table.rows[0][5:] == ("128", "96 KiB")
    with pytest.raises(KeyError):
        steps("flash_nothing")


def test_what_a_step_moved():
    """Nsight Compute's own numbers; instructions of a piece by another pair of its counters."""
    table = moved("flash_rescale", "flash_wgmma", reasons=["short_scoreboard"])
    assert table.headings == ("NVIDIA H200, recorded", "rescale", "wgmma")
    rows = {name: values for name, *values in table.rows}
    whole = json.loads(WHOLE_HOPPER.read_text("utf-8"))["profile"]["11a wgmma"]
    busy = whole["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"]
    assert rows["tensor cores busy"][1] == f"{busy:.1f} %"
    clock = whole["gpc__cycles_elapsed.avg.per_second"] / 1e6
    assert rows["clock of the GPU"][1] == f"{clock:,.0f} MHz"
    pieces = 64 * (4096 // 16) * (4096 // 64)
    a_cycle, cycles = (
        whole[f"sm__{one}"] for one in ("inst_executed.sum.per_cycle_active", "cycles_active.avg")
    )
    executed = a_cycle * cycles / pieces
    assert float(rows["instructions"][1]) == pytest.approx(executed, rel=0.01)
    issues = whole["smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"]
    waits = float(rows["waits, in cycles: short scoreboard"][1])
    assert waits == pytest.approx(issues * executed, rel=0.02)
    with pytest.raises(KeyError, match="No profile of flash_nothing"):
        moved("flash_nothing")


def test_with_a_mask_a_piece_is_as_many_scores_that_rows_see():
    table = moved("flash_ahead, causal", "flash_ping_pong, causal", reasons=["gmma"])
    assert "scores that rows see" in table.note
    rows = {name: values for name, *values in table.rows}
    profiles = json.loads(WHOLE_HOPPER.read_text("utf-8"))["profile"]
    pieces = 64 * sum(range(1, 4097)) / (16 * 64)
    for column, name in enumerate(("11d ahead, causal", "11e ping_pong, causal")):
        whole = profiles[name]
        cycles = whole["sm__cycles_active.avg"]
        executed = whole["sm__inst_executed.sum.per_cycle_active"] * cycles / pieces
        assert float(rows["instructions"][column]) == pytest.approx(executed, rel=0.02)
        waits = whole["smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio"] * executed
        found = float(rows["waits, in cycles: gmma"][column])
        assert found == pytest.approx(waits, rel=0.02, abs=0.5)


def test_all_sizes_with_shares():
    full, causal = sizes(*RUNGS), sizes(*RUNGS, causal=True, cold=False)
    assert [row[0] for row in full.rows] == [*SHOWN, "FlashAttention-2", "cuDNN"]
    assert all(cell.endswith("(1.00)") for cell in full.rows[-1][1:])
    assert "each after 0.1 s" in full.note and "keys up to its own" in causal.note
    best = max(float(cell.split("(")[1][:-1]) for row in full.rows[:-1] for cell in row[1:])
    assert best >= 0.99  # of cuDNN, as the chapter promises


def test_ceilings():
    """The data sheet's 989: 132 SMs x 4,096 a clock at 1.83 GHz; nothing measured is above."""
    rows = {name: cells for name, *cells in reach_of_wgmma(*RUNGS).rows}
    assert rows["wgmma, data sheet"][0] == "989"
    assert rows["mma.sync, measured"][0] == f"{load_facts().mma_tflops:.0f}"
    assert all(float(cells[0]) <= 989 for cells in rows.values())


def test_least_clocks_by_the_definition():
    rows = {name: [float(cell) for cell in cells] for name, *cells in least_clocks().rows}
    assert rows["products by wgmma"] == [4 * 64 * 64 * d / 4096 for d in (128, 64)]
    assert rows["exponentials"] == [64 * 64 / 16] * 2
    ratio = rows["products by mma.sync"][0] / rows["products by wgmma"][0]
    assert ratio == pytest.approx(1.5)


def test_the_ladder_goes_on_in_the_recording_of_chapter_11():
    times = flash_times("flash_persistent")
    assert [row[0] for row in times.rows] == [*SHOWN, "FlashAttention-2", "cuDNN"]


def test_a_box_that_lies_outside_of_its_array_moves_nothing():
    """Of 17 rows the boxes of the last warps of 128 rows have none: O is written once, no more."""
    Q, K, V = make_inputs(1, 1, 17, 64)
    _, (report,) = rung("flash_tma").simulate(Q, K, V)
    assert report.work.traffic.written == Q.nbytes


def test_clock_and_idle_tensor_cores_explain_what_a_bound_leaves():
    """Three numbers of Nsight Compute, each read for itself: time, clock, busy cycles."""
    table = explained(*(one.name for one in ladder("hopper")))
    for name, least, time, share, clock, busy, both in table.rows:
        share, clock, busy, both = (float(one.rstrip("%")) for one in (share, clock, busy, both))
        assert share == pytest.approx(100 * float(least) / float(time), abs=1), name
        assert both == pytest.approx(clock * busy / 100, abs=1), name
        assert share < both < 1.06 * share, name
    with pytest.raises(KeyError):
        explained("flash_wgmma", "naive")
