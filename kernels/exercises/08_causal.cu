// Causal attention for a chunk of a text, in one kernel, in fp32 and without tensor cores. A server
// reads a long text chunk after chunk. K and V have rows for all n_k tokens so far, and Q and O for
// the last n_q of them. A token sees `window` keys, and the last of them is its own. A thread has a
// row of Q and of O in its registers, and a block walks along K and V in tiles of B_C keys. Weights
// are powers of 2, which a GPU makes faster. e^x is 2^(x log2(e)), so the factor log2(e) goes into
// the scores.
//
// Launch:
//   flash_attention  grid ceil(n_q / 32), block 32

#ifndef HEAD_DIM
#define HEAD_DIM 16  // [4, 8, 16, 32, 64] d, the elements in a row
#endif
#ifndef B_C
#define B_C 16  // [16, 32] rows in a tile of K or V
#endif

__device__ float minus_infinity() {
    return __int_as_float(0xff800000);
}

extern "C" __global__ void flash_attention(
    const float* Q,  // [n_q, HEAD_DIM]
    const float* K,  // [n_k, HEAD_DIM]
    const float* V,  // [n_k, HEAD_DIM]
    float* O,        // [n_q, HEAD_DIM]
    int n_q, int n_k, int window
) {
    __shared__ float s_K[B_C][HEAD_DIM];
    __shared__ float s_V[B_C][HEAD_DIM];
    __shared__ float s_S[B_C][32];  // a column for each thread, with its scores of a tile
    const int tid = threadIdx.x;
    const int first = blockIdx.x * 32;  // the first row of the block
    const int row = first + tid;

    float r_Q[HEAD_DIM];
    float r_O[HEAD_DIM] = {};  // the sum of 2^(score - row_max) times the row of V so far
    float row_sum = 0.0f;      // the sum of 2^(score - row_max) so far
    float row_max = minus_infinity();
    #pragma unroll
    for (int c = 0; c < HEAD_DIM; c++) {
        r_Q[c] = row < n_q ? Q[row * HEAD_DIM + c] : 0.0f;
    }
    int begin = 0;
    int end = n_k;
    // Gap 1: walk from the first to the last key that some row of this block sees, and no further.
    // `end` is the number of the key behind the last one.
    const int ahead = n_k - n_q;  //!
    begin = max(0, ahead + first - window + 1);  //!
    end = min(n_k, ahead + first + 32);  //!
    for (int key = begin; key < end; key += B_C) {
        for (int e = tid; e < B_C * HEAD_DIM; e += 32) {
            const int j = e / HEAD_DIM;
            const int c = e % HEAD_DIM;
            s_K[j][c] = key + j < n_k ? K[(key + j) * HEAD_DIM + c] : 0.0f;
            s_V[j][c] = key + j < n_k ? V[(key + j) * HEAD_DIM + c] : 0.0f;
        }
        __syncthreads();  // the tiles are whole before any thread reads what others copied

        float new_max = row_max;
        for (int j = 0; j < B_C; j++) {
            float score = 0.0f;
            #pragma unroll
            for (int c = 0; c < HEAD_DIM; c++) {
                score += r_Q[c] * s_K[j][c];
            }
            score *= 1.44269504f / sqrtf((float)HEAD_DIM);  // log2(e) / sqrt(d)
            // Gap 2: a key that this row does not see must get no weight.
            const int token = ahead + row;  //!
            if (key + j > token || key + j <= token - window) score = minus_infinity();  //!
            s_S[j][tid] = score;
            new_max = fmaxf(new_max, score);
        }
        // Gap 3: row_sum and r_O belong to the old maximum, row_max. Correct them for new_max. Then
        // look at `weight` below: what is it in a tile where the row sees no key? Prevent it here.
        new_max = fmaxf(new_max, -1e30f);  //!
        const float correction = exp2f(row_max - new_max);  //!
        row_sum *= correction;  //!
        #pragma unroll  //!
        for (int c = 0; c < HEAD_DIM; c++) r_O[c] *= correction;  //!
        row_max = new_max;

        for (int j = 0; j < B_C; j++) {
            const float weight = exp2f(s_S[j][tid] - row_max);
            row_sum += weight;
            #pragma unroll
            for (int c = 0; c < HEAD_DIM; c++) {
                r_O[c] += weight * s_V[j][c];
            }
        }
        __syncthreads();  // all threads are done with the tiles before others replace them
    }
    if (row < n_q) {
        #pragma unroll
        for (int c = 0; c < HEAD_DIM; c++) {
            O[row * HEAD_DIM + c] = r_O[c] / row_sum;
        }
    }
}
