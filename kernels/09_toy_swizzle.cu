// Swizzles small enough to watch. `turn` transposes a matrix through shared memory: rows go in,
// columns come out. SWIZZLE says where elements lie within their rows meanwhile. With 32 words or 8
// chunks of 16 bytes in a row, a row fills all 32 banks and a column lies in one set of them,
// unless the swizzle spreads it. `phases` reads 16 bytes a lane and shows which lanes are served
// together.
//
// Launch:
//   turn    grid 1, block (SIZE, SIZE)
//   phases  grid 1, block 32

#ifndef ELEMENT
#define ELEMENT float  // [float, float4] an element of the matrix, a word or a chunk of 16 bytes
#endif
#ifndef SIZE
#define SIZE 4  // [4, 8, 32] rows and columns of the matrix
#endif
#ifndef SWIZZLE
#define SWIZZLE XOR  // [NONE, XOR, LATIN, BROKEN, WRITE_ONLY] where elements lie within their rows
#endif
#ifndef STRIDE
#define STRIDE 1  // [0, 1, 2, 3, 4, 5, 6, 7, 8] chunks between one lane and the next in `phases`
#endif

enum Swizzle { NONE, XOR, LATIN, BROKEN, WRITE_ONLY };

// Where in row `row` the element of column `col` lies.
__device__ int place(Swizzle swizzle, int row, int col) {
    switch (swizzle) {
        case XOR:
            return row ^ col;
        case LATIN:
            // Any map will do that has each place once in every row and once in every column.
            return (row + col) % SIZE;
        case BROKEN:
            // Not one to one: row 0 has a single place for all its elements, and keeps one of them.
            return row * col % SIZE;
        default:
            return col;
    }
}

// columns = rows^T, one thread for each element.
extern "C" __global__ void turn(
    const ELEMENT* rows,  // [SIZE, SIZE]
    ELEMENT* columns      // [SIZE, SIZE]
) {
    __shared__ ELEMENT s_rows[SIZE][SIZE];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    // What was put in its place by one map must be looked for by the same map.
    constexpr Swizzle WRITE = SWIZZLE == WRITE_ONLY ? XOR : SWIZZLE;
    constexpr Swizzle READ = SWIZZLE == WRITE_ONLY ? NONE : SWIZZLE;

    s_rows[y][place(WRITE, y, x)] = rows[y * SIZE + x];
    __syncthreads();  // the rows are whole before a thread reads a column across them
    columns[y * SIZE + x] = s_rows[x][place(READ, x, y)];
}

// to[lane] = from[STRIDE * lane]. Eight lanes are served together, a phase: lanes 0-7, 8-15, 16-23
// and 24-31. Within a phase, lanes conflict that read different chunks in the same four banks.
extern "C" __global__ void phases(
    const float4* from,  // [32 * 8]
    float4* to           // [32]
) {
    __shared__ float4 s_from[32 * 8];
    const int lane = threadIdx.x;
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        s_from[32 * i + lane] = from[32 * i + lane];
    }
    __syncwarp();  // the chunks are whole before a lane reads what others wrote
    to[lane] = s_from[STRIDE * lane];
}
