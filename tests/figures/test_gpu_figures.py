"""The GPU in one picture and latency hiding: recorded numbers, and a line of time that adds up."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import pytest
from figure_layout import faults

from helpers import simulator
from helpers.figures.ideas.gpu_picture import gpu_picture
from helpers.figures.ideas.latency_hiding import hiding_frames, latency_hiding, turns
from helpers.measure.facts import FACTS, load_facts
from helpers.measure.recorded import FOLDER

SVG = "{http://www.w3.org/2000/svg}"
FOUND = json.loads((FOLDER / f"{FACTS}.json").read_text())  # as it is in the file
BOUNDS = Path(__file__).parents[1] / "recorded" / "data" / "bounds_h200.json"
MEASURED, LIMITS = FOUND["measured"], FOUND["limits"]
H200 = load_facts()


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")]


# ---------------------------------------------------------------- the GPU in one picture


def test_the_picture_has_the_recorded_numbers():
    shown = texts(gpu_picture(H200)[-1].svg)
    shared = MEASURED["shared_bytes_per_clock_per_sm"] * 132 * MEASURED["clock_ghz_busy"] / 1000
    for number in (
        "132 SMs",
        "one SM: 64 warps, 2,048 threads",
        f"{MEASURED['latency_shared_cycles']:.0f}, {MEASURED['latency_l1_cycles']:.0f} cycles",
        f"{MEASURED['latency_l2_cycles']:.0f} cycles",
        f"{MEASURED['latency_dram_cycles']:.0f} cycles",
        f"{shared:.0f} TB/s, all SMs",
        f"{MEASURED['dram_read_TBps']:.1f} TB/s, all SMs",
        f"{LIMITS['l2CacheSize'] / 2**20:.0f} MiB",
        f"{FOUND['data_sheet']['memory_GB']} GB",
    ):
        assert number in shown
    assert shown.count("registers 64 KiB") == shown.count("16 warps") == 4
    assert 4 * 64 * 1024 == 4 * LIMITS["regsPerMultiprocessor"]


def test_the_rate_of_l2_is_what_two_loops_read():
    """A simple loop, and the one that was recorded for the bounds."""
    fastest = json.loads(BOUNDS.read_text())["cases"]["l2_read, 16 MB"]
    rate = simulator.gpu("H200").measured["l2"] / 1e12  # of the best recording
    assert 0.98 <= fastest["work"]["bypass_bytes"] / (1e9 * fastest["ms"]) / rate <= 1.01
    simple = MEASURED["l2_read_TBps_16MB"]
    picture = gpu_picture(H200)
    assert f"{simple:.0f}–{rate:.0f} TB/s, all SMs" in texts(picture[-1].svg)
    caption = picture[6].caption
    assert f"{simple:.1f} TB/s with a simple loop and {rate:.1f} with the fastest" in caption


def test_each_step_of_the_picture_adds_a_part_and_says_what_it_is():
    frames = gpu_picture(H200)
    counts = [len(texts(frame.svg)) for frame in frames]
    assert counts == sorted(counts) and counts[0] == 1
    assert len({frame.caption for frame in frames}) == len(frames)
    assert "NVIDIA H200, 2026-11-30" in frames[-1].caption and frames[-1].telling
    # Every number of a caption is one of the picture's or follows from the file.
    assert "32 for each of 2,048 threads" in frames[3].caption  # 65,536 / 2,048
    assert "354 ns" in frames[7].caption  # 700.16 / 1.98


# ---------------------------------------------------------------- latency hiding


def test_one_warp_loads_waits_and_uses():
    found = turns(1, 1, latency=700, service=8, until=1500)
    assert [(turn.issued, turn.used) for turn in found] == [
        ((0,), 700), ((701,), 1401), ((1402,), 2102),
    ]  # fmt: skip


def test_values_come_one_after_another():
    """Four warps on one scheduler, worked out by hand: issued at 0 to 3, values 10 cycles apart."""
    found = turns(4, 1, latency=100, service=10, until=135, schedulers=1)
    assert [(turn.warp, turn.issued[0], turn.used) for turn in found] == [
        (0, 0, 100), (1, 1, 110), (2, 2, 120), (3, 3, 130),
        (0, 101, 201), (1, 111, 211), (2, 121, 221), (3, 131, 231),
    ]  # fmt: skip
    # Two loads of one warp: the second is issued a cycle later, and its value comes 10 later.
    assert turns(1, 2, 100, 10, 1)[0].arrived == (100, 110)


def by_cycles(warps: int, loads: int, latency: int, service: int, until: int) -> int:
    """Values that have come by a cycle, stepping through every cycle: another way than the heap."""
    waiting = {warp: 0 for warp in range(warps)}  # warp → values it still waits for
    queue, came, next_free = [], 0, 0  # queue of (earliest cycle, warp)
    to_issue = {warp: loads for warp in range(warps)}
    for cycle in range(until):
        if queue and queue[0][0] <= cycle and next_free <= cycle:
            _, warp = queue.pop(0)
            came, next_free = came + 1, cycle + service
            waiting[warp] -= 1
            if not waiting[warp] and not to_issue[warp]:
                to_issue[warp] = loads
        for warp in range(warps):
            if to_issue[warp]:
                to_issue[warp] -= 1
                waiting[warp] += 1
                queue.append((cycle + latency, warp))
    return came


@pytest.mark.parametrize(("warps", "loads"), [(1, 1), (2, 3), (5, 1), (13, 2), (40, 4)])
def test_the_rate_is_littles_law_and_that_of_a_count_by_cycles(warps, loads):
    latency, service, until = 700, 8, 60_000
    found = turns(warps, loads, latency, service, until)
    came = sum(end <= until for turn in found for end in turn.arrived)
    law = min(Fraction(warps * loads, latency), Fraction(1, service))
    # The values of a warp's loads come one behind the other, so a round is a little longer.
    assert 0.95 * law < Fraction(came, until) <= law
    assert came == pytest.approx(by_cycles(warps, loads, latency, service, until), rel=0.03)


def test_a_table_beside_it_has_what_was_measured_and_what_the_law_allows():
    for loads, by_warps in MEASURED["dram_read_TBps_by_loads_and_warps"].items():
        shown = texts(latency_hiding(H200, 4, int(loads)).svg())
        numbers = [text for text in shown if re.fullmatch(r"\d\.\d\d", text)]
        seconds = MEASURED["latency_dram_cycles"] / MEASURED["clock_ghz_busy"] / 1e9
        for row, (warps, rate) in enumerate(by_warps.items()):
            law = 132 * int(warps) * int(loads) * 128 / seconds / 1e12
            law = min(law, MEASURED["dram_read_TBps"])
            assert numbers[2 * row : 2 * row + 2] == [f"{law:.2f}", f"{rate:.2f}"]


def test_steps_go_from_one_warp_to_a_full_memory():
    frames = hiding_frames(H200)
    heads = [texts(frame.svg)[0] for frame in frames]
    assert heads[2:6] == [
        "1 warp on an SM, 1 load in flight", "2 warps on an SM, 1 load in flight each",
        "4 warps on an SM, 1 load in flight each", "64 warps on an SM, 1 load in flight each",
    ]  # fmt: skip
    assert "700 cycles" in frames[1].caption
    # 64 × 128 bytes an SM in 353.6 ns are 3.06 of 4.40 TB/s
    assert "69 %" in frames[5].caption
    assert "no longer helps" in frames[6].caption


@pytest.mark.parametrize(("warps", "loads"), [(0, 1), (1, 0)])
def test_there_is_a_warp_and_a_load(warps, loads):
    with pytest.raises(ValueError, match="at least one"):
        turns(warps, loads, 700, 8, 100)


@pytest.mark.browser
def test_no_text_of_these_figures_is_cut_off(page):
    shown = [(latency_hiding(H200, 64, loads).svg(), "") for loads in (2, 8)]
    assert faults(page, [*gpu_picture(H200), *hiding_frames(H200), *shown]) == []
