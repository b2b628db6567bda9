// A read of what a thread of another warp wrote, with no barrier between.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];  // 1
    b[t] = s[63 - t];  // 2
}
