// The softmax of 02_naive.cu with one block for each row instead of one thread: every thread
// reduces a part of the row in a register, and a tree over shared memory joins the parts.
//
// All matrices are fp32 and row-major: S and P are N x N.
//
// Launch:
//   softmax  grid N, block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256  // [64, 128, 256, 512, 1024] threads in a block of softmax, a power of two
#endif

// P = softmax(S) along rows: one block for each row.
extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    __shared__ float s_data[BLOCK_SIZE];  // one partial result for each thread
    const int row = blockIdx.x;
    const int tid = threadIdx.x;
    const float* s = S + (size_t)row * N;
    float* p = P + (size_t)row * N;

    // With the largest score subtracted, no exponent
    // is above 0 and expf cannot overflow.
    float local_max = s[0];  // also right for a thread that has no element of its own
    for (int j = tid; j < N; j += BLOCK_SIZE) {
        local_max = fmaxf(local_max, s[j]);
    }
    s_data[tid] = local_max;
    __syncthreads();  // all maxima are there before a thread reads another's
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) {
            s_data[tid] = fmaxf(s_data[tid], s_data[tid + stride]);
        }
        __syncthreads();  // this level of the tree is whole before the next one reads it
    }
    const float row_max = s_data[0];
    __syncthreads();  // all threads have read the maximum before s_data[0] takes a sum

    float local_sum = 0.0f;
    for (int j = tid; j < N; j += BLOCK_SIZE) {
        local_sum += expf(s[j] - row_max);
    }
    s_data[tid] = local_sum;
    __syncthreads();  // all sums are there before a thread reads another's
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) {
            s_data[tid] += s_data[tid + stride];
        }
        __syncthreads();  // this level of the tree is whole before the next one reads it
    }
    const float row_sum = s_data[0];

    for (int j = tid; j < N; j += BLOCK_SIZE) {
        p[j] = expf(s[j] - row_max) / row_sum;
    }
}
