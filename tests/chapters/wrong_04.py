"""Chapter 04, the reduction: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from exercise_answers import Wrong
from mutants.targets import Trial, softmaxes

from helpers.problem.problem import Problem

_LATE = "p[j] = expf(s[j] - row_max) / row_sum;\n        __syncthreads();\n"
_PAIR = "if (other > m || (other == m && place < at)) {"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "04_rows_in_turn": (
        Wrong(
            "no barrier more",
            ((_LATE, "p[j] = expf(s[j] - row_max) / row_sum;\n"),),
            "no race",
            ("s_data[0]",),
        ),
        Wrong(
            "for a warp alone",
            ((_LATE, "p[j] = expf(s[j] - row_max) / row_sum;\n        __syncwarp();\n"),),
            "no race",
            ("s_data[0]",),
        ),
        Wrong(
            "a barrier at another place",
            (
                (_LATE, "p[j] = expf(s[j] - row_max) / row_sum;\n"),
                ("local_sum = 0.0f;", "local_sum = 0.0f;\n        __syncthreads();"),
            ),
            "no race",
            ("s_data[0]",),
        ),
        Wrong(
            "two barriers more",
            (("float local_max = s[0];", "float local_max = s[0];\n        __syncthreads();"),),
            "goal",
            ("barriers",),
        ),
        Wrong(
            "blocks overlap",
            (("blockIdx.x * ROWS + r", "blockIdx.x + r"),),
            "right",
            ("The blocks overlap",),
        ),
        Wrong(
            "the turn forgotten",
            (("blockIdx.x * ROWS + r", "blockIdx.x * ROWS"),),
            "right",
            ("only every ROWS-th row",),
        ),
        Wrong("no guard", (("        if (row >= N) break;\n", ""),), "right", ("out-of-bounds",)),
        Wrong(
            "the last row left out",
            (("row >= N", "row >= N - 1"),),
            "right",
            ("The last row is left out",),
        ),
    ),
    "04_moments": (
        Wrong(
            "the square of the sum",
            (
                ("        local_squares += (x[j] - shift) * (x[j] - shift);\n", ""),
                ("s_squares[tid] = local_squares;", "s_squares[tid] = local_sum * local_sum;"),
            ),
            "right",
            ("square of a thread's sum",),
        ),
        Wrong(
            "squares without the shift",
            (("(x[j] - shift) * (x[j] - shift)", "x[j] * x[j]"),),
            "right",
            ("the shift is not taken off",),
        ),
        Wrong("a level short", (("n > 1;", "n > 2;"),), "right", ("The last level",)),
        Wrong(
            "the chapter's tree",
            (
                ("int n = BLOCK_SIZE; n > 1; n = (n + 1) / 2",
                 "int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2"),
                ("if (tid < n / 2) s_sum[tid] += s_sum[tid + (n + 1) / 2]",
                 "if (tid < stride) s_sum[tid] += s_sum[tid + stride]"),
                ("if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2]",
                 "if (tid < stride) s_squares[tid] += s_squares[tid + stride]"),
            ),
            "right",
            ("odd number of words loses one",),
        ),
        Wrong("one number each", (("j += BLOCK_SIZE", "j += d"),), "right", ("takes one number",)),
        Wrong(
            "no barrier before a level",
            (("local_squares;\n    __syncthreads();", "local_squares;"),),
            "no race",
            ("race on s_sum",),
        ),
        Wrong(
            "a tree for each sum",
            (
                ("        if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2];\n"
                 "        __syncthreads();\n    }\n",
                 "        __syncthreads();\n    }\n"
                 "    for (int n = BLOCK_SIZE; n > 1; n = (n + 1) / 2) {\n"
                 "        if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2];\n"
                 "        __syncthreads();\n    }\n"),
            ),
            "goal",
            ("barriers",),
        ),
        Wrong(
            "two passes",
            (
                ("        local_squares += (x[j] - shift) * (x[j] - shift);\n    }\n",
                 "    }\n    for (int j = tid; j < d; j += BLOCK_SIZE) {\n"
                 "        local_squares += (x[j] - shift) * (x[j] - shift);\n    }\n"),
            ),
            "goal",
            ("bytes loaded from global memory",),
        ),
    ),
    "04_best_key": (
        Wrong(
            "the number of a lane for its place",
            (("place = __shfl_down_sync(0xffffffff, at, stride)", "place = lane + stride"),),
            "right",
            ("The number of a lane is taken for a place",),
        ),
        Wrong("the place stays", (("            at = place;\n", ""),), "right", ("its own place",)),
        Wrong(
            "equal scores forgotten",
            ((_PAIR, "if (other > m) {"),),
            "right",
            ("the lower lane's stays",),
        ),
        Wrong("equal scores taken", ((_PAIR, "if (other >= m) {"),), "right", ("the higher lane",)),
        Wrong("a level short", (("stride >= 1;", "stride > 1;"),), "right", ("The last level",)),
        Wrong("from 8 on", (("stride = 16", "stride = 8"),), "right", ("A level of the tree",)),
        Wrong(
            "the maximum first",
            (
                ("(0xffffffff, m, stride);",
                 "(0xffffffff, m, stride);\n        m = fmaxf(m, other);"),
                (_PAIR, "if (other > m) {"),
            ),
            "right",
            ("its own place",),
        ),
        Wrong(
            "under an if",
            (
                ("stride /= 2) {", "stride /= 2) {\n        if (lane >= stride) continue;"),
            ),
            "right",
            ("stands under a condition",),
        ),
        Wrong(
            "in shared memory",
            (
                ("    const int lane = threadIdx.x;\n",
                 "    __shared__ float s_m[ROWS][32];\n    __shared__ int s_at[ROWS][32];\n"
                 "    const int lane = threadIdx.x;\n"),
                ("const float other = __shfl_down_sync(0xffffffff, m, stride);",
                 "s_m[threadIdx.y][lane] = m;\n        s_at[threadIdx.y][lane] = at;\n"
                 "        __syncwarp();\n        const int next = min(lane + stride, 31);\n"
                 "        const float other = s_m[threadIdx.y][next];"),
                ("const int place = __shfl_down_sync(0xffffffff, at, stride);",
                 "const int place = s_at[threadIdx.y][next];\n        __syncwarp();"),
            ),
            "goal",
            ("bytes of shared memory",),
        ),
    ),
}  # fmt: skip


def shuffles(file: str, entry: str) -> Iterator[Trial]:
    """Trials of the five levels: the largest number in each lane once, in the end or the middle."""

    def levels(place: int) -> Problem:
        x = (np.random.default_rng(place).permutation(32) - 50.0).astype(np.float32)
        top = int(x.argmax())
        x[[place, top]] = x[[top, place]]
        held = [x.astype(np.float64)]
        for stride in (16, 8, 4, 2, 1):
            m = held[-1]  # a lane without another above it keeps its own
            held.append(np.maximum(m, np.concatenate([m[stride:], m[-stride:]])))
        inputs = {"x": x, "held": np.empty((6, 32), np.float32)}
        return Problem((), inputs, {"held": np.stack(held)}, 1e-7)

    for place in (31, 5):
        yield Trial(file, entry, {}, f"largest in lane {place}", (1,), (32,), 0,
                    lambda place=place: levels(place))  # fmt: skip


TRIALS = {
    "04_shuffle.cu": shuffles,
    "04_reduction.cu": softmaxes((133, False), (139, True), (37, True), (64, False), (1, True)),
}
