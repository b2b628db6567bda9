# ruff: noqa: E501 (kernel text reads better unbroken)
"""Products of matrices and other loops over shared memory, whose loads are joined across rounds."""

from ..cases import Case
from ..memory.memory_case import array, case, result

HEAD = 'extern "C" __global__ void KERNEL'

# The register-tiled product of the text books: tiles of A (M×K) and B (K×N), RM×RN sums a thread.
GEMM = (
    HEAD
    + """(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[BM][BK + PA], b[BK][BN + PB]; const int T = BM / RM * (BN / RN);
  int tx = threadIdx.x % (BN / RN), ty = threadIdx.x / (BN / RN); float acc[RM][RN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += T) { int r = blockIdx.y * BM + i / BK, c = k0 + i % BK; a[i / BK][i % BK] = r < M && c < K ? A[r * K + c] : 0.f; }
    for (int i = threadIdx.x; i < BK * BN; i += T) { int r = k0 + i / BN, c = blockIdx.x * BN + i % BN; b[i / BN][i % BN] = r < K && c < N ? B[r * N + c] : 0.f; }
    __syncthreads();
    UNROLL
    for (int k = 0; k < BK; k++) { float x[RM], y[RN];
      for (int i = 0; i < RM; i++) x[i] = a[ty * RM + i][k];
      for (int j = 0; j < RN; j++) y[j] = b[k][tx * RN + j];
      for (int i = 0; i < RM; i++)
        for (int j = 0; j < RN; j++) acc[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < RM; i++)
    for (int j = 0; j < RN; j++) { int r = blockIdx.y * BM + ty * RM + i, c = blockIdx.x * BN + tx * RN + j; if (r < M && c < N) C[r * N + c] = acc[i][j]; }
}
"""
)

# The same with sums a stride apart, and A's tile transposed.
GEMM_STRIDED = (
    HEAD
    + """(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[BK][BM], b[BK][BN]; int tx = threadIdx.x, ty = threadIdx.y, t = ty * blockDim.x + tx, T = blockDim.x * blockDim.y;
  float acc[RM][RN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = t; i < BM * BK; i += T) { int r = blockIdx.y * BM + i / BK, c = k0 + i % BK; a[i % BK][i / BK] = r < M && c < K ? A[r * K + c] : 0.f; }
    for (int i = t; i < BK * BN; i += T) { int r = k0 + i / BN, c = blockIdx.x * BN + i % BN; b[i / BN][i % BN] = r < K && c < N ? B[r * N + c] : 0.f; }
    __syncthreads();
    for (int k = 0; k < BK; k++)
      for (int i = 0; i < RM; i++)
        for (int j = 0; j < RN; j++) acc[i][j] += a[k][ty + i * (BM / RM)] * b[k][tx + j * (BN / RN)];
    __syncthreads();
  }
  for (int i = 0; i < RM; i++)
    for (int j = 0; j < RN; j++) { int r = blockIdx.y * BM + ty + i * (BM / RM), c = blockIdx.x * BN + tx + j * (BN / RN); if (r < M && c < N) C[r * N + c] = acc[i][j]; }
}
"""
)

# A tile whose depth the compiler does not know.
DEEP = (
    HEAD
    + """(const float* A, const float* B, float* C, int n, int depth) {
  extern __shared__ float s[]; float* a = s; float* b = s + 16 * LEAD; int t = threadIdx.x, r = t / 16, c = t % 16; float sum = 0.f;
  for (int i = t; i < 16 * depth; i += 256) { a[i / depth * LEAD + i % depth] = A[i]; b[i / depth * LEAD + i % depth] = B[i]; }
  __syncthreads();
  UNROLL
  for (int k = 0; k < depth; k++) sum += a[r * LEAD + k] * b[c * LEAD + k];
  C[t] = sum;
}
"""
)

MATVEC = (
    HEAD
    + """(const TYPE* A, const TYPE* x, TYPE* y, int rows, int n) {
  __shared__ TYPE s[LEN]; for (int i = threadIdx.x; i < LEN; i += blockDim.x) s[i] = i < n ? x[i] : (TYPE)0;
  __syncthreads(); int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return; TYPE sum = 0;
  for (int j = 0; j < BOUND; j++) sum += A[row + j * rows] * s[j];
  y[row] = sum;
}
"""
)

STENCIL = (
    HEAD
    + """(const float* in, const float* weights, float* out, int n) {
  __shared__ float s[128 + 2 * R], w[2 * R + 1]; int t = threadIdx.x, i = blockIdx.x * 128 + t;
  for (int j = t; j < 128 + 2 * R; j += 128) { int at = blockIdx.x * 128 + j - R; s[j] = at >= 0 && at < n ? in[at] : 0.f; }
  if (t < 2 * R + 1) w[t] = weights[t];
  __syncthreads(); float v = 0.f;
  UNROLL
  for (int k = 0; k <= 2 * R; k++) v += w[k] * s[t + k];
  if (i < n) out[i] = v;
}
"""
)

CONVOLUTION = (
    HEAD
    + """(const float* in, const float* filter, float* out, int h, int w) {
  __shared__ float s[11][23], f[4][4]; int x = threadIdx.x, y = threadIdx.y, t = y * 20 + x;
  for (int i = t; i < 11 * 23; i += 160) { int r = blockIdx.y * 8 + i / 23, c = blockIdx.x * 20 + i % 23; s[i / 23][i % 23] = r < h && c < w ? in[r * w + c] : 0.f; }
  if (t < 16) f[t / 4][t % 4] = filter[t];
  __syncthreads(); float v = 0.f;
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) v += f[a][b] * s[y + a][x + b];
  int r = blockIdx.y * 8 + y, c = blockIdx.x * 20 + x; if (r < h - 3 && c < w - 3) out[r * w + c] = v;
}
"""
)

SOFTMAX_TILE = (
    HEAD
    + """(const float* in, float* out, int n) {
  __shared__ __align__(16) float s[24][COLS + PAD]; int t = threadIdx.x;
  for (int i = t; i < 24 * COLS; i += 24) s[i / COLS][i % COLS] = in[blockIdx.x * 24 * COLS + i];
  __syncthreads(); float most = -1e30f, sum = 0.f;
  for (int j = 0; j < COLS; j++) most = fmaxf(most, s[t][j]);
  for (int j = 0; j < COLS; j++) { float e = __expf(s[t][j] - most); s[t][j] = e; sum += e; }
  for (int j = 0; j < COLS; j++) s[t][j] *= 1.f / sum;
  __syncthreads();
  for (int i = t; i < 24 * COLS; i += 24) out[blockIdx.x * 24 * COLS + i] = s[i / COLS][i % COLS];
}
"""
)

ATTENTION = (
    HEAD
    + """(const float* Q, const float* K, const float* V, float* O, int n) {
  __shared__ float k[BC][D], v[BC][D]; int t = threadIdx.x, row = blockIdx.x * blockDim.x + t; float q[D], o[D] = {}, most = -1e30f, sum = 0.f;
  for (int i = 0; i < D; i++) q[i] = row < n ? Q[row * D + i] : 0.f;
  for (int j0 = 0; j0 < n; j0 += BC) {
    for (int i = t; i < BC * D; i += blockDim.x) { int r = j0 + i / D; k[i / D][i % D] = r < n ? K[r * D + i % D] : 0.f; v[i / D][i % D] = r < n ? V[r * D + i % D] : 0.f; }
    __syncthreads();
    for (int j = 0; j < BC && j0 + j < n; j++) {
      float x = 0.f; for (int i = 0; i < D; i++) x += q[i] * k[j][i];
      float next = fmaxf(most, x), scale = __expf(most - next), p = __expf(x - next); sum = sum * scale + p; most = next;
      for (int i = 0; i < D; i++) o[i] = o[i] * scale + p * v[j][i];
    }
    __syncthreads();
  }
  if (row < n) for (int i = 0; i < D; i++) O[row * D + i] = o[i] / sum;
}
"""
)


def product_cases() -> list[Case]:
    """Products, stencils, softmax over tiles."""
    cases = []
    for label, tiles, pads, unroll, sizes in (
        ("64_64_16_4_4", (64, 64, 16, 4, 4), (0, 0), "", (70, 90, 45)),
        ("32_64_8_2_4", (32, 64, 8, 2, 4), (0, 0), "", (33, 65, 20)),
        ("64_32_32_4_2", (64, 32, 32, 4, 2), (0, 0), "", (65, 31, 40)),
        ("48_40_12_3_5", (48, 40, 12, 3, 5), (0, 0), "", (50, 41, 30)),
        ("64_64_16_8_8", (64, 64, 16, 8, 8), (0, 0), "", (70, 60, 33)),
        ("64_64_16_4_4_padded", (64, 64, 16, 4, 4), (1, 0), "", (64, 70, 35)),
        ("32_32_16_2_2_aligned", (32, 32, 16, 2, 2), (4, 4), "", (40, 30, 21)),
        ("32_32_20_1_4", (32, 32, 20, 1, 4), (0, 0), "", (33, 31, 41)),
        ("64_64_16_4_4_rolled", (64, 64, 16, 4, 4), (0, 0), "_Pragma(\"unroll 1\")", (70, 66, 33)),
        ("32_64_16_4_4_by_4", (32, 64, 16, 4, 4), (0, 0), "_Pragma(\"unroll 4\")", (32, 70, 33)),
        ("64_32_24_8_2", (64, 32, 24, 8, 2), (0, 0), "", (64, 33, 49)),
    ):  # fmt: skip
        (bm, bn, bk, rm, rn), (pa, pb), (m, n, k) = tiles, pads, sizes
        defines = {"BM": bm, "BN": bn, "BK": bk, "RM": rm, "RN": rn, "PA": pa, "PB": pb}
        grid, threads = (-(-n // bn), -(-m // bm)), bm // rm * (bn // rn)
        arguments = [array([m, k]), array([k, n]), result([m, n]), m, n, k]
        cases.append(
            case(f"gemm_{label}", GEMM, grid, threads, arguments, UNROLL=unroll, **defines)
        )
    for bm, bn, bk, rm, rn in ((32, 32, 16, 4, 4), (32, 48, 8, 2, 3), (16, 64, 32, 1, 4)):
        m, n, k = 37, 70, 43
        defines = {"BM": bm, "BN": bn, "BK": bk, "RM": rm, "RN": rn}
        arguments = [array([m, k]), array([k, n]), result([m, n]), m, n, k]
        grid, block = (-(-n // bn), -(-m // bm)), (bn // rn, bm // rm)
        cases.append(
            case(f"strided_{bm}_{bn}_{bk}", GEMM_STRIDED, grid, block, arguments, **defines)
        )
    for lead, depth, unroll in ((32, 27, ""), (33, 27, ""), (36, 30, '_Pragma("unroll 1")')):
        arguments = [array([16 * depth]), array([16 * depth]), result([256]), 256, depth]
        name = f"deep_{lead}{'_rolled' if unroll else ''}"
        cases.append(
            case(name, DEEP, 1, 256, arguments, 2 * 16 * lead * 4, LEAD=lead, UNROLL=unroll)
        )
    for label, kind, bound, length, rows, n in (
        ("float", "float", "n", 100, 77, 93),
        ("constant", "float", "36", 36, 77, 36),
        ("double", "double", "n", 60, 50, 53),
        ("int", "int", "n", 70, 65, 66),
        ("triangle", "float", "min(n, row % 7 * 5 + 1)", 64, 90, 64),
    ):
        dtype = {"float": "float32", "double": "float64", "int": "int32"}[kind]
        arguments = [array([n, rows], dtype), array([n], dtype), result([rows], dtype), rows, n]
        defines = {"TYPE": kind, "BOUND": bound, "LEN": length}
        cases.append(case(f"matvec_{label}", MATVEC, 2, 64, arguments, **defines))
    for r, unroll in ((3, ""), (10, ""), (21, '_Pragma("unroll 1")'), (40, "")):
        arguments = [array([300]), array([2 * r + 1]), result([300]), 300]
        cases.append(case(f"stencil_{r}", STENCIL, 3, 128, arguments, R=r, UNROLL=unroll))
    arguments = [array([19, 45]), array([4, 4]), result([19, 45]), 19, 45]
    cases.append(case("convolution", CONVOLUTION, (3, 3), (20, 8), arguments))
    for columns, pad in ((40, 0), (40, 1), (28, 0)):
        arguments = [array([2 * 24 * columns]), result([2 * 24 * columns]), 24]
        name = f"softmax_tile_{columns}_{pad}"
        cases.append(case(name, SOFTMAX_TILE, 2, 24, arguments, COLS=columns, PAD=pad))
    for d, bc in ((8, 16), (12, 10)):
        qkv = [array([45, d])] * 3
        cases.append(
            case(f"attention_{d}_{bc}", ATTENTION, 2, 32, [*qkv, result([45, d]), 45], D=d, BC=bc)
        )
    return cases
