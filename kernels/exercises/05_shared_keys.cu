// Scores of HEADS heads that share one K, as in grouped-query attention: S[h] = Q[h] K^T / sqrt(d)
// for each head h. A block computes the same square of every S[h].
//
// Launch: scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16] threads along each edge of a block, elements along each of a tile
#endif
#ifndef HEADS
#define HEADS 4  // [2, 4, 8] heads with queries of their own
#endif

extern "C" __global__ __launch_bounds__(TILE * TILE) void scaled_dot_product(
    const float* Q,  // [HEADS, N, d]
    const float* K,  // [N, d]
    float* S,        // [HEADS, N, N]
    int N, int d
) {
    __shared__ float s_Q[HEADS][TILE][TILE];  // [head, row of S, position along d]
    __shared__ float s_K[TILE][TILE];         // [position along d, column of S]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.x * TILE + tx;
    const int col = blockIdx.y * TILE + ty;

    float sum[HEADS] = {};
    for (int i = 0; i < d; i += TILE) {
        s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;
        #pragma unroll
        for (int h = 0; h < HEADS; h++) {
            // Gap 1: copy an element of head h's tile of Q; past the edges, 0.
            const float* q = Q + ((size_t)h * N + row) * d;  //!
            s_Q[h][tx][ty] = row < N && i + ty < d ? q[i + ty] : 0.0f;  //!
        }
        // Gap 2: this loop has no barrier yet. Put in what a turn needs, wherever it belongs.
        __syncthreads();  //!
        for (int k = 0; k < TILE; k++) {
            #pragma unroll
            for (int h = 0; h < HEADS; h++) {
                // Gap 3: add a product to head h's sum.
                sum[h] += s_Q[h][tx][k] * s_K[k][ty];  //!
            }
        }
        __syncthreads();  //!
    }

    #pragma unroll
    for (int h = 0; h < HEADS; h++) {
        // Gap 4: divide head h's sum as every score is divided, and store it.
        const size_t first = (size_t)h * N * N;  //!
        if (row < N && col < N) S[first + row * N + col] = sum[h] / sqrtf((float)d);  //!
    }
}
