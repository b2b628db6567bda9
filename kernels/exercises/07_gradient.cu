// dV = P^T dO: how the loss of a training changes with V, from how it changes with O. A thread
// computes a patch of 4 x 4 elements of dV. Both tiles lie as in memory, with the position along
// the sum first.
//
// Launch:
//   gradient  grid (ceil(d / 32), ceil(N / 32)), block 64

// sum += a b.
__device__ void add_multiple(float4& sum, float a, float4 b) {
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

extern "C" __global__ void gradient(
    const float* P,   // [N, N]
    const float* dO,  // [N, d]
    float* dV,        // [N, d]
    int N, int d
) {
    __shared__ __align__(16) float s_P[16][32];   // [position along the sum, row of dV]
    __shared__ __align__(16) float s_dO[16][32];  // [position along the sum, column of dV]
    const int tx = threadIdx.x % 8;
    const int ty = threadIdx.x / 8;
    const int first_row = blockIdx.y * 32;
    const int first_col = blockIdx.x * 32;

    float4 sum[4] = {};  // rows 4 ty ... 4 ty + 3 of the block's, columns 4 tx ... 4 tx + 3
    for (int i = 0; i < N; i += 16) {
        for (int e = threadIdx.x; e < 16 * 32; e += 64) {
            const int n = i + e / 32;
            const int c = e % 32;
            s_P[e / 32][c] = n < N && first_row + c < N ? P[n * N + first_row + c] : 0.0f;
            s_dO[e / 32][c] = n < N && first_col + c < d ? dO[n * d + first_col + c] : 0.0f;
        }
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        #pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 p = {};
            float4 o = {};
            // Gap 1: load what the patch needs of row k of either tile, with 16 bytes each.
            p = *(const float4*)&s_P[k][4 * ty];  //!
            o = *(const float4*)&s_dO[k][4 * tx];  //!
            // Gap 2: add the 16 products.
            add_multiple(sum[0], p.x, o);  //!
            add_multiple(sum[1], p.y, o);  //!
            add_multiple(sum[2], p.z, o);  //!
            add_multiple(sum[3], p.w, o);  //!
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    #pragma unroll
    for (int r = 0; r < 4; r++) {
        const int row = first_row + 4 * ty + r;
        const int col = first_col + 4 * tx;
        const float values[4] = {sum[r].x, sum[r].y, sum[r].z, sum[r].w};
        #pragma unroll
        for (int c = 0; c < 4; c++) {
            if (row < N && col + c < d) dV[row * d + col + c] = values[c];
        }
    }
}
