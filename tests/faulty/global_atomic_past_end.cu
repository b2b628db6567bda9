// An atomic addition past the end of an array.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    atomicAdd(&b[t + 1], a[t]);  // 1
}
