// The two halves of a warp synchronise apart, each with a mask that names it.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = a[t];
    if (t % 32 < 16) {
        __syncwarp(0x0000ffff);
        b[t] = s[t ^ 8];
    } else {
        __syncwarp(0xffff0000);
        b[t] = s[t ^ 4];
    }
}
