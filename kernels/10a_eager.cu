// 09_flash_swizzled.cu with copies that are started early: V's before the scores are made, the next
// K's before their softmax. Each is on its way while the tensor cores or the other units work, and
// what a warp waits for is only what is left of it.
//
// Q, K, V and O hold 16-bit elements, HEAD_DIM of them in a row. The strides are the elements from
// one batch, head or row to the next, in all four alike: heads * n * d, n * d and d if their shape
// is (batch, heads, n, d); n * heads * d, d and heads * d if it is (batch, n, heads, d).
//
// Launch:
//   flash_attention  grid (ceil(n / B_R), heads, batch), block 32 * WARPS,
//                    dynamic shared memory (B_R + 2 * B_C) * HEAD_DIM * 2 bytes
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
#define B_R 64  // [16, 32, 64, 128] rows of Q that a block works on
#endif
#ifndef B_C
#define B_C 64  // [32, 64, 128] rows in a tile of K or V
#endif
#ifndef WARPS
#define WARPS 4  // [1, 2, 4, 8] warps in a block
#endif
#ifndef CAUSAL
#define CAUSAL 0  // [0, 1] whether a row sees only the keys up to its own
#endif

static_assert(HEAD_DIM == 64 || HEAD_DIM == 128, "HEAD_DIM must be 64 or 128.");
static_assert(B_R % (16 * WARPS) == 0, "B_R must be a multiple of 16 * WARPS.");
static_assert(B_C % (4 * WARPS) == 0, "B_C must be a multiple of 4 * WARPS.");
static_assert((B_R + 2 * B_C) * HEAD_DIM * 2 <= 227 * 1024, "The tiles exceed 227 KB.");

constexpr int WARP_ROWS = B_R / WARPS;     // rows of Q of one warp
constexpr int ROW_TILES = WARP_ROWS / 16;  // the same in tiles of 16, the rows that mma multiplies
constexpr int KEY_TILES = B_C / 8;         // 8 keys are the columns of S that mma makes
constexpr int CHUNKS = HEAD_DIM / 8;       // chunks of 8 elements, 16 bytes, in a row
// Blocks that a multiprocessor is to hold at least, which limits the registers of a thread.
constexpr int BLOCKS = B_R != 64 || WARPS != 4 ? 1 : HEAD_DIM == 64 ? 3 : 2;

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
    #pragma unroll
    for (int i = 0; i < ROWS; i += 4) {
        const int row = first + i + lane / 8;
        #pragma unroll
        for (int c = 0; c < CHUNKS; c += 8) {
            const int chunk = c + lane % 8;
            const ELEMENT* from = tile + (long long)row * row_stride + 8 * chunk;
            cp_async_16(s_tile + place(row, chunk), from, row < rows ? 16 : 0);
        }
    }
}

// S = Q K^T for the warp's rows and the tile's keys, in steps of 16 along d.
__device__ __forceinline__ void multiply_qk(
    float (&r_S)[ROW_TILES][KEY_TILES][4], const ELEMENT* s_Q, const ELEMENT* s_K, int warp_row
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < HEAD_DIM / 16; k++) {
        unsigned r_Q[ROW_TILES][4];
        #pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            const int row = warp_row + 16 * m + lane % 16;
            ldmatrix_x4(r_Q[m], s_Q + place(row, 2 * k + lane / 16));
        }
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j += 2) {
            // A row of K is a column of K^T, as mma wants B. Keys 8 j ... 8 j + 7 come in registers
            // 0 and 2, the next 8 keys in 1 and 3.
            unsigned r_K[4];
            ldmatrix_x4(r_K, s_K + place(8 * j + lane % 16, 2 * k + lane / 16));
            #pragma unroll
            for (int m = 0; m < ROW_TILES; m++) {
                mma_m16n8k16<ELEMENT>(r_S[m][j], r_Q[m], r_K[0], r_K[2]);
                mma_m16n8k16<ELEMENT>(r_S[m][j + 1], r_Q[m], r_K[1], r_K[3]);
            }
        }
    }
}

// Divides the scores by sqrt(d), and sets those that a row does not see to minus infinity: of keys
// from `keys` on, and with CAUSAL those right of the diagonal. Row 0 of the warp meets it in column
// `diagonal` of the tile.
__device__ __forceinline__ void scale_and_mask(
    float (&r_S)[ROW_TILES][KEY_TILES][4], int keys, int diagonal
) {
    const int lane = threadIdx.x % 32;
    const float scale = 1.0f / sqrtf((float)HEAD_DIM);
    #pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
        #pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                r_S[m][j][i] *= scale;
            }
        }
    }
    if (keys < B_C || (CAUSAL && diagonal < B_C - 1)) {
        #pragma unroll
        for (int m = 0; m < ROW_TILES; m++) {
            #pragma unroll
            for (int j = 0; j < KEY_TILES; j++) {
                #pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int row = 16 * m + 8 * (i / 2) + lane / 4;
                    const int column = 8 * j + 2 * (lane % 4) + i % 2;
                    if (column >= keys || (CAUSAL && column > diagonal + row)) {
                        r_S[m][j][i] = minus_infinity();
                    }
                }
            }
        }
    }
}

// Turns scores into weights exp(S - maximum). Where a row's maximum has grown, what was added up so
// far shrinks by exp(old - new). A row is spread over four lanes: they agree on its maximum, but
// each keeps a sum of its own weights.
__device__ __forceinline__ void update_softmax(
    float (&r_S)[ROW_TILES][KEY_TILES][4], float (&r_O)[ROW_TILES][CHUNKS][4],
    float (&r_max)[ROW_TILES][2], float (&r_sum)[ROW_TILES][2]
) {
    #pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
        #pragma unroll
        for (int h = 0; h < 2; h++) {  // row lane / 4 of the tile, and the row 8 below
            float new_max = r_max[m][h];
            #pragma unroll
            for (int j = 0; j < KEY_TILES; j++) {
                new_max = fmaxf(new_max, fmaxf(r_S[m][j][2 * h], r_S[m][j][2 * h + 1]));
            }
            new_max = fmaxf(new_max, shuffle_xor(new_max, 2));
            new_max = fmaxf(new_max, shuffle_xor(new_max, 1));

            const float correction = __expf(r_max[m][h] - new_max);
            r_max[m][h] = new_max;
            r_sum[m][h] *= correction;
            #pragma unroll
            for (int j = 0; j < CHUNKS; j++) {
                r_O[m][j][2 * h] *= correction;
                r_O[m][j][2 * h + 1] *= correction;
            }
            #pragma unroll
            for (int j = 0; j < KEY_TILES; j++) {
                r_S[m][j][2 * h] = __expf(r_S[m][j][2 * h] - new_max);
                r_S[m][j][2 * h + 1] = __expf(r_S[m][j][2 * h + 1] - new_max);
                r_sum[m][h] += r_S[m][j][2 * h] + r_S[m][j][2 * h + 1];
            }
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
            ldmatrix_x4_trans(r_V, s_V + place(8 * k + lane % 16, j + lane / 16));
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
    #pragma unroll
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
    extern __shared__ __align__(16) ELEMENT s_tiles[];
    ELEMENT* s_Q = s_tiles;               // [B_R, HEAD_DIM], in the end the tile of O
    ELEMENT* s_K = s_Q + B_R * HEAD_DIM;  // [B_C, HEAD_DIM]
    ELEMENT* s_V = s_K + B_C * HEAD_DIM;  // [B_C, HEAD_DIM]
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
    #pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
        r_max[m][0] = r_max[m][1] = minus_infinity();
    }

    copy_rows<WARP_ROWS>(s_Q, Q + block_rows, warp * WARP_ROWS, n - first, row_stride);
    copy_rows<B_C / WARPS>(s_K, K + head, warp * (B_C / WARPS), n, row_stride);
    cp_async_commit();
    for (int key = 0; key < keys; key += B_C) {
        const long long tile = head + (long long)key * row_stride;
        cp_async_wait<0>();
        __syncthreads();  // K is whole before others read it, and no warp still reads the old V
        copy_rows<B_C / WARPS>(s_V, V + tile, warp * (B_C / WARPS), n - key, row_stride);
        cp_async_commit();

        float r_S[ROW_TILES][KEY_TILES][4] = {};
        multiply_qk(r_S, s_Q, s_K, warp * WARP_ROWS);

        cp_async_wait<0>();
        __syncthreads();  // V is whole before others read it, and no warp still reads this K
        if (key + B_C < keys) {
            const long long next = tile + (long long)B_C * row_stride;
            const int left = n - key - B_C;
            copy_rows<B_C / WARPS>(s_K, K + next, warp * (B_C / WARPS), left, row_stride);
            cp_async_commit();
        }
        scale_and_mask(r_S, n - key, first + warp * WARP_ROWS - key);
        update_softmax(r_S, r_O, r_max, r_sum);
        multiply_pv(r_O, r_S, s_V);
    }
    store_rows(O + block_rows, s_Q, r_O, r_sum, warp * WARP_ROWS, n - first, row_stride);
}
