// K^T, the transpose of K, written to memory once, so that no product has to turn a tile of K any
// more. Rows of K go into a tile in shared memory, and rows of K^T are to come out of it.
//
// Launch:
//   transpose  grid (ceil(d / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif

extern "C" __global__ void transpose(
    const float* K,  // [N, d]
    float* KT,       // [d, N]
    int N, int d
) {
    __shared__ float s_K[TILE][TILE];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int first_row = blockIdx.y * TILE;  // of this block's tile of K
    const int first_col = blockIdx.x * TILE;

    if (first_row + ty < N && first_col + tx < d) {
        s_K[ty][tx] = K[(first_row + ty) * d + first_col + tx];
    }
    __syncthreads();  // the tile is whole before any thread reads what others copied

    // The thread writes the element that it has copied: down a column of KT.
    int row = first_col + tx;
    int col = first_row + ty;
    const float* element = &s_K[ty][tx];
    // Gap: choose another row and column of KT, and the element of the tile that belongs there.
    row = first_col + ty;  //!
    col = first_row + tx;  //!
    element = &s_K[tx][ty];  //!
    if (row < d && col < N) {
        KT[row * N + col] = *element;
    }
}
