"""Every rung of the ladder against float64, on the simulator and, with `-m gpu`, on a GPU.

On the simulator every choice of a parameter meets every choice of each other one and some sizes, in
as few runs as that takes; on a GPU every combination runs at every size.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from helpers import standin
from helpers.gpu import device
from helpers.kernels import KernelError
from helpers.kernels import kernel as kernels
from helpers.problem import rungs
from helpers.problem.attention import TOLERANCE, cdiv, make_inputs, reference, relative_error
from helpers.problem.ladder import ladder, rung

SIZES_N = (1, 17, 64, 200, 257)
SIZES_D = (1, 16, 64, 80)
# What the simulator runs of them: less than a tile, a tile and one more, whole tiles, many and one.
FEW_N, FEW_D = (1, 17, 64, 257), (1, 64, 80)
LADDER = ladder("fp32")
NAMES = [one.name for one in LADDER]
# Tiles of the fused kernel have 64 rows and 64 columns at least: less than one, one, and more.
FEWER = {"fused": ((1, 64, 200), (1, 64, 80))}


def all_pairs(choices: dict[str, tuple]) -> list[dict]:
    """Rows in which every two choices of different parameters meet, found greedily."""
    names = list(choices)
    wanted = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(names, 2)
        for x in choices[a]
        for y in choices[b]
    }
    rows = []
    while wanted:
        first, second = min(wanted, key=repr)
        row = dict((first, second))
        for name in names:
            if name not in row:
                row[name] = max(
                    choices[name],
                    key=lambda value, n=name, r=row: sum(
                        _pair(names, (n, value), other) in wanted for other in r.items()
                    ),
                )
        rows.append({name: row[name] for name in names})
        wanted -= set(itertools.combinations(rows[-1].items(), 2))
    return rows


def _pair(names, one, other):
    return (one, other) if names.index(one[0]) < names.index(other[0]) else (other, one)


def runs(one) -> list[dict]:
    """What the simulator runs of a rung: settings, with N and d among them."""
    sizes_N, sizes_d = FEWER.get(one.name, (FEW_N, FEW_D))
    rows = all_pairs({**one.choices, "N": sizes_N, "d": sizes_d})
    # Every N with every d is among the pairs; so is every choice with every N and every d.
    assert len({(row["N"], row["d"]) for row in rows}) == len(sizes_N) * len(sizes_d)
    return rows


CASES = [pytest.param(one, row, id="-".join(map(str, (one.name, *row.values()))))
         for one in LADDER for row in runs(one)]  # fmt: skip


def inputs(N, d):
    """Q, K and V that no exchange of rows, columns or operands leaves alone."""
    Q, K, V = make_inputs(N, d, seed=1000 * N + d)
    ramp = np.linspace(0.5, 1.5, N * d, dtype=np.float32).reshape(N, d)
    return Q * ramp, K + ramp, V * ramp[::-1]


@pytest.mark.parametrize(("one", "row"), CASES)
def test_rung_against_float64(one, row):
    settings = dict(row)
    Q, K, V = inputs(settings.pop("N"), settings.pop("d"))
    before = [x.copy() for x in (Q, K, V)]
    result, reports = one.simulate(Q, K, V, count=False, **settings)
    assert result.dtype == np.float32
    assert relative_error(result, reference(Q, K, V).O) < TOLERANCE
    three = ["scaled_dot_product", "softmax", "pv_multiply"]
    assert [r.entry for r in reports] == (["fused_attention"] if one.name == "fused" else three)
    for array, old in zip((Q, K, V), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_rung_against_float64_on_this_gpu(name):
    for N, d in itertools.product(SIZES_N, SIZES_D):
        Q, K, V = inputs(N, d)
        expected = reference(Q, K, V).O
        for values in rung(name).combinations():
            error = relative_error(rung(name).run(Q, K, V, **values), expected)
            assert error < TOLERANCE, (N, d, values)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_rung_at_a_large_size_on_this_gpu(name):
    Q, K, V = inputs(3001, 129)
    assert relative_error(rung(name).run(Q, K, V), reference(Q, K, V).O) < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_scores_far_apart(name):
    # Scores up to some 700: e^700 overflows, and all but the largest weights of a row are 0.
    Q, K, V = inputs(40, 20)
    Q *= 30
    result, _ = rung(name).simulate(Q, K, V, count=False)
    assert relative_error(result, reference(Q, K, V).O) < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_kernel_is_noticed(name, tmp_path, monkeypatch):
    """Each product and the softmax, changed a little: the error is then far over the tolerance."""
    for old, new in (
        ("/ sqrtf((float)d)", "/ sqrtf((float)d + 0.001f)"),
        ("i < N; i += TILE", "i < N - 1; i += TILE"),
        ("j < N; j++", "j < N - 1; j++"),
        ("stride = BLOCK_SIZE / 2; stride >= 1", "stride = BLOCK_SIZE / 2; stride > 1"),
        ("step < 2 * ACROSS", "step < ACROSS"),
    ):
        one = rung(name)
        files = {step.file: (kernels.KERNELS / step.file).read_text() for step in one.steps}
        if not any(old in text for text in files.values()):
            continue
        folder = tmp_path / str(abs(hash(old)))
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text.replace(old, new))
        with monkeypatch.context() as patch:
            patch.setattr(rungs, "KERNELS", folder)
            Q, K, V = inputs(33, 9)
            result, _ = one.simulate(Q, K, V, count=False)
        assert relative_error(result, reference(Q, K, V).O) > 2 * TOLERANCE, old


def test_the_simulated_softmax_counts_its_barriers():
    # The tree of 256 threads has 8 levels: 2 x (1 + 8) barriers, and the third between the two.
    Q, K, V = inputs(5, 4)
    _, reports = rung("reduction").simulate(Q, K, V)
    warps = 5 * 256 // 32
    assert reports[1].counters["barriers"] == warps * (2 * (1 + 8) + 1)


def test_kernels_of_one_file_do_not_share_their_shared_memory():
    # Those of 07_register_blocked.cu have 55 KB of it together, and at most 36 KB each.
    Q, K, V = inputs(40, 8)
    result, _ = rung("register_blocked").simulate(Q, K, V, TILE=32, PATCH=8, BLOCK_SIZE=1024)
    assert relative_error(result, reference(Q, K, V).O) < TOLERANCE


def test_coarse_threads_read_an_operand_once_for_several_tiles():
    N, d, tile = 64, 16, 16
    Q, K, V = inputs(N, d)
    kernel = rung("coarsened").launches(N, d)[0].kernel
    (q_line,), (k_line,) = kernel.lines("? Q["), kernel.lines("? K[")
    once = 4 * N * d * (N // tile)  # bytes: every block of the tiled kernel reads what it needs
    for coarse in (1, 2, 4):
        _, (scores, _, _) = rung("coarsened").simulate(Q, K, V, COARSE=coarse)
        assert scores.by_line[q_line]["global_load_bytes"] == once // coarse
        assert scores.by_line[k_line]["global_load_bytes"] == once


def counted(one, entry, N, d, **settings):
    """What one kernel of a rung counts by itself."""
    [launch] = one.problem(entry, N=N, d=d, **settings).prepare().launches
    return launch.simulate(copy=False, count=True).report.counters


def test_what_each_rung_is_for():
    """The counts that the chapters tell of, at a size that every tile fits."""
    counts = {}
    for name, settings in (
        ("naive", {}),
        ("tiled", {}),
        ("coarsened", {}),
        ("coalesced", {}),
        ("stored", {"TRANSPOSE_ON_STORE": 1}),
        ("padded", {}),
        ("register_blocked", {}),
        ("rows", {"WARP_ROWS": 2}),
    ):
        one = rung({"stored": "coalesced", "rows": "register_blocked"}.get(name, name))
        counts[name] = counted(one, "scaled_dot_product", 128, 64, **settings)
    sectors = {name: c["global_load_sectors"] for name, c in counts.items()}
    assert sectors["naive"] > 10 * sectors["tiled"] > 10 * sectors["coarsened"]
    assert sectors["coarsened"] > sectors["coalesced"] == sectors["stored"] == sectors["padded"]
    assert sectors["padded"] > sectors["register_blocked"]

    loads = {name: c["shared_load_bank_conflicts"] for name, c in counts.items()}
    stores = {name: c["shared_store_bank_conflicts"] for name, c in counts.items()}
    assert loads["coalesced"] > 0 == stores["coalesced"]
    assert stores["stored"] > 0 == loads["stored"]
    assert 5 * stores["stored"] < loads["coalesced"] + stores["stored"]
    assert loads["padded"] == 0
    # A warp stores two rows of 16, 17 words apart: the last word of one and the first of the other
    # are 32 apart, in one bank. Per block 4 tiles of d, 4 of the result and 8 warps.
    assert stores["padded"] == (128 // 16) * (128 // 64) * 4 * 4 * 8
    assert loads["register_blocked"] == stores["register_blocked"] == 0

    # Padding costs instructions: four words of a row of 17 are not one load.
    instructions = {name: c["shared_load_instructions"] for name, c in counts.items()}
    assert instructions["padded"] > 2 * instructions["coalesced"]
    waves = {name: c["shared_load_wavefronts"] for name, c in counts.items()}
    assert waves["padded"] > 3 * waves["register_blocked"]
    fused = counted(rung("fused"), "fused_attention", 128, 64)
    assert fused["shared_load_bank_conflicts"] == fused["shared_store_bank_conflicts"] == 0
    # Tiles of Q, K and V once for each of two blocks of 64 rows, and the result: nothing else.
    assert fused["global_load_sectors"] * 32 == 4 * 64 * (128 + 2 * 2 * 128)
    assert fused["global_store_sectors"] * 32 == 4 * 64 * 128
    assert 3 * waves["register_blocked"] == 2 * waves["rows"]


def test_the_ladder_as_data():
    assert NAMES == [
        "naive", "tiled", "reduction", "coarsened", "coalesced", "padded", "register_blocked",
        "fused",
    ]  # fmt: skip
    assert [one.chapter for one in LADDER] == [2, 3, 4, 5, 6, 7, 7, 7]
    assert rung("padded").choices == {
        "TILE": (8, 16, 32),
        "COARSE": (1, 2, 4, 8),
        "TRANSPOSE_ON_STORE": (0, 1),
        "PAD": (0, 1),
        "BLOCK_SIZE": (64, 128, 256, 512, 1024),
    }
    assert rung("coarsened").values == {"TILE": 16, "COARSE": 4, "BLOCK_SIZE": 256}
    assert len(list(rung("padded").combinations())) == 3 * 4 * 2 * 2 * 5
    first, *_ = rung("coalesced").variants.values()
    assert rung("coalesced").with_parameters(**first).values == rung("coalesced").values


def test_parameters_of_a_rung():
    one = rung("coarsened").with_parameters(TILE=8.0, COARSE=np.int64(2))
    assert one.values == {"TILE": 8, "COARSE": 2, "BLOCK_SIZE": 256}
    assert repr(one) == "<Rung coarsened of chapter 5, TILE=8, COARSE=2>"
    again = one.with_parameters(COARSE=8)
    assert again.values == {"TILE": 8, "COARSE": 8, "BLOCK_SIZE": 256}
    assert rung("coarsened").values["TILE"] == 16
    launches = again.launches(100, 30)
    assert [x.kernel.entry for x in launches] == ["scaled_dot_product", "softmax", "pv_multiply"]
    assert [x.grid for x in launches] == [(13, 2, 1), (100, 1, 1), (13, 1, 1)]
    assert [x.block for x in launches] == [(8, 8, 1), (256, 1, 1), (8, 8, 1)]
    assert launches[0].kernel is again.launches(7, 7)[0].kernel  # not compiled again
    assert [x.grid for x in rung("padded").launches(100, 30)] == [(2, 7, 1), (100, 1, 1), (1, 7, 1)]
    assert [x.grid for x in rung("naive").launches(300, 30)] == [(19, 19, 1), (2, 1, 1), (19, 2, 1)]
    blocked = rung("register_blocked").launches(300, 80)
    assert [x.grid for x in blocked] == [(3, 3, 1), (300, 1, 1), (2, 5, 1)]
    (fused,) = rung("fused").launches(300, 80, KEYS=64)
    assert fused.grid == (2, 3, 1) and fused.block == (128, 1, 1)
    assert fused.shared_mem == 4 * (128 * 68 + 64 * 64 + 128 * 68)


def test_a_changed_file_is_read_again(tmp_path, monkeypatch):
    for file in ("03_tiled.cu", "02_naive.cu"):
        (tmp_path / file).write_text((kernels.KERNELS / file).read_text())
    monkeypatch.setattr(rungs, "KERNELS", tmp_path)
    Q, K, V = inputs(9, 4)
    right, _ = rung("tiled").simulate(Q, K, V, count=False)
    path = tmp_path / "03_tiled.cu"
    path.write_text(path.read_text().replace("= sum;", "= 2.0f * sum;"))
    twice, _ = rung("tiled").simulate(Q, K, V, count=False)
    np.testing.assert_array_equal(twice, 2 * right)


def test_run_returns_an_array_of_the_device(monkeypatch):
    monkeypatch.setattr(device, "cp", standin)
    Q, K, V = inputs(17, 5)
    for given in ((Q, K, V), tuple(map(standin.asarray, (Q, K, V)))):
        result = rung("tiled").run(*given, TILE=8)
        assert isinstance(result, standin.ndarray)
        assert relative_error(result, reference(Q, K, V).O) < TOLERANCE
    prepared = rung("reduction").prepare(Q, K, V)
    assert np.isnan(standin.asnumpy(prepared.arrays["O"])).all()
    prepared.run()
    assert relative_error(prepared.arrays["O"], reference(Q, K, V).O) < TOLERANCE


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda Q, K, V: (Q.astype(np.float64), K, V), r"Q is float64.*pass Q\.astype\(np"),
        (lambda Q, K, V: (Q, K.T.copy(), V), r"K is \(8, 12\) of .* Q \(12, 8\) of .* one shape"),
        (lambda Q, K, V: (Q, K, V[:5]), r"V is \(5, 8\) of .* Q \(12, 8\)"),
        (lambda Q, K, V: (Q[None], K, V), r"Q has the shape \(1, 12, 8\): .* two dimen"),
        (lambda Q, K, V: (Q[:0], K[:0], V[:0]), r"Q has the shape \(0, 8\).*each at least 1"),
        (lambda Q, K, V: (Q, K[:, ::2], V), r"K is not contiguous.*ascontiguousarray\(K\)"),
        (lambda Q, K, V: (Q, K, V.tolist()), r"V is a list: .* of fp32 of shape \[N, d\]"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(change, sentence):
    arrays = change(*inputs(12, 8))
    for call in (rung("tiled").run, rung("tiled").simulate):
        with pytest.raises(KernelError, match=sentence) as caught:
            call(*arrays)
        assert str(caught.value).count("\n") == 0


def test_float4_loads_need_aligned_arrays():
    Q, K, V = inputs(12, 8)
    shifted = np.zeros(12 * 8 + 1, np.float32)
    shifted[1:] = K.ravel()
    K = shifted[1:].reshape(12, 8)
    with pytest.raises(KernelError, match=r"K does not start at a multiple of 16.*pass K\.copy"):
        rung("register_blocked").simulate(Q, K, V)
    result, _ = rung("register_blocked").simulate(Q, K.copy(), V, count=False)
    assert relative_error(result, reference(Q, K, V).O) < TOLERANCE
    result, _ = rung("padded").simulate(Q, K, V, count=False)
    assert relative_error(result, reference(Q, K, V).O) < TOLERANCE


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"TILE": 33}, r"The rung tiled: the parameter TILE is one of 8, 16, 32, not 33"),
        ({"TILE": "16"}, r"The rung tiled: .* TILE is one of 8, 16, 32, not '16'"),
        ({"COARSE": 2}, r"rung tiled has no parameter COARSE; its parameters are TILE \(8,"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit(settings, sentence):
    Q, K, V = inputs(3, 3)
    for call in (
        rung("tiled").with_parameters,
        lambda **x: rung("tiled").launches(3, 3, **x),
        lambda **x: rung("tiled").run(Q, K, V, **x),
        lambda **x: rung("tiled").simulate(Q, K, V, **x),
    ):
        with pytest.raises(KernelError, match=sentence):
            call(**settings)


def test_no_such_rung():
    with pytest.raises(KernelError, match="no rung 'flash'; the ladder has naive, tiled"):
        rung("flash")


def test_files_of_the_ladder():
    """The house rules for kernel files: short, shapes and reasons in place."""
    for file in sorted({step.file for one in LADDER for step in one.steps}):
        lines = (kernels.KERNELS / file).read_text().split("\n")
        assert len(lines) <= 300 and max(map(len, lines)) <= 100, file
        assert lines[0].startswith("// "), file
        for number, line in enumerate(lines, 1):
            if "__syncthreads();" in line:
                assert "// " in line, f"{file} line {number} has a barrier without a reason"
            if "* " in line and line.strip().startswith("const float*") and line.endswith(","):
                raise AssertionError(f"{file} line {number} has a pointer without its shape")


def test_cdiv():
    assert [cdiv(n, 16) for n in (1, 15, 16, 17, 257)] == [1, 1, 1, 2, 17]
