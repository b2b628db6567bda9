"""What chapters 01 to 07 say in words, against what is recorded and what small runs count."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from prose import prose

from helpers.measure.facts import load_facts
from helpers.measure.ladder_times import ladder_times
from helpers.measure.recorded import LADDER, load
from helpers.measure.roofline import kernel_bounds, parts
from helpers.measure.rung_bounds import rung_bounds
from helpers.problem.attention import make_inputs, rung
from helpers.simulator import occupancy
from helpers.simulator.compile.compiler import compile_ptx
from helpers.simulator.observe.counters import ldmatrix_wavefronts, shared_wavefronts

N, D = 128, 64
FACTS = load_facts()


@functools.cache
def reports(name: str, **settings) -> list:
    """Reports of a rung's three kernels at N = 128: ratios are those of the chapters' 256."""
    return rung(name).simulate(*make_inputs(N, D), **settings)[1]


def sectors(report, kernel, text: str) -> tuple[int, float]:
    """Sectors that a line loads, and sectors a request."""
    c = report.by_line[kernel.lines(text)[0]]
    return c["global_load_sectors"], c["global_load_sectors"] / c["global_load_requests"]


def test_threads_at_once():
    threads = FACTS.limits["sms"] * FACTS.limits["maxThreadsPerMultiProcessor"]
    assert f"An H200 holds {threads:,} threads at once" in prose("01_attention")


def test_tiling_exchanges_sectors_for_wavefronts_most_of_them_conflicts():
    turns = N * N // 32 * D
    naive, tiled = (reports(name)[0].counters for name in ("naive", "tiled"))
    text = prose("03_tiling")
    assert "In place of 18 sectors a turn of the inner loop takes 6 wavefronts" in text
    assert naive["global_load_sectors"] / turns == 18
    waves = tiled["shared_load_wavefronts"] + tiled["shared_store_wavefronts"]
    conflicts = tiled["shared_load_bank_conflicts"] + tiled["shared_store_bank_conflicts"]
    assert waves / turns == 6 and conflicts > waves / 2
    assert "0.25 → 4" in text
    bytes_ = [c["global_load_bytes"] for c in (naive, tiled)]
    assert [naive["flops"] / b for b in bytes_] == [0.25, 4]


def test_the_tiled_product_runs_near_the_bound_of_its_wavefronts():
    """One wavefront a cycle and SM, at N = 16,384, against the recorded time."""
    c = reports("tiled")[0].counters
    waves = c["shared_load_wavefronts"] + c["shared_store_wavefronts"]
    least = waves * (16384 / N) ** 2 / (FACTS.limits["sms"] * FACTS.clock) * 1e3
    assert 0.75 < least / load(LADDER).times("scaled_dot_product")["tiled"][16384] < 1


def test_three_reads_and_a_write_are_most_of_the_softmax():
    report = reports("reduction")[1]
    kernel = rung("reduction").launches(N, D)[1].kernel
    read = [report.by_line[line]["global_load_bytes"] for line in kernel.lines("s[j]")]
    assert read == 3 * [4 * N * N]
    assert report.counters["global_store_bytes"] == 4 * N * N
    text, measured = prose("04_parallel_reduction"), load(LADDER).times("softmax")
    assert "the 1.159 that it takes" in text and "that makes 0.9 ms" in text
    assert round(measured["reduction"][16384], 3) == 1.159
    least = {walks: walks * 4 * 16384**2 / FACTS.data_sheet["dram_TBps"] / 1e9 for walks in (2, 4)}
    assert least[2] == pytest.approx(0.45, abs=0.005) and least[4] == pytest.approx(0.9, abs=0.01)
    assert least[4] > measured["reduction"][16384] / 2


def test_whose_sectors_the_coarsened_products_load():
    scores, _, output = reports("coarsened")
    launches = rung("coarsened").launches(N, D)
    (q, each), (k, _) = (sectors(scores, launches[0].kernel, f"s_{x}[tx][ty] =") for x in "QK")
    assert q == k and each == 16
    kernel = launches[2].kernel
    (p, _), (v, each) = (sectors(output, kernel, f"s_{x}[tx][ty] =") for x in "PV")
    assert v == 4 * p and each == 16
    text = prose("05_thread_coarsening")
    assert "Half of the sectors that the scores load are $Q$'s" in text
    assert "Of the output's sectors, four fifths are $V$'s. All of these come 16" in text


def milliseconds(kernel: str, name: str, n: int = 16384) -> float:
    return load(LADDER).times(kernel)[name][n]


ON_LOAD, ON_STORE = "transpose on load", "transpose on store"
TOTAL, SCORES, OUTPUT = "attention", "scaled_dot_product", "pv_multiply"


@pytest.mark.parametrize(
    ("chapter", "words", "value", "said"),
    [
        ("05", "takes three times as long as the tiled one",
         lambda ms: ms(OUTPUT, "coarsened", 256) / ms(OUTPUT, "tiled", 256), 3),
        ("05", "At 4,096 it has two blocks for each SM, and the two are even",
         lambda ms: ms(OUTPUT, "coarsened", 4096) / ms(OUTPUT, "tiled", 4096), 1.0),
        ("05", "At 16,384 it takes 13 % less time",
         lambda ms: 100 - 100 * ms(OUTPUT, "coarsened") / ms(OUTPUT, "tiled"), 13),
        ("05", "29.6 ms against 34.3 at 16,384", lambda ms: ms(TOTAL, "coarsened"), 29.6),
        ("05", "29.6 ms against 34.3 at 16,384", lambda ms: ms(TOTAL, "reduction"), 34.3),
        ("06", "makes `pv_multiply` 3.4 times as fast",
         lambda ms: ms(OUTPUT, "coarsened") / ms(OUTPUT, f"coalesced, {ON_LOAD}"), 3.4),
        ("06", "transposing on load saves 23 %",
         lambda ms: 100 - 100 * ms(SCORES, f"coalesced, {ON_LOAD}") / ms(SCORES, "coarsened"), 23),
        ("06", "transposing on store 63 %",
         lambda ms: 100 - 100 * ms(SCORES, f"coalesced, {ON_STORE}") / ms(SCORES, "coarsened"), 63),
        ("07", "the first variant 2.5 times as fast, 10.2 → 4.07 ms",
         lambda ms: ms(SCORES, f"coalesced, {ON_LOAD}") / ms(SCORES, f"padded, {ON_LOAD}"), 2.5),
        ("07", "the second 1.2 times, 4.86 → 4.07 ms",
         lambda ms: ms(SCORES, f"coalesced, {ON_STORE}") / ms(SCORES, f"padded, {ON_STORE}"), 1.2),
        ("07", "**85.3 ms have become 3.08**, which is 27.7 times as fast",
         lambda ms: ms(TOTAL, "naive") / ms(TOTAL, "register_blocked"), 27.7),
        ("07", "we are within a factor of 1.24",
         lambda ms: ms(TOTAL, "register_blocked")
         / ms(TOTAL, "PyTorch, two matmuls and a softmax"), 1.24),
        ("07", "it takes 45 of the 68 µs of all three kernels",
         lambda ms: 1000 * ms(OUTPUT, "register_blocked", 1024), 45),
        ("07", "it takes 45 of the 68 µs of all three kernels",
         lambda ms: 1000 * ms(TOTAL, "register_blocked", 1024), 68),
        ("07", "that is within a quarter of the time that PyTorch takes for the same three steps",
         lambda ms: ms(TOTAL, "register_blocked")
         / ms(TOTAL, "PyTorch, two matmuls and a softmax"), 1.2),
        ("07", "the H200 takes **1.81 ms**: 1.7 times as fast as three kernels",
         lambda ms: min(ms(TOTAL, name) for name in ladder_times("fused").recorded), 1.81),
        ("07", "the H200 takes **1.81 ms**: 1.7 times as fast as three kernels",
         lambda ms: ms(TOTAL, "register_blocked") / ms(TOTAL, "fused"), 1.7),
        ("07", "1.25 times as fast as PyTorch's memory-efficient attention",
         lambda ms: ms(TOTAL, "PyTorch, memory-efficient attention") / ms(TOTAL, "fused"), 1.25),
        ("07", "no faster than three kernels, 72 µs",
         lambda ms: 1000 * ms(TOTAL, "fused", 1024), 72),
    ],
)  # fmt: skip
def test_times_that_the_text_repeats(chapter, words, value, said):
    names = {"05": "05_thread_coarsening", "06": "06_coalescing", "07": "07_bank_conflicts"}
    assert words in prose(names[chapter])
    digits = len(str(said).partition(".")[2])
    assert round(value(milliseconds), digits) == said


def test_launch_bounds_cap_registers():
    assert FACTS.limits["regsPerMultiprocessor"] == 65536 == 1024 * 64
    text = prose("05_thread_coarsening")
    assert "1,024 threads, so each gets 64 at most" in text
    kernel = rung("coarsened").launches(N, D, TILE=32)[0].kernel
    assert "__launch_bounds__(TILE * TILE)" in kernel.source
    assert kernel.machine_code().registers <= 64


def test_the_compiler_unrolls_and_the_assembler_joins():
    """PTX holds each of the 16 loads of a row, machine code fewer and wider ones."""
    kernel = rung("coalesced").launches(N, D, TRANSPOSE_ON_STORE=0)[0].kernel
    ptx = compile_ptx(kernel.code, options=kernel.options).ptx
    body = ptx[ptx.index("scaled_dot_product(") :].split(".entry")[0]
    written = re.findall(r"ld\.shared[.\w]*", body)
    assert set(written) == {"ld.shared.f32"} and len(written) % 16 == 0
    issued = [op for op in kernel.machine_code().opcodes if op.startswith("LDS")]
    assert issued == ["LDS.128"]
    assert kernel.machine_code().opcodes["LDS.128"] == len(written) / 4


def test_phases_merge_where_pairs_of_lanes_agree():
    """The rule that 07 gives as measured, on words of 16 bytes a lane."""
    lanes = np.arange(32)
    for same in (1, 2):
        addresses = 16 * (lanes & ~same)
        assert int(shared_wavefronts(addresses, 16, load=True)[1]) == 2
        assert int(shared_wavefronts(addresses, 16, load=False)[1]) == 4
        assert int(ldmatrix_wavefronts(addresses, 4)[1]) == 4
    assert int(shared_wavefronts(16 * (lanes & ~4), 16, load=True)[1]) == 4
    assert "It was **measured** on an H200" in prose("07_bank_conflicts")


def test_what_limits_each_rung():
    """The shares and the limits that the text beside tables of bounds repeats."""

    def share(table, name: str) -> tuple[str, float]:
        rows = {label: row for row in table.rows for label in (row[0], *row[0].split(" and "))}
        _, limit, *_, explained = rows[name]
        return limit, float(explained.rstrip("%"))

    scores = kernel_bounds("register_blocked", "scaled_dot_product")
    assert share(scores, "naive")[0] == "L1"
    fp32 = {name: share(scores, name) for name, *_ in scores.rows}
    between = [name for name in fp32 if name not in ("naive", "register_blocked")]
    assert {fp32[name][0] for name in between} == {"shared memory"}
    assert "explains 92 % of the time" in prose("07_bank_conflicts")
    assert fp32["padded, transpose on store"][1] == pytest.approx(92, abs=1)
    softmax = kernel_bounds("reduction", "softmax")
    assert share(softmax, "naive")[0] == "L1" and share(softmax, "reduction")[0] == "DRAM"
    assert "explains 37 % of it" in prose("04_parallel_reduction")
    assert share(softmax, "reduction")[1] == pytest.approx(37, abs=1)
    busy = {part: float(share.rstrip("%")) for part, _, share in parts("register_blocked").rows}
    assert max(busy.values()) < 50 and "DRAM is busy for 28 % of the time" in prose(
        "07_bank_conflicts"
    )
    assert busy["DRAM"] == pytest.approx(28, abs=1)
    fused = parts("fused").rows
    assert fused[0][0] == "issue slots" and fused[0][2] == "64%"
    assert "The bound explains 64 % of the time" in prose("07_bank_conflicts")
    assert "DRAM" not in [part for part, *_ in fused]
    least_ms = {row[0]: float(row[2]) for row in scores.rows}
    assert "the bound falls by 15 %" in prose("05_thread_coarsening")
    assert 1 - least_ms["coarsened"] / least_ms["tiled and reduction"] == pytest.approx(
        0.15, abs=0.01
    )


def test_waiting_warps_and_the_l1_cache_take_as_long_for_the_first_softmax():
    measured, a_warp = load(LADDER).times("softmax")["naive"], FACTS.read_by_warps[1]
    assert (
        "busy for 32 cycles. [Chapter 04](04_parallel_reduction.ipynb) adds those cycles up"
        in prose("02_naive_kernels")
    )
    for n in (256, 1024, 4096, 16384):
        bound = rung_bounds("naive", n)["softmax"]
        waiting = 16 * n * n / (n // 32 * a_warp / FACTS.limits["sms"])
        assert bound.limit == "L1" and "32.0 wavefronts each" in bound.sentence
        for seconds in (bound.seconds, waiting):
            assert 0.7 < 1e3 * seconds / measured[n] < 1


def test_warps_of_the_last_rung():
    found = {}
    for name in ("padded", "register_blocked"):
        launch = rung(name).launches(N, D)[0]
        code = launch.kernel.machine_code()
        threads = int(np.prod(launch.block))
        found[name] = occupancy(threads, code.registers, code.static_shared, "H200")
    assert "so many registers that 16 warps fit" in prose("07_bank_conflicts")
    last = found["register_blocked"]
    assert last.warps == 16 and last.limit == "registers"
    assert found["padded"].warps > last.warps


def test_what_the_machine_code_of_the_last_rung_does():
    text = prose("07_bank_conflicts")
    for name, calculate, loads in (("padded", 27, 16), ("register_blocked", 67, 4)):
        code = rung(name).launches(N, D)[0].kernel.machine_code()
        shares = [code.kinds[kind] / len(code.instructions) for kind in ("fp32", "shared loads")]
        assert [round(100 * share) for share in shares] == [calculate, loads]
        assert f"{calculate} %" in text and f"{loads} %" in text
