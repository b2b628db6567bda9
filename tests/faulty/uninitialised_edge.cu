// The last words of shared memory are read, but the guard leaves them unwritten.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    if (t < 60) {
        s[t] = a[t];
    }
    __syncthreads();
    b[t] = s[63 - t];  // 1
}
