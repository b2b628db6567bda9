// K^T once more. A warp reads its tile down a column, and all 32 words lie in one bank.
//
// Launch:
//   transpose  grid (ceil(d / 32), ceil(N / 32)), block (32, 32)

extern "C" __global__ void transpose(
    const float* K,  // [N, d]
    float* KT,       // [d, N]
    int N, int d
) {
    __shared__ float s_K[32 * 36];  // there is room for some words behind each row
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int first_row = blockIdx.y * 32;  // of this block's tile of K
    const int first_col = blockIdx.x * 32;

    int pitch = 32;  // words from the start of one row of the tile to that of the next
    // Gap: set a pitch at which neither rows nor columns conflict.
    pitch = 33;  //!

    if (first_row + ty < N && first_col + tx < d) {
        s_K[ty * pitch + tx] = K[(first_row + ty) * d + first_col + tx];
    }
    __syncthreads();  // the tile is whole before any thread reads what others copied

    if (first_col + ty < d && first_row + tx < N) {
        KT[(first_col + ty) * N + first_row + tx] = s_K[tx * pitch + ty];
    }
}
