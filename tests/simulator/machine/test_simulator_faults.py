"""What a student may get wrong, beside `test_simulator_errors`; and what only seems wrong."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator
from helpers.standin import RawKernel, asarray

COPY = """extern "C" __global__ void k(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * 2;
}
"""
N = np.int32(5)


def floats(n=64):
    return np.arange(n, dtype=np.float32)


def kernel(body, parameters="float* a", before=""):
    return f'{before}\nextern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


def fails(kind, code, args, words, **more):
    with pytest.raises(simulator.SimulatorError, match=words) as caught:
        simulator.launch(code, more.pop("entry", "k"), 1, 32, args, **more)
    assert caught.value.kind == kind
    assert str(caught.value).rstrip().endswith(".")
    return caught.value


class TestWaiting:
    @pytest.mark.parametrize(
        "body",
        [
            "while (atomicAdd(a, 0) == 0);",
            "while (atomicExch(a, 1) != 2);",
            "while (atomicCAS(a, 0, 1) != 0);\na[1]++;",
            "while (atomicMax(a, -5) == 0);",
        ],
    )
    def test_atomics_that_change_nothing_are_seen_to_wait_for_ever(self, body):
        fails("endless_loop", kernel(body, "int* a"), (np.zeros(4, np.int32),), "waits for ever")

    def test_one_that_counts_its_rounds_gives_way(self):
        body = (
            "int n = 0; if (threadIdx.x < 32) { while (*(volatile int*)a == 0) n++; a[1] = n; }"
            "else { for (int i = 0; i < 40; i++) a[2 + i] = i; __threadfence(); *a = 1; }"
        )
        a = np.zeros(64, np.int32)
        simulator.launch(kernel(body, "int* a"), "k", 1, 64, (a,), max_steps=100_000)
        assert a[0] == 1
        np.testing.assert_array_equal(a[2:42], np.arange(40))


class TestPrintf:
    @pytest.mark.parametrize(
        ("format_", "arguments", "printed"),
        [
            ("%d %u %i", "-3, 4000000000u, 7", "-3 4000000000 7"),
            ("%hd %hhd %hu", "(short)-2, (char)-1, 70000", "-2 -1 4464"),
            ("%ld %lld %llu %lu", "-3l, -5000000000ll, 18446744073709551615ull, 5ul",
             "-3 -5000000000 18446744073709551615 5"),
            ("%x %X %o %#x %#X %#o %#x", "255, 255, 8, 255, 255, 8, 0", "ff FF 10 0xff 0XFF 010 0"),
            ("%5d|%-5d|%05d|%+d|% d|%5.3d", "42, 42, 42, 42, 42, 7",
             "   42|42   |00042|+42| 42|  007"),
            ("%*d|%-*d|%*d|%.*f", "6, 7, 4, 8, -4, 9, 2, 1.239", "     7|8   |9   |1.24"),
            ("%f %.3f %e %g %G", "1.5f, 3.14159, 12345.678, 1e-10, 1e20",
             "1.500000 3.142 1.234568e+04 1e-10 1E+20"),
            ("%a %A", "1.5, -0.1", "0x1.8p+0 -0X1.999999999999AP-4"),
            ("%8.2f|%-8.2f|%08.2f|%+.0f", "-1.5, 1.5, -1.5, 2.0", "   -1.50|1.50    |-0001.50|+2"),
            ("%f %F %5.1f %05f", "1.0 / z, -1.0 / z, __int_as_float(0x7fffffff), 1.0 / z",
             "inf -INF   nan   inf"),
            ("%c%c %s|%6s|%-6s|%.2s", "72, 'i', \"str\", \"ab\", \"cd\", \"xyz\"",
             "Hi str|    ab|cd    |xy"),
            ("100%% %s %p", "(char*)0, (void*)0", "100% (null) (nil)"),
        ],
    )  # fmt: skip
    def test_as_in_c(self, format_, arguments, printed):
        body = f'if (threadIdx.x == 0) n[0] = printf("{format_}\\n", {arguments});'
        n = np.zeros(1, np.int32)
        report = simulator.launch(
            kernel(body, "double z, int* n"), "k", 1, 32, (np.float64(0), n), count=False
        )
        assert report.output == printed + "\n"
        assert n[0] == len(arguments.split(", "))

    def test_of_thread_after_thread(self):
        body = 'printf(threadIdx.x % 2 ? "odd %d\\n" : "even %d %s\\n", threadIdx.x, "x");'
        report = simulator.launch(kernel(body, ""), "k", 2, 3, (), count=False)
        assert report.output == "even 0 x\nodd 1\neven 2 x\n" * 2

    @pytest.mark.parametrize("call", ['printf("%d %s\\n", 1)', 'printf("%d %s\\n", 1.5, 5)'])
    def test_with_too_few_or_wrong_arguments(self, call):
        fails("out_of_bounds", kernel(call + ";"), (floats(),), "match the format")


class TestWrongPointers:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ("a[1ll << 60] = 1;", "far from every array"),
            ("*(float*)0x512345678abcdef0ull = 1;", "far from every array"),
            ("int b[4]; for (int i = 0; i < n; i++) b[i * 3] = i; a[0] = b[n % 4];",
             r"local arrays of thread \(0, 0, 0\) of block \(0, 0, 0\), at byte 24 of their 16"),
            ("a[0] = ((float (*)(float))(size_t)n)(a[0]);", "no function's"),
            ("extern __shared__ float s[]; s[threadIdx.x] = 1; __syncthreads(); a[0] = s[n];",
             r"s\[0\].*pass a larger shared_mem"),
        ],
    )  # fmt: skip
    def test_say_where_they_point(self, body, words):
        error = fails("out_of_bounds", kernel(body, "float* a, int n"), (floats(), N), words)
        assert error.line == 3
        assert "No argument was changed" in str(error)

    def test_a_trap_of_no_line(self):
        code = kernel("*(float*)&c[threadIdx.x] = 1;", before="__constant__ float c[2] = {1, 2};")
        assert "None" not in str(fails("trap", code, (floats(),), "trap"))


class TestWrongSettings:
    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"entry": None}, "name of the kernel"),
            ({"entry": b"k"}, "name of the kernel"),
            ({"max_steps": "a"}, "max_steps is a whole number"),
            ({"max_steps": 0}, "of 1 or more"),
            ({"batch_threads": 1.5}, "batch_threads"),
            ({"trace_bytes": None}, "trace_bytes"),
            ({"max_dynamic_shared": "x"}, "max_dynamic_shared is None or"),
            ({"max_dynamic_shared": 300_000}, "232,448"),
            ({"schedule": []}, "schedule is one of"),
            ({"filename": 5}, "filename"),
            ({"include_dirs": "include"}, r"\('include',\)"),
        ],
    )
    def test_of_a_launch(self, more, words):
        b = np.zeros(64, np.float32)
        with pytest.raises(simulator.SimulatorError, match=words):
            simulator.launch(COPY, more.pop("entry", "k"), 1, 32, (floats(), b, N), **more)
        assert not b.any()

    @pytest.mark.parametrize("shape", [b"k", {1: 2}, iter([1]), np.array([1.5]), (1, (2,))])
    def test_of_a_shape(self, shape):
        with pytest.raises(
            simulator.SimulatorError, match="must be an integer or a tuple of 1 to 3"
        ):
            simulator.launch(COPY, "k", shape, 32, (floats(), floats(), N))

    @pytest.mark.parametrize(
        ("position", "value", "words"),
        [
            (2, np.array([5], np.int32), r"shape \(1,\): pass a NumPy scalar"),
            (2, np.str_("a"), "which no kernel can use"),
            (2, np.bool_(True), r"bool \(1 byte\)"),
            (0, floats().astype(">f4"), "foreign byte order"),
        ],
    )
    def test_of_an_argument(self, position, value, words):
        args = [floats(), floats(), N]
        args[position] = value
        fails("argument", COPY, tuple(args), words)

    @pytest.mark.parametrize("filters", [{"kind": "read"}, {"space": "constant"}])
    def test_of_a_trace(self, filters):
        report = simulator.launch(COPY, "k", 1, 32, (floats(), floats(), N))
        with pytest.raises(simulator.SimulatorError, match="or None for all"):
            report.accesses(**filters)


class TestThroughRawKernel:
    def launch(self, grid=(1,), block=(32,), args=None, **more):
        a, b = asarray(floats()), asarray(np.zeros(64, np.float32))
        RawKernel(COPY, "k")(grid, block, (a, b, N) if args is None else args(a, b), **more)
        return b

    def test_no_blocks_are_one_block(self):
        assert self.launch(grid=(), block=(32,))[4] == 8

    @pytest.mark.parametrize("shape", [(1.5,), ("1",), (None,), (64 / 32,)])
    def test_fractions_of_blocks(self, shape):
        with pytest.raises(TypeError, match="divide with //"):
            self.launch(grid=shape)

    @pytest.mark.parametrize("size", [1.5, "x", None])
    def test_shared_memory(self, size):
        with pytest.raises(simulator.SimulatorError, match="number of bytes"):
            self.launch(shared_mem=size)

    def test_arguments(self):
        with pytest.raises(TypeError, match="must be a tuple"):
            self.launch(args=lambda a, b: a)
        for number in (asarray(np.array(5, np.int32)), asarray(np.array([5], np.int32))):
            with pytest.raises(simulator.SimulatorError, match="pass a NumPy scalar"):
                self.launch(args=lambda a, b, number=number: (a, b, number))
        with pytest.raises(OverflowError, match="64 bits"):
            self.launch(args=lambda a, b: (a, b, 2**70))

    @pytest.mark.parametrize(("value", "error"), [(1.5, TypeError), ("x", TypeError)])
    def test_opt_in(self, value, error):
        with pytest.raises(error, match="whole number of bytes"):
            RawKernel(COPY, "k").max_dynamic_shared_size_bytes = value

    @pytest.mark.parametrize("value", ["x", 101, -2, 1.5])
    def test_carveout(self, value):
        with pytest.raises(ValueError, match="-1 or 0 to 100"):
            RawKernel(COPY, "k").preferred_shared_memory_carveout = value


def test_blocks_with_much_memory_run_a_few_at_a_time(monkeypatch):
    """20,000 blocks of 40 KB would be 800 MB of shared memory."""
    asked = []
    batches = simulator.launch.__globals__["batches"]
    monkeypatch.setitem(
        simulator.launch.__globals__, "batches",
        lambda grid, block, wanted: asked.append(wanted) or batches(grid, block, wanted),
    )  # fmt: skip
    shared = kernel("__shared__ float s[10000]; s[int(a[0])] = 1; __syncthreads(); a[1] += s[1];")
    before = "__device__ __noinline__ float f(float x) { float b[500]; b[int(x)] = 2; "
    before += "return x > 5 ? f(x - 1) * b[2] + b[1] : b[1]; }"
    stack = kernel("a[blockIdx.x] += f(a[blockIdx.x]);", before=before)
    for code, block, bytes_a_thread in ((shared, 1, 40_000), (stack, 256, 32 * 2000)):
        simulator.launch(code, "k", 4, block, (np.ones(4, np.float32),), count=False)
        assert 2**27 < asked[-1] * bytes_a_thread <= 2**28


def test_the_padding_of_a_struct_is_not_read():
    body = (
        "__shared__ P s[33]; int t = threadIdx.x; s[t].a = t; s[t].c = 2 * t; s[t].d = t * 0.5;"
        "__syncthreads(); P p = s[(t + 1) % 33]; o[t] = p.a + p.c + p.d;"
    )
    code = kernel(body, "double* o", "struct P { short a; char c; double d; };")
    o = np.zeros(33)
    assert not simulator.launch(code, "k", 1, 33, (o,), sanitize=True).findings
    np.testing.assert_array_equal(o, 3.5 * ((np.arange(33) + 1) % 33))
    half = code.replace("s[t].c = 2 * t;", "")
    findings = simulator.launch(half, "k", 1, 33, (o,), sanitize=True).findings
    assert [f.kind for f in findings] == ["uninitialised"]
