// P = softmax(S) along rows: a block takes ROWS rows, one after the other.
//
// Launch: softmax  grid ceil(N / ROWS), block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 128  // [64, 128, 256] threads in a block, a power of two
#endif
#ifndef ROWS
#define ROWS 2  // [2, 3, 4] rows for a block
#endif

extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    __shared__ float s_data[BLOCK_SIZE];
    const int tid = threadIdx.x;

    for (int r = 0; r < ROWS; r++) {
        int row = 0;
        // Gap 1: the row of this turn; the last block may have fewer. Gap 2: a barrier, below.
        row = blockIdx.x * ROWS + r;  //!
        if (row >= N) break;  //!
        const float* s = S + (size_t)row * N;
        float* p = P + (size_t)row * N;

        float local_max = s[0];
        for (int j = tid; j < N; j += BLOCK_SIZE) local_max = fmaxf(local_max, s[j]);
        s_data[tid] = local_max;
        __syncthreads();
        for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
            if (tid < stride) s_data[tid] = fmaxf(s_data[tid], s_data[tid + stride]);
            __syncthreads();
        }
        const float row_max = s_data[0];
        __syncthreads();

        float local_sum = 0.0f;
        for (int j = tid; j < N; j += BLOCK_SIZE) local_sum += expf(s[j] - row_max);
        s_data[tid] = local_sum;
        __syncthreads();
        for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
            if (tid < stride) s_data[tid] += s_data[tid + stride];
            __syncthreads();
        }
        const float row_sum = s_data[0];
        for (int j = tid; j < N; j += BLOCK_SIZE) p[j] = expf(s[j] - row_max) / row_sum;
        __syncthreads();  //!
    }
}
