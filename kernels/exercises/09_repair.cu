// O = P V on tensor cores, for one tile of 64 keys and heads of 80 columns. One warp has 16 rows of
// P. A row of V or of O has 10 chunks of 16 bytes, and there is no padding. The tile of P is padded
// and has nothing to do with the swizzle.
//
// Launch:
//   weighted_rows  grid ceil(m / 16), block 32

#include "ptx.cuh"

constexpr int HEAD_DIM = 80;
constexpr int CHUNKS = HEAD_DIM / 8;
constexpr int PITCH = 64 + 8;  // elements from one row of the tile of P to the next

// Where in a tile of V or of O chunk `chunk` of row `row` begins, in elements.
__device__ int place(int row, int chunk) {
    int where = chunk ^ (row % 8);  // from a kernel whose rows have 16 chunks
    // Gap 1: rows have 10 chunks here. Repair the map, so that it is one to one and nothing
    // conflicts.
    where = chunk ^ (row / 4 % 2);  //!
    return HEAD_DIM * row + 8 * where;
}

extern "C" __global__ void weighted_rows(
    const half* P,  // [m, 64]
    const half* V,  // [64, HEAD_DIM]
    half* O,        // [m, HEAD_DIM]
    int m
) {
    __shared__ __align__(16) half s_tiles[16 * HEAD_DIM + 64 * HEAD_DIM + 16 * PITCH];
    half* s_O = s_tiles;              // [16, HEAD_DIM]
    half* s_V = s_O + 16 * HEAD_DIM;  // [64, HEAD_DIM]
    half* s_P = s_V + 64 * HEAD_DIM;  // [16, PITCH]
    const int lane = threadIdx.x;
    const int first = 16 * blockIdx.x;
    for (int e = lane; e < 16 * 8; e += 32) {
        const int row = e / 8;
        const int chunk = e % 8;
        const half* from = P + (first + row) * 64 + 8 * chunk;
        cp_async_16(s_P + PITCH * row + 8 * chunk, from, first + row < m ? 16 : 0);
    }
    for (int e = lane; e < 64 * CHUNKS; e += 32) {
        cp_async_16(s_V + place(e / CHUNKS, e % CHUNKS), V + 8 * e, 16);
    }
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();  // the tiles are whole before any lane reads what others copied

    float r_O[CHUNKS][4] = {};
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned r_P[4];
        ldmatrix_x4(r_P, s_P + PITCH * (lane % 16) + 16 * k + 8 * (lane / 16));
        #pragma unroll
        for (int j = 0; j < CHUNKS; j += 2) {
            unsigned r_V[4];
            ldmatrix_x4_trans(r_V, s_V + place(16 * k + lane % 16, j + lane / 16));
            mma_m16n8k16<half>(r_O[j], r_P, r_V[0], r_V[1]);
            mma_m16n8k16<half>(r_O[j + 1], r_P, r_V[2], r_V[3]);
        }
    }
    half2* s_pairs = reinterpret_cast<half2*>(s_O);  // the tile of O, two elements at a time
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = lane / 4 + 8 * h;
        #pragma unroll
        for (int j = 0; j < CHUNKS; j++) {
            int pair = HEAD_DIM / 2 * row + 4 * j + lane % 4;  // the number of a pair in the tile
            // Gap 2: rows are read by the map below. Write them by the same one.
            pair = place(row, j) / 2 + lane % 4;  //!
            s_pairs[pair] = __floats2half2_rn(r_O[j][2 * h], r_O[j][2 * h + 1]);
        }
    }
    __syncwarp();  // the rows are whole before a lane reads what others wrote

    for (int e = lane; e < 16 * CHUNKS; e += 32) {
        const int row = e / CHUNKS;
        const int chunk = e % CHUNKS;
        if (first + row < m) {
            reinterpret_cast<uint4*>(O + (first + row) * HEAD_DIM)[chunk] =
                *reinterpret_cast<const uint4*>(s_O + place(row, chunk));
        }
    }
}
