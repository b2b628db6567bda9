// Threads of one warp wait at two different barriers.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    if (t < 20) {
        s[t] = a[t];
        __syncthreads();  // 1
    } else {
        s[t] = -a[t];
        __syncthreads();  // 2
    }
    b[t] = s[63 - t];
}
