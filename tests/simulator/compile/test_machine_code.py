"""Machine code for a GPU that is not here, against recordings of one and facts of the source."""

import dataclasses
import json
import re
import sys
from importlib.resources import files

import pytest
from recorded.flash_cases import contenders

from helpers.kernels import load_kernel
from helpers.simulator import SimulatorError, machine_code
from helpers.simulator.compile import machine_code as making
from helpers.simulator.compile import sass
from helpers.simulator.compile.providers import NvrtcProvider

SOURCE = """\
#line 1 "all.cu"
#include "more.cuh"
extern "C" __global__ void dot(const float* a, float* b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 24; i++) {
        sum += a[i] * a[24 + i];
    }
    b[threadIdx.x] = sum;
}
template <typename T> __global__ void copy(const T* a, T* b) {
    __shared__ T s[64];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void divide(float* a) {
    a[0] = a[1] / a[2];
}
extern "C" __global__ void guarded(float* a, int n) {
    if (threadIdx.x < n)
        a[threadIdx.x] = 1;
}
extern "C" __global__ void calls(float* a) {
    a[0] =
        more(a[1]);
}
extern "C" __global__ void vectors(const float4* a, float4* b) {
    b[threadIdx.x] =
        a[threadIdx.x];
}
"""
DOT = 'extern "C" __global__ void dot(float* a) {\n  a[0] *= 2;\n}\n'
RESOURCES = json.loads(files("helpers.measure.recorded").joinpath("h200_flash.json").read_text())[
    "tables"
][0]["resources"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles an entry of SOURCE; all entries are of one compilation."""
    folder = tmp_path_factory.mktemp("include")
    (folder / "more.cuh").write_text("__device__ float more(float x) { return x * 3 + 1; }\n")

    def compiled(entry, architecture="sm_90"):
        asked = dict(include_dirs=[folder], name_expressions=("copy<double>",))
        return machine_code(SOURCE, entry, (), architecture, **asked)

    return compiled


def of_chapter(file, entry=None):
    kernel = load_kernel(file, entry)
    return machine_code(kernel.code, kernel.entry, kernel.options)


def variant(name, d):
    kernel = next(one for one in contenders() if one.name == name).kernel("half", d)
    return machine_code(kernel.code, kernel.entry, kernel.options)


def opcodes(code, line):
    return [one.opcode for one in code.by_line.get(line, ())]


def refusal(*args, **options):
    with pytest.raises(SimulatorError) as caught:
        machine_code(*args, **options)
    return caught.value.kind, str(caught.value).split("\n", 1)[0]


# ---- What a kernel takes


@pytest.mark.parametrize(("name", "d"), [("baseline", 128), ("swizzled", 64), ("4 blocks", 64)])
def test_registers_and_local_memory_are_those_that_an_h200_reports(name, d):
    code, recorded = variant(name, d), RESOURCES[name][f"4,16,4096,{d}"]
    assert code.registers == recorded["registers"]
    assert code.local_bytes == recorded["local_bytes"]
    assert bool(code.spilled_bytes) == bool(recorded["local_bytes"])


def test_spilled_bytes_are_those_that_the_instructions_store():
    code = variant("4 blocks", 64)

    def moved(opcode):
        widths = [one.opcode for one in code.instructions if one.opcode.startswith(opcode)]
        return sum({"64": 8, "128": 16}.get(width.rpartition(".")[2], 4) for width in widths)

    assert code.spilled_bytes == code.spill_stores == moved("STL") > 0
    assert code.spill_loads == moved("LDL")
    assert f"{code.spilled_bytes} bytes spilled" in code.summary


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_120"])
def test_a_kernel_of_a_template_on_several_gpus(compiled, architecture):
    code = compiled("copy<double>", architecture)
    assert (code.entry, code.static_shared, code.spilled_bytes) == ("copy<double>", 64 * 8, 0)
    assert code.architecture == architecture and code.summary.startswith(architecture)
    assert "STS.64" in opcodes(code, 12)
    assert any(name.startswith("BAR.SYNC") for name in opcodes(code, 13))
    assert any(name.startswith("STG.E.64") for name in opcodes(code, 14))


# ---- What becomes of a line


def test_an_unrolled_loop_is_so_many_multiply_adds_of_its_line(compiled):
    code = compiled("dot")
    assert opcodes(code, 6).count("FFMA.FTZ") == 24
    assert code.kinds["fp32"] == 24 and code.kinds["global stores"] == 1
    assert set(code.by_line) <= {2, 3, 5, 6, 8, 9} and list(code.by_line) == sorted(code.by_line)
    count = len(code.instructions)
    assert sum(code.opcodes.values()) == sum(code.kinds.values()) == count
    assert [one.address for one in code.instructions] == list(range(0, 16 * count, 16))
    assert code.instructions[-1].opcode == "EXIT"
    assert re.search(r"FFMA.FTZ R\d+, .*all\.cu:6\n", str(code)) and code.filename == "all.cu"


def test_code_of_an_include_stands_at_the_line_that_calls_it(compiled):
    code = compiled("calls")
    assert "FFMA.FTZ" in opcodes(code, 25)
    assert {one.file for one in code.instructions} == {"all.cu"}


def test_a_subroutine_of_the_assembler_has_no_line(compiled):
    found = compiled("divide").instructions
    start = next(i for i, one in enumerate(found) if "div" in one.label)
    assert any(one.opcode.startswith("CALL") for one in found[:start])
    assert {one.line for one in found[start:]} == {None}
    assert None not in {one.line for one in found[:start]}


def test_a_predicate_stands_apart(compiled):
    guarded = [one for one in compiled("guarded").instructions if one.predicate]
    assert guarded and all(re.fullmatch(r"@!?U?P\d", one.predicate) for one in guarded)
    assert all(one.text.startswith(f"{one.predicate} {one.opcode}") for one in guarded)


def test_four_floats_are_one_load(compiled):
    loads = [name for name in opcodes(compiled("vectors"), 29) if name.startswith("LD")]
    assert "LDG.E.128" in loads and "LDG.E" not in loads


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("04_shuffle.cu", ["SHFL.DOWN"]),
        ("08_flash_baseline.cu", ["LDSM.16.M88.4", "HMMA.16816.F32", "LDGSTS.E", "MUFU.EX2"]),
    ],
)
def test_chapters_have_the_instructions_that_they_speak_of(file, names):
    code = of_chapter(file)
    for name in names:
        assert any(opcode.startswith(name) for opcode in code.opcodes), name
    assert "other" not in code.kinds


# ---- What cannot be done


def test_an_architecture_that_is_not_there():
    kind, sentence = refusal(DOT, "dot", (), "sm_91")
    assert kind == "argument" and "'sm_91'" in sentence and "sm_90" in sentence
    for other in ("compute_90", "90", 90, None):
        assert refusal(DOT, "dot", (), other)[1].startswith("There is no architecture")


def test_the_architecture_is_no_option():
    kind, sentence = refusal(DOT, "dot", ("-arch=sm_80",))
    assert kind == "argument" and "Leave -arch=compute_80 out of the options" in sentence


def test_a_source_or_a_kernel_that_is_not_right():
    assert refusal("__global__ void k( {", "k")[0] == "compile"
    kind, sentence = refusal(DOT, "dott")
    assert kind == "launch" and "Did you mean dot?" in sentence
    assert refusal(DOT, 3) == ("argument", "entry is the name of a kernel, not 3.")


def test_what_the_assembler_refuses():
    much = "__shared__ float s[16384]; s[threadIdx.x] = a[0]; __syncthreads(); a[0] = s[1];"
    source = f'extern "C" __global__ void k(float* a) {{ {much} }}'
    kind, sentence = refusal(source, "k")
    assert kind == "compile" and "uses too much shared data" in sentence


def test_without_nvdisasm_the_registers_are_still_known(monkeypatch):
    monkeypatch.setattr(sass.importlib.util, "find_spec", lambda name: None)
    sass.nvdisasm.cache_clear()
    code = machine_code(DOT.replace("2", "25"), "dot")
    assert code.registers > 0
    with pytest.raises(SimulatorError, match="install the package nvidia-cuda-nvdisasm"):
        _ = code.instructions
    sass.nvdisasm.cache_clear()


def test_what_nvdisasm_refuses_is_a_sentence():
    with pytest.raises(SimulatorError, match="nvdisasm failed: .*the cubin"):
        sass.disassemble(b"no cubin")


def test_on_macos_there_is_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "macOS" in refusal(DOT, "dot")[1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HFMA2.MMA R3, -RZ, RZ, 0.966, -0.002", "moves"),
        ("HFMA2.MMA R3, R4, R5, R6", "fp16"),
        ("@P0 IMAD.MOV.U32 R1, RZ, RZ, R2", "moves"),
        ("@!UP1 UIADD3 UR4, UR4, 0x1, URZ", "integer"),
    ],
)
def test_what_an_instruction_is_for(text, kind):
    predicate, opcode = re.match(r"(@!?U?P\d+)? ?([\w.]+)", text).groups()
    assert sass.MachineInstruction(0, text, opcode, predicate or "", "", None, "").kind == kind


def test_what_a_machine_lacks_is_said_in_a_sentence(monkeypatch):
    assert making.lacking() == ""

    def absent():
        raise SimulatorError("compile", "There is no nvdisasm here.")

    monkeypatch.setattr(making, "nvdisasm", absent)
    assert making.lacking.__wrapped__() == "There is no nvdisasm here."


def test_what_a_driver_kept_is_compiled_again_for_its_registers(monkeypatch):
    """NVRTC says nothing of a cubin that it takes out of the driver's cache, where one is."""
    real, options = NvrtcProvider._asked, []

    def asked(self, request, cubin, *more):
        options.append(more)
        answer, code = real(self, request, cubin, *more)
        return (answer if more else dataclasses.replace(answer, log="")), code

    monkeypatch.setattr(NvrtcProvider, "_asked", asked)
    monkeypatch.setenv("HELPERS_COMPILED", "off")
    code = 'extern "C" __global__ void again(float* a) { a[threadIdx.x] /= 3; }'
    assert machine_code(code, "again").registers > 4
    assert options == [(), ("--no-cache",)]
