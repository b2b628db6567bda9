// A load of four floats whose last ones lie past the end of the array.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    if (4 * t < n) {
        const float4 v = *(const float4*)(a + 4 * t);  // 1
        b[t] = v.x + v.y + v.z + v.w;
    }
}
