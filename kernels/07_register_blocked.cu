// Attention in three kernels that move four floats at a time. In the products a thread computes a
// patch of the result in registers: of PATCH x PATCH elements of S, or PATCH x 4 of O. What it
// reads from shared memory serves the whole patch: an element of s_Q PATCH sums, where in
// 07_padded.cu each of the two operands of a multiplication is read for that one alone.
// Rows of shared memory are padded by a float4, which keeps them at multiples of 16 bytes.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d, S and P are N x N.
// They start at multiples of 16 bytes. Where rows do not (d or N is no multiple of 4), elements
// are copied one by one.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / (16 * PATCH)), ceil(N / (16 * PATCH))), block 256
//   softmax             grid N,                                                block BLOCK_SIZE
//   pv_multiply         grid (ceil(d / 64), ceil(N / (8 * PATCH))),            block 128
// blockIdx.x counts columns of the result and blockIdx.y rows.

#ifndef TILE
#define TILE 32  // [16, 32] positions along the summed dimension in a tile
#endif
#ifndef PATCH
#define PATCH 8  // [4, 8] rows (in S columns as well) of the result that a thread computes
#endif
#ifndef WARP_ROWS
#define WARP_ROWS 4  // [2, 4] a warp's threads make 2 rows of 16 patches, or 4 rows of 8
#endif
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 512  // [64, 128, 256, 512, 1024] threads in a block of softmax, a power of two
#endif

// Where in a block's grid of patches, 16 in a row, a thread of it has its own.
// With WARP_ROWS 4, lanes 2n and 2n + 1 are in one column and lanes n and n ^ 2 in one row. A load
// of 16 bytes goes through shared memory in phases of 8 lanes, and two phases become one where each
// lane reads what one of these neighbours reads: half the wavefronts for both operands.
__device__ void place_of(int tid, int& tx, int& ty) {
    const int lane = tid % 32;
    const int warp = tid / 32;
    if (WARP_ROWS == 4) {
        tx = warp % 2 * 8 + lane / 2 % 8;
        ty = warp / 2 * 4 + lane / 16 * 2 + lane % 2;
    } else {
        tx = lane % 16;
        ty = warp * 2 + lane / 16;
    }
}

// Copy ROWS x COLS elements of A to shared memory, those of a row by neighbouring threads.
// Past the edges the tile holds zeros, which add nothing to the sums.
template <int THREADS, int ROWS, int COLS, int WIDTH>
__device__ void copy_tile(
    float (&s_A)[ROWS][WIDTH],  // shared
    const float* A,             // [rows, cols]
    int rows, int cols,
    int first_row, int first_col
) {
    if (cols % 4 == 0) {
        static_assert(ROWS * COLS / 4 % THREADS == 0, "each thread copies as much as the others");
        #pragma unroll
        for (int n = 0; n < ROWS * COLS / 4 / THREADS; n++) {
            const int e = 4 * (n * THREADS + threadIdx.x);
            const int r = e / COLS;
            const int c = e % COLS;
            const bool inside = first_row + r < rows && first_col + c < cols;
            const float* a = A + (size_t)(first_row + r) * cols + first_col + c;
            *(float4*)&s_A[r][c] = inside ? *(const float4*)a : make_float4(0, 0, 0, 0);
        }
    } else {
        #pragma unroll 1
        for (int e = threadIdx.x; e < ROWS * COLS; e += THREADS) {
            const int r = e / COLS;
            const int c = e % COLS;
            const bool inside = first_row + r < rows && first_col + c < cols;
            s_A[r][c] = inside ? A[(size_t)(first_row + r) * cols + first_col + c] : 0.0f;
        }
    }
}

// sum += a . b, one multiply-add after another.
__device__ void add_dot(float& sum, float4 a, float4 b) {
    sum += a.x * b.x;
    sum += a.y * b.y;
    sum += a.z * b.z;
    sum += a.w * b.w;
}

// sum += a b.
__device__ void add_multiple(float4& sum, float a, float4 b) {
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

// S = Q K^T / sqrt(d): one thread for PATCH x PATCH elements, 16 apart.
extern "C" __global__ __launch_bounds__(256, 2) void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    // An odd number of float4 in a row: those of 8 rows at one position lie in different banks.
    __shared__ float s_Q[16 * PATCH][TILE + 4];  // [row of S, position along d]
    __shared__ float s_K[16 * PATCH][TILE + 4];  // [column of S, position along d]
    int tx, ty;
    place_of(threadIdx.x, tx, ty);
    const int block_row = blockIdx.y * 16 * PATCH;
    const int block_col = blockIdx.x * 16 * PATCH;

    float sum[PATCH][PATCH] = {};
    for (int i = 0; i < d; i += TILE) {
        copy_tile<256, 16 * PATCH, TILE>(s_Q, Q, N, d, block_row, i);
        copy_tile<256, 16 * PATCH, TILE>(s_K, K, N, d, block_col, i);
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        #pragma unroll
        for (int k = 0; k < TILE; k += 4) {
            float4 r_Q[PATCH];
            #pragma unroll
            for (int r = 0; r < PATCH; r++) {
                r_Q[r] = *(const float4*)&s_Q[ty + 16 * r][k];
            }
            #pragma unroll
            for (int c = 0; c < PATCH; c++) {
                const float4 r_K = *(const float4*)&s_K[tx + 16 * c][k];
                #pragma unroll
                for (int r = 0; r < PATCH; r++) {
                    add_dot(sum[r][c], r_Q[r], r_K);
                }
            }
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    const float scale = 1.0f / sqrtf((float)d);
    #pragma unroll
    for (int r = 0; r < PATCH; r++) {
        const int row = block_row + ty + 16 * r;
        #pragma unroll
        for (int c = 0; c < PATCH; c++) {
            const int col = block_col + tx + 16 * c;
            if (row < N && col < N) {
                S[(size_t)row * N + col] = sum[r][c] * scale;
            }
        }
    }
}

// Four neighbours of a row of n elements; minus infinity past its end.
__device__ float4 load4(const float* s, int j, int n) {
    if (n % 4 == 0) {
        return *(const float4*)(s + j);
    }
    const float lowest = __int_as_float(0xff800000);
    return make_float4(
        s[j],
        j + 1 < n ? s[j + 1] : lowest,
        j + 2 < n ? s[j + 2] : lowest,
        j + 3 < n ? s[j + 3] : lowest
    );
}

// The same way back; nothing is written past the end.
__device__ void store4(float* p, int j, int n, float4 a) {
    if (n % 4 == 0) {
        *(float4*)(p + j) = a;
        return;
    }
    p[j] = a.x;
    if (j + 1 < n) p[j + 1] = a.y;
    if (j + 2 < n) p[j + 2] = a.z;
    if (j + 3 < n) p[j + 3] = a.w;
}

// expf of four scores with the row's maximum subtracted.
__device__ float4 exp4(float4 s, float row_max) {
    return make_float4(
        expf(s.x - row_max), expf(s.y - row_max), expf(s.z - row_max), expf(s.w - row_max)
    );
}

// P = softmax(S) along rows: one block for each row.
extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    __shared__ float s_data[BLOCK_SIZE];  // one partial result for each thread
    const int row = blockIdx.x;
    const int tid = threadIdx.x;
    const float* s = S + (size_t)row * N;
    float* p = P + (size_t)row * N;

    // With the largest score subtracted, no exponent
    // is above 0 and expf cannot overflow.
    float local_max = s[0];  // also right for a thread that has no element of its own
    for (int j = 4 * tid; j < N; j += 4 * BLOCK_SIZE) {
        const float4 a = load4(s, j, N);
        local_max = fmaxf(fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w)), local_max);
    }
    s_data[tid] = local_max;
    __syncthreads();  // all maxima are there before a thread reads another's
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) {
            s_data[tid] = fmaxf(s_data[tid], s_data[tid + stride]);
        }
        __syncthreads();  // this level of the tree is whole before the next one reads it
    }
    const float row_max = s_data[0];
    __syncthreads();  // all threads have read the maximum before s_data[0] takes a sum

    float local_sum = 0.0f;
    for (int j = 4 * tid; j < N; j += 4 * BLOCK_SIZE) {
        const float4 e = exp4(load4(s, j, N), row_max);
        local_sum += e.x + e.y + e.z + e.w;
    }
    s_data[tid] = local_sum;
    __syncthreads();  // all sums are there before a thread reads another's
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) {
            s_data[tid] += s_data[tid + stride];
        }
        __syncthreads();  // this level of the tree is whole before the next one reads it
    }
    const float scale = 1.0f / s_data[0];

    for (int j = 4 * tid; j < N; j += 4 * BLOCK_SIZE) {
        const float4 e = exp4(load4(s, j, N), row_max);
        store4(p, j, N, make_float4(e.x * scale, e.y * scale, e.z * scale, e.w * scale));
    }
}

// O = P V: one thread for PATCH rows, 8 apart, of 4 neighbouring elements.
extern "C" __global__ __launch_bounds__(128) void pv_multiply(
    const float* P,  // [N, N]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    __shared__ float s_P[8 * PATCH][TILE + 4];  // [row of O, position along N]
    __shared__ float s_V[TILE][64];             // [position along N, column of O]
    int tx, ty;
    place_of(threadIdx.x, tx, ty);
    const int block_row = blockIdx.y * 8 * PATCH;
    const int block_col = blockIdx.x * 64;

    float4 sum[PATCH] = {};
    for (int i = 0; i < N; i += TILE) {
        copy_tile<128, 8 * PATCH, TILE>(s_P, P, N, N, block_row, i);
        copy_tile<128, TILE, 64>(s_V, V, N, d, i, block_col);
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        #pragma unroll
        for (int k = 0; k < TILE; k += 4) {
            float4 r_V[4];
            #pragma unroll
            for (int j = 0; j < 4; j++) {
                r_V[j] = *(const float4*)&s_V[k + j][4 * tx];
            }
            #pragma unroll
            for (int r = 0; r < PATCH; r++) {
                const float4 r_P = *(const float4*)&s_P[ty + 8 * r][k];
                add_multiple(sum[r], r_P.x, r_V[0]);
                add_multiple(sum[r], r_P.y, r_V[1]);
                add_multiple(sum[r], r_P.z, r_V[2]);
                add_multiple(sum[r], r_P.w, r_V[3]);
            }
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    const int col = block_col + 4 * tx;
    #pragma unroll
    for (int r = 0; r < PATCH; r++) {
        const int row = block_row + ty + 8 * r;
        if (row < N && col < d) {
            store4(O + (size_t)row * d, col, d, sum[r]);
        }
    }
}
