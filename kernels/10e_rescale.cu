// 10d_wide_warps.cu with O rescaled only where the maximum of one of eight rows has grown by more
// than SLACK powers of two. Else rows keep their old maximum, and weights are 2^SLACK at most.
//
// Q, K, V and O hold 16-bit elements, HEAD_DIM of them in a row. The strides are the elements from
// one batch, head or row to the next, in all four alike: heads * n * d, n * d and d if their shape
// is (batch, heads, n, d); n * heads * d, d and heads * d if it is (batch, n, heads, d).
//
// Launch:
//   flash_attention  grid (ceil(n / B_R), heads, batch), block 32 * WARPS,
//                    dynamic shared memory (B_R + 4 * B_C) * HEAD_DIM * 2 bytes
// A warp owns B_R / WARPS rows of Q and of O, and every key.

#include "ptx.cuh"
#include "swizzle.cuh"

#ifndef ELEMENT
#define ELEMENT half  // [half, nv_bfloat16] type of an element
#endif
#ifndef HEAD_DIM
#define HEAD_DIM 128  // [64, 128] d, the elements in a row
#endif
#ifndef B_R
#define B_R 128  // [32, 64, 128] rows of Q that a block works on
#endif
#ifndef B_C
#define B_C 64  // [32, 64, 128] rows in a tile of K or V
#endif
#ifndef WARPS
#define WARPS 4  // [2, 4, 8] warps in a block
#endif
#ifndef SLACK
#define SLACK 0  // [-1, 0, 8] how far a maximum may grow without a rescale; -1: always rescale
#endif
#ifndef CAUSAL
#define CAUSAL 0  // [0, 1] whether a row sees only the keys up to its own
#endif

static_assert(B_R % (16 * WARPS) == 0, "B_R must be a multiple of 16 * WARPS.");
static_assert(B_C % (4 * WARPS) == 0, "B_C must be a multiple of 4 * WARPS.");
static_assert((B_R + 4 * B_C) * HEAD_DIM * 2 <= 227 * 1024, "The tiles exceed 227 KB.");

constexpr int WARP_ROWS = B_R / WARPS;     // rows of Q of one warp
constexpr int ROW_TILES = WARP_ROWS / 16;  // the same in tiles of 16, the rows that mma multiplies
constexpr int KEY_TILES = B_C / 8;         // 8 keys are the columns of S that mma makes
constexpr int TILE = B_C * HEAD_DIM;        // elements of a tile of K or V
constexpr int CHUNKS = HEAD_DIM / 8;       // chunks of 8 elements, 16 bytes, in a row
// Blocks that a multiprocessor is to hold at least, which limits the registers of a thread.
constexpr int BLOCKS = B_R > 128 || WARPS > 4 ? 1 : 2;

// Where in a tile chunk `chunk` of row `row` begins, in elements. Every path into shared memory and
// out of it asks here.
__device__ __forceinline__ int place(int row, int chunk) {
    return row * HEAD_DIM + 8 * swizzle(row, chunk);
}

// Starts copying rows first ... first + ROWS - 1 of a tile to shared memory. A warp takes 4 rows x
// 8 chunks at a time: 8 lanes read 128 bytes in a row. Rows from `rows` on become zeros.
template <int ROWS>
__device__ __forceinline__ void copy_rows(
    ELEMENT* s_tile, const ELEMENT* tile, int first, int rows, int row_stride
) {
    const int lane = threadIdx.x % 32;
    const ELEMENT* from = tile + (long long)(first + lane / 8) * row_stride + 8 * (lane % 8);
    #pragma unroll 2  // unrolled whole, it keeps more places than there are registers
    for (int i = 0; i < ROWS; i += 4) {
        const int row = first + i + lane / 8;
        #pragma unroll
        for (int c = 0; c < CHUNKS; c += 8) {
            cp_async_16(s_tile + place(row, c + lane % 8), from + 8 * c, row < rows ? 16 : 0);
        }
        from += 4 * row_stride;
    }
}

// Starts copying the warp's part of the tiles of K and V that begin with key `key`.
__device__ __forceinline__ void copy_tiles(
    ELEMENT* s_KV, const ELEMENT* K, const ELEMENT* V, int key, int n, int row_stride
) {
    ELEMENT* s_K = s_KV + key / B_C % 2 * (2 * TILE);
    const int first = threadIdx.x / 32 * (B_C / WARPS);
    const long long tile = (long long)key * row_stride;
    copy_rows<B_C / WARPS>(s_K, K + tile, first, n - key, row_stride);
    copy_rows<B_C / WARPS>(s_K + TILE, V + tile, first, n - key, row_stride);
    cp_async_commit();
}

// S = Q K^T for the warp's rows and the tile's keys, in steps of 16 along d.
__device__ __forceinline__ void multiply_qk(
    float (&r_S)[ROW_TILES][KEY_TILES][4], const ELEMENT* s_Q, const ELEMENT* s_K, int warp_row
) {
    const int lane = threadIdx.x % 32;
    const int own_Q = place(warp_row + lane % 16, lane / 16);
    const int own = place(lane % 8 + 8 * (lane / 16), lane / 8 % 2);
    #pragma unroll
    for (int k = 0; k < HEAD_DIM / 16; k++) {
        unsigned r_Q[ROW_TILES][4];
        #pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            ldmatrix_x4(r_Q[m], s_Q + (own_Q ^ 16 * k) + 16 * m * HEAD_DIM);
        }
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j += 2) {
            // A row of K is a column of K^T, as mma wants B. Keys 8 j ... 8 j + 7 come in registers
            // 0 and 1, the next 8 keys in 2 and 3.
            unsigned r_K[4];
            ldmatrix_x4(r_K, s_K + (own ^ 16 * k) + 8 * j * HEAD_DIM);
            #pragma unroll
            for (int m = 0; m < ROW_TILES; m++) {
                mma_m16n8k16<ELEMENT>(r_S[m][j], r_Q[m], r_K[0], r_K[1]);
                mma_m16n8k16<ELEMENT>(r_S[m][j + 1], r_Q[m], r_K[2], r_K[3]);
            }
        }
    }
}

// Sets the scores that a row does not see to minus infinity: of keys from `end` on, and with
// CAUSAL those right of the diagonal. The warp's row 0 meets it in column `diagonal` of the tile.
__device__ __forceinline__ void mask(float (&r_S)[ROW_TILES][KEY_TILES][4], int end, int diagonal) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = 16 * m + 8 * (i / 2) + lane / 4;
                const int column = 8 * j + 2 * (lane % 4) + i % 2;
                if (column >= end || (CAUSAL && column > diagonal + row)) {
                    r_S[m][j][i] = minus_infinity();
                }
            }
        }
    }
}

// Turns scores into weights exp((S - maximum) / sqrt(d)), as powers of two: an fma and an ex2 each.
// Where a row takes a new maximum, what was added up so far shrinks by the power of old - new. A
// row is spread over four lanes: they agree on its maximum, each keeps a sum of its own weights.
__device__ __forceinline__ void update_softmax(
    float (&r_S)[ROW_TILES][KEY_TILES][4], float (&r_O)[ROW_TILES][CHUNKS][4],
    float (&r_max)[ROW_TILES][2], float (&r_sum)[ROW_TILES][2]
) {
    const float scale = 1.44269504f / sqrtf((float)HEAD_DIM);  // log2(e) / sqrt(d)
    float r_new[ROW_TILES][2];
    #pragma unroll
    for (int i = 0; i < 2 * ROW_TILES; i++) {
        const int m = i / 2, h = i % 2;  // row lane / 4 of a tile, and the row 8 below
        float new_max = r_max[m][h];
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            new_max = fmaxf(new_max, fmaxf(r_S[m][j][2 * h], r_S[m][j][2 * h + 1]));
        }
        new_max = fmaxf(new_max, shuffle_xor(new_max, 2));
        new_max = fmaxf(new_max, shuffle_xor(new_max, 1));
        r_new[m][h] = new_max;
    }
    #pragma unroll
    for (int i = 0; i < 2 * ROW_TILES; i++) {
        const int m = i / 2, h = i % 2;
        const float growth = (r_new[m][h] - r_max[m][h]) * scale;  // as a power of two
        if (SLACK < 0 || any_lane(growth > SLACK)) {
            const float correction = exp2f(-growth);
            r_max[m][h] = r_new[m][h];
            r_sum[m][h] *= correction;
            #pragma unroll
            for (int j = 0; j < CHUNKS; j++) {
                r_O[m][j][2 * h] *= correction;
                r_O[m][j][2 * h + 1] *= correction;
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < 2 * ROW_TILES; i++) {  // with no branch among them and the products
        const int m = i / 2, h = i % 2;
        const float shift = r_max[m][h] * scale;
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            r_S[m][j][2 * h] = exp2f(r_S[m][j][2 * h] * scale - shift);
            r_S[m][j][2 * h + 1] = exp2f(r_S[m][j][2 * h + 1] * scale - shift);
            r_sum[m][h] += r_S[m][j][2 * h] + r_S[m][j][2 * h + 1];
        }
    }
}

// O += P V, in steps of 16 keys. A lane holds of C what it must pass of A, so P needs no exchange
// between lanes: its elements are rounded to 16 bits and paired.
__device__ __forceinline__ void multiply_pv(
    float (&r_O)[ROW_TILES][CHUNKS][4], const float (&r_P)[ROW_TILES][KEY_TILES][4],
    const ELEMENT* s_V
) {
    const int lane = threadIdx.x % 32;
    const int own = place(lane % 16, lane / 16);
    #pragma unroll
    for (int k = 0; k < KEY_TILES; k += 2) {
        unsigned r_A[ROW_TILES][4];
        #pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            r_A[m][0] = pack<ELEMENT>(r_P[m][k][0], r_P[m][k][1]);
            r_A[m][1] = pack<ELEMENT>(r_P[m][k][2], r_P[m][k][3]);
            r_A[m][2] = pack<ELEMENT>(r_P[m][k + 1][0], r_P[m][k + 1][1]);
            r_A[m][3] = pack<ELEMENT>(r_P[m][k + 1][2], r_P[m][k + 1][3]);
        }
        #pragma unroll
        for (int j = 0; j < CHUNKS; j += 2) {
            unsigned r_V[4];  // chunk j in registers 0 and 1, the next in 2 and 3
            ldmatrix_x4_trans(r_V, s_V + (own ^ 8 * j) + 8 * k * HEAD_DIM);
            #pragma unroll
            for (int m = 0; m < ROW_TILES; m++) {
                mma_m16n8k16<ELEMENT>(r_O[m][j], r_A[m], r_V[0], r_V[1]);
                mma_m16n8k16<ELEMENT>(r_O[m][j + 1], r_A[m], r_V[2], r_V[3]);
            }
        }
    }
}

// Writes the warp's rows of O, divided by their sums, through its rows of the tile of Q: 4 bytes a
// lane go in, 16 come out, so that global memory gets whole rows. Rows from `rows` on are left out.
__device__ __forceinline__ void store_rows(
    ELEMENT* O, ELEMENT* s_O, const float (&r_O)[ROW_TILES][CHUNKS][4],
    const float (&r_sum)[ROW_TILES][2], int warp_row, int rows, int row_stride
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = r_sum[m][h];
            sum += shuffle_xor(sum, 2);
            sum += shuffle_xor(sum, 1);
            const float inverse = 1.0f / sum;
            const int row = warp_row + 16 * m + 8 * h + lane / 4;
            #pragma unroll
            for (int j = 0; j < CHUNKS; j++) {
                *reinterpret_cast<unsigned*>(s_O + place(row, j) + 2 * (lane % 4)) =
                    pack<ELEMENT>(r_O[m][j][2 * h] * inverse, r_O[m][j][2 * h + 1] * inverse);
            }
        }
    }
    __syncwarp();  // the warp's rows are whole before a lane reads what others wrote
    #pragma unroll 1  // else its places are kept in registers from the copy of Q on
    for (int i = 0; i < WARP_ROWS; i += 4) {
        const int row = warp_row + i + lane / 8;
        #pragma unroll
        for (int c = 0; c < CHUNKS; c += 8) {
            const int chunk = c + lane % 8;
            if (row < rows) {
                *reinterpret_cast<uint4*>(O + (long long)row * row_stride + 8 * chunk) =
                    *reinterpret_cast<const uint4*>(s_O + place(row, chunk));
            }
        }
    }
}

// O = softmax(Q K^T / sqrt(d)) V: one block for B_R rows of one head.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) flash_attention(
    const ELEMENT* Q,  // [batch, heads, n, HEAD_DIM], or as the strides say
    const ELEMENT* K,
    const ELEMENT* V,
    ELEMENT* O,
    int n, long long batch_stride, long long head_stride, int row_stride
) {
    extern __shared__ __align__(256) ELEMENT s_tiles[];
    ELEMENT* s_Q = s_tiles;                // [B_R, HEAD_DIM], in the end the tile of O
    ELEMENT* s_KV = s_Q + B_R * HEAD_DIM;  // [2, 2, B_C, HEAD_DIM]: K and V, twice
    const int warp = threadIdx.x / 32;
    const long long head = blockIdx.z * batch_stride + blockIdx.y * head_stride;
    // With CAUSAL the last rows see the most keys: their blocks start first.
    const int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * B_R;
    const int keys = CAUSAL ? min(n, first + B_R) : n;  // that some row of the block sees
    const long long block_rows = head + (long long)first * row_stride;
    // Of 16 x 8 elements of S or O a lane holds two in row lane / 4 and two in the row 8 below.
    float r_O[ROW_TILES][CHUNKS][4] = {};
    float r_max[ROW_TILES][2];       // the largest score of a row so far
    float r_sum[ROW_TILES][2] = {};  // this lane's part of the sum of its weights so far
    for (int m = 0; m < ROW_TILES; m++) {
        r_max[m][0] = r_max[m][1] = minus_infinity();
    }

    copy_rows<WARP_ROWS>(s_Q, Q + block_rows, warp * WARP_ROWS, n - first, row_stride);
    copy_tiles(s_KV, K + head, V + head, 0, n, row_stride);
    for (int key = 0; key < keys; key += B_C) {
        cp_async_wait<0>();
        __syncthreads();  // the tiles are whole before others read them; none reads those before
        if (key + B_C < keys) {
            copy_tiles(s_KV, K + head, V + head, key + B_C, n, row_stride);
        }
        const ELEMENT* s_K = s_KV + key / B_C % 2 * (2 * TILE);
        float r_S[ROW_TILES][KEY_TILES][4] = {};
        multiply_qk(r_S, s_Q, s_K, warp * WARP_ROWS);
        const int diagonal = first + warp * WARP_ROWS - key;
        if (n - key < B_C || (CAUSAL && diagonal < B_C - 1)) {
            mask(r_S, n - key, diagonal);
        }
        update_softmax(r_S, r_O, r_max, r_sum);
        multiply_pv(r_O, r_S, s_K + TILE);
    }
    __syncwarp();  // no lane still reads Q where others put O
    store_rows(O + block_rows, s_Q, r_O, r_sum, warp * WARP_ROWS, n - first, row_stride);
}
