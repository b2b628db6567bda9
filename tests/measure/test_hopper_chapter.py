"""What chapter 11 says in words, against the recording, the machine code and the kernels."""

from __future__ import annotations

import re

import pytest
from prose import prose

from helpers.measure.facts import load_facts
from helpers.measure.flash_times import LARGE
from helpers.measure.recorded import HOPPER, load
from helpers.problem.ladder import ladder

TEXT = prose("11_hopper")
COLD, WARM = (load(HOPPER).times(what) for what in ("attention, cold", "attention"))
CAUSAL = load(HOPPER).times("attention, causal, cold")
NARROW = (4, 16, 4096, 64)


def rate(name: str, times=COLD, shape=LARGE) -> float:
    return times[name][shape]


def test_the_two_ceilings():
    facts = load_facts()
    assert "no more than 629 TFLOPS" in TEXT and round(facts.mma_tflops) == 629
    assert "says 989" in TEXT and facts.data_sheet["tensor_fp16_TFLOPS"] == 989
    assert "ended at six tenths of what `mma.sync` can do" in TEXT
    assert rate("rescale") / facts.mma_tflops == pytest.approx(0.6, abs=0.01)
    assert "is nearly twice as fast" in TEXT and 1.7 < rate("cuDNN") / rate("rescale") < 2
    assert "Two thirds of the 989" in TEXT
    assert rate("ping_pong") / 989 == pytest.approx(2 / 3, abs=0.02)


def test_wgmma_and_tma():
    assert "From 377 to 584 TFLOPS" in TEXT
    assert (round(rate("rescale")), round(rate("wgmma"))) == (377, 584)
    assert "the rate rises by **6 %**" in TEXT
    assert rate("tma") / rate("wgmma") == pytest.approx(1.06, abs=0.006)
    used = load(HOPPER).tables["attention"].resources
    assert "**128 registers**" in TEXT and used["wgmma"][LARGE]["registers"] == 128
    assert "A tile of $K$ is 16 KiB" in TEXT and 64 * 128 * 2 == 16 * 1024
    assert "1,024 requests of 16 bytes" in TEXT


def test_the_producer_alone_is_slower():
    assert "**Slower**, by 5 %, and with small tiles more" in TEXT
    assert rate("producer") / rate("tma") == pytest.approx(0.95, abs=0.006)
    assert rate("producer, B_C 64") < rate("producer")
    assert "All begin with 168. The producer keeps 24, each consumer takes 240" in TEXT
    used = load(HOPPER).tables["attention"].resources["producer"][LARGE]
    assert used["registers"] == 168 and 128 * (24 + 2 * 240) == 64512 <= 65536
    source = next(r for r in ladder("hopper") if r.name == "flash_producer").kernel().source
    assert "CONSUMERS == 2 ? 240" in source and "CONSUMERS == 2 ? 24" in source


def test_scores_ahead_and_turns():
    assert "**666 TFLOPS: beside cuDNN**, and above it when cold" in TEXT
    assert round(rate("ahead")) == 666 and rate("ahead") > rate("cuDNN")
    assert rate("ahead", WARM) < rate("cuDNN", WARM)
    assert "and the whole gain is gone" in TEXT
    assert rate("ahead, waits early") < rate("producer")
    assert "turns bring nothing more" in TEXT
    assert rate("ping_pong") / rate("ahead") == pytest.approx(1, abs=0.01)
    gains = [CAUSAL["ping_pong"][s] / CAUSAL["ahead"][s] for s in CAUSAL["ahead"]]
    assert "**14 to 18 %**" in TEXT
    assert round(100 * min(gains)) == 114 and round(100 * max(gains)) == 118
    shares = [CAUSAL["ping_pong"][s] / CAUSAL["cuDNN"][s] for s in CAUSAL["cuDNN"]]
    assert "up to 1.12 of cuDNN" in TEXT and round(max(shares), 2) == 1.12


def test_a_rare_rescale_saves_power():
    assert "Cold it changes **nothing**. Sustained it brings **6 %**" in TEXT
    gains = [t["ping_pong, seldom"][LARGE] / t["ping_pong"][LARGE] for t in (COLD, WARM)]
    assert gains == pytest.approx([1.0, 1.06], abs=0.006)


def test_blocks_that_stay_and_narrow_heads():
    assert "there is **nothing** to win at $d$ = 128. At $d$ = 64 it is 1 %" in TEXT
    assert rate("persistent") / rate("ping_pong") == pytest.approx(1, abs=0.005)
    narrow = rate("persistent", shape=NARROW) / rate("ping_pong", shape=NARROW)
    assert narrow == pytest.approx(1.01, abs=0.005)
    assert "That is 1.05 of cuDNN" in TEXT
    share = rate("ahead, B_R 192", shape=NARROW) / rate("cuDNN", shape=NARROW)
    assert share == pytest.approx(1.05, abs=0.005)
    assert "spills registers and falls to half" in TEXT
    assert rate("ping_pong, B_R 192") == pytest.approx(rate("ping_pong") / 2, rel=0.02)


def test_where_it_ends():
    assert "From chapter 10's 335 to 619 TFLOPS, sustained, and nearly twice" in TEXT
    assert (round(rate("rescale", WARM)), round(rate("ahead", WARM))) == (335, 619)
    assert 1.9 < rate("ahead", WARM) / rate("FlashAttention-2", WARM) < 2
    assert "up to **1.04 of cuDNN**, by a kernel of 300 lines" in TEXT
    shares = [COLD["ahead"][s] / COLD["cuDNN"][s] for s in COLD["cuDNN"]]
    assert round(max(shares), 2) == 1.04
    ahead = next(one for one in ladder("hopper") if one.name == "flash_ahead")
    assert ahead.kernel().source.count("\n") <= 300


def test_there_are_as_many_steps_as_it_says():
    assert "This chapter takes seven steps" in TEXT
    assert len(re.findall(r"## Step \d:", TEXT)) == len(ladder("hopper")) == 7
