// A read of what another thread of the block wrote to global memory, with no barrier between.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    b[t] = a[t];  // 1
    b[t + 64] = b[63 - t];  // 2
}
