// A load of two floats at an odd index.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    if (t < 8) {
        const float2 v = *(const float2*)(a + 2 * t + 1);  // 1
        b[t] = v.x + v.y;
    }
}
