// Mean and variance of each row in one pass, as a layer norm needs them: one block for each row.
//
// Launch: moments  grid N, block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 96  // [96, 160, 224] threads in a block: whole warps, and no power of two
#endif

extern "C" __global__ void moments(
    const float* X,   // [N, d]
    float* mean,      // [N]
    float* variance,  // [N]
    int N, int d
) {
    __shared__ float s_sum[BLOCK_SIZE];      // of x - shift
    __shared__ float s_squares[BLOCK_SIZE];  // of (x - shift) * (x - shift)
    const int tid = threadIdx.x;
    const int row = blockIdx.x;
    const float* x = X + (size_t)row * d;
    const float shift = x[0];  // keeps what is squared near 0, and fp32 exact enough

    float local_sum = 0.0f, local_squares = 0.0f;
    // Gap: one pass over the row, then one tree for both sums, of any number of words.
    for (int j = tid; j < d; j += BLOCK_SIZE) {  //!
        local_sum += x[j] - shift;  //!
        local_squares += (x[j] - shift) * (x[j] - shift);  //!
    }  //!
    s_sum[tid] = local_sum;  //!
    s_squares[tid] = local_squares;  //!
    __syncthreads();  //!
    for (int n = BLOCK_SIZE; n > 1; n = (n + 1) / 2) {  //!
        if (tid < n / 2) s_sum[tid] += s_sum[tid + (n + 1) / 2];  //!
        if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2];  //!
        __syncthreads();  //!
    }  //!

    if (tid == 0) {
        const float a = s_sum[0] / d, b = s_squares[0] / d;
        mean[row] = shift + a;
        variance[row] = b - a * a;
    }
}
