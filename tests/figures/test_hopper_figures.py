"""Chapter 11's figures: phases, boxes, what wgmma reads, and who multiplies when."""

from __future__ import annotations

import re

import numpy as np
import pytest
from figure_texts import faults, texts

from helpers.figures.ideas.mbarrier_phases import TILES, WARPS, Barrier, phase_frames
from helpers.figures.warps.box_layouts import (
    box_frames,
    operand_frames,
    read_places,
    run_boxes,
)
from helpers.figures.warps.group_schedule import busy, group_schedule, spans_of
from helpers.kernels.source import KernelError

STEPS = ("flash_producer", "flash_ahead", "flash_ping_pong")


# ------------------------------------------------------------------ boxes and operands


@pytest.mark.parametrize("boxes", [1, 2])
def test_boxes_lie_as_chapter_09_swizzles_them(boxes):
    """By the definition: chunk c of row r in place c ^ (r % 8) of its own panel."""
    found = run_boxes(boxes)
    for box in range(boxes):
        for row in range(16):
            for chunk in range(8):
                place = chunk ^ (row % 8)
                assert found.rows[box, row, place] == row
                assert found.chunks[box, row, place] == 8 * box + chunk
    assert found.by_xor == found.rows.size
    frames = box_frames(boxes)
    assert f"{found.rows.size} of {found.rows.size} chunks" in frames[-1].caption
    assert len(frames) == boxes + 1 and frames[-1].telling
    assert [fault for frame in frames for fault in faults(frame.svg)] == []


def test_without_a_swizzle_they_do_not():
    plain = run_boxes(1, swizzle=0)
    assert (plain.chunks[0] == np.arange(8)).all()
    assert plain.by_xor == 2 * 8  # rows 0 and 8


@pytest.mark.parametrize("step", range(8))
def test_a_step_reads_its_own_columns(step):
    """What lies, by TMA, in the places that the descriptor leads to: chunks 2 k and 2 k + 1."""
    found = run_boxes(2)
    chunks, rows = found.chunks.reshape(-1), found.rows.reshape(-1)
    places = read_places(step)
    assert (chunks[places] == [2 * step, 2 * step + 1]).all()
    assert (rows[places] == np.arange(16)[:, None]).all()


def test_the_operands_picture():
    frames = operand_frames()
    assert len(frames) == 8
    assert "descriptor: byte 32" in texts(frames[1].svg)
    assert "descriptor: byte 2,048" in texts(frames[4].svg)  # the second panel
    assert [fault for frame in frames for fault in faults(frame.svg)] == []


# ------------------------------------------------------------------ phases


def test_a_phase_is_complete_with_all_arrivals_and_bytes():
    """As the PTX ISA tells it: pending arrivals and the count of bytes both zero."""
    barrier = Barrier(2)
    assert barrier.passes(1) and not barrier.passes(0)  # the phase before the first is complete
    barrier.arrive(64)
    barrier.bring(64)
    assert barrier.phase == 0  # one arrival lacks
    barrier.arrive(32)
    assert barrier.phase == 0 and not barrier.passes(0)  # bytes lack
    barrier.bring(32)
    assert (barrier.phase, barrier.pending) == (1, 2)
    assert barrier.passes(0) and not barrier.passes(1)


def test_the_steps_of_phases():
    frames = phase_frames()
    assert len(frames) == 1 + TILES * (4 + WARPS)
    assert sum(frame.telling for frame in frames) == 1
    waits = [m for f in frames for m in re.findall(r"wait\(&amp;(\w+), (\d)\)(?!  waits)", f.svg)]
    per_tile = [[("empty", str(1 - t % 2)), ("full", str(t % 2))] for t in range(TILES)]
    assert waits == [one for tile in per_tile for one in tile]
    assert [fault for frame in frames for fault in faults(frame.svg)] == []
    assert max(len(frame.caption.split(". ")) for frame in frames) <= 3


# ------------------------------------------------------------------ schedules


@pytest.fixture(scope="module")
def schedules():
    return {name: spans_of(name, 3, 64) for name in STEPS}


def test_products_of_two_groups_take_their_time(schedules):
    """Clocks of an SM: 4 rows keys d operations at 4,096 a clock, whatever the order."""
    for spans in schedules.values():
        for group in (0, 1):
            clocks = sum(s.clocks for s in spans if s.group == group and s.kind in "SO")
            assert clocks == 4 * 64 * (3 * 128) * 64 / 4096
            assert [s.tile for s in spans if s.group == group and s.kind == "S"] == [0, 1, 2]


def test_what_runs_beside_a_softmax(schedules):
    """11c: nothing of its own group. 11d and 11e: the tile before's P V."""

    def beside(name):
        spans = [s for s in schedules[name] if s.group == 0]
        softmax = next(s for s in spans if s.kind == "softmax" and s.tile == 1)
        return {
            (s.kind, s.tile)
            for s in spans
            if s.kind in "SO" and s.start < softmax.end - 1 and softmax.start < s.end - 1
        }

    assert beside("flash_producer") == set()
    assert ("O", 0) in beside("flash_ahead") and ("O", 0) in beside("flash_ping_pong")


def test_with_turns_products_follow_each_other(schedules):
    """In 11e no product is interrupted by the other group's."""
    products = sorted((s for s in schedules["flash_ping_pong"] if s.kind in "SO"),
                      key=lambda s: s.start)  # fmt: skip
    for before, after in zip(products, products[1:], strict=False):
        assert after.start >= before.end - 1e-6
        assert before.end - before.start == pytest.approx(before.clocks)
    shares = [busy(schedules[name]) for name in STEPS]
    assert shares == sorted(shares) and shares[-1] <= 1


def test_the_schedules_picture():
    canvas = group_schedule(*STEPS, tiles=3, d=64)
    assert faults(canvas.svg()) == []
    assert "11e_ping_pong.cu" in texts(canvas.svg())
    with pytest.raises(KernelError, match="has no producer"):
        group_schedule("flash_tma")
