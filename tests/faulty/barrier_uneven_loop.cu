// A barrier in a loop that the warps run through a different number of times.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    for (int i = 0; i <= t / 32; i++) {
        __syncthreads();  // 1
    }
    b[t] = s[t];
}
