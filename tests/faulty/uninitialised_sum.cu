// A sum is added up in shared memory that nothing has set to zero.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] += a[t];  // 1
    __syncthreads();
    b[t] = s[63 - t];
}
