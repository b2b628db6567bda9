"""Chapter 04, the reduction: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from exercise_answers import Wrong
from mutants.targets import Trial, softmaxes

from helpers.problem.problem import Problem

WRONG: dict[str, tuple[Wrong, ...]] = {
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
            "under an if",
            (("m = fmaxf(m, __shfl_down_sync(~0u, m, stride));",
              "if (tid < stride) m = fmaxf(m, __shfl_down_sync(~0u, m, stride));"),),
            "right",  # lanes that take no part give 0 (see tests/simulator/observe/test_fences.py)
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
