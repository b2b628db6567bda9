"""Plausible wrong answers to the exercises of chapters 02 to 05."""

from __future__ import annotations

from exercise_answers import Wrong

WRONG: dict[str, tuple[Wrong, ...]] = {
    "02_scores": (
        Wrong(
            "the block's y for rows as well",
            (("row = blockIdx.x * TILE", "row = blockIdx.y * TILE"),),
            "right",
            ("never written",),
        ),
        Wrong(
            "no guard",
            (("    if (row >= N || col >= N) return;\n", ""),),
            "right",
            ("out-of-bounds read", "guard"),
        ),
        Wrong(
            "guard off by one",
            (("row >= N || col >= N", "row >= N - 1 || col >= N - 1"),),
            "right",
            ("never written", "row"),
        ),
        Wrong(
            "K read as if it were transposed",
            (("K[(size_t)col * d + i]", "K[(size_t)i * N + col]"),),
            "right",
            ("S",),
        ),
        Wrong(
            "the same row of Q and K",
            (("K[(size_t)col * d + i]", "K[(size_t)row * d + i]"),),
            "right",
            ("S[",),
        ),
    ),
    "02_safe_softmax": (
        Wrong("starting from 0", (("    row_max = s[0];\n", ""),), "right", ("NaN", "P")),
        Wrong(
            "without the loop, and far below",
            (("row_max = s[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);",
              "row_max = s[0] - 100.0f;"),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "the largest of the first row",
            (("s[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);",
              "S[0];\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, S[j]);"),),
            "right",
            ("P",),
        ),
        Wrong(
            "one score too many",
            (("for (int j = 1; j < N; j++) row_max", "for (int j = 1; j <= N; j++) row_max"),),
            "right",
            ("out-of-bounds read", "S[1369]"),
        ),
        Wrong(
            "the first score alone",
            (("\n    for (int j = 1; j < N; j++) row_max = fmaxf(row_max, s[j]);", ""),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "without the last score",
            (("j = 1; j < N; j++", "j = 1; j < N - 1; j++"),),
            "right",
            ("column 36", "NaN"),
        ),
    ),
    "03_edges": (
        Wrong(
            "no guard along d",
            (("row < N && i + ty < d ?", "row < N ?"),),
            "right",
            ("out-of-bounds read", "guard"),
        ),
        Wrong(
            "K's tile the other way round",
            (("s_K[tx][ty] = col < N", "s_K[ty][tx] = col < N"),),
            "right",
            ("S[",),
        ),
        Wrong(
            "nothing in place of the zeros",
            (
                ("s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] : 0.0f;",
                 "if (row < N && i + ty < d) s_Q[tx][ty] = Q[(size_t)row * d + i + ty];"),
                ("s_K[tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;",
                 "if (col < N && i + tx < d) s_K[tx][ty] = K[(size_t)col * d + i + tx];"),
            ),
            "right",
            ("nothing has written", "s_"),
        ),
        Wrong(
            "past the tiles",
            (("sum += s_Q[tx][k] * s_K[k][ty];",
              "{ if (row < N && col < N && i + k < d) sum += Q[(size_t)row * d + i + k] *"
              " K[(size_t)col * d + i + k]; }"),),
            "goal",
            ("bytes loaded from global memory", "tiles"),
        ),
    ),
    "03_barriers": (
        Wrong(
            "the first alone",
            (("s_V[k][ty];\n        __syncthreads();", "s_V[k][ty];"),),
            "no race",
            ("s_", "__syncthreads()"),
        ),
        Wrong(
            "the second alone",
            ((": 0.0f;\n        __syncthreads();", ": 0.0f;"),),
            "no race",
            ("s_", "__syncthreads()"),
        ),
        Wrong(
            "for each warp alone",
            ((": 0.0f;\n        __syncthreads();", ": 0.0f;\n        __syncwarp();"),),
            "no race",
            ("race on s_",),
        ),
        Wrong(
            "in the inner loop",
            (
                ("sum += s_P[tx][k] * s_V[k][ty];\n        __syncthreads();",
                 "{ sum += s_P[tx][k] * s_V[k][ty]; __syncthreads(); }"),
            ),
            "goal",
            ("barriers",),
        ),
        Wrong(
            "only where there is an element",
            ((": 0.0f;\n        __syncthreads();",
              ": 0.0f;\n        if (row < N && col < d) __syncthreads();"),),
            "right",
            ("barrier",),
        ),
        Wrong(
            "past the tiles",
            (
                (": 0.0f;\n        __syncthreads();", ": 0.0f;"),
                ("sum += s_P[tx][k] * s_V[k][ty];\n        __syncthreads();",
                 "{ if (row < N && col < d && i + k < N) sum += P[(size_t)row * N + i + k] *"
                 " V[(size_t)(i + k) * d + col]; }"),
            ),
            "goal",
            ("bytes loaded from global memory", "tiles"),
        ),
    ),
    "04_missing_barrier": (
        Wrong(
            "behind the sum's store",
            (
                ("    const float row_max = s_data[0];\n    __syncthreads();\n",
                 "    const float row_max = s_data[0];\n"),
                ("s_data[tid] = local_sum;", "s_data[tid] = local_sum;\n    __syncthreads();"),
            ),
            "no race",
            ("s_data[0]", "__syncthreads()"),
        ),
        Wrong(
            "for a warp alone",
            (("s_data[0];\n    __syncthreads();", "s_data[0];\n    __syncwarp();"),),
            "no race",
            ("s_data[0]",),
        ),
        Wrong(
            "another one besides",
            (("local_sum = 0.0f;", "local_sum = 0.0f;\n    __syncthreads();"),),
            "goal",
            ("barriers",),
        ),
        Wrong(
            "each thread on its own",
            (("const float row_max = s_data[0];\n    __syncthreads();",
              "float row_max = s[0];\n    for (int j = 0; j < N; j++) row_max = "
              "fmaxf(row_max, s[j]);"),),
            "goal",
            ("bytes loaded from global memory", "share a row"),
        ),
        Wrong(
            "atomics",
            (
                ("row_max = s_data[0];\n    __syncthreads();",
                 "row_max = atomicAdd(&s_data[0], 0.0f);"),
                ("s_data[tid] = local_sum;", "atomicExch(&s_data[tid], local_sum);"),
            ),
            "no race",
            ("one warp runs after the other",),
        ),
    ),
    "04_warp_shuffle": (
        Wrong("a level short", (("stride = 16;", "stride = 8;"),), "right", ("M",)),
        Wrong("upwards", (("__shfl_down_sync(~0u", "__shfl_up_sync(~0u"),), "right", ("M",)),
        Wrong(
            "without the lane's own",
            (("fmaxf(m, __shfl_down_sync(~0u, m, stride))", "__shfl_down_sync(~0u, m, stride)"),),
            "right",
            ("M",),
        ),
        Wrong(
            "in shared memory, with no barrier",
            (("m = fmaxf(m, __shfl_down_sync(~0u, m, stride));",
              "if (tid < stride) s_data[tid] = m = fmaxf(s_data[tid], s_data[tid + stride]);"),),
            "no race",
            ("race on s_data", "no barrier"),
        ),
        Wrong(
            "in shared memory",
            (("m = fmaxf(m, __shfl_down_sync(~0u, m, stride));",
              "{ if (tid < stride) s_data[tid] = m = fmaxf(s_data[tid], s_data[tid + stride]);"
              " __syncwarp(); }"),),
            "goal",
            ("shared load instructions", "__shfl_down_sync"),
        ),
    ),
    "05_keep_the_tile": (
        Wrong(
            "Q's tile in the inner loop",
            (
                ("        s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] :"
                 " 0.0f;\n", ""),
                ("            s_K[tx][ty] = ",
                 "            s_Q[tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty] :"
                 " 0.0f;\n            s_K[tx][ty] = "),
            ),
            "goal",
            ("bytes loaded from global memory", "loaded again"),
        ),
        Wrong("one sum for all", (("sum[c] +=", "sum[0] +="),), "right", ("S[",)),
        Wrong(
            "K's tile once",
            (("s_K[tx][ty] = col < N", "if (c == 0) s_K[tx][ty] = col < N"),),
            "right",
            ("S[",),
        ),
        Wrong(
            "Q's tile only once in all",
            (("        s_Q[tx][ty] = row", "        if (i == 0) s_Q[tx][ty] = row"),),
            "right",
            ("S[",),
        ),
    ),
}  # fmt: skip
