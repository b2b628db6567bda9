// The reduction softmax without its third barrier: a sum is written over the maximum before all
// threads have read it.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int h = 32; h > 0; h /= 2) {
        if (t < h) {
            s[t] = fmaxf(s[t], s[t + h]);
        }
        __syncthreads();
    }
    const float largest = s[0];  // 1
    s[t] = expf(a[t] - largest);  // 2
    __syncthreads();
    b[t] = s[63 - t];
}
