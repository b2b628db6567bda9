// K^T, the transpose of K. A tile is 32 rows of 16 words. A warp stores two of its rows, and then
// reads one of its columns, 32 words long. The tile has no room for padding.
//
// Launch:
//   transpose  grid (ceil(d / 16), ceil(N / 32)), block (16, 32)

// The word of the tile in which its element (row, col) is kept.
__device__ int place(int row, int col) {
    int word = 16 * row + col;
    // Gap: keep each element in its row, at a place there that depends on the row.
    word = 16 * row + (col ^ (row / 2));  //!
    return word;
}

extern "C" __global__ void transpose(
    const float* K,  // [N, d]
    float* KT,       // [d, N]
    int N, int d
) {
    __shared__ float s_K[32 * 16];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int first_row = blockIdx.y * 32;  // of this block's tile of K
    const int first_col = blockIdx.x * 16;

    if (first_row + ty < N && first_col + tx < d) {
        s_K[place(ty, tx)] = K[(first_row + ty) * d + first_col + tx];
    }
    __syncthreads();  // the tile is whole before any thread reads what others copied

    const int lane = (16 * ty + tx) % 32;
    const int warp = (16 * ty + tx) / 32;
    if (first_col + warp < d && first_row + lane < N) {
        KT[(first_col + warp) * N + first_row + lane] = s_K[place(lane, warp)];
    }
}
