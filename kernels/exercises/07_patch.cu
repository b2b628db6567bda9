// S = Q K^T / sqrt(d), a patch of 4 x 4 elements for each thread. Four neighbouring floats are read
// from shared memory at a time.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / 32), ceil(N / 32)), block 64

// sum += a . b
__device__ void add_dot(float& sum, float4 a, float4 b) {
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ __align__(16) float s_Q[32 * 24];  // 32 rows of S, 16 positions along d,
    __shared__ __align__(16) float s_K[32 * 24];  // and room for some words behind each row
    const int tx = threadIdx.x % 8;
    const int ty = threadIdx.x / 8;
    const int block_row = blockIdx.y * 32;
    const int block_col = blockIdx.x * 32;

    int pitch = 16;  // words from the start of one row of a tile to that of the next
    // Gap 1: set a pitch for loads of 16 bytes a lane.
    pitch = 20;  //!

    float sum[4][4] = {};
    for (int i = 0; i < d; i += 16) {
        for (int e = threadIdx.x; e < 32 * 16; e += 64) {
            const int r = e / 16;
            const int c = e % 16;
            const bool inside = i + c < d;
            s_Q[r * pitch + c] = inside && block_row + r < N ? Q[(block_row + r) * d + i + c] : 0;
            s_K[r * pitch + c] = inside && block_col + r < N ? K[(block_col + r) * d + i + c] : 0;
        }
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        #pragma unroll
        for (int k = 0; k < 16; k += 4) {
            float4 r_Q[4] = {};
            float4 r_K[4] = {};
            #pragma unroll
            for (int n = 0; n < 4; n++) {
                // Gap 2: load elements k ... k + 3 of row ty + 8 n of s_Q and of row tx + 8 n of
                // s_K, each with one load of 16 bytes.
                r_Q[n] = *(const float4*)&s_Q[(ty + 8 * n) * pitch + k];  //!
                r_K[n] = *(const float4*)&s_K[(tx + 8 * n) * pitch + k];  //!
            }
            #pragma unroll
            for (int r = 0; r < 4; r++) {
                #pragma unroll
                for (int c = 0; c < 4; c++) {
                    add_dot(sum[r][c], r_Q[r], r_K[c]);
                }
            }
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    #pragma unroll
    for (int r = 0; r < 4; r++) {
        #pragma unroll
        for (int c = 0; c < 4; c++) {
            const int row = block_row + ty + 8 * r;
            const int col = block_col + tx + 8 * c;
            if (row < N && col < N) {
                S[row * N + col] = sum[r][c] / sqrtf((float)d);
            }
        }
    }
}
