// columns = rows^T for matrices of 8 x 8 chunks of 16 bytes, through shared memory. A row of a
// matrix fills all the banks, and the chunks of a column lie in the same four.
//
// Launch:
//   turn  grid of as many blocks as matrices, block (8, 8)

// Where in row `row` of the matrix the chunk of column `col` lies.
__device__ int place(int row, int col) {
    int where = col;
    // Gap: choose places of your own, 0 ... 7, so that neither rows nor columns conflict.
    where = row ^ col;  //!
    return where;
}

extern "C" __global__ void turn(
    const float4* rows,  // [matrices, 8, 8]
    float4* columns      // [matrices, 8, 8]
) {
    __shared__ float4 s_rows[8][8];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int first = blockIdx.x * 64;
    s_rows[y][place(y, x)] = rows[first + 8 * y + x];
    __syncthreads();  // the rows are whole before a thread reads a column across them
    columns[first + 8 * y + x] = s_rows[x][place(x, y)];
}
