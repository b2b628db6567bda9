// The output of sparse attention. Each query has a list of M keys and a weight for each of them:
// O[n] = sum over m of W[m][n] V[keys[m][n]]. Rows of V are gathered, wherever they lie.
// The first places of all lists lie side by side in memory, then the second places, and so on.
//
// Launch:
//   sparse_output  grid (ceil(d / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif

extern "C" __global__ void sparse_output(
    const float* W,   // [M, N]
    const int* keys,  // [M, N], rows of V
    const float* V,   // [N, d]
    float* O,         // [N, d]
    int N, int M, int d
) {
    __shared__ float s_W[TILE][TILE];   // [place in a list, query]
    __shared__ int s_keys[TILE][TILE];  // [place in a list, query]
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;

    // The element of O that the thread computes.
    int query = blockIdx.y * TILE + tx;
    int col = blockIdx.x * TILE + ty;
    // Gap 1: choose another query and column, so that a warp gathers whole sectors of V.
    query = blockIdx.y * TILE + ty;  //!
    col = blockIdx.x * TILE + tx;  //!

    float sum = 0.0f;
    for (int m = 0; m < M; m += TILE) {  // TILE places of the lists at a time
        // Gap 2: copy places m ... m + TILE - 1 of the lists and weights of this block's queries.
        // What does not exist becomes 0.
        const int owner = blockIdx.y * TILE + tx;  //!
        const bool exists = owner < N && m + ty < M;  //!
        s_W[ty][tx] = exists ? W[(m + ty) * N + owner] : 0.0f;  //!
        s_keys[ty][tx] = exists ? keys[(m + ty) * N + owner] : 0;  //!
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        for (int k = 0; k < TILE; k++) {
            // Gap 3: add what place m + k of the query's list brings to the column, if query,
            // place and column exist.
            if (query < N && m + k < M && col < d) {  //!
                sum += s_W[k][ty] * V[s_keys[k][ty] * d + col];  //!
            }  //!
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }

    if (query < N && col < d) {
        O[query * d + col] = sum;
    }
}
