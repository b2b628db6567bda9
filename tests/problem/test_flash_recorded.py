"""The simulator against what Nsight Compute counted for the FlashAttention kernels and the toys."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recorded.flash_cases import counted_cases
from recorded.sections import DATA, METRICS

from helpers import simulator

FILE = DATA / "flash_counters.json"
CASES = counted_cases()


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{c.entry}-{c.shape}-{c.values}" for c in CASES]
)
def test_counters(number):
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not there: make it with tools/record/record_flash.py")
    case, recorded = CASES[number], json.loads(FILE.read_text())["cases"][number]
    assert (case.file, case.entry, case.values) == tuple(
        recorded[key] for key in ("file", "entry", "values")
    )
    assert list(case.shape) == recorded["shape"]
    k = case.kernel()
    grid, block, shared, args = case.launch()
    arrays = [x for x in args if np.ndim(x)]
    types = [a.dtypes[0] for a in k.arguments[len(arrays) :]]
    numbers = [np.dtype(t).type(x) for t, x in zip(types, args[len(arrays) :], strict=True)]
    report = simulator.launch(
        k.code, k.entry, grid, block, (*arrays, *numbers), options=k.options, shared_mem=shared,
        max_dynamic_shared=shared or None,
    )  # fmt: skip
    # An edge's loads are predicated or jumped over as ptxas sees fit, and idle loads stand where
    # it wants them: how many instructions that makes is not modelled, what they cost is.
    names = [name for name in METRICS if name != "shared_load_instructions"]
    assert {name: report.counters[name] for name in names} == {
        name: recorded["ncu"][name] for name in names
    }
