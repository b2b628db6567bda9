# ruff: noqa: E501 (kernel text reads better unbroken)
"""Random small kernels: free of races, and with one possible result, by construction."""

from __future__ import annotations

import functools

import numpy as np

from .cases import BITS, Case, Stream
from .expressions import LETTERS, Scope, condition, expression

PROGRAMS = 72
ITEMS = 256  # elements of each input array

_BLOCKS = [
    (64,),
    (96,),
    (32,),
    (40,),
    (33,),
    (70,),
    (16, 4),
    (8, 3, 2),
    (7, 5),
    (32, 2),
    (4, 4, 4),
    (5, 5, 2),
    (1,),
    (32, 3),
]
_GRIDS = [(1,), (2,), (3,), (2, 2), (1, 3), (2, 1, 2)]
_ATOMICS = {
    "unsigned": ["Add", "Sub", "Min", "Max", "And", "Or", "Xor", "Inc"],
    "int": ["Add", "Min", "Max"],
    "unsigned long long": ["Add", "Max", "Xor", "Min"],
    "float": ["Add"],
    "double": ["Add"],
}


class Program:
    """Builds one kernel's text; `lines` grows as statements are drawn."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.stream = s = Stream(22, seed)
        self.block = s.pick(_BLOCKS)
        self.grid = s.pick(_GRIDS)
        self.threads = int(np.prod(self.block))
        while self.threads * int(np.prod(self.grid)) > 256:
            self.grid = s.pick(_GRIDS)
        self.blocks = int(np.prod(self.grid))
        self.live = (
            self.threads - 1 - s.below(self.threads // 2)
            if self.threads > 8 and s.chance(25)
            else self.threads
        )
        self.narrow = [None, None, "double", "half", "__nv_bfloat16"][seed % 5]
        self.dynamic = s.chance(35)
        self.intrinsics = s.chance(50)
        self.atomic = [self._atomic_array(i) for i in range(3)]
        self.header: list[str] = []
        self.counter = 0

    def _atomic_array(self, index: int) -> tuple[str, str, str]:
        kind = self.stream.pick(list(_ATOMICS))
        return f"g{index}", kind, self.stream.pick(_ATOMICS[kind])

    def fresh(self) -> str:
        self.counter += 1
        return f"k{self.counter}"

    # ---- statements that any thread may reach alone
    def assign(self, scope: Scope, indent: str) -> list[str]:
        kinds = [
            k
            for k in (
                "unsigned",
                "unsigned",
                "int",
                "float",
                "float",
                "unsigned long long",
                "double",
                "half",
                "__nv_bfloat16",
            )
            if scope.has(k)
        ]
        kind = self.stream.pick(kinds)
        value = expression(scope, kind, self.stream.between(1, 3))
        if kind in ("float", "double") and self.stream.chance(60):
            value = f"tame({value})"
        return [f"{indent}{scope.target(kind)} = {value};"]

    def statement(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s = self.stream
        inner = indent + "  "
        roll = s.below(22) if depth > 0 else s.below(8)
        if roll < 6:
            return self.assign(scope, indent)
        if roll in (6, 7):
            return self.local_array(scope, indent)
        if roll in (8, 9, 10):
            lines = [f"{indent}if ({condition(scope)}) {{", *self.body(scope, inner, depth - 1)]
            if s.chance(60):
                lines += [f"{indent}}} else {{", *self.body(scope, inner, depth - 1)]
            return [*lines, f"{indent}}}"]
        if roll in (11, 12, 13):
            return self.counted_loop(scope, indent, depth)
        if roll in (14, 15):
            return self.while_loop(scope, indent, depth)
        if roll in (16, 17):
            return self.switch(scope, indent, depth)
        if not scope.kernel:
            return self.assign(scope, indent)
        if roll == 18:
            return self.structs(scope, indent)
        if roll == 19:
            return self.global_atomic(scope, indent)
        if roll == 20:
            return self.private_atomic(scope, indent)
        return self.vector_load(scope, indent)

    def body(self, scope: Scope, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.stream.between(1, 3)):
            lines += self.statement(scope, indent, depth)
        return lines

    def counted_loop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s, k = self.stream, self.fresh()
        limit = s.pick(
            [
                str(s.between(2, 6)),
                f"({expression(scope, 'unsigned', 1)} & 7u)",
                f"({expression(scope, 'unsigned', 1)} % 5u)",
            ]
        )
        unroll = s.pick(["", "", "#pragma unroll 1\n", "#pragma unroll\n", "#pragma unroll 2\n"])
        names = {**scope.names, "unsigned": [*scope.names["unsigned"], k]}
        inner = Scope(
            s,
            names,
            scope.sources,
            scope.functions,
            scope.intrinsics,
            (*scope.readonly, k),
            scope.kernel,
        )
        lines = [
            f"{unroll}{indent}for (unsigned {k} = 0; {k} < {limit}; {k} += {s.pick([1, 1, 2])}u) {{"
        ]
        if s.chance(20):
            lines.append(f"{indent}  if ({condition(inner, 1)}) {s.pick(['continue', 'break'])};")
        return [*lines, *self.body(inner, indent + "  ", depth - 1), f"{indent}}}"]

    def while_loop(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s, k = self.stream, self.fresh()
        lines = [f"{indent}for (int {k} = (int)({expression(scope, 'unsigned', 1)} & 15u); ; ) {{"]
        lines.append(f"{indent}  {k} -= 1 + (int)({expression(scope, 'unsigned', 1)} & 1u);")
        lines.append(f"{indent}  if ({k} < 0) break;")
        if s.chance(30):
            lines.append(f"{indent}  if ({condition(scope, 1)}) continue;")
        return [*lines, *self.body(scope, indent + "  ", min(depth - 1, 1)), f"{indent}}}"]

    def switch(self, scope: Scope, indent: str, depth: int) -> list[str]:
        s = self.stream
        cases = s.pick([3, 4, 6, 9])
        lines = [f"{indent}switch ({expression(scope, 'unsigned', 2)} % {cases + s.below(2)}u) {{"]
        for value in range(cases):
            lines += [
                f"{indent}  case {value}:",
                *self.body(scope, indent + "    ", min(depth - 1, 0)),
            ]
            if not s.chance(25):
                lines.append(f"{indent}    break;")
        return [*lines, f"{indent}  default:", *self.assign(scope, indent + "    "), f"{indent}}}"]

    def local_array(self, scope: Scope, indent: str) -> list[str]:
        if not scope.kernel:
            return self.assign(scope, indent)
        index = expression(scope, "unsigned", 1)
        if self.stream.chance(25):
            return [f"{indent}bump(&local[{index} & 7u], {expression(scope, 'unsigned', 1)});"]
        return [
            f"{indent}local[{index} & 7u] {self.stream.pick(['=', '+=', '^='])} {expression(scope, 'unsigned', 2)};"
        ]

    def structs(self, scope: Scope, indent: str) -> list[str]:
        k = self.fresh()
        return [
            f"{indent}Record {k} = records[{expression(scope, 'unsigned', 1)} % {ITEMS // 4}u];",
            f"{indent}{k}.b = tame({k}.b);",
            f"{indent}{k} = twist({k}, {expression(scope, 'unsigned', 1)});",
            f"{indent}{scope.target('unsigned')} ^= (unsigned){k}.a + (unsigned){k}.c * 3u + {k}.d;",
            f"{indent}{scope.target('float')} = {k}.b;",
        ]

    def global_atomic(self, scope: Scope, indent: str) -> list[str]:
        name, kind, op = self.stream.pick(self.atomic)
        value = {
            "float": f"(float)({expression(scope, 'unsigned', 1)} & 15u)",
            "double": f"(double)({expression(scope, 'unsigned', 1)} & 1023u)",
        }.get(kind) or expression(scope, kind, 1)
        value = "6u" if op == "Inc" else value
        return [f"{indent}atomic{op}(&{name}[{expression(scope, 'unsigned', 1)} & 7u], {value});"]

    def private_atomic(self, scope: Scope, indent: str) -> list[str]:
        op = self.stream.pick(
            ["Add", "Sub", "Exch", "Min", "Max", "Inc", "Dec", "And", "Or", "Xor", "CAS"]
        )
        value = expression(scope, "unsigned", 1)
        if op == "CAS":
            value = f"{self.stream.pick(['own[gid]', scope.name('unsigned')])}, {value}"
        return [f"{indent}{scope.target('unsigned')} += atomic{op}(&own[gid], {value});"]

    def vector_load(self, scope: Scope, indent: str) -> list[str]:
        s, k = self.stream, self.fresh()
        kind, parts, count = s.pick(
            [
                ("float4", "xyzw", ITEMS // 4),
                ("float2", "xy", ITEMS // 2),
                ("int2", "xy", ITEMS // 2),
                ("uint4", "xyzw", ITEMS // 4),
                ("short2", "xy", ITEMS),
                ("uchar4", "xyzw", ITEMS),
                ("char2", "xy", 2 * ITEMS),
                ("ushort4", "xyzw", ITEMS // 2),
                ("ulonglong2", "xy", ITEMS // 4),
            ]
        )
        source = "in_f" if kind.startswith("float") else "in_u"
        lines = [
            f"{indent}{kind} {k} = ((const {kind}*){source})[{expression(scope, 'unsigned', 1)} % {count}u];"
        ]
        used = [p for p in parts if s.chance(70)] or [parts[0]]
        for part in used:
            if kind.startswith("float"):
                lines.append(f"{indent}{scope.target('float')} = tame({k}.{part});")
            elif kind.startswith("ulong"):
                lines.append(f"{indent}{scope.target('unsigned long long')} ^= {k}.{part};")
            else:
                lines.append(
                    f"{indent}{scope.target('unsigned')} += (unsigned){k}.{part} * {s.pick([1, 3, 257])}u;"
                )
        return lines

    # ---- statements that all live threads of the block reach together
    def collective(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        roll = s.below(12)
        if roll < 3:
            return self.exchange(scope, indent)
        if roll == 3:
            return self.shared_bins(scope, indent)
        if roll == 4:
            which = s.pick(["count", "or", "and"])
            return [
                f"{indent}{scope.target('unsigned')} += (unsigned)__syncthreads_{which}({condition(scope)});"
            ]
        if roll in (5, 6, 7):
            return self.shuffle(scope, indent)
        if roll == 8:
            return self.masked_shuffle(scope, indent)
        if roll in (9, 10):
            which = s.pick(["ballot", "any", "all"])
            return [
                f"{indent}{scope.target('unsigned')} ^= (unsigned)__{which}_sync(warp_mask, {condition(scope)});"
            ]
        return self.match(scope, indent)

    def exchange(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        shift = s.between(1, 37)
        kind, array = s.pick(
            [("unsigned", "sh_u"), ("float", "sh_f"), ("unsigned", "sh_s"), ("unsigned", "sh_c")]
        )
        if self.dynamic and s.chance(50):
            kind, array = "unsigned", "dyn"
        other = s.pick(
            [
                f"(tid + {shift}u) % live",
                "live - 1u - tid",
                f"({expression(scope, 'unsigned', 1)}) % live",
            ]
        )
        target = scope.target(kind)
        value = expression(scope, kind, 2)
        op = "=" if kind == "float" else s.pick(["=", "^=", "+="])
        if array == "sh_u" and s.chance(40):  # padded rows of 8, two indices
            lines = [f"{indent}sh_2[tid >> 3][tid & 7u] = {value};", f"{indent}__syncthreads();"]
            lines.append(f"{indent}{{ unsigned o = {other}; {target} {op} sh_2[o >> 3][o & 7u]; }}")
        else:
            lines = [
                f"{indent}{array}[tid] = {value};",
                f"{indent}__syncthreads();",
                f"{indent}{target} {op} {array}[{other}];",
            ]
        return [*lines, f"{indent}__syncthreads();"]

    def shared_bins(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        op = s.pick(["Add", "Min", "Max", "And", "Or", "Xor", "Sub"])
        return [
            f"{indent}for (unsigned t = tid; t < 16u; t += live) bins[t] = t * {s.pick([1, 77777, 0x1234567])}u;",
            f"{indent}__syncthreads();",
            f"{indent}if ({condition(scope)}) atomic{op}(&bins[{expression(scope, 'unsigned', 1)} & 15u], {expression(scope, 'unsigned', 2)});",
            f"{indent}__syncthreads();",
            f"{indent}{scope.target('unsigned')} += bins[(tid + {s.below(16)}u) & 15u];",
            f"{indent}__syncthreads();",
        ]

    def shuffle(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        kind = s.pick(
            [
                k
                for k in ("unsigned", "float", "int", "unsigned long long", "double")
                if scope.has(k)
            ]
        )
        target, value = scope.target(kind), expression(scope, kind, 1)
        if self.live % 32:  # a partly filled warp: only lanes below are surely there
            width = s.pick([32, 16, 8])
            call = s.pick(
                [
                    f"__shfl_up_sync(warp_mask, {value}, {s.below(20)}u, {width})",
                    f"__shfl_sync(warp_mask, {value}, (int)({expression(scope, 'unsigned', 1)} % lanes))",
                ]
            )
        else:
            width = s.pick([32, 32, 16, 8, 4, 2])
            how = s.pick(["up", "down", "xor", ""])
            amount = (
                f"{s.below(width)}" if how else f"(int)({expression(scope, 'unsigned', 1)} & 63u)"
            )
            if how in ("up", "down") and s.chance(30):
                amount = "(lane & 3u)"
            call = f"__shfl{'_' if how else ''}{how}_sync(warp_mask, {value}, {amount}, {width})"
        return [f"{indent}{target} = {call};"]

    def masked_shuffle(self, scope: Scope, indent: str) -> list[str]:
        """Half of the lanes shuffle among themselves, the other half may too."""
        s = self.stream
        if self.live % 32:
            return self.shuffle(scope, indent)
        bit = 1 << s.below(5)
        masks = [
            sum(1 << lane for lane in range(32) if bool(lane & bit) == side)
            for side in (False, True)
        ]
        lines = []
        for side in (0, 1):
            target, value = scope.target("unsigned"), expression(scope, "unsigned", 1)
            other = s.below(32) & ~bit
            index = f"(int)(({expression(scope, 'unsigned', 1)} & {31 & ~bit}u) | {bit if side else 0}u)"
            call = s.pick(
                [
                    f"__shfl_xor_sync({masks[side]:#x}u, {value}, {other})",
                    f"__shfl_sync({masks[side]:#x}u, {value}, {index})",
                    f"(unsigned)__reduce_add_sync({masks[side]:#x}u, {value})",
                    f"__ballot_sync({masks[side]:#x}u, {condition(scope, 1)})",
                    f"__reduce_max_sync({masks[side]:#x}u, {value})",
                ]
            )
            head = (
                f"{indent}if (lane & {bit}u) {{"
                if side == 1
                else f"{indent}if (!(lane & {bit}u)) {{"
            )
            lines += [head, f"{indent}  {target} ^= {call};", f"{indent}}}"]
        return lines

    def match(self, scope: Scope, indent: str) -> list[str]:
        s = self.stream
        target, k = scope.target("unsigned"), self.fresh()
        kind = s.pick(["unsigned", "unsigned long long"])
        value = f"(({kind})({expression(scope, kind, 1)}) & {s.pick([0, 1, 3, 7])})"
        if s.chance(60):
            return [f"{indent}{target} ^= __match_any_sync(warp_mask, {value});"]
        return [
            f"{indent}int {k};",
            f"{indent}{target} ^= __match_all_sync(warp_mask, {value}, &{k});",
            f"{indent}{scope.target('int')} = {k} + {s.below(9)};",
        ]

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
