# ruff: noqa: E501 (kernel text reads better unbroken)
"""Instructions that a whole warp carries out, tensor cores, asynchronous copies and atomics."""

from __future__ import annotations

import functools

import numpy as np

from .cases import Case, Stream
from .tensor_products import mma


def _case(name: str, code: str, block: tuple, inputs, outputs, grid=(1,), options=()) -> Case:
    """A case whose arguments are `inputs(stream)` followed by zeroed `outputs` [(shape, dtype)]."""
    first = len(inputs(Stream(0)))

    def make_args() -> list:
        return [
            *inputs(Stream(55, *name.encode())),
            *(np.zeros(shape, dtype) for shape, dtype in outputs),
        ]

    places = tuple(range(first, first + len(outputs)))
    return Case(name, code, "k", grid, block, make_args, places, options)


def _permutation(s: Stream, count: int) -> np.ndarray:
    return np.argsort(s.words(count), kind="stable").astype(np.uint32)


def _words(s: Stream, *shape: int) -> np.ndarray:
    return (s.words(int(np.prod(shape))) >> np.uint64(16)).astype(np.uint32).reshape(shape)


SHARED = "unsigned base = (unsigned)__cvta_generic_to_shared(s);"


def _matrix_moves() -> list[Case]:
    cases = []
    for x in (1, 2, 4):
        for trans in ("", ".trans"):
            regs = ",".join(f"%{i}" for i in range(x))
            outs = ", ".join(f'"=r"(r[{i}])' for i in range(x))
            ins = ", ".join(f'"r"(r[{i}])' for i in range(x))
            code = f"""extern "C" __global__ void k(const unsigned* g, const unsigned* rows, unsigned* out) {{
  __shared__ __align__(16) unsigned s[128 * 4]; int t = threadIdx.x; unsigned r[{x}]; {SHARED}
  for (int i = t; i < 512; i += 64) s[i] = g[i];
  __syncthreads();
  asm volatile("ldmatrix.sync.aligned.m8n8.x{x}{trans}.shared.b16 {{{regs}}}, [%{x}];" : {outs} : "r"(base + rows[t] * 16));
  for (int i = 0; i < {x}; i++) out[i * 64 + t] = r[i];
}}
"""
            inputs = lambda s: [_words(s, 512), _permutation(s, 128)[:64].copy()]  # noqa: E731
            cases.append(
                _case(f"ldmatrix_x{x}{trans}", code, (64,), inputs, [((x, 64), np.uint32)])
            )
            places = ",".join(f"%{i + 1}" for i in range(x))
            code = f"""extern "C" __global__ void k(const unsigned* g, const unsigned* rows, unsigned* out) {{
  __shared__ __align__(16) unsigned s[128 * 4]; int t = threadIdx.x; unsigned r[{x}]; {SHARED}
  for (int i = t; i < 512; i += 64) s[i] = 0x01010101u * i;
  for (int i = 0; i < {x}; i++) r[i] = g[i * 64 + t];
  __syncthreads();
  asm volatile("stmatrix.sync.aligned.m8n8.x{x}{trans}.shared.b16 [%0], {{{places}}};" :: "r"(base + rows[t] * 16), {ins} : "memory");
  __syncthreads();
  for (int i = t; i < 512; i += 64) out[i] = s[i];
}}
"""
            cases.append(_case(f"stmatrix_x{x}{trans}", code, (64,), inputs, [((512,), np.uint32)]))
    code = """extern "C" __global__ void k(const unsigned* g, unsigned* out) {
  unsigned r; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(g[threadIdx.x])); out[threadIdx.x] = r;
}
"""
    cases.append(_case("movmatrix", code, (96,), lambda s: [_words(s, 96)], [((96,), np.uint32)]))
    return cases


def _async_copies() -> list[Case]:
    cases = []
    for kind, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        for fill in (False, True):
            extra, operand = (", %2", ', "r"(sizes[t])') if fill else ("", "")
            code = f"""extern "C" __global__ void k(const unsigned* g, const unsigned* places, const unsigned* sizes, unsigned* out) {{
  __shared__ __align__(16) unsigned s[64 * 4 + 4]; int t = threadIdx.x; {SHARED}
  for (int i = t; i < 260; i += 64) s[i] = 0xabcd0000u + i;
  __syncthreads();
  asm volatile("cp.async.{kind}.shared.global [%0], [%1], {size}{extra};" :: "r"(base + places[t] * {size}), "l"((const char*)g + t * {size}){operand} : "memory");
  asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int i = t; i < 260; i += 64) out[i] = s[i];
}}
"""
            inputs = functools.partial(_copy_inputs, size)
            name = f"cp_async_{kind}_{size}{'_zfill' if fill else ''}"
            cases.append(_case(name, code, (64,), inputs, [((260,), np.uint32)]))
    code = f"""extern "C" __global__ void k(const uint4* g, uint4* out) {{
  __shared__ uint4 s[3][32]; int t = threadIdx.x; {SHARED}
  for (int stage = 0; stage < 2; stage++) {{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + (stage * 32 + t) * 16), "l"(g + stage * 32 + t) : "memory");
    asm volatile("cp.async.commit_group;");
  }}
  for (int i = 0; i < 6; i++) {{
    if (i + 2 < 6) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + ((i + 2) % 3 * 32 + t) * 16), "l"(g + (i + 2) * 32 + t) : "memory");
    asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 2;" ::: "memory");
    __syncwarp();
    out[i * 32 + t] = s[i % 3][31 - t];
    __syncwarp();
  }}
  asm volatile("cp.async.wait_all;" ::: "memory");
}}
"""
    cases.append(
        _case(
            "cp_async_pipeline",
            code,
            (32,),
            lambda s: [_words(s, 6, 32, 4)],
            [((6, 32, 4), np.uint32)],
        )
    )
    return cases


def _copy_inputs(size: int, s: Stream) -> list[np.ndarray]:
    return [_words(s, 256), _permutation(s, 64), _words(s, 64) % (size + 1)]


def _votes() -> list[Case]:
    cases = []
    reductions = [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32")]
    reductions += [f"{op}.b32" for op in ("and", "or", "xor")]
    lines, slot = [], 0
    for op in reductions:
        for mask in (0xFFFFFFFF, 0x0000FF0F, 0xAAAAAAAA, 0x80000001):
            lines.append(
                f'  if (({mask:#x}u >> lane) & 1u) {{ asm volatile("redux.sync.{op} %0, %1, %2;" : "=r"(r) : "r"(v), "r"({mask:#x}u)); out[{slot} * 64 + t] = r; }}'
            )
            slot += 1
    code = "\n".join(
        [
            'extern "C" __global__ void k(const unsigned* g, unsigned* out) {',
            "  int t = threadIdx.x, lane = t & 31; unsigned v = g[t], r;",
            *lines,
            "}",
            "",
        ]
    )
    cases.append(
        _case(
            "redux",
            code,
            (64,),
            lambda s: [_words(s, 64) >> (_words(s, 64) % 20)],
            [((slot, 64), np.uint32)],
        )
    )

    code = """extern "C" __global__ void k(const unsigned* g, unsigned* out) {
  int t = threadIdx.x, lane = t & 31; unsigned r;
  for (int i = 0; i < 8; i++) {
    unsigned p = (g[i * 64 + t] & 7u) < (unsigned)i, mask = i < 4 ? 0xffffffffu : (lane & 4) ? 0xf0f0f0f0u : 0x0f0f0f0fu;
    if (lane & 4) {
      if (i >= 4) {
        asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.all.pred q, p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 0) * 64 + t] = r;
        asm volatile("{.reg .pred p; setp.ne.b32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 3) * 64 + t] = r;
      }
    } else if (i >= 4) {
      asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.any.pred q, !p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 1) * 64 + t] = r;
      asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.uni.pred q, p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 2) * 64 + t] = r;
    }
    __syncwarp();
    if (i < 4) {
      asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.all.pred q, !p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 0) * 64 + t] = r;
      asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.any.pred q, p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 1) * 64 + t] = r;
      asm volatile("{.reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.uni.pred q, p, %2; selp.b32 %0, 1, 0, q;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 2) * 64 + t] = r;
      asm volatile("{.reg .pred p; setp.ne.b32 p, %1, 0; vote.sync.ballot.b32 %0, !p, %2;}" : "=r"(r) : "r"(p), "r"(mask)); out[(i * 4 + 3) * 64 + t] = r;
    }
  }
}
"""
    cases.append(_case("vote", code, (64,), lambda s: [_words(s, 8, 64)], [((32, 64), np.uint32)]))

    code = """extern "C" __global__ void k(unsigned* out) {
  int t = threadIdx.x, lane = t & 31; unsigned leader, chosen, a, b, c, d, e, f, v = 0;
  asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p;}" : "=r"(leader), "=r"(chosen));
  out[t] = leader; out[64 + t] = chosen;
  if (lane >= 5 && lane < 21) {
    asm volatile("{.reg .pred p; elect.sync %0|p, 0x1fffe0; selp.b32 %1, 1, 0, p;}" : "=r"(leader), "=r"(chosen));
    out[128 + t] = leader; out[192 + t] = chosen;
  }
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(a)); asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(b));
  asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(c)); asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(d));
  asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(e)); asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(f));
  out[256 + t] = a ^ (b * 3u) ^ (c * 5u) ^ (d * 7u) ^ (e * 9u) ^ (f * 11u);
  if (lane % 3 == 0) v = __activemask();
  out[320 + t] = v;
}
"""
    cases.append(_case("elect_and_masks", code, (64,), lambda s: [], [((6, 64), np.uint32)]))

    lines, slot = [], 0
    for mode in ("up", "down", "bfly", "idx"):
        for _ in range(6):
            lines.append(
                f'  asm volatile("{{.reg .pred p; shfl.sync.{mode}.b32 %0|p, %2, %3, %4, 0xffffffff; selp.b32 %1, 1, 0, p;}}" : "=r"(r), "=r"(p) : "r"(g[t]), "r"(b[{slot} * 64 + t]), "r"(c[{slot} * 64 + t]));'
                f" out[{slot} * 64 + t] = r; ok[{slot} * 64 + t] = p;"
            )
            slot += 1
    code = "\n".join(
        [
            'extern "C" __global__ void k(const unsigned* g, const unsigned* b, const unsigned* c, unsigned* out, unsigned* ok) {',
            "  int t = threadIdx.x; unsigned r, p;",
            *lines,
            "}",
            "",
        ]
    )

    def shuffle_inputs(s: Stream) -> list[np.ndarray]:
        distance = _words(s, slot, 64) % np.where(_words(s, slot, 64) % 4 == 0, 64, 9).astype(
            np.uint32
        )
        width = (np.uint32(1) << (_words(s, slot, 1) % 6)).astype(np.uint32) + np.zeros(
            (slot, 64), np.uint32
        )
        clamp = np.full((slot, 64), 0x1F, np.uint32)
        clamp[:6] = 0
        clamp[5::6] = _words(s, 4, 64) % 32  # arbitrary clamps
        segment = (32 - width) << 8
        segment[4::6] = _words(s, 4, 1) % 32 << 8  # arbitrary segment masks, the same for a warp
        return [_words(s, 64), distance, (segment | clamp).astype(np.uint32)]

    cases.append(
        _case(
            "shfl", code, (64,), shuffle_inputs, [((slot, 64), np.uint32), ((slot, 64), np.uint32)]
        )
    )
    return cases


def _memory_forms() -> list[Case]:
    cases = []
    code = """extern "C" __global__ void k(const unsigned char* g, const unsigned* at, unsigned* out, unsigned char* stored) {
  __shared__ __align__(16) unsigned char s[1024]; int t = threadIdx.x; unsigned base = (unsigned)__cvta_generic_to_shared(s), a, b, c, d, x = 0;
  unsigned long long l, m; unsigned short h, i;
  for (int j = t; j < 1024; j += 32) s[j] = g[j] ^ 0x5a;
  __syncwarp();
#define MIX(v) x = (x ^ (unsigned)(v)) * 2654435761u
  const unsigned char* p = g + at[t] * 16; unsigned q = base + at[t] * 16;
  asm volatile("ld.global.nc.u8 %0, [%1+3];" : "=h"(h) : "l"(p)); MIX(h);
  asm volatile("ld.global.s8 %0, [%1+5];" : "=r"(a) : "l"(p)); MIX(a);
  asm volatile("ld.global.s16 %0, [%1+6];" : "=r"(a) : "l"(p)); MIX(a);
  asm volatile("ld.global.s32 %0, [%1+8];" : "=l"(l) : "l"(p)); MIX(l >> 16);
  asm volatile("ld.global.cg.v2.u16 {%0,%1}, [%2+4];" : "=h"(h), "=h"(i) : "l"(p)); MIX(h); MIX(i);
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p)); MIX(a); MIX(b); MIX(c); MIX(d);
  asm volatile("ld.global.v4.u8 {%0,%1,%2,%3}, [%4+12];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p)); MIX(a); MIX(b); MIX(c); MIX(d);
  asm volatile("ld.global.v2.s8 {%0,%1}, [%2+2];" : "=r"(a), "=r"(b) : "l"(p)); MIX(a); MIX(b);
  asm volatile("ld.global.v2.u64 {%0,%1}, [%2];" : "=l"(l), "=l"(m) : "l"(p)); MIX(l >> 20); MIX(m);
  asm volatile("ld.volatile.global.u32 %0, [%1+4];" : "=r"(a) : "l"(p)); MIX(a);
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1+8];" : "=r"(a) : "l"(p)); MIX(a);
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(a) : "l"(p)); MIX(a);
  asm volatile("ld.u16 %0, [%1+10];" : "=h"(h) : "l"(p)); MIX(h);
  asm volatile("ld.shared.u8 %0, [%1+1];" : "=h"(h) : "r"(q)); MIX(h);
  asm volatile("ld.shared.s8 %0, [%1+7];" : "=r"(a) : "r"(q)); MIX(a);
  asm volatile("ld.shared.s16 %0, [%1+14];" : "=r"(a) : "r"(q)); MIX(a);
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2+8];" : "=r"(a), "=r"(b) : "r"(q)); MIX(a); MIX(b);
  asm volatile("ld.shared.v4.u16 {%0,%1,%2,%3}, [%4+8];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(q)); MIX(a); MIX(b); MIX(c); MIX(d);
  asm volatile("ld.shared.u64 %0, [%1+8];" : "=l"(l) : "r"(q)); MIX(l >> 40);
  asm volatile("ld.volatile.shared.u32 %0, [%1+4];" : "=r"(a) : "r"(q)); MIX(a);
  out[t] = x;
  unsigned char* w = stored + t * 32;
  asm volatile("st.global.u8 [%0], %1;" :: "l"(w), "r"(x) : "memory");
  asm volatile("st.global.u16 [%0+2], %1;" :: "l"(w), "r"(x >> 3) : "memory");
  asm volatile("st.global.v2.u8 [%0+4], {%1,%2};" :: "l"(w), "r"(x >> 5), "r"(x >> 7) : "memory");
  asm volatile("st.global.cs.v4.u8 [%0+8], {%1,%2,%3,%4};" :: "l"(w), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
  asm volatile("st.global.wb.v2.u16 [%0+12], {%1,%2};" :: "l"(w), "r"(a), "r"(x) : "memory");
  asm volatile("st.volatile.global.u32 [%0+16], %1;" :: "l"(w), "r"(x * 7u) : "memory");
  asm volatile("st.relaxed.gpu.global.u32 [%0+20], %1;" :: "l"(w), "r"(x * 9u) : "memory");
  asm volatile("st.release.gpu.global.u64 [%0+24], %1;" :: "l"(w), "l"(l * 5u) : "memory");
}
"""

    def form_inputs(s: Stream) -> list[np.ndarray]:
        return [_words(s, 256).view(np.uint8), _words(s, 32) % 63]

    cases.append(
        _case(
            "load_store_forms", code, (32,), form_inputs, [((32,), np.uint32), ((32, 32), np.uint8)]
        )
    )

    code = """__device__ unsigned tally[4] = {1, 2, 3, 4};
__device__ __noinline__ unsigned sum(const unsigned* p, int n) { unsigned x = 0; for (int i = 0; i < n; i++) x = x * 31u + p[i]; return x; }
extern "C" __global__ void k(const unsigned* g, unsigned* out) {
  __shared__ unsigned s[64]; unsigned mine[6]; int t = threadIdx.x, i; unsigned where = 0;
  s[t] = g[t] * 3u; for (i = 0; i < 6; i++) mine[(i + t) % 6] = g[t] + i;
  __syncthreads();
  const unsigned* p = t % 4 == 0 ? g + t : t % 4 == 1 ? s + (t & 31) : t % 4 == 2 ? mine : tally;
  out[t] = sum(p, 4 + (t % 4 == 2 ? t % 3 : 0));
  asm volatile("{.reg .pred p, q, r; isspacep.global p, %1; isspacep.shared q, %1; isspacep.local r, %1; selp.b32 %0, 1, 0, p; @q add.u32 %0, %0, 2; @r add.u32 %0, %0, 4;}" : "=r"(where) : "l"(p));
  out[64 + t] = where;
  __syncthreads();
  unsigned* w = (t & 1) ? s + t : out + 128 + t;
  *w = where * 100u + t; __syncthreads();
  if (t & 1) out[128 + t] = s[t] + 7u;
}
"""
    cases.append(
        _case("generic_pointers", code, (64,), lambda s: [_words(s, 128)], [((3, 64), np.uint32)])
    )

    code = """extern "C" __global__ void k(const unsigned* g, unsigned* u, unsigned long long* w, float* f, unsigned* packed, unsigned short* h) {
  __shared__ unsigned su[8]; __shared__ unsigned long long sw[4]; __shared__ float sf[4];
  int t = threadIdx.x, j = g[t] & 3; unsigned v = g[t] >> 8, r; if (t < 8) su[t] = 5; if (t < 4) { sw[t] = 7; sf[t] = 0.5f; } __syncthreads();
  asm volatile("red.global.add.u32 [%0], %1;" :: "l"(u + j), "r"(v) : "memory");
  asm volatile("red.global.max.s32 [%0], %1;" :: "l"(u + 4 + j), "r"(v << 7) : "memory");
  asm volatile("red.global.min.u32 [%0], %1;" :: "l"(u + 8 + j), "r"(v) : "memory");
  asm volatile("red.global.inc.u32 [%0], %1;" :: "l"(u + 12 + j), "r"(9) : "memory");
  asm volatile("red.global.xor.b32 [%0], %1;" :: "l"(u + 16 + j), "r"(v) : "memory");
  asm volatile("red.global.dec.u32 [%0], %1;" :: "l"(u + 20 + j), "r"(11) : "memory");
  asm volatile("red.global.add.u64 [%0], %1;" :: "l"(w + j), "l"((unsigned long long)v << 9) : "memory");
  asm volatile("red.global.or.b64 [%0], %1;" :: "l"(w + 4 + j), "l"((unsigned long long)v << 21) : "memory");
  asm volatile("red.global.min.s64 [%0], %1;" :: "l"(w + 8 + j), "l"((long long)((unsigned long long)v << 41)) : "memory");
  asm volatile("red.global.add.f32 [%0], %1;" :: "l"(f + j), "f"((float)(v & 255u)) : "memory");
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(packed + j), "r"(0x3c004000u) : "memory");
  asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" :: "l"(packed + 4 + j), "r"(0x3f804000u) : "memory");
  asm volatile("{.reg .b16 o; atom.global.add.noftz.f16 o, [%0], %1;}" :: "l"(h + j), "h"((unsigned short)0x3c00) : "memory");
  asm volatile("{.reg .b16 o; atom.global.cas.b16 o, [%0], %1, %2;}" :: "l"(h + 4 + j), "h"((unsigned short)0), "h"((unsigned short)(40 + j)) : "memory");
  asm volatile("{.reg .b64 o; atom.global.exch.b64 o, [%0], %1;}" :: "l"(w + 12 + j), "l"((unsigned long long)j * 0x123456789ull) : "memory");
  asm volatile("{.reg .b64 o; atom.global.cas.b64 o, [%0], %1, %2;}" :: "l"(w + 16 + j), "l"(0ull), "l"((unsigned long long)j + 77) : "memory");
  atomicAdd(&su[j], v); atomicMax(&su[4 + j], v); atomicAdd(&sw[j], (unsigned long long)v << 5); atomicAdd(&sf[j], (float)(v & 63u));
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(u + 64 + t), "r"(v) : "memory"); u[128 + t] = r;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(u + 192 + t), "r"(t & 3), "r"(v) : "memory"); u[256 + t] = r;
  __syncthreads();
  if (t < 8) u[40 + t] = su[t]; if (t < 4) { w[20 + t] = sw[t]; f[4 + t] = sf[t]; }
}
"""

    def atomic_case() -> Case:
        def make_args() -> list:
            s = Stream(56)
            u = np.zeros(320, np.uint32)
            u[8:12] = 1 << 23
            u[192:256] = np.arange(64) % 5
            return [
                _words(s, 64),
                u,
                np.zeros(24, np.uint64),
                np.zeros(8, np.float32),
                np.zeros(8, np.uint32),
                np.zeros(8, np.uint16),
            ]

        return Case("atomic_forms", code, "k", (1,), (64,), make_args, (1, 2, 3, 4, 5))

    cases.append(atomic_case())

    code = """extern "C" __global__ void k(const unsigned* g, unsigned* out) {
  __shared__ unsigned s[128], count; int t = threadIdx.x, half = t / 64, u = t & 63; unsigned r;
  if (t == 0) count = 0;
  __syncthreads();
  s[t] = g[t];
  if (half == 0) { asm volatile("bar.sync 1, 64;" ::: "memory"); r = s[63 - u]; asm volatile("barrier.sync 1, 64;" ::: "memory"); s[u] = r * 3u; asm volatile("bar.sync 1, 64;" ::: "memory"); out[t] = s[(u + 5) & 63]; }
  else { asm volatile("bar.sync 2, 64;" ::: "memory"); r = s[64 + (u ^ 33)]; asm volatile("bar.sync 2, 64;" ::: "memory"); s[64 + u] = r + u; asm volatile("bar.sync 2, 64;" ::: "memory"); out[t] = s[64 + ((u + 9) & 63)]; }
  __syncthreads();
  if (half == 0) { s[u] = g[u] ^ 0x55u; asm volatile("membar.cta; bar.arrive 3, 128;" ::: "memory"); }
  else { asm volatile("bar.sync 3, 128;" ::: "memory"); out[128 + t] = s[u ^ 1]; }
  __syncthreads();
  int n = __syncthreads_count(g[t] & 1u), any = __syncthreads_or((g[t] & 1023u) == 0), all = __syncthreads_and((g[t] & 0xffu) != 7u);
  out[256 + t] = n * 4 + (any ? 2 : 0) + (all ? 1 : 0);
  __threadfence_block(); __threadfence(); atomicAdd(&count, 1u); __syncthreads(); out[384 + t] = count;
}
"""
    cases.append(
        _case("barriers", code, (128,), lambda s: [_words(s, 128)], [((4, 128), np.uint32)])
    )
    return cases


@functools.cache
def warp_cases() -> tuple[Case, ...]:
    """Every case of this module."""
    products = [
        mma(shape, kind, accumulate)
        for shape in ("m16n8k8", "m16n8k16")
        for kind, accumulate in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))
    ]
    return tuple(products + _matrix_moves() + _async_copies() + _votes() + _memory_forms())
