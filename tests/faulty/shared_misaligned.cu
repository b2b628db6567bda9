// A load of four floats from rows of 17 floats.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[64][17];
    const int t = threadIdx.x;
    for (int i = 0; i < 17; i++) {
        s[t][i] = a[t];
    }
    __syncthreads();
    const float4 v = *(const float4*)&s[63 - t][4];  // 1
    b[t] = v.x + v.y + v.z + v.w;
}
