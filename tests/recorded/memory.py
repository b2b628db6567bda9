# ruff: noqa: E501 (kernel text reads better unbroken)
"""Kernels whose memory counters Nsight Compute read."""

from __future__ import annotations

import functools

import numpy as np

from . import memory_kernels as text
from .cases import Case, Stream

_DTYPES = {
    "T": {
        "float": ("float32", 1),
        "float2": ("float32", 2),
        "float4": ("float32", 4),
        "double": ("float64", 1),
        "unsigned short": ("uint16", 1),
        "unsigned char": ("uint8", 1),
        "short2": ("int16", 2),
    }
}


def _fill(stream: Stream, what: str, shape: list[int], dtype: str, limit: int) -> np.ndarray:
    count = int(np.prod(shape))
    if what == "out":
        return np.full(shape, np.nan if dtype.startswith("float") else 0, dtype)
    if what == "index":
        return (stream.words(count) % np.uint64(limit)).astype(dtype).reshape(shape)
    if what == "permutation":  # of each row
        rows = [
            np.argsort(stream.words(shape[-1]), kind="stable") for _ in range(count // shape[-1])
        ]
        return np.array(rows).astype(dtype).reshape(shape)
    if what == "half":
        return (stream.uniform(count) * 2 - 1).astype(np.float16).view(np.uint16).reshape(shape)
    if dtype.startswith("float"):
        return (stream.uniform(count) * 2 - 1).astype(dtype).reshape(shape)
    return stream.words(count).astype(dtype).reshape(shape)


def make_arguments(name: str, specification: list) -> list:
    """Arguments of a case: `[what, shape, dtype(, limit)]` or an integer, as NumPy arrays and int32."""
    stream = Stream(66, *name.encode())
    values: list = []
    for item in specification:
        if isinstance(item, int):
            values.append(np.int32(item))
        else:
            what, shape, dtype, *limit = item
            values.append(_fill(stream, what, shape, dtype, *(limit or [0])))
    return values


def _case(
    name: str,
    code: str,
    grid,
    block,
    specification: list,
    shared_mem: int = 0,
    exact=False,
    **defines,
) -> Case:
    grid = grid if isinstance(grid, tuple) else (grid,)
    block = block if isinstance(block, tuple) else (block,)
    entry = f"m_{name}"
    code = code.replace("KERNEL", entry).replace("INFINITY_", "__int_as_float(0x7f800000)")
    # Numbers are compiler options; texts stand in the source, after the compiler's own headers.
    code = "".join(f"#define {k} {v}\n" for k, v in defines.items() if isinstance(v, str)) + code
    options = tuple(f"-D{k}={v}" for k, v in defines.items() if isinstance(v, int))
    outputs = tuple(
        i for i, item in enumerate(specification) if not isinstance(item, int) and item[0] == "out"
    )
    notes = {"args": specification, "exact": exact}
    make = functools.partial(make_arguments, name, specification)
    return Case(name, code, entry, grid, block, make, outputs, options, shared_mem, notes)


def _i(shape: list[int], dtype: str = "float32") -> list:
    return ["in", shape, dtype]


def _o(shape: list[int], dtype: str = "float32") -> list:
    return ["out", shape, dtype]


def _global() -> list[Case]:
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
        dtype, parts = _DTYPES["T"][kind]
        size = [(n + 8) * parts]
        defines = {"T": kind, "STRIDE": stride, "SHIFT": shift}
        cases.append(
            _case(
                f"copy_{label}",
                text.COPY,
                (n + 127) // 128,
                128,
                [_i(size, dtype), _o(size, dtype), n],
                exact=True,
                **defines,
            )
        )
    cases.append(
        _case("rows_33", text.ROWS, 10, (32, 4), [_i([37, 33]), _o([37, 33]), 37, 33], exact=True)
    )
    cases.append(
        _case("rows_80", text.ROWS, 10, (32, 4), [_i([37, 80]), _o([37, 80]), 37, 80], exact=True)
    )
    for label, kind in (("float", "float"), ("float4", "float4"), ("short2", "short2")):
        dtype, parts = _DTYPES["T"][kind]
        arguments = [
            _i([600 * parts], dtype),
            ["index", [500], "int32", 600],
            _o([500 * parts], dtype),
            500,
        ]
        cases.append(_case(f"gather_{label}", text.GATHER, 4, 128, arguments, exact=True, T=kind))
    cases.append(
        _case(
            "scatter",
            text.SCATTER,
            4,
            128,
            [_i([512]), ["permutation", [512], "int32"], _o([512]), 512],
            exact=True,
        )
    )
    cases.append(
        _case(
            "transpose_naive",
            text.TRANSPOSE_NAIVE,
            (3, 9),
            (16, 5),
            [_i([44, 44]), _o([44, 44]), 44],
            exact=True,
        )
    )
    cases.append(
        _case("some_lanes", text.SOME_LANES, 21, 48, [_i([1000]), _o([1000]), 1000], exact=True)
    )
    cases.append(_case("structs", text.STRUCTS, 4, 96, [_i([370, 3]), _o([370]), 370]))
    cases.append(
        _case("grid_stride", text.GRID_STRIDE, 3, 128, [_i([1501]), _o([1501]), 1501], exact=True)
    )
    cases.append(_case("broadcast", text.BROADCAST, 4, 96, [_i([200]), _o([384]), 384]))
    cases.append(_case("tables", text.TABLES, 3, 96, [_i([270]), _o([270]), 270]))
    cases.append(
        _case(
            "atomics",
            text.ATOMICS,
            3,
            128,
            [_i([1000], "int32"), _o([64], "int32"), 1000],
            exact=True,
        )
    )
    cases.append(_case("stencil", text.STENCIL, 4, 128, [_i([500]), _o([500]), 500]))
    return cases


def _shared() -> list[Case]:
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
        dtype, parts = _DTYPES["T"][kind]
        arguments = [_i([64 * parts], dtype), _o([64 * parts], dtype)]
        cases.append(
            _case(
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
        dtype, parts = _DTYPES["T"][kind]
        arguments = [_i([128 * parts], dtype), _o([128 * parts], dtype)]
        defines = {"T": kind, "LANES": lanes, "PLACE": place}
        cases.append(
            _case(f"masked_{label}", text.SHARED_MASKED, 1, 128, arguments, exact=True, **defines)
        )
    for kind in ("float", "float2", "float4", "unsigned char"):
        dtype, parts = _DTYPES["T"][kind]
        arguments = [
            _i([128 * parts], dtype),
            ["permutation", [4, 128], "int32"],
            _o([512 * parts], dtype),
        ]
        name = f"shared_gather_{kind.split()[-1]}"
        cases.append(_case(name, text.SHARED_GATHER, 1, 128, arguments, exact=True, T=kind))
    return cases


def _joined() -> list[Case]:
    cases = []
    io = [_i([1024]), _o([64]), 64]
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
        cases.append(_case(f"join_{label}", text.JOIN, 1, 64, io, **{"JOIN_LOADS": loads}))
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
        cases.append(_case(f"between_{label}", code, 1, 64, io, **{"BETWEEN": between}))
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
        arguments = [_i([64 * width]), _o([64]), 64]
        cases.append(
            _case(
                f"loop_{label}",
                text.JOIN_LOOP,
                1,
                64,
                arguments,
                **{"WIDTH": width, "LEADING": leading, "ROW": row},
            )
        )
    for parts, per in ((4, 4), (3, 4), (2, 2), (2, 4), (4, 5), (5, 8), (4, 6)):
        arguments = [_i([64 * parts]), _o([64 * parts]), 64]
        cases.append(
            _case(
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
            _case(f"types_{first}", text.JOIN_TYPES, 1, 64, [_i([80]), _o([64]), 64], FIRST=first)
        )
    for offset in (256, 258, 257):
        cases.append(
            _case(
                f"dynamic_{offset}",
                text.JOIN_DYNAMIC,
                1,
                64,
                [_i([512]), _o([64]), 64],
                (offset + 256) * 4,
                OFFSET=offset,
            )
        )
    return cases


def _control() -> list[Case]:
    cases = []
    io = [_i([500]), _o([500]), 500]
    for label, count, body in (
        ("short", "i%11", "+=a[(i+j*3)%n]"),
        ("shared_limit", "n/100", "+=a[(i+j*3)%n]"),
        ("division", "i%6", "=v/(2.f+a[j])+a[i]"),
        ("two_loads", "i%9", "+=a[(i+j)%n]*a[(i*3+j)%n]"),
        ("quarter", "i/7%8", "=fmaxf(v,a[j])"),
        ("long", "i%23", "+=a[j]*0.5f"),
    ):
        cases.append(
            _case(
                f"divergent_{label}",
                text.DIVERGENT_LOOP,
                5,
                128,
                io,
                **{"COUNT": count, "BODY": body},
            )
        )
    cases.append(
        _case("divergent_shared", text.DIVERGENT_SHARED, 2, 128, [_i([256]), _o([256]), 256])
    )
    cases.append(_case("triangle", text.TRIANGLE, 2, 32, [_i([50, 50]), _o([50]), 50], exact=True))
    cases.append(
        _case(
            "collatz",
            text.COLLATZ,
            3,
            96,
            [_i([250], "int32"), _o([250], "int32"), 250],
            exact=True,
        )
    )
    cases.append(_case("switch", text.SWITCH, 4, 128, io))
    cases.append(_case("predicated", text.PREDICATED, 4, 128, io))
    return cases


def _kernels() -> list[Case]:
    cases = []
    n, d = 75, 40
    qk = [_i([n, d]), _i([n, d]), _o([n, n]), n, d]
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
            _case(
                f"qk_{tile}_{pad}_{store}", text.QK, (blocks, blocks), (tile, tile), qk, **defines
            )
        )
    cases.append(_case("qk_naive", text.QK_NAIVE, (5, 10), (16, 8), qk))
    cases.append(_case("qk_naive_rows", text.QK_NAIVE, (75, 3), (1, 32), qk))
    cases.append(
        _case("pv_tiled", text.PV, (3, 5), (16, 16), [_i([n, n]), _i([n, d]), _o([n, d]), n, d])
    )
    for coarse in (1, 2, 4):
        grid = ((n + 16 * coarse - 1) // (16 * coarse), 5)
        cases.append(_case(f"coarse_{coarse}", text.COARSE, grid, (16, 16), qk, COARSE=coarse))
    arguments = [_i([64, 24]), _i([24, 128]), _o([64, 128]), 64, 128, 24]
    cases.append(_case("registers", text.REGISTERS, (2, 1), 256, arguments))
    rows = [_i([50, 70]), _o([50, 70]), 50, 70]
    cases.append(_case("softmax_thread", text.SOFTMAX_THREAD, 2, 32, rows))
    cases.append(_case("softmax_block", text.SOFTMAX_BLOCK, 50, 128, rows))
    cases.append(
        _case(
            "softmax_block_long", text.SOFTMAX_BLOCK, 4, 128, [_i([4, 700]), _o([4, 700]), 4, 700]
        )
    )
    cases.append(_case("softmax_warp", text.SOFTMAX_WARP, 13, (32, 4), rows))
    for row in (16, 17):
        arguments = [_i([3, 256]), _o([3, 256]), 3, 256]
        cases.append(
            _case(f"softmax_rows_{row}", text.SOFTMAX_ROWS_SHARED, 3, 32, arguments, ROW=row)
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
        cases.append(_case(f"reduce_{label}", code, 4, 128, [_i([500]), _o([4]), 500]))
    cases.append(_case("scan", text.SCAN, 3, 128, [_i([384]), _o([384]), 384]))
    cases.append(_case("layer_norm", text.LAYER_NORM, 5, 128, [_i([5, 100]), _o([5, 100]), 100]))
    cases.append(
        _case(
            "attention_row",
            text.ATTENTION_ROW,
            3,
            32,
            [_i([75, 8]), _i([75, 8]), _i([75, 8]), _o([75, 8]), 75],
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
        arguments = [["half", [32 * 64], "uint16"], _o([32], "uint32")]
        cases.append(
            _case(
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
        arguments = [_i([3 * 1024]), _o([64]), 3]
        cases.append(
            _case(
                f"cp_async_{words}_{leading}",
                text.CP_ASYNC,
                1,
                64,
                arguments,
                WORDS=words,
                LEADING=leading,
            )
        )
    arguments = [["half", [48, 64], "uint16"], ["half", [24, 64], "uint16"], _o([48, 24]), 24]
    cases.append(_case("tensor_qk", text.TENSOR, (3, 3), 32, arguments))
    return cases


@functools.cache
def memory_cases() -> tuple[Case, ...]:
    """Every case of this module."""
    return tuple(_global() + _shared() + _joined() + _control() + _kernels())
