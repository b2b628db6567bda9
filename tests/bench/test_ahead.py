"""Benches are compiled ahead: their first change asks the compiler nothing."""

from collections import OrderedDict

import pytest

from helpers.bench import ahead
from helpers.bench.session import Session
from helpers.bench.subject import Control, Subject, subject_of
from helpers.kernels.kernel import Kernel
from helpers.kernels.source import CannotRun
from helpers.simulator.compile import compiler
from helpers.simulator.compile.kept_nvrtc import VARIABLE
from helpers.simulator.compile.providers import NvrtcProvider


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The options that NVRTC itself is asked with, for a folder that is empty at first."""
    found, real = [], NvrtcProvider._made

    def made(self, request, cubin):
        found.append(request.options)
        return real(self, request, cubin)

    monkeypatch.setattr(NvrtcProvider, "_made", made)
    monkeypatch.setattr(compiler, "_cache", OrderedDict())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    return found


def test_the_first_change_of_a_bench_asks_the_compiler_nothing(asked, monkeypatch):
    ahead.compile_ahead(["reduction"])
    assert asked
    asked.clear()
    for bench in (subject_of("reduction"), subject_of("04_reduction.cu", "softmax")):
        for change in ({}, {"BLOCK_SIZE": 64}, {"BLOCK_SIZE": 1024}, {"N": 100}):
            monkeypatch.setattr(compiler, "_cache", OrderedDict())  # as a new process
            session = Session(bench)
            session.change(**change)
            assert session.result.status == "right" and not asked
    monkeypatch.setattr(compiler, "_cache", OrderedDict())
    ahead.compile_ahead(["reduction"])  # what is there is not made again
    assert not asked


def test_where_nothing_is_kept_nothing_is_compiled(asked, monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    ahead.main(["reduction"])
    assert not asked


def test_on_a_gpu_the_kernels_come_first(monkeypatch):
    done = []

    def compiled(kernel):
        done.append(kernel.file.name)
        if "08" in kernel.file.name:
            raise RuntimeError("no such GPU")

    monkeypatch.setattr(ahead.device, "is_gpu", True)
    monkeypatch.setattr(Kernel, "compile", compiled)
    monkeypatch.setattr(ahead, "compile_ahead", done.extend)
    monkeypatch.setenv(VARIABLE, "off")
    ahead.main(["flash_baseline", "flash_swizzled"])
    assert done == ["09_flash_swizzled.cu", "08_flash_baseline.cu"]


def test_every_choice_is_reached_and_what_cannot_run_is_passed_over(monkeypatch):
    """One control at a time, from what the bench begins with."""
    posed = []

    def pose(settings):
        posed.append(tuple(settings.values()))
        raise CannotRun("nothing goes together")

    controls = (Control("a", (1, 2, 3), 2), Control("b", ("x", "y"), "x"))
    subject = Subject("made up", lambda: (), pose, controls)
    monkeypatch.setattr(ahead, "subject_of", lambda name: subject)
    ahead.compile_ahead(["made up"])
    assert sorted(set(posed)) == [(1, "x"), (2, "x"), (2, "y"), (3, "x")]
