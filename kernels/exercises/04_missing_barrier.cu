// A softmax that is passed around, with one block for each row. It lacks a barrier.
//
// Launch: softmax  grid N, block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 128  // [64, 128, 256] threads in a block, a power of two
#endif

extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    __shared__ float s_data[BLOCK_SIZE];
    const int tid = threadIdx.x;
    const float* s = S + (size_t)blockIdx.x * N;

    float local_max = s[0];
    for (int j = tid; j < N; j += BLOCK_SIZE) local_max = fmaxf(local_max, s[j]);
    s_data[tid] = local_max;
    __syncthreads();
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) s_data[tid] = fmaxf(s_data[tid], s_data[tid + stride]);
        __syncthreads();
    }
    const float row_max = s_data[0];
    __syncthreads();  //!

    float local_sum = 0.0f;
    for (int j = tid; j < N; j += BLOCK_SIZE) local_sum += expf(s[j] - row_max);
    s_data[tid] = local_sum;
    __syncthreads();
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) s_data[tid] += s_data[tid + stride];
        __syncthreads();
    }
    const float row_sum = s_data[0];

    float* p = P + (size_t)blockIdx.x * N;
    for (int j = tid; j < N; j += BLOCK_SIZE) p[j] = expf(s[j] - row_max) / row_sum;
}
