// A loop over tiles without its second barrier: the next tile is written over one that is still
// read.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < n; i += 64) {
        s[t] = a[(t + i) % 64];  // 2
        __syncthreads();
        sum += s[63 - t];  // 1
    }
    b[t] = sum;
}
