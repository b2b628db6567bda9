// S = Q K^T / sqrt(d). A tile of K goes into shared memory row by row and is read down its columns.
// There is no room for padding: each element stays in its row, at a place of its own there.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / 16), ceil(N / 16)), block (16, 16)

extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ float s_Q[16][16];  // [row of S, position along d]
    __shared__ float s_K[16][16];  // [column of S, a place that depends on the position along d]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * 16 + ty;
    const int col = blockIdx.x * 16 + tx;
    const int copied = blockIdx.x * 16 + ty;  // the column whose element the thread copies

    float sum = 0.0f;
    for (int i = 0; i < d; i += 16) {
        s_Q[ty][tx] = row < N && i + tx < d ? Q[row * d + i + tx] : 0.0f;
        const float element = copied < N && i + tx < d ? K[copied * d + i + tx] : 0.0f;
        // Gap 1: store `element`, which is number tx of its row, in row ty of s_K.
        s_K[ty][tx ^ ty] = element;  //!
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        for (int k = 0; k < 16; k++) {
            // Gap 2: add the product of element k of row ty of Q's tile and of row tx of K's.
            sum += s_Q[ty][k] * s_K[tx][k ^ tx];  //!
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (row < N && col < N) {
        S[row * N + col] = sum / sqrtf((float)d);
    }
}
