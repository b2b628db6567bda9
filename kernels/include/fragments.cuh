// Where the four floats of C lie that a lane holds for mma_m16n8k16 ("Matrix Fragments for
// mma.m16n8k16 with floating point type" in the PTX ISA manual).

#pragma once

// The row of C, 0 to 15, that register `i` of the lane is for.
__device__ __forceinline__ int fragment_row(int lane, int i) {
    return lane / 4 + 8 * (i / 2);
}

// Its column of C, 0 to 7.
__device__ __forceinline__ int fragment_column(int lane, int i) {
    return 2 * (lane % 4) + i % 2;
}
