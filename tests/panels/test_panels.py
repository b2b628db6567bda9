"""Errors as panels: of the simulator, of `load_kernel`, of CuPy and CUDA, and in a notebook."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest

from helpers import cp, simulator
from helpers.gpu import device
from helpers.kernels import KernelError, load_kernel
from helpers.panels import Panel, install, install_cupy, panel_of
from helpers.panels.cuda_errors import cuda_panel
from helpers.panels.excerpts import excerpt
from helpers.simulator.errors import SimulatorError
from helpers.slides.waking_client import WakingClient

ROOT = Path(__file__).resolve().parents[2]


def kernel(body, arguments="float* a"):
    return f'extern "C" __global__ void k({arguments}) {{\n{body}\n}}\n'


def caught(call) -> Exception:
    with pytest.raises((SimulatorError, KernelError)) as found:
        call()
    return found.value


def launch_error(code, *args, threads=32, **options):
    args = args or (np.zeros(4, np.float32),)
    return caught(lambda: simulator.launch(code, "k", 1, threads, args, **options))


def marked(panel):
    return [line.number for line in panel.listing.lines if line.marked]


def text_of(panel):
    """What the HTML says, without marks."""
    html = re.sub(r"<style>.*?</style>", "", panel._repr_html_(), flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", html))


# ------------------------------------------------------------------ the panel itself


def test_html_is_escaped_and_has_a_role():
    panel = Panel("a < b", ("1 & 2\n<script>",), "do <this>", details="<t>", summary="all & more")
    html = panel._repr_html_()
    assert 'role="alert"' in html and "<script>" not in html and "1 &amp; 2<br>" in html
    assert "<b>To do:</b> do &lt;this&gt;" in html
    assert "<details><summary>all &amp; more</summary><pre>&lt;t&gt;</pre></details>" in html
    assert 'role="status"' in Panel("x", kind="good")._repr_html_()
    assert "<details" not in Panel("x")._repr_html_() and "To do" not in Panel("x")._repr_html_()


def test_text_is_wrapped_at_100():
    panel = Panel("t" * 30, ("word " * 60, "one\ntwo"), "do " * 60)
    lines = repr(panel).split("\n")
    assert max(map(len, lines)) <= 100 and lines[0] == "✗ " + "t" * 30
    assert "  one" in lines and "  two" in lines and lines[-1].startswith("  do")
    assert repr(Panel("x", kind="good")) == "✓ x" and repr(Panel("x", kind="note")) == "· x"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="error, good, note, not 'bad'"):
        Panel("x", kind="bad")


# ------------------------------------------------------------------ excerpts


CODE = "\n".join(f"line {n}" for n in range(1, 31))


def test_excerpts_leave_gaps():
    shown = excerpt(CODE, "x.cu", [4, 5, 20, 99])
    assert [line.number for line in shown.lines] == [2, 3, 4, 5, 6, 7, 18, 19, 20, 21, 22]
    assert [line.text for line in shown.lines if line.marked] == ["line 4", "line 5", "line 20"]
    assert repr(shown).split("\n")[7:9] == ["   ⋮ |", "  18 | line 18"]
    assert shown._repr_html_().count('kl-gap"') == 1
    assert excerpt(CODE, "x.cu", [99]) is None and excerpt(CODE, "x.cu", []) is None
    assert "⋮" not in repr(excerpt(CODE, "x.cu", [4, 8]))


def test_excerpts_follow_line_directives():
    code = '#line 1 "a.cu"\nfirst\n#line 1 "i.cuh"\ninner\nmore\n#line 3 "a.cu"\nthird\n'
    own = excerpt(code, "a.cu", [3])
    assert [(line.number, line.text) for line in own.lines] == [(1, "first"), (2, ""), (3, "third")]
    inner = excerpt(code, "i.cuh", [1])
    assert [(line.number, line.text) for line in inner.lines] == [(1, "inner"), (2, "more")]


# ------------------------------------------------------------------ the simulator's errors


@pytest.mark.parametrize(
    ("body", "threads", "kind", "title", "line"),
    [
        ("int i = threadIdx.x;\n\na[i] = 1;", 32, "out_of_bounds", "Out of bounds", 4),
        ("__shared__ float s[8];\ns[threadIdx.x] = 1; a[0] = s[1];", 32, "out_of_bounds",
         "Out of bounds", 3),
        ("*(float2*)(a + 1) = make_float2(1, 2);", 1, "misaligned", "A misaligned access", 2),
        ("if (threadIdx.x < 16)\n__syncthreads();\na[0] = 1;", 64, "barrier",
         "A barrier that not all threads reach", 3),
        ("while (true) a[0] += 1;", 1, "endless_loop", "An endless loop", 2),
        ("asm volatile(\"trap;\");", 1, "trap", "The kernel stopped itself", 2),
    ],
)  # fmt: skip
def test_faults_mark_their_line(body, threads, kind, title, line):
    error = launch_error(kernel(body), threads=threads)
    panel = panel_of(error)
    assert error.kind == kind and panel.kind == "error"
    assert panel.title == f"{title} on line {line} of kernel.cu" and marked(panel) == [line]
    assert " ".join(panel.said) == str(error)
    assert f"> {line} |" in repr(panel) and "Traceback" in panel.details
    assert all(sentence in text_of(panel) for sentence in panel.said)


def test_what_becomes_of_the_arguments_stands_by_itself():
    assert (
        panel_of(launch_error(kernel("a[threadIdx.x] = 1;"))).said[1] == "No argument was changed."
    )
    body = "a[0] = 1; __syncthreads();\na[threadIdx.x] = 1;"
    assert panel_of(launch_error(kernel(body))).said[1] == (
        "The launch stopped there: a may be part-written."
    )


def test_errors_before_the_launch_have_no_listing():
    error = launch_error(kernel("a[0] = 1;"), np.zeros(4, np.float64))
    panel = panel_of(error)
    assert panel.title == "An argument does not fit" and panel.listing is None
    panel = panel_of(launch_error(kernel("a[0] = 1;"), threads=2000))
    assert panel.title == "The launch is refused" and "2,000" in panel.said[0]


def test_compile_errors_mark_every_line():
    code = kernel("int i = threadIdx.x\n\na[i] = 1 + x;\nint p;\nint q;\nint r;\nint s;\nb[i] = 2;")
    panel = panel_of(launch_error(code))
    assert panel.title == "The kernel does not compile" and marked(panel) == [4, 9]
    assert panel.said == (
        'Line 4: expected a ";".', 'Line 9: identifier "b" is undefined.',
    )  # fmt: skip
    assert "Look at the end of line 2:" in panel.todo and "first error first" in panel.todo
    assert panel.summary == "NVRTC's log" and 'error: expected a ";"' in panel.details


def test_compile_errors_say_what_to_write_instead():
    panel = panel_of(launch_error(kernel("a[0] = INFINITY;")))
    assert panel.said[0].startswith('Line 2: identifier "INFINITY" is undefined.')
    assert "__int_as_float(0x7f800000)" in panel.said[0] and panel.todo == ""


def test_many_compile_errors_are_counted():
    # an unknown name is told with what to write instead, wherever it stands among them
    panel = panel_of(launch_error(kernel("a[0] = y;\na[1] = INFINITY;")))
    assert panel.said[1].startswith('Line 3: identifier "INFINITY" is undefined. NVRTC compiles')
    body = "\n".join(f"x{n} = {n};" for n in range(9))
    panel = panel_of(launch_error(kernel(body)))
    assert len([s for s in panel.said if s.startswith("Line")]) == 4
    assert marked(panel) == [2, 3, 4, 5] and "5 errors more are in the log below." in panel.said


def test_a_refused_option_has_no_line():
    panel = panel_of(launch_error(kernel("a[0] = 1;"), options=("--nonsense",)))
    assert panel.title == "The kernel does not compile" and panel.listing is None
    assert "--nonsense" in panel.said[0]


def test_errors_in_an_included_file(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "f.cuh").write_text("// one\n__device__ float f() { return y; }\n")
    (tmp_path / "a.cu").write_text('#include "f.cuh"\n' + kernel("a[0] = f();"))
    k = load_kernel("a.cu", kernels_dir=tmp_path)
    panel = panel_of(caught(lambda: k.count(1, 1, (np.zeros(1, np.float32),))))
    assert panel.said[0].endswith('identifier "y" is undefined.')
    assert panel.said[0].startswith("Line 2 of ") and "f.cuh" in panel.listing.title
    assert marked(panel) == [2] and "return y" in repr(panel.listing)


def test_a_kernel_of_the_course_is_shown_with_its_own_lines():
    k = load_kernel("02_naive.cu", "scaled_dot_product")
    Q = np.zeros((5, 3), np.float32)
    short = np.zeros(10, np.float32)
    call = lambda: k.count((1, 1), (8, 8), (Q, Q, short, 5, 3))  # noqa: E731
    error = caught(call)
    panel = panel_of(error)
    (number,) = marked(panel)
    assert panel.title == f"Out of bounds on line {number} of 02_naive.cu"
    line = next(line for line in panel.listing.lines if line.marked)
    assert line.text == k.source.split("\n")[number - 1] and "S[" in line.text


def test_launches_through_cp_have_a_listing_too():
    k = cp.RawKernel(kernel("a[threadIdx.x] = 1;"), "k")
    error = caught(lambda: k((1,), (32,), (cp.zeros(4, np.float32),)))
    assert marked(panel_of(error)) == [2]


def test_kernel_errors():
    panel = panel_of(caught(lambda: load_kernel("02_naiv.cu")))
    assert panel.title == "This call cannot work" and "Did you mean 02_naive.cu?" in panel.said[0]


def test_the_project_s_other_errors_are_panels_too():
    from helpers.gpu.device import DeviceError
    from helpers.gpu.lock import GpuBusy
    from helpers.measure.profile import ProfileError

    install()
    titles = set()
    for error in (DeviceError, ProfileError, GpuBusy, KernelError):
        panel = panel_of(error("Why it is so."))
        titles.add(panel.title)
        assert panel.said == ("Why it is so.",)
        assert error("Why it is so.")._render_traceback_() == [repr(panel)]
    assert len(titles) == 4


def test_any_other_exception():
    panel = panel_of(ZeroDivisionError("division by zero"))
    assert (panel.title, panel.said) == ("ZeroDivisionError", ("division by zero",))
    assert panel_of(ValueError()).said == ("It has no message.",)


# ------------------------------------------------------------------ CuPy's errors, as it forms them


class _CudaErrorBase(RuntimeError):
    """As cupy_backends/cuda/api/_error.py: the message is "NAME: text", with infos below."""

    def __init__(self, name, text, infos=()):
        super().__init__(f"{name}: {text}")
        self._infos = list(infos)

    def __str__(self):
        return super().__str__() + "".join("\n  " + info for info in self._infos)


class CUDADriverError(_CudaErrorBase):
    pass


class CUDARuntimeError(_CudaErrorBase):
    pass


class CompileException(Exception):
    """As cupy/cuda/compiler.py."""

    def __init__(self, msg, source, name, options, backend="nvrtc"):
        self._msg = msg
        self.source = source
        self.name = name
        self.options = options
        self.backend = backend
        super().__init__()

    def __str__(self):
        return self._msg


class OutOfMemoryError(MemoryError):
    """As cupy/cuda/memory.pyx."""

    def __init__(self, size, total):
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes)."
        )


STICKY = [
    (CUDADriverError, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    (CUDARuntimeError, "cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    (CUDARuntimeError, "cudaErrorMisalignedAddress", "misaligned address"),
    (CUDADriverError, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    (CUDARuntimeError, "cudaErrorLaunchFailure", "unspecified launch failure"),
    (CUDADriverError, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    (CUDARuntimeError, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    (CUDARuntimeError, "cudaErrorAssert", "device-side assert triggered"),
    (CUDADriverError, "CUDA_ERROR_INVALID_PC", "invalid program counter"),
]


@pytest.mark.parametrize(("error", "name", "text"), STICKY)
def test_errors_that_break_the_context(error, name, text, monkeypatch):
    monkeypatch.setattr(device, "launched", "softmax of 04.cu, grid (4, 1, 1)")
    panel = panel_of(error(name, text))
    said = " ".join(panel.said)
    assert "every later call fails" in said and "cp.asarray" in said
    assert "need not be the one at fault" in said
    assert "The kernel launched last was softmax of 04.cu" in said
    assert "Kernel > Restart" in panel.todo
    assert "kernel.count(grid, block, args)" in panel.todo
    assert "HELPERS_DEVICE=simulator" in panel.todo
    assert panel.said[-1] == f"CUDA says: {name}: {text}"


def test_driver_and_runtime_names_mean_the_same():
    assert len({panel_of(e(n, t)).title for e, n, t in STICKY[:2]}) == 1
    assert "aligned" in panel_of(STICKY[2][0](*STICKY[2][1:])).title
    assert "took too long" in panel_of(STICKY[6][0](*STICKY[6][1:])).title


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CUDADriverError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                         "too many resources requested for launch"), "__launch_bounds__"),
        (CUDADriverError("CUDA_ERROR_INVALID_VALUE", "invalid argument"), "shared_mem"),
        (CUDARuntimeError("cudaErrorInvalidConfiguration", "invalid configuration argument"),
         "grid, block"),
        (CUDARuntimeError("cudaErrorMemoryAllocation", "out of memory"), "free_all_blocks"),
        (CUDADriverError("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"), "free_all_blocks"),
        (CUDADriverError("CUDA_ERROR_NOT_FOUND", "named symbol not found"), 'extern "C"'),
        (CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for "
                         "execution on the device"), "CuPy compiles for the GPU at hand"),
        (CUDARuntimeError("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for "
                          "CUDA runtime version"), "driver"),
        (CUDARuntimeError("cudaErrorNoDevice", "no CUDA-capable device is detected"), "nvidia-smi"),
    ],
)  # fmt: skip
def test_errors_that_do_not(error, words):
    panel = panel_of(error)
    assert words in panel.todo
    assert "every later call" not in repr(panel) and "Kernel > Restart" not in panel.todo
    assert str(error) in panel.said[-1]


def test_infos_and_unknown_names():
    error = CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access", ["an info"])
    assert panel_of(error).said[-1].endswith("\n  an info")
    panel = cuda_panel("cudaErrorSomethingNew: what is this")
    assert panel.title == "CUDA reports an error" and "Kernel > Restart" in panel.todo
    assert cuda_panel("no name at all").title == "CUDA reports an error"


def test_cupys_out_of_memory():
    panel = panel_of(OutOfMemoryError(34359738368, 1024))
    assert panel.title == "The GPU's memory is full"
    assert panel.said[-1] == (
        "CuPy says: Out of memory allocating 34,359,738,368 bytes (allocated so far: 1,024 bytes)."
    )


def test_cupys_compile_errors_read_like_the_simulators():
    code = kernel("a[0] = x;\nfloat f = ;")
    name = "/tmp/tmpab12/3f2a.cubin.cu"
    log = launch_error(code).log.replace("kernel.cu(", f"{name}(")
    assert f"{name}(2): error" in log
    panel = panel_of(CompileException(log, code, name, ("-std=c++17",)))
    assert panel.said[:2] == (
        'Line 2: identifier "x" is undefined.', "Line 3: expected an expression.",
    )  # fmt: skip
    assert marked(panel) == [2, 3] and name not in panel._repr_html_()


# ------------------------------------------------------------------ in IPython


def fake_cupy():
    """A module with CuPy's errors where CuPy has them."""
    cuda = SimpleNamespace(
        driver=SimpleNamespace(CUDADriverError=type("CUDADriverError", (RuntimeError,), {})),
        runtime=SimpleNamespace(CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {})),
        compiler=SimpleNamespace(CompileException=CompileException),
        memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {})),
    )
    return SimpleNamespace(cuda=cuda)


def test_install_reaches_cupys_errors_and_bears_with_others():
    cupy = fake_cupy()
    try:
        assert install_cupy(cupy) == (
            "CUDADriverError", "CUDARuntimeError", "CompileException", "OutOfMemoryError",
        )  # fmt: skip
        error = cupy.cuda.driver.CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal access")
        (text,) = error._render_traceback_()  # outside a notebook
        assert text.startswith("✗ A kernel accessed memory that is not its own")
    finally:
        del CompileException._render_traceback_
    assert install_cupy(SimpleNamespace(cuda=SimpleNamespace(driver=SimpleNamespace()))) == ()
    sealed = SimpleNamespace(driver=SimpleNamespace(CUDADriverError=int))
    assert install_cupy(SimpleNamespace(cuda=sealed)) == ()


def test_importing_panels_does_not_import_ipython():
    code = "import sys, helpers.panels as p; p.panel_of; p.install; print('IPython' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ran.stdout.strip() == "False"


CELLS = [
    "import numpy as np\nfrom helpers import simulator\nfrom helpers.kernels import load_kernel\n"
    "from helpers.panels import install_cupy\nfrom types import SimpleNamespace as N",
    "def launch():\n"
    "    code = 'extern \"C\" __global__ void k(float* a) { a[threadIdx.x] = 1; }'\n"
    "    simulator.launch(code, 'k', 1, 32, (np.zeros(4, np.float32),))\n"
    "launch()",
    "load_kernel('nothing.cu')",
    "from ipywidgets import interact\ninteract(lambda x: load_kernel('nothing.cu'), x=(0, 2));",
    "class CUDARuntimeError(RuntimeError): pass\n"
    "install_cupy(N(cuda=N(runtime=N(CUDARuntimeError=CUDARuntimeError))))\n"
    "raise CUDARuntimeError('cudaErrorIllegalAddress: an illegal memory access was encountered')",
    "class Shown:\n    def __repr__(self): raise CUDARuntimeError('cudaErrorAssert: an assert')\n"
    "Shown()",
    "1 / 0",
]


@pytest.fixture(scope="module")
def executed():
    """A notebook in which every cell but the first fails, run to its end all the same."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    WakingClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(ROOT)}},
    ).execute()  # fmt: skip
    return notebook


def outputs(executed, number):
    kinds = [output.output_type for output in executed.cells[number].outputs]
    return kinds, executed.cells[number].outputs


def test_a_cell_shows_one_panel_and_still_fails(executed):
    kinds, (panel, error) = outputs(executed, 1)
    assert kinds == ["display_data", "error"]
    html = panel.data["text/html"]
    assert html.count('role="alert"') == 1 and "Out of bounds on line 1 of kernel.cu" in html
    assert "It was called on line 3 of the cell" in html
    assert "<details><summary>Traceback</summary>" in html and "helpers/simulator/" in html
    assert panel.data["text/plain"].startswith("✗ Out of bounds")
    assert "Traceback" not in panel.data["text/plain"]
    assert error.ename == "SimulatorError" and "valid indices 0 to 3" in error.evalue
    assert error.traceback == ["SimulatorError, shown above."]


def test_other_errors_in_cells(executed):
    kinds, (panel, error) = outputs(executed, 2)
    assert kinds == ["display_data", "error"] and error.ename == "KernelError"
    assert "There is no kernel file nothing.cu" in panel.data["text/html"]
    kinds, (panel, error) = outputs(executed, 4)
    assert kinds == ["display_data", "error"] and error.ename == "CUDARuntimeError"
    assert "Kernel &gt; Restart" in panel.data["text/html"]
    assert "The error showed on line 3 of the cell: raise CUDA" in panel.data["text/html"]
    kinds, (error,) = outputs(executed, 6)  # what is none of ours is left alone
    assert error.ename == "ZeroDivisionError" and len(error.traceback) > 2


def test_an_error_while_a_result_is_shown(executed):
    kinds, shown = outputs(executed, 5)
    panels = [o for o in shown if "kernel-panel" in str(o.get("data", {}).get("text/html"))]
    assert len(panels) == 1 and "An assert() in a kernel failed" in panels[0].data["text/html"]


def test_an_error_inside_a_widget(executed):
    states = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    (inner,) = [s["state"]["outputs"] for s in states.values() if s["model_name"] == "OutputModel"]
    assert [o["output_type"] for o in inner] == ["display_data", "error"]
    assert "There is no kernel file" in inner[0]["data"]["text/html"]


def test_nbclient_and_so_an_export_stops_at_the_cell():
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c) for c in (CELLS[0], CELLS[2], "x = 2")]
    )
    client = WakingClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    with pytest.raises(CellExecutionError) as caught:
        client.execute()
    assert caught.value.ename == "KernelError"  # what helpers.slides tells of it
    assert caught.value.evalue.startswith("There is no kernel file nothing.cu in kernels: it has")
    assert notebook.cells[2].execution_count is None


def test_ipython_in_a_terminal_prints_the_text(tmp_path):
    script = tmp_path / "a.ipy"
    script.write_text("from helpers.kernels import load_kernel\nload_kernel('nothing.cu')\n")
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", str(script)],
        capture_output=True, text=True, cwd=ROOT, env={**__import__("os").environ,
        "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)},
    )  # fmt: skip
    assert "✗ This call cannot work\n  There is no kernel file nothing.cu" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
