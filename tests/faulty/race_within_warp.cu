// A read of what another lane of the warp wrote: __syncwarp() is missing.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];  // 1
    b[t] = s[t ^ 1];  // 2
}
