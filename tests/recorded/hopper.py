"""Small kernels with Hopper's own instructions: one wgmma, or one copy of a box by TMA.

Layouts of shared memory are written down here element by element, from the figures of the PTX ISA
("Asynchronous Warpgroup Level Matrix Instructions: Shared Memory Matrix Layout", "Tensor swizzling
modes"), not by the simulator's formulas. `tools/record/record_hopper_counters.py` runs the same
kernels on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OPTIONS = ("-arch=sm_90a",)
# In which place of its row each 16-byte chunk lies, row by row of the eight that repeat.
PATTERNS = {
    0: "0 0 0 0 0 0 0 0",
    32: "01 01 01 01 10 10 10 10",
    64: "0123 0123 1032 1032 2301 2301 3210 3210",
    128: "01234567 10325476 23016745 32107654 45670123 54761032 67452301 76543210",
}
PLACES = {span: [[int(c) for c in row] for row in text.split()] for span, text in PATTERNS.items()}
MODES = {0: 0, 128: 1, 64: 2, 32: 3}  # of a matrix descriptor
WORDS = {"f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "s8": np.int8, "u8": np.uint8}
BYTES = {kind: np.dtype(word).itemsize for kind, word in WORDS.items()}
GAP = 128  # bytes left free between parts of a matrix, so that no two strides are alike

COMMON = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
"""


def as_words(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers that a kind of factors can hold as the words that a kernel is given."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    if kind == "tf32":
        return values.astype(np.float32).view(np.uint32)
    return values.astype(WORDS[kind])


@dataclass(frozen=True)
class Product:
    """One wgmma: its shape and types, and how its operands lie.

    Attributes:
        n: columns. kind, b_kind: of A's and B's elements. sums: the type of D.
        swizzle: bytes of a row side by side; 0 for none. step: which part of the row along k.
        registers: whether A comes from registers.
        a_turned, b_turned: whether A is M-major, B N-major.
        signs: of A and B.
        shift: lines of 128 bytes by which both begin behind a multiple of 1,024 bytes, which
            their descriptors then tell as the base offset.
    """

    n: int
    kind: str = "f16"
    sums: str = "f32"
    swizzle: int = 128
    step: int = 0
    registers: bool = False
    a_turned: bool = False
    b_turned: bool = False
    signs: tuple[int, int] = (1, 1)
    b_kind: str = ""
    shift: int = 0

    @property
    def k(self) -> int:
        return 32 // BYTES[self.kind]

    @property
    def count(self) -> int:
        """Registers of D."""
        return self.n // (4 if self.sums == "f16" else 2)

    @property
    def name(self) -> str:
        marks = ["registers"] * self.registers + ["turned_a"] * self.a_turned
        marks += [f"shift{self.shift}"] * bool(self.shift)
        marks += ["turned_b"] * self.b_turned + ["minus"] * (-1 in self.signs)
        kinds = "_".join(filter(None, (self.sums, self.kind, self.b_kind)))
        return "_".join([f"wgmma_n{self.n}_{kinds}_swizzle{self.swizzle}_{self.step}", *marks])

    @property
    def code(self) -> str:
        """A kernel `product`: image → shared memory, then one wgmma by 128 threads a block."""
        d = ", ".join(f"%{n}" for n in range(self.count))
        a = "{%" + ", %".join(str(self.count + n) for n in range(4)) + "}"
        first = self.count + (4 if self.registers else 1)
        a = a if self.registers else f"%{self.count}"
        numbers = ", ".join(map(str, self.signs)) if self.sums != "s32" else ""
        turns = [self.b_turned] if self.registers else [self.a_turned, self.b_turned]
        turns = ", ".join(str(int(t)) for t in turns) if BYTES[self.kind] == 2 else ""
        ends = "".join(f", {text}" for text in (numbers, turns) if text)
        register = "f" if self.sums == "f32" else "r"
        held = "float" if self.sums == "f32" else "unsigned"
        outs = ", ".join(f'"+{register}"(r[{n}])' for n in range(self.count))
        a_in = ", ".join(f'"r"(f[{n}])' for n in range(4)) if self.registers else '"l"(da)'
        kinds = f"{self.sums}.{self.kind}.{self.b_kind or self.kind}"
        return (
            COMMON
            + rf"""
extern "C" __global__ void product(const uint4* image, int chunks, u64 da, u64 db,
                                   const unsigned* a, const {held}* c, {held}* d, int adds) {{
  extern __shared__ __align__(1024) uint4 s[];
  int t = threadIdx.x;
  for (int n = t; n < chunks; n += blockDim.x) s[n] = image[n];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  {held} r[{self.count}];
  unsigned f[4];
  int row = (blockIdx.x * blockDim.x + t);
  for (int n = 0; n < {self.count}; ++n) r[n] = c[row * {self.count} + n];
  for (int n = 0; n < 4; ++n) f[n] = a[row * 4 + n];
  da += at(s) >> 4;
  db += at(s) >> 4;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{{.reg .pred p; setp.ne.b32 p, %{first + 1}, 0;"
    "wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}.{kinds} {{{d}}}, {a}, %{first}, p{ends};}}"
    : {outs} : {a_in}, "l"(db), "r"(adds));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int n = 0; n < {self.count}; ++n) d[row * {self.count} + n] = r[n];
}}
"""
        )

    def shared(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int, int]:
        """(bytes of shared memory, descriptors of A and B) for words a (64, k) and b (n, k)."""
        a_bytes, a_fields = self._laid_out(a, self.a_turned)
        b_bytes, b_fields = self._laid_out(b, self.b_turned)
        first = 128 * self.shift
        start = -(-(first + len(a_bytes)) // 1024) * 1024 + first
        image = np.zeros(-(-(start + len(b_bytes)) // 1024) * 1024, np.uint8)
        image[first : first + len(a_bytes)] = a_bytes
        image[start : start + len(b_bytes)] = b_bytes
        base = self.shift << 49
        return image, a_fields + first // 16 | base, b_fields + start // 16 | base

    def _laid_out(self, matrix: np.ndarray, turned: bool) -> tuple[np.ndarray, int]:
        size = matrix.dtype.itemsize
        chunk, span = 16 // size, self.swizzle or 16
        rows, across = (self.k, len(matrix)) if turned else (len(matrix), self.k)
        panels = -(-across * size // span)  # beside each other, of rows of `span` bytes
        group = 8 * span  # bytes of eight rows
        if self.swizzle and not turned:
            panels = 1  # the others are steps along k, in the same row
        panel_stride = -(-rows // 8) * group + GAP * (8 if self.swizzle else 1)
        image = np.zeros(panels * panel_stride, np.uint8)
        offset = 32 * self.step if self.swizzle and not turned else 0
        for row in range(rows):
            for n in range(0, across, chunk):
                words = matrix[n : n + chunk, row] if turned else matrix[row, n : n + chunk]
                byte = n * size + offset
                place = PLACES[self.swizzle][row % 8][byte % span // 16]
                to = byte // span * panel_stride + row // 8 * group + row % 8 * span + 16 * place
                image[to : to + 16] = np.ascontiguousarray(words).view(np.uint8)
        # Which of the two strides is which: see the figures of each layout.
        leading, stride = panel_stride, group
        if not self.swizzle and turned:
            leading, stride = group, panel_stride
        fields = MODES[self.swizzle] << 62 | stride // 16 << 32 | leading // 16 << 16
        return image, fields | offset // 16

    def fragments_of_a(self, a: np.ndarray) -> np.ndarray:
        """The four registers of each of 128 threads, uint32 (128, 4), of words (64, k)."""
        out = np.zeros((128, 4, 4 // a.dtype.itemsize), a.dtype)
        width = out.shape[2]
        for thread, register, n in np.ndindex(out.shape):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register % 2)
            column = register // 2 * 4 * width + thread % 4 * width + n
            out[thread, register, n] = a[row, column]
        return out.view(np.uint32).reshape(128, 4)

    def fragments_of_d(self, matrix: np.ndarray) -> np.ndarray:
        """What the threads hold of D (64, n): (128, registers) in the type of a register."""
        out = np.zeros((128, self.n // 2), matrix.dtype)
        for thread, n in np.ndindex(out.shape):
            row = thread // 32 * 16 + thread % 32 // 4 + 8 * (n // 2 % 2)
            out[thread, n] = matrix[row, n // 4 * 8 + thread % 4 * 2 + n % 2]
        return out.view(np.uint32) if self.sums == "f16" else out


BOXES = (
    COMMON
    + r"""
struct alignas(64) Map { u64 words[16]; };
// A box to shared memory, as it lies there to raw, and back to another corner through another map.
template <int N> __device__ void copies(const Map& in, const Map& out, uint4* raw, const int* c,
                                        int bytes, uint4* s, u64* b) {
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" :: "l"(&in) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(b)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at(b)), "r"(bytes) : "memory");
    #define LOAD(d, list, ...) asm volatile("cp.async.bulk.tensor." #d "d.shared::cluster.global" \
      ".tile.mbarrier::complete_tx::bytes [%0], [%1, " list "], [%2];" \
      :: "r"(at(s)), "l"(&in), "r"(at(b)), __VA_ARGS__ : "memory")
    #define STORE(d, list, ...) asm volatile("cp.async.bulk.tensor." #d "d.global.shared::cta" \
      ".tile.bulk_group [%0, " list "], [%1];" :: "l"(&out), "r"(at(s)), __VA_ARGS__ : "memory")
    if (N == 1) LOAD(1, "{%3}", "r"(c[0]));
    if (N == 2) LOAD(2, "{%3, %4}", "r"(c[0]), "r"(c[1]));
    if (N == 3) LOAD(3, "{%3, %4, %5}", "r"(c[0]), "r"(c[1]), "r"(c[2]));
    if (N == 4) LOAD(4, "{%3, %4, %5, %6}", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    if (N == 5) LOAD(5, "{%3, %4, %5, %6, %7}", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]),
                     "r"(c[4]));
  }
  int done = 0;
  while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                             "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(at(b)) : "memory");
  for (int n = threadIdx.x; n < bytes / 16; n += blockDim.x) raw[n] = s[n];
  if (threadIdx.x == 0) {
    const int* to = c + N;
    if (N == 1) STORE(1, "{%2}", "r"(to[0]));
    if (N == 2) STORE(2, "{%2, %3}", "r"(to[0]), "r"(to[1]));
    if (N == 3) STORE(3, "{%2, %3, %4}", "r"(to[0]), "r"(to[1]), "r"(to[2]));
    if (N == 4) STORE(4, "{%2, %3, %4, %5}", "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3]));
    if (N == 5) STORE(5, "{%2, %3, %4, %5, %6}", "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3]),
                      "r"(to[4]));
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
#define KERNEL(N) extern "C" __global__ void box##N(const __grid_constant__ Map in, \
    const __grid_constant__ Map out, uint4* raw, const int* corner, int bytes) { \
  extern __shared__ __align__(1024) uint4 s[]; __shared__ u64 b; \
  copies<N>(in, out, raw, corner, bytes, s, &b); }
KERNEL(1) KERNEL(2) KERNEL(3) KERNEL(4) KERNEL(5)
"""
)
