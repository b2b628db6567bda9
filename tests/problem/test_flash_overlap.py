"""The kernels of chapter 10 against float64, causal or not; their counters and machine code."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from recorded.sections import DATA, METRICS

from helpers import simulator
from helpers.problem.attention import relative_error
from helpers.problem.flash import FLASH_SWIZZLED, LAYOUTS
from helpers.problem.flash_inputs import TOLERANCE, flops, make_inputs, reference, to_float
from helpers.problem.flash_overlap import (
    FLASH_DOUBLE_BUFFER,
    FLASH_EAGER,
    FLASH_REGISTERS,
    FLASH_RESCALE,
    FLASH_WIDE_WARPS,
    OVERLAP,
)

each_rung = pytest.mark.parametrize("rung", OVERLAP, ids=lambda rung: rung.name)
ELEMENTS, DIMS = ("half", "nv_bfloat16"), (64, 128)

# Lengths that tiles of 64 and 128 rows fill and do not, one row, several heads and batches.
CASES = [
    # batch, heads, n, d, element, layout, parameters
    (1, 1, 1, 128, "half", "bhnd", {"CAUSAL": 1}),
    (2, 2, 17, 64, "nv_bfloat16", "bnhd", {"B_R": 32, "WARPS": 2, "CAUSAL": 1}),
    (2, 1, 130, 64, "half", "bhnd", {}),
    (1, 1, 193, 128, "half", "bhnd", {"B_R": 128, "WARPS": 8, "B_C": 32, "CAUSAL": 1}),
]
CONFLICTS = ("shared_load_bank_conflicts", "shared_store_bank_conflicts")
RECORDED = {
    (case["name"], case["shape"][2]): case["ncu"]
    for case in json.loads((DATA / "overlap_h200.json").read_text())["counters"]
}


def an_h200s(rung, n):
    """What Nsight Compute counted of a small grid; loads of nothing are as ptxas places them."""
    found = RECORDED[f"{rung.file[:3]} {rung.name[6:]}", n]
    return {name: found[name] for name in METRICS if name != "shared_load_instructions"}


def inputs(b, h, n, d, element="half", layout="bhnd"):
    """Q, K and V, in no order of axes alike."""
    arrays = make_inputs(b, h, n, d, element, seed=1000 * n + d)
    return [np.ascontiguousarray(x if layout == "bhnd" else x.swapaxes(1, 2)) for x in arrays]


def error(result, Q, K, V, layout="bhnd", causal=0):
    return relative_error(to_float(result), reference(Q, K, V, layout, bool(causal)))


@each_rung
@pytest.mark.parametrize(("b", "h", "n", "d", "element", "layout", "values"), CASES)
def test_rung_against_float64(rung, b, h, n, d, element, layout, values):
    arrays = inputs(b, h, n, d, element, layout)
    result, _ = rung.simulate(*arrays, layout=layout, count=False, **values)
    assert error(result, *arrays, layout, values.get("CAUSAL")) < TOLERANCE[element]


def test_the_causal_reference_is_that_of_a_mask():
    Q, K, V = (to_float(x)[0, 0] for x in make_inputs(1, 1, 9, 64))
    for row, found in enumerate(reference(*(x[None, None] for x in (Q, K, V)), causal=True)[0, 0]):
        weights = np.exp(Q[row] @ K[: row + 1].T / 8)
        np.testing.assert_allclose(found, weights @ V[: row + 1] / weights.sum(), rtol=1e-12)
    assert flops(2, 3, 16, 64, causal=True) == 2 * 2 * 3 * 16 * 16 * 64


@each_rung
def test_scores_far_apart(rung):
    """The maximum moves from tile to tile, by more than the exponents of fp32 could bear."""
    rng = np.random.default_rng(5)
    Q, K, V = (rng.standard_normal((1, 1, 150, 64)) for _ in range(3))
    K *= np.linspace(-100, 120, 150)[:, None]
    Q, K, V = (x.astype(np.float16) for x in (Q, K, V))
    assert abs(to_float(Q)[0, 0] @ to_float(K)[0, 0].T / 8).max() > 300
    result, _ = rung.simulate(Q, K, V, count=False)
    assert error(result, Q, K, V) < TOLERANCE["half"]


def test_slack_changes_the_work_and_not_the_result():
    """Maxima that grow by less than 8 powers of two in all: SLACK 8 rescales in the first tile."""
    Q, K, V = inputs(1, 1, 140, 64)
    results = [FLASH_RESCALE.simulate(Q, K, V, count=False, SLACK=s)[0] for s in (-1, 0, 8)]
    np.testing.assert_array_equal(results[0], results[1])  # a factor of 1 changes nothing
    assert error(results[2], Q, K, V) < TOLERANCE["half"]
    np.testing.assert_array_equal(results[0], FLASH_WIDE_WARPS.simulate(Q, K, V, count=False)[0])


@pytest.mark.parametrize(
    ("rung", "loads", "barriers"),
    [
        (FLASH_EAGER, 4608, 2),  # the same as chapter 09: 16 warps, 4 tiles, 8 (1 + 4) + 4 8
        (FLASH_REGISTERS, 16 * (8 + 4 * 64), 2),
        (FLASH_DOUBLE_BUFFER, 16 * (8 + 4 * 64), 1),
        (FLASH_WIDE_WARPS, 8 * 4 * (16 + 64), 1),
        (FLASH_RESCALE, 8 * 4 * (16 + 64), 1),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_counters_of_a_small_grid(rung, loads, barriers):
    Q, K, V = inputs(1, 1, 256, 128)
    _, (report,) = rung.simulate(Q, K, V)
    blocks = 256 // rung.values["B_R"]
    counted = report.counters
    assert counted["ldmatrix_instructions"] == loads
    assert counted["shared_load_wavefronts"] == 4 * loads + 512  # reads of O, 16 bytes a lane
    assert counted["shared_store_wavefronts"] == 512
    assert [counted[name] for name in CONFLICTS] == [0, 0]
    # A block reads all of K and V; 16 rows of 256 bytes are 128 sectors.
    assert counted["global_load_sectors"] == blocks * 2 * 2048 + 2048
    assert counted["global_store_sectors"] == 2048
    assert counted["barriers"] == blocks * 4 * 4 * barriers
    recorded = an_h200s(rung, 256)
    assert {name: counted[name] for name in recorded} == recorded


@each_rung
def test_counters_of_a_masked_grid_are_an_h200s(rung):
    Q, K, V = inputs(1, 1, 100, 64, "nv_bfloat16")
    _, (report,) = rung.simulate(Q, K, V, CAUSAL=1)
    recorded = an_h200s(rung, 100)
    assert {name: report.counters[name] for name in recorded} == recorded


@each_rung
def test_causal_blocks_skip_what_no_row_sees(rung):
    Q, K, V = inputs(1, 1, 256, 64)
    sectors = [
        rung.simulate(Q, K, V, CAUSAL=causal)[1][0].counters["global_load_sectors"]
        for causal in (0, 1)
    ]
    b_r, tile = rung.values["B_R"], 64 * 64 * 2 // 32  # sectors of a tile
    tiles = [-(-(first + b_r) // 64) for first in range(0, 256, b_r)]
    assert sectors == [4 * tile + 2 * n * tile for n in (4 * len(tiles), sum(tiles))]


@each_rung
def test_no_conflict_is_left(rung):
    Q, K, V = inputs(1, 1, 70, 64)
    _, (report,) = rung.simulate(Q, K, V)
    for line, counted in report.by_line.items():
        assert [counted[name] for name in CONFLICTS] == [0, 0], line


def sanitized(code, rung, causal=0, n=130, d=64):
    """Findings of the simulator's checks when `code` takes the place of a rung's source."""
    Q, K, V = inputs(1, 1, n, d)
    launch = rung.with_parameters(CAUSAL=causal).launch_of(Q, K, V, np.full_like(Q, np.nan))
    k = launch.kernel
    numbers = (np.int32(n), np.int64(n * d), np.int64(n * d), np.int32(d))
    report = simulator.launch(
        code or k.code, k.entry, launch.grid, launch.block, (*launch.args[:4], *numbers),
        options=k.options, shared_mem=launch.shared_mem, count=False, sanitize=True,
    )  # fmt: skip
    return report.findings


@each_rung
@pytest.mark.parametrize("causal", [0, 1])
def test_no_race(rung, causal):
    assert sanitized(None, rung, causal) == []


@pytest.mark.parametrize("rung", [FLASH_EAGER, FLASH_DOUBLE_BUFFER], ids=lambda rung: rung.name)
def test_no_barrier_is_superfluous(rung):
    lines = rung.kernel("half", 64).code.split("\n")
    waits = ("__syncthreads();", "__syncwarp();", "cp_async_wait<0>();")
    # In the loop and behind it: that of Q alone is followed by a wait for all.
    start = next(n for n, line in enumerate(lines) if "for (int key" in line)
    end = next(n for n, line in enumerate(lines) if "void store_rows" in line)
    places = [
        n for n, line in enumerate(lines)
        if any(wait in line for wait in waits) and (n > start or end < n < end + 30)
    ]  # fmt: skip
    assert len(places) == (5 if rung is FLASH_EAGER else 3)
    for place in places:
        without = [line if n != place else "" for n, line in enumerate(lines)]
        assert sanitized("\n".join(without), rung), lines[place]


@pytest.mark.parametrize(
    ("rung", "d", "causal"),
    [*((rung, 128, 0) for rung in OVERLAP), (FLASH_RESCALE, 128, 1), (FLASH_RESCALE, 64, 1)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_registers_suffice(rung, d, causal):
    """Two blocks have room, and nothing is spilled."""
    code = rung.with_parameters(CAUSAL=causal).kernel("half", d).machine_code()
    assert code.registers <= 255 and code.spilled_bytes <= 0
    assert code.opcodes["HMMA.16816.F32"] == rung.values["B_R"] // 64 * d


def test_each_is_a_step_over_the_one_before():
    for before, rung in itertools.pairwise((FLASH_SWIZZLED, *OVERLAP)):
        lines = [one.kernel("half", 64).source.split("\n") for one in (before, rung)]
        kept = set(lines[0]) & set(lines[1])
        assert len([line for line in lines[1] if line in kept]) > 0.75 * len(lines[1]), rung.name


@pytest.mark.gpu
@each_rung
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("d", DIMS)
def test_rung_against_float64_on_this_gpu(rung, d, element):
    for n, (b, h), layout, causal in itertools.product(
        (1, 17, 64, 100, 257, 512, 1000), ((1, 1), (2, 3), (3, 2)), LAYOUTS, (0, 1)
    ):
        arrays = inputs(b, h, n, d, element, layout)
        result = rung.run(*arrays, layout=layout, CAUSAL=causal)
        assert error(result, *arrays, layout, causal) < TOLERANCE[element], (n, b, h, causal)
