# ruff: noqa: E501 (kernel text reads better unbroken)
"""Divergent control flow and whole kernels."""

from __future__ import annotations

from ..cases import Case
from . import program_kernels as text
from .memory_case import array, case, result


def control_cases() -> list[Case]:
    cases = []
    io = [array([500]), result([500]), 500]
    for label, count, body in (
        ("short", "i%11", "+=a[(i+j*3)%n]"),
        ("shared_limit", "n/100", "+=a[(i+j*3)%n]"),
        ("division", "i%6", "=v/(2.f+a[j])+a[i]"),
        ("two_loads", "i%9", "+=a[(i+j)%n]*a[(i*3+j)%n]"),
        ("quarter", "i/7%8", "=fmaxf(v,a[j])"),
        ("long", "i%23", "+=a[j]*0.5f"),
    ):
        cases.append(
            case(
                f"divergent_{label}",
                text.DIVERGENT_LOOP,
                5,
                128,
                io,
                **{"COUNT": count, "BODY": body},
            )
        )
    cases.append(
        case("divergent_shared", text.DIVERGENT_SHARED, 2, 128, [array([256]), result([256]), 256])
    )
    cases.append(
        case("triangle", text.TRIANGLE, 2, 32, [array([50, 50]), result([50]), 50], exact=True)
    )
    cases.append(
        case(
            "collatz",
            text.COLLATZ,
            3,
            96,
            [array([250], "int32"), result([250], "int32"), 250],
            exact=True,
        )
    )
    cases.append(case("switch", text.SWITCH, 4, 128, io))
    cases.append(case("predicated", text.PREDICATED, 4, 128, io))
    return cases


def kernels_cases() -> list[Case]:
    cases = []
    n, d = 75, 40
    qk = [array([n, d]), array([n, d]), result([n, n]), n, d]
    for tile, pad, store in (
        (8, 0, 0),
        (8, 1, 0),
        (8, 0, 1),
        (16, 0, 0),
        (16, 1, 0),
        (16, 0, 1),
        (16, 1, 1),
        (16, 4, 0),
        (32, 0, 0),
        (32, 1, 0),
        (32, 0, 1),
        (32, 1, 1),
    ):
        blocks = (n + tile - 1) // tile
        defines = {"TILE_": tile, "PAD": pad, "ON_STORE": store}
        cases.append(
            case(f"qk_{tile}_{pad}_{store}", text.QK, (blocks, blocks), (tile, tile), qk, **defines)
        )
    cases.append(case("qk_naive", text.QK_NAIVE, (5, 10), (16, 8), qk))
    cases.append(case("qk_naive_rows", text.QK_NAIVE, (75, 3), (1, 32), qk))
    cases.append(
        case(
            "pv_tiled",
            text.PV,
            (3, 5),
            (16, 16),
            [array([n, n]), array([n, d]), result([n, d]), n, d],
        )
    )
    for coarse in (1, 2, 4):
        grid = ((n + 16 * coarse - 1) // (16 * coarse), 5)
        cases.append(case(f"coarse_{coarse}", text.COARSE, grid, (16, 16), qk, COARSE=coarse))
    arguments = [array([64, 24]), array([24, 128]), result([64, 128]), 64, 128, 24]
    cases.append(case("registers", text.REGISTERS, (2, 1), 256, arguments))
    rows = [array([50, 70]), result([50, 70]), 50, 70]
    cases.append(case("softmax_thread", text.SOFTMAX_THREAD, 2, 32, rows))
    cases.append(case("softmax_block", text.SOFTMAX_BLOCK, 50, 128, rows))
    cases.append(
        case(
            "softmax_block_long",
            text.SOFTMAX_BLOCK,
            4,
            128,
            [array([4, 700]), result([4, 700]), 4, 700],
        )
    )
    cases.append(case("softmax_warp", text.SOFTMAX_WARP, 13, (32, 4), rows))
    for row in (16, 17):
        arguments = [array([3, 256]), result([3, 256]), 3, 256]
        cases.append(
            case(f"softmax_rows_{row}", text.SOFTMAX_ROWS_SHARED, 3, 32, arguments, ROW=row)
        )
    for label, steps in (
        (
            "modulo",
            "for (int h = 1; h < 128; h *= 2) { if (t % (2 * h) == 0) s[t] += s[t + h]; __syncthreads(); }",
        ),
        (
            "strided",
            "for (int h = 1; h < 128; h *= 2) { int j = 2 * h * t; if (j < 128) s[j] += s[j + h]; __syncthreads(); }",
        ),
        (
            "halves",
            "for (int h = 64; h > 0; h >>= 1) { if (t < h) s[t] += s[t + h]; __syncthreads(); }",
        ),
        (
            "last_warp",
            "for (int h = 64; h >= 32; h >>= 1) { if (t < h) s[t] += s[t + h]; __syncthreads(); } if (t < 32) { float v = s[t]; "
            "for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o); if (t == 0) s[0] = v; }",
        ),
    ):
        code = text.REDUCE.replace("STEPS", steps)
        cases.append(case(f"reduce_{label}", code, 4, 128, [array([500]), result([4]), 500]))
    cases.append(case("scan", text.SCAN, 3, 128, [array([384]), result([384]), 384]))
    cases.append(
        case("layer_norm", text.LAYER_NORM, 5, 128, [array([5, 100]), result([5, 100]), 100])
    )
    cases.append(
        case(
            "attention_row",
            text.ATTENTION_ROW,
            3,
            32,
            [array([75, 8]), array([75, 8]), array([75, 8]), result([75, 8]), 75],
        )
    )
    for parts, leading, swizzle in (
        (4, 8, 0),
        (4, 9, 0),
        (4, 8, 1),
        (2, 8, 0),
        (2, 8, 1),
        (1, 8, 0),
        (1, 9, 0),
    ):
        defines = {
            "PARTS": parts,
            "LEADING": leading,
            "SWIZZLE": "(i/8)&7" if swizzle else "0",
            "SWIZZLE_R": "r&7" if swizzle else "0",
        }
        arguments = [["half", [32 * 64], "uint16"], result([32], "uint32")]
        cases.append(
            case(
                f"ldmatrix_{parts}_{leading}_{swizzle}",
                text.LDMATRIX,
                1,
                32,
                arguments,
                exact=True,
                **defines,
            )
        )
    for words, leading in ((1, 32), (1, 33), (2, 34), (4, 32), (4, 36)):
        arguments = [array([3 * 1024]), result([64]), 3]
        cases.append(
            case(
                f"cp_async_{words}_{leading}",
                text.CP_ASYNC,
                1,
                64,
                arguments,
                WORDS=words,
                LEADING=leading,
            )
        )
    arguments = [["half", [48, 64], "uint16"], ["half", [24, 64], "uint16"], result([48, 24]), 24]
    cases.append(case("tensor_qk", text.TENSOR, (3, 3), 32, arguments))
    return cases
