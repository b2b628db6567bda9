// O = P V with COARSE rows a thread, a tile apart: one tile of V serves COARSE tiles of P. With
// d = 64 a block that walks along O soon runs out of columns. Down O there are N rows.
//
// Launch: pv_multiply  grid (ceil(N / (TILE * COARSE)), ceil(d / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif
#ifndef COARSE
#define COARSE 4  // [2, 4, 8] elements of the result that a thread computes
#endif

extern "C" __global__ __launch_bounds__(TILE * TILE) void pv_multiply(
    const float* P,  // [N, N]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    __shared__ float s_P[TILE][TILE];  // [row of O, position along N]
    __shared__ float s_V[TILE][TILE];  // [position along N, column of O]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int block_row = blockIdx.x * TILE * COARSE;  // the first of this block's rows
    const int col = blockIdx.y * TILE + ty;

    float sum[COARSE] = {};
    for (int i = 0; i < N; i += TILE) {
        // Gap 1: copy here what serves the whole inner loop; past the edges, 0.
        s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;  //!
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            // Gap 2: copy here what only this turn needs; past the edges, 0.
            const int row = block_row + c * TILE + tx;  //!
            s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;  //!
            __syncthreads();  // both tiles are whole
            for (int k = 0; k < TILE; k++) {
                // Gap 3: add a product to the sum that it belongs to.
                sum[c] += s_P[tx][k] * s_V[k][ty];  //!
            }
            __syncthreads();  // all threads are done with them
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        // Gap 4: store sum c.
        const int row = block_row + c * TILE + tx;  //!
        if (row < N && col < d) O[(size_t)row * d + col] = sum[c];  //!
    }
}
