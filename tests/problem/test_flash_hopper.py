"""The kernels of chapter 11 against float64, causal or not; their machine code."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from helpers import cp
from helpers.kernels import KernelError
from helpers.problem.attention import relative_error
from helpers.problem.flash import LAYOUTS
from helpers.problem.flash_hopper import (
    FLASH_AHEAD,
    FLASH_PERSISTENT,
    FLASH_PING_PONG,
    FLASH_PRODUCER,
    FLASH_RARE_RESCALE,
    FLASH_TMA,
    FLASH_WGMMA,
    HOPPER,
    check_hopper,
)
from helpers.problem.flash_inputs import TOLERANCE, make_inputs, reference, to_float

each_rung = pytest.mark.parametrize("rung", HOPPER, ids=lambda rung: rung.name)
ELEMENTS, DIMS = ("half", "nv_bfloat16"), (64, 128)

# Lengths that tiles fill and do not, one row, several heads and batches.
CASES = [
    # batch, heads, n, d, element, layout, parameters
    (2, 1, 1, 128, "half", "bhnd", {"B_C": 128, "CAUSAL": 1}),
    (1, 2, 130, 64, "nv_bfloat16", "bnhd", {"B_C": 64, "CAUSAL": 1}),
    (1, 1, 257, 64, "half", "bhnd", {"B_R": 192}),
]


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


@pytest.mark.parametrize("rung", [FLASH_WGMMA, FLASH_PERSISTENT], ids=lambda rung: rung.name)
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
    rung = FLASH_RARE_RESCALE.with_parameters(B_R=128, B_C=64)
    results = [rung.simulate(Q, K, V, count=False, SLACK=s)[0] for s in (-1, 0, 8)]
    np.testing.assert_array_equal(results[0], results[1])  # a factor of 1 changes nothing
    assert error(results[2], Q, K, V) < TOLERANCE["half"]
    assert (results[1] != results[2]).any()
    before, _ = FLASH_PING_PONG.simulate(Q, K, V, count=False, B_R=128, B_C=64)
    np.testing.assert_array_equal(results[0], before)


def test_blocks_that_stay_take_several_pieces_of_work():
    """Two blocks do seven pieces, of as many heads, with two tiles of keys each."""
    Q, K, V = inputs(1, 7, 65, 64)
    out = np.full_like(Q, np.nan)
    launch = FLASH_PERSISTENT.with_parameters(B_C=64).launch_of(Q, K, V, out)
    assert launch.grid == (7, 1, 1)
    dataclasses.replace(launch, grid=(2, 1, 1)).simulate(copy=False, count=False)
    assert error(out, Q, K, V) < TOLERANCE["half"]


def test_blocks_that_stay_are_one_a_multiprocessor():
    Q, K, V = (np.empty((2, 40, 256, 64), np.float16) for _ in range(3))
    grids = [
        FLASH_PERSISTENT.with_parameters(CAUSAL=c).launch_of(Q, K, V, Q.copy()).grid for c in (0, 1)
    ]
    assert grids == [(132, 1, 1), (2 * 40 * 2, 1, 1)]


def sanitized(code, rung, n=300, **values):
    """Findings of the simulator's checks when `code` takes the place of a rung's source."""
    Q, K, V = inputs(1, 1, n, 64)
    launch = rung.with_parameters(B_R=128, B_C=64, **values).launch_of(
        Q, K, V, np.full_like(Q, np.nan)
    )
    grid = (
        (2, 1, 1) if rung.stays else launch.grid
    )  # one of three pieces of work is a block's second
    launch = dataclasses.replace(launch, grid=grid, kernel=launch.kernel.altered(code))
    return launch.count(count=False, sanitize=True).findings


@each_rung
def test_no_race(rung):
    assert sanitized(None, rung, CAUSAL=1) == []


@pytest.mark.parametrize(
    ("rung", "line"),
    [
        (FLASH_WGMMA, "fence_async();    // wgmma finds"),
        (FLASH_TMA, "wgmma_wait<0>(r_O);"),
        (FLASH_TMA, "fence_async();  // TMA finds what"),
        (FLASH_PRODUCER, "wgmma_fence(r_O, r_P);"),
        (FLASH_PING_PONG, "wgmma_wait<1>(r_S);"),
        (FLASH_PERSISTENT, "tma_store_wait();  // the rows before"),
        (FLASH_PERSISTENT, "mbarrier_wait(&s.empty_Q, 1 - round % 2);"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_is_left_out_is_found(rung, line):
    code = rung.kernel("half", 64).code
    assert code.count(line) == 1
    assert sanitized(code.replace(line, "// " + line), rung)


def test_rows_of_64_elements_have_a_third_consumer():
    Q, K, V = inputs(1, 1, 200, 64)
    blocks = [
        rung.launch_of(Q, K, V, Q.copy()).block[0]
        for rung in (FLASH_TMA, FLASH_AHEAD, FLASH_AHEAD.with_parameters(B_R=128))
    ]
    assert blocks == [256, 512, 384]


@pytest.mark.parametrize(
    ("rung", "registers", "d", "products"),
    [
        (FLASH_WGMMA, 128, 128, {"HGMMA.64x64x16.F32": 8, "HGMMA.64x128x16.F32": 4}),
        (FLASH_AHEAD, 168, 128, {"HGMMA.64x128x16.F32": 24}),
        (FLASH_PERSISTENT, 168, 64, {"HGMMA.64x128x16.F32": 4, "HGMMA.64x64x16.F32": 16}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_registers_suffice(rung, registers, d, products):
    """Nothing is spilled, and all products are there: those of P V twice where they come behind."""
    code = rung.kernel("half", d).machine_code()
    assert code.architecture == "sm_90a"
    assert code.registers <= registers and code.spilled_bytes == 0
    found = {name: n for name, n in code.opcodes.items() if name in products}
    assert found == products


@pytest.mark.parametrize("rung", [FLASH_AHEAD, FLASH_PING_PONG], ids=lambda rung: rung.name)
def test_the_softmax_runs_before_the_wait_for_p_v(rung):
    """Of the exponentials in the loop, none comes behind the wait for both groups of products."""
    opcodes = [one.text for one in rung.kernel("half", 128).machine_code().instructions]
    waits = [i for i, text in enumerate(opcodes) if "WARPGROUP.DEPBAR" in text]
    assert [opcodes[i].split()[-1] for i in waits] == ["0x1", "0x0", "0x0"]
    exponentials = [i for i, text in enumerate(opcodes) if text.startswith("MUFU.EX2")]
    assert len(exponentials) > 64
    assert all(waits[0] < i < waits[1] for i in exponentials)


def test_each_is_a_step_over_the_one_before():
    for before, rung in itertools.pairwise(HOPPER):
        lines = [one.kernel("half", 64).source.split("\n") for one in (before, rung)]
        kept = set(lines[0]) & set(lines[1])
        assert len([line for line in lines[1] if line in kept]) > 0.7 * len(lines[1]), rung.name


def test_other_gpus_and_compilers_are_told_what_lacks():
    check_hopper("flash_tma", 9.0, 13)
    with pytest.raises(KernelError, match=r"flash_tma needs a GPU of compute capability 9\.0"):
        check_hopper("flash_tma", 8.0, 13)
    with pytest.raises(KernelError, match=r"this one has 12\.0"):
        check_hopper("flash_tma", 12.0, 13)
    with pytest.raises(KernelError, match=r"needs CUDA 12 or newer.*CuPy's is of CUDA 11"):
        check_hopper("flash_tma", 9.0, 11)


@pytest.mark.parametrize("rung", [FLASH_WGMMA, FLASH_PERSISTENT], ids=lambda rung: rung.name)
def test_the_problem_of_a_bench(rung):
    problem = rung.problem(n=70, HEAD_DIM=64, B_C=64, CAUSAL=1)
    (launch,) = problem.launches
    assert problem.outputs(launch) == ["O"]
    prepared = problem.prepare()
    assert np.isnan(prepared.arrays["O"]).all()
    prepared.launches[0].simulate(copy=False, count=False)
    result = to_float(prepared.arrays["O"])
    assert relative_error(result, problem.exact("O")) < problem.tolerance


def test_a_rung_runs_where_arrays_of_cp_are():
    arrays = inputs(1, 2, 70, 64, layout="bnhd")
    result = FLASH_TMA.run(*map(cp.asarray, arrays), layout="bnhd", CAUSAL=1)
    assert error(cp.asnumpy(result), *arrays, "bnhd", 1) < TOLERANCE["half"]


def test_a_head_dim_that_no_kernel_takes():
    with pytest.raises(KernelError, match="head dim of 64 or 128, not 32"):
        FLASH_TMA.simulate(*inputs(1, 1, 8, 32))


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
