// Where the largest score of each row stands: the key that a query looks at most. One warp for each
// row; of equal scores the first counts.
//
// Launch: best_key  grid ceil(N / ROWS), block (32, ROWS)

#ifndef ROWS
#define ROWS 4  // [2, 4, 8] rows for a block, a warp for each
#endif

extern "C" __global__ void best_key(
    const float* S,  // [N, N]
    int* best,       // [N], a column of each row of S
    int N
) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * ROWS + threadIdx.y;
    if (row >= N) return;  // a whole warp at a time
    const float* s = S + (size_t)row * N;

    float m = s[0];
    int at = 0;  // where m stands
    for (int j = lane; j < N; j += 32) {
        if (s[j] > m) {
            m = s[j];
            at = j;
        }
    }
    // Gap: five levels of a tree in registers. A lane takes over m and at of another lane together.
    for (int stride = 16; stride >= 1; stride /= 2) {  //!
        const float other = __shfl_down_sync(0xffffffff, m, stride);  //!
        const int place = __shfl_down_sync(0xffffffff, at, stride);  //!
        if (other > m || (other == m && place < at)) {  //!
            m = other;  //!
            at = place;  //!
        }  //!
    }  //!
    if (lane == 0) best[row] = at;
}
