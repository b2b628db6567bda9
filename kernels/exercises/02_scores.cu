// S = Q K^T / sqrt(d) with a mask: token `row` sees itself and the tokens before it, and no other.
// One thread for each element, at any N and d.
//
// Launch: scaled_dot_product  grid (ceil(N / TILE), ceil(N / TILE)), block (TILE, TILE)

#ifndef TILE
#define TILE 16  // [8, 16, 32] threads along each edge of a block
#endif

#define MINUS_INFINITY __int_as_float(0xff800000)  // NVRTC has no name for it

extern "C" __global__ void scaled_dot_product(
    const float* Q,  // [N, d]
    const float* K,  // [N, d]
    float* S,        // [N, N]
    int N, int d
) {
    int row = blockIdx.x * TILE + threadIdx.x;
    int col = blockIdx.y * TILE + threadIdx.y;
    if (row >= N || col >= N) return;

    // Gap: an element that must not be seen is MINUS_INFINITY, and needs no product.
    if (col > row) {                                //!
        S[(size_t)row * N + col] = MINUS_INFINITY;  //!
        return;                                     //!
    }                                               //!

    float sum = 0.0f;
    for (int i = 0; i < d; i++) {
        sum += Q[(size_t)row * d + i] * K[(size_t)col * d + i];
    }
    S[(size_t)row * N + col] = sum / sqrtf((float)d);
}
