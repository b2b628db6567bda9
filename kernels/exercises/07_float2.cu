// S = Q K^T / sqrt(d). Two neighbouring floats are read from shared memory at a time.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / 16), ceil(N / 16)), block (16, 16)

extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ __align__(16) float s_Q[16 * 32];  // 16 rows of S, 16 positions along d,
    __shared__ __align__(16) float s_K[16 * 32];  // and more room than you need behind each row
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * 16 + ty;
    const int col = blockIdx.x * 16 + tx;
    const int copied = blockIdx.x * 16 + ty;  // the row of K that the thread copies from

    int pitch = 16;  // words from the start of one row of a tile to that of the next
    // Gap 1: set a pitch for loads of 8 bytes a lane.
    pitch = 18;  //!

    float sum = 0.0f;
    for (int i = 0; i < d; i += 16) {
        s_Q[ty * pitch + tx] = row < N && i + tx < d ? Q[row * d + i + tx] : 0.0f;
        s_K[ty * pitch + tx] = copied < N && i + tx < d ? K[copied * d + i + tx] : 0.0f;
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        #pragma unroll 1  // so that the loads stay as they are written
        for (int k = 0; k < 16; k += 2) {
            float2 q = {};
            float2 r = {};
            // Gap 2: load elements k and k + 1 of row ty of s_Q into q, and of row tx of s_K into
            // r, each with one load of 8 bytes.
            q = *(const float2*)&s_Q[ty * pitch + k];  //!
            r = *(const float2*)&s_K[tx * pitch + k];  //!
            sum += q.x * r.x;
            sum += q.y * r.y;
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (row < N && col < N) {
        S[(size_t)row * N + col] = sum / sqrtf((float)d);
    }
}
