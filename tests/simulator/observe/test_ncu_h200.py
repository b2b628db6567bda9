"""26 kernels whose outputs and counters were recorded on an H200, on the simulator and on a GPU.

`data/ncu_h200/cases.json` holds the sources and what Nsight Compute counted; `arrays_*.npz` the
inputs
(`NAME/INDEX/in`; outputs are poisoned) and what the GPU wrote (`NAME/INDEX/out`).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from helpers import cp, simulator

DATA = Path(__file__).parents[2] / "data" / "ncu_h200"
CASES = {c["name"]: c for c in json.loads((DATA / "cases.json").read_text())["cases"]}
METRICS = json.loads((DATA / "cases.json").read_text())["metrics"]
APPROXIMATE = {
    "math_functions",  # expf, logf, rsqrtf, ... are made of .approx instructions
    "qk_tile16_pad0_load",
    "qk_tile16_pad1_load",
    "qk_tile16_pad0_store",
    "qk_tile8_pad0_load",  # rsqrt.approx scales the sum
    "mma_m16n8k16",
}


@pytest.fixture(scope="module")
def arrays():
    found = {}
    for part in sorted(DATA.glob("arrays_*.npz")):
        found.update(np.load(part))
    return found


def arguments(case, arrays):
    args, outputs = [], {}
    for n, spec in enumerate(case["args"]):
        if isinstance(spec, int):
            args.append(np.int32(spec))
            continue
        args.append(arrays[f"{case['name']}/{n}/in"].copy())
        if spec[0] == "out":
            outputs[n] = arrays[f"{case['name']}/{n}/out"]
    return args, outputs


def check_outputs(case, args, outputs):
    assert outputs
    for n, expected in outputs.items():
        got = cp.asnumpy(args[n])
        assert got.dtype == expected.dtype
        if case["name"] in APPROXIMATE:
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=0)
        elif got.dtype.kind == "f":
            np.testing.assert_array_max_ulp(got, expected, maxulp=2)
        else:
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_counters_equal_the_gpu(name, arrays):
    case = CASES[name]
    args, outputs = arguments(case, arrays)
    report = simulator.launch(
        case["source"], case["entry"], tuple(case["grid"]), tuple(case["block"]), tuple(args),
        tuple(case["opts"]), case["shared_mem"],
    )  # fmt: skip
    check_outputs(case, args, outputs)
    assert {m: report.counters[m] for m in METRICS} == case["ncu"]
    for metric in METRICS:
        by_line = sum(counts[metric] for counts in report.by_line.values())
        assert by_line == report.counters[metric]


# One of the four tiled products, which take longer than all other cases together.
ONE_OF_A_KIND = [
    name for name in CASES if not name.startswith("qk_") or name == "qk_tile16_pad1_load"
]


@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_counting_does_not_change_results(name, arrays):
    case = CASES[name]
    counted, outputs = arguments(case, arrays)
    plain, _ = arguments(case, arrays)
    for args, count, threads in ((counted, True, 1 << 16), (plain, False, 300)):
        simulator.launch(
            case["source"], case["entry"], tuple(case["grid"]), tuple(case["block"]), tuple(args),
            tuple(case["opts"]), case["shared_mem"], count, batch_threads=threads,
        )  # fmt: skip
    for n in outputs:
        np.testing.assert_array_equal(counted[n], plain[n])


@pytest.mark.parametrize("name", ONE_OF_A_KIND)
def test_counters_do_not_depend_on_the_batches(name, arrays):
    case = CASES[name]
    args, _ = arguments(case, arrays)
    report = simulator.launch(
        case["source"], case["entry"], tuple(case["grid"]), tuple(case["block"]), tuple(args),
        tuple(case["opts"]), case["shared_mem"], batch_threads=700,
    )  # fmt: skip
    assert {m: report.counters[m] for m in METRICS} == case["ncu"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_outputs_on_this_gpu(name, arrays):
    case = CASES[name]
    args, outputs = arguments(case, arrays)
    args = [cp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    kernel = cp.RawKernel(case["source"], case["entry"], options=tuple(case["opts"]))
    kernel(tuple(case["grid"]), tuple(case["block"]), tuple(args), shared_mem=case["shared_mem"])
    check_outputs(case, args, outputs)
