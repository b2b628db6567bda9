// 10c_double_buffer.cu with products of whole warpgroups (wgmma), which read their tiles out of
// shared memory themselves: there is no ldmatrix. Tiles lie there in panels, as wgmma wants them.
//
// Q, K, V and O hold 16-bit elements, HEAD_DIM of them in a row. The strides are the elements from
// one batch, head or row to the next, in all four alike: heads * n * d, n * d and d if their shape
// is (batch, heads, n, d); n * heads * d, d and heads * d if it is (batch, n, heads, d).
//
// Launch:
//   flash_attention  grid (ceil(n / B_R), heads, batch), block 2 * B_R,
//                    dynamic shared memory (B_R + 4 * B_C) * HEAD_DIM * 2 bytes
// A warpgroup owns 64 rows of Q and of O, and every key.

#include "hopper.cuh"
#include "swizzle.cuh"

#ifndef ELEMENT
#define ELEMENT half  // [half, nv_bfloat16] type of an element
#endif
#ifndef HEAD_DIM
#define HEAD_DIM 128  // [64, 128] d, the elements in a row
#endif
#ifndef B_R
#define B_R 128  // [128, 192] rows of Q that a block works on
#endif
#ifndef B_C
#define B_C 64  // [64, 128] rows in a tile of K or V
#endif
#ifndef CAUSAL
#define CAUSAL 0  // [0, 1] whether a row sees only the keys up to its own
#endif

static_assert(B_R % 64 == 0, "B_R must be a multiple of 64, the rows of a warpgroup.");
static_assert((B_R + 4 * B_C) * HEAD_DIM * 2 <= 227 * 1024, "The tiles exceed 227 KB.");

constexpr int THREADS = 2 * B_R;         // a warpgroup, 128 threads, for 64 rows of Q
constexpr int KEY_TILES = B_C / 8;       // parts of S with 8 keys each
constexpr int DIM_TILES = HEAD_DIM / 8;  // parts of O with 8 columns each
constexpr int TILE = B_C * HEAD_DIM;     // elements of a tile of K or V
constexpr int PANEL = 64;                // elements in a row of a panel, 128 bytes
// Blocks that a multiprocessor is to hold at least, which limits the registers of a thread.
constexpr int BLOCKS = B_R > 128 || B_C > 64 ? 1 : 2;

// Where in a tile of ROWS rows chunk `chunk` of row `row` begins, in elements. A tile is panels of
// 64 columns, one behind the other, and each panel's rows are swizzled.
template <int ROWS>
__device__ __forceinline__ int place(int row, int chunk) {
    return (chunk / 8 * ROWS + row) * PANEL + 8 * swizzle(row, chunk % 8);
}

// Starts copying a tile to shared memory: 8 lanes read 128 bytes in a row. Rows from `rows` on
// become zeros.
template <int ROWS>
__device__ __forceinline__ void copy_rows(
    ELEMENT* s_tile, const ELEMENT* tile, int rows, int row_stride
) {
    #pragma unroll 2
    for (int i = 0; i < ROWS; i += THREADS / 8) {
        const int row = i + threadIdx.x / 8;
        const ELEMENT* from = tile + (long long)row * row_stride + 8 * (threadIdx.x % 8);
        #pragma unroll
        for (int c = 0; c < HEAD_DIM / 8; c += 8) {
            if (ROWS % (THREADS / 8) == 0 || row < ROWS) {
                cp_async_16(s_tile + place<ROWS>(row, c + threadIdx.x % 8), from + 8 * c,
                            row < rows ? 16 : 0);
            }
        }
    }
}

// Starts copying the tiles of K and V that begin with key `key`.
__device__ __forceinline__ void copy_tiles(
    ELEMENT* s_KV, const ELEMENT* K, const ELEMENT* V, int key, int n, int row_stride
) {
    ELEMENT* s_K = s_KV + key / B_C % 2 * (2 * TILE);
    const long long tile = (long long)key * row_stride;
    copy_rows<B_C>(s_K, K + tile, n - key, row_stride);
    copy_rows<B_C>(s_K + TILE, V + tile, n - key, row_stride);
    cp_async_commit();
}

// Starts S = Q K^T for the warpgroup's rows and the tile's keys, in steps of 16 along d.
__device__ __forceinline__ void multiply_qk(
    float (&r_S)[KEY_TILES][4], const ELEMENT* s_Q, const ELEMENT* s_K
) {
    #pragma unroll
    for (int k = 0; k < HEAD_DIM / 16; k++) {
        const int panel = k / 4, column = k % 4 * 16;  // a step stays within a panel
        // A row of K is a column of K^T: both operands lie along k.
        wgmma<ELEMENT, false>(r_S, describe(s_Q + panel * B_R * PANEL + column),
                              describe(s_K + panel * B_C * PANEL + column), k > 0);
    }
    wgmma_commit();
}

// Starts O += P V, in steps of 16 keys. A row of V lies across k: B is MN-major.
__device__ __forceinline__ void multiply_pv(
    float (&r_O)[DIM_TILES][4], const unsigned (&r_P)[KEY_TILES / 2][4], const ELEMENT* s_V
) {
    #pragma unroll
    for (int k = 0; k < B_C / 16; k++) {
        const ELEMENT* s_step = s_V + 16 * k * PANEL;
        wgmma<ELEMENT, true>(r_O, r_P[k], describe(s_step, 1024, B_C * PANEL * 2), true);
    }
    wgmma_commit();
}

// Sets the scores that a row does not see to minus infinity: of keys from `end` on, and with
// CAUSAL those right of the diagonal. The warpgroup's row 0 meets it in column `diagonal`.
__device__ __forceinline__ void mask(float (&r_S)[KEY_TILES][4], int end, int diagonal) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int j = 0; j < KEY_TILES; j++) {
        #pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = threadIdx.x % 128 / 32 * 16 + 8 * (i / 2) + lane / 4;
            const int column = 8 * j + 2 * (lane % 4) + i % 2;
            if (column >= end || (CAUSAL && column > diagonal + row)) {
                r_S[j][i] = minus_infinity();
            }
        }
    }
}

// Turns scores into weights exp((S - maximum) / sqrt(d)), as powers of two: an fma and an ex2 each.
// Where a row takes a new maximum, what was added up so far shrinks by the power of old - new. A
// row is spread over four lanes: they agree on its maximum, each keeps a sum of its own weights.
__device__ __forceinline__ void update_softmax(
    float (&r_S)[KEY_TILES][4], float (&r_max)[2], float (&r_sum)[2], float (&r_factor)[2]
) {
    const float scale = 1.44269504f / sqrtf((float)HEAD_DIM);  // log2(e) / sqrt(d)
    #pragma unroll
    for (int h = 0; h < 2; h++) {  // row lane / 4 of the warp's 16, and the row 8 below
        float new_max = r_max[h];
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            new_max = fmaxf(new_max, fmaxf(r_S[j][2 * h], r_S[j][2 * h + 1]));
        }
        new_max = fmaxf(new_max, shuffle_xor(new_max, 2));
        new_max = fmaxf(new_max, shuffle_xor(new_max, 1));
        r_factor[h] = exp2f((r_max[h] - new_max) * scale);
        r_max[h] = new_max;
        r_sum[h] *= r_factor[h];
        const float shift = new_max * scale;
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            r_S[j][2 * h] = exp2f(r_S[j][2 * h] * scale - shift);
            r_S[j][2 * h + 1] = exp2f(r_S[j][2 * h + 1] * scale - shift);
            r_sum[h] += r_S[j][2 * h] + r_S[j][2 * h + 1];
        }
    }
}

__device__ __forceinline__ void rescale(float (&r_O)[DIM_TILES][4], const float (&r_factor)[2]) {
    #pragma unroll
    for (int i = 0; i < 4 * DIM_TILES; i++) {
        r_O[i / 4][i % 4] *= r_factor[i % 4 / 2];
    }
}

// Rounds weights to 16 bits and pairs them. A lane holds of D what it must pass of A.
__device__ __forceinline__ void round_weights(
    unsigned (&r_P)[KEY_TILES / 2][4], const float (&r_S)[KEY_TILES][4]
) {
    #pragma unroll
    for (int j = 0; j < KEY_TILES; j++) {
        r_P[j / 2][j % 2 * 2] = pack<ELEMENT>(r_S[j][0], r_S[j][1]);
        r_P[j / 2][j % 2 * 2 + 1] = pack<ELEMENT>(r_S[j][2], r_S[j][3]);
    }
}

// Writes the warp's 16 rows of O, divided by their sums, through its rows of the tile of Q: 4 bytes
// a lane go in, 16 come out, so that global memory gets whole rows. Rows from `rows` on stay out.
__device__ __forceinline__ void store_rows(
    ELEMENT* O, ELEMENT* s_O, const float (&r_O)[DIM_TILES][4], const float (&r_sum)[2],
    int rows, int row_stride
) {
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = r_sum[h];
        sum += shuffle_xor(sum, 2);
        sum += shuffle_xor(sum, 1);
        const float inverse = 1.0f / sum;
        const int row = warp_row + 8 * h + lane / 4;
        #pragma unroll
        for (int j = 0; j < DIM_TILES; j++) {
            *reinterpret_cast<unsigned*>(s_O + place<B_R>(row, j) + 2 * (lane % 4)) =
                pack<ELEMENT>(r_O[j][2 * h] * inverse, r_O[j][2 * h + 1] * inverse);
        }
    }
    __syncwarp();  // the warp's rows are whole before a lane reads what others wrote
    #pragma unroll 1
    for (int i = 0; i < 16; i += 4) {
        const int row = warp_row + i + lane / 8;
        #pragma unroll
        for (int c = 0; c < HEAD_DIM / 8; c += 8) {
            const int chunk = c + lane % 8;
            if (row < rows) {
                *reinterpret_cast<uint4*>(O + (long long)row * row_stride + 8 * chunk) =
                    *reinterpret_cast<const uint4*>(s_O + place<B_R>(row, chunk));
            }
        }
    }
}

// O = softmax(Q K^T / sqrt(d)) V: one block for B_R rows of one head.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) flash_attention(
    const ELEMENT* Q,  // [batch, heads, n, HEAD_DIM], or as the strides say
    const ELEMENT* K,
    const ELEMENT* V,
    ELEMENT* O,
    int n, long long batch_stride, long long head_stride, int row_stride
) {
    extern __shared__ __align__(1024) ELEMENT s_tiles[];
    ELEMENT* s_Q = s_tiles;                // [HEAD_DIM / 64, B_R, 64], in the end the tile of O
    ELEMENT* s_KV = s_Q + B_R * HEAD_DIM;  // [2, 2, HEAD_DIM / 64, B_C, 64]: K and V, twice
    const int warpgroup = warpgroup_index();
    const long long head = blockIdx.z * batch_stride + blockIdx.y * head_stride;
    // With CAUSAL the last rows see the most keys: their blocks start first.
    const int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * B_R;
    const int keys = CAUSAL ? min(n, first + B_R) : n;  // that some row of the block sees
    const long long block_rows = head + (long long)first * row_stride;
    // Of 16 x 8 elements of S or O a lane holds two in row lane / 4 and two in the row 8 below.
    float r_O[DIM_TILES][4] = {};
    float r_max[2] = {minus_infinity(), minus_infinity()};  // the largest score of a row so far
    float r_sum[2] = {};  // this lane's part of the sum of its weights so far

    copy_rows<B_R>(s_Q, Q + block_rows, n - first, row_stride);
    copy_tiles(s_KV, K + head, V + head, 0, n, row_stride);
    for (int key = 0; key < keys; key += B_C) {
        cp_async_wait<0>();
        fence_async();    // wgmma finds what this thread has copied
        __syncthreads();  // the tiles are whole before others read them; none reads those before
        if (key + B_C < keys) {
            copy_tiles(s_KV, K + head, V + head, key + B_C, n, row_stride);
        }
        const ELEMENT* s_K = s_KV + key / B_C % 2 * (2 * TILE);
        float r_S[KEY_TILES][4];
        wgmma_fence(r_S);
        multiply_qk(r_S, s_Q + warpgroup * 64 * PANEL, s_K);
        wgmma_wait<0>(r_S);

        const int diagonal = first + warpgroup * 64 - key;
        if (n - key < B_C || (CAUSAL && diagonal < B_C - 1)) {
            mask(r_S, n - key, diagonal);
        }
        float r_factor[2];
        unsigned r_P[KEY_TILES / 2][4];
        update_softmax(r_S, r_max, r_sum, r_factor);
        rescale(r_O, r_factor);
        round_weights(r_P, r_S);
        wgmma_fence(r_O, r_P);
        multiply_pv(r_O, r_P, s_K + TILE);
        wgmma_wait<0>(r_O);
    }
    __syncthreads();  // nobody still reads Q where others put O
    store_rows(O + block_rows, s_Q, r_O, r_sum, n - first, row_stride);
}
