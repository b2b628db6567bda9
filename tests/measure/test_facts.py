"""The recorded facts of a GPU agree with each other and with what the chip's design allows."""

from __future__ import annotations

import pytest

from helpers.measure.facts import load_facts

FACTS = load_facts()


def test_a_farther_level_answers_later():
    cycles = FACTS.latency
    assert cycles["shared"] < cycles["L1"] < cycles["L2"] < cycles["DRAM"]
    assert [round(cycles[level]) for level in ("shared", "L1", "L2", "DRAM")] == [28, 45, 372, 700]


@pytest.mark.parametrize(
    ("measured", "sheet"),
    [
        ("dram_read_TBps", "dram_TBps"),
        ("dram_copy_TBps", "dram_TBps"),
        ("fp32_TFLOPS", "fp32_TFLOPS"),
        ("shared_bytes_per_clock_per_sm", "shared_bytes_per_clock_per_sm"),
        ("ex2_per_clock_per_sm", "ex2_per_clock_per_sm"),
    ],
)
def test_what_was_measured_is_below_the_data_sheet_and_near_it(measured, sheet):
    assert 0.8 < FACTS.measured[measured] / FACTS.data_sheet[sheet] < 1


def test_tensor_cores_by_mma_sync_stay_below_what_wgmma_reaches():
    assert FACTS.mma_tflops == pytest.approx(629.42, abs=0.01)
    assert FACTS.mma_tflops < FACTS.data_sheet["tensor_fp16_TFLOPS"]


def test_more_warps_read_more_and_never_more_than_the_memory_gives():
    rates = FACTS.read_by_warps
    assert list(rates) == [1, 2, 4, 8, 16, 32, 64]
    assert sorted(rates.values()) == list(rates.values())
    assert rates[64] < 1e12 * FACTS.measured["dram_read_TBps"]
    assert 64 * 32 == FACTS.limits["maxThreadsPerMultiProcessor"]


def test_sizes_are_those_of_a_hopper_chip():
    """132 SMs of 128 fp32 lanes, two operations a clock each, are the data sheet's rate."""
    assert FACTS.limits["sms"] * 128 * 2 * FACTS.clock / 1e12 == pytest.approx(
        FACTS.data_sheet["fp32_TFLOPS"], rel=0.01
    )
    assert (
        FACTS.limits["sharedMemPerMultiprocessor"]
        < FACTS.data_sheet["l1AndSharedBytesPerMultiprocessor"]
    )


def test_littles_law_holds_for_what_was_measured():
    """A request of a warp is 128 bytes; the H200's 132 SMs wait 700 cycles at 1.98 GHz for it."""
    latency = 700.16 / 1.98e9
    for loads, by_warps in FACTS.read_by_loads.items():
        for warps, rate in by_warps.items():
            by_law = min(132 * warps * loads * 128 / latency, 4.404e12)
            assert FACTS.most_read(warps * loads * 128) == pytest.approx(by_law, rel=1e-3)
            assert 0.55 * by_law < rate < by_law, (loads, warps)


def test_a_full_memory_needs_so_many_bytes_under_way():
    """4.404 TB/s for 353.6 ns are 1.557 MB on the whole chip."""
    assert FACTS.in_flight(FACTS.dram_read) * 132 == pytest.approx(1.557e6, rel=1e-3)
