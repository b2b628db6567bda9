"""mbarriers, the copies that they wait for, and libcu++'s barriers and pipelines made of them.

Values are from the definition: PTX ISA, "Parallel Synchronization and Communication Instructions:
mbarrier", and "Data Movement and Conversion Instructions: Bulk copy".
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers import simulator
from helpers.simulator.errors import SimulatorError
from helpers.simulator.isa import mbarrier_words

SCHEDULES = ("lockstep", "warps", "warps_reversed")
THREADS = 64
PTX = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, unsigned n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ u64 arrive(u64* b) { u64 s;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(at(b)) : "memory");
  return s; }
__device__ void expect(u64* b, unsigned n) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;"
               :: "r"(at(b)), "r"(n) : "memory"); }
__device__ bool test(u64* b, unsigned parity) { int done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
               " selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
  return done; }
__device__ bool test_state(u64* b, u64 state) { int done;
  asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2;"
               " selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(b)), "l"(state) : "memory");
  return done; }
__device__ bool try_wait(u64* b, unsigned parity) { int done;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;"
               " selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
  return done; }
__device__ void wait(u64* b, unsigned parity) { while (!try_wait(b, parity)) {} }
__device__ int missing(u64 state) { int n;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(state)); return n; }
__device__ void load(void* to, const void* from, unsigned n, u64* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];" :: "r"(at(to)), "l"(__cvta_generic_to_global(from)),
               "r"(n), "r"(at(b)) : "memory"); }
__device__ void store(void* to, const void* from, unsigned n) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :: "l"(__cvta_generic_to_global(to)), "r"(at(from)), "r"(n) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void copy(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :: "r"(at(to)), "l"(__cvta_generic_to_global(from)) : "memory"); }

extern "C" __global__ void phases(int* out) {
  __shared__ u64 b;
  init(&b, 3);
  *out++ = test(&b, 0); *out++ = test(&b, 1);
  u64 s = arrive(&b);
  *out++ = missing(s); *out++ = test_state(&b, s);
  asm volatile("mbarrier.arrive.noComplete.shared.b64 _, [%0], 1;" :: "r"(at(&b)) : "memory");
  *out++ = test(&b, 0);
  u64 t = arrive(&b);
  *out++ = missing(t);
  *out++ = test_state(&b, s); *out++ = test(&b, 0); *out++ = test(&b, 1);
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1], 2;" : "=l"(t) : "r"(at(&b)) : "memory");
  *out++ = missing(t); *out++ = test(&b, 1);
  t = arrive(&b);
  *out++ = missing(t); *out++ = test(&b, 1); *out++ = test(&b, 0);
  t = arrive(&b);
  *out++ = missing(t); *out++ = test(&b, 0);
}

extern "C" __global__ void bytes(int* out) {
  __shared__ u64 b;
  init(&b, 1);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at(&b)));
  *out++ = test(&b, 0);
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at(&b)));
  *out++ = test(&b, 0);
  expect(&b, 32);
  *out++ = test(&b, 0);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at(&b)));
  *out++ = test(&b, 0);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at(&b)));
  *out++ = test(&b, 0);
  asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(at(&b)));
}

// out[i] = in[i] + 1, block by block; each block goes through `n` tiles in two buffers
extern "C" __global__ void bulk(const float* in, float* out, int n, int wrong) {
  __shared__ alignas(16) float s[2][64];
  __shared__ u64 full[2];
  int t = threadIdx.x;
  in += blockIdx.x * n * 64; out += blockIdx.x * n * 64;
  if (t < 2) init(&full[t], 1);
  asm volatile("fence.mbarrier_init.release.cluster;");
  if (wrong != 1) __syncthreads();
  for (int i = 0; i < n; ++i) {
    if (t == 0) {
      if (wrong != 2) asm volatile("cp.async.bulk.wait_group.read 1;");
      expect(&full[i % 2], 256 + (wrong == 3) * 16);
      load(s[i % 2], in + i * 64, 256, &full[i % 2]);
    }
    if (wrong != 4) wait(&full[i % 2], i / 2 % 2 ^ (wrong == 5));
    s[i % 2][t] += 1;
    asm volatile("fence.proxy.async.shared::cta;");
    __syncthreads();
    if (t == 0) store(out + i * 64, s[i % 2], 256);
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;");
}

// warp 0 fills two buffers by cp.async, warp 1 uses them
extern "C" __global__ void roles(const float* in, float* out, int n, int wrong) {
  __shared__ float s[2][32];
  __shared__ u64 full[2], empty[2];
  int t = threadIdx.x, lane = t % 32;
  if (t < 2) { init(&full[t], 32); init(&empty[t], 32); }
  __syncthreads();
  if (t < 32) for (int i = 0; i < n; ++i) {
    wait(&empty[i % 2], i / 2 % 2 ^ 1);
    copy(&s[i % 2][lane], in + i * 32 + lane);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(&full[i % 2])));
  }
  else for (int i = 0; i < n; ++i) {
    if (wrong == 3) while (!test(&full[i % 2], i / 2 % 2)) {}
    else if (wrong != 2) wait(&full[i % 2], i / 2 % 2);
    if (wrong == 1) arrive(&empty[i % 2]);
    out[i * 32 + lane] = s[i % 2][31 - lane];
    if (wrong != 1 && (wrong != 4 || lane)) arrive(&empty[i % 2]);
  }
}

extern "C" __global__ void meet(const float* in, float* out, int wrong) {
  __shared__ float s[64];
  __shared__ u64 b;
  int t = threadIdx.x;
  if (t == 0 && wrong != 1) init(&b, wrong == 2 ? 65 : 64);
  __syncthreads();
  s[t] = in[t];
  if (wrong == 3)
    asm volatile("mbarrier.arrive.shared.b64 _, [%0], 3;" :: "r"(at(&b)) : "memory");
  else if (wrong == 5)
    asm volatile("mbarrier.arrive.noComplete.shared.b64 _, [%0], 1;" :: "r"(at(&b)) : "memory");
  else if (wrong == 6) { expect(&b, 1 << 19); expect(&b, 1 << 19); }
  else arrive(&b);
  if (wrong != 4) wait(&b, wrong == 7 ? 2 : 0);
  out[t] = s[63 - t];
}

// two warps write, and one of their threads arrives for all
extern "C" __global__ void elected(const float* in, float* out, int wrong) {
  __shared__ float s[64];
  __shared__ u64 b;
  int t = threadIdx.x;
  if (t == 0) init(&b, wrong == 2 ? 2 : 1);
  __syncthreads();
  if (t < 64) {
    s[t] = in[t];
    if (!wrong) asm volatile("bar.sync 1, 64;" ::: "memory");
    __syncwarp();
    if (t == 0 || (wrong == 2 && t == 32)) arrive(&b);
  } else {
    wait(&b, 0);
    out[t - 64] = s[t - 64];
  }
}

extern "C" __global__ void amiss(const float* in, int offset, int n) {
  __shared__ alignas(16) float s[64];
  __shared__ u64 b;
  init(&b, 1);
  load(s, in + offset, n, &b);
}
"""


def launch(entry: str, *args, threads: int = THREADS, grid: int = 1, **options):
    return simulator.launch(PTX, entry, grid, threads, args, **options)


def test_phases_and_states():
    out = np.full(16, -1, np.int32)
    launch("phases", out, threads=1)
    # expected 3: phase 0 after three arrivals; the drop leaves 1 expected from phase 2 on
    wanted = [0, 1, 3, 0, 0, 1, 1, 1, 0, 3, 0, 1, 1, 0, 1, 1]
    assert out.tolist() == wanted


def test_bytes_are_waited_for_as_arrivals_are():
    out = np.full(5, -1, np.int32)
    launch("bytes", out, threads=1)
    assert out.tolist() == [0, 0, 0, 0, 1]


def test_many_lanes_arrive_as_one_after_another_would():
    random = np.random.default_rng(1)
    expected = random.integers(1, 9, 5)
    memory = mbarrier_words.initial(expected)
    left, parity = expected.copy(), np.zeros(5, int)
    for _ in range(20):
        index = random.integers(0, 5, 40)
        found, completed, bad = mbarrier_words.arrive(
            memory, index, np.ones(40, np.int64), np.zeros(40, np.int64), False
        )
        assert bad is None
        wanted, flips = [], set()
        for at in index:
            wanted.append((left[at], parity[at]))
            left[at] -= 1
            if not left[at]:
                left[at], parity[at] = expected[at], 1 - parity[at]
                flips.add(at)
        got = zip(mbarrier_words.pending(found), mbarrier_words.parity(found), strict=True)
        assert [tuple(map(int, each)) for each in got] == wanted
        assert set(completed.tolist()) == flips
        assert mbarrier_words.pending(memory).tolist() == left.tolist()


# ------------------------------------------------------------------ kernels that are right


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bulk_copies_in_and_out(schedule):
    n, blocks = 5, 3
    x = np.arange(blocks * n * THREADS, dtype=np.float32)
    out = np.zeros_like(x)
    options = {"grid": blocks, "schedule": schedule, "sanitize": True}
    report = launch("bulk", x, out, np.int32(n), np.int32(0), **options)
    assert (out == x + 1).all()
    assert report.findings == []
    # the machinery of bulk copies does not load and store, and an H200 does not count it either
    assert report.counters["global_load_requests"] == report.counters["global_store_requests"] == 0
    assert not any("bulk" in told or "mbarrier" in told for told in report.marks.values())


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("spins", [0, 3])
def test_a_producer_and_a_consumer(schedule, spins):
    n = 7
    x = np.arange(n * 32, dtype=np.float32)
    out = np.zeros_like(x)
    options = {"schedule": schedule, "sanitize": True}
    report = launch("roles", x, out, np.int32(n), np.int32(spins), **options)
    assert (out.reshape(n, 32) == x.reshape(n, 32)[:, ::-1]).all()
    assert report.findings == []


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("how", "races"), [(0, 0), (1, 1), (2, 0)])
def test_one_thread_arrives_for_others(schedule, how, races):
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    options = {"threads": 128, "schedule": schedule, "sanitize": True}
    report = launch("elected", x, out, np.int32(how), **options)
    assert [f.kind for f in report.findings] == ["race"] * races
    if not races:
        assert (out == x).all()


# ------------------------------------------------------------------ kernels that are wrong


@pytest.mark.parametrize(
    ("entry", "wrong", "told"),
    [
        ("meet", 1, "is not initialised"),
        ("meet", 2, "waits for ever at an mbarrier, whose phase lacks 1 of 65 arrivals"),
        ("meet", 3, "1 of 64 arrivals are missing"),
        ("meet", 5, "completes a phase, which .noComplete rules out"),
        ("meet", 7, "for the phase of parity 2: a parity is 0 or 1"),
        ("meet", 6, "makes 1,048,576 bytes wait, of at most 1,048,575"),
        ("bulk", 3, "whose phase lacks 16 bytes"),
        ("bulk", 5, "whose phase lacks 1 of 1 arrivals"),
        ("roles", 4, "whose phase lacks 1 of 32 arrivals"),
    ],
)
def test_who_waits_for_ever_is_told(entry, wrong, told):
    x = np.arange(5 * 64, dtype=np.float32)
    args = (x, x.copy(), *([np.int32(5)] if entry != "meet" else []), np.int32(wrong))
    with pytest.raises(SimulatorError, match=told) as error:
        launch(entry, *args)
    assert error.value.kind == "barrier"
    assert error.value.line is not None


@pytest.mark.parametrize(
    ("offset", "n", "told"),
    [
        (0, 24, "multiples of 16"),
        (1, 16, "multiples of 16"),
        (56, 64, "from in, from its byte 224 on; in has 256 bytes"),
        (0, 512, "shared memory, of which a block has"),
    ],
)
def test_bulk_copies_that_cannot_be(offset, n, told):
    x = np.zeros(64 if n < 512 else 256, np.float32)
    with pytest.raises(SimulatorError, match=told):
        launch("amiss", x, np.int32(offset), np.int32(n), threads=1)


@pytest.mark.parametrize(
    ("entry", "wrong", "kind", "told"),
    [
        ("meet", 4, "race", "race on s["),
        ("bulk", 1, "race", "behind the initialisation"),
        ("bulk", 2, "async", "wait_group.read"),
        ("bulk", 4, "async", "wait first for the phase of the mbarrier"),
        ("roles", 1, "race", "wait for a phase of an mbarrier"),
        ("roles", 2, "async", "wait first for the phase of the mbarrier"),
    ],
)
def test_the_sanitizer_finds_what_was_not_waited_for(entry, wrong, kind, told):
    x = np.arange(5 * 64, dtype=np.float32)
    n = 2 if wrong == 2 and entry == "roles" else 5  # else the consumer laps the producer
    args = (x, x.copy(), *([np.int32(n)] if entry != "meet" else []), np.int32(wrong))
    findings = launch(entry, *args, sanitize=True).findings
    assert any(f.kind == kind and told in f.message for f in findings), findings


LATE = (
    PTX.split('extern "C"')[0]
    + r"""
extern "C" __global__ void late(float* out, int count) {  // two warps read, the third one writes
  __shared__ u64 b; __shared__ float s[32];
  int t = threadIdx.x, w = t / 32;
  if (t == 0) init(&b, count);
  if (t < 32) s[t] = t;
  __syncthreads();
  if (w < 2) {
    if (t % 32 == 0) arrive(&b);
    out[t] = s[t % 32];
    if (t % 32 == 0) arrive(&b);
  } else { wait(&b, 0); s[t % 32] = 1; }
}
"""
)


@pytest.mark.parametrize(("count", "races"), [(4, 0), (3, 1)])
def test_an_arrival_after_the_last_one_is_not_of_the_phase(count, races):
    """Both warps arrive at once: with a count of 3 the second one's arrival is the next phase's."""
    out = np.zeros(64, np.float32)
    options = {"schedule": "lockstep", "sanitize": True}
    found = simulator.launch(LATE, "late", 1, 96, (out, np.int32(count)), **options).findings
    assert [f.kind for f in found] == ["race"] * races


# ------------------------------------------------------------------ libcu++

LIBRARY = r"""
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// the second warp leaves after the first phase
extern "C" __global__ void drops(const float* in, float* out) {
  __shared__ Barrier b; __shared__ float s[64];
  int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  s[t] = in[t];
  if (t >= 32) { b.arrive_and_drop(); return; }
  b.arrive_and_wait();
  float x = s[63 - t];
  b.arrive_and_wait();
  s[t] = x;
  auto token = b.arrive();
  b.wait(cuda::std::move(token));
  out[t] = s[31 - t];
}

// made of atomics, as it is not of the block alone
extern "C" __global__ void wide(const float* in, float* out) {
  __shared__ cuda::barrier<cuda::thread_scope_device> b; __shared__ float s[64];
  int t = threadIdx.x;
  if (t == 0) init(&b, 64);
  __syncthreads();
  s[t] = in[t];
  b.arrive_and_wait();
  out[t] = s[63 - t];
}

// all threads load and use, or the first warp loads for the second
template <bool ROLES> __device__ void tiles(const float* in, float* out, int n) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ float s[2][64];
  auto block = cg::this_thread_block();
  int t = threadIdx.x;
  auto role = t < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = ROLES ? cuda::make_pipeline(block, &state, role) : cuda::make_pipeline(block, &state);
  auto load = [&](int i) {
    if (i >= n) return;
    pipe.producer_acquire();
    for (int k = t; k < 64; k += ROLES ? 32 : 64)
      cuda::memcpy_async(&s[i % 2][k], in + i * 64 + k, cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  };
  auto use = [&](int i) {
    pipe.consumer_wait();
    for (int k = ROLES ? t - 32 : t; k < 64; k += ROLES ? 32 : 64)
      out[i * 64 + k] = s[i % 2][63 - k];
    pipe.consumer_release();
  };
  if (ROLES && t < 32) for (int i = 0; i < n; ++i) load(i);
  else if (ROLES) for (int i = 0; i < n; ++i) use(i);
  else {
    load(0);
    for (int i = 0; i < n; ++i) { load(i + 1); use(i); }
  }
}
template <typename Wait>
__device__ void rows(float* x, float* y, Wait wait) {
  if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x;
  wait();
  if (threadIdx.x < gridDim.x) y[blockIdx.x * gridDim.x + threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void grid_waits(float* x, float* y) {
  rows(x, y, [] { cooperative_groups::this_grid().sync(); }); }
extern "C" __global__ void blocks_wait(float* x, float* y) { rows(x, y, [] { __syncthreads(); }); }
extern "C" __global__ void together(const float* in, float* out, int n) {
  tiles<false>(in, out, n); }
extern "C" __global__ void apart(const float* in, float* out, int n) { tiles<true>(in, out, n); }
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_that_threads_leave(schedule):
    x, out = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    options = {"schedule": schedule, "sanitize": True}
    report = simulator.launch(LIBRARY, "drops", 1, 64, (x, out), **options)
    assert (out == x[32:]).all()
    assert report.findings == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_of_the_device(schedule):
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    options = {"schedule": schedule, "sanitize": True}
    report = simulator.launch(LIBRARY, "wide", 1, 64, (x, out), **options)
    assert (out == x[::-1]).all()
    assert report.findings == []


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("entry", ["together", "apart"])
def test_pipelines_of_two_stages(entry, schedule):
    n = 5
    x = np.arange(n * 64, dtype=np.float32)
    out = np.zeros_like(x)
    options = {"schedule": schedule, "sanitize": True}
    report = simulator.launch(LIBRARY, entry, 1, 64, (x, out, np.int32(n)), **options)
    assert (out.reshape(n, 64) == x.reshape(n, 64)[:, ::-1]).all()
    assert report.findings == []


@pytest.mark.parametrize("meets", [True, False])
def test_the_sanitizer_knows_of_barriers_of_the_grid(meets):
    x, y = np.zeros(4, np.float32), np.zeros(16, np.float32)
    entry = "grid_waits" if meets else "blocks_wait"
    report = simulator.launch(LIBRARY, entry, 4, 64, (x, y), cooperative=True, sanitize=True)
    assert [f.kind for f in report.findings] == ([] if meets else ["race"])
    assert (y.reshape(4, 4) == np.arange(4)).all()
