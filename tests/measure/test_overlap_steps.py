"""Chapter 10's recorded steps: nothing but what was recorded, in units that add up."""

from __future__ import annotations

import json

import pytest

from helpers.kernels import KernelError
from helpers.measure.flash_times import LARGE, flash_times, reach, recording_of
from helpers.measure.overlap_steps import (
    cycles_of_a_piece,
    instructions_of_a_piece,
    mask_table,
    sizes_table,
    step_table,
    waiting_chart,
)
from helpers.measure.recorded import FLASH, FOLDER, OVERLAP, load, load_flash
from helpers.measure.roofline import roofline
from helpers.problem.ladder import ladder
from tools.record.trim_contests import WHOLE, trim

RECORDED = load(OVERLAP)
RUNGS = [one.name for one in ladder("flash")[1:]]
SHAPES = [(4, 16, 4096, 128), (2, 16, 8192, 128), (1, 16, 16384, 128)]
PIECES = 64 * (4096 // 16) * (4096 // 64)


def test_what_chapters_show_is_what_was_recorded():
    kept = json.loads((FOLDER / f"{OVERLAP}.json").read_text("utf-8"))
    assert kept == trim(json.loads(WHOLE.read_text("utf-8")))


@pytest.mark.parametrize("name", RUNGS)
def test_cycles_of_pieces_are_those_that_warps_were_there(name):
    """Warps on a multiprocessor, by cycles: another counter, which knows nothing of reasons."""
    profile = RECORDED.profile(name)
    whole = json.loads(WHOLE.read_text("utf-8"))["profile"]
    step = "09 swizzled" if name == "flash_swizzled" else None
    row = whole[step or next(k for k in whole if k.partition(" ")[2] == name[6:])]
    there = row["sm__warps_active.sum.per_cycle_active"] * row["gpc__cycles_elapsed.avg"]
    assert sum(cycles_of_a_piece(profile).values()) * PIECES == pytest.approx(there, rel=0.04)


def test_instructions_by_two_counters():
    """The sum of one recording against instructions a cycle of another: the same kernel."""
    pair = [
        instructions_of_a_piece(load(one).profile("flash_swizzled")) for one in (FLASH, OVERLAP)
    ]
    assert pair[0] == pytest.approx(pair[1], rel=0.01)
    executed = load(FLASH).profile("flash_swizzled").metrics["smsp__inst_executed.sum"]
    assert pair[0] == executed / PIECES


def test_a_step_beside_the_one_before():
    table = step_table("flash_swizzled", "flash_eager")
    assert table.headings == ("NVIDIA H200, recorded", "swizzled", "eager")
    rows = {name: values for name, *values in table.rows}
    rates = RECORDED.times()
    assert rows["TFLOPS"] == [f"{rates[name][LARGE]:.0f}" for name in ("swizzled", "eager")]
    assert rows["registers of a thread"] == ["242", "249"]
    waited = [float(text) for text in rows["waits: long scoreboard"]]
    assert waited[0] > 6 * waited[1]
    assert list(rows)[5] == "waits: long scoreboard"  # which changed most
    assert rows["bound, of its time"] == ["shared memory, 54%", "shared memory, 60%"]
    named = step_table("flash_rescale", "flash_rescale, always", reasons=["barrier"])
    assert [row[0] for row in named.rows][-2:] == ["waits: barrier", "all cycles"]
    assert "bound" not in repr(named)  # of a variant no work was counted
    assert "shared memory of a block" not in rows
    assert float(rows["all cycles"][1]) == pytest.approx(
        sum(cycles_of_a_piece(RECORDED.profile("flash_eager")).values()), abs=0.5
    )
    with pytest.raises(KeyError, match="flash_nothing"):
        step_table("flash_nothing")
    chart = waiting_chart(*RUNGS)
    assert "long scoreboard" in chart.svg() and "rescale: issuing" in chart.label


def test_all_sizes_beside_pytorch():
    full, causal, cold = (
        sizes_table(*RUNGS, **how) for how in ({}, {"causal": True}, {"cold": True})
    )
    names = [name.removeprefix("flash_") for name in RUNGS]
    assert [row[0] for row in full.rows] == [*names, "FlashAttention-2", "cuDNN"]
    assert [row[0] for row in causal.rows] == [*names, "FlashAttention-2", "cuDNN"]
    assert "keys up to its own" in causal.note and "about 20 ms" in causal.note
    assert "about 4 ms" in cold.note and "20 ms" not in cold.note
    (best,) = (row for row in cold.rows if row[0] == "rescale")
    assert float(best[-1]) >= 1.04  # of FlashAttention-2, as the chapter promises


def test_the_ladder_goes_on_in_the_recording_of_chapter_10():
    times = flash_times("flash_rescale")
    assert [row[0] for row in times.rows] == [
        *(name.removeprefix("flash_") for name in RUNGS), "FlashAttention-2", "cuDNN",
    ]  # fmt: skip
    assert recording_of("flash_swizzled") == load(FLASH)
    assert recording_of("flash_eager") == RECORDED and recording_of("nothing") is None
    shares = {row[0]: row[2] for row in reach("flash_rescale").rows}
    assert float(shares["rescale"].rstrip(" %")) == pytest.approx(58.8, abs=0.1)
    limits = {row[0]: row[1] for row in roofline("flash_rescale").rows}
    assert [limits[name] for name in RUNGS] == [*4 * ["shared memory"], *2 * ["tensor cores"]]
    with pytest.raises(KernelError):
        flash_times("flash_nothing")


def test_what_a_mask_saves_is_told_of_two_times():
    """Of one table of the recording, cold; for chapter 08, of its own and of the causal one."""
    every, causal = (RECORDED.times(f"attention, {kind}cold") for kind in ("", "causal, "))
    table = mask_table("flash_swizzled", {"half of n": lambda n: str(n // 2)})
    assert table.headings[0] == "NVIDIA H200, recorded"
    assert [row[0] for row in table.rows] == [
        "4 × 16, 4,096, 128", "2 × 16, 8,192, 128", "1 × 16, 16,384, 128"
    ]  # fmt: skip
    for (_, whole, half, gain, allowed), shape in zip(table.rows, SHAPES, strict=True):
        b, h, n, d = shape
        pairs = 4 * b * h * d * n * n / 1e9  # operations, as TFLOPS milliseconds
        assert float(whole) == pytest.approx(pairs / every["swizzled"][shape], rel=0.005)
        assert float(half) == pytest.approx(pairs / 2 / causal["swizzled"][shape], rel=0.005)
        assert float(gain) == pytest.approx(float(whole) / float(half), abs=0.01)
        assert int(allowed) == n // 2
    assert "3 samples" in table.note and "another run" not in table.note
    gains = [float(row[3]) for row in mask_table("flash_baseline", {}).rows]
    rates = [(RECORDED.times("attention, causal"), load_flash().times())]
    assert gains == pytest.approx(
        [2 * own["baseline"][s] / all_["baseline"][s] for own, all_ in rates for s in SHAPES],
        abs=0.005,
    )
    assert "another run" in mask_table("flash_baseline", {}).note
    with pytest.raises(KeyError):
        mask_table("flash_naive", {})
