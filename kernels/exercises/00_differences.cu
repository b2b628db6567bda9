// d[i] = how much larger element i + 1 of a is than element i. One thread for each difference, and
// there is one difference less than there are elements.
//
// Launch: differences  grid ceil(n / 64), block 64

extern "C" __global__ void differences(
    const float* a,  // [n]
    float* d,        // [n - 1]
    int n
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    // Gap: the difference of this thread, if it has one.
    if (i < n - 1) d[i] = a[i + 1] - a[i];  //!
}
