// Kernels that keep one part of a GPU busy each, and some of the usual kinds: their times on an H200 are recorded, and
// no bound on them may be above (tools/record/record_bounds.py).

#include <cuda_fp16.h>

extern "C" {

// ---- DRAM and L2

__global__ void copy(const float4* a, float4* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i];
}

__global__ void copy_words(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i];
}

__global__ void saxpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void fill(float4* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = make_float4(1, 2, 3, 4);
}

// Each thread reads eight vectors, a block's width apart.
__global__ void read(const float4* a, float* out, int n) {
    const float4* mine = a + (size_t)blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float4 v = mine[k * blockDim.x];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 12345.678f) out[n] = sum;
}

__global__ void copy_strided(const float* a, float* b, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    size_t at = (size_t)i * stride;
    if (at < n) b[at] = a[at];
}

// All blocks go over the same `n` vectors, past L1.
__global__ void l2_read(const float4* a, float* out, int n, int times) {
    float sum = 0;
    for (int t = 0; t < times; t++) {
        int i = (blockIdx.x * 7 + t) * blockDim.x * 4 % n + threadIdx.x;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float4 v = __ldcg(a + i + k * blockDim.x);
            sum += v.x + v.y + v.z + v.w;
        }
    }
    if (sum == 12345.678f) out[0] = sum;
}

// ---- L1 and shared memory

// Lanes `stride` words apart, in 16 KB that L1 keeps.
__global__ void l1_stride(const float* a, float* out, int stride, int times) {
    int lane = threadIdx.x & 31;
    float sum = 0;
    for (int t = 0; t < times; t++) {
#pragma unroll
        for (int k = 0; k < 8; k++) sum += a[(lane * stride + ((t * 8 + k) << 5)) & 4095];
    }
    if (sum == 12345.678f) out[0] = sum;
}

__global__ void l1_vectors(const float4* a, float* out, int times) {
    int lane = threadIdx.x & 31;
    float sum = 0;
    for (int t = 0; t < times; t++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float4 v = a[(lane + ((t * 8 + k) << 5)) & 1023];
            sum += v.x + v.y + v.z + v.w;
        }
    }
    if (sum == 12345.678f) out[0] = sum;
}

__global__ void shared_vectors(float* out, int times) {
    __shared__ float4 s[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = make_float4(i, 0, 0, 0);
    __syncthreads();
    int lane = threadIdx.x & 31;
    float sum = 0;
    for (int t = 0; t < times; t++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float4 v = s[(lane + ((t * 8 + k) << 5)) & 1023];
            sum += v.x + v.y + v.z + v.w;
        }
    }
    if (sum == 12345.678f) out[0] = sum;
}

__global__ void transpose_plain(const float* a, float* b, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) b[(size_t)x * n + y + k] = a[(size_t)(y + k) * n + x];
}

__global__ void transpose_conflicts(const float* a, float* b, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[(size_t)(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) b[(size_t)(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void transpose_padded(const float* a, float* b, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[(size_t)(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) b[(size_t)(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

// ---- sums, windows, counts

__global__ void sum_tree(const float* a, float* out, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < n ? a[i] : 0;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

__global__ void sum_shuffles(const float4* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = i < n ? a[i] : make_float4(0, 0, 0, 0);
    float sum = v.x + v.y + v.z + v.w;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, sum);
}

__global__ void stencil(const float* a, float* b, int n) {
    __shared__ float s[256 + 8];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x + 4] = i < n ? a[i] : 0;
    if (threadIdx.x < 4) s[threadIdx.x] = i >= 4 ? a[i - 4] : 0;
    if (threadIdx.x >= 252) s[threadIdx.x + 8] = i + 4 < n ? a[i + 4] : 0;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; k++) sum += s[threadIdx.x + k];
    if (i < n) b[i] = sum / 9;
}

__global__ void histogram(const unsigned* a, unsigned* counts, int n) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&bins[a[i] & 255], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}

// ---- arithmetic

__global__ void ffma_loop(float* out, int times) {
    float x[8];
    for (int k = 0; k < 8; k++) x[k] = threadIdx.x + k;
    for (int t = 0; t < times; t++) {
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = fmaf(x[k], 0.999f, 0.5f);
    }
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += x[k];
    if (sum == 12345.678f) out[0] = sum;
}

// One chain only: each FFMA waits for the one before.
__global__ void ffma_chain(float* out, int times) {
    float x = threadIdx.x;
    for (int t = 0; t < times; t++) x = fmaf(x, 0.999f, 0.5f);
    if (x == 12345.678f) out[0] = x;
}

__global__ void exp_loop(float* out, int times) {
    float x[4];
    for (int k = 0; k < 4; k++) x[k] = -(float)(threadIdx.x + k);
    for (int t = 0; t < times; t++) {
#pragma unroll
        for (int k = 0; k < 4; k++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k]));
    }
    if (x[0] + x[1] + x[2] + x[3] == 12345.678f) out[0] = x[0];
}

// Eight products that do not wait for each other.
#define MMA_LOOP(kind, A, B)                                                                      \
    float c[8][4] = {};                                                                           \
    unsigned a = threadIdx.x, b = threadIdx.x * 3;                                                \
    for (int t = 0; t < times; t++) {                                                             \
        _Pragma("unroll") for (int k = 0; k < 8; k++)                                             \
            asm volatile("mma.sync.aligned." kind " {%0,%1,%2,%3}, " A ", " B ", {%0,%1,%2,%3};"  \
                         : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])             \
                         : "r"(a), "r"(b));                                                       \
    }                                                                                             \
    float sum = 0;                                                                                \
    for (int k = 0; k < 8; k++) sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];                     \
    if (sum == 12345.678f) out[0] = sum;

__global__ void mma_loop(float* out, int times) {
    MMA_LOOP("m16n8k16.row.col.f32.f16.f16.f32", "{%4,%4,%4,%4}", "{%5,%5}")
}

__global__ void mma_loop_bf16(float* out, int times) {
    MMA_LOOP("m16n8k16.row.col.f32.bf16.bf16.f32", "{%4,%4,%4,%4}", "{%5,%5}")
}

__global__ void mma_loop_tf32(float* out, int times) {
    MMA_LOOP("m16n8k8.row.col.f32.tf32.tf32.f32", "{%4,%4,%4,%4}", "{%5,%5}")
}

__global__ void mma_loop_k8(float* out, int times) {
    MMA_LOOP("m16n8k8.row.col.f32.f16.f16.f32", "{%4,%4}", "{%5}")
}

// ---- products of matrices

__global__ void gemm_naive(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[(size_t)row * n + k] * b[(size_t)k * n + col];
    c[(size_t)row * n + col] = sum;
}

__global__ void gemm_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float A[32][32], B[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n; t += 32) {
        A[threadIdx.y][threadIdx.x] = a[(size_t)row * n + t + threadIdx.x];
        B[threadIdx.y][threadIdx.x] = b[(size_t)(t + threadIdx.y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += A[threadIdx.y][k] * B[k][threadIdx.x];
        __syncthreads();
    }
    c[(size_t)row * n + col] = sum;
}

// 64 x 64 of C a block, 4 x 4 a thread; 16 x 16 threads.
__global__ void __launch_bounds__(256) gemm_registers(const float* a, const float* b, float* c, int n) {
    __shared__ float A[16][64 + 4], B[16][64];
    int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    int first_row = blockIdx.y * 64, first_col = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int t = 0; t < n; t += 16) {
        for (int k = 0; k < 4; k++) {
            int at = thread + 256 * k;
            A[at % 16][at / 16] = a[(size_t)(first_row + at / 16) * n + t + at % 16];
            B[at / 64][at % 64] = b[(size_t)(t + at / 64) * n + first_col + at % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float x[4], y[4];
            for (int i = 0; i < 4; i++) x[i] = A[k][ty * 4 + i], y[i] = B[k][tx * 4 + i];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(size_t)(first_row + ty * 4 + i) * n + first_col + tx * 4 + j] = sum[i][j];
}

// A warp for 16 x 8 of C, straight from global memory.
__global__ void gemm_mma(const __half* a, const __half* b, float* c, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    int row = warp / (n / 8) * 16 + lane / 4, col = warp % (n / 8) * 8 + lane / 4;
    float sum[4] = {};
    for (int k = 0; k < n; k += 16) {
        const unsigned* x = (const unsigned*)(a + (size_t)row * n + k) + lane % 4;
        const unsigned* y = (const unsigned*)(b + (size_t)col * n + k) + lane % 4;
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(x[0]), "r"(x[4 * n]), "r"(x[4]), "r"(x[4 * n + 4]), "r"(y[0]), "r"(y[4]));
    }
    float2* out = (float2*)(c + (size_t)row * n + warp % (n / 8) * 8) + lane % 4;
    out[0] = make_float2(sum[0], sum[1]);
    out[4 * n] = make_float2(sum[2], sum[3]);
}

// Too many registers for the bound that is asked for: some are spilled.
__global__ void __launch_bounds__(256, 4) spilling(const float* a, float* out, int n) {
    float x[96];
    for (int k = 0; k < 96; k++) x[k] = a[k * 256 + threadIdx.x];
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int k = 0; k < 96; k++) x[k] = fmaf(x[k], x[(k + 1) % 96], x[(k + 7) % 96]);
    float sum = 0;
    for (int k = 0; k < 96; k++) sum += x[k];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

}
