"""Every fault of a launch gives one SimulatorError that says what, where and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator

COPY = """extern "C" __global__ void k(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2;
}
"""
CLUSTER = 'asm volatile("{.reg .u32 r; mapa.shared::cluster.u32 r, 16, 0;}");'
N = np.int32(5)


def floats(n=100):
    return np.arange(n, dtype=np.float32)


def fails(kind, code, args, *words, line=None, entry="k", grid=1, block=32, **more):
    """Launch, expect a SimulatorError, and check its kind, its line and words of its message."""
    with pytest.raises(simulator.SimulatorError) as caught:
        simulator.launch(code, entry, grid, block, args, **more)
    error = caught.value
    assert error.kind == kind
    assert error.line == line
    for word in words:
        assert word in str(error)
    return str(error)


def kernel(body, parameters="float* a"):
    return f'extern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"block": (33, 33)}, ("33 × 33 has 1,089 threads", "1,024")),
        ({"block": (1, 1, 65)}, ("block z is 65", "64")),
        ({"block": 0}, ("block", "at least 1", "not 0")),
        ({"block": (8, 8, 8, 1)}, ("1 to 3 integers",)),
        ({"grid": 1.5}, ("grid", "an integer", "1.5")),
        ({"grid": (1, 70000)}, ("grid y is 70,000", "65,535")),
        ({"grid": "4"}, ("grid",)),
        ({"shared_mem": 49 * 1024}, ("50,176 bytes", "48 KB", "max_dynamic_shared_size_bytes")),
        ({"shared_mem": -1}, ("shared_mem",)),
        ({"shared_mem": 1.5}, ("shared_mem",)),
        ({"shared_mem": 60000, "max_dynamic_shared": 50000}, ("60,000", "50,000")),
        ({"entry": "scale"}, ("no kernel scale", "it has k", 'extern "C"')),
    ],
)
def test_launch_settings(more, words):
    b = floats()
    fails("launch", COPY, (floats(), b, N), *words, **more)
    np.testing.assert_array_equal(b, floats())


def test_the_opt_in_allows_more_shared_memory():
    code = kernel(
        "extern __shared__ float s[]; s[threadIdx.x + 20000] = a[threadIdx.x]; __syncthreads();"
        "a[threadIdx.x] = s[20031 - threadIdx.x];"
    )
    a = floats(32)
    simulator.launch(code, "k", 1, 32, (a,), shared_mem=100_000, max_dynamic_shared=100_000)
    np.testing.assert_array_equal(a, floats(32)[::-1])


def test_too_much_static_shared_memory():
    code = kernel(
        "__shared__ float s[13000]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads();"
        "a[threadIdx.x] = s[31 - threadIdx.x];"
    )
    fails("launch", code, (floats(),), "52,000 bytes", "static", "48 KB")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((floats().astype(np.float64), floats(), N), ("`const float* a`", "float64", "float32")),
        ((np.zeros((10, 20), np.float32).T, floats(), N), ("one after the other", "ascontiguous")),
        ((floats()[::2], floats(), N), ("one after the other",)),
        ((floats(), floats()), ("takes 3 arguments (a, b, n)", "got 2", "n is missing")),
        ((floats(),), ("b and n are missing",)),
        ((floats(), floats(), N, N), ("1 too many",)),
        ((floats(), floats(), 2**31), ("argument 3 (n)", "but is 2,147,483,648", "np.int32(")),
        ((floats(), floats(), 5.0), ("Python float", "np.int32")),
        ((floats(), floats(), np.float32(5)), ("`int n`", "float32", "np.int32")),
        ((floats(), floats(), np.int64(5)), ("int64 (8 bytes)", "np.int32")),
        ((floats(), floats(), floats()), ("`int n`", "shape (100,)")),
        ((floats(), N, N), ("`float* b`, an array",)),
        ((floats(), [1.0], N), ("`float* b`, an array", "a list")),
        ((floats(), None, N), ("`float* b`", "is None")),
        ((floats(), np.array(["x"]), N), ("dtype",)),
        (floats(), ("tuple",)),
    ],
)
def test_arguments(args, words):
    fails("argument", COPY, args, *words)


@pytest.mark.parametrize(
    ("pointer", "dtype"),
    [
        ("float4*", np.float32), ("unsigned*", np.float16), ("uint4*", np.float32),
        ("uint4*", np.uint16), ("unsigned char*", np.int32), ("int*", np.int32),
        ("int*", np.uint32),
        ("unsigned long long*", np.int64), ("void*", np.float64),
    ],
)  # fmt: skip
def test_arrays_that_carry_the_bits_are_accepted(pointer, dtype):
    code = kernel("if (threadIdx.x > 99) *(volatile char*)a = 1;", f"{pointer} a")
    simulator.launch(code, "k", 1, 32, (np.zeros(64, dtype),))


@pytest.mark.parametrize(
    ("pointer", "dtype"),
    [("int*", np.float32), ("int*", np.int64), ("float*", np.int32), ("double*", np.float32),
     ("short*", np.int32), ("float2*", np.float64)],
)  # fmt: skip
def test_arrays_of_another_type_are_refused(pointer, dtype):
    code = kernel("if (threadIdx.x > 99) *(volatile char*)a = 1;", f"{pointer} a")
    fails("argument", code, (np.zeros(64, dtype),), pointer, np.dtype(dtype).name)


def test_macros_of_the_options_name_types():
    code = "#ifndef ELEMENT\n#define ELEMENT float\n#endif\n"
    code += kernel("a[threadIdx.x] += 1;", "ELEMENT* a")
    integers = ("-DELEMENT=int",)
    for option, right, wrong in (((), np.float32, np.int32), (integers, np.int32, np.float32)):
        a = np.zeros(32, right)
        simulator.launch(code, "k", 1, 32, (a,), option)
        assert (a == 1).all()
        fails("argument", code, (a.astype(wrong),), np.dtype(right).name, options=option)


def test_compile_errors_have_the_files_own_lines():
    message = fails(
        "compile", COPY.replace("a[i] * 2", "a[j] * 2"), (floats(), floats(), N), line=3
    )
    assert message.startswith('kernel.cu:3: error: identifier "j" is undefined')
    assert "if (i < n) b[i] = a[j] * 2;" in message


class TestOutOfBounds:
    def test_read(self):
        b = np.zeros(1000, np.float32)
        fails(
            "out_of_bounds", COPY, (floats(), b, np.int32(200)), "read of a[100]",
            "thread (4, 0, 0) of block (3, 0, 0)", "100 elements of float32", "0 to 99",
            "No argument was changed", grid=10, line=3,
        )  # fmt: skip
        assert not b.any()

    def test_write(self):
        fails(
            "out_of_bounds", COPY, (np.zeros(1000, np.float32), floats(), np.int32(200)),
            "write to b[100]", "thread (4, 0, 0) of block (3, 0, 0)", grid=10, line=3,
        )  # fmt: skip

    def test_before_the_start(self):
        code = COPY.replace("a[i] * 2", "a[i - 1]")
        fails("out_of_bounds", code, (floats(), floats(), N), "read of a[-1]", line=3)

    def test_a_view_ends_where_it_ends(self):
        whole = floats(1000)
        fails(
            "out_of_bounds", COPY, (whole[100:110], np.zeros(100, np.float32), np.int32(20)),
            "a[10]", "10 elements", line=3,
        )  # fmt: skip

    def test_before_a_slice_lies_its_array(self):
        whole, out = floats(1000), np.zeros(20, np.float32)
        code = kernel("b[threadIdx.x] = a[(int)threadIdx.x - 7];", "float* a, float* b, int n")
        simulator.launch(code, "k", 1, 20, (whole[7:30], out, np.int32(20)))
        assert np.array_equal(out, whole[:20])
        fails("out_of_bounds", code, (whole[6:30], out, np.int32(20)), "a[-7]", block=20, line=2)

    def test_block_and_thread_in_three_dimensions(self):
        code = kernel("if (threadIdx.z == 1 && blockIdx.y == 2) a[1000 + threadIdx.x] = 1;")
        fails(
            "out_of_bounds", code, (floats(),), "thread (0, 0, 1) of block (0, 2, 0)", "a[1000]",
            grid=(3, 3, 2), block=(4, 2, 2), line=2,
        )  # fmt: skip

    def test_shared(self):
        code = kernel(
            "__shared__ float s[32];\ns[threadIdx.x + 1] = a[threadIdx.x];\n__syncthreads();\n"
            "a[threadIdx.x] = s[threadIdx.x];"
        )
        fails(
            "out_of_bounds", code, (floats(),), "write to s[32]", "thread (31, 0, 0)",
            "shared memory", line=3,
        )  # fmt: skip

    def test_shared_addresses_wrap_at_32_bits(self):
        """PTX ISA, "Addresses as Operands"; a merge by paths indexes by ~x, and runs on an H200."""
        body = (
            "__shared__ float s[64]; s[threadIdx.x + 32] = 7;\ns[threadIdx.x] = a[threadIdx.x];\n"
            "__syncthreads(); unsigned back = ~threadIdx.x; const float* p = s + {start};\n"
            "a[threadIdx.x] = p[back];"
        )
        a = np.arange(32, dtype=np.float32)
        simulator.launch(kernel(body.format(start=32)), "k", 1, 32, (a,))
        assert (a == np.arange(31, -1, -1)).all()
        fails(
            "out_of_bounds", kernel(body.format(start=31)), (floats(),), "thread (31, 0, 0)",
            line=5,
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("declaration", "told"),
        [
            ("__device__ int table[20]", "read of table[20]: 20 elements of int"),
            ("__constant__ float4 table[5]", "read of table[5]: 5 elements of float4"),
            (
                "__device__ unsigned long long table[4][5]",
                "table[20]: 20 elements of unsigned long",
            ),
        ],
    )
    def test_variables_of_the_module_count_in_declared_elements(self, declaration, told):
        index = {"f": "[threadIdx.x].x", "u": "[threadIdx.x / 5][threadIdx.x % 5]"}
        element = index.get(declaration.split()[1][0], "[threadIdx.x]")
        before = "__device__ float first(float x) { return x; }\n" + declaration + ";\n"
        code = before + kernel(f"a[threadIdx.x] = first(table{element});")
        where, what = told.split(": ")
        fails("out_of_bounds", code, (floats(),), where, what, line=4)

    def test_part_written_arguments_are_named(self):
        code = kernel("a[threadIdx.x] = 7;\n__syncthreads();\nb[threadIdx.x + 100] = 1;",
                      "float* a, float* b")  # fmt: skip
        fails("out_of_bounds", code, (floats(), floats()), "a may be part-written", line=4)

    def test_null_pointer_and_empty_array(self):
        fails("out_of_bounds", COPY, (floats(), 0, N), "null pointer", line=3)
        fails("out_of_bounds", COPY, (floats(0), floats(), N), "a[0]", "empty", line=3)

    def test_index_overflow_in_32_bits(self):
        code = kernel("int n = 70000; a[(threadIdx.x + n) * n] = 1;")
        fails("out_of_bounds", code, (floats(),), "write to a[", line=2)


def test_misaligned_vectors():
    code = kernel(
        "float4 v = *(float4*)(a + threadIdx.x + 1); a[threadIdx.x] = v.x + v.y + v.z + v.w;"
    )
    fails("misaligned", code, (floats(),), "16-byte read", "not a multiple of 16", line=2)
    code = kernel(
        "__shared__ float s[100]; s[threadIdx.x] = s[threadIdx.x + 50] = a[threadIdx.x];"
        "__syncthreads();\nfloat4 v = *(float4*)(s + threadIdx.x + 1);"
        "a[threadIdx.x] = v.x + v.y + v.z + v.w;"
    )
    fails("misaligned", code, (floats(),), "16-byte read in shared memory", line=3)


def test_read_only_array():
    b = floats()
    b.setflags(write=False)
    fails("argument", COPY, (floats(), b, N), "read-only array b", line=3)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("a[0] = tex1Dfetch<float>((cudaTextureObject_t)0, 1);", "no textures"),
        (f"{CLUSTER} a[0] = 1;", "clusters"),
    ],
)
def test_unsupported_instructions(body, words):
    a = floats()
    fails("unsupported", kernel(body), (a,), words, "line 2", line=2)
    np.testing.assert_array_equal(a, floats())


def test_another_kernel_of_the_file_may_be_unsupported():
    code = kernel(f"{CLUSTER} a[0] = 1;")
    code += 'extern "C" __global__ void fine(float* a) { a[threadIdx.x] = 3; }'
    a = floats(32)
    simulator.launch(code, "fine", 1, 32, (a,))
    assert (a == 3).all()


class TestEndlessLoops:
    @pytest.mark.parametrize(
        "body",
        [
            "while (*(volatile float*)a == 0) {}\na[1] = 1;",
            "while (true) a[0] += 1;",
            "for (unsigned i = 0;; i++) a[i & 31] = i;",
        ],
    )
    def test_seen_at_once(self, body):
        fails("endless_loop", kernel(body), (floats(),), "the loop", "thread (0, 0, 0)", line=2)

    def test_budget(self):
        code = kernel(
            "unsigned i = 1;\nwhile (i != n) i = (i * 1664525u + 1013904223u) | 1;\na[0] = i;",
            "unsigned* a, unsigned n",
        )
        fails(
            "endless_loop", code, (np.zeros(4, np.uint32), np.uint32(2)), "10,000 instructions",
            "max_steps", line=3, max_steps=10_000,
        )  # fmt: skip

    def test_waiting_for_a_thread_at_a_barrier(self):
        code = kernel("if (threadIdx.x == 0) while (*(volatile int*)a == 0);\n__syncthreads();",
                      "int* a")  # fmt: skip
        fails("endless_loop", code, (np.zeros(4, np.int32),), line=2)

    def test_recursion_without_an_end(self):
        code = (
            "__device__ __noinline__ int f(int x) { return x > 5 ? f(x + 1) + x : f(x + 2) * 3; }"
        )
        code += kernel("a[threadIdx.x] = f(a[threadIdx.x]);", "int* a")
        fails("endless_loop", code, (np.zeros(32, np.int32),), "calls itself", line=1)


class TestBarriers:
    def test_in_a_branch(self):
        code = kernel(
            "__shared__ float s[64]; s[threadIdx.x] = a[threadIdx.x];\n"
            "if (threadIdx.x < 16)\n__syncthreads();\na[threadIdx.x] = s[threadIdx.x ^ 1];"
        )
        fails(
            "barrier", code, (floats(),), "thread (0, 0, 0) of block (0, 0, 0) waits at a barrier",
            "thread (16, 0, 0) never reaches", block=64, line=4,
        )  # fmt: skip

    def test_in_a_branch_at_the_end(self):
        code = kernel("a[threadIdx.x] = 1;\nif (threadIdx.x < 16)\n__syncthreads();")
        fails("barrier", code, (floats(),), block=64, line=4)

    def test_in_a_loop_that_threads_leave_early(self):
        code = kernel(
            "for (int i = threadIdx.x; i < n; i += 32) {\na[i] += 1;\n"
            "__syncthreads();\n}\na[99] = 2;",
            "float* a, int n",
        )
        fails("barrier", code, (floats(), np.int32(40)), "thread (8, 0, 0)", line=4)

    def test_two_barriers_that_wait_for_each_other(self):
        code = kernel(
            'if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");\n'
            'else asm volatile("bar.sync 2, 64;");\na[threadIdx.x] = 1;'
        )
        told = ("64 threads, and 32 have come", "while others wait")
        fails("barrier", code, (floats(),), *told, block=64, line=2)

    def test_an_early_exit_before_a_barrier_is_no_fault(self):
        code = kernel(
            "__shared__ float s[64]; if (threadIdx.x >= n) return; s[threadIdx.x] = a[threadIdx.x];"
            "__syncthreads(); a[threadIdx.x] = s[n - 1 - threadIdx.x];",
            "float* a, int n",
        )
        a = floats(64)
        simulator.launch(code, "k", 1, 64, (a, np.int32(40)))
        np.testing.assert_array_equal(a, np.r_[floats(40)[::-1], np.arange(40, 64)])

    def test_an_early_exit_within_a_loop_is_no_fault(self):
        code = kernel(
            "__shared__ float s[64]; for (int i = 0; i < 8; i++) {"
            "if (threadIdx.x == 2 * i) return;"
            "s[threadIdx.x] = i; __syncthreads(); a[threadIdx.x] += s[63]; __syncthreads(); }"
        )
        a = np.zeros(64, np.float32)
        simulator.launch(code, "k", 1, 64, (a,))
        assert a[63] == sum(range(8)) and a[4] == 1 and a[0] == 0


def test_trap_and_assert():
    code = kernel("if (threadIdx.x == 3) __trap();\na[0] = 1;")
    fails("trap", code, (floats(),), "thread (3, 0, 0)", line=2)


def test_numpy_warnings_stay_inside(recwarn):
    code = kernel("a[threadIdx.x] = a[threadIdx.x] * 1e38f / 0.f - a[threadIdx.x] / 0.f;")
    simulator.launch(code, "k", 1, 32, (floats(),))
    assert not recwarn.list
