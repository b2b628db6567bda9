"""Launches that tell when an access to shared memory costs more wavefronts than it does alone.

A warpgroup stores 32 words in 32 banks at a time, beside another that multiplies, copies, or does
nothing; and chapter 11's kernels, as they are and with a barrier more or less before they
store O. `tools/record/hopper/record_meetings.py` has Nsight Compute count them on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helpers.problem.flash_hopper import (
    FLASH_AHEAD,
    FLASH_PING_PONG,
    FLASH_PRODUCER,
    FLASH_RARE_RESCALE,
    FLASH_TMA,
    HOPPER,
)

from ..flash_cases import Variant
from ..hopper import COMMON, OPTIONS

STEPS = 8  # accesses of a warp in a round
THREADS, SHARED = 256, 24 * 1024
KINDS = {"nothing": 0, "stores": 1}  # and 2, loads, which ptxas drops: nobody uses the words
# What the other warpgroup does, and in how many rounds: about as long as the accesses take.
OTHERS = {
    "nothing": (0, 0),
    "products of shared memory": (1, 40),
    "products of registers and shared memory": (2, 40),
    "copies to shared memory": (3, 12),
    "copies from shared memory": (4, 12),
    "arrivals at an mbarrier": (5, 200),
    "stores": (7, 100),
}

CODE = (
    COMMON
    + r"""
#define D4(n) "+f"(r[n]), "+f"(r[n + 1]), "+f"(r[n + 2]), "+f"(r[n + 3])
#define D32 D4(0), D4(4), D4(8), D4(12), D4(16), D4(20), D4(24), D4(28)
#define LIST "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST ", "
#define ASK(...) asm volatile(__VA_ARGS__ : "memory")
#define DO(text) asm volatile(text ::: "memory")

// 32 words in 32 banks, STEPS times: one wavefront each.
__device__ void access(unsigned to, int kind, int round) {
  if (kind == 1) {
    #pragma unroll
    for (int n = 0; n < STEPS; ++n) ASK("st.shared.u32 [%0], %1;" :: "r"(to + 512 * n), "r"(round));
  } else if (kind == 2) {
    #pragma unroll
    for (int n = 0; n < STEPS; ++n) {
      unsigned got;
      ASK("ld.shared.u32 %0, [%1];" : "=r"(got) : "r"(to + 512 * n));
    }
  }
}
__device__ u64 tile(unsigned from) {  // K-major, 128-byte swizzle, 1,024 bytes to the next 8 rows
  return 1ull << 62 | 64ull << 32 | from >> 4; }
// An mbarrier's phase of this parity is complete.
__device__ void wait(unsigned b, int parity) {
  int done = 0;
  while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                             "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(b), "r"(parity) : "memory");
}
extern "C" __global__ void __launch_bounds__(256) meeting(
    uint4* X, uint4* Y, float* out, int kind, int rounds, int other, int other_rounds) {
  extern __shared__ __align__(1024) uint4 s[];
  __shared__ u64 mbarrier[2];
  const unsigned t = threadIdx.x, base = at(s), b = at(mbarrier);
  float r[32] = {};
  if (t == 0) {
    ASK("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b));
    ASK("mbarrier.init.shared.b64 [%0], 1000000;" :: "r"(b + 8));
    DO("fence.proxy.async.shared::cta;");
  }
  __syncthreads();
  if (t >= 128) {
    for (int n = 0; n < rounds; ++n) access(base + 16384 + 4 * (t - 128), kind, n);
  } else if (other == 1 || other == 2) {
    for (int n = 0; n < other_rounds; ++n) {
      DO("wgmma.fence.sync.aligned;");
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        const u64 a = tile(base + 32 * k), c = tile(base + 8192 + 32 * k);
        if (other == 1) {
          asm volatile(PRODUCT "%32, %33, 1, 1, 1, 0, 0;" : D32 : "l"(a), "l"(c));
        } else {
          asm volatile(PRODUCT "{%32, %32, %32, %32}, %33, 1, 1, 1, 0;" : D32 : "r"(0), "l"(c));
        }
      }
      DO("wgmma.commit_group.sync.aligned;");
      DO("wgmma.wait_group.sync.aligned 0;");
    }
  } else if (other == 3 && t == 0) {
    for (int n = 0; n < other_rounds; ++n) {
      ASK("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" :: "r"(b));
      ASK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16384, [%2];"
          :: "r"(base), "l"(X), "r"(b));
      wait(b, n % 2);
    }
  } else if (other == 4 && t == 0) {
    for (int n = 0; n < other_rounds; ++n) {
      ASK("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16384;" :: "l"(Y), "r"(base));
      DO("cp.async.bulk.commit_group;");
      DO("cp.async.bulk.wait_group.read 0;");
    }
  } else if (other == 5 && t % 32 == 0) {
    for (int n = 0; n < other_rounds; ++n)
      ASK("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b + 8));
  } else if (other == 6 || other == 7) {
    for (int n = 0; n < other_rounds; ++n) access(base + 4 * t, other == 6 ? 2 : 1, n);
  }
  float sum = 0;
  for (int n = 0; n < 32; ++n) sum += r[n];
  out[t] = sum;
}
"""
)


@dataclass(frozen=True)
class Meeting:
    """One launch of `meeting`: what its warps 4 to 7 do beside what its warps 0 to 3 do."""

    kind: str
    other: str
    rounds: int = 100

    @property
    def name(self) -> str:
        return f"{self.kind} beside {self.other}"

    @property
    def code(self) -> str:
        return f"#define STEPS {STEPS}\n{CODE}"

    @property
    def entry(self) -> str:
        return "meeting"

    @property
    def options(self) -> tuple[str, ...]:
        return OPTIONS

    def arguments(self) -> tuple:
        """X, Y, out and the numbers, in the order of the kernel's arguments."""
        X, Y = np.zeros((1024, 4), np.uint32), np.zeros((1024, 4), np.uint32)
        numbers = (KINDS[self.kind], self.rounds, *OTHERS[self.other])
        return (X, Y, np.zeros(THREADS, np.float32), *map(np.int32, numbers))


MEETINGS = (
    *(Meeting("stores", other) for other in OTHERS),
    Meeting("nothing", "arrivals at an mbarrier"),
)

GRIDS = (((1, 1, 256, 128), "half", 0), ((1, 1, 100, 64), "nv_bfloat16", 1))
# All consumers end their products before one of them stores O.
_APART = (
    (
        "barrier_sync(1 + warpgroup, 128);  // nobody still reads Q",
        "barrier_sync(1, 128 * CONSUMERS);  // nobody still reads Q",
    ),
)
# A warpgroup stores when its own products are done, as in the steps behind it.
_TOGETHER = (
    (
        "        __syncthreads();  // nobody reads this stage",
        "        if (key + B_C >= keys) barrier_sync(1 + warpgroup, 128);\n"
        "        else __syncthreads();  // nobody reads this stage",
    ),
)
_NO_COPY = (
    ("            tma_store(O, s_box, x, first + warp_row, blockIdx.y, blockIdx.z);\n", ""),
)
RUNGS = tuple(Variant(f"{one.file[:3]} {one.name[6:]}", rung=one) for one in HOPPER)
CHANGED = (
    Variant("11b, stores when a warpgroup is done", changes=_TOGETHER, rung=FLASH_TMA),
    Variant("11c, stores when all are done", changes=_APART, rung=FLASH_PRODUCER),
    Variant("11d, stores when all are done", changes=_APART, rung=FLASH_AHEAD),
    Variant("11e, stores when all are done", changes=_APART, rung=FLASH_PING_PONG),
    Variant("11f, stores when all are done", changes=_APART, rung=FLASH_RARE_RESCALE),
    Variant("11c, no copy of O", changes=_NO_COPY, rung=FLASH_PRODUCER),
    Variant("11e, no copy of O", changes=_NO_COPY, rung=FLASH_PING_PONG),
)
