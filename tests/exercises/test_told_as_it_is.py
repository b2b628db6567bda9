"""Verdicts: no name that the answer has not, no remedy that is not known yet, the cause first."""

from __future__ import annotations

import pytest

from helpers.exercises import check, solution
from helpers.simulator.compile.declared_elements import declared_sizes, named_element

_FILL = "s_X[j] = at >= 0 && at < n ? X[at] : 0.0f;"
_MASKED = """    if (col > row) {
        S[(size_t)row * N + col] = MINUS_INFINITY;
        return;
    }
"""

# exercise, edits of the solution, words that are said, words that are not
TOLD = {
    "a step of half the launch": (
        "00_few_threads", (("gridDim.x * blockDim.x", "blockDim.x"),),
        ("race on b[", "how many threads one block has"), ("__sync", "atomic", "barrier"),
    ),
    "row and column exchanged in the mask": (
        "02_scores",
        (("if (col > row) {", "if (row > col) {"),
         ("S[(size_t)row * N + col] = MINUS", "S[(size_t)col * N + row] = MINUS")),
        ("row and col are exchanged",), ("barrier", "__sync"),
    ),
    "no lower bound, and another name": (
        "03_window",
        (("const int at = start - RADIUS + j;", ""),
         (_FILL, "s_X[j] = start + j < n + RADIUS ? X[start + j - RADIUS] : 0.0f;")),
        ("X[-5]", "one end"), ("look at at",),
    ),
    "no condition at all": (
        "05_both_ways", (("if (row < N && col < N) S", "S"),),
        ("out-of-bounds write", "A guard is missing"), ("The condition",),
    ),
    "all heads like the first, and a barrier missing": (
        "05_shared_keys",
        (("Q + ((size_t)h * N + row) * d", "Q + (size_t)row * d"),
         ("            }\n        }\n        __syncthreads();", "            }\n        }")),
        ("All heads get the scores of head 0",), ("race",),
    ),
    "no barrier between uses of a tile": (
        "03_rectangle", (("s_V[k][ty];\n        __syncthreads();", "s_V[k][ty];"),),
        ("race on s_P[0][1]", "which lanes of one warp need as well"), (),
    ),
    "turns rounded down": (
        "00_few_threads",
        (("for (int i = first; i < n; i += step) b[i] = a[i] * a[i];",
          "const int turns = n / step;\n"
          "    for (int k = 0; k < turns; k++) b[first + k * step] = a[first + k * step] * "
          "a[first + k * step];"),),
        ("rounded down", "left over"), ("And:",),
    ),
    "a pointer that stays where a row is skipped": (
        "02_received",
        (("    for (int i", "    const float* p = P + j;\n    for (int i"),
         ("if (i != j) sum += P[(size_t)i * N + j];",
          "if (i == j) continue;\n        sum += *p;\n        p += N;")),
        ("elements of R are wrong",), ("And:", "marked lines", "comparison"),
    ),
    "steps of 2 in a tree": (
        "04_best_key", (("stride /= 2", "stride -= 2"),),
        ("`-=` is not",), ("last level",),
    ),
    "read before the barrier": (
        "06_transpose",
        (("    __syncthreads();  // the", "    const float v = s_K[tx][ty];\n    __syncthreads();"
          "  // the"), ("= *element", "= v")),
        ("comes before the barrier",), ("fill it first",),
    ),
    "whole blocks that leave, and a barrier that some threads do not reach": (
        "04_rows_in_turn",
        (("if (row >= N) break;", "if (row >= N) return;"),
         ("w_sum;\n        __syncthreads();", "w_sum;\n        if (tid < N) __syncthreads();")),
        ("waits at a barrier", "keeps threads from the barrier"), ("Threads that return",),
    ),
    "one condition for two tiles": (
        "03_rectangle",
        (("row < N && i + j < N ? P", "row < N && col < d ? P"),
         ("i + j < N && col < d ? V", "row < N && col < d ? V")),
        ("one condition for several copies",), ("A guard is missing",),
    ),
    "floats where pairs are counted": (
        "07_float2",
        (("q = *(const float2*)&s_Q[ty * pitch + k];",
          "const float2* p_Q = (const float2*)s_Q;\n            q = p_Q[ty * pitch / 2 + k];"),
         ("r = *(const float2*)&s_K[tx * pitch + k];",
          "const float2* p_K = (const float2*)s_K;\n            r = p_K[tx * pitch / 2 + k];")),
        ("k is counted in another unit",), (),
    ),
    "rows that are dealt out in turn": (
        "05_both_ways",
        (("row = first_row + n * TILE + tx", "row = first_row + tx * COARSE + n"),),
        ("row numbers things in another order",), ("And:",),
    ),
    "a division within the root": (
        "05_shared_keys", (("sqrtf((float)d)", "sqrtf((float)d / HEADS)"),),
        ("division too many",), (),
    ),
    "nothing stored where a thread leaves": (
        "02_scores",
        ((_MASKED, "    if (row < col) return;\n"),),
        ("leave in line 23 store nothing",), (),
    ),
    "a map that depends on the thread": (
        "09_narrow", (("row / 2 % 4", "threadIdx.x / 2 % 4"),),
        ("depends on the thread that asks",), ("through the map",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TOLD)
def test_a_verdict_tells_the_cause_in_known_words(what):
    name, edits, told, untold = TOLD[what]
    text = solution(name)
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    verdict = check(name, text)
    said = f"{verdict.failed.message} {verdict.todo}"
    assert all(words in said for words in told), verdict
    assert not any(words in said for words in untold), verdict


def test_an_element_has_the_indices_of_its_declaration():
    source = (
        "#define T 16  // edge\n#define R 5\nconstexpr int P = 64 + 8;\n"
        "__shared__ float s_K[T][T], s_Q[3][T][2]; __shared__ float s_X[T + 2 * R];\n"
        "__shared__ __align__(16) half s_P[16][P]; __shared__ float s_Z[unknown(3)][2];\n"
    )
    for name, index, written in (
        ("s_K", 128, "s_K[8][0]"),
        ("s_K", 256, "s_K[256]"),  # there is none
        ("s_Q", 37, "s_Q[1][2][1]"),
        ("s_X", 20, "s_X[20]"),
        ("s_P", 73, "s_P[1][1]"),
        ("s_Z", 5, "s_Z[5]"),
        ("dynamic", 3, "dynamic[3]"),
    ):
        assert named_element(name, index, source) == written
    assert named_element("s_K", 128, source.replace("#define T 16", ""), ["-DT=32"]) == "s_K[4][0]"
    assert declared_sizes("s_P", source) == (16, 72)
