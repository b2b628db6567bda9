// Two threads of different warps write different values to one word.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = 0.0f;
    __syncthreads();
    s[t % 32] = a[t];  // 1 2
    __syncthreads();
    b[t] = s[t];
}
