# ruff: noqa: E501 (kernel text reads better unbroken)
"""Random small kernels: free of races, and with one possible result, by construction."""

from __future__ import annotations

import functools

import numpy as np

from .cases import BITS, Case, Stream
from .collectives import Collectives
from .expressions import LETTERS, Scope
from .statements import ITEMS

PROGRAMS = 72


class Program(Collectives):
    """One kernel: its text, its arguments and its launch."""

    # ---- the whole
    def functions(self) -> str:
        s = self.stream
        c = [s.between(1, 9) * 2 + 1 for _ in range(6)]
        scope = Scope(
            s,
            {"unsigned": ["a", "b", "r"], "int": ["q"], "float": ["f"]},
            ["TABLE[(@) & 15u]", "(unsigned)numbers[(@) % 11u]"],
            [],
            self.intrinsics,
        )
        lines = ["  int q = (int)(a ^ b); unsigned r = b; float f = (float)(a & 255u);"]
        for _ in range(3):
            lines += self.statement(scope, "  ", 2)
        return f"""
__device__ __noinline__ unsigned mix(unsigned a, unsigned b) {{
{chr(10).join(lines)}
  return a + b * {c[0]}u + (unsigned)q + r + bits(f);
}}
__device__ __noinline__ unsigned descend(int n, unsigned x) {{
  if (n <= 0) return x * {c[1]}u + 1u;
  unsigned deeper = descend(n - 1 - (int)(x & 1u), x ^ (x >> {s.between(1, 9)}) ^ (unsigned)n * {c[2]}u);
  return (x & {s.pick([2, 4, 8])}u) ? deeper + descend(n - 3, x + {c[3]}u) : deeper * {c[4]}u + (unsigned)n;
}}
__device__ __noinline__ void bump(unsigned* p, unsigned by) {{ *p = *p * {c[5]}u + by; }}
__device__ __noinline__ Record twist(Record r, unsigned u) {{
  r.a += u; r.c = (short)(r.c ^ (short)u); r.d = (unsigned char)(r.d + u); if (u & 1u) r.b = r.b * 0.5f; return r;
}}
"""

    def code(self) -> str:
        s = self.stream
        table = ", ".join(f"{s.below(1 << 32):#x}u" for _ in range(16))
        numbers = ", ".join(str(s.below(60000)) for _ in range(11))
        include = {
            "half": "#include <cuda_fp16.h>\n",
            "__nv_bfloat16": "#include <cuda_bf16.h>\n",
        }.get(self.narrow, "")
        names = {
            "unsigned": ["u0", "u1", "u2"],
            "int": ["i0", "i1"],
            "float": ["f0", "f1", "f2"],
            "unsigned long long": ["w0", "w1"],
        }
        if self.narrow:
            names[self.narrow] = [LETTERS[self.narrow] + digit for digit in "01"]
        readonly = ("tid", "lane", "gid")
        names["unsigned"] += ["tid", "lane", "gid"]
        names["float"] += ["alpha"]
        readonly += ("alpha",)
        sources = [
            "TABLE[(@) & 15u]",
            "(unsigned)numbers[(@) % 11u]",
            "local[(@) & 7u]",
            f"in_u[(@) % {ITEMS}u]",
            f"(unsigned)((const short*)in_u)[(@) % {ITEMS * 2}u]",
            f"(unsigned)((const unsigned char*)in_u)[(@) % {ITEMS * 4}u]",
            f"(unsigned)((const signed char*)in_u)[(@) % {ITEMS * 4}u]",
        ]
        functions = ["mix(@, #)", "descend((int)((@) & 3u), #)"]
        scope = Scope(s, names, sources, functions, self.intrinsics, readonly, True)
        start = {
            "double": "__dmul_rn((double)f0, 1.1)",
            "half": "__float2half_rn(f0)",
            "__nv_bfloat16": "__float2bfloat16_rn(f0)",
        }
        lines = self.functions().splitlines()
        arguments = [
            "const unsigned* in_u",
            "const float* in_f",
            "unsigned* out_u",
            "float* out_f",
            "unsigned long long* out_w",
            "uchar4* out_c",
            "unsigned* own",
            *[f"{kind}* {name}" for name, kind, _ in self.atomic],
            "int n",
            "float alpha",
            "long long wide",
        ]
        lines += [f'extern "C" __global__ void k({", ".join(arguments)}) {{']
        lines += [
            f"  __shared__ unsigned sh_u[{self.threads}], bins[16], sh_2[{self.threads // 8 + 1}][9];",
            f"  __shared__ float sh_f[{self.threads}];",
            f"  __shared__ short sh_s[{self.threads}];",
            f"  __shared__ unsigned char sh_c[{self.threads}];",
            "  unsigned tid = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), lane = tid & 31u;",
            f"  unsigned gid = (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * {self.threads}u + tid;",
            f"  const unsigned live = {self.live}u;",
            "  if (tid >= live) return;",
            "  unsigned lanes = min(32u, live - (tid & ~31u)), warp_mask = 0xffffffffu >> (32u - lanes);",
            "  const Record* records = (const Record*)in_u;",
            f"  unsigned u0 = in_u[gid % {ITEMS}u], u1 = in_u[(gid * 7u + 3u) % {ITEMS}u], u2 = (unsigned)n ^ tid;",
            "  int i0 = (int)u1 >> 3, i1 = n - (int)gid;",
            f"  float f0 = in_f[gid % {ITEMS}u], f1 = in_f[(gid * 5u + 1u) % {ITEMS}u], f2 = alpha;",
            "  unsigned long long w0 = (unsigned long long)wide * (gid + 1u), w1 = ((unsigned long long)u0 << 32) | u1;",
            "  unsigned local[8];",
            "#pragma unroll 1",
            "  for (int t = 0; t < 8; t++) local[t] = u0 * (unsigned)(2 * t + 1);",
        ]
        if self.narrow:
            first, second = names[self.narrow]
            lines.append(
                f"  {self.narrow} {first} = {start[self.narrow]}, {second} = {start[self.narrow].replace('f0', 'f1')};"
            )
        for _ in range(s.between(7, 11)):
            if s.chance(45):
                lines += self.collective(scope, "  ")
            else:
                lines += self.statement(scope, "  ", 3)
        lines += self.global_atomic(scope, "  ") + self.private_atomic(scope, "  ")
        lines.append(
            "  out_u[gid] = u0 ^ (u1 * 3u) ^ (u2 * 5u) ^ (unsigned)i0 ^ ((unsigned)i1 << 1) ^ local[u0 & 7u];"
        )
        lines.append("  out_f[gid] = (gid & 1u) ? f0 : (gid & 2u) ? f1 : f2;")
        extra = {
            "double": "bits(d0) ^ bits(d1)",
            "half": "half_bits(x0) * 65537ull ^ half_bits(x1)",
            "__nv_bfloat16": "bits(__bfloat162float(y0)) ^ bits(__bfloat162float(y1))",
        }.get(self.narrow, "0ull")
        lines.append(f"  out_w[gid] = w0 ^ (w1 * 3ull) ^ ({extra});")
        lines.append(
            "  out_c[gid] = make_uchar4((unsigned char)u0, (unsigned char)(u1 >> 8), (unsigned char)i0, (unsigned char)(bits(f1) >> 16));"
        )
        lines.append("}")
        half = "__device__ __forceinline__ unsigned half_bits(half x) { return __hisnan(x) ? 0x7fffu : __half_as_ushort(x); }\n"
        dynamic = "extern __shared__ unsigned dyn[];\n" if self.dynamic else ""
        return (
            include
            + BITS
            + (half if self.narrow == "half" else "")
            + "__device__ __forceinline__ float tame(float x) { return fminf(fmaxf(x, -4096.f), 4096.f); }\n"
            + "__device__ __forceinline__ double tame(double x) { return fmin(fmax(x, -1048576.), 1048576.); }\n"
            + "struct Record { int a; float b; short c; unsigned char d; };\n"
            + f"__constant__ unsigned TABLE[16] = {{{table}}};\n__device__ unsigned short numbers[11] = {{{numbers}}};\n"
            + dynamic
            + "\n".join(lines)
            + "\n"
        )

    def make_args(self) -> list:
        s = Stream(33, self.seed)
        total = self.threads * self.blocks
        floats = np.ldexp(
            s.uniform(ITEMS) - 0.5, (s.words(ITEMS) % np.uint64(16)).astype(np.intc)
        ).astype(np.float32)
        floats[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1.0, -1.0]
        words = (s.words(ITEMS) >> np.uint64(20)).astype(np.uint32)
        words[::5] &= 15
        dtypes = {
            "unsigned": np.uint32,
            "int": np.int32,
            "unsigned long long": np.uint64,
            "float": np.float32,
            "double": np.float64,
        }
        bins = [np.full(8, 3, dtypes[kind]) for _, kind, _ in self.atomic]
        return [
            words,
            floats,
            np.zeros(total, np.uint32),
            np.zeros(total, np.float32),
            np.zeros(total, np.uint64),
            np.zeros(4 * total, np.uint8),
            np.full(total, 9, np.uint32),
            *bins,
            np.int32(s.between(1, 999)),
            np.float32(1.25),
            np.int64(s.below(1 << 62)),
        ]

    def case(self) -> Case:
        # Without it the compiler may or may not join a * b + c; intrinsics are never joined.
        options = () if self.intrinsics else ("-fmad=false",)
        return Case(
            f"program_{self.seed}",
            self.code(),
            "k",
            self.grid,
            self.block,
            self.make_args,
            tuple(range(2, 10)),
            options,
            4 * self.threads if self.dynamic else 0,
            {"dead": self.live < self.threads},
        )


@functools.cache
def programs() -> tuple[Case, ...]:
    """Every random kernel."""
    return tuple(Program(seed).case() for seed in range(PROGRAMS))
