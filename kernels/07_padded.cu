// The two products of 06_coalesced.cu with rows of s_K that are PAD words longer: with 16 words a
// row, the words of a column lie in two of the 32 banks; with 17, each lies in a bank of its own.
// But rows then start at any multiple of 4 bytes, so that four words of one are not a single load.
// In pv_multiply no warp walks down a column, so there is nothing to pad.
//
// All matrices are fp32 and row-major, for one head: Q, K, V and O are N x d, S and P are N x N.
//
// Launch:
//   scaled_dot_product  grid (ceil(N / (TILE * COARSE)), ceil(N / TILE)), block (TILE, TILE)
//   pv_multiply         grid (ceil(d / (TILE * COARSE)), ceil(N / TILE)), block (TILE, TILE)
// In both, threadIdx.x counts columns of the result and threadIdx.y rows.

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block, elements along each of a tile
#endif
#ifndef COARSE
#define COARSE 4  // [1, 2, 4, 8] elements of the result that a thread computes
#endif
#ifndef TRANSPOSE_ON_STORE
#define TRANSPOSE_ON_STORE 0  // [0, 1] 1: s_K is written transposed, 0: s_K is read transposed
#endif
#ifndef PAD
#define PAD 1  // [0, 1] words of padding behind each row of s_K
#endif

// Coarser threads need more registers, of which a block has 65,536: told the size of the block, the
// compiler uses no more than its threads can have.

// S = Q K^T / sqrt(d): one thread for COARSE elements.
extern "C" __global__ __launch_bounds__(TILE * TILE) void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    __shared__ float s_Q[TILE][TILE];  // [row of S, position along d]
    __shared__ float s_K[TILE][TILE + PAD];  // a tile of K, or of K^T with TRANSPOSE_ON_STORE
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int block_col = blockIdx.x * TILE * COARSE;

    float sum[COARSE] = {};
    for (int i = 0; i < d; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_Q[ty][tx] = row < N && i + tx < d ? Q[(size_t)row * d + i + tx] : 0.0f;
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            // A column of S is a row of K. Along that row, too, runs x: the thread copies an
            // element that belongs to another column than its own.
            const int col = block_col + c * TILE + ty;
            const float element = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;
            if (TRANSPOSE_ON_STORE) {
                s_K[tx][ty] = element;  // [position along d, column of S]
            } else {
                s_K[ty][tx] = element;  // [column of S, position along d]
            }
            __syncthreads();  // the tiles are whole before any thread reads what others copied

            for (int k = 0; k < TILE; k++) {
                sum[c] += s_Q[ty][k] * (TRANSPOSE_ON_STORE ? s_K[k][tx] : s_K[tx][k]);
            }
            __syncthreads();  // all threads are done with the tiles before others replace them
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        const int col = block_col + c * TILE + tx;
        if (row < N && col < N) {
            S[(size_t)row * N + col] = sum[c] / sqrtf((float)d);
        }
    }
}

// O = P V: one thread for COARSE elements. Nothing is transposed here.
extern "C" __global__ __launch_bounds__(TILE * TILE) void pv_multiply(
    const float* P,  // [N, N]
    const float* V,  // [N, d]
    float* O,        // [N, d]
    int N, int d
) {
    __shared__ float s_P[TILE][TILE];  // [row of O, position along N]
    __shared__ float s_V[TILE][TILE];  // [position along N, column of O]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int block_col = blockIdx.x * TILE * COARSE;

    float sum[COARSE] = {};
    for (int i = 0; i < N; i += TILE) {
        // Past the edges the tiles hold zeros, which add nothing to the sums.
        s_P[ty][tx] = row < N && i + tx < N ? P[(size_t)row * N + i + tx] : 0.0f;
        #pragma unroll
        for (int c = 0; c < COARSE; c++) {
            const int col = block_col + c * TILE + tx;
            s_V[ty][tx] = i + ty < N && col < d ? V[(size_t)(i + ty) * d + col] : 0.0f;
            __syncthreads();  // the tiles are whole before any thread reads what others copied

            for (int k = 0; k < TILE; k++) {
                sum[c] += s_P[ty][k] * s_V[k][tx];
            }
            __syncthreads();  // all threads are done with the tiles before others replace them
        }
    }

    #pragma unroll
    for (int c = 0; c < COARSE; c++) {
        const int col = block_col + c * TILE + tx;
        if (row < N && col < d) {
            O[(size_t)row * d + col] = sum[c];
        }
    }
}
