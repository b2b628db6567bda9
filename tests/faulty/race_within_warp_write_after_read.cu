// A write over what another lane of the warp may still read.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    __syncwarp();
    const float v = s[t ^ 1];  // 1
    s[t] = v;  // 2
    __syncwarp();
    b[t] = s[t];
}
