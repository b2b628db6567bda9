// S = Q K^T / sqrt(d) from tiles in shared memory, at sizes that TILE does not divide.
//
// Launch: scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif

extern "C" __global__ void scaled_dot_product(
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
    const int col = blockIdx.y * TILE + ty;

    float sum = 0.0f;
    for (int i = 0; i < d; i += TILE) {
        // Gap: fill both tiles from row `row` of Q and row `col` of K, with zeros past the edges.
        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;  //!
        s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;  //!
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += s_Q[tx][k] * s_K[k][ty];
        __syncthreads();
    }
    if (row < N && col < N) S[(size_t)row * N + col] = sum / sqrtf((float)d);
}
