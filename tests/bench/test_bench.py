"""What the bench runs, what it calls right or wrong, and what it refuses."""

from __future__ import annotations

import dataclasses
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
from bench_problems import TRANSPOSE, Clock, run, source_of, transposed

from helpers import device
from helpers.bench import Problem, bench, sweep
from helpers.bench import html as bench_html
from helpers.bench.check import compare
from helpers.bench.session import Session
from helpers.bench.subject import subject_of
from helpers.bench.work import controls_of
from helpers.kernels import KERNELS, KernelError, load_kernel
from helpers.panels.numbers import power
from helpers.problem.attention import TOLERANCE, make_inputs, reference, relative_error
from helpers.problem.ladder import ladder, rung
from helpers.problem.poison import poison

# ------------------------------------------------------------------ what is offered


def test_controls_are_what_the_files_declare():
    found = {c.name: (c.choices, c.default) for c in subject_of("padded").controls()}
    declared = dict(re.findall(r"#define (\w+) \w+  // \[([^]]*)\]", source_of("07_padded.cu")))
    declared |= dict(re.findall(r"#define (\w+) \w+  // \[([^]]*)\]", source_of("04_reduction.cu")))
    assert declared and set(found) == {*declared, "N", "d"}
    for name, listed in declared.items():
        assert found[name][0] == tuple(int(choice) for choice in listed.split(","))
    assert found["TILE"][1] == 16 and found["N"][1] == 64 and found["d"][1] == 64


def test_one_kernel_of_a_rung():
    subject = subject_of("04_reduction.cu", "softmax")
    assert [c.name for c in subject.controls()] == ["BLOCK_SIZE", "N", "d"]
    result, _ = run(subject, BLOCK_SIZE=64, N=100, d=16)
    assert result.status == "right" and [k.entry for k in result.kernels] == ["softmax"]
    assert result.kernels[0].block == (64, 1, 1) and result.kernels[0].grid == (100, 1, 1)
    assert result.rung is None


@pytest.mark.parametrize(
    ("target", "entry", "says"),
    [
        ("paded", None, "no rung 'paded'"),
        ("03_tiled.cu", "softmax", "No rung of the ladder has softmax of 03_tiled.cu"),
        ("00_vector_add.cu", None, "give its problem"),
    ],
)
def test_what_there_is_not(target, entry, says):
    with pytest.raises(KernelError, match=says):
        subject_of(target, entry)


def test_a_choice_outside_the_declared_ones_is_not_taken():
    session = Session(subject_of("padded", N=[32]), Clock())
    before = dict(session.settings)
    for settings, says in (
        ({"TILE": 33}, "TILE is one of 8, 16, 32, not 33"),
        ({"PAD": 1, "N": 31}, "N is one of 32, not 31"),
        ({"TILES": 8}, "no control TILES; it has TILE, "),
        ({"TILE": "8"}, "not '8'"),
    ):
        with pytest.raises(KernelError, match=re.escape(says)):
            session.change(**settings)
    assert session.settings == before and session.request == 0 and session.phase == "idle"


# ------------------------------------------------------------------ what is run


@pytest.mark.parametrize("name", [one.name for one in ladder("fp32")])
def test_each_rung_is_right_and_counts_as_simulated(name):
    result, stages = run(subject_of(name), N=100, d=16)
    assert result.status == "right", result.message
    Q, K, V = make_inputs(100, 16)
    O, reports = rung(name).simulate(Q, K, V)  # noqa: E741
    if not device.is_gpu:  # whose own result is the one that is checked
        assert result.error == pytest.approx(relative_error(O, reference(Q, K, V).O), rel=1e-9)
    for kernel, report in zip(result.kernels, reports, strict=True):
        assert kernel.totals == {n: c for n, c in report.counters.items() if c}
        assert kernel.totals["global_load_sectors"] == sum(
            counts.get("global_load_sectors", 0) for counts in kernel.by_line.values()
        )
        shown = {n for a, b in kernel.segments for n in range(a, b + 1)}
        assert {line for line, c in kernel.by_line.items() if c.get("global_load_sectors")} <= shown
        assert [check.array for check in kernel.checks] == [{"s": "S", "p": "O", "f": "O"}.get(
            kernel.entry[0]) if kernel.entry != "softmax" else "P"]  # fmt: skip
    assert [stage for stage in stages if "counting" in stage] == [
        f"running and counting {kernel.entry}" for kernel in result.kernels
    ]
    assert result.milliseconds is None and result.timed is None


@pytest.mark.parametrize("name", [one.name for one in ladder("fp32")])
def test_a_control_answers_within_a_second(name):
    """Of processor time, since others may have the machine too.

    Where the compiler alone takes half a second, it has been asked before, in an idle moment.
    """
    if device.is_gpu:
        pytest.skip("CuPy compiles for the GPU too, and fills all cores with its own work")
    subject = subject_of(name)
    settings = {control.name: control.default for control in controls_of(subject)}
    run(subject)  # loads the compiler
    if name == "register_blocked":
        subject.refusal(settings | {"BLOCK_SIZE": 128})
    start = time.process_time()
    result, _ = run(subject, **({"KEYS": 64} if name == "fused" else {"BLOCK_SIZE": 128}))
    assert time.process_time() - start < 1 and result.status == "right"


def test_functions_that_a_kernel_calls_are_shown_whole():
    lines = source_of("07_register_blocked.cu").split("\n")
    result, _ = run(subject_of("register_blocked"), N=32, d=16)
    for kernel in result.kernels:
        called = kernel.segments[1:]
        assert called
        for first, last in called:
            assert not lines[first - 2] and lines[first - 1][0] not in " }"
            assert lines[last - 1] == "}"
            assert not any(line.startswith("}") for line in lines[first - 1 : last - 1])
    html = bench_html.source(result.data()["kernels"][0])
    assert "called by scaled_dot_product" in html and "copy_tile" in html


def test_a_rung_with_other_values_starts_with_them():
    controls = subject_of(rung("tiled").with_parameters(TILE=8)).controls()
    assert {c.name: c.default for c in controls}["TILE"] == 8


def test_parameters_reach_the_kernel():
    subject = subject_of("padded")
    bare, _ = run(subject, PAD=0, TILE=32, N=64)
    padded, _ = run(subject, PAD=1, TILE=32, N=64)
    conflicts = "shared_load_bank_conflicts"
    # A warp reads 16 bytes a lane down a column: all 8 lanes of a phase in the same four banks.
    # With rows of 33 words each lane reads words of its own, in banks of their own.
    ideal = bare.kernels[0].totals["shared_load_ideal_wavefronts"]
    assert bare.kernels[0].totals[conflicts] > 4 * ideal and conflicts not in padded.totals
    assert bare.kernels[0].shared == 2 * 32 * 32 * 4
    assert padded.kernels[0].shared == bare.kernels[0].shared + 32 * 4


MUTATIONS = [
    ("03_tiled.cu", "k < TILE; k++", "k < TILE - 1; k++", "scaled_dot_product", "S"),
    ("06_coalesced.cu", "/ sqrtf((float)d)", "/ sqrtf((float)(d + 1))", "scaled_dot_product", "S"),
    ("07_padded.cu", "block_col + c * TILE + tx", "block_col + tx", "pv_multiply", "O"),
    ("04_reduction.cu", "/ row_sum", "/ (row_sum + 1)", "softmax", "P"),
    ("04_reduction.cu", "stride >= 1", "stride > 1", "softmax", "P"),
    ("02_naive.cu", "j < N; j++", "j < N - 1; j++", "softmax", "P"),
]


@pytest.mark.parametrize(("name", "old", "new", "entry", "array"), MUTATIONS)
def test_a_mutated_kernel_is_wrong(tmp_path, name, old, new, entry, array):
    """The same problem with the kernel as it is, and with one thing changed in it."""
    source = source_of(name)
    assert old in source
    path = tmp_path / name
    settings = {c.name: c.default for c in subject_of(name, entry).controls()} | {"N": 100}

    def problem(k, N=100, d=64):
        values = {n: p.value for n, p in k.parameters.items()}
        posed = subject_of(name, entry).problem(settings | values)
        [launch] = posed.launches
        return dataclasses.replace(posed, launches=(dataclasses.replace(launch, kernel=k),))

    for text, status in ((source, "right"), (source.replace(old, new), "wrong")):
        path.write_text(text)
        result, _ = run(subject_of(path, entry, problem, N=[100], d=[64]))
        assert result.status == status, result.message
    [check] = result.kernels[0].checks
    assert check.array == array and check.error > 10 * TOLERANCE
    assert array in result.message and "\n" not in result.message
    assert math.isnan(check.got) or abs(check.got - check.expected) > 0


def test_a_wrong_step_is_told_before_those_that_follow_from_it():
    subject = subject_of("tiled")

    def shifted(settings):
        posed = subject.pose(settings)
        exact = posed.expected["S"]
        return dataclasses.replace(posed, expected={**posed.expected, "S": lambda: exact() + 1})

    result, _ = run(dataclasses.replace(subject, pose=shifted), N=32, d=16)
    assert result.status == "wrong"
    assert result.message.startswith("1,024 of 1,024 elements of S are wrong, in rows 0 to 31 and")


@pytest.mark.parametrize("fault", [2, 4])
def test_errors_name_the_line(subject, fault):
    result, _ = run(subject, FAULT=fault)
    line = next(n for n, text in enumerate(TRANSPOSE.split("\n"), 1)
                if {2: "b[col * rows", 4: "colum;"}[fault] in text)  # fmt: skip
    assert result.status == "error" and result.kernels[-1].mark == line
    assert {2: "out-of-bounds", 4: '"colum" is undefined'}[fault] in result.message
    assert "NVRTC's log" not in result.message
    html = bench_html.page(result.data())
    assert html.count('class="kl-row kl-marked"') == 1
    assert f'aria-label="line {line}, marked"' in html


# ------------------------------------------------------------------ right and wrong


def test_compare_finds_the_element():
    expected = np.random.default_rng(1).normal(size=(7, 5))
    result = expected.astype(np.float32)
    assert compare("X", result, expected, 1e-6).right
    result[3, 4] += 0.5
    check = compare("X", result, expected, 1e-6)
    assert not check.right and (check.wrong, check.total) == (1, 35)
    assert check.worst == (3, 4) and check.where == ((3, 3), (4, 4))
    assert str(check) == (
        f"1 of 35 elements of X are wrong, in row 3 and column 4. "
        f"X[3, 4] is {result[3, 4]:.4g} in place of {expected[3, 4]:.4g}."
    )
    assert not compare("X", expected.T.reshape(7, 5), expected, 1e-6).right


def test_compare_with_elements_that_nobody_wrote():
    expected = np.ones((4, 6))
    result = np.ones((4, 6), np.float32)
    result[1:, 5] = np.nan
    check = compare("b", result, expected, 1e-6)
    assert not check.right and check.unwritten == check.wrong == 3
    assert str(check) == "3 of 24 elements of b were never written, in rows 1 to 3 and column 5."
    result[0, 0] = 7
    assert "4 of 24 elements of b are wrong (3 of them were never written)" in str(
        compare("b", result, expected, 1e-6)
    )


def test_compare_sees_one_small_element_among_many():
    """As a whole the array is within the tolerance; the element is not."""
    expected = np.random.default_rng(2).normal(size=100_000) * 1000
    result = expected.copy()
    result[77] += 0.2
    check = compare("x", result, expected, 2e-6)
    assert check.error < 2e-6 and not check.right and check.worst == (77,)
    assert "index 77" in str(check)


def test_compare_is_strict_about_many_small_errors():
    expected = np.random.default_rng(3).normal(size=500)
    check = compare("x", expected * (1 + 3e-6), expected, 2e-6)
    assert not check.right and check.wrong == 0 and "not exact enough" in str(check)
    with pytest.raises(ValueError, match="shape"):
        compare("x", expected[:-1], expected, 2e-6)


def test_poison_is_what_no_kernel_writes():
    for dtype, value in ((np.float16, np.nan), (np.int32, -(2**31)), (np.uint8, 0xA5)):
        array = np.zeros(3, dtype)
        poison(array)
        np.testing.assert_array_equal(array, np.full(3, value, dtype))


@pytest.mark.parametrize(
    ("value", "text"), [(3.27e-7, "3.3e-7"), (2e-6, "2e-6"), (0, "0"), (1.25, "1.2e0")]
)
def test_small_numbers(value, text):
    assert power(value) == text


# ------------------------------------------------------------------ what cannot run


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"TILE": 64}, "64 × 64 has 4,096 threads, and a GPU allows at most 1,024"),
        ({"FAULT": 3}, "transpose.cu line 9 says: FAULT 3 needs TILE 8."),
        ({"FAULT": 5, "TILE": 32}, "262,144 bytes of shared memory"),
        ({"FAULT": 3, "TILE": 8}, None),
        ({"FAULT": 5, "TILE": 8}, None),
        ({"FAULT": 4}, None),  # an error, and no refusal
    ],
)
def test_reasons(subject, settings, says):
    usual = {control.name: control.default for control in controls_of(subject)}
    reason = subject.refusal(usual | settings)
    result, _ = run(subject, **settings)
    if says is None:
        assert reason is None and result.status != "refused"
        return
    assert says in reason and reason.endswith(".") and "\n" not in reason
    assert result.status == "refused" and result.message == reason and not result.totals


@pytest.mark.parametrize(
    ("source", "launch", "says"),
    [
        (
            'static_assert(TILE > 9, "TILE is at least 10");',
            {},
            "line 4 says: TILE is at least 10.",
        ),
        ("", {"shared_mem": 240_000}, "240,000 bytes of dynamic shared memory"),
        ("", {"block": (4, 64, 64)}, "16,384 threads"),
        ("", {"grid": (1, 70_000)}, "a GPU allows at most 65,535"),
        ("// BOUNDS", {}, "32 threads, and its __launch_bounds__"),
    ],
)
def test_more_reasons(tmp_path, source, launch, says):
    path = tmp_path / "fill.cu"
    bounds = "__launch_bounds__(16)" if "BOUNDS" in source else ""
    path.write_text(
        f"#ifndef TILE\n#define TILE 8  // [8, 16] x\n#endif\n{source}\n"
        f'extern "C" __global__ void {bounds} fill(float* x) {{\n'
        "    x[threadIdx.x] = TILE;\n}\n"
    )

    def problem(k):
        made = {"grid": 1, "block": 32, "args": {"x": np.empty(32, np.float32)}}
        return Problem.of(k, **made | launch, expected={"x": np.full(32, 8.0)})

    reason = subject_of(path, None, problem).refusal({"TILE": 8})
    assert says in reason and reason.count("\n") == 0


def test_a_problem_may_refuse(file):
    def problem(k, rows=8):
        if rows % k.parameters["TILE"].value:
            raise ValueError("rows is a multiple of TILE.")
        return transposed(k, rows)

    result, _ = run(subject_of(file, None, problem, rows=[8, 16]))
    assert (result.status, result.message) == ("refused", "rows is a multiple of TILE.")


# ------------------------------------------------------------------ what can be turned


@pytest.mark.parametrize("one", ladder(), ids=lambda one: one.name)
def test_every_rung_can_be_turned_however_it_is_named(one):
    names = [size.name for size in one.sizes]
    smallest = {size.name: min(size.choices) for size in one.sizes}
    [found] = sweep(one.name, {}, start=smallest, time=False)
    assert found["status"] == "right", found["message"]
    assert [k["entry"] for k in found["kernels"]] == [entry for _, entry in one.kernels]
    file, entry = one.kernels[0]
    for target in (one, one.name, KERNELS / file, file, load_kernel(file, entry)):
        controls = {control.name for control in subject_of(target).controls()}
        assert {*names, *load_kernel(file, entry).parameters} <= controls


def test_a_kernel_is_turned_from_the_values_it_has():
    kernel = load_kernel("05_coarsened.cu", "pv_multiply", TILE=8)
    subject = subject_of(kernel)
    assert subject.title == "coarsened · pv_multiply"
    assert {c.name: c.default for c in subject.controls()} == {
        "TILE": 8, "COARSE": 4, "N": 64, "d": 64
    }  # fmt: skip
    found = {c.name: c for c in subject_of(load_kernel("08_flash_baseline.cu", WARPS=2)).controls()}
    assert found["WARPS"].default == 2 and found["CAUSAL"].choices == (0, 1)


WRONG = [None, 3, b"x", object(), "", "nope", "nope.cu", Path("x.cu"), Path(), [], 1.5,
         load_kernel("00_vector_add.cu")]  # fmt: skip


@pytest.mark.parametrize("target", WRONG)
def test_what_cannot_be_turned_is_told_in_one_sentence(target):
    with pytest.raises(KernelError) as caught:
        bench(target)
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said and ". " not in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"entry": "nope"}, "tiled has no kernel nope; it has scaled_dot_product, softmax, pv"),
        ({"entry": 3}, "tiled has no kernel 3"),
        ({"n": [64]}, "tiled has no size n; it has N and d."),
        ({"N": 64}, "The choices of N are a list, such as [64, 128], not 64."),
        ({"N": []}, "The size N has no choices."),
        ({"timed": {"d": 64}}, "The choices of d are a list"),
        ({"timed": {"N": [64], "d": [64]}}, "timed is one size by its name"),
        ({"problem": 3}, "problem is a function that returns a Problem, not 3."),
        ({"start": {"TILES": 8}}, "tiled has no control TILES"),
    ],
)
def test_wrong_arguments_are_told_in_one_sentence(given, says):
    with pytest.raises(KernelError) as caught:
        bench("tiled", **given)
    assert says in str(caught.value) and str(caught.value).endswith(".")


def test_a_problem_that_is_none_is_told(file):
    result, _ = run(subject_of(file, None, lambda k: 3))
    assert (result.status, result.message) == ("error", "problem() of a bench returns a Problem, "
                                               "not 3.")  # fmt: skip
