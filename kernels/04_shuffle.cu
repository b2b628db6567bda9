// The largest of 32 numbers, found by one warp in its registers: no shared memory and no barrier.
//
// Launch:
//   warp_max  grid 1, block 32

extern "C" __global__ void warp_max(
    const float* x,  // [32]
    float* held      // [6, 32]: what each lane holds at first, and after each of five levels
) {
    const int lane = threadIdx.x;
    float m = x[lane];
    held[lane] = m;
    for (int stride = 16; stride >= 1; stride /= 2) {
        held += 32;
        m = fmaxf(m, __shfl_down_sync(0xffffffff, m, stride));
        held[lane] = m;
    }
}
