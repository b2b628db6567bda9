// b = a squared, element by element, with few threads: 2 blocks of 64, however large n is.
//
// Launch: squares  grid 2, block 64

extern "C" __global__ void squares(
    const float* a,  // [n]
    float* b,        // [n]
    int n
) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;

    // Gap: this thread's elements; `first` is the first of them.
    const int step = gridDim.x * blockDim.x;                   //!
    for (int i = first; i < n; i += step) b[i] = a[i] * a[i];  //!
}
