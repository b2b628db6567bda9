// __syncwarp() for one half of the warp, and a read across to the other half.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];  // 1
    __syncwarp(t % 32 < 16 ? 0x0000ffff : 0xffff0000);
    b[t] = s[t ^ 16];  // 2
}
