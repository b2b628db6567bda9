// S = K q / sqrt(d): the scores of one new token with all tokens before it, as it takes them to
// write a text. A block has 64 keys. Its threads copy their rows together, and then each one has a
// key of its own.
//
// Launch:
//   scores  grid ceil(n / 64), block 64

#include "ptx.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 32  // [32, 64] d, the elements in a row
#endif

constexpr int CHUNKS = HEAD_DIM / 4;  // chunks of 4 elements, 16 bytes, in a row

extern "C" __global__ void scores(
    const float* K,  // [n, HEAD_DIM]
    const float* q,  // [HEAD_DIM]
    float* S,        // [n]
    int n
) {
    __shared__ float4 s_K[64][CHUNKS + 1];  // padded by a chunk
    const int tid = threadIdx.x;
    const int first = blockIdx.x * 64;
    for (int e = tid; e < 64 * CHUNKS; e += 64) {
        const int row = e / CHUNKS;
        const int chunk = e % CHUNKS;
        const float* from = K + (first + row) * HEAD_DIM + 4 * chunk;
        // Gap 1: start the copy of a chunk of K to s_K. Rows from n on become zeros.
        cp_async_16(&s_K[row][chunk], from, first + row < n ? 16 : 0);  //!
    }
    // Gap 2: what has to happen before a thread reads what it and others have copied?
    cp_async_commit();  //!
    cp_async_wait<0>();  //!
    __syncthreads();  //!

    float sum = 0.0f;
    #pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const float4 k = s_K[tid][c];
        sum += k.x * q[4 * c] + k.y * q[4 * c + 1] + k.z * q[4 * c + 2] + k.w * q[4 * c + 3];
    }
    if (first + tid < n) {
        S[first + tid] = sum / sqrtf((float)HEAD_DIM);
    }
}
