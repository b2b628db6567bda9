// Attention in one kernel: neither S nor P is ever in memory. A block keeps rows of Q and walks
// along K and V in tiles of KEYS keys. For each tile it computes scores in registers, as
// 07_register_blocked.cu does, turns them into weights with the largest score so far, and adds
// their products with V to its rows of O. Where a larger score turns up, what was added before is
// made smaller to fit.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d. They start at
// multiples of 16 bytes. Where rows do not (d is no multiple of 4), elements are copied one by one.
//
// Launch:
//   fused_attention  grid (ceil(d / 64), ceil(N / ROWS)), block 32 * WARPS,
//                    dynamic shared memory sizeof(Tiles)
// where ROWS = 2048 * WARPS / KEYS. blockIdx.x counts columns of O, 64 a block; blockIdx.y rows.

#ifndef KEYS
#define KEYS 128  // [64, 128] rows in a tile of K or V
#endif
#ifndef WARPS
#define WARPS 4  // [2, 4, 8] warps in a block
#endif

// A thread computes a patch of 8 x 8 scores.
constexpr int ACROSS = KEYS / 8;          // threads for one row of S, all of the same warp
constexpr int DOWN = 32 / ACROSS;         // rows of threads in a warp
constexpr int ROWS = 8 * DOWN * WARPS;    // rows of Q of a block
constexpr int QUADS = 64 / (4 * ACROSS);  // float4 of O that a thread has in each of its rows
constexpr int THREADS = 32 * WARPS;

// Rows are padded by a float4 where threads read down a column, as in 07_register_blocked.cu.
struct Tiles {
    float Q[ROWS][64 + 4];  // [row of S, position along d]
    float V[KEYS][64];      // [key, column of O]
    union {
        float K[KEYS][64 + 4];    // [key, position along d]
        float P[ROWS][KEYS + 4];  // [row of S, 8 * tx + c]: the weights that thread tx has of it
    };
};

// Copy ROWS x 64 elements of A to shared memory, those of a row by neighbouring threads.
// Past the edges the tile holds zeros, which add nothing to the sums.
template <int TILE_ROWS, int WIDTH>
__device__ void copy_tile(
    float (&s_A)[TILE_ROWS][WIDTH],  // shared
    const float* A,                  // [rows, cols]
    int rows, int cols,
    int first_row, int first_col
) {
    if (cols % 4 == 0) {
        #pragma unroll
        for (int n = 0; n < TILE_ROWS * 16 / THREADS; n++) {
            const int e = n * THREADS + threadIdx.x;
            const int r = e / 16;
            const int c = 4 * (e % 16);
            const bool inside = first_row + r < rows && first_col + c < cols;
            const float* a = A + (size_t)(first_row + r) * cols + first_col + c;
            *(float4*)&s_A[r][c] = inside ? *(const float4*)a : make_float4(0, 0, 0, 0);
        }
    } else {
        #pragma unroll 1
        for (int e = threadIdx.x; e < TILE_ROWS * 64; e += THREADS) {
            const int r = e / 64;
            const int c = e % 64;
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

// S += Q K^T along 64 positions of d, for the thread's rows ty + DOWN * r and keys tx + ACROSS * c.
__device__ void multiply_qk(float (&r_S)[8][8], const Tiles& tiles, int tx, int ty) {
    #pragma unroll 2
    for (int k = 0; k < 64; k += 4) {
        float4 r_Q[8];
        #pragma unroll
        for (int r = 0; r < 8; r++) {
            r_Q[r] = *(const float4*)&tiles.Q[ty + DOWN * r][k];
        }
        #pragma unroll
        for (int c = 0; c < 8; c++) {
            const float4 r_K = *(const float4*)&tiles.K[tx + ACROSS * c][k];
            #pragma unroll
            for (int r = 0; r < 8; r++) {
                add_dot(r_S[r][c], r_Q[r], r_K);
            }
        }
    }
}

// The largest of what the threads of a row hold. They differ in bits 1, 2, 3 ... of the lane.
__device__ float row_max(float a) {
    #pragma unroll
    for (int step = 2; step < 2 * ACROSS; step *= 2) {
        a = fmaxf(a, __shfl_xor_sync(0xffffffff, a, step));
    }
    return a;
}

// The same for the sum.
__device__ float row_sum(float a) {
    #pragma unroll
    for (int step = 2; step < 2 * ACROSS; step *= 2) {
        a += __shfl_xor_sync(0xffffffff, a, step);
    }
    return a;
}

// Turns a row's scores into weights 2^(scale * (score - largest)), with the largest score of the
// row so far, and scales what was summed with an earlier one.
__device__ void weigh(
    float (&r_S)[8], float4 (&r_O)[QUADS], float& r_max, float& r_sum, float scale
) {
    float largest = r_max;
    #pragma unroll
    for (int c = 0; c < 8; c++) {
        largest = fmaxf(largest, r_S[c]);
    }
    largest = row_max(largest);
    const float shrink = exp2f((r_max - largest) * scale);  // 0 for the first tile
    r_max = largest;

    r_sum *= shrink;
    #pragma unroll
    for (int c = 0; c < 8; c++) {
        r_S[c] = exp2f(r_S[c] * scale - largest * scale);
        r_sum += r_S[c];
    }
    #pragma unroll
    for (int c = 0; c < QUADS; c++) {
        const float4 o = r_O[c];
        r_O[c] = make_float4(o.x * shrink, o.y * shrink, o.z * shrink, o.w * shrink);
    }
}

// O += P V for the thread's rows and its columns 4 * (tx + ACROSS * c) ... + 3. The sum is taken in
// the order in which the weights lie: those of one thread, whose keys are ACROSS apart.
__device__ void multiply_pv(float4 (&r_O)[8][QUADS], const Tiles& tiles, int tx, int ty) {
    #pragma unroll 1
    for (int t = 0; t < ACROSS; t++) {
        #pragma unroll
        for (int j = 0; j < 8; j += 4) {
            float4 r_P[8];
            #pragma unroll
            for (int r = 0; r < 8; r++) {
                r_P[r] = *(const float4*)&tiles.P[ty + DOWN * r][8 * t + j];
            }
            #pragma unroll
            for (int c = 0; c < QUADS; c++) {
                float4 r_V[4];
                #pragma unroll
                for (int k = 0; k < 4; k++) {
                    const int key = t + ACROSS * (j + k);
                    r_V[k] = *(const float4*)&tiles.V[key][4 * (tx + ACROSS * c)];
                }
                #pragma unroll
                for (int r = 0; r < 8; r++) {
                    add_multiple(r_O[r][c], r_P[r].x, r_V[0]);
                    add_multiple(r_O[r][c], r_P[r].y, r_V[1]);
                    add_multiple(r_O[r][c], r_P[r].z, r_V[2]);
                    add_multiple(r_O[r][c], r_P[r].w, r_V[3]);
                }
            }
        }
    }
}

// Write four neighbours of a row of n elements; nothing past its end.
__device__ void store4(float* o, int j, int n, float4 a) {
    if (n % 4 == 0) {
        if (j < n) *(float4*)(o + j) = a;
        return;
    }
    if (j < n) o[j] = a.x;
    if (j + 1 < n) o[j + 1] = a.y;
    if (j + 2 < n) o[j + 2] = a.z;
    if (j + 3 < n) o[j + 3] = a.w;
}

// O = softmax(Q K^T / sqrt(d)) V.
extern "C" __global__ __launch_bounds__(THREADS, 8 / WARPS) void fused_attention(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    extern __shared__ float4 s_data[];
    Tiles& tiles = *(Tiles*)s_data;
    // Lanes 2n and 2n + 1 are in one column and n and n ^ 2 in one row: see 07_register_blocked.cu.
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int tx = lane / 2 % ACROSS;
    const int ty = 8 * DOWN * warp + lane / (2 * ACROSS) * 2 + lane % 2;
    const int block_row = blockIdx.y * ROWS;
    const int block_col = blockIdx.x * 64;
    const float lowest = __int_as_float(0xff800000);    // minus infinity
    const float scale = 1.44269504f / sqrtf((float)d);  // e^x = 2^(1.44269504 x)

    float4 r_O[8][QUADS] = {};
    float r_max[8];
    float r_sum[8] = {};  // of the thread's own weights
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        r_max[r] = lowest;
    }

    for (int first_key = 0; first_key < N; first_key += KEYS) {
        float r_S[8][8] = {};
        for (int i = 0; i < d; i += 64) {
            __syncthreads();  // all threads are done with the tiles before others replace them
            if (d > 64 || first_key == 0) {
                copy_tile(tiles.Q, Q, N, d, block_row, i);
            }
            copy_tile(tiles.K, K, N, d, first_key, i);
            if (i == 0) {
                copy_tile(tiles.V, V, N, d, first_key, block_col);
            }
            __syncthreads();  // the tiles are whole before any thread reads what others copied
            multiply_qk(r_S, tiles, tx, ty);
        }
        if (first_key + KEYS > N) {
            #pragma unroll
            for (int c = 0; c < 8; c++) {
                #pragma unroll
                for (int r = 0; r < 8; r++) {
                    r_S[r][c] = first_key + tx + ACROSS * c < N ? r_S[r][c] : lowest;
                }
            }
        }

        __syncthreads();  // all threads are done with K before weights take its place
        #pragma unroll
        for (int r = 0; r < 8; r++) {
            weigh(r_S[r], r_O[r], r_max[r], r_sum[r], scale);
            float4* p = (float4*)&tiles.P[ty + DOWN * r][8 * tx];
            p[0] = make_float4(r_S[r][0], r_S[r][1], r_S[r][2], r_S[r][3]);
            p[1] = make_float4(r_S[r][4], r_S[r][5], r_S[r][6], r_S[r][7]);
        }
        __syncwarp();  // a row's weights are there before the other threads of its warp read them
        multiply_pv(r_O, tiles, tx, ty);
    }

    #pragma unroll
    for (int r = 0; r < 8; r++) {
        const float inverse = 1.0f / row_sum(r_sum[r]);
        const int row = block_row + ty + DOWN * r;
        #pragma unroll
        for (int c = 0; c < QUADS; c++) {
            const float4 o = r_O[r][c];
            const int col = block_col + 4 * (tx + ACROSS * c);
            if (row < N) {
                store4(
                    O + (size_t)row * d, col, d,
                    make_float4(o.x * inverse, o.y * inverse, o.z * inverse, o.w * inverse)
                );
            }
        }
    }
}
