// S = Q K^T / sqrt(d) on tensor cores for heads of 32 columns: one warp for 16 x 16 elements of S.
// A row of a tile has 4 chunks of 16 bytes, half of what the banks give in a wavefront. There is no
// padding.
//
// Launch:
//   scaled_dot_product  grid (ceil(n / 16), ceil(m / 16)), block 32

#include "fragments.cuh"
#include "ptx.cuh"

constexpr int HEAD_DIM = 32;

// Where in a tile chunk `chunk` of row `row` begins, in elements.
__device__ int place(int row, int chunk) {
    int where = chunk;
    // Gap: choose another place in the row, 0 ... 3, so that no access to a tile conflicts.
    where = chunk ^ (row / 2 % 4);  //!
    return HEAD_DIM * row + 8 * where;
}

// Copies 16 rows of A to a tile; rows from `rows` on become zeros.
__device__ void copy_rows(half* s_A, const half* A, int first, int rows) {
    for (int e = threadIdx.x; e < 16 * 4; e += 32) {
        const int r = e / 4;
        const int chunk = e % 4;
        const uint4* a = reinterpret_cast<const uint4*>(A + (first + r) * HEAD_DIM) + chunk;
        *reinterpret_cast<uint4*>(s_A + place(r, chunk)) =
            first + r < rows ? *a : make_uint4(0, 0, 0, 0);
    }
}

extern "C" __global__ void scaled_dot_product(
    const half* Q,  // [m, HEAD_DIM]
    const half* K,  // [n, HEAD_DIM]
    float* S,       // [m, n]
    int m, int n
) {
    __shared__ __align__(16) half s_Q[16 * HEAD_DIM];
    __shared__ __align__(16) half s_K[16 * HEAD_DIM];
    const int lane = threadIdx.x;
    const int first_row = blockIdx.y * 16;
    const int first_col = blockIdx.x * 16;
    copy_rows(s_Q, Q, first_row, m);
    copy_rows(s_K, K, first_col, n);
    __syncwarp();  // the tiles are whole before any lane reads what others copied

    float r_S[2][4] = {};  // columns 0 ... 7 of the tile of S, and columns 8 ... 15
    #pragma unroll
    for (int k = 0; k < HEAD_DIM / 16; k++) {
        unsigned r_Q[4];
        unsigned r_K[4];
        ldmatrix_x4(r_Q, s_Q + place(lane % 16, 2 * k + lane / 16));
        ldmatrix_x4(r_K, s_K + place(lane % 16, 2 * k + lane / 16));
        mma_m16n8k16<half>(r_S[0], r_Q, r_K[0], r_K[2]);
        mma_m16n8k16<half>(r_S[1], r_Q, r_K[1], r_K[3]);
    }
    #pragma unroll
    for (int j = 0; j < 2; j++) {
        #pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = first_row + fragment_row(lane, i);
            const int col = first_col + 8 * j + fragment_column(lane, i);
            if (row < m && col < n) {
                S[row * n + col] = r_S[j][i] / sqrtf((float)HEAD_DIM);
            }
        }
    }
}
