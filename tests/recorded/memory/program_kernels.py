# ruff: noqa: E501 (kernel text reads better unbroken)
"""The CUDA C of divergent code and whole kernels whose counters are recorded."""

from .pattern_kernels import HEAD

DIVERGENT_LOOP = (
    HEAD
    + """(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = 0.f;
  for (int j = 0; j < COUNT; j++) v BODY; b[i] = v;
}
"""
)

DIVERGENT_SHARED = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[256]; int t = threadIdx.x; s[t] = a[t]; s[128 + t] = a[128 + t]; __syncthreads();
  float v = 0.f; for (int j = 0; j <= t % 13; j++) v += s[t + j]; b[blockIdx.x * 128 + t] = v;
}
"""
)

TRIANGLE = (
    HEAD
    + """(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float best = -1e30f;
  for (int j = 0; j <= i; j++) best = fmaxf(best, a[j * n + i]); b[i] = best;
}
"""
)

COLLATZ = (
    HEAD
    + """(const int* a, int* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int x = (a[i] & 1023) + 1, steps = 0;
  while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; steps += a[x % n] & 3; } b[i] = steps;
}
"""
)

SWITCH = (
    HEAD
    + """(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = a[i];
  switch (i % 5) { case 0: v += a[(i * 3) % n]; break; case 1: v *= a[(i * 7) % n] + a[(i * 9) % n]; break;
    case 2: if (v > 0.f) v -= a[n - 1 - i]; break; case 3: return; default: v = a[0]; }
  b[i] = v;
}
"""
)

PREDICATED = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[128]; int t = threadIdx.x, i = blockIdx.x * 128 + t; float v = i < n ? a[i] : 0.f; s[t] = v; __syncthreads();
  if (v > 0.5f) v += s[127 - t]; if (t >= 96) v *= s[t - 96]; if (i < n) b[i] = v;
}
"""
)

QK = (
    """#define TILE TILE_
"""
    + HEAD
    + """(const float* Q, const float* K, float* S, int N, int d) {
  __shared__ float s_Q[TILE][TILE], s_K[TILE][TILE + PAD];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx, kr = blockIdx.x * TILE + ty;
  float sum = 0.f;
  for (int i = 0; i < d; i += TILE) {
    s_Q[ty][tx] = row < N && i + tx < d ? Q[row * d + i + tx] : 0.f;
    float x = kr < N && i + tx < d ? K[kr * d + i + tx] : 0.f;
    if (ON_STORE) s_K[tx][ty] = x; else s_K[ty][tx] = x;
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += s_Q[ty][k] * (ON_STORE ? s_K[k][tx] : s_K[tx][k]);
    __syncthreads();
  }
  if (row < N && col < N) S[row * N + col] = sum * rsqrtf((float)d);
}
"""
)

QK_NAIVE = (
    HEAD
    + """(const float* Q, const float* K, float* S, int N, int d) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < N && col < N) { float sum = 0.f; for (int i = 0; i < d; i++) sum += Q[row * d + i] * K[col * d + i]; S[row * N + col] = sum / sqrtf((float)d); }
}
"""
)

PV = (
    HEAD
    + """(const float* P, const float* V, float* O, int N, int d) {
  __shared__ float s_P[16][16], s_V[16][16]; int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.f;
  for (int i = 0; i < N; i += 16) {
    s_P[ty][tx] = row < N && i + tx < N ? P[row * N + i + tx] : 0.f; s_V[ty][tx] = i + ty < N && col < d ? V[(i + ty) * d + col] : 0.f;
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; k++) sum += s_P[ty][k] * s_V[k][tx];
    __syncthreads();
  }
  if (row < N && col < d) O[row * d + col] = sum;
}
"""
)

COARSE = (
    HEAD
    + """(const float* Q, const float* K, float* S, int N, int d) {
  __shared__ float s_Q[16][17], s_K[16 * COARSE][17]; int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty;
  float sum[COARSE] = {};
  for (int i = 0; i < d; i += 16) {
    s_Q[ty][tx] = row < N && i + tx < d ? Q[row * d + i + tx] : 0.f;
    #pragma unroll
    for (int c = 0; c < COARSE; c++) { int r = (blockIdx.x * COARSE + c) * 16 + ty; s_K[c * 16 + ty][tx] = r < N && i + tx < d ? K[r * d + i + tx] : 0.f; }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; k++) { float q = s_Q[ty][k];
      #pragma unroll
      for (int c = 0; c < COARSE; c++) sum[c] += q * s_K[c * 16 + tx][k]; }
    __syncthreads();
  }
  #pragma unroll
  for (int c = 0; c < COARSE; c++) { int col = (blockIdx.x * COARSE + c) * 16 + tx; if (row < N && col < N) S[row * N + col] = sum[c]; }
}
"""
)

REGISTERS = (
    HEAD
    + """(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ __align__(16) float s_A[8][64], s_B[8][64]; int t = threadIdx.x, tx = t % 16, ty = t / 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += 8) {
    if (t < 128) { int r = t / 2, c = t % 2 * 4; float4 v = *(const float4*)&A[(blockIdx.y * 64 + r) * K + k0 + c];
      s_A[c][r] = v.x; s_A[c + 1][r] = v.y; s_A[c + 2][r] = v.z; s_A[c + 3][r] = v.w; }
    else { int u = t - 128, r = u / 16, c = u % 16 * 4; *(float4*)&s_B[r][c] = *(const float4*)&B[(k0 + r) * N + blockIdx.x * 64 + c]; }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 8; k++) { float4 a = *(const float4*)&s_A[k][ty * 4], b = *(const float4*)&s_B[k][tx * 4];
      float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
      #pragma unroll
      for (int i = 0; i < 4; i++)
        #pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j]; }
    __syncthreads();
  }
  #pragma unroll
  for (int i = 0; i < 4; i++) *(float4*)&C[(blockIdx.y * 64 + ty * 4 + i) * N + blockIdx.x * 64 + tx * 4] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
"""
)

SOFTMAX_THREAD = (
    HEAD
    + """(const float* S, float* P, int N, int M) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= N) return; float most = -INFINITY_, sum = 0.f;
  for (int j = 0; j < M; j++) most = fmaxf(most, S[row * M + j]);
  for (int j = 0; j < M; j++) sum += expf(S[row * M + j] - most);
  for (int j = 0; j < M; j++) P[row * M + j] = expf(S[row * M + j] - most) / sum;
}
"""
)

SOFTMAX_BLOCK = (
    HEAD
    + """(const float* S, float* P, int N, int M) {
  __shared__ float s[128]; int t = threadIdx.x, row = blockIdx.x; float v = -INFINITY_;
  for (int j = t; j < M; j += 128) v = fmaxf(v, S[row * M + j]);
  s[t] = v; __syncthreads();
  for (int h = 64; h > 0; h /= 2) { if (t < h) s[t] = fmaxf(s[t], s[t + h]); __syncthreads(); }
  float most = s[0]; __syncthreads(); v = 0.f;
  for (int j = t; j < M; j += 128) v += expf(S[row * M + j] - most);
  s[t] = v; __syncthreads();
  for (int h = 64; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }
  for (int j = t; j < M; j += 128) P[row * M + j] = expf(S[row * M + j] - most) / s[0];
}
"""
)

SOFTMAX_WARP = (
    HEAD
    + """(const float* S, float* P, int N, int M) {
  int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y; if (row >= N) return; float most = -INFINITY_, sum = 0.f;
  for (int j = lane; j < M; j += 32) { float x = S[row * M + j], next = fmaxf(most, x); sum = sum * __expf(most - next) + __expf(x - next); most = next; }
  for (int o = 16; o; o /= 2) { float m = __shfl_xor_sync(~0u, most, o), u = __shfl_xor_sync(~0u, sum, o), next = fmaxf(most, m);
    sum = sum * __expf(most - next) + u * __expf(m - next); most = next; }
  for (int j = lane; j < M; j += 32) P[row * M + j] = __expf(S[row * M + j] - most) * (1.f / sum);
}
"""
)

SOFTMAX_ROWS_SHARED = (
    HEAD
    + """(const float* S, float* P, int N, int M) {
  __shared__ float s[16][ROW]; int t = threadIdx.x;
  for (int i = t; i < 16 * 16; i += 32) s[i / 16][i % 16] = S[blockIdx.x * 256 + i];
  __syncthreads();
  if (t < 16) { float sum = 0.f; for (int j = 0; j < 16; j++) sum += expf(s[t][j]); for (int j = 0; j < 16; j++) s[t][j] = expf(s[t][j]) / sum; }
  __syncthreads();
  for (int i = t; i < 16 * 16; i += 32) P[blockIdx.x * 256 + i] = s[i / 16][i % 16];
}
"""
)

REDUCE = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[128]; int t = threadIdx.x, i = blockIdx.x * 128 + t; s[t] = i < n ? a[i] : 0.f; __syncthreads();
  STEPS
  if (t == 0) b[blockIdx.x] = s[0];
}
"""
)

SCAN = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[2][128]; int t = threadIdx.x, from = 0; s[0][t] = a[blockIdx.x * 128 + t]; __syncthreads();
  for (int o = 1; o < 128; o *= 2) { s[1 - from][t] = t >= o ? s[from][t] + s[from][t - o] : s[from][t]; from = 1 - from; __syncthreads(); }
  b[blockIdx.x * 128 + t] = s[from][t];
}
"""
)

LAYER_NORM = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float parts[2][4]; int t = threadIdx.x; float x = t < n ? a[blockIdx.x * n + t] : 0.f, u = x, q = x * x;
  for (int o = 16; o; o /= 2) { u += __shfl_down_sync(~0u, u, o); q += __shfl_down_sync(~0u, q, o); }
  if (t % 32 == 0) { parts[0][t / 32] = u; parts[1][t / 32] = q; }
  __syncthreads();
  float mean = (parts[0][0] + parts[0][1] + parts[0][2] + parts[0][3]) / n, square = (parts[1][0] + parts[1][1] + parts[1][2] + parts[1][3]) / n;
  if (t < n) b[blockIdx.x * n + t] = (x - mean) * rsqrtf(square - mean * mean + 1e-5f);
}
"""
)

ATTENTION_ROW = (
    HEAD
    + """(const float* Q, const float* K, const float* V, float* O, int N) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= N) return;
  float q[8], o[8] = {}, most = -INFINITY_, sum = 0.f;
  for (int i = 0; i < 8; i++) q[i] = Q[row * 8 + i];
  for (int j = 0; j <= row; j++) {
    float x = 0.f; for (int i = 0; i < 8; i++) x += q[i] * K[j * 8 + i];
    float next = fmaxf(most, x), scale = expf(most - next), p = expf(x - next); sum = sum * scale + p; most = next;
    for (int i = 0; i < 8; i++) o[i] = o[i] * scale + p * V[j * 8 + i];
  }
  for (int i = 0; i < 8; i++) O[row * 8 + i] = o[i] / sum;
}
"""
)

LDMATRIX = (
    HEAD
    + """(const uint4* g, unsigned* out) {
  __shared__ __align__(128) uint4 s[32 * LEADING]; int t = threadIdx.x; unsigned x = 0;
  for (int i = t; i < 32 * 8; i += 32) s[i / 8 * LEADING + (i % 8 ^ (SWIZZLE))] = g[i];
  __syncwarp();
  for (int c0 = 0; c0 < 8; c0 += 2) {
    int r = t % 16, c = c0 + t / 16 % 2; unsigned at = (unsigned)__cvta_generic_to_shared(&s[r * LEADING + (c ^ ((SWIZZLE_R)))]), u, v = 0;
#if PARTS == 2
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(u), "=r"(v) : "r"(at));
#elif PARTS == 1
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(u) : "r"(at));
#else
    unsigned w, z; asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(u), "=r"(v), "=r"(w), "=r"(z) : "r"(at)); u ^= w * 3u + z;
#endif
    x = x * 31u + u + v * 7u;
  }
  out[t] = x;
}
"""
)

CP_ASYNC = (
    HEAD
    + """(const float* g, float* out, int n) {
  __shared__ __align__(16) float s[2][32 * LEADING]; int t = threadIdx.x; float v = 0.f;
#define FETCH(k) for (int i = t; i < 32 * 32 / WORDS; i += 64) { int r = i / (32 / WORDS), c = i % (32 / WORDS) * WORDS; \\
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[(k) & 1][r * LEADING + c]); \\
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(at), "l"(g + (k) * 1024 + r * 32 + c), "n"(WORDS * 4) : "memory"); } \\
    asm volatile("cp.async.commit_group;" ::: "memory");
  FETCH(0)
  for (int k = 0; k < n; k++) {
    if (k + 1 < n) { FETCH(k + 1) asm volatile("cp.async.wait_group 1;" ::: "memory"); } else asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 16; i++) v += s[k & 1][t % 32 * LEADING + t / 32 * 16 + i];
    __syncthreads();
  }
  out[t] = v;
}
"""
)

TENSOR = (
    HEAD
    + """(const unsigned short* Q, const unsigned short* K, float* S, int N) {
  __shared__ __align__(128) unsigned short s_Q[16 * 64], s_K[8 * 64]; int t = threadIdx.x;
  for (int i = t; i < 16 * 8; i += 32) { int r = i / 8, c = i % 8; *(uint4*)&s_Q[r * 64 + (c ^ (r & 7)) * 8] = *(const uint4*)&Q[(blockIdx.y * 16 + r) * 64 + c * 8]; }
  for (int i = t; i < 8 * 8; i += 32) { int r = i / 8, c = i % 8; *(uint4*)&s_K[r * 64 + (c ^ (r & 7)) * 8] = *(const uint4*)&K[(blockIdx.x * 8 + r) * 64 + c * 8]; }
  __syncwarp();
  float c[4] = {};
  for (int k = 0; k < 8; k += 2) {
    unsigned a0, a1, a2, a3, b0, b1; int r = t % 16, h = k + t / 16;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s_Q[r * 64 + (h ^ (r & 7)) * 8]); r = t % 8; h = k + t / 8 % 2;
    unsigned bt = (unsigned)__cvta_generic_to_shared(&s_K[r * 64 + (h ^ (r & 7)) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(bt));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  float* row = S + (blockIdx.y * 16 + t / 4) * N + blockIdx.x * 8 + t % 4 * 2; *(float2*)row = make_float2(c[0], c[1]); *(float2*)(row + 8 * N) = make_float2(c[2], c[3]);
}
"""
)
