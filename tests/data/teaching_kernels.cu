// Ordinary teaching kernels, one for each test of test_simulator_kernels.py.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void hist_global(const int* d, int* h, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&h[d[i]], 1);
}

extern "C" __global__ void hist_shared(const int* d, unsigned* h, int n) {
    __shared__ unsigned s[64];
    for (int i = threadIdx.x; i < 64; i += blockDim.x)
        s[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&s[d[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 37; i += blockDim.x)
        if (s[i])
            atomicAdd(h + i, s[i]);
}

extern "C" __global__ void hillis_steele(int* a, int n) {
    extern __shared__ int t[];
    int i = threadIdx.x;
    int pout = 0, pin = 1;
    t[i] = a[i];
    __syncthreads();
    for (int o = 1; o < n; o <<= 1) {
        pout = 1 - pout;
        pin = 1 - pout;
        t[pout * n + i] = i >= o ? t[pin * n + i] + t[pin * n + i - o] : t[pin * n + i];
        __syncthreads();
    }
    a[i] = t[pout * n + i];
}

extern "C" __global__ void blelloch(int* a) {
    __shared__ int t[256];
    int i = threadIdx.x;
    const int n = 256;
    int off = 1;
    t[2 * i] = a[2 * i];
    t[2 * i + 1] = a[2 * i + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (i < d) {
            int p = off * (2 * i + 1) - 1, q = off * (2 * i + 2) - 1;
            t[q] += t[p];
        }
        off *= 2;
    }
    if (i == 0)
        t[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        off >>= 1;
        __syncthreads();
        if (i < d) {
            int p = off * (2 * i + 1) - 1, q = off * (2 * i + 2) - 1;
            int v = t[p];
            t[p] = t[q];
            t[q] += v;
        }
    }
    __syncthreads();
    a[2 * i] = t[2 * i];
    a[2 * i + 1] = t[2 * i + 1];
}

extern "C" __global__ void warp_scan(int* a, int n) {
    __shared__ int w[32];
    int i = threadIdx.x, lane = i & 31, id = i >> 5;
    int v = i < n ? a[i] : 0;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        int u = __shfl_up_sync(~0u, v, o);
        if (lane >= o)
            v += u;
    }
    if (lane == 31)
        w[id] = v;
    __syncthreads();
    if (id == 0) {
        int s = lane < (blockDim.x + 31) / 32 ? w[lane] : 0;
        for (int o = 1; o < 32; o *= 2) {
            int u = __shfl_up_sync(0xffffffff, s, o);
            if (lane >= o)
                s += u;
        }
        w[lane] = s;
    }
    __syncthreads();
    if (id)
        v += w[id - 1];
    if (i < n)
        a[i] = v;
}

extern "C" __global__ void lookback(int* a, int* counter, volatile int* prefix, volatile int* agg,
                                    int* flag) {
    __shared__ int base, part;
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i == 0)
        part = atomicAdd(counter, 1);
    __syncthreads();
    int b = part;
    s[i] = a[b * 64 + i];
    __syncthreads();
    for (int o = 1; o < 64; o *= 2) {
        int v = i >= o ? s[i - o] : 0;
        __syncthreads();
        s[i] += v;
        __syncthreads();
    }
    if (i == 0) {
        int tot = s[63];
        int run = 0;
        if (b == 0) {
            prefix[0] = tot;
            __threadfence();
            atomicExch(&flag[0], 2);
        } else {
            agg[b] = tot;
            __threadfence();
            atomicExch(&flag[b], 1);
            int j = b - 1;
            while (true) {
                int f;
                do {
                    f = atomicAdd(&flag[j], 0);
                } while (f == 0);
                __threadfence();
                if (f == 2) {
                    run += prefix[j];
                    break;
                }
                run += agg[j];
                j--;
            }
            prefix[b] = run + tot;
            __threadfence();
            atomicExch(&flag[b], 2);
        }
        base = run;
    }
    __syncthreads();
    a[b * 64 + i] = s[i] + base;
}

extern "C" __global__ void lookback_volatile(const int* a, int* sum, int* flag) {
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        int run = 0;
        if (b > 0) {
            while (((volatile int*)flag)[b - 1] == 0)
                ;
            run = ((volatile int*)sum)[b - 1];
        }
        sum[b] = run + a[b];
        __threadfence();
        ((volatile int*)flag)[b] = 1;
    }
}

extern "C" __global__ void transpose_naive(const float* __restrict__ a, float* __restrict__ b,
                                           int h, int w) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h)
        b[x * h + y] = a[y * w + x];
}

extern "C" __global__ void transpose_tiled(const float* a, float* b, int h, int w) {
    __shared__ float t[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < w && y + j < h)
            t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < h && y + j < w)
            b[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void stencil1d_shared(const float* a, float* b, int n) {
    __shared__ float t[64 + 6];
    int g = blockIdx.x * 64 + threadIdx.x, l = threadIdx.x + 3;
    t[l] = g < n ? a[g] : 0;
    if (threadIdx.x < 3) {
        t[l - 3] = g >= 3 && g - 3 < n ? a[g - 3] : 0.f;
        t[l + 64] = g + 64 < n ? a[g + 64] : 0.f;
    }
    __syncthreads();
    float s = 0;
    for (int o = -3; o <= 3; o++)
        s += t[l + o];
    if (g < n)
        b[g] = s;
}

extern "C" __global__ void laplace2d(const float* a, float* b, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1)
        b[y * w + x] = a[(y - 1) * w + x] + a[(y + 1) * w + x] + a[y * w + x - 1] +
                       a[y * w + x + 1] - 4 * a[y * w + x];
}

extern "C" __global__ void stencil3d(const float* a, float* b, int Z, int Y, int X) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= X || y >= Y || z >= Z)
        return;
    auto at = [&](int z, int y, int x) {
        return (x < 0 || y < 0 || z < 0 || x >= X || y >= Y || z >= Z) ? 0.f
                                                                       : a[(z * Y + y) * X + x];
    };
    b[(z * Y + y) * X + x] = at(z - 1, y, x) + at(z + 1, y, x) + at(z, y - 1, x) + at(z, y + 1, x) +
                             at(z, y, x - 1) + at(z, y, x + 1);
}

template <typename T, typename A, int TS>
__device__ void mm(const T* a, const T* b, A* c, int M, int N, int K) {
    __shared__ T sa[TS][TS], sb[TS][TS + 1];
    int r = blockIdx.y * TS + threadIdx.y, q = blockIdx.x * TS + threadIdx.x;
    A s = A(0);
    for (int t = 0; t < (K + TS - 1) / TS; t++) {
        int x = t * TS + threadIdx.x, y = t * TS + threadIdx.y;
        sa[threadIdx.y][threadIdx.x] = r < M && x < K ? a[r * K + x] : T(0);
        sb[threadIdx.y][threadIdx.x] = y < K && q < N ? b[y * N + q] : T(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TS; k++)
            s += A(sa[threadIdx.y][k]) * A(sb[k][threadIdx.x]);
        __syncthreads();
    }
    if (r < M && q < N)
        c[r * N + q] = s;
}

extern "C" __global__ void mm_float(const float* a, const float* b, float* c, int M, int N, int K) {
    mm<float, float, 16>(a, b, c, M, N, K);
}

extern "C" __global__ void mm_double(const double* a, const double* b, double* c, int M, int N,
                                     int K) {
    mm<double, double, 16>(a, b, c, M, N, K);
}

extern "C" __global__ void mm_int8(const signed char* a, const signed char* b, int* c, int M,
                                          int N, int K) {
    mm<signed char, int, 16>(a, b, c, M, N, K);
}

extern "C" __global__ void mm_int(const int* a, const int* b, long long* c, int M, int N, int K) {
    mm<int, long long, 16>(a, b, c, M, N, K);
}

extern "C" __global__ void mm_half(const __half* a, const __half* b, float* c, int M, int N,
                                   int K) {
    mm<__half, float, 8>(a, b, c, M, N, K);
}

extern "C" __global__ void mm_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int M,
                                   int N, int K) {
    mm<__nv_bfloat16, float, 8>(a, b, c, M, N, K);
}

extern "C" __global__ void dp4a(const int* a, const int* b, int* c) {
    int s = 0;
    for (int j = 0; j < 4; j++)
        s = __dp4a(a[threadIdx.x * 4 + j], b[threadIdx.x * 4 + j], s);
    c[threadIdx.x] = s;
}

extern "C" __global__ void mm_regtile(const float* a, const float* b, float* c) {
    __shared__ float sa[8][32], sb[8][32];
    float acc[4][4] = {};
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 8 + tx;
    for (int k0 = 0; k0 < 24; k0 += 8) {
        for (int e = t; e < 256; e += 64) {
            sa[e / 32][e % 32] = a[(e % 32) * 24 + k0 + e / 32];
            sb[e / 32][e % 32] = b[(k0 + e / 32) * 32 + e % 32];
        }
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            float4 u = *(float4*)&sa[k][ty * 4], v = *(float4*)&sb[k][tx * 4];
            float p[4] = {u.x, u.y, u.z, u.w}, q[4] = {v.x, v.y, v.z, v.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    acc[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&c[(ty * 4 + i) * 32 + tx * 4] =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

extern "C" __global__ void red_interleaved(const float* a, float* r, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int o = 1; o < blockDim.x; o *= 2) {
        if (t % (2 * o) == 0)
            s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(r, s[0]);
}

extern "C" __global__ void red_sequential_odd(const float* a, float* r, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? a[i] : 0;
    for (int o = 128; o > 0; o /= 2) {
        __syncthreads();
        if (t < o && t + o < blockDim.x)
            s[t] += s[t + o];
    }
    if (t == 0)
        r[blockIdx.x] = s[0];
}

extern "C" __global__ void red_unrolled_warp_volatile(const float* a, float* r) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = a[t] + a[t + 64];
    __syncthreads();
    if (t < 32) {
        float v = s[t];
        v += s[t + 32];
        s[t] = v;
        __syncwarp();
        if (t < 16) {
            v += s[t + 16];
            s[t] = v;
        }
        __syncwarp();
        if (t < 8) {
            v += s[t + 8];
            s[t] = v;
        }
        __syncwarp();
        if (t < 4) {
            v += s[t + 4];
            s[t] = v;
        }
        __syncwarp();
        if (t < 2) {
            v += s[t + 2];
            s[t] = v;
        }
        __syncwarp();
        if (t < 1) {
            v += s[t + 1];
            s[t] = v;
        }
    }
    if (t == 0)
        r[0] = s[0];
}

extern "C" __global__ void red_shfl_block(const float* a, float* r, int n) {
    __shared__ float w[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        v += a[i];
    for (int o = 16; o; o >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? w[threadIdx.x] : 0;
        for (int o = 16; o; o >>= 1)
            v += __shfl_xor_sync(~0u, v, o);
        if (!threadIdx.x)
            *r = v;
    }
}

extern "C" __global__ void red_sync_add(const int* a, int* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned m = __ballot_sync(~0u, i < n);
    if (i < n) {
        int v = __reduce_add_sync(m, a[i]);
        int mx = __reduce_max_sync(m, a[i]);
        unsigned o = __reduce_or_sync(m, (unsigned)a[i]);
        if ((threadIdx.x & 31) == 0) {
            atomicAdd(r, v);
            atomicMax(r + 1, mx);
            atomicOr((unsigned*)r + 2, o);
        }
    }
}

namespace in_red_last_block {
__device__ unsigned cnt = 0;
extern "C" __global__ void red_last_block(const float* a, float* part, float* r, int n) {
    __shared__ float s[128];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = 0;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128)
        s[t] += a[i];
    __syncthreads();
    for (int o = 64; o; o >>= 1) {
        if (t < o)
            s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) {
        part[blockIdx.x] = s[0];
        __threadfence();
        last = (atomicInc(&cnt, gridDim.x - 1) == gridDim.x - 1);
    }
    __syncthreads();
    if (last) {
        if (t == 0) {
            float q = 0;
            for (int i = 0; i < gridDim.x; i++)
                q += ((volatile float*)part)[i];
            *r = q;
        }
    }
}

}  // namespace in_red_last_block

extern "C" __global__ void argmax_packed64(const float* a, unsigned long long* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned u = __float_as_uint(a[i]);
        u = u & 0x80000000u ? ~u : u | 0x80000000u;
        unsigned long long v = ((unsigned long long)u << 32) | (0xffffffffu - i);
        atomicMax(r, v);
    }
}

extern "C" __global__ void red_double_cas(const double* a, double* r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long *p = (unsigned long long*)r, o = *p, e;
        do {
            e = o;
            o = atomicCAS(p, e, __double_as_longlong(a[i] + __longlong_as_double(e)));
        } while (e != o);
    }
}

extern "C" __global__ void bitonic(int* a) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int k = 2; k <= 128; k <<= 1)
        for (int j = k >> 1; j > 0; j >>= 1) {
            int l = t ^ j;
            if (l > t) {
                bool up = (t & k) == 0;
                if ((s[t] > s[l]) == up) {
                    int q = s[t];
                    s[t] = s[l];
                    s[l] = q;
                }
            }
            __syncthreads();
        }
    a[t] = s[t];
}

extern "C" __global__ void oddeven(float* a, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < n)
        s[t] = a[t];
    __syncthreads();
    for (int p = 0; p < n; p++) {
        int i = 2 * t + (p & 1);
        if (i + 1 < n) {
            float u = s[i], v = s[i + 1];
            if (u > v) {
                s[i] = v;
                s[i + 1] = u;
            }
        }
        __syncthreads();
    }
    if (t < n)
        a[t] = s[t];
}

extern "C" __global__ void radix_bit_split(unsigned* a, int n) {
    __shared__ unsigned s[256];
    __shared__ int w[8];
    int t = threadIdx.x, lane = t & 31, id = t >> 5;
    unsigned v = t < n ? a[t] : 0xffffffffu;
    for (int b = 0; b < 32; b++) {
        int z = !((v >> b) & 1);
        unsigned m = __ballot_sync(~0u, z);
        if (lane == 0)
            w[id] = __popc(m);
        __syncthreads();
        int before = 0, total = 0;
        for (int q = 0; q < 8; q++) {
            if (q < id)
                before += w[q];
            total += w[q];
        }
        int zb = before + __popc(m & ((1u << lane) - 1));
        int pos = z ? zb : total + t - zb;
        s[pos] = v;
        __syncthreads();
        v = s[t];
        __syncthreads();
    }
    if (t < n)
        a[t] = v;
}

extern "C" __global__ void enum_sort_rank(const unsigned* a, unsigned* b, int n) {
    int i = threadIdx.x;
    int r = 0;
    for (int j = 0; j < n; j++)
        r += (a[j] < a[i]) || (a[j] == a[i] && j < i);
    b[r] = a[i];
}

extern "C" __global__ void flag_after_barrier(int* a, int* flag) {
    int b = blockIdx.x, t = threadIdx.x;
    if (b > 0) {
        if (t == 0) {
            while (((volatile int*)flag)[b - 1] == 0)
                ;
        }
        __syncthreads();
        __threadfence();
        a[b * 64 + t] += ((volatile int*)a)[(b - 1) * 64 + t];
    }
    __syncthreads();
    __threadfence();
    if (t == 0)
        atomicExch(&flag[b], 1);
}

extern "C" __global__ void flag_reverse_barrier(int* a, int* flag) {
    int b = gridDim.x - 1 - blockIdx.x, t = threadIdx.x;
    if (b > 0) {
        if (t == 0) {
            while (((volatile int*)flag)[b - 1] == 0)
                ;
        }
        __syncthreads();
        __threadfence();
        a[b * 64 + t] += ((volatile int*)a)[(b - 1) * 64 + t];
    }
    __syncthreads();
    __threadfence();
    if (t == 0)
        atomicExch(&flag[b], 1);
}

extern "C" __global__ void grid_barrier(int* a, int* c, int* s) {
    int t = threadIdx.x, b = blockIdx.x;
    for (int r = 1; r <= 3; r++) {
        a[b * 32 + t] += r;
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(c, 1);
            while (atomicAdd(c, 0) < r * (int)gridDim.x)
                ;
        }
        __syncthreads();
        s[(r - 1) * gridDim.x * 32 + b * 32 + t] =
            ((volatile int*)a)[((b + 1) % gridDim.x) * 32 + t];
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(c + 1, 1);
            while (atomicAdd(c + 1, 0) < r * (int)gridDim.x)
                ;
        }
        __syncthreads();
    }
}

extern "C" __global__ void spin_counted(int* a, int* f) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        int n = 0;
        while (*(volatile int*)f == 0)
            n++;
        a[0] = n < 0 ? n : 1;
    } else if (threadIdx.x == 33 && blockIdx.x == 1)
        atomicExch(f, 1);
}

extern "C" __global__ void nanosleep_backoff_lock(int* lock, int* c) {
    bool done = false;
    unsigned ns = 8;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            volatile int* p = c;
            *p = *p + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        } else {
            __nanosleep(ns);
            if (ns < 256)
                ns *= 2;
        }
    }
}

namespace in_ticket_lock {
__device__ int next, serving;
extern "C" __global__ void ticket_lock(int* c) {
    if (threadIdx.x == 0) {
        int my = atomicAdd(&next, 1);
        while (atomicAdd(&serving, 0) != my)
            ;
        int v = *(volatile int*)c;
        *(volatile int*)c = v * 2 + 1;
        __threadfence();
        atomicAdd(&serving, 1);
    }
}

}  // namespace in_ticket_lock

extern "C" __global__ void warp_producer_consumer(int* a) {
    __shared__ volatile int q[64];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0)
        ready = 0;
    __syncthreads();
    if (t < 32) {
        while (ready == 0)
            ;
        a[t] = q[t];
    } else {
        q[t - 32] = t * 3;
        __threadfence_block();
        __syncwarp();
        if (t == 32)
            ready = 1;
    }
}

extern "C" __global__ void lane_spin_same_warp(int* a) {
    __shared__ volatile int r;
    if (threadIdx.x == 0)
        r = 0;
    __syncwarp();
    if (threadIdx.x == 0) {
        while (r == 0)
            ;
        a[0] = 5;
    } else if (threadIdx.x == 31)
        r = 1;
}

extern "C" __global__ void mandelbrot(int* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float cr = __fadd_rn(-2.f, __fmul_rn(x, 0.1875f)), ci = __fadd_rn(-1.f, __fmul_rn(y, 0.125f)),
          a = 0, b = 0;
    int n = 0;
    while (n < 50 && __fadd_rn(__fmul_rn(a, a), __fmul_rn(b, b)) <= 4.f) {
        float t = __fadd_rn(__fsub_rn(__fmul_rn(a, a), __fmul_rn(b, b)), cr);
        b = __fadd_rn(__fmul_rn(__fmul_rn(2.f, a), b), ci);
        a = t;
        n++;
    }
    o[y * w + x] = n;
}

extern "C" __global__ void nbody(const float4* p, float3* o, int n) {
    __shared__ float4 s[16];
    int i = blockIdx.x * 16 + threadIdx.x;
    float4 me = i < n ? p[i] : make_float4(0, 0, 0, 0);
    float3 a = {0, 0, 0};
    for (int t = 0; t < n; t += 16) {
        int j = t + threadIdx.x;
        s[threadIdx.x] = j < n ? p[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 16; k++) {
            float4 q = s[k];
            float dx = q.x - me.x, dy = q.y - me.y, dz = q.z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float f = q.w * r * r * r;
            a.x += dx * f;
            a.y += dy * f;
            a.z += dz * f;
        }
        __syncthreads();
    }
    if (i < n)
        o[i] = a;
}

namespace in_conv_constant {
__constant__ float K[5][5] = {{0.00f, 0.01f, 0.02f, 0.03f, 0.04f},
                              {0.05f, 0.06f, 0.07f, 0.08f, 0.09f},
                              {0.10f, 0.11f, 0.12f, 0.13f, 0.14f},
                              {0.15f, 0.16f, 0.17f, 0.18f, 0.19f},
                              {0.20f, 0.21f, 0.22f, 0.23f, 0.24f}};
extern "C" __global__ void conv_constant(const float* a, float* o, int h, int w) {
    __shared__ float s[12][12];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 8 + tx - 2, y = blockIdx.y * 8 + ty - 2;
    s[ty][tx] = (x >= 0 && y >= 0 && x < w && y < h) ? a[y * w + x] : 0;
    __syncthreads();
    if (tx < 8 && ty < 8) {
        float v = 0;
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 5; j++)
                v += K[i][j] * s[ty + i][tx + j];
        x += 2;
        y += 2;
        if (x < w && y < h)
            o[y * w + x] = v;
    }
}

}  // namespace in_conv_constant

extern "C" __global__ void matvec_warp_row(const float* a, const float* v, float* y, int M, int K) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= M)
        return;
    float s = 0;
    for (int k = threadIdx.x; k < K; k += 32)
        s = fmaf(__ldg(a + row * K + k), __ldg(v + k), s);
    for (int o = 16; o; o /= 2)
        s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x == 0)
        y[row] = s;
}

extern "C" __global__ void softmax_block(const float* a, float* y, int K) {
    __shared__ float w[4];
    const float* x = a + blockIdx.x * K;
    float m = -1e30f;
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        m = fmaxf(m, x[k]);
    for (int o = 16; o; o /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = m;
    __syncthreads();
    m = w[0];
    for (int i = 1; i < 4; i++)
        m = fmaxf(m, w[i]);
    __syncthreads();
    float s = 0;
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        s += __expf(x[k] - m);
    for (int o = 16; o; o /= 2)
        s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    s = w[0] + w[1] + w[2] + w[3];
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        y[blockIdx.x * K + k] = __expf(x[k] - m) / s;
}

extern "C" __global__ void softmax_online(const float* a, float* y, int M, int K) {
    struct MD {
        float m, d;
    };
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= M)
        return;
    MD s = {-1e30f, 0};
    for (int k = 0; k < K; k++) {
        float x = a[r * K + k];
        float n = fmaxf(s.m, x);
        s.d = s.d * expf(s.m - n) + expf(x - n);
        s.m = n;
    }
    for (int k = 0; k < K; k++)
        y[r * K + k] = expf(a[r * K + k] - s.m) / s.d;
}

extern "C" __global__ void layernorm_welford(const float* a, float* y, int K) {
    float mean = 0, m2 = 0, n = 0;
    const float* x = a + blockIdx.x * K;
    for (int k = threadIdx.x; k < K; k += 32) {
        n += 1;
        float d = x[k] - mean;
        mean += d / n;
        m2 += d * (x[k] - mean);
    }
    for (int o = 16; o; o /= 2) {
        float n2 = __shfl_xor_sync(~0u, n, o), u = __shfl_xor_sync(~0u, mean, o),
              q = __shfl_xor_sync(~0u, m2, o);
        float t = n + n2;
        float d = u - mean;
        if (t > 0) {
            mean = (n * mean + n2 * u) / t;
            m2 = m2 + q + d * d * n * n2 / t;
        }
        n = t;
    }
    float r = rsqrtf(m2 / K + 1e-5f);
    for (int k = threadIdx.x; k < K; k += 32)
        y[blockIdx.x * K + k] = (x[k] - mean) * r;
}

extern "C" __global__ void xorshift(unsigned* o) {
    unsigned x = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u;
    for (int i = 0; i < 20; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    o[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void pcg_hash(unsigned* o) {
    unsigned i = threadIdx.x;
    unsigned s = i * 747796405u + 2891336453u;
    unsigned w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
    o[i] = (w >> 22u) ^ w;
}

extern "C" __global__ void lcg64(unsigned long long* o, double* d) {
    unsigned long long s = threadIdx.x;
    for (int i = 0; i < 10; i++)
        s = s * 6364136223846793005ull + 1442695040888963407ull;
    o[threadIdx.x] = s;
    d[threadIdx.x] = (s >> 11) * (1.0 / 9007199254740992.0);
}

extern "C" __global__ void philox(uint4* o) {
    uint4 c = {threadIdx.x, 0, 0, 0};
    uint2 k = {42, 7};
    for (int r = 0; r < 10; r++) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x,
                 h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k.x += 0x9E3779B9;
        k.y += 0xBB67AE85;
    }
    o[threadIdx.x] = c;
}

extern "C" __global__ void bits(const unsigned* x, unsigned* o) {
    int i = threadIdx.x;
    unsigned v = x[i];
    o[i] = __popc(v);
    o[64 + i] = __clz(v);
    o[128 + i] = __ffs(v);
    o[192 + i] = __brev(v);
    o[256 + i] = __byte_perm(v, i, 0x0123);
    o[320 + i] = __funnelshift_l(v, v, i);
    o[384 + i] = (v >> (i & 31)) | (v << (-i & 31));
    o[448 + i] = __vadd4(v, 0x01020304);
}

extern "C" __global__ void gray_morton(unsigned* o) {
    unsigned x = threadIdx.x, y = threadIdx.y;
    auto sp = [](unsigned v) {
        v = (v | (v << 8)) & 0x00FF00FF;
        v = (v | (v << 4)) & 0x0F0F0F0F;
        v = (v | (v << 2)) & 0x33333333;
        v = (v | (v << 1)) & 0x55555555;
        return v;
    };
    o[y * 16 + x] = sp(x) | sp(y) << 1;
}

namespace in_templates_variadic {
template <class T>
__device__ float sum(T a) {
    return a;
}
template <class T, class... R>
__device__ float sum(T a, R... r) {
    return a + sum(r...);
}
extern "C" __global__ void templates_variadic(float* o) {
    o[threadIdx.x] = sum(threadIdx.x, 2, 3.5f) + sum(1);
}

}  // namespace in_templates_variadic

namespace in_class_complex {
struct C {
    float re, im;
    __device__ C(float r = 0, float i = 0) : re(r), im(i) {
    }
    __device__ C operator*(const C& o) const {
        return C(re * o.re - im * o.im, re * o.im + im * o.re);
    }
    __device__ C& operator+=(const C& o) {
        re += o.re;
        im += o.im;
        return *this;
    }
    __device__ bool operator<(const C& o) const {
        return re < o.re;
    }
    __device__ operator float() const {
        return re * re + im * im;
    }
};
extern "C" __global__ void class_complex(C* a, float* m) {
    C z = a[threadIdx.x];
    C w = z * z;
    w += z;
    a[threadIdx.x] = w;
    m[threadIdx.x] = w;
}

}  // namespace in_class_complex

namespace in_virtual_class {
struct S {
    __device__ virtual int f(int x) = 0;
};
struct A : S {
    __device__ int f(int x) override {
        return x + 1;
    }
};
struct B : S {
    int k = 7;
    __device__ int f(int x) override {
        return x * k;
    }
};
extern "C" __global__ void virtual_class(int* o) {
    A a;
    B b;
    S* s[2] = {&a, &b};
    o[threadIdx.x] = s[threadIdx.x % 2]->f(threadIdx.x);
}

}  // namespace in_virtual_class

extern "C" __global__ void switch_fallthrough_goto(int* o) {
    int x = threadIdx.x, r = 0;
    switch (x % 5) {
        case 0:
            r = 1;
        case 1:
            r += 10;
            break;
        case 2: {
            if (x > 20)
                goto end;
            r = 5;
        } break;
        case 3:
            for (int i = 0; i < x; i++) {
                if (i == 7)
                    break;
                if (i % 2)
                    continue;
                r += i;
            }
            break;
        default:
            r = -x;
    }
    r *= 2;
end:
    o[x] = r;
}

namespace in_funcptr_table_dev {
typedef int (*F)(int);
__device__ int f0(int x) {
    return x;
}
__device__ int f1(int x) {
    return x * x;
}
__device__ int f2(int x) {
    return -x;
}
__constant__ F T[3] = {f0, f1, f2};
__device__ __noinline__ int g(int x, F f) {
    return f(x) + 1;
}
extern "C" __global__ void funcptr_table_dev(int* o) {
    int (*f)(int) = T[threadIdx.x % 3];
    o[threadIdx.x] = f(threadIdx.x) + g(threadIdx.x, T[(threadIdx.x + 1) % 3]);
}

}  // namespace in_funcptr_table_dev

namespace in_ackermann {
__device__ __noinline__ int ack(int m, int n) {
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ack(m - 1, 1);
    return ack(m - 1, ack(m, n - 1));
}
extern "C" __global__ void ackermann(int* o) {
    o[threadIdx.x] = ack(threadIdx.x % 3, threadIdx.x % 4);
}

}  // namespace in_ackermann

namespace in_quicksort_recursive {
__device__ void qs(int* a, int l, int r) {
    if (l >= r)
        return;
    int p = a[(l + r) / 2], i = l, j = r;
    while (i <= j) {
        while (a[i] < p)
            i++;
        while (a[j] > p)
            j--;
        if (i <= j) {
            int t = a[i];
            a[i] = a[j];
            a[j] = t;
            i++;
            j--;
        }
    }
    qs(a, l, j);
    qs(a, i, r);
}
extern "C" __global__ void quicksort_recursive(int* a) {
    int b[20];
    int t = threadIdx.x;
    for (int i = 0; i < 20; i++)
        b[i] = a[t * 20 + i];
    qs(b, 0, 19);
    for (int i = 0; i < 20; i++)
        a[t * 20 + i] = b[i];
}

}  // namespace in_quicksort_recursive

extern "C" __global__ void hanoi_stack(int* o) {
    int st[32][4];
    int sp = 0, c = 0;
    st[sp][0] = threadIdx.x % 7;
    sp++;
    while (sp) {
        sp--;
        int n = st[sp][0];
        if (n == 0)
            continue;
        c++;
        st[sp++][0] = n - 1;
        st[sp++][0] = n - 1;
    }
    o[threadIdx.x] = c;
}

extern "C" __global__ void union_pun(float* a, unsigned* o) {
    union U {
        float f;
        unsigned u;
        unsigned char b[4];
        struct {
            unsigned m : 23, e : 8, s : 1;
        } p;
    };
    U u;
    u.f = a[threadIdx.x];
    o[threadIdx.x] = u.p.e;
    u.b[3] ^= 0x80;
    a[threadIdx.x] = u.f;
}

extern "C" __global__ void bitfields_struct_array(double* o) {
    struct P {
        short a : 5;
        short b : 11;
        char c;
        double d;
    };
    __shared__ P s[33];
    int t = threadIdx.x;
    s[t].a = t;
    s[t].b = -t;
    s[t].c = t * 2;
    s[t].d = t * .5;
    __syncthreads();
    P p = s[(t + 1) % 33];
    o[t] = p.a * 1.0 + p.b * 100.0 + p.c * 1000.0 + p.d;
}

extern "C" __global__ void vec_float4(const float4* a, float4* b) {
    int i = threadIdx.x;
    float4 v = a[i];
    float4 w;
    w.x = v.w + 1;
    w.y = v.z + 1;
    w.z = v.y + 1;
    w.w = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_uchar4(const uchar4* a, uchar4* b) {
    int i = threadIdx.x;
    uchar4 v = a[i];
    uchar4 w;
    w.x = v.w + 1;
    w.y = v.z + 1;
    w.z = v.y + 1;
    w.w = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_short2(const short2* a, short2* b) {
    int i = threadIdx.x;
    short2 v = a[i];
    short2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_longlong2(const longlong2* a, longlong2* b) {
    int i = threadIdx.x;
    longlong2 v = a[i];
    longlong2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_double2(const double2* a, double2* b) {
    int i = threadIdx.x;
    double2 v = a[i];
    double2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_int2(const int2* a, int2* b) {
    int i = threadIdx.x;
    int2 v = a[i];
    int2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_ushort4(const ushort4* a, ushort4* b) {
    int i = threadIdx.x;
    ushort4 v = a[i];
    ushort4 w;
    w.x = v.w + 1;
    w.y = v.z + 1;
    w.z = v.y + 1;
    w.w = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_char2(const char2* a, char2* b) {
    int i = threadIdx.x;
    char2 v = a[i];
    char2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_float2(const float2* a, float2* b) {
    int i = threadIdx.x;
    float2 v = a[i];
    float2 w;
    w.x = v.y + 1;
    w.y = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_uint4(const uint4* a, uint4* b) {
    int i = threadIdx.x;
    uint4 v = a[i];
    uint4 w;
    w.x = v.w + 1;
    w.y = v.z + 1;
    w.z = v.y + 1;
    w.w = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec_char4(const char4* a, char4* b) {
    int i = threadIdx.x;
    char4 v = a[i];
    char4 w;
    w.x = v.w + 1;
    w.y = v.z + 1;
    w.z = v.y + 1;
    w.w = v.x + 1;
    b[i] = w;
}

extern "C" __global__ void vec3(const float3* a, const uchar3* q, float3* b) {
    int i = threadIdx.x;
    float3 v = a[i];
    uchar3 c = q[i];
    b[i] = make_float3(v.z + c.x, v.y + c.y, v.x + c.z);
}

extern "C" __global__ void dyn_carve(double* o, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    double* d = (double*)raw;
    float* f = (float*)(d + n);
    short* s = (short*)(f + n);
    unsigned char* c = (unsigned char*)(s + n);
    int t = threadIdx.x;
    d[t] = t;
    f[t] = 2 * t;
    s[t] = 3 * t;
    c[t] = t;
    __syncthreads();
    int u = n - 1 - t;
    o[t] = d[u] + f[u] * 1e3 + s[u] * 1e6 + c[u] * 1e9;
}

extern "C" __global__ void cacheops(const float* a, float* b, float* c) {
    int i = threadIdx.x;
    float v = __ldg(a + i) + __ldcs(a + i) + __ldcg(a + i) + __ldca(a + i) + __ldlu(a + i) +
              __ldcv(a + i);
    __stcg(b + i, v);
    __stcs(b + 64 + i, v);
    __stwb(b + 128 + i, v);
    __stwt(b + 192 + i, v);
    float4 q = __ldg((const float4*)a + i % 16);
    __stcs((float4*)c + i, q);
}

extern "C" __global__ void ptx_braces(unsigned* o) {
    unsigned x = threadIdx.x, r;
    asm volatile(
        "{\n\t.reg .u32 t1,t2; .reg .pred p;\n\t mul.lo.u32 t1,%1,3;\n\t setp.gt.u32 p,t1,40;\n\t "
        "@p bra L%=;\n\t add.u32 t1,t1,1000;\n L%=:\n\t mov.u32 %0,t1;\n}"
        : "=r"(r)
        : "r"(x));
    o[x] = r;
}

extern "C" __global__ void ptx_loop_label(unsigned* o) {
    unsigned n = threadIdx.x, r;
    asm volatile(
        "{ .reg .pred p; .reg .u32 i; mov.u32 %0, 0; mov.u32 i, %1; \n$loop_%=: setp.eq.u32 p,i,0; "
        "@p bra $done_%=; add.u32 %0,%0,i; sub.u32 i,i,1; bra.uni $loop_%=; \n$done_%=: }"
        : "=&r"(r)
        : "r"(n));
    o[n] = r;
}

extern "C" __global__ void ptx_special(unsigned* o) {
    unsigned l, w, s;
    asm("mov.u32 %0,%%laneid;" : "=r"(l));
    asm("mov.u32 %0,%%lanemask_lt;" : "=r"(w));
    asm volatile("mov.u32 %0,%%smid;" : "=r"(s));
    o[threadIdx.x] = l + (w == (1u << l) - 1) * 100 + (s < 132) * 1000 + 10000;
}

extern "C" __global__ void ptx_carry128(unsigned long long* o) {
    unsigned long long a = ~0ull - threadIdx.x, b = threadIdx.x * 2 + 1, lo, hi;
    asm("add.cc.u64 %0,%2,%3; addc.u64 %1,0,0;" : "=l"(lo), "=l"(hi) : "l"(a), "l"(b));
    o[threadIdx.x * 2] = lo;
    o[threadIdx.x * 2 + 1] = hi;
    o[64 + threadIdx.x * 2] = a * b;
    o[65 + threadIdx.x * 2] = __umul64hi(a, b);
}

extern "C" __global__ void ptx_cvta_ldshared(float* o) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x * 2;
    __syncthreads();
    unsigned a = __cvta_generic_to_shared(&s[63 - threadIdx.x]);
    float v;
    asm volatile("ld.shared.f32 %0,[%1];" : "=f"(v) : "r"(a) : "memory");
    asm volatile("st.global.f32 [%0],%1;" ::"l"(o + threadIdx.x), "f"(v) : "memory");
}

namespace in_globals_init {
struct Q {
    int x;
    float y;
};
__device__ int tab[5] = {1, 2, 3, -4};
__constant__ short m[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ int v = 9;
__device__ int* p = &v;
__device__ Q S = {11, 2.f};
__device__ const char str[] = "hello";
__device__ double big[3] = {1e300, -1, 0.25};
__device__ float acc;
extern "C" __global__ void globals_init(double* o) {
    int t = threadIdx.x;
    o[t] = tab[t % 5] + m[t % 2][t % 3] + *p + S.x + (t < 5 ? str[t] : 0) + big[t % 3];
    atomicAdd(&acc, 1.0f);
}

}  // namespace in_globals_init

extern "C" __global__ void static_const_lut(float* o) {
    static const float L[4] = {.5f, 1.5f, 2.5f, 3.5f};
    constexpr int K[] = {3, 1, 2};
    o[threadIdx.x] = L[threadIdx.x % 4] * K[threadIdx.x % 3];
}

extern "C" __global__ void block_sizes(int* o) {
    __shared__ int s[1024];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    int v = s[blockDim.x - 1 - t];
    v += __shfl_xor_sync(__activemask(), v, 1);
    if (t % 2 == 0)
        return;
    __syncthreads();
    o[blockIdx.x * blockDim.x + t] = v;
}

extern "C" __global__ void launch3d(int* o) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    int X = gridDim.x * blockDim.x, Y = gridDim.y * blockDim.y;
    o[(z * Y + y) * X + x] = x + 100 * y + 10000 * z;
}

extern "C" __global__ void vote_match(int* o, unsigned* m, unsigned* b, unsigned* e, int* f) {
    int t = threadIdx.x;
    o[t] = __any_sync(~0u, t == 5) + 2 * __all_sync(~0u, t < 32);
    m[t] = __match_any_sync(~0u, t % 3);
    b[t] = __ballot_sync(~0u, t & 1);
    int p;
    e[t] = __match_all_sync(~0u, t / 32, &p);
    f[t] = p;
}

extern "C" __global__ void shfl_width_double(double* d, long long* l) {
    double v = threadIdx.x * 1.5;
    long long u = threadIdx.x * 10000000000ll;
    d[threadIdx.x] = __shfl_sync(~0u, v, 2, 8);
    l[threadIdx.x] = __shfl_down_sync(~0u, u, 3, 16);
}

extern "C" __global__ void warp_aggregated_inc(const int* a, int* o, int* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && a[i] > 0) {
        unsigned m = __activemask();
        int leader = __ffs(m) - 1, lane = threadIdx.x & 31;
        int base;
        if (lane == leader)
            base = atomicAdd(c, __popc(m));
        base = __shfl_sync(m, base, leader);
        o[base + __popc(m & ((1u << lane) - 1))] = a[i];
    }
}

extern "C" __global__ void divergent_nested(int* a) {
    int t = threadIdx.x, r = 0;
    for (int i = 0; i < t % 7; i++) {
        if (i % 2) {
            for (int j = 0; j < i; j++) {
                if (j == t % 3)
                    continue;
                r += j;
            }
        } else if (t & 4)
            r += 100;
        else {
            if (i == 4)
                break;
            r -= 1;
        }
    }
    a[t] = r;
}

extern "C" __global__ void bool_args_scalars(double* o, bool b, signed char c, short s, long long l,
                                             double d, unsigned u) {
    o[threadIdx.x] = b ? (c + s + l + d + u) : -1;
}

extern "C" __global__ void void_generic_memcpy(const void* a, void* b) {
    unsigned char tmp[24];
    memset(tmp, 0x11, 24);
    memcpy(tmp + 3, (char*)a + threadIdx.x * 5, 16);
    memcpy((char*)b + threadIdx.x * 24, tmp, 24);
}

extern "C" __global__ void generic_select_shared_global(int* g, int* o) {
    __shared__ int s[64];
    s[threadIdx.x] = -threadIdx.x;
    __syncthreads();
    int* p = threadIdx.x % 3 == 0 ? s + threadIdx.x : threadIdx.x % 3 == 1 ? g + threadIdx.x : 0;
    int loc[4] = {1, 2, 3, 4};
    if (!p)
        p = loc + threadIdx.x % 4;
    int v = *p;
    *p = v + 1;
    o[threadIdx.x] = *p;
}

extern "C" __global__ void half2_ops(__half2* a, float* f) {
    __half2 v = a[threadIdx.x];
    v = __hfma2(v, __float2half2_rn(2.f), __halves2half2(__float2half(1.f), __float2half(-1.f)));
    v = __hmax2(v, __float2half2_rn(0.f));
    a[threadIdx.x] = v;
    f[threadIdx.x] = __half2float(__low2half(v)) + __half2float(__high2half(v));
}

extern "C" __global__ void math_funcs(const float* a, float* o) {
    float x = a[threadIdx.x];
    float r[12] = {
        sinf(x),  cosf(x), tanf(x),  expf(x),        logf(fabsf(x)), powf(fabsf(x), 1.7f),
        tanhf(x), erff(x), cbrtf(x), atan2f(x, 2.f), fmodf(x, .7f),  hypotf(x, 3.f)};
    for (int i = 0; i < 12; i++)
        o[i * 40 + threadIdx.x] = r[i];
}

extern "C" __global__ void double_math(const double* a, double* o) {
    double x = a[threadIdx.x];
    o[threadIdx.x] = exp(x) + sin(x) * log(fabs(x) + 1) + pow(2.5, x) + sqrt(fabs(x)) / 3 +
                     tgamma(fabs(x) + 1) + round(x) + ceil(x) + rint(x * 2) + trunc(x) +
                     fma(x, x, x);
}

extern "C" __global__ void game_of_life(const unsigned char* a, unsigned char* b, int h, int w) {
    int x = threadIdx.x, y = threadIdx.y;
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy)
                n += a[((y + dy + h) % h) * w + (x + dx + w) % w];
    b[y * w + x] = n == 3 || (n == 2 && a[y * w + x]);
}

namespace in_launch_bounds_namespace {
namespace my {
template <int N>
struct Acc {
    float v[N];
    __device__ float total() const {
        float s = 0;
        for (int i = 0; i < N; i++)
            s += v[i];
        return s;
    }
};
}  // namespace my
extern "C" __global__ void __launch_bounds__(128, 2)
    launch_bounds_namespace(float* __restrict__ o) {
    my::Acc<5> a;
    for (int i = 0; i < 5; i++)
        a.v[i] = i * threadIdx.x;
    o[threadIdx.x] = a.total();
}
}  // namespace in_launch_bounds_namespace
