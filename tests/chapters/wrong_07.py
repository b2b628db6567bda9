"""Chapter 07, bank conflicts: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.survivors import Reason
from mutants.targets import COALESCED, by_entry, products, softmaxes, with_one

_XOR_STORE = "s_K[ty][tx ^ ty] = element;"
_XOR_LOAD = "s_K[tx][k ^ tx];"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "07_padding": (
        Wrong("an even pitch", (("pitch = 33;", "pitch = 34;"),), "goal", ("bank conflicts",)),
        Wrong(
            "a float4 of padding", (("pitch = 33;", "pitch = 36;"),), "goal", ("bank conflicts",)
        ),
        Wrong("rows that overlap", (("pitch = 33;", "pitch = 31;"),), "right", ("elements of KT",)),
        Wrong(
            "more than there is room for", (("pitch = 33;", "pitch = 37;"),), "right", ("shared",)
        ),
        Wrong(
            "the conflict has moved to the store",
            (
                ("pitch = 33;", "pitch = 32;"),
                ("s_K[ty * pitch + tx]", "s_K[tx * pitch + ty]"),
                ("= s_K[tx * pitch + ty]", "= s_K[ty * pitch + tx]"),
            ),
            "goal",
            ("shared store bank conflicts",),
        ),
        Wrong(
            "at one size",
            (("pitch = 33;", "pitch = N == 64 ? 33 : 32;"),),
            "goal",
            ("With N = 6", "bank conflicts"),
        ),
        Wrong(
            "copies past the counters",
            (
                ("pitch = 33;", "pitch = 32;"),
                (
                    "s_K[ty * pitch + tx] = K[(first_row + ty) * d + first_col + tx];",
                    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::'
                    ' "r"((unsigned)__cvta_generic_to_shared(&s_K[tx * pitch + ty])),'
                    ' "l"(&K[(first_row + ty) * d + first_col + tx]) : "memory");',
                ),
                ("= s_K[tx * pitch + ty]", "= s_K[ty * pitch + tx]"),
            ),
            "goal",
            ("cp.async",),
        ),
    ),
    "07_xor": (
        Wrong("only the store", ((_XOR_LOAD, "s_K[tx][k];"),), "right", ("elements of S",)),
        Wrong(
            "neither",
            ((_XOR_STORE, "s_K[ty][tx] = element;"), (_XOR_LOAD, "s_K[tx][k];")),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "four permutations",
            (
                (_XOR_STORE, "s_K[ty][tx ^ (ty % 4)] = element;"),
                (_XOR_LOAD, "s_K[tx][k ^ (tx % 4)];"),
            ),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "padding",
            (
                ("float s_K[16][16];", "float s_K[16][17];"),
                (_XOR_STORE, "s_K[ty][tx] = element;"),
                (_XOR_LOAD, "s_K[tx][k];"),
            ),
            "goal",
            ("bytes of shared memory",),
        ),
        Wrong(
            "transposed on store",
            ((_XOR_STORE, "s_K[tx][ty] = element;"), (_XOR_LOAD, "s_K[k][tx];")),
            "goal",
            ("shared store bank conflicts",),
        ),
    ),
    "07_patch": (
        Wrong("a word of padding", (("pitch = 20;", "pitch = 17;"),), "right", ("multiple of 16",)),
        Wrong(
            "no padding", (("pitch = 20;", "pitch = 16;"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "two float4 of padding", (("pitch = 20;", "pitch = 24;"),), "goal", ("bank conflicts",)
        ),
        Wrong(
            "float by float",
            (
                ("pitch = 20;", "pitch = 17;"),
                (
                    "r_Q[n] = *(const float4*)&s_Q[(ty + 8 * n) * pitch + k];",
                    "const float* a = &s_Q[(ty + 8 * n) * pitch + k];\n"
                    "r_Q[n] = make_float4(a[0], a[1], a[2], a[3]);",
                ),
                (
                    "r_K[n] = *(const float4*)&s_K[(tx + 8 * n) * pitch + k];",
                    "const float* b = &s_K[(tx + 8 * n) * pitch + k];\n"
                    "r_K[n] = make_float4(b[0], b[1], b[2], b[3]);",
                ),
            ),
            "goal",
            ("shared load instructions",),
        ),
        Wrong(
            "rows of another thread",
            (("(tx + 8 * n)", "(4 * tx + n)"),),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "past the tile of Q",
            (
                (
                    "r_Q[n] = *(const float4*)&s_Q[(ty + 8 * n) * pitch + k];",
                    "const float* q = &Q[(block_row + ty + 8 * n) * d + i + k];\n"
                    "float* r = &r_Q[n].x;\n"
                    "for (int e = 0; e < 4; e++)\n"
                    "r[e] = block_row + ty + 8 * n < N && i + k + e < d ? q[e] : 0.0f;",
                ),
            ),
            "goal",
            ("global load sectors",),
        ),
    ),
}

TRIALS = {
    "07_padded.cu": products(
        *(({**p, "PAD": pad}, N, d) for pad in (1, 0) for p, N, d in COALESCED)
    ),
    "07_register_blocked.cu": by_entry(
        others=products(
            *with_one(
                ({"PATCH": 4, "TILE": 16}, 67, 35), ({"PATCH": 4, "TILE": 16}, 68, 36),
                ({"PATCH": 4, "TILE": 16, "WARP_ROWS": 2}, 36, 68),
                ({"PATCH": 4, "TILE": 32}, 37, 69), ({"PATCH": 8, "TILE": 32}, 32, 64),
            )
        ),
        softmax=softmaxes(
            (269, False), (270, True), (271, False), (272, True), (269, True), (271, True),
            (45, False), (256, False), (1, True),
        ),
    ),
}  # fmt: skip

REASONS = (
    Reason(
        r"07_register_blocked\.cu",
        ".*",
        r"__shared__ float s_[QP]\[\d+ \* PATCH\]\[TILE \+ 4\];  ->  .*\+ 8\];",
        "Rows stay at multiples of 16 bytes; a warp reads 2 or 4 rows of this tile at once, which "
        "lie in different banks with 8 words of padding as with 4.",
    ),
    Reason(
        r"07_register_blocked\.cu",
        ".*",
        r"for \(int [rj] = 0; [rj] < (PATCH|4); [rj]\+\+\) \{  ->  .* <= .*",
        "The round too many uses an element past the end of an array of registers, which C++ "
        "leaves undefined: the compiler drops the round and makes the same program.",
        same_program=True,
    ),
)
