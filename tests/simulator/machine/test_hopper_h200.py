"""Hopper's own instructions against what an H200 wrote and counted, to the bit.

`tools/record/record_hopper_counters.py` makes the recording; a test that has none is skipped.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from recorded.hopper_cases import HopperCase, hopper_cases, options_of, packed, unpacked
from recorded.sections import DATA, METRICS

from helpers import simulator
from helpers.gpu.tensor_map import tensor_map

FILE = DATA / "hopper_instructions.json"


@functools.cache
def recorded() -> dict:
    return json.loads(FILE.read_text()) if FILE.exists() else {"cases": {}}


def cases_with(part: str) -> list:
    """The cases of which results or counters were recorded; none before the recording."""
    notes = recorded()["cases"]
    named = [case for case in hopper_cases() if part in notes.get(case.name, {})]
    return [pytest.param(case, notes[case.name], id=case.name) for case in named]


def run(case: HopperCase, count: bool = False):
    passed, outputs = case.arguments(lambda array: array, tensor_map)
    report = simulator.launch(
        case.code, case.entry, 1, case.threads, passed,
        options=options_of(case), shared_mem=case.shared, count=count,
    )  # fmt: skip
    return outputs, report


@pytest.mark.parametrize(("case", "note"), cases_with("results"))
def test_results_are_an_h200s(case, note):
    assert note["digest"] == case.digest(), f"{case.name} was recorded with another text or inputs"
    found, _ = run(case)
    for text, array in zip(note["results"], found, strict=True):
        np.testing.assert_array_equal(array.view(np.uint8), unpacked(text, array).view(np.uint8))


@pytest.mark.parametrize(("case", "note"), cases_with("counters"))
def test_counters_are_an_h200s(case, note):
    _, report = run(case, count=True)
    wanted = note["counters"]
    assert {n: report.counters[n] for n in METRICS} == {n: wanted[n] for n in METRICS}


@pytest.mark.parametrize(("case", "note"), cases_with("stopped"))
def test_what_stops_an_h200_is_refused(case, note):
    assert note["digest"] == case.digest() and "ILLEGAL_INSTRUCTION" in note["stopped"]
    with pytest.raises(simulator.SimulatorError, match="where a GPU meets an illegal instruction"):
        run(case)


def test_what_is_recorded_comes_back():
    (case,) = (c for c in hopper_cases() if c.name == "box5_9_swizzle32")
    found, _ = run(case)
    for array in found:
        np.testing.assert_array_equal(unpacked(packed(array), array), array)
    assert all(array.any() for array in found)


def test_a_base_offset_moves_the_pattern():
    cases = {case.name: case for case in hopper_cases()}
    (plain,) = (c for c in cases.values() if c.name == "wgmma_n24_f32_f16_swizzle128_0")
    shifted = cases["wgmma_n24_f32_f16_swizzle128_0_shift5"]
    same = [*shifted.args]  # the tile of the other case, five lines further on
    image = np.zeros_like(shifted.args[0])
    image[640:8832] = plain.args[0][:8192]
    assert plain.args[0][:8192].any() and len(image) >= 8832
    start = int(plain.args[3]) & 0x3FFF
    end = len(plain.args[0]) - start * 16
    first = (int(shifted.args[3]) & 0x3FFF) * 16
    image[first : first + end] = plain.args[0][start * 16 :][: len(image) - first]
    same[0], same[4:6] = image, plain.args[4:6]
    found, _ = run(HopperCase(shifted.name, shifted.code, "product", 128, image.size, tuple(same),
                              (6,)))  # fmt: skip
    np.testing.assert_array_equal(found[0], run(plain)[0][0])
