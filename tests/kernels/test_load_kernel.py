"""Kernel files: parameters, includes, launches, and the files of `kernels/` themselves."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import simulator
from helpers.gpu import device
from helpers.kernels import KERNELS, KernelError, load_kernel
from helpers.simulator.compile.compiler import compile_ptx
from helpers.simulator.errors import SimulatorError

FILE = """\
// Scales a vector.

#ifndef TILE
#define TILE 16  // [8, 16, 0x20] threads along each edge of a tile
#endif
#ifndef ELEMENT
#define ELEMENT float  // [float, half, unsigned int] element type
#endif
#ifndef FACTOR

#define FACTOR 0.5f // [0.5f, 2.0f, 1e-3f] what to multiply by
#endif
#ifndef DEPTH
#define DEPTH 2  // no list of choices: no parameter
#endif
#define WIDTH 3  // [3, 4] not guarded: no parameter
/*
#ifndef OLD
#define OLD 3  // [3, 4] in a comment: no parameter
#endif
*/

extern "C" __global__ void scale(ELEMENT* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = a[i] * FACTOR * TILE;
}
"""

TWO = (
    'extern "C" __global__ void first(int* a) { a[0] = 1; }\n'
    'extern "C" __global__ void second(int* a) { a[0] = 2; }\n'
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "scale.cu").write_text(FILE)
    (tmp_path / "two.cu").write_text(TWO)
    return tmp_path


def refused(file, *args, **keywords):
    with pytest.raises(KernelError) as caught:
        load_kernel(file, *args, **keywords)
    return str(caught.value)


def write(folder, name, text):
    (folder / name).write_text(text)
    return load_kernel(name, kernels_dir=folder)


# ---- Parameters


def test_parameters_are_read_from_the_file(folder):
    k = load_kernel("scale.cu", kernels_dir=folder)
    assert list(k.parameters) == ["TILE", "ELEMENT", "FACTOR"]
    tile, element, factor = k.parameters.values()
    assert (tile.value, tile.default, tile.choices) == (16, 16, (8, 16, 32))
    assert tile.description == "threads along each edge of a tile"
    assert tile.line == 4
    assert (element.value, element.choices) == ("float", ("float", "half", "unsigned int"))
    assert (factor.value, factor.choices) == (0.5, (0.5, 2.0, 0.001))
    assert k.options == ("-std=c++17", "-DTILE=16", "-DELEMENT=float", "-DFACTOR=0.5f")
    assert repr(k) == "<Kernel scale of scale.cu, TILE=16, ELEMENT=float, FACTOR=0.5>"


def test_values_are_set_as_the_file_writes_them(folder):
    k = load_kernel(
        "scale.cu", kernels_dir=folder, TILE=np.int64(32), ELEMENT="unsigned int", FACTOR=0.001
    )
    assert k.options[1:] == ("-DTILE=0x20", "-DELEMENT=unsigned int", "-DFACTOR=1e-3f")
    assert k.parameters["TILE"].value == 32 and k.parameters["TILE"].default == 16
    assert k.arguments[0].dtypes == ("uint32",)
    assert "scale" in compile_ptx(k.code, k.options).entries
    with pytest.raises(TypeError):
        k.parameters["TILE"] = 8


def test_an_unknown_parameter_is_named_with_those_there_are(folder):
    assert refused("scale.cu", kernels_dir=folder, TILES=8) == (
        "scale.cu has no parameter TILES; its parameters are TILE (8, 16, 32), ELEMENT (float, "
        "half, unsigned int), FACTOR (0.5, 2.0, 0.001). Did you mean TILE?"
    )
    assert refused("two.cu", "first", kernels_dir=folder, TILE=8) == (
        "two.cu has no parameter TILE; it declares none."
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"TILE": 12}, "scale.cu: the parameter TILE is one of 8, 16, 32, not 12."),
        ({"TILE": "16"}, "scale.cu: the parameter TILE is one of 8, 16, 32, not '16'."),
        (
            {"ELEMENT": "double"},
            "scale.cu: the parameter ELEMENT is one of float, half, unsigned int, not 'double'.",
        ),
        ({"ELEMENT": 0}, "is one of float, half, unsigned int, not 0."),
        ({"FACTOR": 0.25}, "scale.cu: the parameter FACTOR is one of 0.5, 2.0, 0.001, not 0.25."),
    ],
)
def test_a_value_outside_the_choices_is_refused(folder, values, sentence):
    assert sentence in refused("scale.cu", kernels_dir=folder, **values)


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ("16  // [8, 16", "a.cu line 2: the parameter TILE has a list of choices without a clos"),
        ("16  // [8, 32] x", "a.cu line 2: the parameter TILE has the default 16, not one of [8,"),
        ("16  // [8, , 16] x", "the parameter TILE has an empty choice in [8, , 16]."),
        ("16  // [8, 16, 8] x", "the parameter TILE lists a choice twice in [8, 16, 8]."),
        ("8  // [8, half] x", "the parameter TILE mixes numbers and names, or int and float, in"),
        ("8  // [8, 1.5] x", "the parameter TILE mixes numbers and names, or int and float, in"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(folder, declaration, sentence):
    (folder / "a.cu").write_text(f"#ifndef TILE\n#define TILE {declaration}\n#endif\n{TWO}")
    assert sentence in refused("a.cu", "first", kernels_dir=folder)


def test_a_parameter_declared_twice_is_refused(folder):
    guarded = "#ifndef A\n#define A 1  // [1, 2] x\n#endif\n"
    (folder / "a.cu").write_text(guarded * 2 + TWO)
    assert "parameter A is declared twice, first on line 2" in refused(
        "a.cu", "first", kernels_dir=folder
    )


# ---- Files and entries


def test_an_unknown_file_is_named_with_those_there_are(folder):
    assert refused("scales.cu", kernels_dir=folder) == (
        f"There is no kernel file scales.cu in {folder.name}: it has scale.cu, two.cu. "
        "Did you mean scale.cu?"
    )


def test_a_file_is_found_by_its_path(folder, monkeypatch):
    assert load_kernel(folder / "scale.cu").file == folder / "scale.cu"
    monkeypatch.chdir(folder.parent)
    assert load_kernel(f"{folder.name}/scale.cu").entry == "scale"


def test_entries(folder):
    assert load_kernel("scale.cu", kernels_dir=folder).entry == "scale"
    assert load_kernel("two.cu", "second", kernels_dir=folder).entry == "second"
    assert refused("two.cu", kernels_dir=folder) == (
        'two.cu has 2 kernels (first, second); name one, as in load_kernel("two.cu", "first").'
    )
    assert refused("two.cu", "secnd", kernels_dir=folder) == (
        "two.cu has no kernel secnd; it has first, second. Did you mean second?"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__device__ int x;\n", 'a.cu has no kernel: write one as extern "C" __global__ void.'),
        (
            "\n__global__ void k(int* a) {}\n",
            'a.cu line 2: the kernel k does not start with extern "C", so it has no plain name to '
            'be found by; write extern "C" __global__ void k(...).',
        ),
        (
            "template <int N>\n__global__ void k(int* a) {}\n",
            "a.cu line 1: the kernel k is a template, so it has no plain name",
        ),
    ],
)
def test_a_kernel_that_has_no_plain_name_is_refused(folder, text, sentence):
    (folder / "a.cu").write_text(text)
    assert sentence in refused("a.cu", kernels_dir=folder)


# ---- Includes


def lines_of(code):
    """(file, line) -> text of expanded code, by the `#line` directives alone."""
    found, file, line = {}, None, 0
    for text in code.split("\n"):
        directive = re.match(r'#line (\d+) "(.*)"', text)
        if directive:
            line, file = int(directive[1]), directive[2]
        else:
            found.setdefault((file, line), []).append(text)
            line += 1
    return found


def test_includes_are_expanded_once_with_their_own_line_numbers(folder):
    (folder / "include" / "outer.cuh").write_text(
        '#pragma once\n#include "inner.cuh"\n__device__ float outer(float x) { return inner(x); }\n'
    )
    (folder / "include" / "inner.cuh").write_text(
        "\n__device__ float inner(float x) { return x * 3.0f; }"
    )
    k = write(
        folder,
        "a.cu",
        "// one\n"
        '#include "outer.cuh"  // why\n'
        '#include "inner.cuh"\n'
        "#include <cuda_fp16.h>\n"
        '// #include "none.cuh"\n'
        'extern "C" __global__ void k(float* a) {\n'
        "    a[0] = outer(a[1]);\n"
        "}\n",
    )
    assert k.code.startswith('#line 1 "a.cu"\n// one\n')
    assert k.code.count("return x * 3.0f") == 1
    where = lines_of(k.code)
    assert where["include/inner.cuh", 2] == ["__device__ float inner(float x) { return x * 3.0f; }"]
    assert where["include/outer.cuh", 3] == ["__device__ float outer(float x) { return inner(x); }"]
    assert where["a.cu", 4] == ["#include <cuda_fp16.h>"]
    assert where["a.cu", 7] == ["    a[0] = outer(a[1]);"]
    ptx = compile_ptx(k.code, k.options).ptx
    files = dict(re.findall(r'\.file\s+(\d+) "([^"]*)"', ptx))
    assert set(files.values()) == {"a.cu", "include/inner.cuh", "include/outer.cuh"}
    seen = {(files[f], int(n)) for f, n in re.findall(r"\.loc\s+(\d+) (\d+)", ptx)}
    assert seen == {("a.cu", 6), ("a.cu", 7), ("a.cu", 8), ("include/inner.cuh", 2)} | {
        ("include/outer.cuh", 3)
    }


def test_errors_in_a_file_and_in_its_include_keep_their_lines(folder):
    header = folder / "include" / "f.cuh"
    header.write_text("\n\n__device__ int f() { return 1; }\n")
    text = '\n#include "f.cuh"\n\nextern "C" __global__ void k(int* a) {\n    a[0] = f();\n}\n'
    (folder / "a.cu").write_text(text.replace("f();", "g();"))
    k = load_kernel("a.cu", kernels_dir=folder)
    with pytest.raises(SimulatorError, match=r'^a\.cu:5: error: identifier "g" is undef') as caught:
        compile_ptx(k.code, k.options)
    assert caught.value.line == 5
    (folder / "a.cu").write_text(text)
    header.write_text("\n\n__device__ int f() { return one; }\n")
    k = load_kernel("a.cu", kernels_dir=folder)
    with pytest.raises(SimulatorError, match=r'^include/f\.cuh:3: error: identifier "one" is'):
        compile_ptx(k.code, k.options)


def test_an_include_that_an_if_leaves_out_can_come_again(folder):
    (folder / "include" / "f.cuh").write_text("__device__ int f() { return 7; }\n")
    k = write(
        folder,
        "a.cu",
        '#if 0\n#include "f.cuh"\n#endif\n#include "f.cuh"\n#include "f.cuh"\n'
        'extern "C" __global__ void k(int* a) { a[0] = f(); }\n',
    )
    assert compile_ptx(k.code, k.options).entries == {"k": "k"}
    assert k.code.count("return 7") == 2
    assert lines_of(k.code)["a.cu", 6] == ['extern "C" __global__ void k(int* a) { a[0] = f(); }']


def test_include_guards_and_angle_brackets_of_own_files(folder):
    guarded = "#ifndef F_CUH\n#define F_CUH\n__device__ int f() { return 7; }\n#endif\n"
    (folder / "include" / "f.cuh").write_text(guarded)
    k = write(
        folder,
        "a.cu",
        '#include <f.cuh>\n#include "include/f.cuh"\nextern "C" __global__ void k(int* a) '
        "{ a[0] = f(); }\n",
    )
    assert "#include" not in k.code
    assert compile_ptx(k.code, k.options).entries == {"k": "k"}


def test_a_missing_include_is_named(folder):
    (folder / "a.cu").write_text('\n#include "swizle.cuh"\n' + TWO)
    assert refused("a.cu", "first", kernels_dir=folder) == (
        'a.cu line 2 includes "swizle.cuh", which is not in include; headers of the CUDA toolkit '
        "go in angle brackets: #include <swizle.cuh>."
    )


def test_a_cycle_of_includes_is_named(folder):
    (folder / "include" / "a.cuh").write_text('\n#include "b.cuh"\n')
    (folder / "include" / "b.cuh").write_text('#include "a.cuh"\n')
    (folder / "a.cu").write_text('#include "a.cuh"\n' + TWO)
    assert refused("a.cu", "first", kernels_dir=folder) == (
        "include/b.cuh line 1 includes include/a.cuh, which includes itself again: include/a.cuh "
        "-> include/b.cuh -> include/a.cuh; take one of these #include lines out."
    )


def test_an_edited_header_is_never_stale(folder):
    header = folder / "include" / "factor.cuh"
    text = '#include "factor.cuh"\nextern "C" __global__ void k(float* a) { a[0] *= FACTOR; }\n'
    header.write_text("#define FACTOR 4.0f\n")
    k = write(folder, "a.cu", text)
    before = compile_ptx(k.code, k.options).ptx
    header.write_text("#define FACTOR 8.0f\n")
    edited = load_kernel("a.cu", kernels_dir=folder)
    after = compile_ptx(edited.code, edited.options).ptx
    assert "0f40800000" in before and "0f41000000" not in before
    assert "0f41000000" in after and "0f40800000" not in after
    # What CuPy keeps on disk goes by the source text, which therefore must hold the header's.
    assert edited.code != k.code


# ---- Launches, against a stand-in for `cp`


class FakeRaw:
    def __init__(self, code, name, options):
        self.code, self.name, self.options = code, name, options
        self.launches = []
        self.compiled = 0
        self.shared_size_bytes = 1000
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def compile(self):
        self.compiled += 1

    def __call__(self, grid, block, args, *, shared_mem=0):
        self.launches.append((grid, block, args, shared_mem, self.max_dynamic_shared_size_bytes))


@pytest.fixture
def fake_cp(monkeypatch):
    cp = SimpleNamespace(ndarray=np.ndarray, RawKernel=FakeRaw)
    monkeypatch.setattr(device, "cp", cp)
    return cp


def test_a_launch_goes_through_raw_kernel(folder, fake_cp):
    k = load_kernel("scale.cu", kernels_dir=folder, TILE=8)
    a = np.arange(5, dtype=np.float32)
    k(np.int64(1), (32,), (a, 5))
    k((2,), 32, [a, np.int64(4)])
    raw = k.raw
    assert (raw.code, raw.name, raw.options) == (k.code, "scale", k.options)
    assert raw.compiled == 1
    first, second = raw.launches
    assert first[:2] == ((1, 1, 1), (32, 1, 1)) and first[3:] == (0, 48 * 1024)
    assert first[2][0] is a
    assert (first[2][1], first[2][1].dtype) == (5, np.int32)
    assert (second[0], second[2][1].dtype) == ((2, 1, 1), np.int32)


def test_a_launch_that_cannot_work_never_reaches_the_kernel(folder, fake_cp):
    k = load_kernel("scale.cu", kernels_dir=folder)
    a = np.ones(4, np.float32)
    for grid, block, args in (
        (1, (33, 33), (a, 4)),
        (0, 32, (a, 4)),
        (1, 32, (a,)),
        (1, 32, (a.astype(np.float64), 4)),
        (1, 32, (a[::2], 2)),
        (1, 32, (a, 4.5)),
    ):
        with pytest.raises(KernelError, match="^scale"):
            k(grid, block, args)
    assert k._raw is None


def test_more_than_48_kb_of_shared_memory_is_asked_for(folder, fake_cp):
    k = load_kernel("scale.cu", kernels_dir=folder)
    args = (np.ones(4, np.float32), 4)
    for size in (100, 48 * 1024 - 1000, 48 * 1024 - 999, 100_000, 60_000):
        k(1, 32, args, shared_mem=size)
    # 1,000 bytes are the kernel's own, and the 48 KB without asking count them too.
    assert [launch[3:] for launch in k.raw.launches] == [
        (100, 49_152),
        (48_152, 49_152),
        (48_153, 48_153),
        (100_000, 100_000),
        (60_000, 100_000),
    ]
    with pytest.raises(KernelError, match="more than the 232,448 that a block can have"):
        k(1, 32, args, shared_mem=232_448 - 999)
    fake_cp.cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(attributes={"MaxSharedMemoryPerBlockOptin": 101_376})
    )
    with pytest.raises(KernelError, match="more than the 101,376 that a block can have"):
        k(1, 32, args, shared_mem=110_000)


def test_a_compile_error_of_cupy_reads_like_ours(folder, fake_cp):
    class CompileException(Exception):
        pass

    def fail(self):
        raise CompileException('scale.cu(25): error: identifier "x" is undefined\n  x;\n  ^\n')

    fake_cp.RawKernel = type("Raw", (FakeRaw,), {"compile": fail})
    k = load_kernel("scale.cu", kernels_dir=folder)
    with pytest.raises(SimulatorError) as caught:
        k(1, 32, (np.ones(4, np.float32), 4))
    assert (caught.value.kind, caught.value.line) == ("compile", 25)
    assert str(caught.value).startswith('scale.cu:25: error: identifier "x" is undefined.\n')


def test_count_runs_the_simulator_on_copies(folder, fake_cp, monkeypatch):
    calls = []

    def launch(code, entry, grid, block, args, options=(), shared_mem=0, **rest):
        calls.append((code, entry, grid, block, args, options, shared_mem, rest))
        args[0][:] = 7
        return "report"

    monkeypatch.setattr(simulator, "launch", launch)
    k = load_kernel("scale.cu", kernels_dir=folder)
    a = np.arange(4, dtype=np.float32)
    assert k.count(2, (8, 4), (a, 4), shared_mem=64, count=False) == "report"
    ((code, entry, grid, block, args, options, shared_mem, rest),) = calls
    assert (code, entry, options, shared_mem) == (k.code, "scale", k.options, 64)
    opted = {"max_dynamic_shared": 64}
    assert (grid, block, rest) == ((2, 1, 1), (8, 4, 1), {"count": False} | opted)
    assert args[0].dtype == np.float32 and args[1].dtype == np.int32
    assert a.tolist() == [0, 1, 2, 3]
    with pytest.raises(KernelError, match="n is missing"):
        k.count(2, 32, (a,))


def test_count_keeps_an_array_that_is_passed_twice_one_array(folder, fake_cp, monkeypatch):
    seen = []
    monkeypatch.setattr(simulator, "launch", lambda *a, **k: seen.append(a[4]))
    k = write(
        folder,
        "a.cu",
        'extern "C" __global__ void k(const float* a, float* b, const float* c) { b[0] = a[0]; }\n',
    )
    x, y = np.ones(2, np.float32), np.ones(3, np.float32)
    k.count(1, 1, (x, x, y))
    a, b, c = seen[0]
    assert a is b and a is not x
    assert np.shares_memory(c, y)  # only read, so no copy is needed


# ---- The files of kernels/


def parameter_sets(file):
    """The defaults, and each parameter at each of its choices."""
    entry = re.search(r"__global__ void (\w+)", file.read_text())[1]
    parameters = load_kernel(file.name, entry).parameters.values()
    yield {}
    for parameter in parameters:
        for choice in parameter.choices:
            if choice != parameter.default:
                yield {parameter.name: choice}


ELSEWHERE = re.compile(r"0[3-9]_|1[01][a-g]_")  # tests of these kernels run them at every choice
CASES = [
    pytest.param(file, values, id=f"{file.stem}-{values}")
    for file in sorted(KERNELS.glob("*.cu"))
    if not ELSEWHERE.match(file.name)
    for values in parameter_sets(file)
]


@pytest.mark.parametrize(("file", "values"), CASES)
def test_the_kernels_compile_at_every_choice(file, values):
    entries = re.findall(r'^extern "C" __global__ void (\w+)', file.read_text(), re.M)
    k = load_kernel(file.name, entries[0], **values)
    compiled = compile_ptx(k.code, k.options)
    assert list(compiled.entries) == entries
    assert compiled.log == ""
    assert compiled.filename == file.name
    text = file.read_text().split("\n")
    (own,) = re.findall(rf'\.file\s+(\d+) "{file.name}"', compiled.ptx)
    for number in set(re.findall(rf"\.loc\s+{own} (\d+)", compiled.ptx)) - {"0"}:
        assert text[int(number) - 1].strip()


def test_the_naive_kernels_take_their_sizes_in_64_bits():
    code = load_kernel("02_naive.cu", "softmax").code
    ptx = compile_ptx(code, ("-std=c++17",)).ptx
    # No 32-bit product may reach an address: N * N passes 2^31 from N = 46341 on.
    assert "mul.lo.s32" not in ptx and "mad.lo.s32" not in ptx


@pytest.mark.parametrize(
    ("file", "entry", "names"),
    [
        ("00_vector_add.cu", None, "a b c n"),
        ("02_naive.cu", "scaled_dot_product", "Q K S N d"),
        ("02_naive.cu", "softmax", "S P N"),
        ("02_naive.cu", "pv_multiply", "P V O N d"),
    ],
)
def test_signatures_of_the_kernels(file, entry, names):
    arguments = load_kernel(file, entry).arguments
    assert [a.name for a in arguments] == names.split()
    pointers = [a for a in arguments if a.pointer]
    assert [a.constant for a in pointers] == [True] * (len(pointers) - 1) + [False]
    assert {a.dtypes for a in pointers} == {("float32",)}
    assert {a.dtypes for a in arguments if not a.pointer} == {("int32",)}
