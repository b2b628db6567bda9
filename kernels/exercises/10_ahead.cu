// O = P V, one row of P a block, with copies that run ahead. A block walks along V in tiles of TILE
// rows and has room for STAGES of them: while one is worked on, STAGES - 1 others are under way.
// Thread c has column c of O.
//
// Launch:
//   weighted_rows  grid m, block HEAD_DIM

#include "ptx.cuh"

#ifndef STAGES
#define STAGES 3  // [2, 3, 4] tiles that there is room for
#endif

constexpr int HEAD_DIM = 64;
constexpr int TILE = 8;

// Starts copying rows first ... first + TILE - 1 of V; those from n on become zeros.
__device__ void start_copy(float (&s_V)[TILE][HEAD_DIM], const float* V, int first, int n) {
    for (int e = threadIdx.x; e < TILE * HEAD_DIM / 4; e += HEAD_DIM) {
        const int row = e / (HEAD_DIM / 4);
        const int column = 4 * (e % (HEAD_DIM / 4));
        const float* from = V + (first + row) * HEAD_DIM + column;
        cp_async_16(&s_V[row][column], from, first + row < n ? 16 : 0);
    }
}

extern "C" __global__ void weighted_rows(
    const float* P,  // [m, n]
    const float* V,  // [n, HEAD_DIM]
    float* O,        // [m, HEAD_DIM]
    int n
) {
    __shared__ __align__(16) float s_V[STAGES][TILE][HEAD_DIM];
    const float* p = P + blockIdx.x * n;
    const int tiles = (n + TILE - 1) / TILE;

    // Gap 1: start the copies of the first STAGES - 1 tiles. Each is a group of its own.
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {  //!
        start_copy(s_V[ahead], V, ahead * TILE, n);  //!
        cp_async_commit();  //!
    }  //!
    float sum = 0.0f;
    for (int t = 0; t < tiles; t++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();  // tile t is whole, and all threads are done with the tile before it
        int stage = 0;
        // Gap 2: say where tile t lies, and start the copy of the tile STAGES - 1 further on. The
        // wait above lets STAGES - 2 groups be under way: see that this is right for every t.
        stage = t % STAGES;  //!
        const int next = t + STAGES - 1;  //!
        if (next < tiles) start_copy(s_V[next % STAGES], V, next * TILE, n);  //!
        cp_async_commit();  //!
        for (int j = 0; j < TILE && t * TILE + j < n; j++) {
            sum += p[t * TILE + j] * s_V[stage][j][threadIdx.x];
        }
    }
    O[blockIdx.x * HEAD_DIM + threadIdx.x] = sum;
}
