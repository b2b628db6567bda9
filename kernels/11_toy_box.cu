// Lets TMA copy boxes of an array to shared memory, swizzled, and gives them out as they lie there.
//
// Launch:
//   show_boxes  grid 1, block 32

#include "hopper.cuh"

#ifndef BOXES
#define BOXES 1  // [1, 2] boxes side by side: a row of the array has 128 bytes for each
#endif

constexpr int ROWS = 16;   // of a box
constexpr int PANEL = 64;  // elements in a row of a box, 128 bytes

extern "C" __global__ void show_boxes(
    const __grid_constant__ TensorMap X,  // [1, 1, ROWS, BOXES * PANEL], boxes [1, 1, ROWS, PANEL]
    half* shared                          // [BOXES, ROWS, PANEL]
) {
    __shared__ __align__(1024) half s_box[BOXES * ROWS * PANEL];
    __shared__ Mbarrier full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_async();  // TMA finds the mbarrier
        mbarrier_expect(&full, sizeof(s_box));
        for (int box = 0; box < BOXES; box++) {
            tma_load(s_box + box * ROWS * PANEL, X, &full, box * PANEL, 0, 0, 0);
        }
    }
    __syncwarp();  // the mbarrier is made before others wait at it
    mbarrier_wait(&full, 0);
    for (int i = threadIdx.x; i < BOXES * ROWS * PANEL; i += 32) {
        shared[i] = s_box[i];
    }
}
