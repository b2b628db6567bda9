// All threads of all blocks add to a few words, with atomics.
extern "C" __global__ void k(const float* a, float* b, int n) {
    const int t = threadIdx.x;
    atomicAdd(&b[t % 4], a[t]);
}
