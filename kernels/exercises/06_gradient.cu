// dV = P^T dO: how the loss changes with V, as training needs it. P lies in memory as it did for
// O = P V, but what were its columns there are rows of the product here.
//
// Launch:
//   gradient  grid (ceil(d / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif

extern "C" __global__ void gradient(
    const float* P,   // [N, N]
    const float* dO,  // [N, d]
    float* dV,        // [N, d]
    int N, int d
) {
    __shared__ float s_P[TILE][TILE];
    __shared__ float s_dO[TILE][TILE];  // [position along the sum, column of dV]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int first_row = blockIdx.y * TILE;  // of this block's tile of dV, a column of P
    const int row = first_row + ty;
    const int col = blockIdx.x * TILE + tx;

    float sum = 0.0f;  // over rows of P and dO, TILE of them at a time
    for (int i = 0; i < N; i += TILE) {
        // Gap 1: copy an element of rows i ... i + TILE - 1, columns first_row ... first_row +
        // TILE - 1 of P to s_P; past the edges of P, 0.
        const bool inside = i + ty < N && first_row + tx < N;  //!
        s_P[ty][tx] = inside ? P[(i + ty) * N + first_row + tx] : 0.0f;  //!
        s_dO[ty][tx] = i + ty < N && col < d ? dO[(i + ty) * d + col] : 0.0f;
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        for (int k = 0; k < TILE; k++) {
            // Gap 2: add the product of P[i + k][row] and dO[i + k][col].
            sum += s_P[k][ty] * s_dO[k][tx];  //!
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (row < N && col < d) {
        dV[row * d + col] = sum;
    }
}
