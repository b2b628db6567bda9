// A first kernel: c = a + b, one thread for each element.
//
// Launch: 1-D blocks of any size up to 1024 threads, and enough of them for n threads:
//         grid = ceil(n / block). The last block may reach past the end, hence the test.
// Parameters: none.

extern "C" __global__ void vector_add(
    const float* a,  // [n]
    const float* b,  // [n]
    float* c,        // [n]
    int n
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
