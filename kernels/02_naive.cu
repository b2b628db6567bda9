// Attention in three kernels, written the way the formula reads: O = softmax(Q K^T / sqrt(d)) V.
// Every operand comes from global memory each time it is needed; S and P are stored whole.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d, S and P are N x N.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)
//   softmax             grid ceil(N / BLOCK_SIZE),             block BLOCK_SIZE
//   pv_multiply         grid (ceil(N / TILE), ceil(d / TILE)), block (TILE, TILE)
// In the two products threadIdx.x counts rows of the result and threadIdx.y columns.

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256  // [64, 128, 256] threads in a block of softmax, one for each row
#endif

// S = Q K^T / sqrt(d): one thread for each element.
extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    const int row = blockIdx.x * TILE + threadIdx.x;
    const int col = blockIdx.y * TILE + threadIdx.y;
    if (row < N && col < N) {
        // In 64 bits: row * N passes 2^31 from N = 46341 on.
        const float* q = Q + (size_t)row * d;
        const float* k = K + (size_t)col * d;
        float sum = 0.0f;
        for (int i = 0; i < d; i++) {
            sum += q[i] * k[i];
        }
        S[(size_t)row * N + col] = sum / sqrtf((float)d);
    }
}

// P = softmax(S) along rows: one thread for each row.
extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    const int row = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (row < N) {
        const float* s = S + (size_t)row * N;
        float* p = P + (size_t)row * N;

        // With the largest score subtracted, no exponent
        // is above 0 and expf cannot overflow.
        float row_max = s[0];
        for (int j = 1; j < N; j++) {
            row_max = fmaxf(row_max, s[j]);
        }

        float row_sum = 0.0f;
        for (int j = 0; j < N; j++) {
            row_sum += expf(s[j] - row_max);
        }

        for (int j = 0; j < N; j++) {
            p[j] = expf(s[j] - row_max) / row_sum;
        }
    }
}

// O = P V: one thread for each element.
extern "C" __global__ void pv_multiply(
    const float* P,  // [N, N]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    const int row = blockIdx.x * TILE + threadIdx.x;
    const int col = blockIdx.y * TILE + threadIdx.y;
    if (row < N && col < d) {
        const float* p = P + (size_t)row * N;
        float sum = 0.0f;
        for (int j = 0; j < N; j++) {
            sum += p[j] * V[(size_t)j * d + col];
        }
        O[(size_t)row * d + col] = sum;
    }
}
