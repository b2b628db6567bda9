// A shuffle by lanes that its mask does not name.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    b[t] = __shfl_sync(0x0000ffff, a[t], 3);  // 1
}
