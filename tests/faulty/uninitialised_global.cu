// A read of global memory that nothing has written.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    b[t] = b[t + 64] + a[t];  // 1
}
