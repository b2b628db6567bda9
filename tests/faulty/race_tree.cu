// A reduction with no barrier between the levels of its tree.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int h = 32; h > 0; h /= 2) {
        if (t < h) {
            s[t] += s[t + h];  // 1 2
        }
    }
    __syncthreads();
    b[t] = s[0];
}
