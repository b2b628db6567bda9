"""Loops without an end: told at once where that can be known, and open to an interrupt."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading

import numpy as np
import pytest

from helpers import simulator
from helpers.panels import panel_of
from helpers.simulator.compile.compiler import compile_ptx
from helpers.simulator.errors import Interrupted
from helpers.simulator.launch import prepare
from helpers.simulator.machine.loops import CountedLoop
from helpers.simulator.ptx.syntax import Reg

LONG = "for (unsigned i = 0; i < 4000000000u; i++)\na[threadIdx.x] = a[threadIdx.x] * 3 + i;"


def kernel(body, arguments="int* a, int n"):
    return f'extern "C" __global__ void k({arguments}) {{\n{body}\n}}\n'


def launch(body, n=64, threads=64, **options):
    """Launch with so many steps allowed that only looking ahead can end it in time."""
    a = np.zeros(128, np.int32)
    options.setdefault("max_steps", 2_000_000)
    simulator.launch(kernel(body), "k", 1, threads, (a, np.int32(n)), count=False, **options)
    return a


@pytest.mark.parametrize(
    ("body", "words", "line"),
    [
        (LONG, "needs more than the 2,000,000 instructions", 2),
        ("for (int i = n; i != 3; i += 2)\na[threadIdx.x] = a[threadIdx.x] * 3 + i;",
         "its counter steps over the value that would end it", 2),
        ("__shared__ int s[64];\nfor (int st = n / 2; st >= 0; st /= 2) {\n"
         "__syncthreads();\ns[threadIdx.x] += st + a[threadIdx.x]; }\na[threadIdx.x] = s[5];",
         "nothing in it changes what its condition tests", 3),
    ],
)  # fmt: skip
def test_seen_ahead(body, words, line, monkeypatch):
    from helpers.simulator.machine import machine

    rounds = 0
    lowest = machine.Machine._branch

    def counted(self, *given):
        nonlocal rounds
        rounds += 1
        return lowest(self, *given)

    monkeypatch.setattr(machine.Machine, "_branch", counted)
    with pytest.raises(simulator.SimulatorError) as caught:
        launch(body)
    assert caught.value.kind == "endless_loop" and words in str(caught.value)
    assert abs(caught.value.line - line) <= 1
    assert rounds < 500


@pytest.mark.parametrize(
    ("body", "n", "expected"),
    [
        ("int i = 0; for (; i * i < n * 900; i++) a[i & 63] = i;\na[100] = i;", 64, 240),
        ("unsigned i = 7; int r = 0; for (; i != 4294967000u; i += 4294967295u) {\nr++;"
         "a[r & 63] = r; }\na[100] = r;", 0, 303),
        ("int lo = 0; for (int hi = n * 1000; hi - lo > 1;) { int m = (lo + hi) / 2;\n"
         "if (m * 3 > a[99] + 777) hi = m; else lo = m; }\na[100] = lo;", 64, 259),
    ],
)  # fmt: skip
def test_loops_that_end_are_let_go_on(body, n, expected):
    assert launch(body, n, threads=1)[100] == expected


@pytest.mark.parametrize("step", [1, -1, 2, 3, -3, 4, 6, 12, -8, 1024, 5 * 2**20])
def test_rounds_until_a_wrapping_counter_meets_its_bound(step):
    loop = CountedLoop(0, Reg(0, 4, "%r0"), step, "ne", True, None, None, False)
    random = np.random.default_rng(abs(step))
    distance = np.concatenate(
        [random.integers(-(2**31), 2**31, 50), np.arange(-3, 4) * step, np.arange(-3, 4)]
    )
    left, never = loop._until_equal(distance)
    power = step & -step
    for d, rounds, lost in zip(distance.tolist(), left.tolist(), never.tolist(), strict=True):
        assert lost == bool(d % power)
        if not lost:  # the first time, since the counter comes back after 2^32 / power rounds
            assert (rounds * step - d) % 2**32 == 0 and 0 <= rounds < 2**32 // power


def test_what_decides_a_loop():
    code = kernel(
        "int i = 0; float s = 0; while (i < n) { s += 2; a[i] = s;\nif (s > 90) i += a[0]; }\n"
    )
    compiled = compile_ptx(code)
    prepared = prepare(compiled)
    prepared.need("k")
    graph = prepared.codes["k"].graph
    heads = [b.index for b in graph.blocks if b.reach >> b.index & 1]
    assert heads and all(prepared.codes["k"].deciding(head) is None for head in heads)


@pytest.fixture(autouse=True)
def heard():
    """A suite that a script started behind itself ignores Ctrl-C, as its children then do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def interrupt():
    """Ctrl-C after a while, as Kernel > Interrupt sends it."""
    timers = []

    def after(seconds):
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield after
    for timer in timers:
        timer.cancel()
        timer.join()


def test_an_interrupt_is_one_sentence(interrupt, capsys):
    interrupt(1.5)
    body = "unsigned i = 1;\nwhile (i != n) i = (i * 1664525u + 1013904223u) | 1;\na[0] = i;"
    with pytest.raises(KeyboardInterrupt) as caught:
        launch(body, n=2, max_steps=10**9)
    assert isinstance(caught.value, Interrupted) and caught.value.line == 3
    assert str(caught.value).startswith("k was interrupted at line 3, after ")
    assert str(caught.value).endswith(" s and 0 of 1 blocks. No argument was changed.")
    panel = panel_of(caught.value)
    assert panel.kind == "note" and panel.title == "Interrupted"
    assert [line.text for line in panel.listing.lines if line.marked] == [body.split("\n")[1]]
    assert launch("a[threadIdx.x] = n;")[5] == 64  # nothing is left of it


def test_an_interrupt_wipes_the_bar(monkeypatch):
    class Terminal(io.StringIO):
        """Where somebody presses Ctrl-C as soon as the bar is there."""

        def write(self, text: str) -> int:
            if "simulating k" in text:
                os.kill(os.getpid(), signal.SIGINT)
            return super().write(text)

    monkeypatch.setattr(sys, "stderr", Terminal())
    body = "for (int i = 0; i < 3000; i++)\na[(threadIdx.x * i) & 63] += i;"
    with pytest.raises(Interrupted, match=r"after \d+ s and [\d,]+ of 4,000 blocks"):
        simulator.launch(
            kernel(body), "k", 4000, 64, (np.zeros(64, np.int32), np.int32(1)), batch_threads=64
        )
    assert sys.stderr.getvalue().endswith("\r" + " " * 100 + "\r")
