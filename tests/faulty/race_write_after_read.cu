// A write over what a thread of another warp still reads: a second barrier is missing.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    const float v = s[63 - t];  // 1
    s[t] = v;  // 2
    __syncthreads();
    b[t] = s[t];
}
