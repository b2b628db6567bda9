// O = P V on tensor cores, for one tile of 64 keys. One warp has 16 rows of P. Tiles have rows of
// 8 chunks of 16 bytes, without padding.
//
// Launch:
//   weighted_rows  grid ceil(m / 16), block 32

#include "ptx.cuh"

// Where in a tile chunk `chunk` of row `row` begins, in elements.
__device__ int place(int row, int chunk) {
    int where = chunk;
    // Gap 1: swizzle the chunk.
    where = chunk ^ (row % 8);  //!
    return 64 * row + 8 * where;
}

// Starts copying ROWS rows of A to a tile; rows from `rows` on become zeros.
template <int ROWS>
__device__ void copy_rows(half* s_A, const half* A, int first, int rows) {
    for (int e = threadIdx.x; e < 8 * ROWS; e += 32) {
        const int row = e / 8;
        const int chunk = e % 8;
        const half* from = A + (first + row) * 64 + 8 * chunk;
        cp_async_16(s_A + place(row, chunk), from, first + row < rows ? 16 : 0);
    }
}

extern "C" __global__ void weighted_rows(
    const half* P,  // [m, 64]
    const half* V,  // [64, 64]
    half* O,        // [m, 64]
    int m
) {
    __shared__ __align__(16) half s_P[16 * 64];  // in the end the tile of O
    __shared__ __align__(16) half s_V[64 * 64];
    const int lane = threadIdx.x;
    const int first = 16 * blockIdx.x;
    copy_rows<16>(s_P, P, first, m);
    copy_rows<64>(s_V, V, 0, 64);
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();  // the tiles are whole before any lane reads what others copied

    float r_O[8][4] = {};
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned r_P[4];
        ldmatrix_x4(r_P, s_P + place(lane % 16, 2 * k + lane / 16));
        #pragma unroll
        for (int j = 0; j < 8; j += 2) {
            unsigned r_V[4] = {};
            // Gap 2: load 16 rows of s_V, from 16 k on, and two chunks of each, from j on. The lane
            // passes row lane % 16 of them, chunk lane / 16.
            ldmatrix_x4_trans(r_V, s_V + place(16 * k + lane % 16, j + lane / 16));  //!
            mma_m16n8k16<half>(r_O[j], r_P, r_V[0], r_V[1]);
            mma_m16n8k16<half>(r_O[j + 1], r_P, r_V[2], r_V[3]);
        }
    }
    __syncwarp();  // all lanes are done with P before O takes its place

    #pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = lane / 4 + 8 * h;
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            const unsigned pair = pack<half>(r_O[j][2 * h], r_O[j][2 * h + 1]);
            unsigned* to = reinterpret_cast<unsigned*>(s_P) + lane;
            // Gap 3: chunk j of `row` takes `pair` as its elements 2 (lane % 4) and the next.
            to = reinterpret_cast<unsigned*>(s_P + place(row, j) + 2 * (lane % 4));  //!
            *to = pair;
        }
    }
    __syncwarp();  // the rows are whole before a lane reads what others wrote

    for (int e = lane; e < 8 * 16; e += 32) {
        const int row = e / 8;
        const int chunk = e % 8;
        if (first + row < m) {
            reinterpret_cast<uint4*>(O + (first + row) * 64)[chunk] =
                *reinterpret_cast<const uint4*>(s_P + place(row, chunk));
        }
    }
}
