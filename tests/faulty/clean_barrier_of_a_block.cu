// A barrier in a branch that a block takes as a whole.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    if (blockIdx.x == 1) {
        __syncthreads();
        b[t] = s[63 - t];
    }
}
