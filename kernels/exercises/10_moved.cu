// O = softmax(S) V in one pass, with the scores given: a warp for each row. A lane has one of 32
// scores at a time, and one column of O. Scores are powers of two already, multiplied by log2(e).
//
// Launch:
//   softmax_rows  grid m, block 32

#include "ptx.cuh"

constexpr int HEAD_DIM = 32;

extern "C" __global__ void softmax_rows(
    const float* S,  // [m, n]
    const float* V,  // [n, HEAD_DIM]
    float* O,        // [m, HEAD_DIM]
    int n
) {
    const int lane = threadIdx.x;
    const float* s = S + blockIdx.x * n;
    float row_max = minus_infinity();  // what weights so far are relative to, in all lanes alike
    float row_sum = 0.0f;              // this lane's part of the sum of 2^(score - row_max)
    float r_O = 0.0f;                  // the sum of 2^(score - row_max) times the row of V
    for (int key = 0; key < n; key += 32) {
        const float score = key + lane < n ? s[key + lane] : minus_infinity();
        // Gap: where one of the 32 scores is above row_max, let the row take a new maximum, and
        // correct what was added up so far. Where none is, do none of it: neither look for a
        // maximum nor multiply. `any_lane(condition)` asks all lanes at once.
        if (any_lane(score > row_max)) {  //!
            float new_max = fmaxf(row_max, score);  //!
            for (int mask = 16; mask > 0; mask /= 2) {  //!
                new_max = fmaxf(new_max, shuffle_xor(new_max, mask));  //!
            }  //!
            const float correction = exp2f(row_max - new_max);  //!
            row_sum *= correction;  //!
            r_O *= correction;  //!
            row_max = new_max;  //!
        }  //!
        const float weight = exp2f(score - row_max);
        row_sum += weight;
        for (int j = 0; j < 32 && key + j < n; j++) {
            r_O += __shfl_sync(0xffffffffu, weight, j) * V[(key + j) * HEAD_DIM + lane];
        }
    }
    for (int mask = 16; mask > 0; mask /= 2) row_sum += shuffle_xor(row_sum, mask);
    O[blockIdx.x * HEAD_DIM + lane] = r_O / row_sum;
}
