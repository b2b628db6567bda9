// S = Q K^T / sqrt(d) with COARSE x COARSE squares of S a block, each TILE x TILE: a tile of Q
// serves COARSE tiles of K, and a tile of K serves COARSE tiles of Q.
//
// Launch:
//   scaled_dot_product  block (TILE, TILE),
//                       grid (ceil(N / (TILE * COARSE)), ceil(N / (TILE * COARSE)))

#ifndef TILE
#define TILE 16  // [8, 16] threads along each edge of a block, elements along each of a tile
#endif
#ifndef COARSE
#define COARSE 3  // [2, 3, 4] squares of S along each edge of a block's part
#endif

extern "C" __global__ __launch_bounds__(TILE * TILE) void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ float s_Q[COARSE][TILE][TILE];  // [tile, row of S, position along d]
    __shared__ float s_K[COARSE][TILE][TILE];  // [tile, position along d, column of S]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int first_row = blockIdx.x * TILE * COARSE;  // of this block's part of S
    const int first_col = blockIdx.y * TILE * COARSE;

    float sum[COARSE][COARSE] = {};
    for (int i = 0; i < d; i += TILE) {
        #pragma unroll
        for (int n = 0; n < COARSE; n++) {
            // Gap 1: copy an element of tile n of Q and one of tile n of K; past the edges, 0.
            const int row = first_row + n * TILE + tx;  //!
            const int col = first_col + n * TILE + ty;  //!
            s_Q[n][tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;  //!
            s_K[n][tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;  //!
        }
        __syncthreads();  // all tiles are whole

        for (int k = 0; k < TILE; k++) {
            #pragma unroll
            for (int r = 0; r < COARSE; r++) {
                #pragma unroll
                for (int c = 0; c < COARSE; c++) {
                    // Gap 2: add a product to sum (r, c), of the square in row r and column c.
                    sum[r][c] += s_Q[r][tx][k] * s_K[c][k][ty];  //!
                }
            }
        }
        __syncthreads();  // all threads are done with the tiles
    }

    #pragma unroll
    for (int r = 0; r < COARSE; r++) {
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            // Gap 3: divide sum (r, c) as every score is divided, and store it.
            const int row = first_row + r * TILE + tx;  //!
            const int col = first_col + c * TILE + ty;  //!
            if (row < N && col < N) S[(size_t)row * N + col] = sum[r][c] / sqrtf((float)d);  //!
        }
    }
}
