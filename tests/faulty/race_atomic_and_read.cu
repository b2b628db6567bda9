// Atomic additions, and a read of the sum with no barrier between.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    if (t == 0) {
        s[0] = 0.0f;
    }
    __syncthreads();
    atomicAdd(&s[0], a[t]);  // 1
    b[t] = s[0];  // 2
}
