"""What chapter 10 says in words, against the recording, the machine code and runs of kernels."""

from __future__ import annotations

import numpy as np
import pytest
from prose import prose

from helpers.figures.ideas.moving_maxima import moves
from helpers.measure.facts import load_facts
from helpers.measure.flash_times import LARGE
from helpers.measure.machine_table import machine_table
from helpers.measure.overlap_steps import cycles_of_a_piece
from helpers.measure.recorded import OVERLAP, load
from helpers.measure.roofline import least, parts
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import ladder, rung

TEXT = prose("10_overlap")
RATES = load(OVERLAP).tflops[LARGE]
NAMES = [one.name for one in ladder("flash")[1:]]
SPENT = {name: cycles_of_a_piece(load(OVERLAP).profile(name)) for name in NAMES}


def rate(name: str) -> float:
    return RATES[name.removeprefix("flash_")]


def test_what_step_1_removes():
    waits = [SPENT[name]["long_scoreboard"] for name in NAMES[:2]]
    assert "falls from 849 cycles a piece to 122" in TEXT
    assert waits == pytest.approx([849, 122], abs=1)
    assert "727 cycles fewer of some 3,700" in TEXT
    assert waits[0] - waits[1] == pytest.approx(727, abs=1)
    assert sum(SPENT[NAMES[0]].values()) == pytest.approx(3700, abs=50)
    assert "busy for only four cycles in ten" in TEXT


def test_what_step_2_removes():
    before, after = (SPENT[name]["selected"] for name in NAMES[1:3])
    assert "761 → 498, and the rate rises by 15 %" in TEXT
    assert (round(before), round(after)) == (761, 498)
    assert "A third of the instructions is gone" in TEXT and 0.3 < 1 - after / before < 0.37
    assert rate(NAMES[2]) / rate(NAMES[1]) == pytest.approx(1.15, abs=0.005)
    assert "from a sixth to a quarter" in TEXT
    assert [128 / before, 128 / after] == pytest.approx([1 / 6, 1 / 4], abs=0.01)
    kernels = {name: rung(name).kernel() for name in NAMES[1:4]}
    columns = ["tensor cores", "integer", "moves"]
    counted = [row[1:] for row in machine_table(kernels, columns, loop=True).rows]
    assert "The **128 products** are the same." in TEXT
    assert [row[0] for row in counted] == [128] * 3
    eager, registers, buffered = counted
    assert eager[1] > 2 * registers[1] and eager[2] > 20 * registers[2]
    assert (
        "of two places cost a hundred instructions a piece" in TEXT
    )  # of which the most are for addresses
    assert SPENT[NAMES[3]]["selected"] - after == pytest.approx(100, abs=5)
    assert buffered[1] - registers[1] == pytest.approx(100, abs=10)


def test_step_3_brings_little_and_says_so():
    assert "**Two per cent.**" in TEXT
    assert rate(NAMES[3]) / rate(NAMES[2]) == pytest.approx(1.02, abs=0.003)
    cold = load(OVERLAP).times("attention, cold")
    ratio = cold["double_buffer"][LARGE] / cold["registers"][LARGE]
    assert "a fifth of a per cent" in TEXT and ratio == pytest.approx(1.002, abs=0.0005)
    assert "115 cycles of long scoreboard and 154 at barriers, of 2,900" in TEXT
    found = SPENT[NAMES[2]]
    assert [round(found["long_scoreboard"]), round(found["barrier"])] == [115, 154]
    assert sum(found.values()) == pytest.approx(2900, abs=10)


def test_step_4_moves_the_bound():
    shares = {part: int(share[:-1]) for part, _, share in parts(NAMES[3]).rows}
    assert "62 % of the time at least" in TEXT and shares["shared memory"] == 62
    assert "And of the 52 % of the tensor cores?" in TEXT and shares["tensor cores"] == 52
    limits = [max(least(n)["flash_attention"], key=least(n)["flash_attention"].get)
              for n in NAMES[3:5]]  # fmt: skip
    assert "The bound has moved to the tensor cores" in TEXT
    assert limits == ["shared memory", "tensor cores"]
    throttle = [SPENT[name]["math_pipe_throttle"] for name in NAMES[3:5]]
    assert "*Math pipe throttle* nearly doubles" in TEXT
    assert 1.7 < throttle[1] / throttle[0] < 2
    wavefronts = [least(name)["flash_attention"]["shared memory"] for name in NAMES[3:5]]
    assert "Shared memory has 40 % less to do" in TEXT
    assert 1 - wavefronts[1] / wavefronts[0] == pytest.approx(0.4, abs=0.03)


def test_step_5_depends_on_the_data():
    always = RATES["rescale, always"]
    assert "Skipping is worth 4 to 5 %" in TEXT
    assert 1.04 < RATES["rescale"] / always < 1.05
    assert "even that is above FlashAttention-2's 350" in TEXT
    assert round(RATES["FlashAttention-2"]) == 350 < always
    assert "nearly five in 64" in TEXT and 4.5 < sum(1 / t for t in range(1, 65)) < 5
    Q, K, _ = (x[0, 0].astype(float) for x in make_inputs(1, 1, 2048, 128))
    scores = Q[:32] @ K.T * np.log2(np.e) / np.sqrt(128)
    kept, slack = (moves(scores, slack=value).rescaled for value in (0, 8))
    assert 0.3 < kept.mean() < 0.7 and slack.mean() < 0.06
    grown = scores[:, np.argsort(scores[0])]
    assert "rescaled in every tile" in TEXT and moves(grown).rescaled[0].all()
    assert "even the sorted row needs few rescales" in TEXT
    assert moves(grown, slack=8).rescaled[0].sum() < 6


def test_where_it_ends():
    most = load_facts().mma_tflops
    share = RATES["rescale"] / most
    assert "The kernel has 59 % of that" in TEXT and share == pytest.approx(0.59, abs=0.005)
    busy = load(OVERLAP).profile("flash_rescale").metrics
    assert "busy for 60 % of the time" in TEXT
    assert busy["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"] == pytest.approx(
        60, abs=0.5
    )
    assert "cuDNN has more than 100 %" in TEXT and RATES["cuDNN"] > most
    assert "the rate has grown by 45 %" in TEXT
    assert RATES["rescale"] / RATES["swizzled"] == pytest.approx(1.45, abs=0.01)
    assert "It is 1.06 in both." in TEXT
    for what in ("attention", "attention, cold"):
        table = load(OVERLAP).times(what)
        ratio = table["rescale"][LARGE] / table["FlashAttention-2"][LARGE]
        assert round(ratio, 2) == 1.06
    narrow = load(OVERLAP).times()
    shape = (4, 16, 4096, 64)
    assert "step 5 does not pay" in TEXT
    assert narrow["rescale"][shape] < narrow["wide_warps"][shape]


def test_the_last_kernel_is_as_long_as_it_is_said():
    lines = rung("flash_rescale").kernel().source.count("\n")
    assert "a kernel of some 300 lines" in TEXT and 280 <= lines <= 300
