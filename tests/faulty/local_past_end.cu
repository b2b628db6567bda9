// A read past the end of a thread's local array.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    float r[4];
    for (int i = 0; i < 4; i++) {
        r[i] = a[(t + i) % 64];
    }
    b[t] = r[(int)a[t] % 8];  // 1
}
