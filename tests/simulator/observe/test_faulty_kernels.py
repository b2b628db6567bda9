"""Kernels with one fault each: the simulator's verdict against the definition, and recorded ones.

`tools/record/record_faulty.py` records on a GPU what compute-sanitizer says of the same kernels.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from faulty import cases, tools

from helpers import simulator

RECORDED = cases.FOLDER / "h200.json"


def verdict(one, **more):
    """(kind, lines) of all that the simulator says of a kernel, each once, and the words of it."""
    args = one.arguments()
    try:
        report = simulator.launch(
            one.code, "k", one.grid, one.block, args, shared_mem=one.shared_mem, sanitize=True,
            count=False, filename=f"{one.name}.cu", **more,
        )  # fmt: skip
    except simulator.SimulatorError as error:
        return [(error.kind, (error.line,))], [str(error)]
    found = dict.fromkeys((f.kind, f.lines) for f in report.findings)
    return list(found), [f.message for f in report.findings]


def test_every_kernel_of_the_folder_is_listed():
    names = [one.name for one in cases.ALL]
    assert sorted(names) == sorted(path.stem for path in cases.FOLDER.glob("*.cu"))
    assert len(set(names)) == len(names)
    assert len(cases.FAULTY) >= 25 and len(cases.CLEAN) >= 5
    for one in cases.ALL:
        assert bool(one.lines) == (one.kind is not None), one.name
        assert max(map(len, one.code.split("\n"))) <= 100
    assert {one.kind for one in cases.FAULTY} == set(cases.LOOKS_FOR)


@pytest.mark.parametrize("one", cases.FAULTY, ids=lambda one: one.name)
def test_the_verdict_is_that_of_the_definition(one):
    found, words = verdict(one)
    if one.name in cases.NOT_SEEN:
        assert found == []
        return
    assert found == [(one.kind, one.lines)]
    assert re.search(r"thread \(\d+, \d+, \d+\)", words[0])
    assert len(words[0]) > 80


@pytest.mark.parametrize("one", cases.CLEAN, ids=lambda one: one.name)
def test_what_only_looks_faulty_is_left_alone(one):
    for schedule in ("lockstep", "warps_reversed"):
        assert verdict(one, schedule=schedule)[0] == []


def test_the_clean_kernels_compute_what_they_say():
    """So that they are clean because nothing is wrong, not because nothing runs."""
    t = np.arange(64)
    expected = {
        "clean_early_exit": np.where(t < 40, 39 - t, 0),
        "clean_same_value": 7 + t,
        "clean_shuffle": t ^ 16,
        "clean_atomics": np.where(t < 4, 3 * (16 * t + 4 * 120), 0),
        "clean_half_warps": np.where(t % 32 < 16, t ^ 8, t ^ 4),
        "clean_barrier_of_a_block": 63 - t,
        "clean_named_barrier": np.where(t < 32, 31 - t, 0),
        "clean_next_row": np.where(t % 2 == 0, t, t % 8 * 7 + 7),
    }
    assert expected.keys() == {one.name for one in cases.CLEAN}
    for one in cases.CLEAN:
        args = one.arguments()
        simulator.launch(one.code, "k", one.grid, one.block, args, count=False)
        np.testing.assert_array_equal(args[1], expected[one.name], err_msg=one.name)


MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at k+0x90 in /tmp/x/kernel.cubin.cu:5
=========     by thread (64,0,0) in block (0,0,0)
=========     Address 0x7f0000000100 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
========= Invalid __global__ read of size 8 bytes
=========     at k+0x20 in kernel.cu:4
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000104 is misaligned
========= Invalid __shared__ write of size 16 bytes
=========     at k+0x110 in kernel.cu:8
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x404 is misaligned
========= ERROR SUMMARY: 3 errors
"""
MEMCHECK_SAYS = [("out_of_bounds", (5,)), ("misaligned", (4,)), ("misaligned", (8,))]
RACECHECK = """========= Error: Race reported between Write access at k+0x70 in kernel.cu:5
=========     and Read access at k+0xb0 in kernel.cu:6 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
SYNCCHECK = """========= Barrier error detected. Divergent thread(s) in block.
=========     at k+0x90 in kernel.cu:7
=========     by thread (0,0,0) in block (0,0,0)
"""
INITCHECK = """========= Uninitialized __global__ memory read of size 4 bytes
=========     at k+0x40 in kernel.cu:4
"""


@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        ("memcheck", MEMCHECK, MEMCHECK_SAYS),
        ("racecheck", RACECHECK, [("race", (5, 6))]),
        ("synccheck", SYNCCHECK, [("barrier", (7,))]),
        ("initcheck", INITCHECK, [("uninitialised", (4,))]),
        ("memcheck", "========= ERROR SUMMARY: 0 errors\n", []),
    ],
)
def test_reports_are_read(tool, text, expected):
    assert tools.verdicts(tool, text) == expected


@pytest.mark.skipif(
    not RECORDED.exists(),
    reason="no verdicts are recorded: run tools/record/record_faulty.py on a GPU",
)
@pytest.mark.parametrize(
    "one", cases.ALL if RECORDED.exists() else cases.ALL[:1], ids=lambda one: one.name
)
def test_compute_sanitizer_says_the_same(one):
    """The same kind of fault from the tool that looks for it, or a sentence on who is right."""
    kernels = json.loads(RECORDED.read_text())["kernels"]
    assert kernels.keys() == {each.name for each in cases.ALL}
    record = kernels[one.name]
    assert record["code"] == one.code, "recorded from another text: record it again"
    said = {
        kind
        for tool in cases.TOOLS
        for kind, _ in tools.verdicts(tool, "\n".join(record["tools"][tool]["report"]))
    }
    found = {kind for kind, _ in verdict(one)[0]}
    # racecheck calls a copy that was not waited for a race
    same = said == found or (found == {"async"} and said == {"race"})
    if one.name in cases.DIFFERENT:
        assert not same, "the two agree: take it out of DIFFERENT"
    else:
        assert same, f"compute-sanitizer: {said or 'nothing'}; simulator: {found or 'nothing'}"
