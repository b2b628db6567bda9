"""No exercise is solved by one thread that does the work of all: its goal says so."""

from __future__ import annotations

import pytest

from helpers.exercises import EXERCISES, check, solution

# What the gap of these is about no thread can do for the others, or the skeleton shares it out.
NOT_ABOUT = {
    "06_transpose": "which element a thread stores",
    "07_float2": "a pitch, and two loads of each thread",
    "07_transpose": "a map of places",
    "07_gradient": "loads and sums in each thread's registers",
    "08_causal": "sums in each thread's registers",
    "08_parts": "sums in each thread's registers",
    "08_transposed": "fragments, to which all lanes of a warp belong",
    "09_narrow": "a map of chunks",
    "09_repair": "a map of chunks",
    "10_ahead": "which copies are under way",
    "10_moved": "a vote, to which all lanes of a warp belong",
    "11_phases": "what a producer and its consumers wait for",
    "11_narrow_rows": "a map of chunks",
}
_FILL_P = """for (int j = ty; j < DEPTH; j += COLS) {
            s_P[tx][j] = row < N && i + j < N ? P[(size_t)row * N + i + j] : 0.0f;"""
_FILL_V = """for (int j = tx; j < DEPTH; j += ROWS) {
            s_V[j][ty] = i + j < N && col < d ? V[(size_t)(i + j) * d + col] : 0.0f;"""
_WALK = "for (int j = tid; j < N; j += BLOCK_SIZE)"
_WHOLE = "for (int j = 0; tid == 0 && j < N; j++)"
_PASS = "for (int j = tid; j < d; j += BLOCK_SIZE) {"
_TREE = """for (int n = BLOCK_SIZE; n > 1; n = (n + 1) / 2) {
        if (tid < n / 2) s_sum[tid] += s_sum[tid + (n + 1) / 2];
        if (tid < n / 2) s_squares[tid] += s_squares[tid + (n + 1) / 2];
        __syncthreads();
    }"""
_ONE_FIRST = "if (tx == 0 && ty == 0) for (int a = 0; a < TILE; a++) for (int b = 0; b < TILE; b++)"
_COLUMN = "for (int i = 0; i < N; i++) {\n        if (i != j) sum += P[(size_t)i * N + j];\n    }"
_GATHERED = """s_W[ty][tx] = exists ? W[(m + ty) * N + owner] : 0.0f;
        s_keys[ty][tx] = exists ? keys[(m + ty) * N + owner] : 0;"""

# exercise, what one thread does, edits of the solution, words of the verdict
ALONE = [
    ("00_differences", "all", (
        ("if (i < n - 1) d[i]", "if (i == 0) for (int i = 0; i < n - 1; i++) d[i]"),
    ), "one thread does alone"),
    ("00_few_threads", "all", (
        ("int i = first; i < n; i += step", "int i = 0; first == 0 && i < n; i++"),
    ), "global load sectors"),
    ("02_received", "all", (
        (_COLUMN, "if (j == 0) for (int c = N - 1; c >= 0; c--) {\n        sum = 0.0f;\n"
         "        for (int i = 0; i < N; i++) if (i != c) sum += P[(size_t)i * N + c];\n"
         "        R[c] = sum;\n    }\n    if (j > 0) return;"),
    ), "global load sectors"),
    ("02_scores", "a row of S", (
        ("float sum = 0.0f;", "if (col > 0) return;\n"
         "    for (int c = 0; c < N; c++) {\n    col = c;\n    float sum = 0.0f;"),
        ("if (col > row) {\n        S[(size_t)row * N + col] = MINUS_INFINITY;\n"
         "        return;\n    }\n", ""),
        ("sum / sqrtf((float)d);", "col > row ? MINUS_INFINITY : sum / sqrtf((float)d);\n    }"),
    ), "global load requests"),
    ("03_rectangle", "the tiles", (
        (_FILL_P, "if (tx == 0 && ty == 0) for (int k = 0; k < ROWS * DEPTH; k++) {\n"
         "            const int r = k / DEPTH, j = k % DEPTH;\n            s_P[r][j] ="
         " row + r < N && i + j < N ? P[(size_t)(row + r) * N + i + j] : 0.0f;"),
        (_FILL_V, "if (tx == 0 && ty == 0) for (int k = 0; k < DEPTH * COLS; k++) {\n"
         "            const int j = k / COLS, c = k % COLS;\n            s_V[j][c] ="
         " i + j < N && col + c < d ? V[(size_t)(i + j) * d + col + c] : 0.0f;"),
    ), "one thread does alone"),
    ("03_window", "the copying", (
        ("int j = tid; j < BLOCK_SIZE + 2 * RADIUS; j += BLOCK_SIZE",
         "int j = 0; tid == 0 && j < BLOCK_SIZE + 2 * RADIUS; j++"),
    ), "one thread does alone"),
    ("04_rows_in_turn", "each pass", (
        (f"{_WALK} local_max", f"{_WHOLE} local_max"),
        (f"{_WALK} local_sum", f"{_WHOLE} local_sum"),
        (f"{_WALK} p[j]", f"{_WHOLE} p[j]"),
    ), "one thread does alone"),
    ("04_moments", "the pass", (
        (_PASS, "if (tid == 0) for (int j = 0; j < d; j++) {"),
    ), "one thread does alone"),
    ("04_moments", "the tree", (
        (_TREE, "if (tid == 0) for (int k = 1; k < BLOCK_SIZE; k++) {\n"
         "        s_sum[0] += s_sum[k];\n        s_squares[0] += s_squares[k];\n    }"),
    ), "one thread does alone"),
    ("04_best_key", "all", (
        ("int stride = 16; stride >= 1; stride /= 2", "int stride = 1; stride < 32; stride++"),
        ("__shfl_down_sync(0xffffffff, m, stride)", "__shfl_sync(0xffffffff, m, stride)"),
        ("__shfl_down_sync(0xffffffff, at, stride)", "__shfl_sync(0xffffffff, at, stride)"),
    ), "five levels"),
    ("05_both_ways", "the tiles", (
        ("const int row = first_row + n * TILE + tx;", f"{_ONE_FIRST} {{\n"
         "            const int row = first_row + n * TILE + a;"),
        ("const int col = first_col + n * TILE + ty;",
         "const int col = first_col + n * TILE + a;"),
        ("s_Q[n][tx][ty] = row < N && i + ty < d ? Q[(size_t)row * d + i + ty]",
         "s_Q[n][a][b] = row < N && i + b < d ? Q[(size_t)row * d + i + b]"),
        ("s_K[n][tx][ty] = col < N && i + tx < d ? K[(size_t)col * d + i + tx] : 0.0f;",
         "s_K[n][b][a] = col < N && i + b < d ? K[(size_t)col * d + i + b] : 0.0f; }"),
    ), "one thread does alone"),
    ("05_shared_keys", "the tiles of Q", (
        ("const float* q = Q + ((size_t)h * N + row) * d;",
         f"{_ONE_FIRST} {{\n            const float* q = Q + ((size_t)h * N + row + a) * d;"),
        ("s_Q[h][tx][ty] = row < N && i + ty < d ? q[i + ty] : 0.0f;",
         "s_Q[h][a][b] = row + a < N && i + b < d ? q[i + b] : 0.0f; }"),
    ), "one thread does alone"),
    ("06_gather", "the copying", (
        (_GATHERED, "if (tx == 0) for (int b = 0; b < TILE; b++) {\n"
         "            const int whose = blockIdx.y * TILE + b;\n"
         "            const bool is = whose < N && m + ty < M;\n"
         "            s_W[ty][b] = is ? W[(m + ty) * N + whose] : 0.0f;\n"
         "            s_keys[ty][b] = is ? keys[(m + ty) * N + whose] : 0;\n        }"),
    ), "global load sectors"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "edits", "words"),
    [pytest.param(name, edits, words, id=f"{name}-{what}") for name, what, edits, words in ALONE],
)
def test_one_thread_alone_misses_the_goal(name, edits, words):
    text = solution(name)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    verdict = check(name, text)
    assert verdict.failed and verdict.failed.name == "goal", verdict
    assert words in verdict.failed.message, verdict


def test_every_exercise_is_tried_or_says_why_not():
    tried = {name for name, *_ in ALONE}
    assert not tried & set(NOT_ABOUT)
    assert tried | set(NOT_ABOUT) == {one.name for one in EXERCISES}
