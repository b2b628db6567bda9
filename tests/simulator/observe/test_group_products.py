"""The sanitizer on wgmma and TMA: one kernel that is right, and what it finds in wrong ones.

A warpgroup multiplies A, which it wrote itself, by tiles of B, which a producer's thread copies to
two stages. Marks such as `[2]` name lines; each case leaves one out, or changes it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from helpers import simulator
from helpers.gpu.tensor_map import tensor_map
from helpers.simulator.errors import SimulatorError

CODE = r"""
typedef unsigned long long u64;
typedef unsigned short half;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(u64* b, int parity) {
  int done = 0;
  while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
    "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(b)), "r"(parity) : "memory"); }
__device__ void arrive(u64* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
__device__ void expect(u64* b, int n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(at(b)), "r"(n) : "memory"); }
__device__ void init(u64* b, int n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");  // [init]
}

// That registers are operands keeps the compiler from moving what reads or writes them past it.
#define REGISTERS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), \
  "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define GROUP(what) asm volatile("wgmma." what ";" : REGISTERS :: "memory")

extern "C" __global__ void k(const half* A, const __grid_constant__ Map B,
                             const __grid_constant__ Map out, float* D, int tiles) {
  __shared__ alignas(1024) half a[64 * 16], b[2][512];
  __shared__ u64 full[2], empty[2];
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < 2; ++s) { init(&full[s], 1); init(&empty[s], 1); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // [made]
  }
  if (t < 128) {
    for (int n = t; n < 64 * 16; n += 128) {
      int row = n / 16, chunk = n % 16 / 8;
      a[row / 8 * 128 + chunk * 64 + row % 8 * 8 + n % 8] = A[n];  // [write]
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // [proxy]
  }
  __syncthreads();  // [meet]
  if (t >= 128) {
    if (t == 128) for (int i = 0; i < tiles; ++i) {
      int s = i % 2;
      wait(&empty[s], i / 2 % 2 ^ 1);  // [empty]
      expect(&full[s], 24 * 32);  // [expect]
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" :: "r"(at(b[s])), "l"(&B), "r"(0), "r"(24 * i),
        "r"(at(&full[s])) : "memory");  // [copy]
    }
    return;
  }
  float d[12], extra = 0;
  for (int n = 0; n < 12; ++n) d[n] = t;  // [first]
  u64 da = 8ull << 16 | 16ull << 32 | at(a) >> 4;
  for (int i = 0; i < tiles; ++i) {
    int s = i % 2;
    wait(&full[s], i / 2 % 2);  // [full]
    u64 db = 3ull << 62 | 16ull << 32 | at(b[s]) >> 4;
    for (int n = 0; n < 12; ++n) d[n] *= 0.5f;  // [scale]
    GROUP("fence.sync.aligned");  // [fence]
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n24k16.f32"
      ".f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}, %12, %13, p, 1, 1, 0, 0;}"
      : REGISTERS : "l"(da), "l"(db) : "memory");  // [product]
    GROUP("commit_group.sync.aligned");  // [commit]
    // [early]
    GROUP("wait_group.sync.aligned 0");  // [wait]
    if (t % 128 == 0) arrive(&empty[s]);  // [arrive]
  }
  for (int n = 0; n < 12; ++n)
    D[(t / 32 * 16 + t % 32 / 4 + n / 2 % 2 * 8) * 24 + n / 4 * 8 + t % 4 * 2 + n % 2] =
      d[n] + extra;  // [out]
  asm volatile("bar.sync 1, 128;" ::: "memory");
  a[t] = t;  // [put]
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // [proxy of a store]
  asm volatile("bar.sync 1, 128;" ::: "memory");  // [meet for a store]
  if (t == 0) {
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];"
      :: "l"(&out), "r"(0), "r"(at(a)) : "memory");  // [store]
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // [stored]
  }
}
"""
TILES = 5
LINES = {m[1]: text[: m.start()].count("\n") + 1
         for text in [CODE] for m in re.finditer(r"// \[(.*?)\]", text)}  # fmt: skip


def changed(*changes: tuple[str, str]) -> str:
    """The code with the statement in front of each mark put another way; "" leaves it out."""
    lines = CODE.split("\n")
    for mark, text in changes:
        number = LINES[mark] - 1
        assert ";" in lines[number] or mark == "early"
        lines[number] = text
    return "\n".join(lines)


def launch(code: str = CODE, grid: int = 1, tiles: int = TILES, **options):
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, (rows, 16)).astype(np.float16) for rows in (64, 24 * TILES))
    out, d = np.zeros(128, np.uint16), np.zeros((64, 24), np.float32)
    maps = tensor_map(b, (24, 16), 32), tensor_map(out, (128,), 0)
    report = simulator.launch(
        code, "k", grid, 256, (a.view(np.uint16), *maps, d, np.int32(tiles)),
        options=("-arch=sm_90a",), **options,
    )  # fmt: skip
    wanted = (
        np.zeros((64, 24))
        + np.arange(128)
        .reshape(4, 8, 1, 4)
        .repeat(2, 2)
        .transpose(0, 2, 1, 3)
        .reshape(64, 4)[:, np.tile(np.arange(4).repeat(2), 3)]
    )
    for n in range(TILES):
        wanted = wanted / 2 + a.astype(float) @ b[24 * n : 24 * n + 24].astype(float).T
    return report, d, wanted, out


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "warps_reversed"])
def test_nothing_is_found_in_what_is_right(schedule):
    report, d, wanted, out = launch(schedule=schedule, sanitize=True)
    assert not report.findings, report.findings
    np.testing.assert_array_equal(d, wanted)
    assert out.tolist() == list(range(128))


def test_blocks_of_a_batch_are_followed_apart():
    _, d, wanted, _ = launch()
    report, *_ = launch(grid=3, sanitize=True)
    # all blocks write the same array, and that is all there is to find
    assert {f.kind for f in report.findings} == {"race"}
    assert all("blocks run in no order" in f.message for f in report.findings)
    np.testing.assert_array_equal(d, wanted)


ARRIVES = "if (t % 128 == 0) arrive(&empty[s]);"
HALVES = "for (int n = 0; n < 12; ++n) d[n] *= 0.5f;"
COMMITS, WAITS = 'GROUP("commit_group.sync.aligned");', 'GROUP("wait_group.sync.aligned 1");'
BARE = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
PROXY = 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'
CASES = {
    "no fence": ([("fence", "")], ("scale", "product"), "writes with no wgmma.fence between"),
    "fence too early": (
        [("scale", 'GROUP("fence.sync.aligned");'), ("fence", HALVES)],
        ("fence", "product"),
        "writes with no wgmma.fence between",
    ),
    "moved past the fence": ([("fence", BARE)], ("scale", "product"), "the compiler has moved"),
    "no fence, constants": (
        [("fence", ""), ("scale", ""), ("first", "for (int n = 0; n < 12; ++n) d[n] = 0;")],
        ("product",),
        "with no wgmma.fence before: put one",
    ),
    "read early": ([("early", "extra += d[3];")], ("product", "early"), "reads registers of the"),
    "not committed": ([("commit", "")], ("product", "out"), "reads registers of the wgmma of"),
    "waited for another": ([("wait", WAITS)], ("product", "out"), "reads registers of the wg"),
    "no proxy fence": ([("proxy", "")], ("write", "product"), "wgmma reads a[0], which thread"),
    "no barrier": ([("meet", "")], ("write", "product"), "race on a["),
    "full not waited for": (
        [("full", "")],
        ("copy", "product"),
        "while the cp.async.bulk.tensor of line",
    ),
    "arrives too early": (
        [("early", ARRIVES), ("arrive", "")],
        ("product", "copy"),
        "which the wgmma of line",
    ),
    "arrives before the commit": (
        [("commit", ARRIVES + COMMITS), ("arrive", "")],
        ("product", "copy"),
        "which the wgmma of line",
    ),
    "mbarriers not fenced": (
        [("made", ""), ("proxy", f"if (t) {PROXY}")],
        ("init", "copy"),
        "arrives at the mbarrier that thread (0, 0, 0)",
    ),
    "no proxy fence of a store": (
        [("proxy of a store", "")],
        ("put", "store"),
        "cp.async.bulk.tensor reads a[0], which",
    ),
    "no barrier before a store": ([("meet for a store", "")], ("put", "store"), "race on a["),
    "store left behind": ([("stored", "")], ("store",), "ends while the cp.async.bulk.tensor of"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_found(case):
    changes, marks, told = CASES[case]
    # two tiles, so that a consumer that waits for nothing does not lap the producer
    report, *_ = launch(changed(*changes), tiles=2 if "full" in case else TILES, sanitize=True)
    found = [f for f in report.findings if told in f.message]
    assert found, report.findings
    assert found[0].lines == tuple(LINES[mark] for mark in marks), found[0]
    assert found[0].kind == ("race" if told.startswith("race") else "async")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("expect", "expect(&full[s], 24 * 32 + 16);")], "whose phase lacks 16 bytes"),
        ([("expect", "")], "lacks 1 of 1 arrivals"),
        ([("full", "wait(&full[s], i / 2 % 2 ^ 1);"), ("empty", "")], "waits for ever"),
        ([("arrive", "")], "lacks 1 of 1 arrivals"),
        ([("full", "wait(&full[s], i / 2 % 2); if (t >= 96) return;")],
         "a product of its warpgroup (wgmma) that other threads of the warpgroup never reach"),
    ],
    ids=["bytes", "nothing expected", "parity", "nobody arrives", "a warp is gone"],
)  # fmt: skip
def test_waiting_for_ever_is_one_sentence(changes, told):
    with pytest.raises(SimulatorError) as caught:
        launch(changed(*changes), sanitize=True)
    assert caught.value.kind == "barrier" and told in str(caught.value)


def test_a_wait_that_passes_too_early_is_found():
    """The consumer asks for the phase before the first, which counts as complete, and goes on."""
    early = changed(("full", "wait(&full[s], i / 2 % 2 ^ 1);"))
    with pytest.raises(SimulatorError) as caught:  # it also arrives before the producer has waited
        launch(early, tiles=1, schedule="warps", sanitize=True)
    assert "reads b[0][0], which nothing has written" in str(caught.value)


def test_what_was_found_before_a_deadlock_is_told():
    with pytest.raises(SimulatorError) as caught:
        launch(changed(("proxy", ""), ("arrive", "")), sanitize=True)
    assert "The sanitizer found before: k, line" in str(caught.value)


def test_a_warps_instructions_are_told_in_order():
    report, *_ = launch(tiles=2)
    consumer, producer = (report.issued(warp=warp) for warp in (0, 4))
    own = [one for one in consumer if one.kind not in ("math", "other", "load", "store", "barrier")]
    each = ["phase", "wgmma", "wgmma commit", "wgmma wait", "arrive"]
    assert [one.kind for one in own] == [*each * 2, "bulk", "bulk commit", "bulk wait"]
    lines = [LINES[mark] for mark in ("product", "commit", "wait")]
    assert [one.line for one in own[1:4]] == lines and own[3].left == 0
    hands = [one.kind for one in producer if one.kind in ("phase", "arrive", "bulk")]
    assert hands == ["phase", "arrive", "bulk"] * 2
