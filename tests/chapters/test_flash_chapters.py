"""What chapters 08 and 09 say in words, against the recording and against runs of the kernels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from prose import prose

from helpers.kernels import load_kernel
from helpers.measure.facts import load_facts
from helpers.measure.flash_times import LARGE
from helpers.measure.profile import stalls
from helpers.measure.recorded import load_flash
from helpers.measure.roofline import least, parts
from helpers.problem.attention import relative_error
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED
from helpers.problem.flash_inputs import flops, make_inputs, reference
from helpers.simulator import gpu

RATES = load_flash().tflops[LARGE]
METRICS = {name: load_flash().profile(name).metrics for name in (
    "flash_baseline", "flash_swizzled", "FlashAttention-2")}  # fmt: skip
LAUNCHES = Path(__file__).parents[1] / "recorded" / "data" / "bounds_h200.json"


def shares(name: str) -> dict[str, float]:
    found = stalls(METRICS[name])
    return {reason: cycles / sum(found.values()) for reason, cycles in found.items()}


def test_the_step_and_what_is_left():
    text = prose("09_swizzling")
    assert "five times as fast" in text and 4.5 < RATES["swizzled"] / RATES["baseline"] < 5.7
    assert "seven tenths of FlashAttention-2" in text
    assert 0.65 < RATES["swizzled"] / RATES["FlashAttention-2"] < 0.75
    assert "about 240 registers" in text
    for name in ("flash_baseline", "flash_swizzled"):
        assert METRICS[name]["launch__registers_per_thread"] == pytest.approx(240, abs=10)
    assert RATES["early V"] > 1.05 * RATES["swizzled"] < RATES["B_C 128"]


def test_a_thirteenth_of_what_mma_sync_reaches():
    most, text = load_facts().mma_tflops, prose("08_flash_attention")
    assert "a thirteenth of what the same instructions can do" in text
    assert f"**measured at {most:.0f}**" in text
    assert most / RATES["baseline"] == pytest.approx(13, abs=0.5)
    assert "cuDNN is above it" in text and RATES["cuDNN"] > most > RATES["FlashAttention-2"]
    after = prose("09_swizzling")
    assert "gives 40 % of the TFLOPS" in after and "six tenths of them are still free" in after
    assert RATES["swizzled"] / most == pytest.approx(0.4, abs=0.005)
    loop = json.loads(LAUNCHES.read_text())["cases"][
        "mma_loop"
    ]  # tensor cores bring the clock down, so cycles are counted ones
    a_cycle = loop["work"]["tensor"]["fp16"] / 132 / loop["ncu"]["sm__cycles_elapsed.max"]
    assert "some 2,700 here, by `mma.sync`" in after and a_cycle == pytest.approx(2700, rel=0.015)


def test_the_banks_explain_the_baseline():
    """Wavefronts of small simulated runs, one a cycle on each multiprocessor, against TFLOPS.

    What two runs tell of 4,096 tokens is what Nsight Compute has counted there, for 64 heads.
    """
    reached = {}
    for rung in (FLASH_BASELINE, FLASH_SWIZZLED):
        one, two = (
            sum(rung.simulate(*make_inputs(1, 1, tokens, 128))[1][0].counters[
                f"shared_{kind}_wavefronts"] for kind in ("load", "store"))
            for tokens in (64, 128)
        )  # fmt: skip
        pair = two / 2 - one
        waves = 64**2 * pair + 64 * (one - pair)
        m = METRICS[rung.name]
        recorded = sum(
            m[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum"] for kind in ("ld", "st")
        )
        assert 64 * waves == pytest.approx(recorded, rel=2e-3)
        cycles = m["launch__sm_count"] * m["gpc__cycles_elapsed.avg.per_second"]
        bound = cycles * flops(1, 1, 4096, 128) / waves / 1e12
        reached[rung.name] = RATES[rung.name.removeprefix("flash_")] / bound
    assert "The measured speed is 88 % of that." in prose("08_flash_attention")
    assert reached["flash_baseline"] == pytest.approx(0.88, abs=0.005)
    assert "Before, the kernel ran near it. Now it is far below" in prose("09_swizzling")
    assert reached["flash_swizzled"] < 0.6


def test_what_limits_the_flash_kernels():
    """The shares that the text beside the roofline repeats."""
    before, after = ({part: int(share[:-1]) for part, _, share in parts(f"flash_{name}").rows}
                     for name in ("baseline", "swizzled"))  # fmt: skip
    text = prose("08_flash_attention")
    assert "for 80 % of the time at the highest clock, for 88 % at the clock" in text
    assert before["shared memory"] == pytest.approx(80, abs=1)
    kept = METRICS["flash_baseline"]["gpc__cycles_elapsed.avg.per_second"]
    at_that_clock = before["shared memory"] * gpu("H200").clock / kept
    assert at_that_clock == pytest.approx(88, abs=1)
    shares = [after[part] for part in ("shared memory", "tensor cores", "L2")]
    assert shares == pytest.approx([53, 39, 24], abs=1)
    text = prose("09_swizzling")
    assert "busy for 53 % of the time at least, the tensor cores for 39 %, L2 for 24 %" in text
    shared = [least(f"flash_{name}")["flash_attention"]["shared memory"]
              for name in ("baseline", "swizzled")]  # fmt: skip
    assert "eight times as far" in text and shared[0] / shared[1] == pytest.approx(8, abs=0.1)


def test_what_warps_wait_for():
    text = prose("08_flash_attention")
    assert "Nearly nine cycles of ten" in text
    assert 0.85 < shares("flash_baseline")["short_scoreboard"] < 0.9
    assert "a warp waits 27 cycles here; in FlashAttention-2, 3." in text
    assert round(sum(stalls(METRICS["flash_baseline"]).values())) == 27
    assert round(sum(stalls(METRICS["FlashAttention-2"]).values())) == 3
    after = prose("09_swizzling")
    assert "was 88.6 % of 27.3 cycles an instruction, and is 22.7 % of 4.53." in after
    assert "from 24 cycles to 1" in after
    for name, share, cycles, waited in (
        ("flash_baseline", 0.886, 27.3, 24),
        ("flash_swizzled", 0.227, 4.53, 1),
    ):
        assert shares(name)["short_scoreboard"] == pytest.approx(share, abs=0.0005)
        assert sum(stalls(METRICS[name]).values()) == pytest.approx(cycles, abs=0.005)
        assert round(stalls(METRICS[name])["short_scoreboard"]) == waited
    reference = stalls(METRICS["FlashAttention-2"])
    assert "Here it waits for the two less than half a cycle an instruction." in after
    assert reference["short_scoreboard"] + reference["long_scoreboard"] < 0.5
    largest = max(shares("flash_swizzled"), key=shares("flash_swizzled").get)
    assert largest == "long_scoreboard" and "the largest is **long scoreboard**" in after


def test_how_busy_the_pipes_are():
    pipe = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
    tensor = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
    before, after = METRICS["flash_baseline"], METRICS["flash_swizzled"]
    assert before[pipe] > 90 and before[tensor] < 10
    # "in four cycles of ten. Before, it was one of thirteen", "40 % of the time"
    assert after[tensor] == pytest.approx(40, abs=3) and before[tensor] == pytest.approx(7.7, abs=1)


def test_no_more_instructions_over_many_tiles():
    name = "smsp__inst_executed.sum"
    ratio = METRICS["flash_swizzled"][name] / METRICS["flash_baseline"][name]
    assert "even executes 0.2 % fewer" in prose("09_swizzling")
    assert 1 - ratio == pytest.approx(0.002, abs=0.0005)


def test_what_the_number_of_multiprocessors_alone_would_give():
    text = prose("08_flash_attention")
    assert "There it gave 33.28 TFLOPS" in text and "82 multiprocessors, the H200 has 132" in text
    assert "33 TFLOPS would be 54 here, and 48 were measured" in text
    assert round(33.28 * 132 / 82) == 54 and round(RATES["baseline"]) == 48


def test_the_share_of_a_causal_run():
    """All that a pair of tiles costs falls by one share; at 4,096 tokens it is 51 %."""
    text = prose("08_flash_attention")
    assert "on $(t + 1) / 2t$ of all pairs. For 4,096 tokens that is 51 %." in text
    assert round(100 * (4096 / 64 + 1) / (2 * 4096 / 64)) == 51
    arrays = make_inputs(1, 1, 192, 64)
    full, causal = (FLASH_BASELINE.simulate(*arrays, CAUSAL=c)[1][0].counters for c in (0, 1))
    for name in ("ldmatrix_instructions", "shared_load_bank_conflicts", "barriers"):
        assert causal[name] / full[name] == (3 + 1) / (2 * 3), name
    assert "no load that is left conflicts" in prose("09_swizzling")
    _, (after,) = FLASH_SWIZZLED.simulate(*arrays, CAUSAL=1)
    assert after.counters["shared_load_bank_conflicts"] == 0


def test_the_padded_tiles_would_take_51_kilobytes():
    launch = FLASH_BASELINE.launch_of(*make_inputs(1, 1, 64, 128), np.zeros((1, 1, 64, 128), "f2"))
    padding = (64 + 2 * 64) * 16
    assert launch.shared_mem == 48 * 1024 and padding == 3 * 1024


def test_swizzling_changes_no_bit():
    arrays = make_inputs(2, 1, 100, 64, seed=5)
    before, _ = FLASH_BASELINE.simulate(*arrays, count=False)
    after, _ = FLASH_SWIZZLED.simulate(*arrays, count=False)
    np.testing.assert_array_equal(before, after)


def run_changed(rung, n, *changes):
    """Relative error and report of a rung's kernel with some text replaced."""
    arrays = make_inputs(1, 1, n, 128)
    launch = rung.launch_of(*arrays, np.zeros_like(arrays[0]))
    k = load_kernel(rung.file, rung.entry)
    for old, new in changes:
        assert old in k.code
        k.code = k.code.replace(old, new)
    from helpers import simulator

    args = list(launch.args)
    numbers = [
        np.dtype(a.dtypes[0]).type(v) for a, v in zip(k.arguments[4:], args[4:], strict=True)
    ]
    report = simulator.launch(
        k.code, k.entry, launch.grid, launch.block, (*args[:4], *numbers), options=k.options,
        shared_mem=launch.shared_mem, max_dynamic_shared=launch.shared_mem,
    )  # fmt: skip
    return relative_error(args[3], reference(*arrays)), report.counters


def test_a_missing_correction_shows_from_the_second_tile_on():
    changes = [(f"r_O[m][j][2 * h{i}] *= correction;", "") for i in ("", " + 1")]
    assert run_changed(FLASH_BASELINE, 64, *changes)[0] < 1e-3
    assert run_changed(FLASH_BASELINE, 65, *changes)[0] > 0.01
    assert run_changed(FLASH_BASELINE, 128, *changes)[0] > 0.1


def test_half_a_swizzle_and_one_that_is_forgotten():
    error, counters = run_changed(FLASH_SWIZZLED, 128, ("row % 8", "row % 4"))
    assert error < 1e-3 and counters["shared_load_bank_conflicts"] == 4608
    place = "s_K + place(8 * j + lane % 16, 2 * k + lane / 16)"
    plain = "s_K + (8 * j + lane % 16) * HEAD_DIM + 8 * (2 * k + lane / 16)"
    error, counters = run_changed(FLASH_SWIZZLED, 128, (place, plain))
    assert error > 0.5 and counters["shared_load_bank_conflicts"] == 14336
