// __syncwarp() by lanes that its mask does not name.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    __syncwarp(0x0000ffff);  // 1
    b[t] = s[t];
}
