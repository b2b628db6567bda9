"""The machine code of a kernel file beside its source."""

import re
from collections import Counter
from unittest.mock import ANY

import pytest

from helpers.kernels import KernelError, kernel_code, load_kernel


@pytest.fixture(scope="module")
def kernel():
    return load_kernel("03_tiled.cu", "scaled_dot_product", TILE=8)


@pytest.fixture(scope="module")
def code(kernel):
    return kernel.machine_code()


def test_it_is_of_the_kernel_with_its_parameters(kernel, code):
    assert code.static_shared == kernel.static_shared == 2 * 8 * 8 * 4
    (line,) = kernel.lines("sum += s_Q")
    multiplied = [one for one in code.by_line[line] if one.opcode == "FFMA.FTZ"]
    # The inner loop, whole; the assembler has two and then one turn of the outer one.
    assert len(multiplied) == 3 * 8
    assert kernel.machine_code("sm_80").architecture == "sm_80"


def test_the_text_counts_the_instructions_of_a_line(kernel, code):
    (line,) = kernel.lines("sum += s_Q")
    rows = repr(kernel.show(lines=(line, line), machine_code=code)).split("\n")
    assert rows[1] == code.summary and "8 fp32" not in rows[0]
    assert rows[3].startswith(f"  {line} | ")
    found = Counter(one.opcode for one in code.by_line[line])
    told = [part.split() for part in rows[4].removeprefix("     | ").split(", ")]
    others = sum(int(count) for count, opcode in told if opcode.startswith("other"))
    told = {opcode: int(count) for count, opcode in told if not opcode.startswith("other")}
    assert told.items() <= found.items() and told["FFMA.FTZ"] == 24
    assert others == found.total() - sum(told.values())


def test_the_page_has_each_instruction_once(code):
    html = code._repr_html_()
    rows = html.count(">FFMA.FTZ</i>")
    assert rows == sum(o.opcode == "FFMA.FTZ" and bool(o.line) for o in code.instructions)
    assert code.summary in html and "<script" not in html and "http" not in html
    assert html.count("<summary>") == len(code.by_line)


def test_chosen_kinds_leave_the_other_lines_empty(kernel, code):
    shown = kernel.show(machine_code=code, kinds=["barriers"])
    told = {line.number: str(line.machine) for line in shown.lines if line.machine.instructions}
    assert list(told) == kernel.lines("__syncthreads()")
    assert all(text.split()[1].startswith("BAR.SYNC") for text in told.values())
    with pytest.raises(KernelError, match="no kind of instruction 'loads'; there are fp32, "):
        kernel.show(machine_code=code, kinds=["loads"])


def test_a_machine_without_nvdisasm_shows_the_source_and_says_so(kernel, monkeypatch):
    assert kernel.show(machine_code="sm_90").machine == (kernel.machine_code().summary, ANY)
    monkeypatch.setattr(kernel_code, "lacking", lambda: "There is no nvdisasm.")
    shown = kernel.show(machine_code="sm_90", kinds=["fp32"])
    assert repr(shown).endswith("\nThere is no nvdisasm.") and not shown.machine
    assert "There is no nvdisasm.</p>" in shown.html() and 'class="kl-m"' not in shown.html()


def test_functions_that_the_kernel_calls_are_shown_too(tmp_path):
    (tmp_path / "twice.cu").write_text(
        "__device__ float twice(float x) {\n    return x * 2 + 1;\n}\n\n"
        'extern "C" __global__ void k(float* a) {\n    a[0] = twice(a[1]);\n}\n'
    )
    code = load_kernel("twice.cu", kernels_dir=tmp_path).machine_code()
    assert "FFMA.FTZ" in [one.opcode for one in code.by_line[2]]
    assert "  2 |     return x * 2 + 1;" in repr(code)


def test_counters_and_machine_code_stand_together(kernel, code):
    class Report:
        counters = {"global_load_sectors": 4}
        by_line = {33: {"global_load_sectors": 4}}

    html = kernel.show(Report(), machine_code=code).html()
    cells = [
        row.count('role="cell"')
        for row in re.findall(r'<div class="kl-row.*?(?=<div class="kl-row|$)', html, re.DOTALL)[1:]
    ]
    assert set(cells) == {4}


def test_something_else_is_refused(kernel):
    with pytest.raises(KernelError, match="machine_code is what a kernel's machine_code"):
        kernel.show(machine_code=90)
