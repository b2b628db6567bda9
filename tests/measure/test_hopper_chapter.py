"""What chapter 11 says in words, against the recording, the machine code and the kernels."""

from __future__ import annotations

import json
import re

import pytest
from prose import NOTEBOOKS, prose
from recorded.sections import DATA

from helpers.figures.warps.group_schedule import busy, spans_of
from helpers.measure.facts import load_facts
from helpers.measure.flash_times import LARGE, recording_of
from helpers.measure.machine_table import longest_loop
from helpers.measure.overlap_steps import cycles_of_a_piece, instructions_of_a_piece
from helpers.measure.recorded import HOPPER, load
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import ladder, rung
from helpers.simulator.compile.machine_code import lacking
from tools.record.hopper.hopper_cases import STEPS, TRIED

TEXT = prose("11_hopper")
COLD, WARM = (load(HOPPER).times(what) for what in ("attention, cold", "attention"))
CAUSAL = load(HOPPER).times("attention, causal, cold")
NARROW = (4, 16, 4096, 64)


def rate(name: str, times=COLD, shape=LARGE) -> float:
    return times[name][shape]


def counted(name: str) -> dict[str, float]:
    """What Nsight Compute counted of a kernel: warps, the clock, cycles of a piece by reason."""
    found = (recording_of(name) or load(HOPPER)).profile(f"flash_{name}")
    return {
        "busy": found.metrics["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"],
        "clock": found.metrics["gpc__cycles_elapsed.avg.per_second"],
        "warps": found.metrics["sm__warps_active.avg.per_cycle_active"],
        "issued": instructions_of_a_piece(found),
        **cycles_of_a_piece(found),
    }


def test_the_two_ceilings():
    facts = load_facts()
    assert "no more than 629 TFLOPS" in TEXT and round(facts.mma_tflops) == 629
    assert "says 989" in TEXT and facts.data_sheet["tensor_fp16_TFLOPS"] == 989
    assert "ended at six tenths of what `mma.sync` can do" in TEXT
    assert rate("rescale") / facts.mma_tflops == pytest.approx(0.6, abs=0.01)
    assert "is 1.7 times as fast" in TEXT
    assert rate("cuDNN") / rate("rescale") == pytest.approx(1.7, abs=0.05)
    assert "659 of 989, two thirds" in TEXT
    assert rate("ahead") / 989 == pytest.approx(2 / 3, abs=0.01)


def test_wgmma_and_tma():
    assert "From 373 to 583 TFLOPS" in TEXT
    assert (round(rate("rescale")), round(rate("wgmma"))) == (373, 583)
    assert "The rate rises by **6 %**" in TEXT
    assert rate("tma") / rate("wgmma") == pytest.approx(1.06, abs=0.006)
    used = load(HOPPER).tables["attention"].resources
    assert "**128 registers**" in TEXT and used["wgmma"][LARGE]["registers"] == 128
    assert "A tile of $K$ is 16 KiB" in TEXT and 64 * 128 * 2 == 16 * 1024
    assert "1,024 copies of 16 bytes" in TEXT


def test_what_step_1_and_2_moved():
    before, wgmma, tma = (counted(name) for name in ("rescale", "wgmma", "tma"))
    assert "64.8 by 60.0 is 1.08" in TEXT
    assert (wgmma["busy"], before["busy"]) == pytest.approx((64.85, 60.04), abs=0.006)
    assert "the clock is 0.96 of what it was" in TEXT
    assert wgmma["clock"] / before["clock"] == pytest.approx(0.96, abs=0.005)
    assert "The product is 1.55, and 583 by 373 is 1.56" in TEXT
    factors = wgmma["busy"] / before["busy"] * 1.5 * wgmma["clock"] / before["clock"]
    assert factors == pytest.approx(1.55, abs=0.005) and round(583 / 373, 2) == 1.56
    assert "every ninth instruction is gone, waits for loads have more than halved" in TEXT
    assert 1 / 10 < 1 - tma["issued"] / wgmma["issued"] < 1 / 8
    assert 0.4 < tma["long_scoreboard"] / wgmma["long_scoreboard"] < 0.5
    assert "359 where 402 were" in TEXT
    assert [round(one["issued"]) for one in (tma, wgmma)] == [359, 402]


def test_the_producer_alone_is_slower():
    assert "**Slower**: by 4 % cold, and by 12 % sustained" in TEXT
    losses = [1 - times["producer"][LARGE] / times["tma"][LARGE] for times in (COLD, WARM)]
    assert [round(100 * loss) for loss in losses] == [4, 12]
    tma, producer = counted("tma"), counted("producer")
    assert "16 warps before, and 9 after" in TEXT
    assert [round(one["warps"]) for one in (tma, producer)] == [16, 9]
    assert "Instructions are fewer" in TEXT and producer["issued"] < tma["issued"]
    assert "All begin with 168. The producer keeps 24, each consumer takes 240" in TEXT
    used = load(HOPPER).tables["attention"].resources["producer"][LARGE]
    assert used["registers"] == 168 and 128 * (24 + 2 * 240) == 64512 <= 65536
    source = next(r for r in ladder("hopper") if r.name == "flash_producer").kernel().source
    assert "CONSUMERS == 2 ? 240" in source and "CONSUMERS == 2 ? 24" in source


def test_scores_ahead_and_turns():
    assert "**659 TFLOPS: past cuDNN**, cold and sustained" in TEXT
    assert round(rate("ahead")) == 659 and rate("ahead") > rate("cuDNN")
    assert rate("ahead", WARM) > rate("cuDNN", WARM)
    assert "the whole gain is gone" in TEXT
    assert rate("ahead, waits early") < rate("producer")
    assert "up to 1.11 of cuDNN: they make certain" in TEXT
    assert "fall from 552 cycles to 35" in TEXT
    assert [round(counted(name)["barrier"]) for name in ("producer", "ahead")] == [552, 35]
    assert "Where rows see all keys, **nothing** moves" in TEXT
    assert "With 12 tiles the model has tensor cores busy for 96 and 99 %" in TEXT
    in_model = [busy(spans_of(f"flash_{name}", 12, 128)) for name in ("ahead", "ping_pong")]
    assert in_model == pytest.approx([0.96, 0.99], abs=0.005)
    assert "and the card has 77 for both" in TEXT
    assert [round(counted(name)["busy"]) for name in ("ahead", "ping_pong")] == [77, 77]
    assert rate("ping_pong") / rate("ahead") == pytest.approx(1, abs=0.01)
    assert counted("ping_pong")["busy"] == pytest.approx(counted("ahead")["busy"], abs=0.5)
    assert "at $d$ = 128, 11d is even slower than 11b" in TEXT
    wide = [shape for shape in CAUSAL["ahead"] if shape[3] == 128]
    assert all(CAUSAL["ahead"][s] < CAUSAL["tma"][s] for s in wide)
    gains = [CAUSAL["ping_pong"][s] / CAUSAL["ahead"][s] for s in wide]
    assert "busy for **60 %** of the time in 11d, and for **73 %** with turns" in TEXT
    masked = [counted(f"{name}, causal") for name in ("ahead", "ping_pong")]
    assert [round(one["busy"]) for one in masked] == [60, 73]
    assert "more than ten times as long as those of 11e" in TEXT
    assert masked[0]["gmma"] > 10 * masked[1]["gmma"]
    assert "**14 to 16 %** at $d$ = 128" in TEXT
    assert round(100 * min(gains)) == 114 and round(100 * max(gains)) == 116
    shares = [CAUSAL["ping_pong"][s] / CAUSAL["cuDNN"][s] for s in CAUSAL["cuDNN"]]
    assert "up to 1.11 of cuDNN" in TEXT and round(max(shares), 2) == 1.11


@pytest.mark.skipif(bool(lacking()), reason=lacking())
def test_where_the_assembler_puts_the_wait():
    """Between the wait for S and that for P V are the exponentials; or, waiting early, none."""
    early = next(one for one in TRIED if one.name == "11d, waits early")
    ahead = next(one for one in STEPS if one.name == "11d ahead")
    for one, between in ((ahead, 64), (early, 0)):
        loop = longest_loop(one.kernel("half", 128).machine_code("sm_90a"))
        waits = [n for n, i in enumerate(loop) if i.opcode.startswith("WARPGROUP.DEPBAR")]
        between_them = loop[waits[0] : waits[1]]
        found = sum(i.opcode.startswith("MUFU.EX2") for i in between_them)
        assert found == (between and pytest.approx(between, abs=4)), one.name


def test_a_rare_rescale_needs_a_slack():
    assert "with `SLACK` 0 the kernel **loses**" in TEXT
    assert "That brings **3 %** cold and **4 %** sustained: 1.05 of cuDNN" in TEXT
    assert "290 instructions a warp where 293 were" in TEXT
    names = ("rare_rescale", "ping_pong")
    assert [round(counted(name)["issued"]) for name in names] == [290, 293]
    for times, gain in ((COLD, 1.03), (WARM, 1.04)):
        assert times["rare_rescale"][LARGE] < times["ping_pong"][LARGE]
        found = times["rare_rescale, slack 8"][LARGE] / times["ping_pong"][LARGE]
        assert found == pytest.approx(gain, abs=0.005)
    assert round(rate("rare_rescale, slack 8") / rate("cuDNN"), 2) == 1.05


def test_blocks_that_stay_and_narrow_heads():
    assert "busy for 1 % more" in TEXT and "There is **nothing** to win here" in TEXT
    assert rate("persistent") / rate("ping_pong") == pytest.approx(1, abs=0.005)
    stays, before = counted("persistent"), counted("ping_pong")
    assert round(stays["busy"] - before["busy"]) == 1
    assert "the clock is 0.8 % lower" in TEXT
    assert 1 - stays["clock"] / before["clock"] == pytest.approx(0.008, abs=0.0005)
    assert "2,048 pieces on 132 multiprocessors are 15.5 for each" in TEXT
    assert 4 * 16 * 4096 // 128 == 2048 and round(2048 / 132, 1) == 15.5
    assert "That is 1.06 of cuDNN, and 1.07 with a slack" in TEXT
    shares = [rate(name, shape=NARROW) / rate("cuDNN", shape=NARROW)
              for name in ("ping_pong", "rare_rescale, slack 8")]  # fmt: skip
    assert [round(share, 2) for share in shares] == [1.06, 1.07]
    assert rate("ping_pong, B_R 128", shape=NARROW) < rate("cuDNN", shape=NARROW)


def test_with_a_mask_and_narrow_heads():
    wide = [shape for shape in CAUSAL["cuDNN"] if shape != NARROW]
    assert "turns bring the kernel past cuDNN everywhere" in TEXT
    assert all(rate("ping_pong", CAUSAL, s) > rate("cuDNN", CAUSAL, s) for s in wide)
    assert "With $d$ = 64 it stays at **0.97**, the one size below it" in TEXT
    best = max(CAUSAL[one.name[6:]][NARROW] for one in ladder("hopper"))
    assert best == rate("ping_pong", CAUSAL, NARROW)
    assert round(best / rate("cuDNN", CAUSAL, NARROW), 2) == 0.97
    warm = load(HOPPER).times("attention, causal")
    assert "Sustained it is 0.99" in TEXT
    assert round(warm["ping_pong"][NARROW] / warm["cuDNN"][NARROW], 2) == 0.99
    assert "**12 %** more scores than rows see" in TEXT and "would compute 3 % more" in TEXT


def test_what_moved_with_a_mask():
    names = ("producer", "ahead", "ping_pong", "rare_rescale, slack 8")
    masked = [counted(f"{name}, causal") for name in names]
    assert "fall from 574 cycles to 103" in TEXT
    assert [round(one["barrier"]) for one in masked[:2]] == [574, 103]
    assert "grow from 15 to 181" in TEXT and "**Turns** bring these down to 13" in TEXT
    assert [round(one["gmma"]) for one in masked[:3]] == [15, 181, 13]
    assert "**The slack** saves 24 instructions" in TEXT
    assert [round(one["issued"]) for one in masked[2:]] == [317, 293]
    assert "317 instructions where 293 were without a mask" in TEXT
    assert round(counted("ping_pong")["issued"]) == 293
    assert "busy for 62, 60, 73 and 74 %" in TEXT
    assert [round(one["busy"]) for one in masked] == [62, 60, 73, 74]
    times = [CAUSAL[name][LARGE] for name in names]
    assert times[1] < times[0] < times[2] < times[3]  # in the order of the busy tensor cores


@pytest.mark.parametrize("rows", [128, 192])
def test_scores_that_are_computed_with_a_mask(rows):
    """What the chapter counts, against the operations of a run: four for a score and each of d."""
    cells = json.loads((NOTEBOOKS / "11_hopper.ipynb").read_text("utf-8"))["cells"]
    (source,) = ("".join(c["source"]) for c in cells if c["id"] == "11-causal-c")
    names: dict = {}
    exec(source, names)
    n, d = 700, 64
    _, (report,) = rung("flash_ping_pong").simulate(*make_inputs(1, 1, n, d), CAUSAL=1, B_R=rows)
    seen = sum(range(1, n + 1))
    assert names["computed"](n, rows) == round(report.work.tensor["wgmma fp16"] / (4 * d) / seen, 3)


def test_where_it_ends():
    best = "rare_rescale, slack 8"
    assert "From 341 TFLOPS, of chapter 10's last kernel in the same rounds, to 665" in TEXT
    assert (round(rate("rescale", WARM)), round(rate(best, WARM))) == (341, 665)
    assert 2 < rate(best, WARM) / rate("FlashAttention-2", WARM) < 2.1
    assert "by 2 to 5 % with scores ahead, and by 5 to 7 % with a slack" in TEXT
    for name, least, most in (("ahead", 1.02, 1.05), (best, 1.05, 1.07)):
        shares = [COLD[name][s] / COLD["cuDNN"][s] for s in COLD[name]]
        assert (round(min(shares), 2), round(max(shares), 2)) == (least, most)
    assert "**69 %** of the 989" in TEXT and round(100 * rate(best) / 989) == 69
    assert "65 % for cuDNN" in TEXT and round(100 * rate("cuDNN") / 989) == 65
    assert "the card falls below 1.65" in TEXT
    assert all(counted(one.name[6:])["clock"] < 1.65e9 for one in ladder("hopper")[3:])
    for one in ladder("hopper"):
        assert one.kernel().source.count("\n") <= 300


def test_there_are_as_many_steps_as_it_says():
    assert "This chapter takes seven steps" in TEXT
    assert len(re.findall(r"## Step \d:", TEXT)) == len(ladder("hopper")) == 7


def test_what_the_bench_shows():
    """The last notes: a mask and smaller tiles, at n = 256."""
    inputs = make_inputs(1, 1, 256, 128)
    full, causal, small = (
        rung("flash_ping_pong").simulate(*inputs, **values)[1][0].counters
        for values in ({}, {"CAUSAL": 1}, {"B_C": 64})
    )
    assert "instructions fall by 5 % alone" in TEXT
    assert causal["instructions"] / full["instructions"] == pytest.approx(0.95, abs=0.005)
    assert "waits at barriers grow by more than half" in TEXT
    assert 1.5 < small["barriers"] / full["barriers"] < 2
    assert "takes up to 26 % more wavefronts for them" in TEXT
    launches = json.loads((DATA / "hopper_meetings.json").read_text())["counters"]
    of_rungs = [own for name, own in launches.items() if name.endswith(" n 256, d 128, half")]
    taken = [
        {one["shared_store_wavefronts"] for one in own} for own in of_rungs[: len(ladder("hopper"))]
    ]
    assert full["shared_store_wavefronts"] == 512 and taken[:2] == [{512}] * 2
    assert all(min(one) > 512 and len(one) > 1 for one in taken[2:])
    assert round(100 * (max(set.union(*taken)) / 512 - 1)) == 26
