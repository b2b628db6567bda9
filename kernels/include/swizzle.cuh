// The XOR swizzle. A row of a tile is made of chunks of 16 bytes, eight of which fill the 32 banks.
// If rows are 128 or 256 bytes long, chunk c lies in the same four banks in every row, and eight
// rows that are read at once take turns. Swizzled, it lies in other banks in each of eight rows.

#pragma once

// The place in row `row` that chunk `chunk` is kept at. XOR with a number swaps places in pairs:
// every row keeps all its chunks, and swizzling twice changes nothing.
__device__ __forceinline__ int swizzle(int row, int chunk) {
    return chunk ^ (row % 8);
}
