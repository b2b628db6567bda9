// All threads write the same value to one word, and read it after a barrier.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[0] = 7.0f;
    __syncthreads();
    b[t] = s[0] + a[t];
}
