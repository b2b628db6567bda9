# ruff: noqa: E501 (kernel text reads better unbroken)
"""The CUDA C of the access patterns whose counters are recorded. `KERNEL` stands for the entry's name."""

HEAD = 'extern "C" __global__ void KERNEL'

COPY = (
    HEAD
    + """(const T* a, T* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i + SHIFT] = a[(i * STRIDE + SHIFT) % n];
}
"""
)

ROWS = (
    HEAD
    + """(const float* a, float* b, int rows, int columns) {
  int row = blockIdx.x * blockDim.y + threadIdx.y; if (row >= rows) return;
  for (int c = threadIdx.x; c < columns; c += 32) b[row * columns + c] = a[row * columns + c] * 2.f;
}
"""
)

GATHER = (
    HEAD
    + """(const T* a, const int* at, T* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[at[i]];
}
"""
)

SCATTER = (
    HEAD
    + """(const float* a, const int* at, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[at[i]] = a[i];
}
"""
)

TRANSPOSE_NAIVE = (
    HEAD
    + """(const float* a, float* b, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) b[x * n + y] = a[y * n + x];
}
"""
)

SOME_LANES = (
    HEAD
    + """(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (i % 3 == 0 || i % 32 > 20)) b[i] = a[n - 1 - i] + 1.f;
}
"""
)

STRUCTS = (
    """struct Point { float x, y, z; };
"""
    + HEAD
    + """(const Point* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { Point p = a[i]; b[i] = p.x * p.x + p.y * p.y + p.z * p.z; }
}
"""
)

GRID_STRIDE = (
    HEAD
    + """(const float* a, float* b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) b[i] = a[i] + 1.f;
}
"""
)

BROADCAST = (
    HEAD
    + """(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; b[i] = a[blockIdx.x] + a[64 + threadIdx.x / 16] + a[128 + i % 2 * 9];
}
"""
)

TABLES = (
    """__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ float more[8] = {1, 4, 9, 16, 25, 36, 49, 64};
"""
    + HEAD
    + """(const float* __restrict__ a, float* __restrict__ b, int n) {
  float mine[8]; int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  for (int j = 0; j < 8; j++) mine[(j + i) & 7] = __ldg(a + (i + j) % n);
  b[i] = weights[i & 7] * more[(i >> 2) & 7] + mine[(i * 5) & 7] + mine[(i >> 1) & 7];
}
"""
)

ATOMICS = (
    HEAD
    + """(const int* a, int* bins, int n) {
  __shared__ int s[64]; int t = threadIdx.x; if (t < 64) s[t] = 0; __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[a[i] & 63], 1);
  __syncthreads(); if (t < 64 && s[t]) atomicAdd(&bins[t], s[t]);
}
"""
)

STENCIL = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[128 + 4]; int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t + 2] = i < n ? a[i] : 0.f;
  if (t < 2) { s[t] = i >= 2 ? a[i - 2] : 0.f; s[t + 130] = i + 128 < n ? a[i + 128] : 0.f; }
  __syncthreads();
  if (i < n) b[i] = s[t] * 0.1f + s[t + 1] * 0.2f + s[t + 2] * 0.4f + s[t + 3] * 0.2f + s[t + 4] * 0.1f;
}
"""
)

SHARED_STRIDE = (
    HEAD
    + """(const T* a, T* b) {
  __shared__ T s[64 * STRIDE]; int t = threadIdx.x; s[t * STRIDE] = a[t]; __syncthreads(); b[t] = s[(t * 5 + 3) % 64 * STRIDE];
}
"""
)

SHARED_MASKED = (
    HEAD
    + """(const T* a, T* b) {
  __shared__ T s[128]; int t = threadIdx.x, lane = t & 31; s[t] = a[t]; __syncthreads();
  if ((LANES >> lane) & 1) b[t] = s[PLACE];
}
"""
)

SHARED_GATHER = (
    HEAD
    + """(const T* a, const int* at, T* b) {
  __shared__ T s[128]; int t = threadIdx.x; s[at[t]] = a[t]; __syncthreads();
  for (int j = 1; j < 4; j++) b[j * 128 + t] = s[at[j * 128 + t]];
}
"""
)

# JOIN_LOADS is an expression over `s` and `t`; the compiler sees several shared loads off one base register.
JOIN = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[1024]; int t = threadIdx.x; for (int i = t; i < 1024; i += 64) s[i] = a[i]; __syncthreads();
  float v = JOIN_LOADS; b[t] = v;
}
"""
)

JOIN_BETWEEN = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[1024]; __shared__ int tally[64]; int t = threadIdx.x;
  for (int i = t; i < 1024; i += 64) s[i] = a[i]; tally[t] = t; __syncthreads();
  float v = s[t * 4] + s[t * 4 + 1]; BETWEEN; v += s[t * 4 + 2] * s[t * 4 + 3]; b[t] = v + tally[t];
}
"""
)

JOIN_LOOP = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[64][LEADING]; int t = threadIdx.x;
  for (int i = t; i < 64 * WIDTH; i += 64) s[i / WIDTH][i % WIDTH] = a[i]; __syncthreads();
  float v = 0.f; for (int j = 0; j < WIDTH; j++) v += s[ROW][j]; b[t] = v;
}
"""
)

JOIN_STORES = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float s[1024]; int t = threadIdx.x;
  for (int j = 0; j < PARTS; j++) s[t * PER + j] = a[t * PARTS + j];
  __syncthreads(); for (int j = 0; j < PARTS; j++) b[j * 64 + t] = s[(63 - t) * PER + j];
}
"""
)

JOIN_TYPES = (
    HEAD
    + """(const float* a, float* b, int n) {
  __shared__ float first[FIRST]; __shared__ float2 pairs[130]; __shared__ double wide[66]; __shared__ unsigned short small[140];
  int t = threadIdx.x; if (t < FIRST) first[t] = a[t];
  pairs[t] = make_float2(a[t], a[t + 1]); pairs[64 + t] = make_float2(a[t + 2], a[t + 3]); wide[t] = a[t]; small[t] = t; small[64 + t] = t * 3;
  if (t < 2) { pairs[128 + t] = make_float2(1.f, 2.f); wide[64 + t] = 3.; small[128 + t] = 5; }
  __syncthreads();
  float2 p = pairs[t * 2], q = pairs[t * 2 + 1]; double d = wide[t / 2 * 2] + wide[t / 2 * 2 + 1];
  b[t] = p.x + q.y + (float)d + small[t * 2] + small[t * 2 + 1] + first[t % FIRST];
}
"""
)

JOIN_DYNAMIC = (
    """extern __shared__ float buffer[];
"""
    + HEAD
    + """(const float* a, float* b, int n) {
  float* left = buffer; float* right = buffer + OFFSET; int t = threadIdx.x;
  for (int i = t; i < 256; i += 64) { left[i] = a[i]; right[i] = a[i + 256]; } __syncthreads();
  float v = 0.f; for (int j = 0; j < 4; j++) v += left[t * 4 + j] * right[t * 4 + j]; b[t] = v;
}
"""
)
