"""Kernel signatures read from C, and what may be passed for them."""

import ml_dtypes
import numpy as np
import pytest

from helpers.kernels.arguments import checked, shared_memory
from helpers.kernels.source import CannotRun, KernelError, kernel_functions
from helpers.simulator.compile.signature import signature
from helpers.simulator.launch_rules import launch_shape


def one(text, source="", macros=None):
    (argument,) = signature(text, source, macros)
    return argument


@pytest.mark.parametrize(
    ("text", "name", "pointer", "constant", "dtype", "vector"),
    [
        ("const float* __restrict__ Q", "Q", True, True, "float32", 1),
        ("float const *Q", "Q", True, True, "float32", 1),
        ("float* const Q", "Q", True, False, "float32", 1),
        ("const float* const Q", "Q", True, True, "float32", 1),
        ("float*__restrict O", "O", True, False, "float32", 1),
        ("int N", "N", False, True, "int32", 1),
        ("const int N", "N", False, True, "int32", 1),
        ("unsigned n", "n", False, True, "uint32", 1),
        ("unsigned", "argument 1", False, True, "uint32", 1),
        ("const unsigned long long int", "argument 1", False, True, "uint64", 1),
        ("long long int k", "k", False, True, "int64", 1),
        ("int long unsigned k", "k", False, True, "uint64", 1),
        ("size_t bytes", "bytes", False, True, "uint64", 1),
        ("signed char c", "c", False, True, "int8", 1),
        ("char c", "c", False, True, "int8", 1),
        ("unsigned char *u", "u", True, False, "uint8", 1),
        ("short int s", "s", False, True, "int16", 1),
        ("bool flag", "flag", False, True, "bool", 1),
        ("double x", "x", False, True, "float64", 1),
        ("float4*", "argument 1", True, False, "float32", 4),
        ("const float3* p", "p", True, True, "float32", 3),
        ("const uint4* __restrict__ packed", "packed", True, True, "uint32", 4),
        ("half* h", "h", True, False, "float16", 1),
        ("const __half2* h", "h", True, True, "float16", 2),
        ("__nv_bfloat16* b", "b", True, False, "bfloat16", 1),
        ("volatile int* lock", "lock", True, False, "int32", 1),
        ("float rows[]", "rows", True, False, "float32", 1),
        ("const float tile[4][8]", "tile", True, True, "float32", 1),
        ("float (*tile)[8]", "tile", True, False, "float32", 1),
        ("float** rows", "rows", True, False, "uint64", 1),
        ("[[maybe_unused]] int n", "n", False, True, "int32", 1),
        ("thrust::complex<float>* z", "z", True, False, "complex64", 1),
        ("\n  const  float\n*\tQ ", "Q", True, True, "float32", 1),
    ],
)
def test_declarations(text, name, pointer, constant, dtype, vector):
    argument = one(text)
    assert (argument.name, argument.pointer, argument.constant) == (name, pointer, constant)
    assert (argument.dtypes[0], argument.vector) == (dtype, vector)


@pytest.mark.parametrize(
    ("text", "name", "pointer", "constant"),
    [
        ("void* data", "data", True, False),
        ("const void* data", "data", True, True),
        ("const __grid_constant__ CUtensorMap map", "map", False, True),
        ("struct Params p", "p", False, True),
        ("const Params* p", "p", True, True),
        ("std::array<float, 4> four", "four", False, True),
    ],
)
def test_types_that_are_not_known_are_left_open(text, name, pointer, constant):
    argument = one(text)
    assert (argument.name, argument.pointer, argument.constant) == (name, pointer, constant)
    assert argument.dtypes == ()


def test_no_arguments():
    assert signature("") == signature(" void ") == ()


def test_commas_inside_brackets_do_not_separate():
    names = [a.name for a in signature("Pair<int, float> p, float (*m)[W(2, 3)], int n")]
    assert names == ["p", "m", "n"]


def test_macros_and_aliases_are_followed():
    source = """
    #define INPUT const float* __restrict__
    #define UNSURE float
    #define UNSURE double
    typedef unsigned short word;
    using row_t = const half*;
    using element = ELEMENT;
    """
    assert one("INPUT x", source).constant
    assert one("INPUT x", source).dtypes == ("float32",)
    assert one("word* w", source).dtypes == ("uint16",)
    row = one("row_t r", source)
    assert (row.pointer, row.constant, row.dtypes) == (True, True, ("float16",))
    assert one("element* e", source, {"ELEMENT": "half"}).dtypes == ("float16",)
    assert one("const ELEMENT* e", source, {"ELEMENT": "float"}).dtypes == ("float32",)
    # An #if chooses between two meanings, and it is not evaluated here.
    assert one("UNSURE* u", source).dtypes == ()


# ---- Kernels in a file


def test_kernels_are_found_with_their_lines():
    source = (
        "// header\n"
        "\n"
        '#define KERNEL extern "C" __global__ void  // no kernel: __global__ void fake(int a) {}\n'
        "/* __global__ void commented(int a) {} */\n"
        '__device__ const char* text = "__global__ void quoted(int a) {";\n'
        'extern "C" __global__ void declared(int n);\n'
        "\n"
        "// About first,\n"
        "// in two lines.\n"
        'extern "C" __global__ void __launch_bounds__(128, 2) first(const float* a,  // [n, (m)]\n'
        "                                     int n /* , int no */) {\n"
        "    if (n) { a[0]; }  // }\n"
        "}\n"
        'extern "C" {\n'
        "__global__ void\n"
        "second() {}\n"
        "}\n"
        "template <typename T>\n"
        "__global__ void third(T* a)\n"
        "{\n"
        "}\n"
    )
    found = kernel_functions(source, "k.cu")
    assert list(found) == ["first", "second", "third"]
    first, second, third = found.values()
    assert (first.first, first.start, first.last) == (8, 10, 13)
    assert [a.name for a in signature(first.parameters)] == ["a", "n"]
    assert (second.start, second.last) == (15, 16)
    assert (third.start, third.last) == (18, 21)
    assert [f.extern_c for f in found.values()] == [True, True, False]
    assert [f.template for f in found.values()] == [False, False, True]


def test_a_kernel_defined_twice_is_refused():
    source = "__global__ void k(int a) {}\n__global__ void k(float a) {}\n"
    with pytest.raises(KernelError, match=r"k\.cu defines k twice, on lines 1 and 2"):
        kernel_functions(source, "k.cu")
    assert list(kernel_functions(source.replace("float", "int "), "k.cu")) == ["k"]


# ---- Arguments

SIGNATURE = signature("const float* Q, const float* K, float* S, int N, float scale")
Q = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.ones((2, 3), np.float32)
S = np.zeros((2, 2), np.float32)


def passed(*args, kernel=SIGNATURE, array_type=np.ndarray):
    return checked("qk", kernel, args, array_type)


def refused(*args, kernel=SIGNATURE, array_type=np.ndarray):
    with pytest.raises(KernelError) as caught:
        passed(*args, kernel=kernel, array_type=array_type)
    return str(caught.value)


def test_arrays_go_through_and_numbers_become_c_types():
    result = passed(Q, K, S, 2, 0.1)
    assert result[0] is Q and result[2] is S
    assert (result[3].dtype, result[3]) == (np.int32, 2)
    assert (result[4].dtype, result[4]) == (np.float32, np.float32(0.1))


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("int n", np.int64(-5), np.int32(-5)),
        ("int n", True, np.int32(1)),
        ("int n", 2**31 - 1, np.int32(2**31 - 1)),
        ("unsigned n", 2**32 - 1, np.uint32(2**32 - 1)),
        ("unsigned char n", 255, np.uint8(255)),
        ("long long n", 2**40, np.int64(2**40)),
        ("size_t n", np.int32(7), np.uint64(7)),
        ("bool b", 1, np.True_),
        ("float x", 3, np.float32(3)),
        ("float x", 2**24, np.float32(2**24)),
        ("float x", np.float64(0.1), np.float32(0.1)),
        ("float x", float("inf"), np.float32(np.inf)),
        ("double x", np.float32(0.5), np.float64(0.5)),
        ("half x", 65504.0, np.float16(65504)),
        ("cuFloatComplex z", 1 + 2j, np.complex64(1 + 2j)),
    ],
)
def test_numbers_that_fit(declared, value, expected):
    (result,) = passed(value, kernel=signature(declared))
    assert result.dtype == expected.dtype
    assert result == expected


def test_a_nan_stays_one():
    (result,) = passed(float("nan"), kernel=signature("float x"))
    assert result.dtype == np.float32 and np.isnan(result)


@pytest.mark.parametrize(
    ("declared", "value", "sentence"),
    [
        (
            "int n",
            2**40,
            "qk: n is 1,099,511,627,776, which does not fit `int n` (int32 holds -2,147,483,648 "
            "to 2,147,483,647).",
        ),
        ("unsigned n", -1, "qk: n is -1, which does not fit `unsigned n`"),
        ("unsigned char n", np.int32(256), "qk: n is 256, which does not fit `unsigned char n`"),
        ("bool b", 2, "qk: b is 2, which does not fit `bool b`"),
        ("int n", 3.0, "qk: n is the float 3.0, but `int n` needs an integer; pass int(n)."),
        (
            "int n",
            np.float32(2.5),
            "qk: n is the float 2.5, but `int n` needs an integer; pass a whole number.",
        ),
        (
            "float x",
            2**24 + 1,
            "qk: x is the integer 16,777,217, which `float x` cannot hold exactly; pass float(x) "
            "if the nearest float32 will do.",
        ),
        (
            "float x",
            1e39,
            "qk: x is 1e+39, which is too large for `float x` (float32 holds up to 3.40282e+38).",
        ),
        ("half x", 65536.0, "qk: x is 65536, which is too large for `half x`"),
        ("half x", 70000, "qk: x is 70,000, which is too large for `half x`"),
        ("float x", 1j, "qk: x is complex, but `float x` needs a real number."),
        ("int n", "8", "qk: n must be a number for `int n`, but is a str."),
        ("int n", None, "qk: n must be a number for `int n`, but is None."),
        (
            "int n",
            np.array([8], np.int32),
            "qk: n must be a number for `int n`, but is an array; pass n.item().",
        ),
        ("int n", np.ones(3), "qk: n must be a number for `int n`, but is an array."),
        (
            "__nv_bfloat16 b",
            1.0,
            "qk: b is a float, but `__nv_bfloat16 b` needs bfloat16; pass its 16 bits as np.uint16",
        ),
        ("Params p", 3, "qk: p is an int, but `Params p` takes a struct; pass a NumPy array of"),
    ],
)
def test_numbers_that_do_not_fit(declared, value, sentence):
    assert sentence in refused(value, kernel=signature(declared))


def test_an_integer_beyond_every_float():
    sentence = refused(10**400, kernel=signature("double x"))
    assert "x is an integer of 401 digits, which is too large for `double x`" in sentence


def test_structs_pass_by_value():
    record = np.zeros(1, np.dtype([("rows", "i4"), ("scale", "f4")]))
    bits = np.zeros(1, "V128")
    four = np.zeros(4, np.float32).view("V16")
    result = passed(record, bits, four, kernel=signature("Params p, CUtensorMap m, float4 v"))
    assert [a is b for a, b in zip(result, (record, bits, four), strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((Q, K, S, 2), "qk takes 5 arguments (Q, K, S, N, scale), got 4: scale is missing."),
        ((Q, K), "qk takes 5 arguments (Q, K, S, N, scale), got 2: S, N and scale are missing."),
        ((), "got 0: Q, K, S, N and scale are missing."),
        ((Q, K, S, 2, 1.0, 3, 4), "takes 5 arguments (Q, K, S, N, scale), got 7: 2 too many."),
    ],
)
def test_the_number_of_arguments(args, sentence):
    assert sentence in refused(*args)


def test_a_kernel_without_arguments():
    assert passed(kernel=()) == ()
    assert refused(1, kernel=()) == "qk takes 0 arguments, got 1: 1 too many."


def test_arguments_go_in_a_tuple():
    with pytest.raises(KernelError, match=r"go in a tuple, such as \(a, b, n\), not an array"):
        checked("qk", SIGNATURE, Q, np.ndarray)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            (Q.astype(np.float64), K, S, 2, 1.0),
            "qk: Q is float64, but `const float* Q` needs float32; pass Q.astype(np.float32).",
        ),
        (
            (Q, K, S.astype(np.int32), 2, 1.0),
            "qk: S is int32, but `float* S` needs float32; make it with "
            "cp.empty(S.shape, np.float32), or pass S.view(np.float32) to read its bytes anew.",
        ),
        (
            (Q.astype(">f4"), K, S, 2, 1.0),
            "qk: Q is float32 in foreign byte order, but `const float* Q` needs float32; pass "
            "Q.astype(np.float32).",
        ),
        (
            (Q, np.ones((3, 2), np.float32).T, S, 2, 1.0),
            "qk: K is a view whose elements do not lie one after the other in memory (a transpose "
            "or a slice), which the kernel cannot see; pass cp.ascontiguousarray(K).",
        ),
        (
            (Q, K, np.empty((2, 4), np.float32)[:, ::2], 2, 1.0),
            "qk: S is a view whose elements do not lie one after the other in memory (a transpose "
            "or a slice), which the kernel cannot see; pass a contiguous array and copy the result "
            "from it.",
        ),
        (
            (Q, K, np.broadcast_to(np.float32(0), (2, 2)), 2, 1.0),
            "qk: S is a view whose elements do not lie one after the other",
        ),
        (
            (Q, 3.0, S, 2, 1.0),
            "qk: K must be an array for `const float* K`, but is a float.",
        ),
        (
            ([1.0, 2.0], K, S, 2, 1.0),
            "qk: Q must be an array for `const float* Q`, but is a list; pass "
            "cp.asarray(Q, np.float32).",
        ),
        ((None, K, S, 2, 1.0), "qk: Q must be an array for `const float* Q`, but is None."),
    ],
)
def test_arrays_that_do_not_fit(args, sentence):
    assert sentence in refused(*args)


def test_a_read_only_array_may_be_read_and_not_written():
    locked = S.copy()
    locked.flags.writeable = False
    assert passed(locked, K, S, 2, 1.0)[0] is locked
    assert refused(Q, K, locked, 2, 1.0) == (
        "qk: S is a read-only array, and `float* S` may be written; pass S.copy()."
    )


def test_alternatives_of_a_type():
    bf16 = signature("const __nv_bfloat16* b")
    assert passed(np.ones(4, ml_dtypes.bfloat16), kernel=bf16)
    assert passed(np.ones(4, np.uint16), kernel=bf16)
    assert "needs bfloat16 or uint16" in refused(np.ones(4, np.float16), kernel=bf16)
    assert passed(np.ones(4, np.complex64), kernel=signature("const float2* z"))
    assert passed(np.ones(4, np.float16), kernel=signature("const void* any"))


def test_vectors_must_be_whole_and_aligned():
    kernel = signature("const float4* v")
    block = np.zeros(64, np.float32)
    offset = (-block.ctypes.data // 4) % 4
    aligned = block[offset : offset + 8]
    assert passed(aligned, kernel=kernel)[0] is aligned
    assert "has 6 elements, which is no multiple of the 4 that" in refused(
        aligned[:6], kernel=kernel
    )
    shifted = block[offset + 1 : offset + 9]
    assert refused(shifted, kernel=kernel) == (
        "qk: v starts at an address that is no multiple of the 16 bytes that `const float4* v` "
        "needs; pass v.copy()."
    )
    assert passed(shifted[:6], kernel=signature("const float3* v"))
    assert passed(shifted[:0], kernel=kernel)


class DeviceArray:
    """An array of a GPU, as far as the checks look at it."""

    __cuda_array_interface__ = {}

    def __init__(self, host):
        self.dtype, self.size, self.flags = host.dtype, host.size, host.flags
        self.data = type("Memory", (), {"ptr": 4096})


def test_host_and_device_arrays_are_told_apart():
    device = DeviceArray(Q)
    kernel = signature("const float* Q")
    assert passed(device, kernel=kernel, array_type=DeviceArray) == (device,)
    assert refused(Q, kernel=kernel, array_type=DeviceArray) == (
        "qk: Q is a NumPy array in host memory, which a kernel cannot reach; pass cp.asarray(Q)."
    )
    assert refused(device, kernel=kernel) == "qk: Q is not an array of cp; pass cp.asarray(Q)."


# ---- Launch geometry


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        (3, 64, ((3, 1, 1), (64, 1, 1))),
        ((2, 3), (16, 8), ((2, 3, 1), (16, 8, 1))),
        ([np.int64(4)], (8, 4, 32), ((4, 1, 1), (8, 4, 32))),
        ((2**31 - 1, 65535, 65535), (1024,), ((2**31 - 1, 65535, 65535), (1024, 1, 1))),
    ],
)
def test_launch_shapes(grid, block, expected):
    assert launch_shape("qk", grid, block, CannotRun) == expected


@pytest.mark.parametrize(
    ("grid", "block", "sentence"),
    [
        (
            1,
            (33, 33),
            "qk: the block 33 × 33 has 1,089 threads, and a GPU allows at most 1,024; use a "
            "smaller block and a larger grid.",
        ),
        (1, (1, 1, 65), "qk: block z is 65, and a GPU allows at most 64."),
        (1, 1025, "qk: block x is 1,025, and a GPU allows at most 1,024."),
        ((1, 65536), 1, "qk: grid y is 65,536, and a GPU allows at most 65,535."),
        ((1, 1, 65536), 1, "qk: grid z is 65,536, and a GPU allows at most 65,535."),
        (2**31, 1, "qk: grid x is 2,147,483,648, and a GPU allows at most 2,147,483,647."),
        ((4, 0), 1, "qk: every number of grid must be at least 1, not (4, 0)."),
        (1, -32, "qk: every number of block must be at least 1, not -32."),
        (2.0, 1, "qk: grid must be an integer or a tuple of 1 to 3 integers, not 2.0."),
        (1, (1, 2, 3, 4), "qk: block must be an integer or a tuple of 1 to 3 integers, not (1,"),
        ((), 1, "qk: grid must be an integer or a tuple of 1 to 3 integers, not ()."),
        (1, (True,), "qk: block must be an integer or a tuple of 1 to 3 integers, not (True,)."),
    ],
)
def test_launch_shapes_that_no_gpu_takes(grid, block, sentence):
    with pytest.raises(KernelError) as caught:
        launch_shape("qk", grid, block, CannotRun)
    assert sentence in str(caught.value)


def test_shared_memory_up_to_the_hardwares_limit():
    assert shared_memory("qk", np.int32(232_448)) == 232_448
    with pytest.raises(KernelError) as caught:
        shared_memory("qk", 232_449)
    assert str(caught.value) == (
        "qk: 232,449 bytes of dynamic shared memory are more than the 232,448 that a block can "
        "have; use smaller tiles."
    )
    with pytest.raises(KernelError, match="100 bytes .* beside the 232,400 that it declares"):
        shared_memory("qk", 100, static=232_400)
    for wrong in (-1, 1.5, None):
        with pytest.raises(KernelError, match="is a number of bytes"):
            shared_memory("qk", wrong)
