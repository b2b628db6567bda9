// S = Q K^T / sqrt(d), COARSE elements a thread: one tile of Q serves COARSE tiles of K.
//
// Launch: scaled_dot_product  grid (ceil(N / TILE), ceil(N / (TILE * COARSE))), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif
#ifndef COARSE
#define COARSE 4  // [2, 4, 8] elements of the result that a thread computes
#endif

extern "C" __global__ __launch_bounds__(TILE * TILE) void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ float s_Q[TILE][TILE];  // [row of S, position along d]
    __shared__ float s_K[TILE][TILE];  // [position along d, column of S]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.x * TILE + tx;

    // Gap: fill s_Q, fill s_K, and add up. Where in the loops does each belong?
    float sum[COARSE] = {};
    for (int i = 0; i < d; i += TILE) {
        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;  //!
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            const int col = (blockIdx.y * COARSE + c) * TILE + ty;
            s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;  //!
            __syncthreads();
            for (int k = 0; k < TILE; k++) {
                sum[c] += s_Q[tx][k] * s_K[k][ty];  //!
            }
            __syncthreads();
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        const int col = (blockIdx.y * COARSE + c) * TILE + ty;
        if (row < N && col < N) S[(size_t)row * N + col] = sum[c] / sqrtf((float)d);
    }
}
