// A write through a null pointer.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    float* p = (float*)(size_t)(n - 64);
    p[t] = a[t];  // 1
}
