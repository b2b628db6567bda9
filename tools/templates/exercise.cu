// Y = diag(g) X: each row of X times a number of its own, one thread for each element of Y.
//
// Launch: scale_rows  grid (ceil(n / TILE), ceil(m / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif

extern "C" __global__ void scale_rows(
    const float* X,  // [m, n]
    const float* g,  // [m]
    float* Y,        // [m, n]
    int m, int n
) {
    int row = 0;
    int col = 0;
    // Gap 1: this thread's element of Y, and what a thread does that has none.
    row = blockIdx.y * TILE + threadIdx.y;  //!
    col = blockIdx.x * TILE + threadIdx.x;  //!
    if (row >= m || col >= n) return;  //!

    // Gap 2: the element, times the number of its row.
    Y[(size_t)row * n + col] = X[(size_t)row * n + col] * g[row];  //!
}
