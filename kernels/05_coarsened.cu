// The two products of 03_tiled.cu with coarser threads: a thread computes COARSE elements, a tile
// apart along a row, so that one tile of Q (or P) serves COARSE tiles of the result. There are
// COARSE times fewer blocks, too few for all multiprocessors where N is small.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d, S and P are N x N.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / TILE), ceil(N / (TILE * COARSE))), block (TILE, TILE)
//   pv_multiply         grid (ceil(N / TILE), ceil(d / (TILE * COARSE))), block (TILE, TILE)
// In both, threadIdx.x counts rows of the result and threadIdx.y columns.

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif
#ifndef COARSE
#define COARSE 4  // [1, 2, 4, 8] elements of the result that a thread computes
#endif

// Coarser threads need more registers, of which a block has 65,536: told the size of the block, the
// compiler uses no more than its threads can have.

// S = Q K^T / sqrt(d): one thread for COARSE elements.
extern "C" __global__ __launch_bounds__(TILE * TILE) void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ float s_Q[TILE][TILE];  // [row of S, position along d]
    __shared__ float s_K[TILE][TILE];  // [position along d, column of S], so a tile of K^T
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.x * TILE + tx;
    const int block_col = blockIdx.y * TILE * COARSE;

    float sum[COARSE] = {};
    for (int i = 0; i < d; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            const int col = block_col + c * TILE + ty;
            s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;
            __syncthreads();  // the tiles are whole before any thread reads what others copied

            for (int k = 0; k < TILE; k++) {
                sum[c] += s_Q[tx][k] * s_K[k][ty];
            }
            __syncthreads();  // all threads are done with the tiles before others replace them
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        const int col = block_col + c * TILE + ty;
        if (row < N && col < N) {
            S[(size_t)row * N + col] = sum[c] / sqrtf((float)d);
        }
    }
}

// O = P V: one thread for COARSE elements.
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
    const int row = blockIdx.x * TILE + tx;
    const int block_col = blockIdx.y * TILE * COARSE;

    float sum[COARSE] = {};
    for (int i = 0; i < N; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            const int col = block_col + c * TILE + ty;
            s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;
            __syncthreads();  // the tiles are whole before any thread reads what others copied

            for (int k = 0; k < TILE; k++) {
                sum[c] += s_P[tx][k] * s_V[k][ty];
            }
            __syncthreads();  // all threads are done with the tiles before others replace them
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        const int col = block_col + c * TILE + ty;
        if (row < N && col < d) {
            O[(size_t)row * d + col] = sum[c];
        }
    }
}
