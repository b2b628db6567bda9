// Y[b, c] = sum of X[b, 0..n-1, c]: a producer's one thread copies tiles of rows to shared memory,
// two warps of consumers add them up. STAGES tiles have room; mbarriers tell who may go on.
//
// Launch:
//   column_sums  grid batches, block COLUMNS + 32

#include "hopper.cuh"

#ifndef STAGES
#define STAGES 2  // [2, 3] tiles that there is room for
#endif

constexpr int COLUMNS = 64;  // a thread of the consumers each
constexpr int TILE = 8;      // rows

// Starts copying `bytes` bytes, which arrive at `barrier`.
__device__ void bulk_load(void* shared, const void* global, int bytes, Mbarrier* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :
                 : "r"(shared_address(shared)), "l"(global), "r"(bytes),
                   "r"(shared_address(barrier))
                 : "memory");
}

extern "C" __global__ void column_sums(
    const float* X,  // [batches, n, COLUMNS]
    float* Y,        // [batches, COLUMNS]
    int n
) {
    __shared__ __align__(128) float s_X[STAGES][TILE][COLUMNS];
    __shared__ Mbarrier full[STAGES], empty[STAGES];
    const int tiles = (n + TILE - 1) / TILE;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            mbarrier_init(&full[stage], 1);               // the producer's thread, and bytes
            mbarrier_init(&empty[stage], COLUMNS / 32);  // warps of consumers
        }
        fence_async();  // the copies find the mbarriers
    }
    __syncthreads();
    if (threadIdx.x > COLUMNS) return;
    if (threadIdx.x == COLUMNS) {  // the producer
        const float* x = X + (long long)blockIdx.x * n * COLUMNS;
        for (int t = 0; t < tiles; t++) {
            const int stage = t % STAGES;
            const int rows = min(TILE, n - t * TILE);
            // Gap 1: wait until the consumers are done with the tile that this stage held before.
            // The first tiles wait for nobody: the phase before the first counts as complete.
            mbarrier_wait(&empty[stage], 1 - t / STAGES % 2);  //!
            mbarrier_expect(&full[stage], rows * COLUMNS * 4);
            bulk_load(s_X[stage], x + t * TILE * COLUMNS, rows * COLUMNS * 4, &full[stage]);
        }
        return;
    }
    float sum = 0.0f;
    for (int t = 0; t < tiles; t++) {
        const int stage = t % STAGES;
        // Gap 2: wait until tile t is there.
        mbarrier_wait(&full[stage], t / STAGES % 2);  //!
        for (int row = 0; row < TILE && t * TILE + row < n; row++) {
            sum += s_X[stage][row][threadIdx.x];
        }
        __syncwarp();  // all lanes have read it
        // Gap 3: let the producer know.
        mbarrier_arrive_warp(&empty[stage]);  //!
    }
    Y[blockIdx.x * COLUMNS + threadIdx.x] = sum;
}
