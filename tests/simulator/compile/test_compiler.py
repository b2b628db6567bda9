"""CUDA C to PTX: what NVRTC makes, what it refuses, and what is remembered."""

import re

import pytest

from helpers.simulator.compile import compiler
from helpers.simulator.compile.compile_errors import parse_log
from helpers.simulator.compile.compiler import FolderProvider, compile_ptx, set_provider, store
from helpers.simulator.compile.entry_names import source_name
from helpers.simulator.compile.source_text import includes, mask, numbered_lines
from helpers.simulator.errors import SimulatorError

KERNEL = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] *= a[3]; }\n'


@pytest.fixture(autouse=True)
def nvrtc_again():
    yield
    set_provider(None)


def refusal(code, options=(), **keywords):
    with pytest.raises(SimulatorError) as caught:
        compile_ptx(code, options, **keywords)
    return caught.value


def first_line(error):
    return str(error).split("\n", 1)[0]


# ---- What comes out


def test_defaults_are_those_of_cupy_and_lines_are_kept():
    compiled = compile_ptx("\n\n" + KERNEL)
    assert compiled.ptx.rstrip().endswith('.file\t1 "kernel.cu"')
    assert ".target sm_90\n" in compiled.ptx
    assert "mul.ftz.f32" in compiled.ptx
    assert set(re.findall(r"\.loc\s+(\d+ \d+)", compiled.ptx)) == {"1 3"}
    assert compiled.entries == {"k": "k"}
    assert compiled.filename == "kernel.cu"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("-arch=sm_90a", ".target sm_90a"),
        ("--gpu-architecture=compute_80", ".target sm_80"),
        ("--use_fast_math", "mul.ftz.f32"),
    ],
)
def test_options_of_the_caller_win(option, expected):
    compiled = compile_ptx(KERNEL, (option,))
    assert expected in compiled.ptx
    assert "followed by" not in compiled.log  # NVRTC's warning when an option is given twice


@pytest.mark.parametrize("options", [("--ftz=false",), ("-use_fast_math", "-ftz=false")])
def test_subnormals_are_flushed_whatever_is_asked_for_as_cupy_does(options):
    assert "mul.ftz.f32" in compile_ptx(KERNEL, options).ptx


@pytest.mark.parametrize(
    ("wrong", "told", "right"),
    [
        ("(float2){a[0], 2}", "write float2{...} or make_float2(...).", "float2{a[0], 2}"),
        (
            "[=] __device__ (auto x) { return x; }",
            "leave __device__ out",
            "[=](auto x) { return x; }",
        ),
    ],
)
def test_what_nvrtc_does_not_take_is_told_otherwise(wrong, told, right):
    code = 'extern "C" __global__ void k(float* a) {{ auto b = {}; }}'
    assert told in str(refusal(code.format(wrong)))
    compile_ptx(code.format(right))


def test_options_may_stand_in_two_parts():
    compiled = compile_ptx(
        'extern "C" __global__ void k(TYPE* a) { *a = VALUE; }',
        ["-D", "TYPE=unsigned int", "-D", "VALUE=77u", "-arch", "sm_80"],
    )
    assert "mov.u32" in compiled.ptx and "77" in compiled.ptx
    assert ".target sm_80" in compiled.ptx


def test_language_is_cpp17_unless_asked():
    code = KERNEL + "static_assert(__cplusplus == YEARL);"
    compile_ptx(code.replace("YEAR", "201703"))
    compile_ptx(code.replace("YEAR", "202002"), ("--std=c++20",))
    assert "static assert" in str(refusal(code.replace("YEAR", "201703"), ("-std=c++14",)))


@pytest.mark.parametrize(
    ("header", "use"),
    [
        (
            "cuda_fp16.h",
            "half x = __hadd(__float2half(a[0]), __float2half(a[1])); a[2] = (float)x;",
        ),
        ("cuda_bf16.h", "__nv_bfloat16 x = __float2bfloat16(a[0]); a[2] = __bfloat162float(x);"),
        ("mma.h", "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;"),
    ],
)
def test_headers_of_the_toolkit_compile(header, use):
    code = f'#include <{header}>\nextern "C" __global__ void k(float* a) {{ {use} }}\n'
    assert compile_ptx(code).entries == {"k": "k"}


def test_no_path_of_this_machine_is_in_the_ptx(tmp_path):
    (tmp_path / "scale.cuh").write_text("__device__ float scale(float x)\n{\n  return x * x;\n}\n")
    code = '#include "scale.cuh"\n#include <cuda_fp16.h>\n' + KERNEL.replace("a[3]", "scale(a[3])")
    compiled = compile_ptx(code, (f"-I{tmp_path}",))
    files = re.findall(r'\.file\s+\d+\s+"([^"]*)"', compiled.ptx)
    assert sorted(files) == ["kernel.cu", "scale.cuh"]
    assert list(compiled.includes) == ["scale.cuh"]


# ---- Names of kernels


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("softmax", "softmax"),
        ("_Z1kPfi", "k"),
        ("_ZN3one3two1kEPf", "one::two::k"),
        ("_Z1tIfLi3EEvPT_", "t<float, 3>"),
        ("_Z1tIdLin1EEvPT_", "t<double, -1>"),
        ("_Z1tIPKyLb1EEvT_", "t<const unsigned long long*, true>"),
        ("_ZN27_GLOBAL__N__0a1b2c3d_4_k_cu1kEPf", "(anonymous namespace)::k"),
        ("_ZL1kPf", "k"),
        ("_Z1tISt5arrayIfLm4EEEvT_", "_Z1tISt5arrayIfLm4EEEvT_"),
        ("_Z9bad", "_Z9bad"),
    ],
)
def test_source_names_of_mangled_names(mangled, name):
    assert source_name(mangled) == name


def test_source_names_agree_with_the_compiler():
    code = """
    template <typename T> struct Pair { T x, y; };
    namespace deep { namespace er {
    template <typename T, int N> __global__ void scale(T* a) { a[threadIdx.x].x *= N; }
    } }
    template <typename A, typename B, bool C> __global__ void mix(A* a, const B* b) { a[0] = C; }
    """
    names = (
        "deep::er::scale<Pair<float>, 3>",
        "deep::er::scale<Pair<long long>, -7>",
        "mix<unsigned short, const float*, true>",
        "mix<double, unsigned char, false>",
    )
    compiled = compile_ptx(code, name_expressions=names)
    assert {source_name(mangled) for mangled in compiled.names.values()} == set(names)
    for name in names:
        assert compiled.entry(name) == compiled.names[name]
        assert f".entry {compiled.names[name]}(" in compiled.ptx


def test_a_cpp_kernel_is_found_by_its_plain_name():
    code = "namespace deep { __global__ void k(float* a, int n) { a[n] = 1; } }\n"
    code += "__global__ void other(int* a) { *a = 2; }"
    compiled = compile_ptx(code)
    assert compiled.entry("k") == "_ZN4deep1kEPfi"
    assert compiled.entry("deep::k") == "_ZN4deep1kEPfi"
    assert compiled.entry("_Z5otherPi") == "_Z5otherPi"


def test_a_name_with_two_meanings_is_refused():
    code = "__global__ void k(int* a) { *a = 2; }\n__global__ void k(float* a) { *a = 1; }"
    with pytest.raises(SimulatorError, match=r"2 kernels that k may mean.*extern \"C\"") as caught:
        compile_ptx(code).entry("k")
    assert caught.value.kind == "launch"


def test_an_unknown_kernel_is_named_with_those_there_are():
    compiled = compile_ptx(KERNEL + KERNEL.replace("void k", "void softmax"))
    with pytest.raises(SimulatorError) as caught:
        compiled.entry("softmx")
    assert caught.value.kind == "launch"
    assert str(caught.value) == (
        "kernel.cu has no kernel softmx; it has k, softmax. Did you mean softmax? "
        'A kernel is found by its name when it starts with extern "C" __global__ void.'
    )
    with pytest.raises(SimulatorError, match="no __global__ function at all"):
        compile_ptx("__device__ int x;").entry("k")


# ---- What is refused


def test_a_compile_error_shows_sentence_line_caret_and_log():
    error = refusal('// one\nextern "C" __global__ void k(float* a) {\n    a[0] = b;\n}\n')
    assert (error.kind, error.line) == ("compile", 3)
    assert str(error) == (
        'kernel.cu:3: error: identifier "b" is undefined.\n'
        "\n"
        "  3 |     a[0] = b;\n"
        "    |            ^\n"
        "\n"
        "NVRTC's log:\n"
        'kernel.cu(3): error: identifier "b" is undefined\n'
        "      a[0] = b;\n"
        "             ^\n"
        "\n"
        '1 error detected in the compilation of "kernel.cu".'
    )


def test_the_first_error_counts_though_a_warning_comes_before():
    code = 'extern "C" __global__ void k(float* a) {\n int unused;\n\n a[0] = b;\n}'
    error = refusal(code)
    assert error.line == 4
    assert "unused" not in first_line(error) and "unused" in str(error)


def test_an_error_in_an_included_file_has_that_files_name_and_line(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "outer.cuh").write_text('#include "inner.cuh"\n')
    (tmp_path / "sub" / "inner.cuh").write_text("\n\n__device__ int f() { return nothing; }\n")
    error = refusal('\n#include "sub/outer.cuh"\n' + KERNEL, ("-I", str(tmp_path)))
    assert first_line(error) == 'sub/inner.cuh:3: error: identifier "nothing" is undefined.'
    assert error.line is None
    assert str(tmp_path) not in str(error)


def test_line_directives_rename_the_source():
    code = '#line 1 "02_naive.cu"\n#line 1 "include/x.cuh"\n#define X 1\n#line 7 "02_naive.cu"\n'
    assert compile_ptx(code + KERNEL).filename == "02_naive.cu"
    error = refusal(code + "\n" + KERNEL.replace("a[3]", "b"))
    assert first_line(error).startswith("02_naive.cu:8: error: ")
    assert error.line == 8


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("INFINITY", "__int_as_float(0x7f800000)"),
        ("NAN", "__int_as_float(0x7fffffff)"),
        ("FLT_MAX", "3.402823466e+38f"),
        ("FLT_MIN", "1.175494351e-38f"),
        ("DBL_MAX", "1.7976931348623157e+308"),
        ("INT_MAX", "2147483647"),
        ("UINT_MAX", "0xffffffffu"),
        ("M_PI", "3.14159265358979f"),
        ("uint32_t", "unsigned int"),
        ("uint8_t", "unsigned char"),
        ("int64_t", "long long"),
        ("uint64_t", "unsigned long long"),
        ("uintptr_t", "size_t"),
    ],
)
def test_what_cupy_does_not_have_fails_here_too_and_the_advice_compiles(name, instead):
    code = 'extern "C" __global__ void k(double* a) {{ a[0] = ({})(a[1] > 2); }}'
    if not name.endswith("_t"):
        code = 'extern "C" __global__ void k(double* a) {{ a[0] = {}; }}'
    error = refusal(code.format(name))
    assert first_line(error) == (
        f'kernel.cu:1: error: identifier "{name}" is undefined. NVRTC compiles without the '
        f"host's headers, on a GPU as well: write {instead} instead."
    )
    if " " in instead and name.endswith("_t"):
        code = code.replace("({})(", "static_cast<{}>(")
    compile_ptx(code.format(instead))


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("stdint.h", "unsigned int for uint32_t"),
        ("cstdint", "unsigned int for uint32_t"),
        ("math.h", "leave the #include out"),
        ("cmath", "leave the #include out"),
        ("float.h", "3.402823466e+38f for FLT_MAX"),
        ("cfloat", "3.402823466e+38f for FLT_MAX"),
        ("limits.h", "2147483647 for INT_MAX"),
        ("assert.h", "assert() is there"),
        ("stdio.h", "printf() is there"),
        ("cuda.h", "leave it out"),
        ("stdlib.h", "host code"),
        ("vector", "host code"),
        ("iostream", "host code"),
        ("ranges", "the C++ standard library is not there"),
        ("type_traits", "write #include <cuda/std/type_traits>"),
        ("curand_kernel.h", "nvidia-curand"),
        ("helper_cuda.h", "host code"),
        ("texture_fetch_functions.h", "no textures"),
        ("nothing.cuh", "No folder given with -I holds it"),
    ],
)
def test_headers_that_cupy_does_not_find_fail_here_too(header, advice):
    error = refusal(f"\n#include <{header}>\n{KERNEL}")
    assert first_line(error).startswith(f'kernel.cu:2: error: cannot open source file "{header}". ')
    assert advice in first_line(error)
    assert error.line == 2
    assert f"\n  2 | #include <{header}>\n" in str(error)


PROGRAM = """{}__global__ void k(int* o) {{ o[0] = 1; }}
int main() {{ int* d; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaDeviceSynchronize(); }}
"""


@pytest.mark.parametrize(
    "program",
    [
        PROGRAM.format("#include <cstdio>\n"),
        PROGRAM.format("#include <cuda_runtime.h>\n"),
        PROGRAM.format("").replace("cudaMalloc(&d, 4);", ""),
        PROGRAM.format("").replace("int main", "__device__ int main"),
        PROGRAM.format("").replace("cudaMalloc", "std::cout << 1; cudaMalloc"),
    ],
)
def test_of_a_whole_program_only_the_kernels_are_wanted(program):
    assert "leave out main(), the #includes of the CPU's side" in first_line(refusal(program))


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("a[0] = __shfl_down(1, 1);", "__shfl_down_sync(0xffffffff, ...) for all."),
        ("cudaMemcpy(a, a, 4, cudaMemcpyDeviceToDevice);", "copies with an assignment"),
        ("k<<<1, 1>>>(a);", "A kernel cannot launch kernels here: launch them from Python"),
        ("wmma::fill_fragment(a, 1);", "It comes with #include <mma.h>."),
    ],
)
def test_what_belongs_elsewhere_is_told_with_a_way_out(body, advice):
    error = refusal(f'extern "C" __global__ void k(float* a) {{ {body} }}')
    assert advice in first_line(error)


def test_a_function_without_device_compiles_as_under_cupy():
    code = 'float twice(float x) { return x + x; }\nextern "C" __global__ void k(float* a)'
    compile_ptx(code + " { a[0] = twice(a[1]); }")


def test_an_algorithm_of_thrust_is_refused_by_its_include():
    error = refusal('#include <thrust/sort.h>\nextern "C" __global__ void k(float* a) {}')
    assert error.line == 1 and "so most of thrust is not there" in first_line(error)


def test_a_type_of_a_toolkit_header_names_the_header():
    # NVRTC begins with consequences ("__global__" does not apply here); the cause is what helps.
    error = refusal('extern "C" __global__ void k(half* a) { a[0] = a[1]; }')
    assert first_line(error) == (
        'kernel.cu:1: error: identifier "half" is undefined. It comes with #include <cuda_fp16.h>.'
    )


def test_an_error_at_the_end_says_so():
    error = refusal('extern "C" __global__ void k(float* a)\n{ a[0] = 3;\n')
    assert first_line(error) == 'kernel.cu: error: expected a "}" at the end of the source.'
    assert error.line is None


def test_files_of_the_working_folder_are_not_found_without_a_folder(tmp_path, monkeypatch):
    # CuPy compiles in a temporary folder; NVRTC alone would look into the working folder.
    (tmp_path / "beside.cuh").write_text("#define X 1\n")
    monkeypatch.chdir(tmp_path)
    assert "cannot open" in first_line(refusal('#include "beside.cuh"\n' + KERNEL))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("-O3",),
            "kernel.cu: NVRTC does not know the option -O3: device code is optimised fully "
            "anyway, so leave it out.",
        ),
        (
            ("TILE=8",),
            "kernel.cu: NVRTC does not know the option TILE=8: a macro is defined with -DTILE=8.",
        ),
        (
            ("-std", "c++17"),
            "kernel.cu: NVRTC does not know the option -std: write it in one piece, such as "
            "-std=c++17.",
        ),
        (("-DX", "-I"), "The option -I is last and lacks its value."),
    ],
)
def test_a_refused_option_is_one_sentence(options, sentence):
    error = refusal(KERNEL, options)
    assert (error.kind, str(error)) == ("compile", sentence)


def test_a_refused_architecture_says_so():
    error = refusal(KERNEL, ("-arch=sm_12",))
    assert "-arch=compute_12" in str(error) and "\n" not in str(error)
    assert "invalid value for --gpu-architecture" in str(error)


@pytest.mark.parametrize("options", ["-DX", ("-DX", 3), ("-DX", ""), {"-DX"}])
def test_options_must_be_a_sequence_of_strings(options):
    error = refusal(KERNEL, options)
    assert error.kind == "argument"
    assert "must be a tuple of strings such as ('-DTILE=8',)" in str(error)


def test_source_must_be_a_string():
    assert refusal(KERNEL.encode()).kind == "argument"


def test_a_long_log_is_cut():
    code = (
        'extern "C" __global__ void k(float* a) {'
        + "".join(f"\n a[0] = b{i};" for i in range(30))
        + "}"
    )
    assert re.search(r"\.\.\. and \d+ lines more$", str(refusal(code)))


# ---- What is remembered


class Counting:
    """NVRTC, counting its calls."""

    def __init__(self):
        self.inner = compiler.NvrtcProvider()
        self.calls = 0

    @property
    def version(self):
        return f"counting {id(self)}"

    def compile(self, request):
        self.calls += 1
        return self.inner.compile(request)


def test_the_same_source_is_compiled_once_and_other_options_again():
    provider = Counting()
    set_provider(provider)
    first = compile_ptx(KERNEL, ("-DX=1",))
    assert compile_ptx(KERNEL, ["-DX=1"]) is first
    assert provider.calls == 1
    compile_ptx(KERNEL, ("-DX=2",))
    compile_ptx(KERNEL + " ", ("-DX=1",))
    assert provider.calls == 3


def test_an_edited_header_is_compiled_again(tmp_path):
    provider = Counting()
    set_provider(provider)
    (tmp_path / "outer.cuh").write_text('#include "inner.cuh"\n')
    inner = tmp_path / "inner.cuh"
    code = '#include "outer.cuh"\n' + KERNEL.replace("a[3]", "FACTOR")
    seen = []
    for factor in ("2.0f", "4.0f", "2.0f"):
        inner.write_text(f"#define FACTOR {factor}\n")
        seen.append(compile_ptx(code, include_dirs=[tmp_path]).ptx)
    assert "0f40800000" in seen[1] and "0f40800000" not in seen[0]
    assert seen[0] == seen[2]
    assert provider.calls == 2


def test_a_header_named_by_a_macro_is_never_stale(tmp_path):
    header = tmp_path / "which.cuh"
    code = '#define WHICH "which.cuh"\n#include WHICH\n' + KERNEL.replace("a[3]", "FACTOR")
    header.write_text("#define FACTOR 4.0f\n")
    assert "0f40800000" in compile_ptx(code, include_dirs=[tmp_path]).ptx
    header.write_text("#define FACTOR 8.0f\n")
    assert "0f41000000" in compile_ptx(code, include_dirs=[tmp_path]).ptx


def test_the_first_folder_wins_and_a_file_beside_comes_first(tmp_path):
    for folder, factor in (("one", "2.0f"), ("two", "4.0f")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.cuh").write_text(f"#define FACTOR {factor}\n")
    (tmp_path / "two" / "g.cuh").write_text('#include "f.cuh"\n')
    folders = (f"-I{tmp_path / 'one'}", f"-I{tmp_path / 'two'}")
    code = KERNEL.replace("a[3]", "FACTOR")
    direct = compile_ptx('#include "f.cuh"\n' + code, folders)
    beside = compile_ptx('#include "g.cuh"\n' + code, folders)
    assert direct.includes == {"f.cuh": "#define FACTOR 2.0f\n"}
    assert beside.includes["f.cuh"] == "#define FACTOR 4.0f\n"
    assert "0f40800000" in beside.ptx and "0f40800000" not in direct.ptx


# ---- PTX made earlier


def test_a_folder_answers_what_it_was_given(tmp_path):
    code = "template <int N> __global__ void t(int* a) { *a = N; }\n" + KERNEL
    made = compile_ptx(code, ("-DX=1",), name_expressions=("t<5>",))
    folder = FolderProvider(tmp_path / "ptx")
    file = store(folder, made)
    assert file.parent == tmp_path / "ptx"
    set_provider(folder)
    read = compile_ptx(code, ("-DX=1",), name_expressions=("t<5>",))
    assert read.ptx == made.ptx
    assert read.entry("t<5>") == made.entry("t<5>")
    assert read.entries == made.entries


def test_a_folder_says_what_it_lacks(tmp_path):
    folder = FolderProvider(tmp_path)
    store(folder, compile_ptx(KERNEL, ("-DX=1",)))
    set_provider(folder)
    compile_ptx(KERNEL, ("-DX=1",))
    error = refusal('#line 1 "mine.cu"\n' + KERNEL, ("-DX=1",))
    assert error.kind == "compile"
    assert str(error).startswith("mine.cu: there is no compiler here, and ")
    assert "-DX=1" in str(error)
    refusal(KERNEL, ("-DX=2",))


def test_a_folders_key_holds_texts_and_no_paths(tmp_path):
    keys = []
    for place, text in (("here", "3.0f"), ("there", "3.0f"), ("here", "5.0f")):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "f.cuh").write_text(f"#define FACTOR {text}\n")
        code = '#include "f.cuh"\n' + KERNEL.replace("a[3]", "FACTOR")
        keys.append(compile_ptx(code, (f"-I{tmp_path / place}",)).request.key)
    assert keys[0] == keys[1] != keys[2]
    assert re.fullmatch("[0-9a-f]{64}", keys[0])


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def no_cuda(name, *rest, **keywords):
        if name.startswith("cuda"):
            raise ImportError("No module named 'cuda'")
        return real(name, *rest, **keywords)

    set_provider(compiler.NvrtcProvider())
    monkeypatch.setattr(builtins, "__import__", no_cuda)
    error = refusal(KERNEL + "// not compiled before")
    assert error.kind == "compile"
    assert "install the packages cuda-bindings and nvidia-cuda-nvrtc" in str(error)


# ---- Reading sources


def test_mask_blanks_comments_and_strings_in_place():
    source = (
        "int a = 1'000'000; // it's \\\n still comment\n"
        'const char* s = "// no \\" comment"; char c = \'"\'; /* "x */ int b;\n'
        'auto r = R"x(" // )" )x"; int d; /* open\n end'
    )
    masked = mask(source)
    assert len(masked) == len(source)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [
        i for i, c in enumerate(source) if c == "\n"
    ]
    assert (
        masked.split()
        == (
            "int a = 1'000'000; const char* s = \" \"; char c = ' '; int b; auto r = R\" \"; int d;"
        ).split()
    )


def test_includes_are_found_outside_comments():
    source = (
        '#include "a.cuh" // why\n// #include "b.cuh"\n/*\n#include "c.cuh"\n*/\n'
        '  #  include  <d/e.h>\nconst char* s = "\\\n#include <f.h>";\n#include NAME\n'
    )
    found = includes(source)
    assert [(i.name, i.quoted) for i in found] == [("a.cuh", True), ("d/e.h", False)]
    assert source[found[1].start : found[1].end] == "  #  include  <d/e.h>"


def test_numbered_lines_follow_line_directives():
    source = 'a\n#line 7 "x.cuh"\nb\nc\n# 3\nd'
    assert numbered_lines(source, "k.cu") == [
        ("k.cu", 1, "a"),
        ("k.cu", 2, '#line 7 "x.cuh"'),
        ("x.cuh", 7, "b"),
        ("x.cuh", 8, "c"),
        ("x.cuh", 9, "# 3"),
        ("x.cuh", 3, "d"),
    ]


def test_a_log_is_read_to_the_last_diagnostic():
    log = (
        'dir (1)/x.cuh(3): warning #177-D: variable "d" was declared but never referenced\n'
        "  int d;\n      ^\n\n"
        'k.cu(7): error: no instance of overloaded function "__hadd" matches the argument list\n'
        "            argument types are: (half)\n  a[0]=__hadd(a[1]);\n       ^\n"
        "At end of source: error: expected a declaration\n"
    )
    warning, error, last = parse_log(log)
    assert (warning.file, warning.line, warning.severity) == ("dir (1)/x.cuh", 3, "warning")
    assert error.message.endswith("matches the argument list argument types are: (half)")
    assert error.excerpt == ("a[0]=__hadd(a[1]);", "     ^")
    assert (last.file, last.severity, last.message) == (
        None,
        "error",
        "expected a declaration at the end of the source",
    )
