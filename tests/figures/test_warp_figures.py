"""Figures of warps and threads through time: their numbers against runs, counters and NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from figure_layout import faults as drawn_faults
from figure_pages import changed
from figure_texts import after, faults, texts

from helpers.figures.products import run_product
from helpers.figures.warps.followed_thread import followed_thread
from helpers.figures.warps.memory_story import hazards, tell
from helpers.figures.warps.naive_walk import naive_walk, walk
from helpers.figures.warps.races import (
    ORDERS,
    reuse_race,
    stories,
    tiling_case,
    tiling_race,
    tree_case,
    tree_race,
)
from helpers.kernels import load_kernel
from helpers.measure.facts import load_facts

CASES = {"tiling": tiling_case, "tree": tree_case, "reuse": lambda: tree_case(reuse=True)}
PICTURES = {"tiling": tiling_race, "tree": tree_race, "reuse": reuse_race}


def barriers(name: str) -> list[int]:
    """The lines of the two barriers that a figure is to take out."""
    file, entry = ("03_tiled.cu", "scaled_dot_product")
    if name != "tiling":
        file, entry = ("04_reduction.cu", "softmax")
    return load_kernel(file, entry).lines("__syncthreads()")[name == "reuse" :][:2]


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


def test_a_sum_comes_into_the_word_of_the_maximum():
    _, line = barriers("reuse")
    shown = texts(reuse_race(line, "first warp ahead").svg())
    found = next(text for text in shown if text.startswith("Warp 0 stores"))
    S = tree_case(reuse=True).run(None, "lockstep").arrays["S"][0]
    stored = f"{np.exp(S[0] - S.max()):.2f}"  # thread 0 has one score
    assert f"Warp 0 stores {stored} into s_data[0] in line 46." in found
    assert f"it needs {S.max():.0f}." in found
    assert f"warp 0: {S.max():.0f}, warp 1: {stored}" in " ".join(shown)


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


# ---------------------------------------------------------------- one thread


@pytest.mark.parametrize(
    "thread, block, N, T", [((2, 1), (0, 1), 8, 4), ((0, 3), (1, 0), 7, 4), ((1, 2), (1, 1), 6, 3)]
)
def test_a_followed_thread_does_what_the_indices_say(thread, block, N, T):
    frames = followed_thread(thread, block, N, T)
    run = run_product("03_tiled.cu", N, N, T)
    Q, K = run.arrays["Q"].astype(int), run.arrays["K"].astype(int)
    (tx, ty), row, col = thread, block[0] * T + thread[0], block[1] * T + thread[1]
    said = " ".join(frame.caption for frame in frames)
    shown = [" ".join(texts(frame.svg)).replace("−", "-") for frame in frames]
    for i in range(0, N, T):
        for name, values, r, c in (("Q", Q, row, i + ty), ("K", K, col, i + tx)):
            place = f"s_{name}[{tx}][{ty}]"
            if c < N:
                assert f"i = {i}: it copies {name}[{r}][{c}] into {place}" in said
                assert any(f"{place} = {name}[{r}][{c}] = {values[r, c]}" in s for s in shown)
            else:
                assert f"it stores 0 in {place}" in said
    lines = load_kernel("03_tiled.cu", "scaled_dot_product").lines("__syncthreads()")
    waits = [int(n) for n in re.findall(r"waits at the barrier in line (\d+)", said)]
    assert waits == lines * -(-N // T)
    assert f"s_Q[{tx}][{(ty + 1) % T}], carried by thread ({tx}, {(ty + 1) % T})" in said
    total = Q[row] @ K[col]
    assert f"The sum is {total}.".replace("-", "−") in said
    assert f"stores S[{row}][{col}]" in frames[-1].caption
    for frame in frames:
        assert faults(frame.svg) == []


def test_exchanged_roles_come_from_the_trace():
    assert "the two are exchanged" in followed_thread()[2].caption
    code = load_kernel("03_tiled.cu", "scaled_dot_product").code
    old = "s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx]"
    assert old in code
    swapped = old.replace("tx", "#").replace("ty", "tx").replace("#", "ty")
    with changed("03_tiled.cu", code.replace(old, swapped, 1)):
        other = followed_thread()[2].caption
    assert "Along d its index is i + ty." in other and "exchanged" not in other


def test_a_followed_thread_has_an_element():
    for wrong in (((4, 0), (0, 0)), ((0, 0), (2, 0)), ((3, 3), (1, 1), 7)):
        with pytest.raises(ValueError, match="has no element of S"):
            followed_thread(*wrong)


# ---------------------------------------------------------------- the naive walk


def naive_report(N: int, d: int, TILE: int):
    return run_product("02_naive.cu", N, d, TILE).report


@pytest.mark.parametrize("N, d, TILE, a_turn", [(32, 16, 16, 18), (16, 8, 8, 12), (24, 16, 8, 12)])
def test_the_walk_asks_for_what_the_report_counts(N, d, TILE, a_turn):
    report = naive_report(N, d, TILE)
    blocks, warps = report.grid[0] * report.grid[1], TILE * TILE // 32
    found = [
        turn
        for y in range(report.grid[1])
        for x in range(report.grid[0])
        for turn in walk(report, range(warps), (x, y, 0))
    ]
    assert len(found) == blocks * warps * d
    assert {turn.asked for turn in found} == {a_turn}
    assert sum(turn.asked for turn in found) == report.counters["global_load_sectors"]
    assert sum(len(t.requests) for t in found) == report.counters["global_load_requests"]
    # New is what a block reads at all: its rows of Q and of K, each sector once.
    assert sum(turn.new for turn in found) == blocks * 2 * TILE * d // 8


def test_the_walk_is_that_of_the_indices():
    for turn in walk(naive_report(32, 16, 16), (0, 1)):
        q, k = turn.requests["Q"], turn.requests["K"]
        assert q.elements == {row * 16 + turn.number for row in range(16)}
        assert k.elements == {col * 16 + turn.number for col in (2 * turn.warp, 2 * turn.warp + 1)}
        start = turn.number % 8 == 0  # of a sector
        assert (len(q.new), len(k.new)) == (16 * (start and turn.warp == 0), 2 * start)


def test_waits_are_the_gpus_and_said_to_be_so():
    facts = load_facts()
    frames = naive_walk(naive_report(32, 16, 16), facts, Q=(32, 16), K=(32, 16))
    assert len(frames) == 32 and [n for n, f in enumerate(frames) if f.telling] == [1]
    far, near = round(facts.latency["DRAM"]), round(facts.latency["L1"])
    for at, waits in ((0, far), (1, far), (2, near), (16, far), (30, near)):
        assert f"waits {waits} cycles: {'GPU memory' if waits == far else 'L1'}" in texts(
            frames[at].svg
        )
    assert after(frames[-1].svg, "cycles that warp 1 has waited") == f"{2 * far + 14 * near:,}"
    assert after(frames[-1].svg, "sectors asked for, warps 0 and 1") == "576"
    assert after(frames[-1].svg, "of these new: from the GPU's memory") == "40"
    shown = " ".join(texts(frames[0].svg))
    assert facts.device in shown and "Model: L1 is empty at first" in shown
    assert "since warp 0 has asked for them" in frames[1].caption
    for frame in frames[::5]:
        assert faults(frame.svg) == []


def test_a_walk_needs_whole_sectors():
    with pytest.raises(ValueError, match="takes the shapes of Q and K"):
        naive_walk(naive_report(8, 6, 8), load_facts(), Q=(8, 6), K=(8, 6))


@pytest.mark.browser
def test_no_text_of_them_lies_on_another_in_a_browser(page):
    orders = list(ORDERS)[1:]
    races = [(PICTURES[n](barriers(n)[1], o).svg(), "") for n in PICTURES for o in orders]
    walked = naive_walk(naive_report(32, 16, 16), load_facts(), Q=(32, 16), K=(32, 16))
    assert drawn_faults(page, [*races, *followed_thread()[2:6:2], *walked[1:3]]) == []
