// O = P V from tiles in shared memory: every thread copies two elements for all the others.
//
// Launch: pv_multiply  grid (ceil(N / TILE), ceil(d / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif

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

    // Gap: two barriers.
    float sum = 0.0f;
    for (int i = 0; i < N; i += TILE) {
        s_P[tx][ty] = row < N && i + ty < N ? P[(size_t)row * N + i + ty] : 0.0f;
        s_V[tx][ty] = i + tx < N && col < d ? V[(size_t)(i + tx) * d + col] : 0.0f;
        __syncthreads();  //!
        for (int k = 0; k < TILE; k++) sum += s_P[tx][k] * s_V[k][ty];
        __syncthreads();  //!
    }
    if (row < N && col < d) O[(size_t)row * d + col] = sum;
}
