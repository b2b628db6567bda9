"""The timeline of copies and math, against the order that each kernel is written for."""

from __future__ import annotations

import pytest
from figure_texts import faults, texts

from helpers.figures.canvas import Canvas
from helpers.figures.warps.copy_story import CopyStory
from helpers.figures.warps.lane_chart import Bar, Idle, LaneChart, LaneFrame, draw_lanes
from helpers.figures.warps.overlap_timeline import overlap_frames, overlap_timeline
from helpers.figures.warps.paced_story import BY_INSTRUCTIONS, PacedStory, pace_of, story_of
from helpers.kernels import load_kernel
from helpers.kernels.source import KernelError
from helpers.measure.facts import load_facts
from helpers.measure.overlap_steps import OVERLAP, cycles_of_a_piece, load
from helpers.problem.flash import FLASH_SWIZZLED
from helpers.problem.flash_overlap import FLASH_EAGER, FLASH_REGISTERS

SMALL = {"HEAD_DIM": 64, "B_R": 32, "B_C": 32, "WARPS": 2}
# What happens to tile j, in order; "-" stands before a wait. K and V of the first tiles come ahead.
ALONE = ["K{j}", "-K{j}", "S{j}", "P{j}", "V{j}", "-V{j}", "O{j}"]
EAGER = ["-K{j}", "V{j}", "S{j}", "-V{j}", "K{i}", "P{j}", "O{j}"]
DOUBLE = ["-K{j}V{j}", "K{i}", "V{i}", "S{j}", "P{j}", "O{j}"]
ORDER = {
    "08_flash_baseline": ([], ALONE),
    "09_flash_swizzled": ([], ALONE),
    "10a_eager": (["K0"], EAGER),
    "10b_registers": (["K0"], EAGER),
    "10c_double_buffer": (["K0", "V0"], DOUBLE),
    "10d_wide_warps": (["K0", "V0"], DOUBLE),
    "10e_rescale": (["K0", "V0"], DOUBLE),
}
FILES = list(ORDER)


def small(name: str) -> dict[str, int]:
    """Few rows and columns: two warps of 16 rows, or of 32 where the kernel is about these."""
    return SMALL | ({"B_R": 64} if name[:3] in ("10d", "10e") else {})


def told(story: CopyStory) -> list[str]:
    """The story as ORDER has it, without Q."""
    found = []
    for s in story.stretches:
        if s.kind == "copy" and s.tile.array != "Q":
            found.append(f"{s.tile.array}{s.tile.number}")
        elif s.kind in ("S", "O", "softmax"):
            found.append(f"{'P' if s.kind == 'softmax' else s.kind}{s.tile.number}")
        for number in range(s.first, s.end):
            tiles = [c.tile for c in story.waits.get(number, []) if c.tile.array != "Q"]
            if tiles:
                found.append("-" + "".join(f"{tile.array}{tile.number}" for tile in tiles))
    return found


def expected(name: str, blocks: int) -> list[str]:
    ahead, each = ORDER[name]
    later = (f"K{blocks}", f"V{blocks}")  # there is no such tile
    found = [one.format(j=j, i=j + 1) for j in range(blocks) for one in each]
    return [*ahead, *(one for one in found if one not in later)]


@pytest.mark.parametrize("name", FILES)
def test_each_kernel_does_things_in_the_order_that_it_is_about(name):
    story = story_of(name, 3, **small(name))
    assert told(story) == expected(name, 3)
    assert [c.tile.array for c in story.copies][0] == "Q"
    for copy in story.copies:
        assert copy.first < copy.last < copy.wait < copy.read


def test_with_causal_the_block_that_sees_all_keys_is_shown():
    story = story_of("10a_eager", 3, CAUSAL=1, **SMALL)
    assert told(story) == expected("10a_eager", 3)


@pytest.mark.parametrize("name", FILES)
def test_what_lies_behind_a_copy(name):
    story = story_of(name, 3, **small(name))
    behind = {copy.tile.name: story.work(copy.last, copy.wait) for copy in story.copies}
    parts = {
        f"{s.kind}{s.tile.number}": story.length(s.first, s.end)
        for s in story.stretches if s.kind in ("S", "softmax", "O")
    }  # fmt: skip
    s, p, o = (parts[f"{kind}1"] for kind in ("S", "softmax", "O"))
    wanted = {"ALONE": (0, 0), "EAGER": (p + o, s), "DOUBLE": (s + p + o, s + p + o)}
    kind = next(k for k, v in (("ALONE", ALONE), ("EAGER", EAGER), ("DOUBLE", DOUBLE))
                if v is ORDER[name][1])  # fmt: skip
    k, v = wanted[kind]
    assert (behind["K_2"], behind["V_2"]) == (k, v)


@pytest.mark.parametrize("name", FILES)
def test_products_are_as_many_as_the_tiles_have(name):
    story = story_of(name, 2, **small(name))
    rows = 32 if name[:3] in ("10d", "10e") else 16
    assert story.rows == rows
    for s in story.stretches:
        mma = sum(one.kind == "mma" for one in story.issued[s.first : s.end])
        # 16 x 8 of S in steps of 16 along d = 64; 16 x 8 of O in steps of 16 keys
        assert mma == {"S": rows // 16 * 4 * 4, "O": rows // 16 * 8 * 2}.get(s.kind, 0)


def test_by_the_model_waits_are_what_is_left_of_the_latency():
    facts = load_facts()
    latency = facts.latency["L2"]
    pace = pace_of(facts)
    assert (pace.latency, round(pace.mma)) == (latency, 6)
    alone, eager, double = (
        PacedStory(story_of(name, 3, **small(name)), pace)
        for name in ("09_flash_swizzled", "10a_eager", "10c_double_buffer")
    )
    # Each of six copies is waited for behind its own commit; the first K's line starts with Q.
    assert len(alone.exposed) == 6
    assert alone.waited == pytest.approx(6 * (latency - 1), abs=6)
    for course in (eager, double):
        for copy in course.story.copies:
            ready = course.at[copy.last] + 1 + latency
            left = max(0.0, ready - course.at[copy.wait])
            start, end = course.exposed.get(copy.wait, (0.0, 0.0))
            assert end - start >= left - 1e-6 or copy.tile.array == "Q"
    assert double.waited < eager.waited < alone.waited
    moves = sum(one.name.startswith("mov.") for one in alone.story.issued)
    assert moves  # which take no time
    for course in (alone, eager, double):
        story, zero = course.story, next(c for c in course.story.copies if c.tile.array == "K")
        rest = story.issued[zero.first : story.end]
        mma = sum(one.kind == "mma" for one in rest)
        plain = sum(one.kind != "mma" and not one.name.startswith("mov.") for one in rest)
        waits = course.waited - len(course.exposed)
        assert course.end == pytest.approx(6 * mma + plain + waits)


def test_the_models_waits_are_about_those_of_the_gpu():
    facts, recording = load_facts(), load(OVERLAP)
    model, seen = {}, {}
    for name in ("swizzled", "eager", "registers"):
        rung = {"swizzled": FLASH_SWIZZLED, "eager": FLASH_EAGER, "registers": FLASH_REGISTERS}[
            name
        ]
        paced = PacedStory(story_of(rung, 3, HEAD_DIM=128), pace_of(facts))
        first = paced.there(next(c for c in paced.story.copies if c.tile.name == "V_0"))
        later = [end - start for start, end in paced.exposed.values() if start > first]
        model[name] = sum(later) / 2  # tiles
        spent = cycles_of_a_piece(recording.profile(rung.name))
        seen[name] = spent["long_scoreboard"]
    # More than the latency of an idle GPU, for others use its L2 as well.
    assert 0.8 * seen["swizzled"] < model["swizzled"] < seen["swizzled"]
    assert model["eager"] == model["registers"] == 0
    assert max(seen["eager"], seen["registers"]) < 0.2 * seen["swizzled"]


def test_a_commit_that_is_missing_shows():
    k = load_kernel("10a_eager.cu", **SMALL)
    copy = "copy_rows<B_C / WARPS>(s_V, V + tile, warp * (B_C / WARPS), n - key, row_stride);\n"
    start = k.code.index(copy) + len(copy)
    end = k.code.index("cp_async_commit();", start) + len("cp_async_commit();")
    late = k.altered(k.code[:start] + k.code[end:])
    story = story_of(late, 3)
    assert told(story) != expected("10a_eager", 3)
    v = next(c for c in story.copies if c.tile.name == "V_0")
    assert v.read < v.wait
    assert "V_0 is read before it is waited for." in overlap_timeline(late).label.replace("₀", "_0")


def test_a_wait_that_is_missing_shows():
    k = load_kernel("09_flash_swizzled.cu", **SMALL)
    bare = k.altered(k.code.replace("cp_async_wait<0>();", ""))
    assert all(copy.wait is None for copy in story_of(bare, 2).copies)
    assert "K₀ is read before it is waited for." in overlap_timeline(bare, blocks=2).label


@pytest.mark.parametrize("facts", [None, load_facts()], ids=["instructions", "cycles"])
def test_pictures_can_be_read(facts):
    pair = overlap_timeline("09_flash_swizzled", FLASH_EAGER, facts=facts, **SMALL)
    frames = overlap_frames("10c_double_buffer", facts=facts, **SMALL)
    for svg in (pair.svg(), *(frame.svg for frame in frames)):
        assert faults(svg) == []
    shown = texts(pair.svg())
    assert "09_flash_swizzled.cu" in shown and "10a_eager.cu" in shown
    assert frames[-1].telling and sum(f.telling for f in frames) == 1
    assert len({frame.svg for frame in frames}) == len(frames)


def test_steps_say_what_goes_on_and_what_is_on_its_way():
    captions = [frame.caption for frame in overlap_frames("10a_eager", 2, **SMALL)]
    assert captions[:8] == [
        "The warp starts its part of the copy of K₀, and goes on.",
        "It waits for Q and K₀, and nothing else is to do.",
        "The warp starts its part of the copy of V₀, and goes on.",
        "Tensor cores make S₀ from Q and K₀, while V₀ is on the way.",
        "It waits for what is left of V₀.",
        "The warp starts its part of the copy of K₁, and goes on.",
        "Softmax makes weights P₀ of S₀, while K₁ is on the way.",
        "Tensor cores add P₀V₀ to O, while K₁ is on the way.",
    ]
    assert "Math is done while copies are on their way" in captions[-1]


def test_a_kernel_of_another_kind_is_refused_in_a_sentence():
    with pytest.raises(KernelError, match="has no parameter HEAD_DIM: the timeline is for"):
        overlap_timeline(load_kernel("02_naive.cu", "softmax"))
    with pytest.raises(ValueError, match="Name at least one kernel"):
        overlap_timeline()
    with pytest.raises(ValueError, match="at least one tile of keys, not 0"):
        overlap_timeline("10a_eager", blocks=0)
    k = load_kernel("09_flash_swizzled.cu", **SMALL)
    asm = k.code.index('asm volatile("cp.async.cg')
    end = k.code.index(";", k.code.index('"memory")', asm)) + 1
    plain = "if (bytes) *(int4*)shared = *(const int4*)global; else *(int4*)shared = int4{};"
    with pytest.raises(ValueError, match="starts no copy of Q, K or V by cp.async"):
        overlap_timeline(k.altered(k.code[:asm] + plain + k.code[end:]))


def test_lanes_draw_what_they_are_given():
    chart = LaneChart("t", "r", ("a", "b"), [Bar(0, 0, 50, "blue", "x"), Bar(1, 50, 100, "green")],
                      [Idle(range(1, 2), 0, 50, "idle")], [50.0], 100.0)  # fmt: skip
    frame = LaneFrame(0, 100, 300, 100, 30)
    svgs = []
    for until in (None, 40.0):
        canvas = Canvas(400, 120)
        draw_lanes(canvas, chart, frame, 0, until)
        svgs.append(canvas.svg())
    assert svgs[0].count("blue-fill") == 1 == svgs[0].count("green-fill")
    assert "green-fill" not in svgs[1]  # has not begun
    assert 'width="100" ' in svgs[0].split("blue-fill")[0].rsplit("<rect", 1)[1]
    assert 'width="80" ' in svgs[1].split("blue-fill")[0].rsplit("<rect", 1)[1]
    assert texts(svgs[0]) == ["t", "r", "a", "b", "idle", "x"]
    assert BY_INSTRUCTIONS.latency is None
