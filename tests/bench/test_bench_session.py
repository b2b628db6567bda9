"""That no result of the bench outlives its settings, with a clock of the test."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
from bench_problems import TRANSPOSE, Clock, transposed

from helpers.bench import html as bench_html
from helpers.bench import session as bench_session
from helpers.bench.result import Result
from helpers.bench.session import REMEMBERED, Session
from helpers.bench.subject import Subject, subject_of

# ------------------------------------------------------------------ states


class Recorder:
    """A stand-in for the work: three stages, and a note of what was begun, dropped, finished."""

    def __init__(self, monkeypatch):
        self.begun, self.dropped, self.finished = [], [], []
        monkeypatch.setattr(bench_session, "work", self.work)
        monkeypatch.setattr(Subject, "refusal", lambda *_: None)

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
    monkeypatch.setattr(Subject, "refusal", lambda *_: asked.append(clock.now))
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
        return dataclasses.replace(transposed(k, rows), expected={"b": lambda: 1 / 0})

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


def test_idle_work_waits_while_cells_run(clock, subject, monkeypatch):
    cells = SimpleNamespace(execution_count=3)
    monkeypatch.setattr(bench_session, "shell", lambda: cells)
    session = Session(subject, clock)
    session.change(TILE=32)
    for _ in range(30):
        clock.advance(1)
        cells.execution_count += 1
    assert session.result.status == "right" and session.refused == {}
    clock.advance(60)
    assert ("TILE", 64) in session.refused
