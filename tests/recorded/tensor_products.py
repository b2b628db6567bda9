# ruff: noqa: E501 (kernel text reads better unbroken)
"""Products of the tensor cores: mma.sync on tiles of many scales."""

from __future__ import annotations

import numpy as np

from .cases import Case, Stream

TILES = 192  # products a shape of mma


def _half_bits(values: np.ndarray, kind: str) -> np.ndarray:
    """float64 -> bits of f16 or bf16 (rounded to nearest, or cut for bf16: any value does)."""
    with np.errstate(over="ignore"):
        if kind == "f16":
            return values.astype(np.float16).view(np.uint16)
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _power(s: Stream, span: int, low: int, count: int) -> np.ndarray:
    """2^low to 2^(low + span - 1), drawn evenly."""
    return np.ldexp(1.0, (s.words(count) % np.uint64(span)).astype(np.intc) + low)


def _tile_values(s: Stream, mode: int, count: int, kind: str) -> np.ndarray:
    """Factors of one tile: `mode` says what kind of sums they make."""
    sign = np.where(s.words(count) & np.uint64(1), -1.0, 1.0)
    u = s.uniform(count)
    if mode == 0:
        return sign * u
    if mode == 1:
        return sign * (1 + u) * _power(s, 9, -4, count)
    if mode == 2:  # every exponent of the format, subnormals too
        low, span = (-24, 39) if kind == "f16" else (-64, 128)
        return sign * (1 + u) * _power(s, span, low, count)
    if mode == 3:  # one factor in eight is large: the small ones fall off the end of the sum
        large = s.words(count) % np.uint64(8) == 0
        return np.where(large, sign * (1 + u) * 64, sign * (1 + u) / 64)
    if mode == 4:
        return (s.words(count) % np.uint64(17)).astype(np.float64) - 8
    if mode == 5:  # the second half nearly cancels the first
        half = (1 + u[: count // 2]) * sign[: count // 2]
        return np.stack([half, -half * (1 + 2.0**-9 * (u[count // 2 :] < 0.5))], 1).ravel()
    if mode == 6:  # powers of two: sums whose bits show where a cut falls
        return sign * _power(s, 25, -12, count)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 6e-8, 60000.0])
    value = sign * u
    where = s.words(count) % np.uint64(40) == 0
    return np.where(where, special[(s.words(count) % np.uint64(7)).astype(np.intp)], value)


def _accumulators(s: Stream, mode: int, count: int) -> np.ndarray:
    """float64 addends of one tile; every third tile of a mode starts from zero."""
    sign = np.where(s.words(count) & np.uint64(1), -1.0, 1.0)
    u = s.uniform(count)
    if mode == 2:
        return sign * (1 + u) * _power(s, 50, -30, count)
    if mode in (3, 6):
        return sign * (1 + u) * _power(s, 30, -14, count)
    return sign * u * 4


def mma(shape: str, kind: str, accumulate: str) -> Case:
    k = int(shape.split("k")[1])
    a_regs, b_regs = k // 4, k // 8
    c_regs = 4 if accumulate == "f32" else 2
    letter, ctype = ("f", "float") if accumulate == "f32" else ("r", "unsigned")
    d = ",".join(f"%{i}" for i in range(c_regs))
    a = ",".join(f"%{i + c_regs}" for i in range(a_regs))
    b = ",".join(f"%{i + c_regs + a_regs}" for i in range(b_regs))
    outs = ", ".join(f'"+{letter}"(c[{i}])' for i in range(c_regs))
    loads = [f'"r"(a[(tile * {a_regs} + {i}) * 32 + t])' for i in range(a_regs)]
    loads += [f'"r"(b[(tile * {b_regs} + {i}) * 32 + t])' for i in range(b_regs)]
    name = f"mma.sync.aligned.{shape}.row.col.{accumulate}.{kind}.{kind}.{accumulate}"
    code = f"""extern "C" __global__ void k(const unsigned* a, const unsigned* b, const {ctype}* c0, {ctype}* d) {{
  int t = threadIdx.x, tile = blockIdx.x; {ctype} c[{c_regs}];
  for (int i = 0; i < {c_regs}; i++) c[i] = c0[(tile * {c_regs} + i) * 32 + t];
  asm volatile("{name} {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};" : {outs} : {", ".join(loads)});
  for (int i = 0; i < {c_regs}; i++) d[(tile * {c_regs} + i) * 32 + t] = c[i];
}}
"""

    def make_args() -> list:
        s = Stream(44, k, kind == "f16", accumulate == "f32")
        a, b, c = [], [], []
        for tile in range(TILES):
            mode = tile % 8
            a.append(_half_bits(_tile_values(s, mode, a_regs * 64, kind), kind))
            b.append(_half_bits(_tile_values(s, mode if mode != 5 else 0, b_regs * 64, kind), kind))
            count = 128
            start = _accumulators(s, mode, count) * (0.0 if tile // 8 % 3 == 0 else 1.0)
            c.append(start)
        start = np.array(c)
        shape_c = (TILES, c_regs, 32)
        with np.errstate(over="ignore"):
            if accumulate == "f32":
                first = start.astype(np.float32).reshape(shape_c)
            else:
                first = start.astype(np.float16).view(np.uint32).reshape(shape_c)
        return [
            np.array(a).view(np.uint32).reshape(TILES, a_regs, 32),
            np.array(b).view(np.uint32).reshape(TILES, b_regs, 32),
            first,
            np.zeros(shape_c, first.dtype),
        ]

    notes = {"mma": (shape, kind, accumulate)}
    return Case(
        f"mma_{shape}_{kind}_{accumulate}",
        code,
        "k",
        (TILES,),
        (32,),
        make_args,
        (3,),
        (),
        0,
        notes,
    )
