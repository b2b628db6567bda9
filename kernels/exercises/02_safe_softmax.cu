// P = softmax(S) along rows, one thread for each row. It is right as long as scores are small.
//
// Launch: softmax  grid ceil(N / BLOCK_SIZE), block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 64  // [64, 128, 256] threads in a block, one for each row
#endif

extern "C" __global__ void softmax(
    const float* S,  // [N, N]
    float* P,        // [N, N]
    int N
) {
    const int row = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (row >= N) return;
    const float* s = S + (size_t)row * N;
    float* p = P + (size_t)row * N;

    // Gap: the row's largest score.
    float row_max = 0.0f;
    row_max = s[0];  //!
    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);  //!

    float row_sum = 0.0f;
    for (int j = 0; j < N; j++) row_sum += expf(s[j] - row_max);
    for (int j = 0; j < N; j++) p[j] = expf(s[j] - row_max) / row_sum;
}
