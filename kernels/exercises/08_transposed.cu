// The gradient of V, which training needs: D = P^T G on tensor cores, where G is the gradient of O.
// One warp has 16 keys and 16 columns of D and walks along the queries, 16 at a time. P lies in
// memory with a row for each query, so a row of P^T is a column of P.
//
// Launch:
//   value_gradient  grid (4, ceil(n / 16)), block 32

#include "ptx.cuh"

constexpr int HEAD_DIM = 64;

// Copies 16 x 16 elements of A, from (row, col) on; those past its rows or columns become zeros.
__device__ void copy_tile(
    half (&s_A)[16][24], const half* A, int row, int col, int rows, int columns
) {
    for (int e = threadIdx.x; e < 16 * 16; e += 32) {
        const int r = e / 16;
        const int c = e % 16;
        const bool inside = row + r < rows && col + c < columns;
        s_A[r][c] = inside ? A[(row + r) * columns + col + c] : __float2half(0.0f);
    }
}

extern "C" __global__ void value_gradient(
    const half* P,  // [m, n], m queries and n keys
    const half* G,  // [m, HEAD_DIM]
    float* D,       // [n, HEAD_DIM]
    int m, int n
) {
    __shared__ __align__(16) half s_P[16][24];  // 16 queries x 16 keys, padded by a chunk
    __shared__ __align__(16) half s_G[16][24];  // 16 queries x 16 columns
    const int lane = threadIdx.x;
    const int first_row = blockIdx.y * 16;
    const int first_col = blockIdx.x * 16;

    float r_D[2][4] = {};  // columns 0 ... 7 of the tile of D, and columns 8 ... 15
    for (int query = 0; query < m; query += 16) {
        copy_tile(s_P, P, query, first_row, m, n);
        copy_tile(s_G, G, query, first_col, m, HEAD_DIM);
        __syncwarp();  // the tiles are whole before any lane reads what others copied

        unsigned r_P[4] = {};
        unsigned r_G[4] = {};
        // Gap 1: load the fragments of P^T and of G. The lane passes row lane % 16 of a tile, chunk
        // lane / 16. Which of the two have to be transposed?
        ldmatrix_x4_trans(r_P, &s_P[lane % 16][8 * (lane / 16)]);  //!
        ldmatrix_x4_trans(r_G, &s_G[lane % 16][8 * (lane / 16)]);  //!
        unsigned r_A[4] = {};
        // Gap 2: fill r_A with the four quarters of P^T, in the order that mma wants of A, and
        // multiply it by the two halves of the tile of G.
        r_A[0] = r_P[0];  //!
        r_A[1] = r_P[2];  //!
        r_A[2] = r_P[1];  //!
        r_A[3] = r_P[3];  //!
        mma_m16n8k16<half>(r_D[0], r_A, r_G[0], r_G[1]);  //!
        mma_m16n8k16<half>(r_D[1], r_A, r_G[2], r_G[3]);  //!
        __syncwarp();  // all lanes have their fragments before others replace the tiles
    }

    #pragma unroll
    for (int j = 0; j < 2; j++) {
        #pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = first_row;
            int col = first_col;
            // Gap 3: move on to the row and the column of D that r_D[j][i] of this lane is for.
            row += lane / 4 + 8 * (i / 2);  //!
            col += 8 * j + 2 * (lane % 4) + i % 2;  //!
            if (row < n && col < HEAD_DIM) {
                D[row * HEAD_DIM + col] = r_D[j][i];
            }
        }
    }
}
