"""How `helpers.cp` is chosen, and what a broken or missing GPU makes it say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.gpu import driver
from helpers.gpu.description import Description

ROOT = Path(__file__).resolve().parents[2]

# A CuPy that can be imported anywhere; what it says is filled in by each test.
FAKE_CUPY = """
from types import SimpleNamespace as _Some
__version__ = "14.2.0"
float32 = "float32"
def zeros(n, dtype): return _Some(get=lambda: None)
def _answer(value):
    def call(*args): return value
    return call
def _refuse(*args, **kwargs): raise RuntimeError("cudaErrorUnknown: unknown error.\\nmore")
class _Device:
    compute_capability = {capability!r}
cuda = _Some(
    Device=_Device,
    nvrtc=_Some(getSupportedArchs=_answer((75, 80, 90)), getVersion=_answer((13, 0))),
    runtime=_Some(
        runtimeGetVersion=_answer({runtime}),
        getDevice=_answer(0),
        getDeviceProperties=_answer({{"name": b"NVIDIA Toy"}}),
    ),
)
{more}
"""
SHOW = "from helpers import device; print(device.cp.__name__, device.is_gpu, device.name())"


def python(code: str, tmp_path: Path | None = None, **variables: str):
    """Run code in a new process; returns (exit status, stdout, stderr)."""
    path = os.pathsep.join(str(p) for p in (tmp_path, ROOT) if p)
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    if "HELPERS_DEVICE" not in variables:
        environment.pop("HELPERS_DEVICE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def with_driver(answer: str) -> str:
    """Code in front of SHOW: a driver that is there and answers so."""
    return (
        "from helpers.gpu import driver; driver.library_found = lambda: True; "
        f"driver.ask = lambda: driver.Answer({answer}); "
    )


@pytest.fixture
def fake_cupy(tmp_path):
    """Puts a `cupy` into tmp_path."""

    def make(capability="90", runtime=13020, more=""):
        text = FAKE_CUPY.format(capability=capability, runtime=runtime, more=more)
        (tmp_path / "cupy.py").write_text(text)
        return tmp_path

    return make


def test_the_simulator_can_be_forced():
    status, out, error = python(SHOW, HELPERS_DEVICE="simulator")
    assert (status, error) == (0, "")
    assert out == "helpers.standin False simulator (NumPy, no GPU)"


def test_the_simulator_is_forced_with_a_gpu_in_sight(fake_cupy):
    code = with_driver("cuda=(13, 0)") + SHOW
    status, out, error = python(code, fake_cupy(), HELPERS_DEVICE="simulator")
    assert (status, error, out.split()[0]) == (0, "", "helpers.standin")


def test_another_value_is_refused():
    status, _, error = python(SHOW, HELPERS_DEVICE="cuda")
    assert status != 0
    assert error.splitlines()[-1].endswith(
        "HELPERS_DEVICE=cuda is not known: set it to simulator or gpu, or leave it unset."
    )


def test_without_a_driver_the_simulator_is_taken_silently():
    code = "from helpers.gpu import driver; driver.library_found = lambda: False; " + SHOW
    # an installed CuPy would be worth a word
    hide = (
        "import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name: None if name == 'cupy' else find(name); "
    )
    assert python(hide + code) == (0, "helpers.standin False simulator (NumPy, no GPU)", "")


def test_a_gpu_that_is_asked_for_and_missing_is_an_error():
    code = "from helpers.gpu import driver; driver.library_found = lambda: False; " + SHOW
    status, _, error = python(code, HELPERS_DEVICE="gpu")
    assert status != 0
    last = error.splitlines()[-1]
    assert "HELPERS_DEVICE=gpu cannot be met" in last and "no NVIDIA driver" in last


def test_a_gpu_that_answers_is_used(fake_cupy):
    code = with_driver("cuda=(13, 0)") + SHOW
    for variables in ({}, {"HELPERS_DEVICE": "gpu"}):
        assert python(code, fake_cupy(), **variables) == (0, "cupy True NVIDIA Toy", "")


@pytest.mark.parametrize(
    "answer, cupy, said",
    [
        ("'the NVIDIA driver crashes when it is started'", {}, "crashes when it is started"),
        ("'the NVIDIA driver finds no GPU', True", {}, "finds no GPU"),
        ("cuda=(12, 4)", {}, "needs a driver for CUDA 13, and the installed one is for CUDA 12.4"),
        ("cuda=(13, 0)", {"capability": "61"}, "7.5 and newer, and the GPU has 6.1"),
        ("cuda=(13, 0)", {"more": "zeros = _refuse"}, "(cudaErrorUnknown: unknown error)"),
        (
            "cuda=(13, 0)",
            {"more": "raise ImportError('\\n====\\nlibcudart.so.13 is missing\\n====')"},
            "cannot be imported (libcudart.so.13 is missing)",
        ),
    ],
)
def test_a_gpu_that_cannot_be_used_gets_one_sentence(fake_cupy, answer, cupy, said):
    code = with_driver(answer) + SHOW
    status, out, error = python(code, fake_cupy(**cupy))
    assert (status, out.split()[0]) == (0, "helpers.standin")
    assert len(error.splitlines()) == 1
    assert error.startswith("helpers: ") and said in error
    assert error.endswith("; the simulator runs the kernels.")

    status, _, error = python(code, fake_cupy(**cupy), HELPERS_DEVICE="gpu")
    assert status != 0 and said in error.splitlines()[-1]


def test_cupy_without_a_driver_gets_one_sentence(fake_cupy):
    code = "from helpers.gpu import driver; driver.library_found = lambda: False; " + SHOW
    _, out, error = python(code, fake_cupy())
    assert out.split()[0] == "helpers.standin"
    assert error == (
        "helpers: CuPy is installed, but this machine has no NVIDIA driver; the simulator runs "
        "the kernels."
    )


# The driver's own answers: the probe runs in a process of its own, here with other code.


def test_a_driver_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(driver, "_PROBE", "import time; time.sleep(60)")
    assert "not answered within 0.5 s" in driver.ask(0.5).problem


@pytest.mark.parametrize(
    "probe, said",
    [
        ("import os; os.abort()", "crashes"),
        ("raise OSError", "crashes"),
        ("print('[100, 0, 0, \"no CUDA-capable device is detected\"]')", "finds no GPU"),
        ("print('[0, 13000, 0, \"\"]')", "finds no GPU"),
        ("print('[803, 0, 0, \"\"]')", "restart the machine"),
        ("print('[999, 0, 0, \"unknown error\"]')", "does not start (unknown error, 999)"),
    ],
)
def test_a_driver_with_a_problem(monkeypatch, probe, said):
    monkeypatch.setattr(driver, "_PROBE", probe)
    answer = driver.ask()
    assert said in answer.problem
    assert answer.no_device == (said == "finds no GPU")


def test_a_driver_that_answers(monkeypatch):
    monkeypatch.setattr(driver, "_PROBE", "print('[0, 12040, 2, \"\"]')")
    assert driver.ask() == driver.Answer(cuda=(12, 4))


def test_importing_the_core_needs_neither_widgets_nor_matplotlib():
    code = (
        "import sys\n"
        "for name in ('ipywidgets', 'anywidget', 'matplotlib', 'IPython', 'jinja2'):\n"
        "    sys.modules[name] = None\n"
        "from helpers import cp, device, simulator; from helpers.kernels import kernel as kernels\n"
        "print(cp.zeros(2))"
    )
    status, out, error = python(code, HELPERS_DEVICE="simulator")
    assert (status, out) == (0, "[0. 0.]"), error


def test_the_simulator_is_imported_without_looking_for_a_gpu():
    code = (
        "import sys; from helpers import simulator; "
        "print([m for m in ('helpers.gpu.device', 'helpers.standin', 'cupy') if m in sys.modules])"
    )
    assert python(code)[1] == "[]"


def test_no_import_looks_for_a_gpu():
    code = (
        "import sys; from helpers import device, kernels, panels, profile, timing; "
        "print(device.chosen(), 'cupy' in sys.modules); device.cp; print(device.chosen())"
    )
    assert python(code, HELPERS_DEVICE="simulator")[1] == "False False\nTrue"


@pytest.mark.parametrize("first", ["install(); device.cp", "device.cp; install()"])
def test_errors_of_a_chosen_cupy_become_panels(fake_cupy, first):
    errors = "cuda.driver = _Some(CUDADriverError=type('CUDADriverError', (RuntimeError,), {}))"
    code = with_driver("cuda=(13, 0)") + (
        f"from helpers import device; from helpers.panels import install; {first}; "
        "print(device.cp.cuda.driver.CUDADriverError('why')._render_traceback_()[0])"
    )
    status, out, error = python(code, fake_cupy(more=errors))
    assert (status, error) == (0, "") and out.startswith("✗ CUDA reports an error")


def test_what_this_machine_offers():
    from helpers import device

    shown = device.describe()
    text = str(shown)
    assert f"NumPy {np.__version__}" in text
    if device.is_gpu:
        assert shown["GPU"] == device.name() and "CUDA" in shown["driver"]
    else:
        assert shown["device"] == "simulator (NumPy, no GPU)"
        assert "NVRTC 13.0.88" in shown["kernels"] and shown["times"].startswith("none")


def test_a_description_is_text_and_html():
    shown = Description([("a", "1 < 2"), ("label", "x & y")])
    assert str(shown) == repr(shown) == "a      1 < 2\nlabel  x & y"
    assert shown._repr_html_().count("<tr>") == 2
    assert "1 &lt; 2" in shown._repr_html_() and "x &amp; y" in shown._repr_html_()
    with pytest.raises(KeyError):
        shown["b"]


@pytest.mark.gpu
def test_on_a_gpu_cp_is_cupy():
    import cupy

    from helpers import cp, device

    assert cp is cupy and device.notice == ""
    with device.counting():
        kernel = cp.RawKernel('extern "C" __global__ void k(int* x) { x[threadIdx.x] = 3; }', "k")
        x = cp.zeros(5, np.int32)
        kernel((1,), (4,), (x,))
    assert cp.asnumpy(x).tolist() == [3, 3, 3, 3, 0]
    assert not hasattr(kernel, "report")


@pytest.mark.gpu
def test_on_a_gpu_the_simulator_still_runs():
    from helpers import simulator

    x = np.zeros(5, np.int32)
    code = 'extern "C" __global__ void k(int* x) { x[threadIdx.x] = 3; }'
    report = simulator.launch(code, "k", (1,), (4,), (x,))
    assert x.tolist() == [3, 3, 3, 3, 0]
    assert report.counters["global_store_sectors"] == 1
