# ruff: noqa: E501 (kernel text reads better unbroken)
"""Access patterns: global, shared, and shared accesses that ptxas may join."""

from __future__ import annotations

from ..cases import Case
from . import pattern_kernels as text
from .memory_case import TYPES, array, case, result


def global_cases() -> list[Case]:
    cases = []
    for label, kind, stride, shift, n in (
        ("shift_1", "float", 1, 1, 1000),
        ("shift_5", "float", 1, 5, 1000),
        ("stride_3", "float", 3, 0, 1000),
        ("stride_33", "float", 33, 0, 1024),
        ("float2", "float2", 1, 0, 700),
        ("float2_stride_2", "float2", 2, 1, 700),
        ("float4_stride_2", "float4", 2, 0, 500),
        ("float4_shift_1", "float4", 1, 1, 500),
        ("half", "unsigned short", 1, 3, 1000),
        ("half_stride_2", "unsigned short", 2, 0, 1000),
        ("byte", "unsigned char", 1, 1, 1000),
        ("byte_stride_5", "unsigned char", 5, 0, 999),
        ("double", "double", 1, 1, 600),
        ("double_stride_3", "double", 3, 0, 600),
    ):
        dtype, parts = TYPES["T"][kind]
        size = [(n + 8) * parts]
        defines = {"T": kind, "STRIDE": stride, "SHIFT": shift}
        cases.append(
            case(
                f"copy_{label}",
                text.COPY,
                (n + 127) // 128,
                128,
                [array(size, dtype), result(size, dtype), n],
                exact=True,
                **defines,
            )
        )
    cases.append(
        case(
            "rows_33",
            text.ROWS,
            10,
            (32, 4),
            [array([37, 33]), result([37, 33]), 37, 33],
            exact=True,
        )
    )
    cases.append(
        case(
            "rows_80",
            text.ROWS,
            10,
            (32, 4),
            [array([37, 80]), result([37, 80]), 37, 80],
            exact=True,
        )
    )
    for label, kind in (("float", "float"), ("float4", "float4"), ("short2", "short2")):
        dtype, parts = TYPES["T"][kind]
        arguments = [
            array([600 * parts], dtype),
            ["index", [500], "int32", 600],
            result([500 * parts], dtype),
            500,
        ]
        cases.append(case(f"gather_{label}", text.GATHER, 4, 128, arguments, exact=True, T=kind))
    cases.append(
        case(
            "scatter",
            text.SCATTER,
            4,
            128,
            [array([512]), ["permutation", [512], "int32"], result([512]), 512],
            exact=True,
        )
    )
    cases.append(
        case(
            "transpose_naive",
            text.TRANSPOSE_NAIVE,
            (3, 9),
            (16, 5),
            [array([44, 44]), result([44, 44]), 44],
            exact=True,
        )
    )
    cases.append(
        case(
            "some_lanes", text.SOME_LANES, 21, 48, [array([1000]), result([1000]), 1000], exact=True
        )
    )
    cases.append(case("structs", text.STRUCTS, 4, 96, [array([370, 3]), result([370]), 370]))
    cases.append(
        case(
            "grid_stride",
            text.GRID_STRIDE,
            3,
            128,
            [array([1501]), result([1501]), 1501],
            exact=True,
        )
    )
    cases.append(case("broadcast", text.BROADCAST, 4, 96, [array([200]), result([384]), 384]))
    cases.append(case("tables", text.TABLES, 3, 96, [array([270]), result([270]), 270]))
    cases.append(
        case(
            "atomics",
            text.ATOMICS,
            3,
            128,
            [array([1000], "int32"), result([64], "int32"), 1000],
            exact=True,
        )
    )
    cases.append(case("stencil", text.STENCIL, 4, 128, [array([500]), result([500]), 500]))
    return cases


def shared_cases() -> list[Case]:
    cases = []
    for label, kind, stride in (
        ("byte_1", "unsigned char", 1),
        ("byte_4", "unsigned char", 4),
        ("half_1", "unsigned short", 1),
        ("half_2", "unsigned short", 2),
        ("half_33", "unsigned short", 33),
        ("float_2", "float", 2),
        ("float_32", "float", 32),
        ("float_33", "float", 33),
        ("double_1", "double", 1),
        ("double_3", "double", 3),
        ("double_16", "double", 16),
        ("float2_5", "float2", 5),
        ("float4_3", "float4", 3),
        ("float4_8", "float4", 8),
    ):
        dtype, parts = TYPES["T"][kind]
        arguments = [array([64 * parts], dtype), result([64 * parts], dtype)]
        cases.append(
            case(
                f"shared_{label}",
                text.SHARED_STRIDE,
                1,
                64,
                arguments,
                exact=True,
                T=kind,
                STRIDE=stride,
            )
        )
    for label, kind, lanes, place in (
        ("float4_odd", "float4", "0xaaaaaaaau", "t"),
        ("float4_half", "float4", "0x0ff0f00fu", "127-t"),
        ("float4_pairs", "float4", "0xffffffffu", "t/2"),
        ("float4_pairs2", "float4", "0xffffffffu", "(t&~2)"),
        ("float4_quads", "float4", "0xf7ffeffdu", "t/4*2"),
        ("float2_pairs", "float2", "0xffffffffu", "t/2"),
        ("float2_pairs2", "float2", "0xfff7ffffu", "(t&~2)"),
        ("float2_few", "float2", "0x00010003u", "t*3%128"),
        ("float_few", "float", "0x80000001u", "(t&31)*4"),
        ("double_pairs", "double", "0xffffffffu", "(t^1)/2*2"),
    ):
        dtype, parts = TYPES["T"][kind]
        arguments = [array([128 * parts], dtype), result([128 * parts], dtype)]
        defines = {"T": kind, "LANES": lanes, "PLACE": place}
        cases.append(
            case(f"masked_{label}", text.SHARED_MASKED, 1, 128, arguments, exact=True, **defines)
        )
    for kind in ("float", "float2", "float4", "unsigned char"):
        dtype, parts = TYPES["T"][kind]
        arguments = [
            array([128 * parts], dtype),
            ["permutation", [4, 128], "int32"],
            result([512 * parts], dtype),
        ]
        name = f"shared_gather_{kind.split()[-1]}"
        cases.append(case(name, text.SHARED_GATHER, 1, 128, arguments, exact=True, T=kind))
    return cases


def joined_cases() -> list[Case]:
    cases = []
    io = [array([1024]), result([64]), 64]
    for label, loads in (
        ("base16", "s[t*4]+s[t*4+1]*s[t*4+2]+s[t*4+3]"),
        ("base8", "s[t*2]+s[t*2+1]*s[t*2+2]+s[t*2+3]"),
        ("base4", "s[t*3]+s[t*3+1]*s[t*3+2]+s[t*3+3]"),
        ("gap_1", "s[t*8]+s[t*8+2]*s[t*8+3]"),
        ("gap_12", "s[t*8]+s[t*8+3]*2.f"),
        ("middle", "s[t*8+1]+s[t*8+2]*3.f"),
        ("two_windows", "s[t*8+2]+s[t*8+3]*s[t*8+4]+s[t*8+5]"),
        ("order", "s[t*12+3]+s[t*12+1]*s[t*12]+s[t*12+2]"),
        ("stride_6", "s[t*6]+s[t*6+1]*s[t*6+2]+s[t*6+5]"),
        ("and_mask", "s[(t*13)&~3]+s[((t*13)&~3)+1]*s[((t*13)&~3)+2]"),
        ("shifted", "s[(t>>1<<3)]+s[(t>>1<<3)+1]*s[(t>>1<<3)+7]"),
        ("constant", "s[4]+s[5]*s[6]+s[7]+s[t]"),
        ("runtime", "s[n]+s[n+1]*s[n+2]+s[n+3]+s[t]"),
        ("vector_part", "((float4*)s)[t].x+((float4*)s)[t].y*((float4*)s)[t+1].w"),
    ):
        cases.append(case(f"join_{label}", text.JOIN, 1, 64, io, **{"JOIN_LOADS": loads}))
    for label, between in (
        ("nothing", ""),
        ("barrier", "__syncthreads()"),
        ("syncwarp", "__syncwarp()"),
        ("store", "tally[63-t]=n"),
        ("atomic", "atomicAdd(&tally[0],1)"),
        ("fence", "__threadfence_block()"),
        ("shuffle", "v=__shfl_xor_sync(~0u,v,1)"),
        ("global_load", "v+=a[(t*7)&63]"),
        ("global_store", "b[63-t]=v"),
        ("vote", "v+=(float)__ballot_sync(~0u,v>0.f)"),
        ("division", "v=v/(1.5f+a[t])"),
        ("branch", "if(v>0.3f)v=sqrtf(v)*a[n+t]"),
    ):
        if label in ("store", "atomic", "global_store"):
            code = text.JOIN_BETWEEN.replace(
                "b[t] = v + tally[t];", "__syncthreads(); b[t] = v + tally[t];"
            )
        else:
            code = text.JOIN_BETWEEN
        cases.append(case(f"between_{label}", code, 1, 64, io, **{"BETWEEN": between}))
    for label, width, leading, row in (
        ("16_16", 16, 16, "t"),
        ("16_17", 16, 17, "t"),
        ("16_18", 16, 18, "t"),
        ("16_20", 16, 20, "t"),
        ("16_20_row", 16, 20, "t/4"),
        ("15_15", 15, 15, "t"),
        ("10_12", 10, 12, "63-t"),
        ("8_33", 8, 33, "t"),
    ):
        arguments = [array([64 * width]), result([64]), 64]
        cases.append(
            case(
                f"loop_{label}",
                text.JOIN_LOOP,
                1,
                64,
                arguments,
                **{"WIDTH": width, "LEADING": leading, "ROW": row},
            )
        )
    for parts, per in ((4, 4), (3, 4), (2, 2), (2, 4), (4, 5), (5, 8), (4, 6)):
        arguments = [array([64 * parts]), result([64 * parts]), 64]
        cases.append(
            case(
                f"stores_{parts}_{per}",
                text.JOIN_STORES,
                1,
                64,
                arguments,
                exact=True,
                PARTS=parts,
                PER=per,
            )
        )
    for first in (3, 8):
        cases.append(
            case(
                f"types_{first}",
                text.JOIN_TYPES,
                1,
                64,
                [array([80]), result([64]), 64],
                FIRST=first,
            )
        )
    for offset in (256, 258, 257):
        cases.append(
            case(
                f"dynamic_{offset}",
                text.JOIN_DYNAMIC,
                1,
                64,
                [array([512]), result([64]), 64],
                (offset + 256) * 4,
                OFFSET=offset,
            )
        )
    return cases
