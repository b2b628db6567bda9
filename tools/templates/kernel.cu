// Y = X diag(g): each column of X times a number of its own, one thread for each element of Y.
//
// Launch: scale_columns  grid (ceil(n / TILE), ceil(m / TILE)), block (TILE, TILE)
//         Blocks at the right and lower edge may reach past Y, hence the test.

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif

extern "C" __global__ void scale_columns(
    const float* X,  // [m, n]
    const float* g,  // [n]
    float* Y,        // [m, n]
    int m, int n
) {
    const int col = blockIdx.x * TILE + threadIdx.x;
    const int row = blockIdx.y * TILE + threadIdx.y;
    if (row < m && col < n) {
        Y[(size_t)row * n + col] = X[(size_t)row * n + col] * g[col];
    }
}
