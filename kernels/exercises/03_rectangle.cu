// O = P V from tiles that are no squares: a block computes ROWS x COLS elements of O, and its tiles
// are DEPTH long. They have more elements than the block has threads.
//
// Launch: pv_multiply  grid (ceil(N / ROWS), ceil(d / COLS)), block (ROWS, COLS)

#ifndef ROWS
#define ROWS 16  // [8, 16, 32] rows of O for a block
#endif
#ifndef COLS
#define COLS 8  // [4, 8, 16] columns of O for a block
#endif
#ifndef DEPTH
#define DEPTH 32  // [32, 64, 96] elements along N in a tile
#endif

extern "C" __global__ void pv_multiply(
    const float* P,  // [N, N]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    __shared__ float s_P[ROWS][DEPTH];  // [row of O, position along N]
    __shared__ float s_V[DEPTH][COLS];  // [position along N, column of O]
    const int tx = threadIdx.x;         // 0 to ROWS - 1
    const int ty = threadIdx.y;         // 0 to COLS - 1
    const int row = blockIdx.x * ROWS + tx;
    const int col = blockIdx.y * COLS + ty;

    float sum = 0.0f;
    for (int i = 0; i < N; i += DEPTH) {
        // Gap: fill both tiles, with zeros past the edges; one thread copies each element.
        for (int j = ty; j < DEPTH; j += COLS) {  //!
            s_P[tx][j] = row < N && i + j < N ? P[(size_t)row * N + i + j] : 0.0f;  //!
        }  //!
        for (int j = tx; j < DEPTH; j += ROWS) {  //!
            s_V[j][ty] = i + j < N && col < d ? V[(size_t)(i + j) * d + col] : 0.0f;  //!
        }  //!
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) sum += s_P[tx][k] * s_V[k][ty];
        __syncthreads();
    }
    if (row < N && col < d) O[(size_t)row * d + col] = sum;
}
