"""The FlashAttention kernels against float64, causal or not; their counters, what they refuse."""

from __future__ import annotations

import difflib
import itertools

import ml_dtypes
import numpy as np
import pytest

from helpers import simulator, standin
from helpers.gpu import device
from helpers.kernels import KERNELS, KernelError, load_kernel
from helpers.problem import attention
from helpers.problem.attention import relative_error
from helpers.problem.flash import (
    FLASH_BASELINE,
    FLASH_SWIZZLED,
    LAYOUTS,
    check_device,
)
from helpers.problem.flash_inputs import (
    TOLERANCE,
    flops,
    from_bf16,
    make_inputs,
    reference,
    to_bf16,
    to_float,
)
from helpers.problem.flash_overlap import OVERLAP
from helpers.problem.ladder import ladder
from helpers.simulator.errors import SimulatorError

ELEMENTS = ("half", "nv_bfloat16")
DIMS = (64, 128)
LENGTHS = (1, 17, 64, 100, 257)
FLASH = (FLASH_BASELINE, FLASH_SWIZZLED)
each_rung = pytest.mark.parametrize("rung", FLASH, ids=lambda rung: rung.name)

# Every length with both rungs, every element with every head dim, several batches and heads, every
# value of a parameter with each rung, and tiles that a length fills and does not.
CASES = [
    # batch, heads, n, d, element, layout, parameters
    (1, 1, 1, 128, "half", "bhnd", {}),
    (2, 3, 1, 64, "nv_bfloat16", "bnhd", {"B_R": 32, "WARPS": 1}),
    (2, 2, 17, 64, "half", "bhnd", {"B_C": 32}),
    (1, 3, 17, 128, "nv_bfloat16", "bnhd", {"B_R": 16, "WARPS": 1, "CAUSAL": 1}),
    (3, 1, 64, 128, "half", "bnhd", {"B_C": 128}),
    (1, 2, 64, 64, "nv_bfloat16", "bhnd", {"B_R": 128, "WARPS": 8}),
    (1, 2, 100, 128, "nv_bfloat16", "bhnd", {"CAUSAL": 1}),
    (2, 1, 100, 64, "half", "bnhd", {"B_R": 128, "WARPS": 2}),
    (1, 1, 257, 64, "half", "bhnd", {"B_R": 128, "WARPS": 4, "B_C": 32, "CAUSAL": 1}),
    (1, 1, 257, 128, "nv_bfloat16", "bhnd", {"B_R": 32, "WARPS": 2, "B_C": 128}),
]
MEMORY = (
    "shared_load_wavefronts",
    "shared_load_bank_conflicts",
    "shared_store_wavefronts",
    "shared_store_bank_conflicts",
)


def inputs(b, h, n, d, element, layout="bhnd"):
    """Q, K and V that no exchange of batches, heads, rows, columns or operands leaves alone."""
    Q, K, V = (to_float(x) for x in make_inputs(b, h, n, d, seed=1000 * n + d))
    ramp = np.linspace(0.5, 1.5, Q.size).reshape(Q.shape)
    arrays = (Q * ramp, K + ramp, V - 2 * ramp)
    if layout == "bnhd":
        arrays = (x.swapaxes(1, 2) for x in arrays)
    arrays = (np.ascontiguousarray(x, np.float32) for x in arrays)
    return [to_bf16(x) if element == "nv_bfloat16" else x.astype(np.float16) for x in arrays]


def error(result, Q, K, V, layout="bhnd", causal=0):
    return relative_error(to_float(result), reference(Q, K, V, layout, bool(causal)))


@each_rung
@pytest.mark.parametrize(("b", "h", "n", "d", "element", "layout", "values"), CASES)
def test_rung_against_float64(rung, b, h, n, d, element, layout, values):
    Q, K, V = inputs(b, h, n, d, element, layout)
    before = [x.copy() for x in (Q, K, V)]
    result, reports = rung.simulate(Q, K, V, layout=layout, count=False, **values)
    assert result.dtype == Q.dtype and result.shape == Q.shape
    assert error(result, Q, K, V, layout, values.get("CAUSAL")) < TOLERANCE[element]
    assert [r.entry for r in reports] == ["flash_attention"]
    for array, old in zip((Q, K, V), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_the_cases_meet_what_they_say():
    assert {case[2] for case in CASES} == set(LENGTHS)
    assert {(case[3], case[4]) for case in CASES} == set(itertools.product(DIMS, ELEMENTS))
    assert {(case[4], case[5]) for case in CASES} == set(itertools.product(ELEMENTS, LAYOUTS))
    for name, choices in FLASH_BASELINE.choices.items():
        default = FLASH_BASELINE.values[name]
        assert {case[6].get(name, default) for case in CASES} == set(choices), name


@pytest.mark.gpu
@each_rung
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("d", DIMS)
def test_rung_against_float64_on_this_gpu(rung, d, element):
    for n, (b, h), layout, causal in itertools.product(
        (*LENGTHS, 512, 1000), ((1, 1), (2, 3), (3, 2)), LAYOUTS, (0, 1)
    ):
        Q, K, V = inputs(b, h, n, d, element, layout)
        result = rung.run(Q, K, V, layout=layout, CAUSAL=causal)
        assert error(result, Q, K, V, layout, causal) < TOLERANCE[element], (n, b, h, causal)


@pytest.mark.gpu
@each_rung
def test_every_setting_on_this_gpu(rung):
    Q, K, V = inputs(1, 2, 321, 128, "half")
    for values in itertools.product(*rung.choices.values()):
        settings = dict(zip(rung.choices, values, strict=True))
        if settings["B_R"] % (16 * settings["WARPS"]):
            continue
        result, causal = rung.run(Q, K, V, **settings), settings["CAUSAL"]
        assert error(result, Q, K, V, causal=causal) < TOLERANCE["half"], settings


@pytest.mark.gpu
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("d", DIMS)
def test_at_most_twice_the_error_of_pytorch(d, element):
    torch = pytest.importorskip("torch")
    for n in (*LENGTHS, 512):
        Q, K, V = inputs(2, 3, n, d, element)
        kind = torch.float16 if element == "half" else torch.bfloat16
        tensors = [torch.from_numpy(x.view(np.int16)).cuda().view(kind) for x in (Q, K, V)]
        theirs = torch.nn.functional.scaled_dot_product_attention(*tensors).double().cpu().numpy()
        for rung in FLASH:
            assert error(rung.run(Q, K, V), Q, K, V) <= 2 * error(theirs, Q, K, V), (rung, n)


@pytest.mark.parametrize("rung", FLASH, ids=lambda rung: rung.name)
def test_rung_through_cp(rung):
    """What a notebook calls: arrays of `cp`, or of NumPy."""
    from helpers import cp

    Q, K, V = inputs(1, 2, 40, 64, "half")
    for arrays in ((Q, K, V), [cp.asarray(x) for x in (Q, K, V)]):
        result = rung.run(*arrays)
        assert isinstance(result, cp.ndarray)
        assert error(result, Q, K, V) < TOLERANCE["half"]


def test_both_rungs_give_the_same_bits():
    """The swizzle moves elements and changes no sum."""
    Q, K, V = inputs(1, 1, 130, 64, "half")
    for causal in (0, 1):
        results = [rung.simulate(Q, K, V, count=False, CAUSAL=causal)[0] for rung in FLASH]
        np.testing.assert_array_equal(*results)


@each_rung
def test_rows_beyond_the_last_are_neither_read_nor_written(rung):
    """Between the heads lie rows full of NaN, which would show in O and must stay in it."""
    h, n, d, gap = 2, 33, 64, 7
    arrays = [np.full((h, n + gap, d), np.nan, np.float16) for _ in range(4)]
    Q, K, V = inputs(1, h, n, d, "half")
    for array, x in zip(arrays, (Q, K, V), strict=False):
        array[:, :n] = x[0]
    launch = rung.launch_of(Q, K, V, Q)
    head_stride = (n + gap) * d
    numbers = (np.int32(n), np.int64(h * head_stride), np.int64(head_stride), np.int32(d))
    simulator.launch(
        launch.kernel.code, rung.entry, launch.grid, launch.block, (*arrays, *numbers),
        options=launch.kernel.options, shared_mem=launch.shared_mem, count=False,
    )  # fmt: skip
    assert error(arrays[3][None, :, :n], Q, K, V) < TOLERANCE["half"]
    assert np.isnan(arrays[3][:, n:]).all()


@each_rung
def test_scores_far_apart(rung):
    """Scores beyond 300 overflow without the maximum, which moves from tile to tile."""
    rng = np.random.default_rng(5)
    Q, K, V = (rng.standard_normal((1, 1, 150, 64)) for _ in range(3))
    Q *= 4
    K *= np.linspace(-25, 30, 150)[:, None]
    Q, K, V = (x.astype(np.float16) for x in (Q, K, V))
    assert abs(to_float(Q)[0, 0] @ to_float(K)[0, 0].T / 8).max() > 300
    result, _ = rung.simulate(Q, K, V, count=False)
    assert error(result, Q, K, V) < TOLERANCE["half"]


def test_one_key():
    """With n = 1 the only weight is 1: O is V, bit for bit."""
    Q, K, V = inputs(2, 2, 1, 128, "half")
    for rung in FLASH:
        np.testing.assert_array_equal(rung.simulate(Q, K, V, count=False)[0], V)


def test_a_causal_row_depends_on_no_later_key():
    """Other keys and values from 70 on change no bit of the rows before; row 0 is that of V."""
    Q, K, V = inputs(1, 1, 130, 64, "half")
    before, _ = FLASH_BASELINE.simulate(Q, K, V, count=False, CAUSAL=1)
    K[:, :, 70:], V[:, :, 70:] = np.float16(9), np.float16(-7)
    after, _ = FLASH_BASELINE.simulate(Q, K, V, count=False, CAUSAL=1)
    np.testing.assert_array_equal(before[:, :, :70], after[:, :, :70])
    np.testing.assert_array_equal(before[:, :, 0], V[:, :, 0])
    assert (before[:, :, 70:] != after[:, :, 70:]).any(axis=-1).all()


def products(rung, report, **values):
    """How many products of tensor cores, 4,096 operations each, the launch of a report has made."""
    lines = rung.with_parameters(**values).kernel("half", 64).lines("mma_m16n8k16<", whole=True)
    return sum(report.by_line[line]["flops"] for line in lines) / 4096


@each_rung
@pytest.mark.parametrize(("b_r", "b_c", "tiles"), [(64, 64, 3), (32, 64, 6), (64, 32, 6)])
def test_causal_blocks_skip_what_no_row_sees(rung, b_r, b_c, tiles):
    """Of 128 keys: the tiles with a pair at or below the diagonal, counted by hand."""
    Q, K, V = inputs(1, 1, 128, 64, "half")
    values = {"B_R": b_r, "B_C": b_c, "WARPS": b_r // 16}
    all_of_Q, warps, ways = 128 * 64 * 2 // 32, b_r // 16, []
    for causal, number in enumerate(((128 // b_r) * (128 // b_c), tiles)):
        _, (report,) = rung.simulate(Q, K, V, CAUSAL=causal, **values)
        c = report.counters
        assert c["global_load_sectors"] == all_of_Q + number * 2 * all_of_Q * b_c // 128
        assert c["barriers"] == number * warps * 2
        assert products(rung, report, **values) == number * warps * 2 * (b_c // 8) * 4
        ways.append(c["shared_load_bank_conflicts"] / c["ldmatrix_instructions"])
    assert ways == ([28, 28] if rung is FLASH_BASELINE else [0, 0])  # beyond the four of a load


def test_counters_of_a_small_grid():
    """As Nsight Compute counts on an H200."""
    Q, K, V = inputs(1, 1, 256, 128, "half")
    counts = {}
    for rung in FLASH:
        _, (report,) = rung.simulate(Q, K, V)
        counts[rung.name] = [report.counters[name] for name in MEMORY]
        # A block reads all of K and V, and its own rows of Q; 16 rows of 256 bytes are 128 sectors.
        assert report.counters["global_load_sectors"] == 4 * (2 * 2048 + 512)
        assert report.counters["global_store_sectors"] == 2048
        assert report.counters["cp_async_instructions"] == 16 * (4 * 2 * 8 + 8)
        assert report.counters["ldmatrix_instructions"] == 16 * 4 * (8 * 5 + 4 * 8)
    assert counts == {
        "flash_baseline": [147_968, 129_024, 4_096, 3_584],
        "flash_swizzled": [18_944, 0, 512, 0],
    }


@pytest.mark.parametrize(
    ("d", "element", "values"),
    [
        (64, "half", {"B_R": 32, "WARPS": 2, "B_C": 128}),
        (64, "nv_bfloat16", {}),
        (128, "half", {"B_R": 128, "WARPS": 4, "B_C": 32}),
        (128, "nv_bfloat16", {}),
    ],
)
def test_no_conflict_is_left(d, element, values):
    """On no line, whatever the shape of the tiles."""
    Q, K, V = inputs(1, 1, 70, d, element)
    _, (report,) = FLASH_SWIZZLED.simulate(Q, K, V, **values)
    for line, counted in report.by_line.items():
        assert counted["shared_load_bank_conflicts"] == 0, line
        assert counted["shared_store_bank_conflicts"] == 0, line
    assert report.counters["shared_load_wavefronts"] > 0


def test_where_the_conflicts_of_the_baseline_are():
    """Every ldmatrix and every store of 4 bytes takes eight turns; reads of 16 bytes take one."""
    Q, K, V = inputs(1, 1, 64, 64, "half")
    _, (report,) = FLASH_BASELINE.simulate(Q, K, V)
    kernel = FLASH_BASELINE.kernel("half", 64)
    for text, kind in (
        ("ldmatrix_x4(r_Q[m]", "load"),
        ("ldmatrix_x4(r_K", "load"),
        ("ldmatrix_x4_trans(r_V", "load"),
        ("*reinterpret_cast<unsigned*>(s_O", "store"),
    ):
        (line,) = (n for n in kernel.lines(text, whole=True))
        counted = report.by_line[line]
        waves = counted[f"shared_{kind}_wavefronts"]
        assert waves == 8 * counted[f"shared_{kind}_ideal_wavefronts"] > 0, text
    (line,) = kernel.lines("*reinterpret_cast<const uint4*>(s_O", whole=True)
    lines = [report.by_line[n] for n in (line - 1, line) if n in report.by_line]
    assert sum(c["shared_load_wavefronts"] for c in lines) == 64 * 64 * 2 // 128
    assert sum(c["shared_load_bank_conflicts"] for c in lines) == 0


def sanitized(code, rung, causal=0, n=130, d=64):
    """Findings of the simulator's checks when `code` takes the place of a rung's source."""
    Q, K, V = inputs(1, 1, n, d, "half")
    launch = rung.with_parameters(CAUSAL=causal).launch_of(Q, K, V, np.full_like(Q, np.nan))
    k = launch.kernel
    numbers = (np.int32(n), np.int64(n * d), np.int64(n * d), np.int32(d))
    report = simulator.launch(
        code or k.code, k.entry, launch.grid, launch.block, (*launch.args[:4], *numbers),
        options=k.options, shared_mem=launch.shared_mem, count=False, sanitize=True,
    )  # fmt: skip
    return report.findings


@each_rung
def test_no_race_and_nothing_superfluous(rung):
    """No fault as it is, and one with any barrier or wait taken out."""
    assert sanitized(None, rung) == sanitized(None, rung, causal=1) == []
    lines = rung.kernel("half", 64).code.split("\n")
    waits = ("__syncthreads();", "__syncwarp();", "cp_async_wait<0>();")
    places = [n for n, line in enumerate(lines) if any(wait in line for wait in waits)]
    assert len(places) == 5
    for place in places:
        without = [line if n != place else "" for n, line in enumerate(lines)]
        assert sanitized("\n".join(without), rung), lines[place]


def test_the_files_differ_in_the_swizzle_alone():
    texts = [(KERNELS / rung.file).read_text().split("\n") for rung in FLASH]
    first = [text.index('#include "ptx.cuh"') for text in texts]  # below the headers
    bodies = [text[start:] for text, start in zip(texts, first, strict=True)]
    changes = [line for line in difflib.ndiff(*bodies) if line[0] in "+-"]
    assert changes == [
        '+ #include "swizzle.cuh"',
        "-     return row * HEAD_DIM + 8 * chunk;",
        "+     return row * HEAD_DIM + 8 * swizzle(row, chunk);",
    ]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: FLASH_BASELINE.run(*inputs(1, 1, 5, 96, "half")), "head dim of 64 or 128, not 96"),
        (lambda: FLASH_SWIZZLED.with_parameters(WARPS=8), "B_R = 64 is no multiple of 16 .* = 128"),
        (lambda: FLASH_SWIZZLED.with_parameters(B_R=48), "B_R is one of 16, 32, 64, 128, not 48"),
        (lambda: FLASH_SWIZZLED.with_parameters(TILE=8), "has no parameter TILE"),
        (lambda: FLASH_SWIZZLED.with_parameters(HEAD_DIM=64), "HEAD_DIM .* follows from Q, K"),
        (lambda: check_device("x", 7.5, 1, 2), "8.0 or newer, for cp.async, and this one has 7.5"),
        (lambda: check_device("x", 8.6, 120_000, 101_376), "120,000 bytes .* can have 101,376"),
        (lambda: FLASH_BASELINE.run(*inputs(1, 1, 5, 64, "half")[:2], None), "V is a NoneType"),
        (lambda: FLASH_BASELINE.simulate(*np.zeros((3, 5, 64), np.float16)), "go(es)? in as Q"),
        (lambda: FLASH_BASELINE.simulate(*np.zeros((3, 1, 1, 0, 64), np.float16)), "at least 1"),
        (lambda: FLASH_BASELINE.simulate(*np.zeros((3, 1, 1, 5, 64))), "Q is float64"),
        (
            lambda: FLASH_BASELINE.simulate(*inputs(1, 1, 5, 64, "half"), layout="nbhd"),
            "bhnd or bnhd",
        ),
        (
            lambda: FLASH_BASELINE.simulate(*np.ones((3, 1, 2, 5, 64), "f2").swapaxes(2, 3)),
            "Q is not contiguous",
        ),
        (
            lambda: FLASH_BASELINE.simulate(
                *inputs(1, 1, 5, 64, "half")[:2], inputs(1, 1, 6, 64, "half")[2]
            ),
            "all three have one shape",
        ),
    ],
)  # fmt: skip
def test_wrong_choices(call, sentence):
    with pytest.raises(KernelError, match=sentence) as caught:
        call()
    assert str(caught.value).count(". ") == 0 and str(caught.value).endswith(".")


def test_an_old_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(device, "cp", standin)
    monkeypatch.setattr(standin.cuda.Device, "compute_capability", "75")
    with pytest.raises(KernelError, match="8.0 or newer"):
        FLASH_BASELINE.run(*inputs(1, 1, 5, 64, "half"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"B_R": 32}, r"B_R must be a multiple of 16 \* WARPS"),
        ({"options": "-arch=sm_75"}, "compute capability 8.0 or newer"),
    ],
)
def test_the_files_refuse_as_well(values, sentence):
    """Who launches a kernel without its rung gets a sentence from the compiler."""
    option = values.pop("options", None)
    k = load_kernel("09_flash_swizzled.cu", **values)
    with pytest.raises(SimulatorError, match=sentence):
        from helpers.simulator.compile.compiler import compile_ptx

        compile_ptx(k.code, (*k.options, *([option] if option else ())))


def test_bf16_against_ml_dtypes():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    x = np.concatenate([bits.view(np.float32), np.float32([0, -0.0, np.inf, -np.inf, 3.4e38])])
    x = x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        expected = x.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(to_bf16(x), expected.view(np.uint16))
    np.testing.assert_array_equal(from_bf16(to_bf16(x)), expected.astype(np.float32))
    assert np.isnan(from_bf16(to_bf16(np.float32([np.nan])))).all()


def test_bf16_arrays_of_ml_dtypes():
    Q, K, V = (x.view(ml_dtypes.bfloat16) for x in inputs(1, 1, 20, 64, "nv_bfloat16"))
    result, _ = FLASH_SWIZZLED.simulate(Q, K, V, count=False)
    assert result.dtype == ml_dtypes.bfloat16
    assert error(result, Q, K, V) < TOLERANCE["nv_bfloat16"]


def test_rungs_of_the_ladder():
    assert ladder("flash") == (*FLASH, *OVERLAP)
    assert ladder() == (*ladder("fp32"), *ladder("flash"), *ladder("hopper"))
    assert [attention.rung(name) for name in ("flash_baseline", "flash_swizzled")] == list(FLASH)
    assert [rung.chapter for rung in ladder("flash")] == [8, 9, *5 * [10]]
    assert attention.rung("naive").chapter == 2
    with pytest.raises(KernelError, match="no rung 'flash'; the ladder has naive, .*, flash_swiz"):
        attention.rung("flash")


def test_reference_and_flops():
    Q, K, V = inputs(2, 3, 7, 64, "half")
    scores = np.einsum("bhid,bhjd->bhij", to_float(Q), to_float(K)) / 8
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    expected = np.einsum("bhij,bhjd->bhid", weights, to_float(V))
    np.testing.assert_allclose(reference(Q, K, V), expected, rtol=1e-12)
    other = reference(*(x.swapaxes(1, 2) for x in (Q, K, V)), "bnhd")
    np.testing.assert_array_equal(other.swapaxes(1, 2), reference(Q, K, V))
    assert flops(4, 16, 4096, 128) == 549_755_813_888


def test_the_files_keep_to_the_house_rules():
    for path in (*KERNELS.glob("[0-9]*.cu"), *KERNELS.glob("include/*.cuh")):
        lines = path.read_text().split("\n")
        assert len(lines) <= 300 and max(map(len, lines)) <= 100, path
        assert lines[0].startswith("// ")
        for number, line in enumerate(lines, 1):
            for barrier in ("__syncthreads();", "__syncwarp();"):
                assert barrier not in line or "// " in line, f"{path} line {number}"
