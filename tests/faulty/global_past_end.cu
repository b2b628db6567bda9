// A write past the end of an array, by the last thread: the guard lets one too many in.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    if (t <= n) {
        b[t] = a[0];  // 1
    }
}
