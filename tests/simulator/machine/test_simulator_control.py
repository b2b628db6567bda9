"""What the schedule has to get right: divergence, barriers, calls, warps, printing, traces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from helpers import simulator


def run(code, *args, grid=1, block=32, **more):
    return simulator.launch(code, "k", grid, block, args, **more)


def kernel(body, parameters="int* a", before=""):
    return f'{before}\nextern "C" __global__ void k({parameters}) {{\n{body}\n}}\n'


def test_grids_and_blocks_of_three_dimensions_and_partial_warps():
    code = kernel(
        "int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);"
        "int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);"
        "a[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t;"
    )
    for grid, block in [((3, 2, 4), (5, 3, 2)), ((7,), (33,)), ((1, 5), (1, 1, 9)), (2, 1)]:
        blocks, threads = int(np.prod(grid)), int(np.prod(block))
        expected = (np.arange(blocks)[:, None] * 1000 + np.arange(threads)).reshape(-1)
        for batch_threads in (1, 64, 1 << 16):
            a = np.full(blocks * threads, -1, np.int32)
            run(code, a, grid=grid, block=block, batch_threads=batch_threads)
            np.testing.assert_array_equal(a, expected)


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


def test_loops_of_different_lengths():
    code = kernel("int x = a[threadIdx.x], c = 0; while (x != 1) {"
                  "x = x & 1 ? 3 * x + 1 : x / 2; c++; } a[threadIdx.x] = c;")  # fmt: skip
    a = np.arange(1, 91, dtype=np.int32)
    run(code, a, block=90)
    np.testing.assert_array_equal(a, [collatz(n) for n in range(1, 91)])


def test_switch_with_a_jump_table():
    body = "int r; switch (a[threadIdx.x] % 9) {"
    body += "".join(f"case {n}: r = a[threadIdx.x] * {n + 3} ^ {n}; break;" for n in range(7))
    body += "default: r = -1; } a[threadIdx.x] = r;"
    a = np.arange(40, dtype=np.int32)
    run(kernel(body), a, block=40)
    expected = [n * (n % 9 + 3) ^ (n % 9) if n % 9 < 7 else -1 for n in range(40)]
    np.testing.assert_array_equal(a, expected)


def test_recursion_and_calls_that_are_not_inlined():
    before = (
        "__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }"
    )
    a = np.zeros(48, np.int32)
    run(kernel("a[threadIdx.x] = fib(threadIdx.x % 12);", before=before), a, block=48)
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    np.testing.assert_array_equal(a, [fib[n % 12] for n in range(48)])


def test_structs_by_value_through_calls():
    before = (
        "struct P { float x, y; double z; };"
        "__device__ __noinline__ P next(float a, P b) {"
        "P r; r.x = a + b.x; r.y = a * b.y; r.z = b.z + a; return r; }"
    )
    body = "P p = {1, 2, 3}; for (int i = 0; i < 3; i++) p = next(threadIdx.x + i, p);"
    body += "a[threadIdx.x] = p.x + p.y + p.z;"
    a = np.zeros(32, np.float32)
    run(kernel(body, "float* a", before), a)
    x, y, z = np.ones(32), np.full(32, 2.0), np.full(32, 3.0)
    for i in range(3):
        t = np.arange(32) + i
        x, y, z = t + x, t * y, z + t
    np.testing.assert_array_equal(a, (x + y + z).astype(np.float32))


def test_function_pointers_that_differ_between_lanes():
    before = (
        "__device__ __noinline__ int f1(int x) { return x + 1; }"
        "__device__ __noinline__ int f2(int x) { return x * 10; }"
        "typedef int (*F)(int); __device__ F table[2] = {f1, f2};"
    )
    a = np.zeros(32, np.int32)
    run(kernel("a[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x);", before=before), a)
    np.testing.assert_array_equal(a, [n * 10 if n % 2 else n + 1 for n in range(32)])


def test_local_arrays_with_moving_indices():
    body = (
        "int b[20]; for (int i = 0; i < 20; i++) b[i] = i * threadIdx.x; int s = 0;"
        "for (int i = 0; i < n; i++) { s += b[(i * 7 + threadIdx.x) % 20]; b[i % 20] = s; }"
        "a[threadIdx.x] = s;"
    )
    a = np.zeros(37, np.int32)
    run(kernel(body, "int* a, int n"), a, np.int32(13), block=37)
    for t in range(37):
        b, s = [i * t for i in range(20)], 0
        for i in range(13):
            s += b[(i * 7 + t) % 20]
            b[i % 20] = s
        assert a[t] == s


def test_constants_structs_and_null_pointers_as_parameters():
    before = "struct P { int n; float s; const float* p; };"
    before += "__constant__ float c[3] = {1.5f, 2, 4};"
    body = "a[threadIdx.x] = q.s * q.n + c[threadIdx.x % 3] + (q.p == nullptr) + (z == nullptr);"
    value = np.array([(3, 2.5, 0)], dtype=[("n", "i4"), ("s", "f4"), ("p", "i8")])[0]
    a = np.zeros(5, np.float32)
    run(kernel(body, "P q, float* a, float* z", before), value, a, 0, block=5)
    np.testing.assert_array_equal(a, 7.5 + np.array([1.5, 2, 4, 1.5, 2]) + 2)


def test_barriers_that_reduce():
    body = (
        "int c = __syncthreads_count(threadIdx.x % 3 == 0);"
        "int o = __syncthreads_or(threadIdx.x == 77);"
        "int d = __syncthreads_and(threadIdx.x < 100); a[threadIdx.x] = c * 100 + o * 10 + d;"
    )
    a = np.zeros(100, np.int32)
    run(kernel(body), a, block=100)
    assert (a == 34 * 100 + 11).all()


def test_named_barriers_with_arrive():
    body = (
        "__shared__ int s[64]; int t = threadIdx.x; if (t < 32) { s[t] = t;"
        'asm volatile("bar.arrive 1, 64;" ::: "memory"); } else {'
        'asm volatile("bar.sync 1, 64;" ::: "memory"); a[t - 32] = s[t - 32] * 2; }'
    )
    a = np.zeros(32, np.int32)
    run(kernel(body), a, block=64)
    np.testing.assert_array_equal(a, 2 * np.arange(32))


SYNC = 'asm volatile("bar.sync %0, 64;" :: "r"(1 + w) : "memory");'


def test_warps_take_turns_at_barriers_of_their_own():
    """The number of a barrier may differ from warp to warp: each waits for the one before it."""
    body = (
        "__shared__ int n; int t = threadIdx.x, w = t / 32; if (t == 0) n = 0; __syncthreads();"
        'if (w == 2) asm volatile("bar.arrive 1, 64;" ::: "memory");'
        f"for (int i = 0; i < 3; i++) {{ {SYNC} if (t % 32 == 0) a[n++] = 10 * i + w;"
        "if (w < 2 || i < 2)"
        'asm volatile("bar.arrive %0, 64;" :: "r"(1 + (w + 1) % 3) : "memory"); }'
    )
    a = np.zeros(9, np.int32)
    run(kernel(body), a, block=96)
    np.testing.assert_array_equal(a, [0, 1, 2, 10, 11, 12, 20, 21, 22])


def test_a_barrier_to_which_half_of_its_threads_come_never_opens():
    body = f"int w = threadIdx.x / 32; {SYNC} a[threadIdx.x] = 1;"
    told = r"\(0, 0, 0\).* at barrier 1: it opens for 64 threads, and 32 have come"
    with pytest.raises(simulator.SimulatorError, match=told):
        run(kernel(body), np.zeros(64, np.int32), block=64)


def test_a_barrier_of_two_numbers_of_threads():
    body = (
        'if (threadIdx.x < 32) { asm volatile("bar.arrive 1, 32;"); }'
        'else { asm volatile("bar.sync 1, 64;"); a[0] = 1; }'
    )
    told = "barrier 1 of 32 threads, and others .* one of 64"
    with pytest.raises(simulator.SimulatorError, match=told):
        run(kernel(body), np.zeros(1, np.int32), block=64)


def test_warp_barrier_between_diverged_halves():
    body = (
        "__shared__ int s[32]; int t = threadIdx.x; if (t < 16) { s[t] = t * 3; __syncwarp(); "
        "a[t] = s[t + 16]; } else { s[t] = t * 5; __syncwarp(); a[t] = s[t - 16]; }"
    )
    a = np.zeros(32, np.int32)
    run(kernel(body), a)
    expected = [(t + 16) * 5 if t < 16 else (t - 16) * 3 for t in range(32)]
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    "loop",
    [
        "while (atomicCAS(&lock, 0, 1) != 0); a[0] += 1; __threadfence(); atomicExch(&lock, 0);",
        "bool done = false; while (!done) { if (atomicCAS(&lock, 0, 1) == 0) { a[0] += 1;"
        "__threadfence(); atomicExch(&lock, 0); done = true; } }",
    ],
)
def test_spin_locks_make_progress(loop):
    a = np.zeros(1, np.int32)
    run(kernel(loop, before="__device__ int lock = 0;"), a, grid=2)
    assert a[0] == 64


def test_atomics_on_shared_and_global_memory():
    body = (
        "__shared__ int s[8]; int t = threadIdx.x; if (t < 8) s[t] = 0; __syncthreads();"
        "int o = atomicAdd(&s[v[t] & 7], 1); __syncthreads(); if (t < 8) atomicAdd(&a[t], s[t]);"
        "atomicMax(&a[8], o); atomicAdd(f, 0.5f);"
    )
    a, f = np.zeros(9, np.int32), np.zeros(1, np.float32)
    v = np.arange(100, dtype=np.int32)
    run(kernel(body, "int* a, const int* v, float* f"), a, v, f, grid=4, block=100)
    counts = np.bincount(v & 7) * 4
    np.testing.assert_array_equal(a, [*counts, 12])
    assert f[0] == 200


def test_atomics_on_vectors_add_each_element():
    body = """
    float4 was = atomicAdd(&a[threadIdx.x & 1], make_float4(1, 2, 3, 4));
    old[threadIdx.x] = was.x + was.w;
    atomicAdd((float2*)pairs + 1, make_float2(0.5f, threadIdx.x));
    asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %1};" :: "l"(halves), "r"(0x3c004000));
    """
    a, old, pairs = (np.zeros(n, np.float32) for n in (8, 40, 4))
    halves = np.zeros(4, np.float16)
    parameters = "float4* a, float* old, float* pairs, __half2* halves"
    code = kernel(body, parameters, "#include <cuda_fp16.h>\n")
    report = run(code, a, old, pairs, halves, block=40, sanitize=True)
    assert not report.findings
    assert a.tolist() == [20, 40, 60, 80] * 2
    np.testing.assert_array_equal(np.sort(old), np.repeat(np.arange(20), 2) * 5)
    assert pairs.tolist() == [0, 0, 20, 780] and halves.tolist() == [80, 40, 80, 40]


def test_special_registers_of_shared_memory():
    names = ("dynamic", "total", "aggr")
    reads = "".join(
        f'asm("mov.u32 %0, %{name}_smem_size;" : "=r"(a[{k}]));' for k, name in enumerate(names)
    )
    body = "__shared__ int s[50]; s[threadIdx.x] = 0; extern __shared__ int d[]; d[0] = s[9];"
    a = np.zeros(3, np.int32)
    run(kernel(body + reads + "a[0] += d[0];"), a, shared_mem=100)
    assert a.tolist() == [100, 384, 384 + 1024]  # 208 bytes and 100, in units of 128


def test_printf(capsys):
    body = (
        'if (threadIdx.x < 3) printf("t %d %s %5.2f %c%% %lld %x %-4u|\\n", threadIdx.x, "hi",'
        "threadIdx.x * 1.5, 'x', 1ll << 40, 255, 7u);"
    )
    report = run(kernel(body), np.zeros(1, np.int32), grid=2)
    lines = [f"t {t} hi {t * 1.5:5.2f} x% {1 << 40} ff 7   |\n" for t in range(3)]
    assert capsys.readouterr().out == "".join(lines * 2) == report.output


def test_progress_shows_on_long_launches_only(capsys, monkeypatch):
    from helpers.simulator.observe import progress

    code = kernel("a[blockIdx.x] = 1;")
    run(code, np.zeros(64, np.int32), grid=64, batch_threads=32)
    assert capsys.readouterr().err == ""
    clock = itertools.count(0, 0.7)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    run(code, np.zeros(64, np.int32), grid=64, batch_threads=32)
    assert "simulating k" in capsys.readouterr().err
    run(code, np.zeros(64, np.int32), grid=64, batch_threads=32, progress=False)
    assert capsys.readouterr().err == ""


class TestTrace:
    code = kernel(
        "__shared__ float s[2][40];\n"
        "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
        "s[t & 1][t / 2] = a[i];\n"
        "__syncthreads();\n"
        "if (t < 20)\n"
        "b[i * 2] = s[1][t];",
        "const float* a, float* b",
    )

    def report(self, **more):
        a, b = np.arange(80, dtype=np.float32), np.zeros(160, np.float32)
        report = run(self.code, a, b, grid=2, block=40, **more)
        expected = np.zeros(160, np.float32)
        for block in range(2):
            for t in range(20):
                expected[2 * (block * 40 + t)] = a[block * 40 + 2 * t + 1]
        np.testing.assert_array_equal(b, expected)
        return report

    def test_every_access_in_order(self):
        accesses = self.report().accesses()
        assert [a.order for a in accesses] == sorted(a.order for a in accesses)
        loads = [a for a in accesses if a.space == "global" and a.kind == "load"]
        assert {(a.line, a.array) for a in loads} == {(5, "a")}
        assert [(a.block[0], a.warp, a.lane, a.index) for a in loads] == [
            (b, t // 32, t % 32, b * 40 + t) for b in range(2) for t in range(40)
        ]
        stores = [a for a in accesses if a.space == "shared" and a.kind == "store"]
        assert [(a.thread[0], a.array, a.index) for a in stores] == [
            (t, "s", (t % 2) * 40 + t // 2) for t in range(40)
        ] * 2

    def test_filters(self):
        report = self.report()
        by_line = report.accesses(line=8)
        assert {a.kind for a in by_line} == {"load", "store"}
        written = report.accesses(line=8, kind="store", space="global")
        assert [a.index for a in written] == [2 * (b * 40 + t) for b in range(2) for t in range(20)]
        assert report.accesses(line=3) == []
        second = list(report.iterate(space="global", kind="load", block=(1, 0, 0), warp=1))
        assert [(a.block, a.warp, a.lane, a.index) for a in second] == [
            ((1, 0, 0), 1, t - 32, 40 + t) for t in range(32, 40)
        ]
        assert not list(report.iterate(block=(2, 0, 0))) and not list(report.iterate(warp=2))

    def test_accesses_of_warps_are_counted_once(self):
        report = self.report()
        by_warp = {(a.order, a.block, a.warp) for a in report.accesses(line=8)}
        assert report.warp_accesses(line=8) == len(by_warp) > 0
        assert report.warp_accesses(kind="load", space="global") == 4  # 2 blocks of 40 threads
        with pytest.raises(simulator.SimulatorError, match="kind is one of"):
            report.warp_accesses(kind="read")

    def test_batches_do_not_change_it(self):
        # each launch has arrays of its own, and so other addresses
        whole, parts = (
            [(*a[1:-1], a.address % 4096) for a in report.accesses(kind="load", space="global")]
            for report in (self.report(), self.report(batch_threads=1))
        )
        assert whole == parts

    def test_without_counting_or_memory_there_is_none(self):
        a, b = np.arange(80, dtype=np.float32), np.zeros(160, np.float32)
        report = run(self.code, a, b, grid=2, block=40, count=False)
        with pytest.raises(simulator.SimulatorError, match="count=False"):
            report.accesses()
        report = self.report(trace_bytes=500)
        with pytest.raises(simulator.SimulatorError, match="trace_bytes"):
            report.accesses()
        assert report.counters["global_load_requests"] == 4


def test_counters_per_line_of_included_and_inlined_code():
    code = kernel(
        "int t = threadIdx.x;\na[t] = twice(b, t);\na[t + 32] = twice(b, t + 32);",
        "float* a, const float* b",
        "__device__ __forceinline__ float twice(const float* p, int i) {\n  return p[i] * 2;\n}",
    )
    a, b = np.zeros(64, np.float32), np.arange(64, dtype=np.float32)
    report = run(code, a, b)
    assert report.by_line[2]["global_load_sectors"] == 8
    assert report.by_line[6]["global_store_sectors"] == 4
    assert report.by_line[2]["flops"] == 64
    assert report.counters["flops"] == 64
    assert report.counters["global_load_bytes"] == 256
    assert report.counters["instructions"] > 8


def test_flops_count_fused_operations_twice():
    code = kernel("int t = threadIdx.x; a[t] = a[t] * b[t] + c[t];",
                  "float* a, const float* b, const float* c")  # fmt: skip
    a = np.ones(32, np.float32)
    report = run(code, a, a.copy(), a.copy())
    assert (a == 2).all()
    assert report.counters["flops"] == 64


def test_launches_do_not_touch_each_other():
    code = kernel("a[threadIdx.x] = atomicAdd(&counter, 1);", before="__device__ int counter = 5;")
    for _ in range(2):
        a = np.zeros(32, np.int32)
        run(code, a)
        np.testing.assert_array_equal(a, np.arange(5, 37))
