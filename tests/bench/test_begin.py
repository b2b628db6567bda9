"""What a chapter on a GPU begins with its first cell."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from helpers import device
from helpers.bench import ahead
from helpers.bench import begin as begin_module
from helpers.bench.begin import begin
from helpers.kernels.kernel import Kernel
from helpers.measure.profile import _identity
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import rung
from helpers.simulator.compile import compiler, machine_code
from helpers.simulator.compile.kept_nvrtc import VARIABLE
from helpers.simulator.compile.providers import NvrtcProvider

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def started(monkeypatch):
    """A notebook's kernel on a GPU with sixteen cores: the commands that are started."""
    found = []
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(
        begin_module.subprocess, "Popen", lambda command, **_: found.append(command)
    )
    monkeypatch.setattr(begin_module, "_running", [])
    return found


def test_the_kernels_are_shared_out(started, monkeypatch):
    profiled = []
    monkeypatch.setattr(begin_module.profile, "begin", profiled.append)
    begin("flash_registers", [{"HEAD_DIM": 64}], profiled=(1, 2, 70, 64))
    assert all(command[:4] == [sys.executable, "-m", "helpers.bench.ahead", "--listed"]
               for command in started)  # fmt: skip
    names = ["flash_baseline", "flash_swizzled", "flash_eager", "flash_registers"]
    expected = [[[name, {}]] for name in names]
    expected[0].append(["flash_registers", {"HEAD_DIM": 64}])
    assert [json.loads(command[4]) for command in started] == expected
    (launch,) = profiled
    assert launch.kernel.file.name == "10b_registers.cu" and launch.grid[1] == 2
    np.testing.assert_array_equal(launch.args[0], make_inputs(1, 2, 70, 64)[0])


def test_few_cores_are_not_all_taken(started, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    begin("flash_swizzled")
    assert [json.loads(command[4]) for command in started] == [
        [["flash_baseline", {}], ["flash_swizzled", {}]]
    ]


def test_elsewhere_nothing_is_begun(started, monkeypatch):
    monkeypatch.setattr(device, "is_gpu", False)
    begin("flash_swizzled", profiled=(1, 1, 64, 64))
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.delitem(sys.modules, "ipykernel")
    begin("flash_swizzled", profiled=(1, 1, 64, 64))
    assert started == []


def test_what_is_listed_is_found_compiled(tmp_path, monkeypatch):
    """PTX and, of a rung as it is, machine code: the chapter's cells ask the compiler nothing."""
    asked, on_gpu, real = [], [], NvrtcProvider._made

    def made(self, request, cubin):
        asked.append(cubin)
        return real(self, request, cubin)

    def forget():
        monkeypatch.setattr(compiler, "_cache", OrderedDict())
        monkeypatch.setattr(machine_code, "_cache", OrderedDict())

    monkeypatch.setattr(NvrtcProvider, "_made", made)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(device, "is_gpu", True)
    monkeypatch.setattr(Kernel, "compile", lambda self: on_gpu.append(self.file.name))
    monkeypatch.setattr(os, "nice", lambda by: by)
    forget()
    listed = [["flash_baseline", {}], ["flash_baseline", {"HEAD_DIM": 64, "CAUSAL": 1}]]
    ahead.main(["--listed", json.dumps(listed)])
    assert asked == [False, False, True] and on_gpu == ["08_flash_baseline.cu"] * 2
    forget()
    rung("flash_baseline").kernel().ptx()
    rung("flash_baseline").kernel().machine_code()
    rung("flash_baseline").with_parameters(CAUSAL=1).kernel(d=64).ptx()
    assert len(asked) == 3
    on_gpu.clear()
    monkeypatch.setenv(VARIABLE, "off")  # nothing is kept, but by CuPy
    ahead.main(["--listed", json.dumps(listed)])
    assert len(asked) == 3 and len(on_gpu) == 2


@pytest.mark.parametrize(
    "chapter, rungs",
    {
        "05_thread_coarsening": 4,
        "06_coalescing": 6,
        "07_bank_conflicts": 10,
        "11_hopper": 7,
    }.items(),
)
def test_a_chapter_begins_with_its_ladder(started, chapter, rungs):
    """All that its charts compare: of the rungs in fp32 each variant."""
    cells = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    (line,) = ("".join(c["source"]) for c in cells if c["id"] == f"{chapter[:2]}-begin")
    exec(line, {})
    listed = [(name, values) for command in started for name, values in json.loads(command[4])]
    assert len(started) == 4 and len(listed) == rungs
    for name, values in listed:
        assert rung(name).chapter <= int(chapter[:2]) and ahead._kernels(name, **values)


@pytest.mark.parametrize("chapter", ["08_flash_attention", "09_swizzling", "10_overlap"])
def test_a_chapter_begins_with_kernels_that_there_are(started, monkeypatch, chapter):
    """The line as it stands there; and the profile is that of the launch that a cell shows."""
    cells = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    upto = {"09_swizzling": "flash_swizzled", "10_overlap": "flash_rescale"}
    (line,) = ("".join(c["source"]) for c in cells if c["id"] == f"{chapter[:2]}-begin")
    profiled = []
    monkeypatch.setattr(begin_module.profile, "begin", profiled.append)
    exec(line, {})
    for name, values in (pair for command in started for pair in json.loads(command[4])):
        assert all(kernel.file.is_file() for kernel in ahead._kernels(name, **values))
    texts = " ".join("".join(c["source"]) for c in cells)
    assert len(profiled) == (chapter != "08_flash_attention")  # which runs kernels meanwhile
    for launch in profiled:  # the one that a cell shows
        (shape,) = re.findall(r"small = make_inputs\(([\d, ]+)\)", texts)
        small = make_inputs(*map(int, shape.split(",")))
        other = rung(upto[chapter]).launch_of(*small, np.zeros_like(small[0]))
        assert _identity(launch) == _identity(other)
