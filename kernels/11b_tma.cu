// 11a_wgmma.cu with tiles that the tensor memory accelerator (TMA) copies and swizzles: one thread
// starts a copy, and an mbarrier tells all of them when its bytes are there.
//
// Q, K, V and O hold 16-bit elements, HEAD_DIM of them in a row. Tensor maps say where they lie,
// whatever the order of batch, heads and n in memory.
//
// Launch:
//   flash_attention  grid (ceil(n / B_R), heads, batch), block 2 * B_R,
//                    dynamic shared memory (B_R + 4 * B_C) * HEAD_DIM * 2 + 128 bytes
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

static_assert((B_R + 4 * B_C) * HEAD_DIM * 2 <= 227 * 1024, "The tiles exceed 227 KB.");

constexpr int THREADS = 2 * B_R;         // a warpgroup, 128 threads, for 64 rows of Q
constexpr int KEY_TILES = B_C / 8;       // parts of S with 8 keys each
constexpr int DIM_TILES = HEAD_DIM / 8;  // parts of O with 8 columns each
constexpr int TILE = B_C * HEAD_DIM;     // elements of a tile of K or V
constexpr int PANEL = 64;                // elements in a row of a panel, 128 bytes
// Blocks that a multiprocessor is to hold at least, which limits the registers of a thread.
constexpr int BLOCKS = B_R > 128 || B_C > 64 ? 1 : 2;

// Where in the tile of Q or O chunk `chunk` of row `row` begins, in elements. A tile is panels of
// 64 columns, one behind the other, and each panel's rows are swizzled, as TMA does it.
__device__ __forceinline__ int place(int row, int chunk) {
    return (chunk / 8 * B_R + row) * PANEL + 8 * swizzle(row, chunk % 8);
}

// Starts copying ROWS rows of the block's head, from row `row` on, to a tile: a box a panel.
template <int ROWS>
__device__ __forceinline__ void load_tile(
    ELEMENT* s_tile, const TensorMap& map, Mbarrier* s_full, int row
) {
    for (int x = 0; x < HEAD_DIM; x += PANEL) {
        tma_load(s_tile + x * ROWS, map, s_full, x, row, blockIdx.y, blockIdx.z);
    }
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

// Writes the warp's 16 rows of O, divided by their sums, to its rows of the tile of Q, 4 bytes a
// lane. From there TMA stores them, the rows before n.
__device__ __forceinline__ void store_rows(
    const TensorMap& O, ELEMENT* s_O, const float (&r_O)[DIM_TILES][4], const float (&r_sum)[2],
    int first
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
            *reinterpret_cast<unsigned*>(s_O + place(row, j) + 2 * (lane % 4)) =
                pack<ELEMENT>(r_O[j][2 * h] * inverse, r_O[j][2 * h + 1] * inverse);
        }
    }
    fence_async();  // TMA finds what this lane has written
    __syncwarp();   // and what the others have
    if (lane == 0) {
        for (int x = 0; x < HEAD_DIM; x += PANEL) {
            const ELEMENT* s_box = s_O + x * B_R + warp_row * PANEL;
            tma_store(O, s_box, x, first + warp_row, blockIdx.y, blockIdx.z);
        }
        tma_store_commit();
        tma_store_wait();
    }
}

// O = softmax(Q K^T / sqrt(d)) V: one block for B_R rows of one head.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) flash_attention(
    const __grid_constant__ TensorMap Q,  // [batch, heads, n, HEAD_DIM] in boxes [1, 1, B_R, 64]
    const __grid_constant__ TensorMap K,  // and of K and V in boxes [1, 1, B_C, 64]
    const __grid_constant__ TensorMap V,
    const __grid_constant__ TensorMap O,  // and of O in boxes [1, 1, 16, 64]
    int n
) {
    extern __shared__ __align__(1024) ELEMENT s_tiles[];
    ELEMENT* s_Q = s_tiles;                // [HEAD_DIM / 64, B_R, 64], in the end the tile of O
    ELEMENT* s_KV = s_Q + B_R * HEAD_DIM;  // [2, 2, HEAD_DIM / 64, B_C, 64]: K and V, twice
    Mbarrier* s_full = reinterpret_cast<Mbarrier*>(s_KV + 4 * TILE);  // [2]: whole tiles
    const int warpgroup = warpgroup_index();
    // With CAUSAL the last rows see the most keys: their blocks start first.
    const int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * B_R;
    const int keys = CAUSAL ? min(n, first + B_R) : n;  // that some row of the block sees
    // Of 16 x 8 elements of S or O a lane holds two in row lane / 4 and two in the row 8 below.
    float r_O[DIM_TILES][4] = {};
    float r_max[2] = {minus_infinity(), minus_infinity()};  // the largest score of a row so far
    float r_sum[2] = {};  // this lane's part of the sum of its weights so far

    if (threadIdx.x == 0) {
        mbarrier_init(&s_full[0], 1);
        mbarrier_init(&s_full[1], 1);
        fence_async();  // TMA finds the mbarriers
    }
    __syncthreads();  // nobody uses an mbarrier before it is made
    if (threadIdx.x == 0) {
        mbarrier_expect(&s_full[0], (B_R + 2 * B_C) * HEAD_DIM * 2);
        load_tile<B_R>(s_Q, Q, &s_full[0], first);
        load_tile<B_C>(s_KV, K, &s_full[0], 0);
        load_tile<B_C>(s_KV + TILE, V, &s_full[0], 0);
    }
    for (int key = 0; key < keys; key += B_C) {
        const int stage = key / B_C % 2, parity = key / B_C / 2 % 2;
        if (threadIdx.x == 0 && key + B_C < keys) {
            ELEMENT* s_next = s_KV + (1 - stage) * (2 * TILE);
            mbarrier_expect(&s_full[1 - stage], 2 * B_C * HEAD_DIM * 2);
            load_tile<B_C>(s_next, K, &s_full[1 - stage], key + B_C);
            load_tile<B_C>(s_next + TILE, V, &s_full[1 - stage], key + B_C);
        }
        const ELEMENT* s_K = s_KV + stage * (2 * TILE);
        float r_S[KEY_TILES][4];
        mbarrier_wait(&s_full[stage], parity);
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
        __syncthreads();  // nobody reads this stage any longer: the next copy may write it
    }
    store_rows(O, s_Q, r_O, r_sum, first);
}
