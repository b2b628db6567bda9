"""Plausible wrong answers to the exercises of chapters 02 to 05."""

from __future__ import annotations

from exercise_answers import Wrong

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
    ),
}  # fmt: skip
