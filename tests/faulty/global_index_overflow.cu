// An index that passes 2^31 and wraps around: it must be computed in 64 bits.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    const int i = (t + n) * 100000000;
    b[t] = a[i];  // 1
}
