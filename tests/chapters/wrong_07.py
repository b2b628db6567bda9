"""Chapter 07, bank conflicts: wrong answers to its exercises, and trials of changed kernels."""

from __future__ import annotations

from exercise_answers import Wrong
from mutants.survivors import Reason
from mutants.targets import COALESCED, attentions, by_entry, products, softmaxes, with_one

_Q, _K = "s_Q[ty * pitch + k]", "s_K[tx * pitch + k]"
_PLACE = "16 * row + (col ^ (row / 2))"
_P, _DO = "*(const float4*)&s_P[k][4 * ty]", "*(const float4*)&s_dO[k][4 * tx]"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "07_float2": (
        Wrong(
            "k of a pointer to pairs",
            (("*(const float2*)&s_Q[ty * pitch + k]", "((const float2*)&s_Q[ty * pitch])[k]"),),
            "right",
            ("counts pairs, and `k` counts floats",),
        ),
        Wrong("a word of padding", (("pitch = 18;", "pitch = 17;"),), "right", ("multiple of 8",)),
        Wrong(
            "an even number of pairs",
            (("pitch = 18;", "pitch = 20;"),),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "Q at the column of S",
            ((_Q, "s_Q[tx * pitch + k]"),),
            "right",
            ("Q's tile is read at the column of S",),
        ),
        Wrong(
            "float by float",
            (
                ("pitch = 18;", "pitch = 17;"),
                (f"*(const float2*)&{_Q}", f"make_float2({_Q}, s_Q[ty * pitch + k + 1])"),
                (f"*(const float2*)&{_K}", f"make_float2({_K}, s_K[tx * pitch + k + 1])"),
            ),
            "goal",
            ("shared load instructions",),
        ),
        Wrong(
            "plain loads that the compiler joins",
            (
                (f"q = *(const float2*)&{_Q};", f"q.x = {_Q}; q.y = s_Q[ty * pitch + k + 1];"),
                (f"r = *(const float2*)&{_K};", f"r.x = {_K}; r.y = s_K[tx * pitch + k + 1];"),
            ),
            "goal",
            ("not by what this exercise is about", "float2*"),
        ),
        Wrong(
            "x for y in both",
            ((_Q, "s_Q[tx * pitch + k]"), (_K, "s_K[ty * pitch + k]")),
            "right",
            ("are exchanged in both loads",),
        ),
        Wrong(
            "the same two elements each time",
            ((_Q, "s_Q[ty * pitch]"), (_K, "s_K[tx * pitch]")),
            "right",
            ("the first two elements of its row",),
        ),
        Wrong(
            "straight from global memory",
            (
                (
                    f"q = *(const float2*)&{_Q};",
                    "const float* from = &Q[row * d + i + k];\n"
                    "q.x = row < N && i + k < d ? from[0] : 0.0f;\n"
                    "q.y = row < N && i + k + 1 < d ? from[1] : 0.0f;",
                ),
            ),
            "goal",
            ("global load sectors",),
        ),
    ),
    "07_transpose": (
        Wrong(
            "the row itself, within the row",
            ((_PLACE, "16 * row + (col ^ (row % 16))"),),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "out of the row",
            ((_PLACE, "16 * row + (col ^ row)"),),
            "right",
            ("out-of-bounds", "s_K"),
        ),
        Wrong(
            "padding beyond the tile",
            ((_PLACE, "17 * row + col"),),
            "right",
            ("out-of-bounds", "s_K"),
        ),
        Wrong(
            "padding with more memory",
            ((_PLACE, "48 * row + col + row / 2 % 16"), ("s_K[32 * 16]", "s_K[48 * 32]")),
            "goal",
            ("bytes of shared memory",),
        ),
        Wrong(
            "kept as it is wanted",
            ((_PLACE, "32 * col + row"),),
            "goal",
            ("shared store bank conflicts",),
        ),
        Wrong(
            "row and column exchanged",
            ((_PLACE, "16 * col + row"),),
            "right",
            ("Elements of different rows share a place",),
        ),
        Wrong(
            "an or for the exclusive or",
            ((_PLACE, "16 * row + (col | row / 2)"),),
            "right",
            ("Several elements of a row share a place", "with an or"),
        ),
        Wrong(
            "copies past the counters",
            (
                (
                    "s_K[place(ty, tx)] = K[(first_row + ty) * d + first_col + tx];",
                    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::'
                    ' "r"((unsigned)__cvta_generic_to_shared(&s_K[place(ty, tx)])),'
                    ' "l"(&K[(first_row + ty) * d + first_col + tx]) : "memory");',
                ),
                (_PLACE, "32 * col + row"),
            ),
            "goal",
            ("cp.async",),
        ),
    ),
    "07_gradient": (
        Wrong(
            "the patch turned",
            ((f"p = {_P}", f"o = {_P}"), (f"o = {_DO}", f"p = {_DO}")),
            "right",
            ("The patch is turned",),
        ),
        Wrong(
            "x for y in both",
            ((_P, _P.replace("ty", "tx")), (_DO, _DO.replace("tx", "ty"))),
            "right",
            ("are exchanged",),
        ),
        Wrong(
            "P at the columns",
            ((_P, _P.replace("ty", "tx")),),
            "right",
            ("P is read at the patch's columns",),
        ),
        Wrong(
            "dO at the rows",
            ((_DO, _DO.replace("tx", "ty")),),
            "right",
            ("dO is read at the patch's rows",),
        ),
        Wrong(
            "one element of P for all",
            (("p.y", "p.x"), ("p.z", "p.x"), ("p.w", "p.x")),
            "right",
            ("use the same element of P",),
        ),
        Wrong(
            "rows 8 apart",
            ((_P, "make_float4(s_P[k][ty], s_P[k][8 + ty], s_P[k][16 + ty], s_P[k][24 + ty])"),),
            "right",
            ("lie 8 apart",),
        ),
        Wrong(
            "no multiple of 16 bytes",
            ((_P, _P.replace("4 * ty", "ty")),),
            "right",
            ("multiple of 16",),
        ),
        Wrong(
            "P from global memory",
            (
                (
                    f"p = {_P};",
                    "const float* from = &P[(i + k) * N + first_row + 4 * ty];\n"
                    "const int there = i + k < N ? N - first_row - 4 * ty : 0;\n"
                    "if (there > 0) p.x = from[0];\n"
                    "if (there > 1) p.y = from[1];\n"
                    "if (there > 2) p.z = from[2];\n"
                    "if (there > 3) p.w = from[3];",
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
    "07_fused.cu": attentions(
        ({"KEYS": 64, "WARPS": 2}, 68, 36, True), ({"KEYS": 64, "WARPS": 2}, 67, 35, False),
        ({"KEYS": 64, "WARPS": 2}, 64, 68, True), ({"KEYS": 128, "WARPS": 2}, 37, 64, False),
        ({"KEYS": 64, "WARPS": 2}, 1, 1, False),
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
