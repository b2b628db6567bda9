"""Lines whose counters are not a GPU's are marked, and no line of the course's kernels is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from helpers import simulator
from helpers.kernels.listing import listing
from helpers.simulator.compile.compiler import compile_ptx
from helpers.simulator.compile.machine_code import machine_code_of
from helpers.simulator.machine.run import prepare
from helpers.simulator.observe import assembled, marks

COURSE = Path(__file__).resolve().parents[3] / "kernels"

KERNELS = {
    marks.HALVES: """
#include <cuda_fp16.h>
extern "C" __global__ void k(int* o) { __shared__ half s[2]; s[threadIdx.x & 1] = 0;
    atomicAdd(&s[0], __float2half(1)); //!
    o[0] = __half2float(s[0]); }""",
    marks.PRINTF: """
extern "C" __global__ void k(int* o) {
    printf("x"); //!
    o[0] = 1; }""",
    marks.HEAP: """
extern "C" __global__ void k(int* o) {
    int* p = (int*)malloc(8); //!
    o[0] = p != 0; }""",
    marks.POINTER: """
typedef int (*Function)(int);
__device__ __noinline__ int one(int x) { return x + 1; }
__device__ __noinline__ int two(int x) { return x * 2; }
__device__ Function table[2] = {one, two};
extern "C" __global__ void k(int* o) {
    o[0] = table[o[1]](3); //!
}""",
    marks.RECURSION: """
__device__ int fib(int n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2); //!
}
extern "C" __global__ void k(int* o) { o[0] = fib(5); }""",
}


@pytest.mark.parametrize("told", KERNELS)
def test_the_line_is_marked_and_its_listing_says_so(told, capsys):
    code = KERNELS[told]
    report = simulator.launch(code, "k", (1,), (1,), (np.zeros(4, np.int32),), count=True)
    rows = code.split("\n")
    at = next(n for n, row in enumerate(rows, 1) if "//!" in row)
    assert at in report.marks and set(report.marks.values()) == {told}
    assert told is marks.RECURSION or list(report.marks) == [at]
    shown = listing(code, 1, len(rows), title="k", report=report, columns=("instructions",))
    assert f"line {at}: {told}" in repr(shown)
    assert f"Line {at}: {told}" in shown.html().replace("&#39;", "'")


def test_atomics_of_32_bits_are_counted():
    code = 'extern "C" __global__ void k(int* o) { atomicAdd(o, 1); }'
    report = simulator.launch(code, "k", (1,), (1,), (np.zeros(4, np.int32),), count=True)
    assert report.marks == {}


@pytest.mark.parametrize(
    ("blocks", "machine", "agree"),
    [
        ([{4: 8}], {4: 8}, True),
        ([{4: 8}], {16: 2}, False),  # joined, and nobody counted it so
        ([{4: 4}, {4: 1}], {4: 29}, True),  # by four, two and one, and a rest
        ([{16: 1}, {4: 1}], {16: 7, 4: 1}, True),
        ([{16: 1, 4: 4}], {16: 2, 4: 3}, False),
        ([{8: 2}, {8: 1, 4: 1}], {8: 5, 4: 1}, True),
        ([{8: 2}, {8: 1, 4: 1}], {8: 4, 4: 2}, True),
        ([{8: 2}, {8: 1, 4: 1}], {8: 4, 4: 1}, False),
        ([{4: 1}, {4: 1}], {4: 1}, False),  # two branches' loads made one
        ([], {4: 2}, False),
        ([], {}, True),
    ],
)
def test_copies_of_blocks_are_to_give_the_machine_s_instructions(blocks, machine, agree):
    assert assembled.agree(map(Counter, blocks), Counter(machine)) is agree


def test_registers_that_do_not_suffice_are_told():
    code = """extern "C" __global__ void k(float* o) {
        float x[48];
        #pragma unroll
        for (int i = 0; i < 48; i++) x[i] = o[i * 40];
        __syncthreads();
        float v = 0.f;
        #pragma unroll 1
        for (int k = 0; k < 30; k++) v = v * x[0] + x[k % 2 + 1];
        #pragma unroll
        for (int i = 0; i < 48; i++) o[i * 40] = x[i] * v;
    }"""
    report = simulator.launch(
        code, "k", (1,), (1,), (np.zeros(1920, np.float32),), ("--maxrregcount=32",)
    )
    assert report.machine_code().spilled_bytes
    assert any(assembled.SPILLED in told for told in report.marks.values())
    assert report.marks_at_hand == report.marks


# What TMA moves is not counted yet, so that kernels of chapter 11 are marked.
MARKED = [file for file in COURSE.glob("*.cu") if "hopper.cuh" in file.read_text()]


@pytest.mark.parametrize(
    "file", sorted(set(COURSE.glob("*.cu")) - set(MARKED)), ids=lambda file: file.stem
)
def test_no_kernel_of_the_course_is_marked(file):
    compiled = compile_ptx(file.read_text(), include_dirs=[COURSE / "include"])
    prepared = prepare(compiled)
    assert marks.not_counted(prepared.module, prepared.module.functions.values()) == {}
    for symbol, name in compiled.entries.items():
        prepared.need(symbol)
        machine = machine_code_of(compiled.request, name, assembled.ARCHITECTURE)
        assert assembled.differences(prepared.codes[symbol], machine) == {}


# Words of shared memory, of a thread's 16 bytes and beyond, in the order in which they are stored.
AGAIN = ("0 0", "0 0 0", "0 4 4 0", "0 4 8 12 0 4 8 12 0", "0 0 4 8 12", "0 4 0 8 12", "4 0 4",
         "0 512 0 512", "0 512 512 0", "512 0 0 516", "0 8 0 4", "0 4 512 0 4", "0 0 512 0",
         "0 512 4 512 0")  # fmt: skip


def test_a_word_that_is_stored_again_is_counted_as_the_assembler_has_it():
    """Or its line is marked, as the last two are: there ptxas keeps stores that it drops above."""
    bodies = [
        "".join(f'asm volatile("st.shared.u32 [%0+{at}], %1;" :: "r"(b), "r"(n + {n}) : "memory");'
                for n, at in enumerate(words.split()))
        for words in AGAIN
    ]  # fmt: skip
    code = "\n".join(
        f'extern "C" __global__ void k{k}(float* o, int n) {{ extern __shared__ uint4 s[];'
        "unsigned b = (unsigned)__cvta_generic_to_shared(s) + 16 * threadIdx.x;"
        f"{body} o[0] = 1; }}"
        for k, body in enumerate(bodies)
    )
    args = (np.zeros(1, np.float32), np.int32(7))
    marked = []
    for k, words in enumerate(AGAIN):
        report = simulator.launch(code, f"k{k}", 1, 32, args, shared_mem=2048)
        made = simulator.machine_code(code, f"k{k}").instructions
        stores = [i.text for i in made if i.text.startswith("STS")]
        if report.marks:
            marked.append(words)
        else:
            assert report.counters["shared_store_instructions"] == len(stores), words
    assert marked == list(AGAIN[-2:])
