// A grid and blocks of two dimensions: C = A + B for matrices, one thread for each element.
//
// Launch: grid (ceil(columns / TILE), ceil(rows / TILE)), block (TILE, TILE)
// Parameters: TILE.

#ifndef TILE
#define TILE 8  // [4, 8, 16, 32] threads along each edge of a block
#endif

extern "C" __global__ void matrix_add(
    const float* A,  // [rows, columns]
    const float* B,  // [rows, columns]
    float* C,        // [rows, columns]
    int rows, int columns
) {
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        const size_t i = (size_t)row * columns + column;
        C[i] = A[i] + B[i];
    }
}
