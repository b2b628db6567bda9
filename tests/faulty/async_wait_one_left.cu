// The wait leaves the newest group under way, which is the one that is read.
extern "C" __global__ void k(const float* a, float* b, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 ::"r"(to), "l"(a + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    const unsigned next = to + 256;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 ::"r"(next), "l"(a + t) : "memory");  // 1
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    b[t] = s[127 - t];  // 2
}
