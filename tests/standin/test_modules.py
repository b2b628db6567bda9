"""Modules as CuPy has them: templates by name, variables that stay, pointers in memory, heap."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from helpers import simulator, standin
from helpers.simulator.errors import SimulatorError

COUNTER = """
__device__ int calls = 5;
__constant__ float factor[3] = {1, 2, 4};
extern "C" __global__ void count(int* o) { o[0] = ++calls; }
extern "C" __global__ void look(int* o) { o[0] = calls * 100; }
extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= factor[threadIdx.x]; }
"""
TEMPLATE = """
template <typename T, int N> __global__ void fill(T* x, T value) {
    if (threadIdx.x < N) x[threadIdx.x] = value + T(N);
}
namespace inner { template <int N> __global__ void put(int* x) { x[0] = N; } }
"""


def ints(n: int = 1):
    return standin.zeros(n, np.int32)


def test_templates_are_made_by_name():
    names = ["fill<float, 3>", "fill<unsigned char, 2>", "inner::put<7>"]
    module = standin.RawModule(code=TEMPLATE, name_expressions=names)
    x, y, z = standin.zeros(5, np.float32), standin.zeros(5, np.uint8), ints()
    module.get_function(names[0])((1,), (5,), (x, np.float32(0.5)))
    module.get_function(names[1])((1,), (5,), (y, np.uint8(40)))
    module.get_function(names[2])((1,), (1,), (z,))
    assert x.get().tolist() == [3.5, 3.5, 3.5, 0, 0]
    assert y.get().tolist() == [42, 42, 0, 0, 0]
    assert z.get().tolist() == [7]


def test_a_template_without_its_name_is_told_how():
    with pytest.raises(SimulatorError, match=r"name_expressions=\[.*template __global__"):
        standin.RawModule(code=TEMPLATE).get_function("fill")
    with pytest.raises(TypeError, match="list of strings"):
        standin.RawModule(code=TEMPLATE, name_expressions="fill<float, 3>")


def test_an_explicit_instantiation_works_without():
    code = TEMPLATE + "template __global__ void fill<int, 2>(int*, int);"
    x = ints(3)
    standin.RawKernel(code, "fill<int, 2>")((1,), (3,), (x, np.int32(1)))
    assert x.get().tolist() == [3, 3, 0]


def test_variables_stay_between_launches_and_kernels():
    code, o = COUNTER + "// stays\n", ints()
    count = standin.RawKernel(code, "count")
    seen = []
    for _ in range(3):
        count((1,), (1,), (o,))
        seen.append(int(o[0]))
    standin.RawModule(code=code).get_function("look")((1,), (1,), (o,))
    assert [*seen, int(o[0])] == [6, 7, 8, 800]
    standin.RawKernel(COUNTER + "// another module\n", "count")((1,), (1,), (o,))
    assert int(o[0]) == 6


def test_the_simulators_own_launch_starts_afresh():
    o = np.zeros(1, np.int32)
    for _ in range(2):
        simulator.launch(COUNTER, "count", 1, 1, (o,))
        assert o[0] == 6


def test_globals_are_read_and_written_from_the_host():
    module = standin.RawModule(code=COUNTER + "// globals\n")
    calls = standin.ndarray((1,), np.int32, module.get_global("calls"))
    calls[...] = 41
    o = ints()
    module.get_function("count")((1,), (1,), (o,))
    assert int(o[0]) == 42 == int(calls[0])
    values = np.array([3, 5, 7], np.float32)
    module.get_global("factor").copy_from_host(values.ctypes.data_as(ctypes.c_void_p), 12)
    x = standin.full(3, 2, np.float32)
    module.get_function("scale")((1,), (3,), (x,))
    assert x.get().tolist() == [6, 10, 14]
    back = np.zeros(2, np.float32)
    (module.get_global("factor") + 4).copy_to_host(back.ctypes.data, 8)
    assert back.tolist() == [5, 7]
    with pytest.raises(ValueError, match=r"no .* variable other; it has calls, factor"):
        module.get_global("other")
    with pytest.raises(ValueError, match="16 bytes do not fit into the 12"):
        module.get_global("factor").memset(0, 16)


def test_a_stopped_launch_tells_of_variables_too():
    code = '__device__ int n; extern "C" __global__ void k(int* o) { n = 3;\no[9] = n; }'
    with pytest.raises(SimulatorError, match="n may be part-written"):
        standin.RawKernel(code, "k")((1,), (1,), (ints(),))


def test_pointers_in_memory_and_in_structs_lead_to_arrays():
    code = """
    struct Pair { float* data; int n; };
    extern "C" __global__ void sums(Pair* pairs, float* out) {
        Pair p = pairs[threadIdx.x];
        float sum = 0;
        for (int i = 0; i < p.n; i++) sum += p.data[i];
        out[threadIdx.x] = sum;
    }
    extern "C" __global__ void far(float** rows) { rows[0][70] = 1; }
    """
    a, b = standin.arange(5, dtype=np.float32), standin.full(70, 2, np.float32)
    pairs = np.zeros(2, np.dtype([("data", np.uint64), ("n", np.int32)], align=True))
    pairs["data"], pairs["n"] = [a.data.ptr + 4, b.data.ptr], [4, 70]
    out = standin.zeros(2, np.float32)
    standin.RawKernel(code, "sums")((1,), (2,), (standin.asarray(pairs), out))
    assert out.get().tolist() == [10, 140]
    rows = standin.asarray(np.array([b.data.ptr], np.uint64))
    with pytest.raises(SimulatorError, match=r"array\(70\)\[70\]|array\(70,\)\[70\]|\[70\] by"):
        standin.RawKernel(code, "far")((1,), (1,), (rows,))
    gone = standin.zeros(90, np.float32)
    rows[0] = gone.data.ptr
    del gone
    with pytest.raises(SimulatorError, match="far from every array"):
        standin.RawKernel(code, "far")((1,), (1,), (rows,))


def test_an_address_stays_while_its_array_lives():
    x = standin.zeros(8, np.float64)
    assert x.data.ptr == x.data.ptr and x.data.ptr % 256 == 0
    assert x[3:].data.ptr == x.data.ptr + 24
    y = standin.zeros(8, np.float64)
    assert abs(y.data.ptr - x.data.ptr) >= 64


def test_the_heap_lives_as_long_as_the_module():
    code = """
    extern "C" __global__ void make(int** t) {
        int* p = new int[3];
        p[2] = 10 * threadIdx.x;
        t[threadIdx.x] = p;
    }
    extern "C" __global__ void read(int** t, int* o) { o[threadIdx.x] = t[threadIdx.x][2]; }
    extern "C" __global__ void drop(int** t) { delete[] t[threadIdx.x]; }
    extern "C" __global__ void much(int** t) { t[0] = (int*)malloc(9 << 20); }
    """
    module, table, o = standin.RawModule(code=code), standin.zeros(40, np.uint64), ints(40)
    module.get_function("make")((1,), (40,), (table,))
    module.get_function("read")((1,), (40,), (table, o))
    assert np.array_equal(o.get(), 10 * np.arange(40))
    assert len(set(table.get().tolist())) == 40 and not (table.get() % 16).any()
    module.get_function("drop")((1,), (40,), (table,))
    with pytest.raises(SimulatorError, match=r"thread \(0, 0, 0\) of block \(0, 0, 0\) frees what"):
        module.get_function("drop")((1,), (40,), (table,))
    module.get_function("much")((1,), (1,), (table,))
    assert int(table[0]) == 0  # as on a GPU: no such piece is left


GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void pass(const int* a, int* b, int* c, int n) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank();
    b[i] = a[i] + 1;
    grid.sync();
    c[i] = b[n - 1 - i];
    grid.sync();
    b[i] = c[n - 1 - i] * 2;
}
"""


def test_a_grid_waits_for_all_its_blocks():
    n = 7 * 48
    a = standin.arange(n, dtype=np.int32)
    b, c = ints(n), ints(n)
    kernel = standin.RawKernel(GRID, "pass", enable_cooperative_groups=True)
    kernel((7,), (48,), (a, b, c, np.int32(n)))
    assert np.array_equal(c.get(), n - np.arange(n))
    assert np.array_equal(b.get(), 2 * (np.arange(n) + 1))


def test_a_grid_barrier_needs_a_cooperative_launch_that_fits():
    args = (ints(64), ints(64), ints(64), np.int32(64))
    with pytest.raises(SimulatorError, match="line 4.*enable_cooperative_groups=True"):
        standin.RawKernel(GRID, "pass")((2,), (32,), args)
    big = standin.RawKernel(GRID, "pass", enable_cooperative_groups=True)
    with pytest.raises(SimulatorError, match="holds 264 of them at once"):
        big((265,), (1024,), args)


def test_clocks_count_instructions_and_multiprocessors_go_round():
    code = """
    extern "C" __global__ void k(long long* t, unsigned* sm) {
        long long start = clock64();
        float x = threadIdx.x;
        for (int i = 0; i < 37; i++) x = x * x + t[0];
        t[1] = clock64() - start;
        t[2] = x;
        unsigned id;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
        sm[blockIdx.x] = id;
    }
    """
    t, sm = standin.zeros(3, np.int64), standin.zeros(140, np.uint32)
    standin.RawKernel(code, "k")((140,), (1,), (t, sm))
    assert 37 <= int(t[1]) < 6 * 37
    assert np.array_equal(sm.get(), np.arange(140) % 132)
