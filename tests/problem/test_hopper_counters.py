"""Simulated counters of chapter 11's kernels against Nsight Compute's, recorded on an H200.

`tools/record/record_hopper.py` makes the one file: every rung on two small grids. The other is of
`tools/record/hopper/record_meetings.py`: accesses that meet others at the banks, each four times.
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
REPEATED = json.loads((DATA / "hopper_meetings.json").read_text())
RUNGS = {rung.name.removeprefix("flash_"): rung for rung in HOPPER}
# How many loads of nothing ptxas places is not modelled; they bring nothing and cost nothing.
MODELLED = [name for name in METRICS if name != "shared_load_instructions"]

# Each access alone costs what the simulator counts. Where it meets another at the banks the H200
# takes more wavefronts, and who meets whom differs from launch to launch. Tests below show by what
# was recorded that from 11c on it is stores of O that meet the products of another warpgroup.
MEETING = {
    "11a-256x128": "load",
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
        assert 0 < more <= 0.3 * counted[wavefronts]
        assert 0 <= recorded[conflicts] - counted[conflicts] <= more
        recorded |= {name: counted[name] for name in (wavefronts, conflicts)}
    assert counted == recorded
    # A store is a warp's 32 words in 32 banks: one wavefront each.
    assert counted["shared_store_wavefronts"] == case["ncu"]["shared_store_instructions"]


def test_every_rung_is_recorded_on_both_grids():
    assert {name_of(case) for case in CASES} == {
        f"{rung.file[:3]}-{size}" for rung in HOPPER for size in ("256x128", "100x64")
    }


def stores(name: str) -> list[int]:
    """Wavefronts of stores in each launch of a recorded case."""
    return [one["shared_store_wavefronts"] for one in REPEATED["counters"][name]]


@pytest.mark.parametrize("one", MEETINGS, ids=lambda one: one.name.replace(" ", "_"))
def test_who_makes_a_store_cost_more(one):
    """Products and copies that write; no arrival, no copy that reads, and no store."""
    counted = 4 * STEPS * one.rounds * {"stores": 1, "nothing": 0}[one.kind]
    counted *= 2 if one.other == "stores" else 1
    report = simulator.launch(
        one.code, one.entry, 1, THREADS, one.arguments(), options=one.options, shared_mem=SHARED
    )
    assert report.counters["shared_store_wavefronts"] == counted
    found = stores(one.name)
    if "products" in one.other or one.other == "copies to shared memory":
        assert min(found) > 1.15 * counted and len(set(found)) > 1
    else:
        assert found == [counted] * len(found)


def test_products_of_another_warpgroup_are_what_stores_of_o_meet():
    """One barrier more, behind all products, and each store takes what it does alone."""
    for letter in "cdef":
        (before,) = (name for name in REPEATED["counters"] if name.startswith(f"11{letter} ")
                     and "n 256" in name)  # fmt: skip
        assert min(stores(before)) > 512 and len(set(stores(before))) > 1
        apart = stores(f"11{letter}, stores when all are done, n 256, d 128, half")
        assert apart == [512] * len(apart)
    for letter in "ce":  # it is not the copies of O, which go on without a barrier
        assert min(stores(f"11{letter}, no copy of O, n 256, d 128, half")) > 512


def test_addresses_alone_give_no_wavefront_more():
    """Nsight Compute's count by the addresses of each instruction, in the same kernels."""
    for name, (one,) in REPEATED["by_address"].items():
        assert one["shared_wavefronts"] == one["shared_ideal_wavefronts"], name
