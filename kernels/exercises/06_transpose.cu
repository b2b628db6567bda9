// K^T, the transpose of K, written to memory once, so that no product has to turn a tile of K any
// more. Rows of K go into a tile in shared memory, and rows of K^T come out of it.
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

    // Gap 1: copy an element of the tile from K to s_K, if it is not past an edge of K.
    if (first_row + ty < N && first_col + tx < d) {  //!
        s_K[ty][tx] = K[(first_row + ty) * d + first_col + tx];  //!
    }  //!
    __syncthreads();  // the tile is whole before any thread reads what others copied

    // Gap 2: copy an element of the tile from s_K to KT, if it is not past an edge of KT.
    if (first_col + ty < d && first_row + tx < N) {  //!
        KT[(first_col + ty) * N + first_row + tx] = s_K[tx][ty];  //!
    }  //!
}
