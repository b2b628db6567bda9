"""Figures of the FlashAttention chapters say what the traces and the formulas give."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from figure_layout import faults
from figure_pages import standalone_html
from figure_texts import said, texts

from helpers.figures.canvas import number, text_width
from helpers.figures.ideas.online_softmax import online_softmax, steps_of
from helpers.figures.pictures import chunks
from helpers.figures.pictures.chunks import PATHS, chunk_frames, path_frames, phase_frames, ranges
from helpers.figures.pictures.fragments import fragments, operands, registers
from helpers.figures.pictures.swizzle import latin_squares, run_turn, swizzle_frames
from helpers.figures.player import Player
from helpers.kernels import KernelError
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED
from helpers.problem.flash_inputs import make_inputs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def runs():
    """Both kernels with their reports, at both head dims."""
    found = {}
    for rung in (FLASH_BASELINE, FLASH_SWIZZLED):
        for d in (64, 128):
            _, (report,) = rung.simulate(*make_inputs(1, 1, 64, d))
            found[rung.name, d] = rung.kernel("half", d), report
    return found


# ------------------------------------------------------------------ chunks and phases


@pytest.mark.parametrize("stride", range(9))
def test_phases_of_a_stride(stride):
    """Chunk s n of lane n lies in 16-byte bank s n mod 8; broadcasts go two phases at a time."""
    frames = phase_frames(stride)
    assert len(frames) == (4 if stride else 2)
    turns = math.gcd(stride, 8) if stride else 1
    total = len(frames) * turns
    assert f"takes {total} wavefronts, ideal {len(frames)}." in frames[-1].caption
    for phase, frame in enumerate(frames):
        lanes = range(8 * phase, 8 * phase + 8) if stride else range(16 * phase, 16 * phase + 16)
        counts = [0] * 8
        for chunk in {stride * lane for lane in lanes}:
            counts[chunk % 8] += 1
        shown = [t for t in texts(frame.svg) if re.fullmatch(r"\d×", t)]
        assert shown == [f"{n}×" for n in counts if n]


def test_lanes_stand_in_their_banks():
    """Stride 3, third phase: every lane is in the column of its bank and the row of its chunk."""
    words = said(phase_frames(3)[2].svg)
    heights = {w.text: w.top for w in words if w.text.startswith("row ")}
    cells = [w for w in words if w.text.isdigit() and w.top > 136 and w.right < 720]
    assert sorted(int(w.text) for w in cells) == list(range(16, 24))
    banks = [w for w in words if w.text in "01234567" and 112 < w.top < 136 and w.right < 720]
    columns = {int(w.text): (w.left + w.right) / 2 for w in banks}
    for w in cells:
        chunk = 3 * int(w.text)
        assert (w.left + w.right) / 2 == pytest.approx(columns[chunk % 8], abs=1)
        assert w.top == pytest.approx(heights[f"row {chunk // 8}"], abs=2)


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(("path", "before"), [(p[0], n) for p, n in zip(
    PATHS, ((4, 4), (32, 4), (32, 4), (32, 4), (8, 1), (4, 4)), strict=True)])  # fmt: skip
def test_paths_of_the_kernels(runs, d, path, before):
    """Every ldmatrix and the 4-byte stores are 8-way without the swizzle; nothing is with it."""
    actual, ideal = before
    for rung, wavefronts in ((FLASH_BASELINE, actual), (FLASH_SWIZZLED, ideal)):
        frames = path_frames(*runs[rung.name, d], path)
        assert len(frames) == ideal
        end = f"takes {wavefronts} wavefront{'s' * (wavefronts > 1)}, ideal {ideal}."
        assert frames[-1].caption.endswith(end)
        assert rung.file in "".join(texts(frames[0].svg))


def test_where_a_column_of_chunks_lies(runs):
    """ldmatrix of Q, first phase: chunk 0 of rows 0 to 7, at chunk 0 ^ row with the swizzle."""
    for rung, xor in ((FLASH_BASELINE, False), (FLASH_SWIZZLED, True)):
        _, access = chunks.path_access(*runs[rung.name, 128], "ldmatrix of Q")
        places = [divmod(int(a) // 16, 16) for a in access.addresses[:8]]
        assert places == [(row, row if xor else 0) for row in range(8)]


def test_rows_of_256_bytes_have_two_halves(runs):
    shown = texts(path_frames(*runs["flash_baseline", 128], "cp.async")[3].svg)
    assert "row 1, 8–15" not in shown and "row 3, 0–7" in shown
    assert "row 3" in texts(path_frames(*runs["flash_baseline", 64], "cp.async")[3].svg)


def test_what_chunks_refuse(runs):
    k, report = runs["flash_baseline", 64]
    with pytest.raises(ValueError, match="no path 'ldmatrix of P'"):
        path_frames(k, report, "ldmatrix of P")
    with pytest.raises(ValueError, match="there is no number 9999"):
        path_frames(k, report, "ldmatrix of Q", step=9999)
    with pytest.raises(KernelError, match="STRIDE"):
        phase_frames(9)
    _, access = chunks.path_access(k, report, "ldmatrix of Q")
    with pytest.raises(ValueError, match="multiple of 128, not 96"):
        chunk_frames(access, "x", row_bytes=96)
    with pytest.raises(ValueError, match="at least one lane"):
        chunk_frames(access._replace(active=np.zeros(32, bool)), "x")
    spread = access._replace(addresses=np.arange(32) * 256, bytes=4)
    with pytest.raises(ValueError, match="touches 32 rows"):
        chunk_frames(spread, "x")


def test_ranges():
    assert ranges([3, 1, 2, 8, 10, 11]) == "1–3, 8, 10–11"
    assert ranges([7]) == "7"


# ------------------------------------------------------------------ fragments


def test_fragments_are_those_of_the_manual():
    """PTX ISA, mma.m16n8k16: a, b and c by groupID and threadID_in_group."""
    a, b, c = operands()
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if i in (0, 1, 4, 5) else group + 8
            column = thread * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert (a.rows[i, lane], a.columns[i, lane]) == (row, column)
        for i in range(4):
            row = thread * 2 + (i & 1) + (8 if i >= 2 else 0)
            assert (b.rows[i, lane], b.columns[i, lane]) == (row, group)
            row = group if i < 2 else group + 8
            assert (c.rows[i, lane], c.columns[i, lane]) == (row, thread * 2 + (i & 1))


def test_a_frame_for_each_lane():
    frames = fragments()
    assert len(frames) == 32
    assert sum(len(frame.svg) for frame in frames) < 1_000_000
    root = ET.fromstring(frames[13].svg)
    groups = [g for g in root.iter(f"{SVG}g") if "lane" in g.get("class", "").split()]
    assert len(groups) == 32
    for g in groups:  # one lane in each: 4 registers of A, 2 of B, 2 pairs of C
        numbers = [t.text for t in g.iter(f"{SVG}text")]
        assert len(numbers) == 8 and len(set(numbers)) == 1
    assert groups[-1].get("class") == "lane on" and groups[-1][-1].text == "13"
    assert "lane % 4 = 1" in " ".join(texts(frames[13].svg))
    assert frames[13].caption == (
        "Lane 13 holds of A rows 3, 11 and columns 2–3, 10–11; of B rows 2–3, 10–11 and column 3; "
        "of C rows 3, 11 and columns 2–3."
    )
    assert "row 11, columns 10–11" in texts(frames[13].svg)
    assert registers(operands()[1], 13) == ["rows 2–3, column 3", "rows 10–11, column 3"]


# ------------------------------------------------------------------ online softmax

RNG = np.random.default_rng(11)
SCORES = np.array([0.5, -1.2, 1.1, 2.4, 0.2, -0.7, 1.9, 0.9, -2.0, 1.5])
VALUES = RNG.normal(size=(10, 3))


@pytest.mark.parametrize("block", [1, 3, 4, 10, 64])
def test_online_softmax_ends_where_softmax_does(block):
    steps = steps_of(SCORES, VALUES, block)
    last = steps[-1].after
    weights = np.exp(SCORES - np.logaddexp.reduce(SCORES))
    np.testing.assert_allclose(last.output / last.sum, weights @ VALUES, rtol=1e-13)
    assert np.log(last.sum) + last.maximum == pytest.approx(np.logaddexp.reduce(SCORES))
    assert len(steps) == -(-10 // block)


def test_large_scores_do_not_overflow():
    last = steps_of(np.array([-900.0, 900, 890, -3]), np.eye(4), 2)[-1].after
    expected = 1 / (1 + math.exp(-10))
    assert last.output[1] / last.sum == pytest.approx(expected, rel=1e-12)


def test_the_correction_is_told():
    frames = online_softmax(SCORES, VALUES, 3)
    assert len(frames) == 3 * 4 + 1
    shrink = [f.caption for f in frames[1::3]][:4]
    assert "first block sets the maximum to 1.10" in shrink[0]
    assert f"exp(1.10 − 2.40) = {math.exp(-1.3):.2f}" in shrink[1]
    assert "maximum stays 2.40" in shrink[2] and "maximum stays 2.40" in shrink[3]
    shown = texts(frames[-1].svg)
    weights = np.exp(SCORES - np.logaddexp.reduce(SCORES))
    for value in [*weights, *(weights @ VALUES)]:
        assert number(value) in shown
    assert number(np.exp(SCORES - 2.4).sum()) in shown


@pytest.mark.parametrize(
    ("scores", "values", "block", "message"),
    [
        (np.ones(3), np.ones((4, 2)), 2, "as many rows"),
        (np.ones(0), np.ones((0, 2)), 2, "at least one"),
        (np.ones((2, 2)), np.ones((2, 2)), 2, "takes a row of scores"),
        (np.ones(4), np.ones((4, 2)), 0, "one key or more"),
        (np.ones(13), np.ones((13, 2)), 4, "room for 12 scores"),
        (np.ones(4), np.ones((4, 5)), 4, "4 columns"),
    ],
)
def test_what_online_softmax_refuses(scores, values, block, message):
    with pytest.raises(ValueError, match=message):
        online_softmax(scores, values, block)


# ------------------------------------------------------------------ swizzle

FORMULAS = {
    "NONE": lambda r, c, n: c,
    "XOR": lambda r, c, n: r ^ c,
    "LATIN": lambda r, c, n: (r + c) % n,
    "BROKEN": lambda r, c, n: r * c % n,
}


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("swizzle", FORMULAS)
@pytest.mark.parametrize("element", ["float", "float4"])
def test_places_are_those_of_the_map(size, swizzle, element):
    turn = run_turn(size, swizzle, element)
    rows, columns = np.indices((size, size))
    places = FORMULAS[swizzle](rows, columns, size)
    np.testing.assert_array_equal(turn.stored, places)
    np.testing.assert_array_equal(turn.read, places.T)
    lost = size * size - sum(len(np.unique(row)) for row in places)
    assert (~turn.right).sum() == lost
    for column in range(size):
        assert turn.turns(column) == np.bincount(places[:, column]).max()


def test_writing_by_one_map_and_reading_by_another():
    turn = run_turn(4, "WRITE_ONLY")
    rows, columns = np.indices((4, 4))
    np.testing.assert_array_equal(turn.stored, rows ^ columns)
    np.testing.assert_array_equal(turn.read, rows)
    # Output (y, x) is what XOR put at place y of row x: element (x, x ^ y).
    np.testing.assert_array_equal(turn.came[..., 1], rows ^ columns)
    assert (~turn.right).sum() == 12


def test_frames_go_in_by_rows_and_out_by_columns():
    frames = swizzle_frames(4, "XOR")
    assert len(frames) == 8
    assert "places 2, 3, 0, 1" in frames[2].caption
    assert "one turn" in frames[6].caption
    plain = swizzle_frames(4, "NONE")
    assert "places 2, 2, 2, 2" in plain[6].caption and "4 turns" in plain[6].caption
    assert "4×" in texts(plain[6].svg) and "4×" not in texts(frames[6].svg)
    assert "In all, 12 of 16 are wrong." in swizzle_frames(4, "WRITE_ONLY")[-1].caption
    lost = swizzle_frames(4, "BROKEN")
    assert "1 place for 4 elements" in lost[0].caption and "nothing is lost" in lost[1].caption


def test_numbers_stand_clear_of_their_cells():
    """Nearly two pixels on either side, in the narrowest cells that there are."""
    [size, spacing] = re.search(
        r'font-size="(\d+)"[^>]*letter-spacing="(-?[\d.]+)"', swizzle_frames(8, "XOR")[0].svg
    ).groups()
    inside = 29 - 2  # a cell and the edges of what is in it
    assert text_width("0,0", float(size), mono=True) + 2 * float(spacing) <= inside - 3.5
    cells = [float(d) for d in re.findall(r"M[\d. ]+h([\d.]+)v", fragments()[0].svg)]
    assert min(cells) >= text_width("31", mono=True) + 4


def test_latin_squares():
    frames = latin_squares()
    assert len(frames) == 4
    assert "NONE 4 turns, XOR 1 turn, LATIN 1 turn, BROKEN" in frames[3].caption
    shown = texts(frames[0].svg)
    assert shown.count("all kept") == 3 and "5 lost" in shown
    verdicts = [t for t in shown if re.fullmatch(r"\d turns?", t)]
    assert verdicts == ["4 turns", "1 turn", "1 turn", "4 turns"]
    for bad in (["XOR"] * 5, []):
        with pytest.raises(ValueError, match="room for 1 to 4"):
            latin_squares(bad)
    for function in (swizzle_frames, lambda size: latin_squares(SIZE=size)):
        with pytest.raises(ValueError, match="8 rows"):
            function(32)
    with pytest.raises(KernelError, match="SWIZZLE"):
        run_turn(4, "YXOR")


# ------------------------------------------------------------------ layout


@pytest.mark.browser
def test_pointing_at_a_cell_marks_its_lane(page, tmp_path):
    """In the player, by rules that hold for the frame alone."""
    path = tmp_path / "fragments.html"
    path.write_text(standalone_html([Player(fragments(), index=3)], "Fragments"), "utf-8")
    page.goto(path.as_uri())
    page.locator("g.lane").first.wait_for()
    width = "g => getComputedStyle(g.querySelector('path')).strokeWidth"
    lane = page.locator("g.lane").filter(has_text="17")
    assert lane.count() == 1 and lane.evaluate(width) == "1px"
    lane.locator("text").nth(6).hover()  # of C
    assert lane.evaluate(width) == "3px"
    other = page.locator("g.lane").filter(has_text="18")
    assert other.evaluate(width) == "1px"


@pytest.mark.browser
def test_nothing_is_cut_off(page, runs):
    frames = [frame for stride in range(9) for frame in phase_frames(stride)]
    for name, _, _ in PATHS:
        for key in runs:
            frames += path_frames(*runs[key], name)
    frames += fragments()[::5] + online_softmax(SCORES, VALUES, 3)
    frames += online_softmax([-12.5, 100.25], [[-1000.5, 3], [2, 5]], 1)
    for swizzle in ("NONE", "XOR", "LATIN", "BROKEN", "WRITE_ONLY"):
        frames += swizzle_frames(4, swizzle) + swizzle_frames(8, swizzle, "float4")
    frames += latin_squares() + latin_squares(SIZE=8) + latin_squares(["XOR"], 8)
    assert faults(page, frames) == []
