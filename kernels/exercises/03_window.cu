// Y[i] = X[i - RADIUS] + ... + X[i + RADIUS]: the sum of a number and its neighbours.
// Past the ends of X they count as 0. A block takes TURNS stretches of Y, one after the other.
//
// Launch: window_sum  grid ceil(n / (BLOCK_SIZE * TURNS)), block BLOCK_SIZE

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 64  // [64, 128, 256] threads in a block, one for each number of a stretch
#endif
#ifndef TURNS
#define TURNS 2  // [2, 3] stretches for a block
#endif
#define RADIUS 5  // neighbours on either side

extern "C" __global__ void window_sum(
    const float* X,  // [n]
    float* Y,        // [n]
    int n
) {
    __shared__ float s_X[BLOCK_SIZE + 2 * RADIUS];  // X from `start - RADIUS` on
    const int tid = threadIdx.x;

    for (int turn = 0; turn < TURNS; turn++) {
        const int start = (blockIdx.x * TURNS + turn) * BLOCK_SIZE;  // of the stretch
        float sum = 0.0f;
        // Gap: fill s_X together, each word once; add the thread's own window; two barriers.
        for (int j = tid; j < BLOCK_SIZE + 2 * RADIUS; j += BLOCK_SIZE) {  //!
            const int at = start - RADIUS + j;  //!
            s_X[j] = at >= 0 && at < n ? X[at] : 0.0f;  //!
        }  //!
        __syncthreads();  //!
        for (int k = 0; k <= 2 * RADIUS; k++) sum += s_X[tid + k];  //!
        __syncthreads();  //!
        if (start + tid < n) Y[start + tid] = sum;
    }
}
