// R[j] = what the other tokens give to token j: the sum of column j of P, without its own weight.
// One thread for each column.
//
// Launch: received  grid ceil(N / BLOCK_SIZE), block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 64  // [64, 128, 256] threads in a block, one for each column
#endif

extern "C" __global__ void received(
    const float* P,  // [N, N], the weights: row i says where token i looks
    float* R,        // [N]
    int N
) {
    const int j = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (j >= N) return;

    float sum = 0.0f;
    // Gap: the weights that the other tokens give to token j.
    for (int i = 0; i < N; i++) {                 //!
        if (i != j) sum += P[(size_t)i * N + j];  //!
    }                                             //!
    R[j] = sum;
}
