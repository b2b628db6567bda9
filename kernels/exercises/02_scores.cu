// S = Q K^T / sqrt(d), one thread for each element, at any N and d.
//
// Launch: scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif

extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    int row = 0;
    int col = 0;
    // Gap 1: this thread's element of S; x runs along rows, y along columns.
    row = blockIdx.x * TILE + threadIdx.x;  //!
    col = blockIdx.y * TILE + threadIdx.y;  //!

    // Gap 2: a thread that lies outside of S has nothing to do.
    if (row >= N || col >= N) return;  //!

    float sum = 0.0f;
    for (int i = 0; i < d; i++) {
        // Gap 3: one product of the sum.
        sum += Q[(size_t)row * d + i] * K[(size_t)col * d + i];  //!
    }
    S[(size_t)row * N + col] = sum / sqrtf((float)d);
}
