// An asynchronous copy of 16 bytes to an address that is no multiple of 16.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ __align__(16) float s[80];
    const int t = threadIdx.x;
    if (t < 16) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t + 1]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(to), "l"(a + 4 * t) : "memory");  // 1
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    b[t] = s[t + 1];
}
