"""The bench without a page: what it runs and refuses, and that no result outlives its settings."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import math
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from helpers import bench_html, bench_ladder, bench_session, device, timing
from helpers.attention import TOLERANCE, make_inputs, reference, relative_error
from helpers.bench import Launch, Refused, bench, sweep
from helpers.bench_check import compare, poison, power
from helpers.bench_refusal import refusal
from helpers.bench_result import Result
from helpers.bench_run import controls_of, work
from helpers.bench_session import REMEMBERED, Session
from helpers.bench_subject import subject_of
from helpers.kernels import KERNELS, Kernel, KernelError
from helpers.ladder import LADDER, rung
from helpers.recorded import Recorded

TRANSPOSE = """// b = transpose of a.
#ifndef TILE
#define TILE 16  // [8, 16, 32, 64] threads along each edge of a block
#endif
#ifndef FAULT
#define FAULT 0  // [0, 1, 2, 3, 4, 5] 0 is none
#endif
#if FAULT == 3 && TILE != 8
#error "FAULT 3 needs TILE 8"
#endif

extern "C" __global__ void transpose(
    const float* a,  // [rows, cols]
    float* b,        // [cols, rows]
    int rows, int cols
) {
    const int col = blockIdx.x * TILE + threadIdx.x;
    const int row = blockIdx.y * TILE + threadIdx.y;
#if FAULT == 4
    const int x = colum;
#endif
#if FAULT == 5
    __shared__ float s_all[TILE][TILE * 64];
    s_all[threadIdx.y][threadIdx.x] = col;
    __syncthreads();
    if (s_all[threadIdx.x][threadIdx.y] < 0) return;
#endif
    if (FAULT == 2 || (row < rows && col < cols - (FAULT == 1))) {
        b[col * rows + row] = a[row * cols + col];
    }
}
"""


def transposed(k, rows=21, cols=37):
    tile = k.parameters["TILE"].value
    a = np.random.default_rng(rows).normal(size=(rows, cols)).astype(np.float32)
    args = {"a": a, "b": np.empty((cols, rows), np.float32), "rows": rows, "cols": cols}
    grid = (-(-cols // tile), -(-rows // tile))
    return Launch(grid, (tile, tile), args, {"b": a.T.astype(np.float64)})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "transpose.cu"
    path.write_text(TRANSPOSE)
    return path


@pytest.fixture
def subject(file):
    return subject_of(file, None, transposed, rows=[1, 21], cols=[37, 64])


def run(subject, time=False, **settings):
    """A result, and the stages on the way to it."""
    usual = {control.name: control.default for control in controls_of(subject)}
    generator, stages = work(subject, usual | settings, time), []
    while True:
        try:
            stages.append(next(generator))
        except StopIteration as end:
            return end.value, stages


class Clock:
    """An event loop whose time passes when a test says so."""

    def __init__(self):
        self.now, self._due, self._numbers = 0.0, [], itertools.count()

    def call_later(self, delay, callback):
        entry = [self.now + delay, next(self._numbers), callback]
        heapq.heappush(self._due, entry)

        class Handle:
            def cancel(self):
                entry[2] = None

        return Handle()

    def advance(self, seconds, steps=None):
        """Let time pass, or only until `steps` callbacks have run."""
        end, done = self.now + seconds, 0
        while self._due and self._due[0][0] <= end and done != steps:
            self.now, _, callback = heapq.heappop(self._due)
            if callback is not None:
                callback()
                done += 1
        if done != steps:
            self.now = end


# ------------------------------------------------------------------ what is offered


def test_controls_are_what_the_files_declare():
    found = {c.name: (c.choices, c.default) for c in subject_of("padded").controls()}
    declared = dict(re.findall(r"#define (\w+) \w+  // \[([^]]*)\]", _read("07_padded.cu")))
    declared |= dict(re.findall(r"#define (\w+) \w+  // \[([^]]*)\]", _read("04_reduction.cu")))
    assert declared and set(found) == {*declared, "N", "d"}
    for name, listed in declared.items():
        assert found[name][0] == tuple(int(choice) for choice in listed.split(","))
    assert found["TILE"][1] == 16 and found["N"][1] == 128 and found["d"][1] == 64


def _read(name):
    return (KERNELS / name).read_text()


def test_one_kernel_of_a_rung():
    subject = subject_of("04_reduction.cu", "softmax")
    assert [c.name for c in subject.controls()] == ["BLOCK_SIZE", "N", "d"]
    result, _ = run(subject, BLOCK_SIZE=64, N=100, d=16)
    assert result.status == "right" and [k.entry for k in result.kernels] == ["softmax"]
    assert result.kernels[0].block == (64,) and result.kernels[0].grid == (100,)
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


@pytest.mark.parametrize("name", [one.name for one in LADDER])
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
        assert [check.array for check in kernel.checks] == [{"s": "S", "p": "O"}.get(
            kernel.entry[0]) if kernel.entry != "softmax" else "P"]  # fmt: skip
    assert [stage for stage in stages if "counting" in stage] == [
        f"running and counting {kernel.entry}" for kernel in result.kernels
    ]
    assert result.milliseconds is None and result.timed is None


@pytest.mark.parametrize("name", [one.name for one in LADDER])
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
        refusal(subject, settings | {"BLOCK_SIZE": 128})
    start = time.process_time()
    result, _ = run(subject, BLOCK_SIZE=128)
    assert time.process_time() - start < 1 and result.status == "right"


def test_functions_that_a_kernel_calls_are_shown_whole():
    lines = _read("07_register_blocked.cu").split("\n")
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
    source = _read(name)
    assert old in source
    path = tmp_path / name
    settings = {c.name: c.default for c in subject_of(name, entry).controls()} | {"N": 100}

    def problem(k, N=100, d=64):
        values = {n: p.value for n, p in k.parameters.items()}
        [launch] = subject_of(name, entry).launches(settings | values)
        return launch

    for text, status in ((source, "right"), (source.replace(old, new), "wrong")):
        path.write_text(text)
        result, _ = run(subject_of(path, entry, problem, N=[100], d=[64]))
        assert result.status == status, result.message
    [check] = result.kernels[0].checks
    assert check.array == array and check.error > 10 * TOLERANCE
    assert array in result.message and "\n" not in result.message
    assert math.isnan(check.got) or abs(check.got - check.expected) > 0


def test_a_wrong_step_is_told_before_those_that_follow_from_it(monkeypatch):
    subject = subject_of("tiled")
    launches = subject.launches

    def shifted(settings):
        first, *others = launches(settings)
        exact = first.expected["S"]
        return [Launch(**{**vars(first), "expected": {"S": lambda: exact() + 1}}), *others]

    monkeypatch.setattr(subject, "launches", shifted)
    result, _ = run(subject, N=32, d=16)
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
    reason = refusal(subject, usual | settings)
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
        ("#define BOUNDS __launch_bounds__(16)", {}, "32 threads, and its __launch_bounds__"),
    ],
)
def test_more_reasons(tmp_path, source, launch, says):
    path = tmp_path / "fill.cu"
    path.write_text(
        f"#ifndef TILE\n#define TILE 8  // [8, 16] x\n#endif\n{source}\n#ifndef BOUNDS\n"
        '#define BOUNDS\n#endif\nextern "C" __global__ void BOUNDS fill(float* x) {\n'
        "    x[threadIdx.x] = TILE;\n}\n"
    )
    path.write_text(path.read_text().replace("void BOUNDS fill", "void fill")
                    if "BOUNDS" not in source else path.read_text()
                    .replace("void BOUNDS fill", "void __launch_bounds__(16) fill"))  # fmt: skip

    def problem(k):
        made = {"grid": 1, "block": 32, "args": {"x": np.empty(32, np.float32)}}
        return Launch(**made | launch, expected={"x": np.full(32, 8.0)})

    reason = refusal(subject_of(path, None, problem), {"TILE": 8})
    assert says in reason and reason.count("\n") == 0


def test_a_problem_may_refuse(file):
    def problem(k, rows=8):
        if rows % k.parameters["TILE"].value:
            raise ValueError("rows is a multiple of TILE.")
        return transposed(k, rows)

    result, _ = run(subject_of(file, None, problem, rows=[8, 16]))
    assert (result.status, result.message) == ("refused", "rows is a multiple of TILE.")
    assert issubclass(Refused, ValueError)


# ------------------------------------------------------------------ states


class Recorder:
    """A stand-in for the work: three stages, and a note of what was begun, dropped, finished."""

    def __init__(self, monkeypatch):
        self.begun, self.dropped, self.finished = [], [], []
        monkeypatch.setattr(bench_session, "work", self.work)
        monkeypatch.setattr(bench_session, "refusal", lambda *_: None)

    def work(self, subject, settings):
        self.begun.append(settings["TILE"])
        try:
            yield "one"
            yield "two"
        except GeneratorExit:
            self.dropped.append(settings["TILE"])
            raise
        self.finished.append(settings["TILE"])
        return Result(subject.title, None, settings, "right", "")


@pytest.fixture
def clock():
    return Clock()


def test_many_quick_changes_are_one_run(monkeypatch, clock, subject):
    works = Recorder(monkeypatch)
    session = Session(subject, clock, delay=0.1)
    for tile in (8, 32, 8, 32):
        session.change(TILE=tile)
        clock.advance(0.09)
        assert session.phase == "waiting" and session.stale and session.result is None
    clock.advance(1)
    assert works.begun == works.finished == [32]
    assert session.phase == "idle" and not session.stale and session.result.settings["TILE"] == 32


def test_what_is_seen_on_the_way(monkeypatch, clock, subject):
    Recorder(monkeypatch)
    seen = []
    session = Session(subject, clock, lambda: seen.append((session.phase, session.stage)), 0.1)
    session.change(TILE=8)
    clock.advance(1)
    assert seen == [
        ("waiting", ""), ("working", "reading the kernels"), ("working", "one"),
        ("working", "two"), ("idle", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_work_that_is_overtaken_is_dropped(monkeypatch, clock, subject, steps):
    """Whatever stage it has reached, nothing of it is shown."""
    works, shown = Recorder(monkeypatch), []
    session = Session(subject, clock, lambda: shown.append(session.result), 0.1)
    session.change(TILE=8)
    clock.advance(5, steps)
    assert works.begun == [8][: steps - 1] and not works.finished
    session.change(TILE=32)
    assert session.stale and session.phase == "waiting"
    clock.advance(5)
    assert works.finished == [32] and works.dropped == [8][: steps - 1]
    assert {result.settings["TILE"] for result in shown if result} == {32}
    assert [past.result.settings["TILE"] for past in session.history] == [32]


def test_a_result_stays_stale_until_it_is_answered(monkeypatch, clock, subject):
    Recorder(monkeypatch)
    session = Session(subject, clock, delay=0.1)
    session.change(7, TILE=8)
    clock.advance(1)
    first = session.result
    assert session.answered == session.request == 7 and not session.stale
    session.change(9, TILE=32)
    assert session.result is first and session.stale and session.answered == 7
    clock.advance(1)
    assert session.result is not first and session.answered == 9 and not session.stale
    session.change(TILE=32)  # the same once more is a change too
    assert session.request == 10 and session.stale


def test_a_callback_that_cannot_be_called_off_does_nothing(monkeypatch, subject):
    """As when it is under way already, or left over from a run that did not wait for the loop."""
    works, shown = Recorder(monkeypatch), []

    class Stubborn(Clock):
        def call_later(self, delay, callback):
            super().call_later(delay, callback)
            return type("Handle", (), {"cancel": lambda _: None})()

    clock = Stubborn()
    session = Session(subject, clock, lambda: shown.append(session.result), 0.1)
    session.run()
    session.change(TILE=8)
    clock.advance(5, 3)
    session.change(TILE=32)
    clock.advance(0.05)
    assert session.phase == "waiting" and works.finished == [16]
    clock.advance(60)
    assert works.finished == [16, 32] and session.result.settings["TILE"] == 32
    assert {result.settings["TILE"] for result in shown if result} == {16, 32}


def test_closing_drops_everything(monkeypatch, clock, subject):
    works = Recorder(monkeypatch)
    session = Session(subject, clock, delay=0.1)
    session.change(TILE=8)
    clock.advance(5, 2)
    session.close()
    clock.advance(5)
    assert works.dropped == [8] and session.result is None and session.phase == "idle"


def test_an_idle_bench_lets_another_work(monkeypatch, subject, clock):
    works, asked = Recorder(monkeypatch), []
    monkeypatch.setattr(bench_session, "refusal", lambda *_: asked.append(clock.now))
    idle, busy = Session(subject, clock, delay=0.1), Session(subject, clock, delay=5)
    idle.change(TILE=8)
    clock.advance(1)
    busy.change(TILE=32)
    clock.advance(5.5)
    assert works.finished == [8, 32] and all(when >= 6 for when in asked)
    clock.advance(60)
    assert asked  # and goes on when it is done


def test_a_fault_in_a_reference_function_is_told(file):
    def problem(k, rows=8):
        launch = transposed(k, rows)
        return Launch(launch.grid, launch.block, launch.args, {"b": lambda: 1 / 0})

    session = Session(subject_of(file, None, problem, rows=[8]))
    session.change()
    assert session.result.status == "error" and "ZeroDivisionError" in session.result.message
    assert session.phase == "idle" and not session.stale


def test_recovers_from_every_fault(subject):
    session = Session(subject)
    for fault, status in ((0, "right"), (1, "wrong"), (2, "error"), (3, "refused"), (4, "error"),
                          (0, "right")):  # fmt: skip
        session.change(FAULT=fault)
        assert session.result.status == status and session.result.settings["FAULT"] == fault
    assert [past.result.status for past in session.history] == ["right", "wrong", "right"]


def test_wrong_says_where(subject):
    session = Session(subject)
    session.change(FAULT=1)
    assert session.result.message == (
        "21 of 777 elements of b were never written, in row 36 and columns 0 to 20."
    )


def test_history_compares_with_the_run_before(subject):
    session = Session(subject)
    for cols in (37, 64):
        session.change(rows=21, cols=cols)
    first, second = session.history
    assert first.change("instructions") is None
    now, then = (past.result.totals["global_load_sectors"] for past in (second, first))
    # Rows of 37 floats start anywhere in a sector, rows of 64 at a sector's start.
    assert now == 21 * 64 * 4 // 32
    assert second.change("global_load_sectors") == pytest.approx(now / then - 1)
    session.change()
    assert [past.number for past in session.history] == [1, 2]  # the same again takes its place
    assert session.history[-1].before is first.result
    assert not any(past.result.reports for past in session.history) and session.result.reports


def test_history_does_not_grow_for_ever(monkeypatch, subject):
    Recorder(monkeypatch)
    session = Session(subject)
    for n in range(REMEMBERED + 3):
        session.change(TILE=(8, 16)[n % 2])
    assert [past.number for past in session.history] == list(range(4, REMEMBERED + 4))


@pytest.mark.parametrize(
    ("part", "text"),
    [(None, ""), (0.0, "same"), (-0.5, "−50 %"), (0.125, "+12.5 %"), (1.0, "×2"), (31, "×32")],
)
def test_changes_in_words(part, text):
    assert bench_html.change(part) == text


def test_an_edited_file_gives_new_controls(file, subject):
    session = Session(subject)
    session.change(TILE=32, FAULT=0)
    new = "#ifndef NEW\n#define NEW 1  // [0, 1] new\n#endif\n"
    file.write_text(new + TRANSPOSE.replace("[8, 16, 32, 64]", "[8, 16]"))
    session.change()
    controls = {control.name: control.choices for control in session.controls}
    assert controls["TILE"] == (8, 16) and controls["NEW"] == (0, 1)
    assert session.settings["TILE"] == 16 and session.settings["NEW"] == 1
    assert session.result.settings == session.settings and session.result.status == "right"
    file.write_text("nothing")
    session.change()
    assert session.result.status == "error" and "has no kernel" in session.result.message
    file.write_text(TRANSPOSE)
    session.change()
    assert session.result.status == "right"


def test_choices_that_cannot_run_are_found_while_idle(clock, subject):
    session = Session(subject, clock)
    session.change(TILE=32)
    clock.advance(1)
    assert session.result.status == "right" and session.refused == {}
    clock.advance(60)
    assert set(session.refused) == {("TILE", 64), ("FAULT", 3), ("FAULT", 5)}
    session.change(TILE=8)
    assert session.refused == {}  # they belonged to the other settings
    clock.advance(60)
    assert set(session.refused) == {("TILE", 64)}


# ------------------------------------------------------------------ the sweep


def test_sweep_gives_every_setting_as_plain_data():
    calls = []
    results = sweep(
        "padded", {"PAD": [0, 1], "TILE": [8, 16, 32]}, start={"N": 64, "d": 16},
        progress=lambda *call: calls.append(call), time=False,
    )  # fmt: skip
    settings = [(r["settings"]["PAD"], r["settings"]["TILE"]) for r in results]
    assert settings == [(0, 8), (0, 16), (0, 32), (1, 8), (1, 16), (1, 32)]
    assert {(r["settings"]["N"], r["settings"]["d"], r["status"]) for r in results} == {
        (64, 16, "right")
    }
    assert calls == [(n, 6, f"PAD={p}, TILE={t}") for n, (p, t) in enumerate(settings)]
    again = json.loads(json.dumps(results, allow_nan=False))
    assert [bench_html.page(r) for r in again] == [bench_html.page(r) for r in results]
    assert [r["milliseconds"] for r in results] == [None] * 6
    for r in results:
        for kernel in r["kernels"]:
            assert kernel["source"] == _read(kernel["file"])
            for name in ("global_load_sectors", "shared_load_wavefronts", "instructions"):
                assert kernel["totals"].get(name, 0) == sum(
                    counts.get(name, 0) for counts in kernel["by_line"].values()
                )
        assert r["totals"]["global_load_sectors"] == sum(
            k["totals"]["global_load_sectors"] for k in r["kernels"]
        )


def test_sweep_keeps_going_past_what_cannot_run(subject, file):
    results = sweep(file, {"FAULT": [1, 2, 3]}, problem=transposed, rows=[21], cols=[37])
    assert [r["status"] for r in results] == ["wrong", "error", "refused"]
    json.dumps(results, allow_nan=False)  # the infinite error of an unwritten element included
    assert results[0]["error"] == "inf"
    model = bench_html.model(results)
    assert [c["name"] for c in model["controls"]] == ["FAULT"]
    assert [r["settings"]["FAULT"] for r in model["sweep"]] == [1, 2, 3]


def test_sweep_takes_declared_choices_alone():
    with pytest.raises(KernelError, match="TILE is one of 8, 16, 32, not 12"):
        sweep("tiled", {"TILE": [12]})
    with pytest.raises(KernelError, match="no control SIZE"):
        sweep("tiled", {"SIZE": [12]})


# ------------------------------------------------------------------ what is shown


def test_nothing_on_the_simulator_has_a_time(subject):
    if device.is_gpu:
        pytest.skip("a GPU has times")
    session = Session(subject)
    session.change(TILE=8)
    data = session.result.data()
    text = bench_html.page(data) + bench_html.history(session.history)
    assert not re.search(
        r"\bms\b|millisecond|second", re.sub(r"<style>.*?</style>", "", text, flags=re.S)
    )


def test_what_kernels_say_is_text_and_no_html(tmp_path):
    path = tmp_path / "say.cu"
    path.write_text('extern "C" __global__ void say(float* x) {\n    printf("<b>&%d\\n", 7);\n'
                    "    x[0] = 1;\n}\n")  # fmt: skip

    def problem(k):
        return Launch(1, 1, {"x": np.empty(1, np.float32)}, {"x": np.ones(1)})

    result, _ = run(subject_of(path, None, problem))
    assert result.printed == "<b>&7\n" and result.status == "right"
    assert "&lt;b&gt;&amp;7" in bench_html.page(result.data())
    assert "<b>&" not in bench_html.page(result.data())


RECORDED = Recorded(
    "NVIDIA Test <9>", "",
    {"naive": {256: 2.0, 512: 8.0}, "tiled": {256: 1.0, 512: 2.0}, "reduction": {512: 1.0},
     "coalesced, transpose on store": {512: 0.5}, "library": {512: 0.25}},
)  # fmt: skip


def test_the_ladder_shows_recorded_times_as_recorded(monkeypatch):
    monkeypatch.setattr(bench_ladder, "_live", {})
    result, _ = run(subject_of("reduction"), N=32, d=16)
    data = bench_ladder.Ladder("reduction", RECORDED).data(result)
    assert data["sizes"] == [256, 512] and data["chosen"] == 512
    html = data["html"]["512"]
    assert re.findall(r'scope="row">([\w ,]+)<', html) == ["naive", "tiled", "reduction"]
    assert re.findall(r"--share:([\d.]+)%", html) == ["100.0", "25.0", "12.5"]
    assert re.findall(r"<span>([\d.]+ ms(?: \([\d.]+×\))?)<", html) == [
        "8.000 ms", "2.000 ms (4.0×)", "1.000 ms (8.0×)",
    ]  # fmt: skip
    assert "recorded on NVIDIA Test &lt;9&gt;" in html and "measured on" not in html
    assert html.count('aria-current="true"') == 1 and "no time yet" not in html
    assert "no time yet" in data["html"]["256"]
    assert data["note"] == timing.NO_TIMES
    last = bench_ladder.Ladder(LADDER[-1].name, RECORDED).data(result)
    assert 'scope="row">library<' in last["html"]["512"]  # what the last rung is compared with


def test_no_ladder_without_a_rung_and_no_times_out_of_nothing(monkeypatch):
    monkeypatch.setattr(bench_ladder, "_live", {})
    monkeypatch.setattr(bench_ladder, "load", lambda *_: None)
    result, _ = run(subject_of("naive"), N=32, d=16)
    assert bench_ladder.Ladder(None).data(result) == {}
    data = bench_ladder.Ladder("naive").data(result)
    assert data["sizes"] == [] and data["html"] == {} and "only a GPU can be timed" in data["note"]


def test_recordings_are_found_by_what_they_hold(tmp_path):
    (tmp_path / "a.json").write_text("[1, 2]")
    (tmp_path / "b.json").write_text(
        '{"device": "B", "protocol": "", "milliseconds": {"softmax": {"256": 1}}}'
    )
    assert bench_ladder.load(tmp_path) is None
    (tmp_path / "c.json").write_text(
        '{"device": "C", "protocol": "", "milliseconds": {"tiled": {"256": 1}}}'
    )
    assert bench_ladder.load(tmp_path).device == "C"


# ------------------------------------------------------------------ a GPU, played by the stand-in


@pytest.fixture
def gpu(monkeypatch):
    """Everything thinks that there is a GPU; the simulator's stand-in plays it."""
    if device.is_gpu:
        pytest.skip("there is a real one")
    measured = []

    def measure(launch):
        launch()
        measured.append(launch)
        return float(len(measured))

    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(device, "name", lambda: "Test GPU")
    monkeypatch.setattr(timing, "measure", measure)
    monkeypatch.setattr(bench_ladder, "_live", {})
    return measured


def test_a_gpu_is_timed_at_a_size_of_its_own(gpu, monkeypatch):
    launched, call = [], Kernel.__call__
    monkeypatch.setattr(
        Kernel,
        "__call__",
        lambda k, grid, *args: (launched.append((k.entry, grid)), call(k, grid, *args)),
    )
    subject = subject_of("tiled", timed=[64, 96])
    assert controls_of(subject)[-1].name == "N timed"
    result, stages = run(subject, True, N=32, d=64, **{"N timed": 96})
    assert result.status == "right" and result.timed == {"N": 96}
    assert [k.milliseconds for k in result.kernels] == [1, 2, 3] and result.milliseconds == 6
    assert result.device == "Test GPU"
    assert stages[-4:] == ["running on the GPU", "timing scaled_dot_product", "timing softmax",
                           "timing pv_multiply"]  # fmt: skip
    assert launched == [
        ("scaled_dot_product", (2, 2)), ("softmax", (1,)), ("pv_multiply", (2, 4)),  # to check
        ("scaled_dot_product", (6, 6)), ("softmax", (1,)), ("pv_multiply", (6, 4)),  # to time
    ]  # fmt: skip
    html = bench_html.page(result.data())
    assert "N = 96" in html and "checked and timed on Test GPU" in html
    ladder = bench_ladder.Ladder("tiled", RECORDED)
    data = ladder.data(result)
    assert data["chosen"] == 96 and "measured on Test GPU" in data["html"]["96"]
    assert list(ladder.measure(result)) == ["timing naive"]
    assert re.findall(r"<span>([\d.]+) ms", ladder.data(result)["html"]["96"]) == ["4.000", "6.000"]


def test_a_time_of_other_settings_is_no_time_of_the_ladder(gpu):
    result, _ = run(subject_of("tiled", timed=[64]), True, N=32, d=64, TILE=8)
    assert result.milliseconds == 6
    bench_ladder.Ladder("tiled", RECORDED).data(result)
    assert bench_ladder._live == {}


def test_what_is_wrong_on_the_gpu_is_not_timed(gpu, monkeypatch):
    """The simulator is right, and the GPU gives something else."""
    from helpers import cp

    spoiled = cp.asnumpy
    monkeypatch.setattr(cp, "asnumpy", lambda array: spoiled(array) + np.float32(1))
    result, stages = run(subject_of("tiled", timed=[64]), True, N=32, d=16)
    assert result.status == "wrong" and not gpu and result.milliseconds is None
    assert "timing scaled_dot_product" not in stages


def test_what_is_wrong_on_the_simulator_never_reaches_the_gpu(gpu, file):
    subject = subject_of(file, None, transposed, rows=[21], cols=[37])
    result, stages = run(subject, True, FAULT=1)
    assert result.status == "wrong" and "running on the GPU" not in stages and not gpu


def test_memory_that_is_not_there_is_an_error_to_read(gpu, monkeypatch):
    monkeypatch.setattr(timing, "measure", lambda _: (_ for _ in ()).throw(MemoryError("1 GB")))
    result, _ = run(subject_of("tiled", timed=[64]), True, N=32, d=16)
    assert result.status == "error" and "The GPU could not run it: 1 GB" in result.message


@pytest.mark.gpu
def test_a_real_gpu(monkeypatch):
    """Right there too, and a larger problem takes longer."""
    monkeypatch.setattr(bench_ladder, "_live", {})
    subject = subject_of("padded")
    times = []
    for n in (1024, 4096):
        result, _ = run(subject, True, N=100, PAD=0, **{"N timed": n})
        assert result.status == "right", result.message
        assert result.device == device.name() and result.timed == {"N": n}
        times.append(result.milliseconds)
    assert 0 < 4 * times[0] < times[1]
    ladder = bench_ladder.Ladder("padded")
    assert "timing naive" in list(ladder.measure(result))
    assert ladder.data(result)["html"]["4096"].count('class="bench-live"') >= len(LADDER)


# ------------------------------------------------------------------ the widget, without a page


def test_the_widget_answers_numbered_changes():
    widget = bench("tiled", N=[32], d=[16])
    assert widget.shown["request"] == widget.wanted["request"] == 0
    assert widget.shown["status"] == "right" and widget.settings["TILE"] == 16
    settings = {**widget.wanted["settings"], "TILE": 8}
    widget._handle_custom_msg({"request": 5, "settings": settings}, [])  # as the page does it
    assert widget.shown["request"] == 5 and widget.shown["settings"] == settings
    assert widget.result.kernels[0].block == (8, 8)
    assert 'class="bench-of">TILE=8 ' in widget.shown["head"]
    widget._handle_custom_msg({"request": 6, "settings": {**settings, "TILE": 33}}, [])
    assert widget.wanted == {"request": 6, "settings": settings}  # what is not offered is put back
    widget.set(TILE=32)
    assert widget.wanted["request"] == widget.shown["request"] == 7
    widget._handle_custom_msg({"request": 7, "settings": settings}, [])  # at the same moment
    assert widget.wanted == {"request": 8, "settings": settings} and widget.shown["request"] == 8
    widget.set(TILE=32)
    assert widget.wanted["settings"]["TILE"] == 32 and widget.shown["settings"]["TILE"] == 32
    assert [past.result.settings["TILE"] for past in widget.history] == [16, 8, 32, 8, 32]
    assert "TILE=32" in repr(widget) and repr(widget).endswith(": right>")
    widget.close()


def test_messages_on_another_thread_are_worked_off_by_the_loop(monkeypatch):
    """A kernel with subshells hands them over there; a sleeping loop has to be woken up."""
    threads = set()
    change = Session.change
    monkeypatch.setattr(
        Session, "change",
        lambda *args, **settings: (threads.add(threading.get_ident()), change(*args, **settings)),
    )  # fmt: skip
    monkeypatch.setattr(bench_session, "QUIET", 1e6)

    async def notebook():
        widget = bench("naive", N=[32], d=[16])
        message = {"request": 1, "settings": widget.settings | {"TILE": 8}}
        sender = threading.Timer(0.05, lambda: widget._handle_custom_msg(message, []))
        started = asyncio.get_running_loop().time()
        sender.start()
        while widget.shown["request"] != 1:
            # Nothing but the message and what follows from it wakes this loop for long.
            await asyncio.sleep(0 if widget.state["phase"] != "idle" else 0.02)
            assert asyncio.get_running_loop().time() < started + 20
        sender.join()
        assert widget.shown["settings"]["TILE"] == 8 and threads == {threading.get_ident()}
        widget.close()

    asyncio.run(notebook())


def test_the_widget_leaves_a_result_where_there_are_no_widgets():
    widget = bench("naive", N=[32], d=[16])
    bundle, _ = widget._repr_mimebundle_()
    assert "kernel-listing" in bundle["text/html"] and "<script" not in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    widget.close()


def test_the_core_needs_no_widgets_and_no_plots():
    code = (
        "import sys, helpers.bench as b; r = b.sweep('naive', {'TILE': [8]}, N=[32], d=[16]); "
        "assert r[0]['status'] == 'right'; import helpers.bench_html; "
        "bad = {'anywidget', 'ipywidgets', 'matplotlib', 'IPython'} & set(sys.modules); "
        "assert not bad, bad; import threading; assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
