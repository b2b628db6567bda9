"""Bounds against what a launch has to do by its definition."""

import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers import simulator
from helpers.show import templates
from helpers.simulator import Bounds
from helpers.simulator.bounds.chains import least_cycles, registers
from helpers.simulator.compile.machine_code import lacking
from helpers.simulator.compile.sass import MachineInstruction
from helpers.simulator.observe.touched_sectors import global_wavefronts

NEEDS_NVDISASM = pytest.mark.skipif(bool(lacking()), reason=lacking())
N = 1 << 26  # floats: 256 MiB, more than any cache
COPY = """
extern "C" __global__ void copy(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i];
}
"""


def run(code: str, grid, block, args, **options):
    return simulator.launch(
        code, code.split("void ")[1].split("(")[0], grid, block, args, **options
    )


def test_a_copy_moves_each_byte_once_each_way():
    a, b = np.zeros(N, np.float32), np.empty(N, np.float32)
    report = run(COPY, N // 256, 256, (a, b, np.int32(N)), sample=3)
    assert report.counted_blocks == 3
    bound = report.bounds("H200")
    h200 = simulator.gpu("H200")
    assert bound.limit == "DRAM"
    assert bound.seconds == pytest.approx((8 * N - 2 * h200.l2_bytes) / h200.dram_rate)
    assert "cannot be faster than" in bound.sentence and "an H200: DRAM" in bound.sentence


def test_a_sample_says_what_all_blocks_say():
    n = 4096
    args = (np.zeros(n, np.float32), np.empty(n, np.float32), np.int32(n))
    whole = run(COPY, n // 256, 256, args).bounds("A100").by_resource
    some = run(COPY, n // 256, 256, args, sample=2).bounds("A100").by_resource
    assert some == pytest.approx(whole)


def test_conflicts_and_chains_of_ffma():
    code = """
    extern "C" __global__ void columns(float* out, int times) {
        __shared__ float s[32][32];
        float sum = 0;
        for (int i = 0; i < times; i++) {
            s[threadIdx.x][i & 31] = sum;
            __syncthreads();
            sum = fmaf(s[threadIdx.x][(i + 1) & 31], 2.0f, 1.0f);
        }
        out[threadIdx.x] = sum;
    }
    """
    report = run(code, 1, 32, (np.zeros(32, np.float32), np.int32(10)))
    bound = report.bounds("H200")
    clock = simulator.gpu("H200").clock
    assert bound.limit == "shared memory"
    # a column's store and load of 32 words each a round, and the result's one line
    assert bound.seconds == pytest.approx((2 * 10 * 32 + 1) / clock)
    assert bound.by_resource["FP32"] == pytest.approx(10 / 4 / clock)
    assert "97% of its wavefronts are conflicts" in bound.sentence
    assert "on 1 of 132" in bound.why["shared memory"]
    assert report.bounds("H200", clock=clock / 2).seconds == pytest.approx(2 * bound.seconds)


def test_a_sample_is_of_blocks_that_can_run_alone():
    args = (np.zeros(64, np.float32), np.zeros(64, np.float32), np.int32(64))
    with pytest.raises(simulator.SimulatorError, match="cooperative launch wait for each other"):
        run(COPY, 2, 32, args, cooperative=True, sample=1)
    with pytest.raises(simulator.SimulatorError, match="sample is a whole number of 1 or more"):
        run(COPY, 2, 32, args, sample=0)


def test_a_run_that_was_not_counted_has_no_bound():
    args = (np.zeros(8, np.float32), np.zeros(8, np.float32), np.int32(8))
    with pytest.raises(simulator.SimulatorError, match="count=False"):
        run(COPY, 1, 8, args, count=False).bounds()


def test_an_instruction_waits_for_what_it_reads():
    def one(text: str, predicate: str = "") -> MachineInstruction:
        opcode = text.removeprefix(predicate).split()[0]
        return MachineInstruction(0, text, opcode, predicate, "", None, "")

    wide = one("LDS.128 R4, [R2+0x10]")
    assert registers(wide) == ([("R", n) for n in (4, 5, 6, 7)], [("R", 2)])
    assert registers(one("STG.E desc[UR6][R8.64], R5"))[0] == []
    guarded = one("@!P1 FFMA R0, R1, R2, R0", "@!P1")
    assert registers(guarded) == ([("R", 0)], [("P", 1), ("R", 1), ("R", 2), ("R", 0)])
    chain = [guarded, guarded, guarded]  # 4 cycles each, but for the first
    assert least_cycles(chain, {"fp32": 300}) == 100 * (1 + 4 + 4)


# What Nsight Compute counted on an H200, l1tex__data_pipe_lsu_wavefronts for each load of a warp:
# bytes a lane, what lane n takes, wavefronts.
LOADS = {
    "bytes, 32 apart": (1, lambda n: 32 * n, 8),
    "halves, 3 apart": (2, lambda n: 3 * n, 2),
    "floats, 3 apart": (4, lambda n: 3 * n, 1),
    "floats, 8 apart": (4, lambda n: 8 * n, 8),
    "floats, 33 apart, 32 lines": (4, lambda n: 33 * n, 1),
    "floats, 34 apart": (4, lambda n: 34 * n, 2),
    "floats, two lines": (4, lambda n: n + 4, 1),
    "pairs, 3 apart": (8, lambda n: 3 * n, 2),
    "pairs, 16 apart, twice": (8, lambda n: 64 * (n % 16), 16),
    "fours, side by side": (16, lambda n: n, 4),
    "fours, 33 apart": (16, lambda n: 33 * n, 4),
    "fours, four of them": (16, lambda n: 33 * (n % 4), 1),
}


@pytest.mark.parametrize("size, taken, counted", LOADS.values(), ids=LOADS)
def test_wavefronts_of_a_global_load_are_those_of_its_fullest_bank(size, taken, counted):
    addresses = size * taken(np.arange(32))[None]
    assert global_wavefronts(addresses).tolist() == [counted]


def test_wavefronts_of_lanes_that_load():
    addresses = np.tile(128 * np.arange(32), (3, 1))
    some = np.stack([np.arange(32) % 2 == 1, np.zeros(32, np.bool_), np.arange(32) == 7])
    assert global_wavefronts(addresses, some).tolist() == [16, 0, 1]


@pytest.mark.parametrize("sums, kind", [("float", "fp16"), ("half", "fp16, fp16 sum")])
def test_sums_of_halves_are_told_from_sums_of_floats(sums, kind):
    """A GeForce does twice as many of them; so does wmma there, which says both types alike."""
    code = f"""
    #include <mma.h>
    using namespace nvcuda::wmma;
    extern "C" __global__ void products({sums}* out) {{
        fragment<matrix_a, 16, 16, 16, half, row_major> a;
        fragment<matrix_b, 16, 16, 16, half, col_major> b;
        fragment<accumulator, 16, 16, 16, {sums}> c;
        fill_fragment(a, __float2half(1));
        fill_fragment(b, __float2half(1));
        fill_fragment(c, {sums}(0));
        mma_sync(c, a, b, c);
        store_matrix_sync(out, c, 16, mem_row_major);
    }}
    """
    out = np.zeros((16, 16), np.float16 if sums == "half" else np.float32)
    report = simulator.launch(code, "products", 1, 32, (out,))
    assert (out == 16).all()
    assert report.work.tensor == {kind: 2 * 16**3}
    card = simulator.gpu("RTX 3090")
    least = 2 * 16**3 / (512 if sums == "float" else 1024) / card.clock
    assert report.bounds(card).by_resource["tensor cores"] == pytest.approx(least)


def test_peaks_are_those_of_the_data_sheets():
    """In TFLOPS, as NVIDIA's tables have them, without sparsity."""
    sheets = {
        "T4": {"fp16": 65, "int8": 130},
        "A100": {"fp16": 312, "bf16": 312, "tf32": 156, "int8": 624, "fp64": 19.5},
        "H100": {"fp64": 67},
        "RTX 3090": {"fp16": 71, "fp16, fp16 sum": 142, "tf32": 35.6, "int8": 284},
        "RTX 4090": {"fp16": 165.2, "tf32": 82.6, "int8": 660.6, "fp8, fp16 sum": 660.6},
    }
    for name, peaks in sheets.items():
        card = simulator.gpu(name)
        found = {k: card.multiprocessors * card.tensor[k] * card.clock / 1e12 for k in peaks}
        assert found == pytest.approx(peaks, rel=0.01), name
    fp32 = {"T4": 8.1, "A100": 19.5, "H100": 67, "H200": 67, "RTX 3090": 35.6, "RTX 4090": 82.6}
    for name, peak in fp32.items():
        card = simulator.gpu(name)
        found = 2 * card.multiprocessors * card.fp32 * card.clock / 1e12
        assert found == pytest.approx(peak, rel=0.01), name


def chain_report(blocks: int = 1):
    code = """
    extern "C" __global__ void chain(float* out, int times) {
        float sum = out[threadIdx.x];
        for (int i = 0; i < times; i++) sum = fmaf(sum, sum, 1.0f);
        out[threadIdx.x] = sum;
    }
    """
    return run(code, blocks, 32, (np.zeros(32, np.float32), np.int32(100)))


@NEEDS_NVDISASM
def test_a_launch_knows_its_machine_code_and_what_a_warp_waits():
    bound = chain_report().bounds("H200")
    assert bound.limit == "latency" and "1 wave of blocks" in bound.sentence
    # Each FFMA waits for the one before: 4 cycles at most, and a little less at a loop's ends.
    assert 3.5 * 100 < bound.seconds * bound.gpu.clock <= 4 * 100
    assert chain_report().bounds("A100").by_resource["latency"] > 0  # by its own machine code


def test_without_machine_code_only_ptx_counts(monkeypatch):
    def none(*args):
        raise simulator.SimulatorError("compile", "There is no nvdisasm.")

    report = chain_report()
    quick = report.bounds("H200", assembled=False)
    assert "latency" not in quick.by_resource and "PTX" in quick.why["issue slots"]
    monkeypatch.setattr("helpers.simulator.observe.report.machine_code_of", none)
    assert report.bounds("H200") == quick


def some_bounds(**seconds: float) -> Bounds:
    parts = {name.replace("_", " "): value for name, value in seconds.items()}
    why = {name: f"{name} < counted" for name in parts}
    return Bounds(simulator.gpu("H200"), "k", parts, why, ("A note.",))


def cells(bound: Bounds) -> list[list[str]]:
    """The texts of a table's cells, row by row, its headings first."""
    table = re.search(r"<table.*</table>", bound.html(), re.S)[0]
    rows = ET.fromstring(table).iter("tr")
    return [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in rows]


@pytest.mark.parametrize(
    "longest, unit, times",
    [
        (9.264e-3, "ms", ["9.26", "2.32", "< 0.01"]),
        (92.64e-6, "µs", ["92.6", "23.2", "< 0.1"]),
        (926.4e-9, "ns", ["926", "232", "< 1"]),
        (1234.0, "s", ["1,234", "308", "1"]),
    ],
)
def test_a_notebook_shows_a_row_for_each_part_the_longest_first(longest, unit, times):
    bound = some_bounds(L2=longest / 4, shared_memory=longest, FP32=longest / 2000)
    head, *rows = cells(bound)
    assert head == ["part of the H200", f"least time, {unit}", "of the longest", "what was counted"]
    assert [row[0] for row in rows] == ["shared memory limit", "L2", "FP32"]
    assert [row[1] for row in rows] == times
    assert [row[2] for row in rows] == ["100%", "25%", "< 1%"]
    assert [row[3] for row in rows] == [bound.why[name] for name, _ in bound.ranked]


def test_the_table_stands_under_the_sentence_and_its_bars_are_shares():
    bound = some_bounds(L2=1e-3, FP32=4e-3)
    html = bound._repr_html_()
    assert html.startswith("<style>")
    table = ET.fromstring(re.search(r"<table.*</table>", html, re.S)[0])
    assert table.findtext("caption") == bound.sentence
    assert [bar.get("style") for bar in table.iter("i")] == ["--share:100.0%", "--share:25.0%"]
    assert html.endswith('<p class="kernel-note">A note.</p>')
    assert "table" not in some_bounds().html()  # of a kernel that does nothing
    assert repr(bound).split("\n")[1:] == [
        "  FP32  4 ms  FP32 < counted", "  L2    1 ms  L2 < counted", "A note.",
    ]  # fmt: skip


def test_bounds_are_text_where_there_is_no_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templates.cache_clear()
    assert some_bounds(L2=1e-3)._repr_html_() is None
