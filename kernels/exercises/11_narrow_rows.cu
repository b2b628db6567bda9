// S = A B^T by wgmma, for tiles with rows of 64 bytes. TMA would swizzle them in its 64-byte mode;
// here threads put each chunk of 16 bytes where TMA would.
//
// Launch:
//   scores  grid batches, block 128

#include "hopper.cuh"

constexpr int ROWS = 64;
constexpr int WIDTH = 32;  // elements in a row: 64 bytes, 4 chunks

// A descriptor for the 64-byte swizzle. `group_stride`: bytes from eight rows to the next eight.
__device__ unsigned long long describe_64(const half* s_tile, int group_stride) {
    return describe(s_tile, group_stride) ^ 3ull << 62;
}

// Where in a tile chunk `chunk` of row `row` begins, in elements. Bytes 0 to 127 of the tile, rows
// 0 and 1, keep their order. In the next 128 bytes chunks change places by XOR with 1, then with 2,
// with 3, and from the start.
__device__ int place(int row, int chunk) {
    int moved = chunk;
    // Gap 1: which of the four places of its row does the chunk take?
    moved = chunk ^ row / 2 % 4;  //!
    return row * WIDTH + 8 * moved;
}

extern "C" __global__ void scores(
    const half* A,  // [batches, ROWS, WIDTH]
    const half* B,  // [batches, ROWS, WIDTH]
    float* S        // [batches, ROWS, ROWS]
) {
    __shared__ __align__(1024) half s_A[ROWS * WIDTH];
    __shared__ __align__(1024) half s_B[ROWS * WIDTH];
    const long long tile = (long long)blockIdx.x * ROWS * WIDTH;
    for (int c = threadIdx.x; c < ROWS * WIDTH / 8; c += 128) {
        const int row = c / 4, chunk = c % 4;
        *reinterpret_cast<uint4*>(s_A + place(row, chunk)) =
            *reinterpret_cast<const uint4*>(A + tile + 8 * c);
        *reinterpret_cast<uint4*>(s_B + place(row, chunk)) =
            *reinterpret_cast<const uint4*>(B + tile + 8 * c);
    }
    fence_async();  // wgmma finds what this thread has stored
    __syncthreads();

    float r_S[8][4] = {};
    wgmma_fence(r_S);
    for (int k = 0; k < WIDTH / 16; k++) {
        // A step of the product takes 16 columns of both tiles.
        int column = 0, group_stride = 1024;
        // Gap 2: in which column does step k begin, and how far apart are groups of eight rows?
        column = 16 * k;  //!
        group_stride = 8 * WIDTH * 2;  //!
        wgmma<half, false>(r_S, describe_64(s_A + column, group_stride),
                           describe_64(s_B + column, group_stride), k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>(r_S);

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 4; i++) {
            const int row = 16 * warp + 8 * (i / 2) + lane / 4;
            S[(long long)blockIdx.x * ROWS * ROWS + row * ROWS + 8 * j + 2 * (lane % 4) + i % 2] =
                r_S[j][i];
        }
    }
}
