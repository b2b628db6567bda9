// A read in front of an array, by the first thread.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    b[t] = a[t - 1];  // 1
}
