// Attention in parts. For a few rows of Q a kernel has too few blocks, so the keys are shared out:
// each part of them goes to a block of its own. For each row of Q it leaves a maximum, a sum and a
// row, and this kernel makes O of them. Only the last part may have no key: then it left minus
// infinity and zeros.
//
// Launch:
//   merge  grid n, block HEAD_DIM

#ifndef HEAD_DIM
#define HEAD_DIM 32  // [32, 64] d, the elements in a row
#endif

__device__ float minus_infinity() {
    return __int_as_float(0xff800000);
}

extern "C" __global__ void merge(
    const float* M,  // [parts, n] the largest score of a part
    const float* L,  // [parts, n] the sum of exp(score - that largest score)
    const float* A,  // [parts, n, HEAD_DIM] the sum of exp(score - it) times the row of V
    float* O,        // [n, HEAD_DIM]
    int n, int parts
) {
    const int row = blockIdx.x;
    const int c = threadIdx.x;
    float row_max = minus_infinity();
    float row_sum = 0.0f;
    float out = 0.0f;
    for (int part = 0; part < parts; part++) {
        const float m = M[part * n + row];
        const float l = L[part * n + row];
        const float a = A[(part * n + row) * HEAD_DIM + c];
        // Gap: take this part into row_max, row_sum and out. Each part has a maximum of its own.
        const float new_max = fmaxf(row_max, m);  //!
        const float before = expf(row_max - new_max);  //!
        const float now = expf(m - new_max);  //!
        row_sum = before * row_sum + now * l;  //!
        out = before * out + now * a;  //!
        row_max = new_max;  //!
    }
    O[row * HEAD_DIM + c] = out / row_sum;
}
