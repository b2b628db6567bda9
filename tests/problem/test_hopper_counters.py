"""Simulated counters of chapter 11's kernels against Nsight Compute's, recorded on an H200.

`tools/record/record_hopper.py` makes the file: every rung on two small grids.
"""

from __future__ import annotations

import json

import pytest
from recorded.meetings.meeting_cases import MEETINGS, SHARED, STEPS, THREADS
from recorded.sections import DATA, METRICS

from helpers import simulator
from helpers.problem.flash_hopper import HOPPER
from helpers.problem.flash_inputs import make_inputs

CASES = json.loads((DATA / "hopper_h200.json").read_text())["counters"]
RUNGS = {rung.name.removeprefix("flash_"): rung for rung in HOPPER}
# How many loads of nothing ptxas places is not modelled; they bring nothing and cost nothing.
MODELLED = [name for name in METRICS if name != "shared_load_instructions"]

# Each access alone costs what the simulator counts. Where it meets another at the banks the H200
# takes more wavefronts, which depends on who comes when. From 11c on no barrier of the block stands
# between the last products and the stores of O: one warpgroup stores while another multiplies.
# What rules other causes out: `test_hopper_h200.py`. There arrivals at mbarriers, tries, copies by
# TMA and products, each by itself, are counted to the digit. And 11b has all of these but for the
# arrivals, and its stores follow a barrier: it is exact.
MEETING = {
    "11a-256x128": "load",  # 523 for 512; another launch of the same kernel gave 520
    **{f"11{letter}-256x128": "store" for letter in "cdefg"},
    "11d-100x64": "store",
}


def name_of(case: dict) -> str:
    _, _, n, d = case["shape"]
    return f"{case['name'].partition(' ')[0]}-{n}x{d}"


@pytest.mark.parametrize("case", [pytest.param(case, id=name_of(case)) for case in CASES])
def test_counters_equal_an_h200s(case):
    rung = RUNGS[case["name"].partition(" ")[2]]
    arrays = make_inputs(*case["shape"], case["element"], seed=1)
    _, (report,) = rung.simulate(*arrays, CAUSAL=case["causal"])
    counted = {name: report.counters[name] for name in MODELLED}
    recorded = {name: case["ncu"][name] for name in MODELLED}
    kind = MEETING.get(name_of(case))
    if kind:
        wavefronts, conflicts = f"shared_{kind}_wavefronts", f"shared_{kind}_bank_conflicts"
        more = recorded[wavefronts] - counted[wavefronts]
        assert 0 < more <= counted[wavefronts] / 4
        assert 0 <= recorded[conflicts] - counted[conflicts] <= more
        recorded |= {name: counted[name] for name in (wavefronts, conflicts)}
    assert counted == recorded
    # A store is a warp's 32 words in 32 banks: one wavefront each.
    assert counted["shared_store_wavefronts"] == case["ncu"]["shared_store_instructions"]


def test_every_rung_is_recorded_on_both_grids():
    assert {name_of(case) for case in CASES} == {
        f"{rung.file[:3]}-{size}" for rung in HOPPER for size in ("256x128", "100x64")
    }


@pytest.mark.parametrize("one", MEETINGS[1:3], ids=lambda one: one.name.replace(" ", "_"))
def test_an_access_is_counted_as_if_alone(one):
    report = simulator.launch(
        one.code, one.entry, 1, THREADS, one.arguments(), options=one.options, shared_mem=SHARED
    )
    assert report.counters["shared_store_wavefronts"] == 4 * STEPS * one.rounds
    assert report.counters["shared_store_bank_conflicts"] == 0
