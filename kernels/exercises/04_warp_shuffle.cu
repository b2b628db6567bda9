// The largest score of each row, one block for each. The last 32 partial maxima lie in one warp,
// which needs neither shared memory nor barriers to join them.
//
// Launch: row_max  grid N, block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 128  // [64, 128, 256] threads in a block, a power of two
#endif

extern "C" __global__ void row_max(
    const float* S,  // [N, N]
    float* M,        // [N], the largest element of each row
    int N
) {
    __shared__ float s_data[BLOCK_SIZE];
    const int tid = threadIdx.x;
    const float* s = S + (size_t)blockIdx.x * N;

    float local_max = s[0];
    for (int j = tid; j < N; j += BLOCK_SIZE) local_max = fmaxf(local_max, s[j]);
    s_data[tid] = local_max;
    __syncthreads();
    for (int stride = BLOCK_SIZE / 2; stride >= 32; stride /= 2) {
        if (tid < stride) s_data[tid] = fmaxf(s_data[tid], s_data[tid + stride]);
        __syncthreads();
    }
    if (tid < 32) {
        float m = s_data[tid];
        // Gap: five levels of the tree in registers, with __shfl_down_sync.
        for (int stride = 16; stride >= 1; stride /= 2) {    //!
            m = fmaxf(m, __shfl_down_sync(~0u, m, stride));  //!
        }                                                    //!
        if (tid == 0) M[blockIdx.x] = m;
    }
}
