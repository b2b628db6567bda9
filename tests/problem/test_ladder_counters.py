"""Simulated counters of every rung against Nsight Compute's, recorded on an H200.

`tools/record/record_ladder.py` makes the file: one kernel after another with its settings, N and
d, and what ncu counted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.problem.ladder import rung

FILE = Path(__file__).parents[1] / "recorded" / "data" / "ladder_counters.json"
DATA = json.loads(FILE.read_text()) if FILE.exists() else {"cases": [], "metrics": {}}


# Warps of different blocks that meet at the banks now and then cost the hardware a wavefront more
# than an access by itself does. It showed in nine of 118 kernels, of those with default parameters
# in `fused` alone, at most in one wavefront of 200, in the least of five launches.
MEETING = {
    "05_coarsened-scaled_dot_product-TILE16-COARSE1-200x72",
    "05_coarsened-scaled_dot_product-TILE16-COARSE1-257x80",
    "06_coalesced-scaled_dot_product-TILE8-COARSE8-TRANSPOSE_ON_STORE0-257x80",
    "07_register_blocked-softmax-TILE32-PATCH8-WARP_ROWS2-BLOCK_SIZE64-257x80",
    "07_register_blocked-pv_multiply-TILE16-PATCH8-WARP_ROWS4-BLOCK_SIZE1024-257x80",
    "07_fused-fused_attention-KEYS128-WARPS4-200x72",
    "07_fused-fused_attention-KEYS128-WARPS4-257x80",
    "07_fused-fused_attention-KEYS64-WARPS8-200x72",
    "07_fused-fused_attention-KEYS64-WARPS8-257x80",
}


def name_of(case: dict) -> str:
    settings = "-".join(f"{name}{value}" for name, value in case["parameters"].items())
    return f"{case['file'].removesuffix('.cu')}-{case['entry']}-{settings}-{case['N']}x{case['d']}"


@pytest.mark.skipif(not FILE.exists(), reason="no counters of the ladder are recorded yet")
@pytest.mark.parametrize("case", [pytest.param(case, id=name_of(case)) for case in DATA["cases"]])
def test_counters_equal_the_gpu(case):
    size = {"N": case["N"], "d": case["d"]}
    problem = rung(case["rung"]).problem(case["entry"], **size, **case["parameters"])
    [launch] = problem.prepare().launches
    report = launch.simulate(copy=False, count=True).report
    assert [*report.grid][: len(case["grid"])] == case["grid"]
    assert [*report.block][: len(case["block"])] == case["block"]
    recorded = {metric: case["ncu"][metric] for metric in DATA["metrics"]}
    counted = {metric: report.counters[metric] for metric in recorded}
    if name_of(case) in MEETING:
        for metric in [m for m in recorded if "wavefronts" in m or "conflicts" in m]:
            wavefronts = report.counters[metric.replace("bank_conflicts", "wavefronts")]
            assert 0 <= recorded[metric] - counted[metric] <= wavefronts / 200
            recorded[metric] = counted[metric]
    assert counted == recorded


@pytest.mark.skipif(not FILE.exists(), reason="no counters of the ladder are recorded yet")
def test_every_rung_is_recorded():
    # A kernel that two rungs share is recorded with the first of them.
    recorded = {(c["file"], c["entry"], c["N"], c["d"]) for c in DATA["cases"]}
    for one in (rung(name) for name in ("naive", "tiled", "reduction", "coarsened", "coalesced")):
        for step in one.steps:
            for N, d in ((200, 72), (257, 80)):
                assert (step.file, step.entry, N, d) in recorded
    variants = {
        (c["parameters"].get("PAD"), c["parameters"].get("TRANSPOSE_ON_STORE"))
        for c in DATA["cases"]
        if c["file"] == "07_padded.cu" and c["entry"] == "scaled_dot_product"
    }
    assert variants == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert any(c["rung"] == "register_blocked" for c in DATA["cases"])
