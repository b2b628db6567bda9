// The two products of 02_naive.cu in tiles: a block first copies a tile of each operand to shared
// memory, and all its threads then read the tiles there, so that each element leaves global memory
// once for a block instead of once for a thread.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d, S and P are N x N.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)
//   pv_multiply         grid (ceil(N / TILE), ceil(d / TILE)), block (TILE, TILE)
// In both, threadIdx.x counts rows of the result and threadIdx.y columns.

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif

// S = Q K^T / sqrt(d): one thread for each element.
extern "C" __global__ void scaled_dot_product(
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
    const int col = blockIdx.y * TILE + ty;

    float sum = 0.0f;
    for (int i = 0; i < d; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;
        s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        for (int k = 0; k < TILE; k++) {
            sum += s_Q[tx][k] * s_K[k][ty];
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (row < N && col < N) {
        S[(size_t)row * N + col] = sum / sqrtf((float)d);
    }
}

// O = P V: one thread for each element.
extern "C" __global__ void pv_multiply(
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
    const int col = blockIdx.y * TILE + ty;

    float sum = 0.0f;
    for (int i = 0; i < N; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;
        s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        for (int k = 0; k < TILE; k++) {
            sum += s_P[tx][k] * s_V[k][ty];
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (row < N && col < d) {
        O[(size_t)row * d + col] = sum;
    }
}
