# ruff: noqa: E501 (kernel text reads better unbroken)
"""Loops whose bound only a thread knows, loads split between branches, copies in stages."""

from ..cases import Case
from ..memory.memory_case import array, case, result

HEAD = 'extern "C" __global__ void KERNEL'

# Rows of unequal length, each walked by a thread: a sparse matrix times a vector.
ROWS = (
    HEAD
    + """(const int* start, const float* values, float* out, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return; int from = start[row] % 40, to = from + start[row + 1] % 23; float sum = 0.f;
  for (int j = from; j < to; j++) sum += values[BODY];
  out[row] = sum;
}
"""
)

ROWS_SHARED = (
    HEAD
    + """(const int* start, const float* values, float* out, int n) {
  __shared__ float s[256]; int t = threadIdx.x; for (int i = t; i < 256; i += 96) s[i] = values[i];
  __syncthreads(); int to = start[t] % 19; float v = 0.f;
  for (int j = 0; j < to; j++) v += s[BODY];
  out[blockIdx.x * 96 + t] = v;
}
"""
)

BRANCHES = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[160]; int t = threadIdx.x, i = blockIdx.x * 160 + t; s[t] = i < n ? a[i] : 0.f; __syncthreads(); float v;
  BODY
  if (i < n) b[i] = v;
}
"""
)

PIPELINE = (
    HEAD
    + """(const float* g, float* out, int rows, int stride) {
  __shared__ __align__(128) float s[STAGES][64 * LEAD]; int t = threadIdx.x; float v = 0.f;
#define FETCH(k) { for (int i = t; i < 64 * 32 / WORDS; i += 128) { int r = i / (32 / WORDS), c = i % (32 / WORDS) * WORDS; \\
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[(k) % STAGES][r * LEAD + c]); int real = (k) * 64 + r < rows ? WORDS * 4 : 0; \\
    asm volatile("cp.async.HOW.shared.global [%0], [%1], %2, %3;" :: "r"(at), "l"(g + (real ? ((k) * 64 + r) * stride : 0) + c), "n"(WORDS * 4), "r"(real) : "memory"); } }
  const int tiles = (rows + 63) / 64;
  for (int k = 0; k < STAGES - 1; k++) { if (k < tiles) FETCH(k) asm volatile("cp.async.commit_group;" ::: "memory"); }
  for (int k = 0; k < tiles; k++) {
    asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory"); __syncthreads();
    if (k + STAGES - 1 < tiles) FETCH(k + STAGES - 1) asm volatile("cp.async.commit_group;" ::: "memory");
    for (int i = 0; i < 16; i++) v += s[k % STAGES][t % 64 * LEAD + t / 64 * 16 + i];
  }
  out[t] = v;
}
"""
)

# Atomics on vectors, of whole numbers so that their order does not show; and what a block takes.
VECTOR_ATOMICS = (
    HEAD
    + """(const float2* a, float2* sums, unsigned* sizes, int n) {
  __shared__ float pad[37]; extern __shared__ float more[]; int t = threadIdx.x; if (t < 37) pad[t] = more[t] = (float)t;
  if (t < 5) sums[t] = make_float2(0.f, 0.f);
  __syncthreads(); if (t < n) { float2 v = a[t]; atomicAdd(&sums[t % 5], make_float2(floorf(v.x * 8.f), floorf(v.y * 8.f))); }
  unsigned total, dynamic; asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total)); asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
  if (t == 0) { sizes[0] = total; sizes[1] = dynamic; sizes[2] = (unsigned)(pad[36] + more[3]); }
}
"""
)

TRANSPOSE = (
    HEAD
    + """(const float* a, float* b, int h, int w) {
  __shared__ float s[32][32 + PAD]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
  __syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) b[(y + j) * h + x] = s[threadIdx.x][threadIdx.y + j];
}
"""
)

HISTOGRAM = (
    HEAD
    + """(const int* a, int* out, int n) {
  __shared__ int bins[4][32]; int t = threadIdx.x; for (int i = t; i < 128; i += blockDim.x) bins[i / 32][i % 32] = 0; __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[t % 4][a[i] & 31], 1);
  __syncthreads(); if (t < 32) { int v = 0; for (int k = 0; k < 4; k++) v += bins[k][t]; out[blockIdx.x * 32 + t] = v; }
}
"""
)

PREFIX = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[4 * 96]; int t = threadIdx.x, base = blockIdx.x * 384; for (int k = 0; k < 4; k++) s[k * 96 + t] = base + k * 96 + t < n ? a[base + k * 96 + t] : 0.f;
  __syncthreads(); float x[4], sum = 0.f; for (int k = 0; k < 4; k++) { x[k] = sum; sum += s[t * 4 + k]; }
  __shared__ float totals[96]; totals[t] = sum; __syncthreads(); float before = 0.f; for (int j = 0; j < t; j++) before += totals[j];
  for (int k = 0; k < 4; k++) s[t * 4 + k] = x[k] + before;
  __syncthreads(); for (int k = 0; k < 4; k++) if (base + k * 96 + t < n) b[base + k * 96 + t] = s[k * 96 + t];
}
"""
)

NBODY = (
    HEAD
    + """(const float4* p, float* out, int n) {
  __shared__ float4 s[64]; int t = threadIdx.x, i = blockIdx.x * 64 + t; float4 me = p[i < n ? i : 0]; float ax = 0.f;
  for (int j0 = 0; j0 < n; j0 += 64) { s[t] = j0 + t < n ? p[j0 + t] : make_float4(0.f, 0.f, 0.f, 0.f); __syncthreads();
    for (int j = 0; j < 64; j++) { float dx = s[j].x - me.x, dy = s[j].y - me.y, q = rsqrtf(dx * dx + dy * dy + 0.01f); ax += s[j].w * dx * q * q * q; }
    __syncthreads(); }
  if (i < n) out[i] = ax;
}
"""
)

BYTES = (
    HEAD
    + """(const unsigned char* a, int* out, int n) {
  __shared__ unsigned char s[512]; int t = threadIdx.x; for (int i = t; i < 512; i += 64) s[i] = i < n ? a[i] : 0;
  __syncthreads(); int v = 0; for (int k = 0; k < 24; k++) v += s[(t * 4 + k) & 511]; out[t] = v;
}
"""
)


def branch_cases() -> list[Case]:
    """Loops and branches that threads of a warp take apart, and copies in stages."""
    cases = []
    start = ["index", [161], "int32", 1000]
    for label, body in (
        ("own", "j"),
        ("strided", "j * 5 % 80"),
        ("two", "j] * values[79 - j"),
        ("wide", "j] * values[(j * 3 + row) % 80] + values[j / 2"),
    ):
        arguments = [start, array([80]), result([160]), 155]
        cases.append(case(f"rows_{label}", ROWS, 2, 80, arguments, BODY=body))
    for label, body in (("near", "t + j"), ("aligned", "t * 2 + j"), ("same", "j"), ("far", "(t * 5 + j * 3) & 255")):  # fmt: skip
        arguments = [["index", [96], "int32", 1000], array([256]), result([96]), 96]
        cases.append(case(f"rows_shared_{label}", ROWS_SHARED, 1, 96, arguments, BODY=body))
    for label, body in (
        ("else", "if (t & 1) v = s[t ^ 8] * 2.f; else v = s[159 - t] + 1.f;"),
        ("else_long", "if (t % 3) { v = 0.f; for (int k = 0; k < 8; k++) v += s[t / 8 * 8 + k]; } else { v = s[159 - t] * s[t]; }"),
        ("early", "if (i >= n - 20) return; v = s[t] + s[(t + 1) % 160]; if (v > 0.9f) v = s[0];"),
        ("nested", "v = s[t]; if (v > 0.f) { if (t > 50) v += s[t - 50]; else v -= s[t + 50]; }"),
        ("pair", "v = s[t & ~1] + s[t | 1]; if (t < 80) { v *= s[t * 2]; v += s[t * 2 + 1]; }"),
        ("guarded", "v = 0.f; for (int k = 0; k < 10; k++) if (t + k < 160) v += s[t + k];"),
        ("select", "v = t < 80 ? s[t + 80] : s[t - 80]; v += t % 5 == 0 ? s[t / 5] : 0.f;"),
        ("while", "v = s[t]; int j = t; while (v < 1.5f && j < 159) { j++; v += fabsf(s[j]); }"),
    ):  # fmt: skip
        arguments = [array([300]), result([300]), 300]
        cases.append(case(f"branch_{label}", BRANCHES, 2, 160, arguments, BODY=body))
    for how, words, stages, lead in (("cg", 4, 2, 32), ("cg", 4, 3, 36), ("ca", 4, 3, 32), ("ca", 2, 3, 34), ("ca", 1, 4, 33), ("cg", 4, 4, 32)):  # fmt: skip
        defines = {"WORDS": words, "STAGES": stages, "LEAD": lead}
        arguments = [array([300, 32]), result([128]), 300, 32]
        cases.append(
            case(
                f"stages_{how}_{words}_{stages}",
                PIPELINE.replace("HOW", how),
                1,
                128,
                arguments,
                **defines,
            )
        )
    for pad in (0, 1):
        arguments = [array([45, 70]), result([70, 45]), 45, 70]
        cases.append(case(f"transpose_{pad}", TRANSPOSE, (3, 2), (32, 8), arguments, PAD=pad))
    arguments = [array([500], "int32"), result([3, 32], "int32"), 500]
    cases.append(case("histogram", HISTOGRAM, 3, 96, arguments))
    cases.append(case("prefix", PREFIX, 2, 96, [array([700]), result([700]), 700]))
    cases.append(case("nbody", NBODY, 3, 64, [array([150, 4]), result([150]), 150]))
    cases.append(case("bytes", BYTES, 1, 64, [array([500], "uint8"), result([64], "int32"), 500]))
    arguments = [array([75, 2]), result([5, 2]), result([3], "uint32"), 75]
    cases.append(case("vector_atomics", VECTOR_ATOMICS, 1, 96, arguments, 200, exact=True))
    return cases
