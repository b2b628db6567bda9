"""The small picture of a bench: its numbers, that it follows the settings, and its layout."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from figure_layout import faults
from figure_texts import texts

from helpers.bench import sweep_results
from helpers.bench.html import fragments
from helpers.bench.picture import HEIGHT, picture
from helpers.bench.subject import subject_of
from helpers.bench.view import pictures
from helpers.figures.pictures.banks import run_tile

SVG = "{http://www.w3.org/2000/svg}"


def results(rung: str, choices: dict, **start) -> list:
    return sweep_results(subject_of(rung), choices, {"N": 32, "d": 16} | start, time=False)


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[tuple[dict, dict[str, str]]]]:
    """By rung: the settings of each run, and its pictures."""
    choices = {
        "tiled": {"TILE": [8, 16]},
        "reduction": {"TILE": [8], "BLOCK_SIZE": [64, 1024]},
        "coarsened": {"TILE": [8], "COARSE": [1, 4]},
        "coalesced": {"TILE": [8, 32], "TRANSPOSE_ON_STORE": [0, 1]},
        "padded": {"TILE": [8], "PAD": [0, 1]},
    }
    return {
        rung: [(one.settings, pictures(one)) for one in results(rung, varied)]
        for rung, varied in choices.items()
    }


def test_a_block_as_arrays_is_the_trace_lane_by_lane():
    report = run_tile(8, 0, 1).report
    listed: dict[int, list] = {}
    for a in report.iterate(block=(0, 0, 0)):
        listed.setdefault(a.order, []).append((a.warp, a.lane, a.array, a.index, a.address))
    for a in report.of_block():
        mine = [
            (w, n, a.array, int(a.indices[w, n]), int(a.addresses[w, n]))
            for w, n in np.argwhere(a.active)
        ]
        assert mine == listed.pop(a.order)
    assert not listed
    alone = [a for a in report.of_block(warp=1, space="shared", kind="store")]
    assert alone and all(not a.active[0].any() and a.active[1].any() for a in alone)
    assert list(report.of_block((1, 0, 0))) == []  # there is one block


@pytest.mark.parametrize("rung", ["tiled", "coarsened"])
def test_reads_and_the_products_that_they_serve(drawn, rung):
    for settings, svg in drawn[rung]:
        edge, d = settings["TILE"], settings["d"]
        wide = edge * settings.get("COARSE", 1)
        reads, products = (edge + wide) * d, edge * wide * d
        said = " ".join(texts(svg["scaled_dot_product"]))
        assert f"= {reads:,} elements" in said and f"for {products:,} products" in said
        assert f"{products / reads:.3g} products a read" in said


def test_words_stand_right_of_three_squares():
    [one] = results("tiled", {"TILE": [8]}, N=32, d=32)
    drawing = ET.fromstring(pictures(one)["scaled_dot_product"])
    [words] = [
        float(text.get("x"))
        for text in drawing.iter(f"{SVG}text")
        if "".join(text.itertext()).startswith("block (0, 0) reads")
    ]
    ends = [float(r.get("x")) + float(r.get("width")) for r in drawing.iter(f"{SVG}rect")]
    assert max(end for end in ends if end < 900) < words


def test_half_of_the_threads_are_left_at_each_level(drawn):
    for settings, svg in drawn["reduction"]:
        threads = settings["BLOCK_SIZE"]
        levels = [threads >> n for n in range(threads.bit_length())]
        assert f"threads: {', '.join(map(str, levels))} of them" in svg["softmax"]
        busy = [text for text in texts(svg["softmax"]) if text.endswith(f" of {threads // 32}")]
        assert busy == [f"{max(1, n // 32)} of {threads // 32}" for n in levels]


def test_padding_takes_the_conflicts_away(drawn):
    (without, before), (padded, after) = drawn["padded"]
    assert (without["PAD"], padded["PAD"]) == (0, 1)
    conflicts = {
        pad: [t for t in texts(svg["scaled_dot_product"]) if "wavefront" in t]
        for pad, svg in ((0, before), (1, after))
    }
    # Rows of 8 words, 16 bytes a lane: 8 rows meet in 8 banks. With 9 words no two meet.
    assert any(t.startswith("8 wavefronts, ideal 4") for t in conflicts[0])
    assert all(t.split()[0] == t.split("ideal ")[1].split(",")[0] for t in conflicts[1])


def test_sectors_of_a_warp_in_rows_of_a_tile(drawn):
    starts = {s["TILE"]: texts(svg["scaled_dot_product"]) for s, svg in drawn["coalesced"]}
    for edge, said in starts.items():
        assert said[:2] == ["load of Q, line 43", "4 sectors, 100 % used"] or edge == 32
        if edge == 8:  # four rows of a tile
            first = [text for text in said if text.startswith("K[")]
            assert first == ["K[0][0]", "K[1][0]", "K[2][0]", "K[3][0]"]


def test_pictures_follow_the_settings_and_are_all_as_large(drawn):
    for rung, found in drawn.items():
        entry = "softmax" if rung == "reduction" else "scaled_dot_product"
        assert len({svg[entry] for _, svg in found}) == len(found), rung
        assert all(f'viewBox="0 0 960 {HEIGHT}"' in svg[entry] for _, svg in found)


def test_the_page_gets_a_picture_of_each_kernel_and_none_where_nothing_ran():
    [right] = results("tiled", {"TILE": [8]})
    shown = fragments(right.data(), pictures(right))["kernels"]
    assert [kernel["figure"][:4] for kernel in shown] == ["<svg"] * 3
    assert fragments(right.data())["kernels"][0]["figure"] == ""
    report = run_tile(8).report
    report.counted = False
    assert picture(report, "padded") == ""


@pytest.mark.browser
def test_nothing_is_cut_off_or_on_top_of_another(drawn, page):
    frames = [
        (svg, "") for found in drawn.values() for _, all_of in found for svg in all_of.values()
    ]
    assert faults(page, frames) == []
