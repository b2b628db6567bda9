// 11e_ping_pong.cu with blocks that stay (persistent): each takes one piece of work after another,
// and the producer fetches for the next while the consumers finish and store the last.
//
// Q, K, V and O hold 16-bit elements, HEAD_DIM of them in a row. Tensor maps say where they lie,
// whatever the order of batch, heads and n in memory.
//
// Launch:
//   flash_attention  grid: any number of blocks, block 2 * B_R + 128,
//                    dynamic shared memory sizeof(Shared)
// A consumer owns 64 rows of Q and of O, and every key.

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
#define B_C 128  // [64, 128] rows in a tile of K or V
#endif
#ifndef CAUSAL
#define CAUSAL 0  // [0, 1] whether a row sees only the keys up to its own
#endif

constexpr int CONSUMERS = B_R / 64;             // warpgroups that multiply
constexpr int THREADS = 128 * (CONSUMERS + 1);  // with the producer, which is the last
// Registers of a thread: 168 (128) at the start of a block with two (three) consumers.
constexpr int CONSUMER_REGISTERS = CONSUMERS == 2 ? 240 : 160;
constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? 24 : 32;
constexpr int KEY_TILES = B_C / 8, DIM_TILES = HEAD_DIM / 8;  // parts of S and O, 8 columns each
constexpr int TILE = B_C * HEAD_DIM;  // elements of a tile of K or V
constexpr int PANEL = 64;             // elements in a row of a panel, 128 bytes
constexpr int TURN = 8;               // named barrier of warpgroup 0's turn; the others' follow

// Shared memory of a block: two tiles of K and of V, and mbarriers that tell who may go on.
struct Shared {
    ELEMENT Q[B_R * HEAD_DIM], O[B_R * HEAD_DIM];  // [HEAD_DIM / 64, B_R, 64] each
    ELEMENT K[2][TILE], V[2][TILE];  // [HEAD_DIM / 64, B_C, 64] each
    Mbarrier full_Q, empty_Q, full_K[2], full_V[2], empty_K[2], empty_V[2];
};
static_assert(sizeof(Shared) <= 227 * 1024, "The tiles exceed 227 KB.");

// A piece of work: B_R rows of a head, from row `first` on, and the tiles of keys that they see.
struct Work { int first, head, batch, tiles; };

// The pieces of a head follow each other. With CAUSAL those that see the most keys come first.
__device__ __forceinline__ Work work_of(int item, int n, int heads) {
    const int pieces = (n + B_R - 1) / B_R;
    const int first = (CAUSAL ? pieces - 1 - item % pieces : item % pieces) * B_R;
    const int keys = CAUSAL ? min(n, first + B_R) : n;  // that some row sees
    return {first, item / pieces % heads, item / pieces / heads, (keys + B_C - 1) / B_C};
}

// Where in the tile of Q or O chunk `chunk` of row `row` begins, in elements. A tile is panels of
// 64 columns, one behind the other, and each panel's rows are swizzled, as TMA does it.
__device__ __forceinline__ int place(int row, int chunk) {
    return (chunk / 8 * B_R + row) * PANEL + 8 * swizzle(row, chunk % 8);
}

// Starts copying ROWS rows of a head, from row `row` on, to a tile: a box for each panel.
template <int ROWS>
__device__ __forceinline__ void load_tile(
    ELEMENT* s_tile, const TensorMap& map, Mbarrier* s_full, int row, const Work& work
) {
    mbarrier_expect(s_full, ROWS * HEAD_DIM * 2);
    for (int x = 0; x < HEAD_DIM; x += PANEL) {
        tma_load(s_tile + x * ROWS, map, s_full, x, row, work.head, work.batch);
    }
}

// What the producer's one thread does: fills both stages, and each again when it is empty. The
// phase before an mbarrier's first counts as complete: the first tiles wait for nobody.
__device__ __forceinline__ void produce(
    Shared& s, const TensorMap& Q, const TensorMap& K, const TensorMap& V, int n, int heads, int end
) {
    int count = 0, round = 0;  // tiles and pieces of work so far
    for (int item = blockIdx.x; item < end; item += gridDim.x, round++) {
        const Work work = work_of(item, n, heads);
        mbarrier_wait(&s.empty_Q, 1 - round % 2);
        load_tile<B_R>(s.Q, Q, &s.full_Q, work.first, work);
        for (int t = 0; t < work.tiles; t++, count++) {
            const int stage = count % 2, parity = count / 2 % 2;
            mbarrier_wait(&s.empty_K[stage], 1 - parity);
            load_tile<B_C>(s.K[stage], K, &s.full_K[stage], t * B_C, work);
            mbarrier_wait(&s.empty_V[stage], 1 - parity);
            load_tile<B_C>(s.V[stage], V, &s.full_V[stage], t * B_C, work);
        }
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
    if (end >= B_C && (!CAUSAL || diagonal >= B_C - 1)) {
        return;  // all of them are seen
    }
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int j = 0; j < KEY_TILES; j++) {
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

// Writes the warp's 16 rows of O, divided by their sums, to its rows of the tile of O, 4 bytes a
// lane. From there TMA stores them, the rows before n, while the warp goes on.
__device__ __forceinline__ void store_rows(
    const TensorMap& O, ELEMENT* s_O, const float (&r_O)[DIM_TILES][4], const float (&r_sum)[2],
    const Work& work
) {
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;
    tma_store_wait();  // the rows before have left the tile
    __syncwarp();      // no lane writes before lane 0 knows that
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
            tma_store(O, s_box, x, work.first + warp_row, work.head, work.batch);
        }
        tma_store_commit();
    }
}

// O = softmax(Q K^T / sqrt(d)) V of all heads.
extern "C" __global__ void __launch_bounds__(THREADS, 1) flash_attention(
    const __grid_constant__ TensorMap Q,  // [batch, heads, n, HEAD_DIM] in boxes [1, 1, B_R, 64]
    const __grid_constant__ TensorMap K,  // and of K and V in boxes [1, 1, B_C, 64]
    const __grid_constant__ TensorMap V,
    const __grid_constant__ TensorMap O,  // and of O in boxes [1, 1, 16, 64]
    int n, int heads, int end         // pieces of work in all
) {
    extern __shared__ __align__(1024) char s_bytes[];
    Shared& s = *reinterpret_cast<Shared*>(s_bytes);
    const int warpgroup = warpgroup_index();
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full_Q, 1);
        mbarrier_init(&s.empty_Q, 4 * CONSUMERS);  // warps
        for (int stage = 0; stage < 2; stage++) {
            mbarrier_init(&s.full_K[stage], 1);
            mbarrier_init(&s.full_V[stage], 1);
            mbarrier_init(&s.empty_K[stage], 4 * CONSUMERS);
            mbarrier_init(&s.empty_V[stage], 4 * CONSUMERS);
        }
        fence_async();  // TMA finds the mbarriers
    }
    __syncthreads();  // nobody uses an mbarrier before it is made
    if (warpgroup == CONSUMERS) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x % 128 == 0) {
            produce(s, Q, K, V, n, heads, end);
        }
        return;
    }
    take_registers<CONSUMER_REGISTERS>();
    if (warpgroup == CONSUMERS - 1) {
        barrier_arrive(TURN, 256);  // the first turn is that of warpgroup 0
    }
    int count = 0, round = 0;  // tiles and pieces of work so far
    for (int item = blockIdx.x; item < end; item += gridDim.x, round++) {
        const Work work = work_of(item, n, heads);
        // Of 16 x 8 elements of S or O a lane holds two in row lane / 4 and two in the row 8 below.
        float r_O[DIM_TILES][4] = {};
        float r_max[2] = {minus_infinity(), minus_infinity()};  // the largest score of a row so far
        float r_sum[2] = {};  // this lane's part of the sum of its weights so far
        float r_S[KEY_TILES][4], r_factor[2];
        unsigned r_P[KEY_TILES / 2][4];
        mbarrier_wait(&s.full_Q, round % 2);
        for (int t = 0; t < work.tiles; t++, count++) {
            const int stage = count % 2, parity = count / 2 % 2;
            mbarrier_wait(&s.full_K[stage], parity);
            barrier_sync(TURN + warpgroup, 256);  // until the consumer before has started its own
            wgmma_fence(r_S, r_O, r_P);
            multiply_qk(r_S, s.Q + warpgroup * 64 * PANEL, s.K[stage]);
            if (t > 0) {
                multiply_pv(r_O, r_P, s.V[1 - stage]);
            } else {
                wgmma_commit();  // a group of nothing, for the wait below
            }
            if (warpgroup < CONSUMERS - 1 || item + gridDim.x < end || t < work.tiles - 1) {
                barrier_arrive(TURN + (warpgroup + 1) % CONSUMERS, 256);  // the next may start
            }
            wgmma_wait<1>(r_S);  // S is there, P V goes on
            mbarrier_arrive_warp(&s.empty_K[stage]);
            mask(r_S, n - t * B_C, work.first + warpgroup * 64 - t * B_C);
            update_softmax(r_S, r_max, r_sum, r_factor);
            settle(r_S);  // this and the loop in the next line hold the wait for P V back
            mbarrier_wait(&s.full_V[stage], parity);  // for the next turn of the loop
            wgmma_wait<0>(r_O);
            if (t > 0) {
                mbarrier_arrive_warp(&s.empty_V[1 - stage]);
            }
            rescale(r_O, r_factor);
            round_weights(r_P, r_S);
        }
        mbarrier_arrive_warp(&s.empty_Q);
        wgmma_fence(r_O, r_P);
        multiply_pv(r_O, r_P, s.V[(count - 1) % 2]);
        wgmma_wait<0>(r_O);
        mbarrier_arrive_warp(&s.empty_V[(count - 1) % 2]);
        store_rows(O, s.O, r_O, r_sum, work);
    }
    tma_store_wait();
}
