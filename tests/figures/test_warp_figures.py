"""Figures of warps and threads through time: their numbers against runs, counters and NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from figure_texts import faults, texts

from helpers.figures.warps.memory_story import hazards, tell
from helpers.figures.warps.races import (
    ORDERS,
    stories,
    tiling_case,
    tiling_race,
    tree_case,
    tree_race,
)
from helpers.kernels import load_kernel

CASES = {"tiling": tiling_case, "tree": tree_case}
PICTURES = {"tiling": tiling_race, "tree": tree_race}


def barriers(name: str) -> list[int]:
    """The lines of the two barriers that a figure can take out."""
    file, entry = {
        "tiling": ("03_tiled.cu", "scaled_dot_product"),
        "tree": ("04_reduction.cu", "softmax"),
    }[name]
    return load_kernel(file, entry).lines("__syncthreads()")[:2]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ORDERS)
def test_with_all_barriers_no_order_matters(name, order):
    story, right, run, _ = stories(CASES[name](), None, order)
    assert hazards(story, right) == []
    assert run.report.findings == []
    assert "Every read gets what was meant for it" in texts(PICTURES[name](None, order).svg())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", [0, 1])
def test_races_that_strike_are_the_sanitizers(name, number):
    case, line = CASES[name](), barriers(name)[number]
    struck = set()
    for order in ORDERS:
        story, right, run, _ = stories(case, line, order)
        found = {
            tuple(sorted(story.access(who).line for who in (h.reader, h.writer)))
            for h in hazards(story, right)
            if all(story.access(w).line <= case.shown.last for w in (h.reader, h.writer))
        }
        said = {tuple(sorted(f.lines)) for f in run.report.findings if f.kind == "race"}
        assert said and found <= said
        struck |= found
    assert struck  # some order shows it


def test_a_read_comes_too_early_or_a_store_too_soon():
    first, second = barriers("tiling")
    for line, early in ((first, True), (second, False)):
        story, right, _, _ = stories(tiling_case(), line, "first warp ahead")
        found = hazards(story, right)
        assert found and all(h.early == early for h in found)
        assert {h.reader[0] for h in found} == {0 if early else 1}
        assert {h.got.place[0] for h in found} == {"s_Q"}  # of s_K a warp reads its own half


@pytest.mark.parametrize("order", ORDERS)
def test_told_values_make_the_kernels_products(order):
    for line in (None, *barriers("tiling")):
        story, _, run, _ = stories(tiling_case(), line, order)
        N, sums = 8, np.zeros((8, 8), np.float32)
        for warp in (0, 1):
            reads = [story.reads[warp, n] for n in range(len(story.accesses[warp]))
                     if (warp, n) in story.reads]  # fmt: skip
            for k, q in zip(reads[::2], reads[1::2], strict=True):
                for lane, read in q.items():
                    thread = warp * 32 + lane
                    sums[thread % N, thread // N] += np.float32(read.value * k[lane].value)
        np.testing.assert_allclose(sums / 4, run.arrays["S"], rtol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_told_maxima_are_what_the_weights_come_from(order):
    for line in (None, *barriers("tree")):
        case = tree_case()
        story, _, run, _ = stories(case, line, order)
        found = np.zeros(128)
        for warp, mine in story.accesses.items():
            (root,) = [n for n, a in enumerate(mine) if a.line == case.shown.last]
            for lane, read in story.reads[warp, root].items():
                found[warp * 32 + lane] = read.value
        S, P = run.arrays["S"][0].astype(np.float64), run.arrays["P"][0].astype(np.float64)
        top = int(P.argmax())
        with np.errstate(divide="ignore"):
            ratio = np.log(P / P[top])
        wanted = (S - found) - (S[top] - found[top])
        seen = ratio > -80  # above that no weight is rounded to a denormal number
        assert seen.sum() > 80
        np.testing.assert_allclose(ratio[seen], wanted[seen], atol=1e-4)


def test_a_race_is_named_with_line_element_and_value():
    first, second = barriers("tiling")
    shown = " ".join(texts(tiling_race(second, "first warp ahead").svg()))
    named = re.search(
        r"Warp 0 stores (\S+) into s_Q\[(\d)\]\[(\d)\] in line 33. Only then warp 1 reads it in "
        r"line 38: it needs (\S+)\.", shown,
    )  # fmt: skip
    Q = tiling_case().run(None, "lockstep").arrays["Q"]
    got, row, column, right = (int(text.replace("−", "-")) for text in named.groups())
    assert (got, right) == (Q[row, 8 + column], Q[row, column]) and got != right
    assert "NaN, as nothing is there yet" in " ".join(
        texts(tiling_race(first, "first warp ahead").svg())
    )


@pytest.mark.parametrize("name", CASES)
def test_races_are_drawn_clearly(name):
    for line in (None, *barriers(name)):
        for order in ORDERS:
            assert faults(PICTURES[name](line, order).svg()) == []


def test_races_refuse():
    with pytest.raises(ValueError, match="line 3 has no barrier"):
        tiling_race(3)
    with pytest.raises(ValueError, match="order is one of"):
        tree_race(None, "warps")
    case = tree_case()
    told = [tell(run.report, run.arrays, rule()) for run, rule in (
        (case.run(None, "lockstep"), case.rule),
        (tiling_case().run(None, "lockstep"), tiling_case().rule),
    )]  # fmt: skip
    with pytest.raises(ValueError, match="no read is like access"):
        hazards(*told)
