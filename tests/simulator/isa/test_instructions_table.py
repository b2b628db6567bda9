"""What holds for every pure instruction: types, shapes, untouched inputs, independent elements."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_oracles import bits_of, find, floats, integers

from helpers.simulator.isa.instructions import operation

# One of every family, and every form that takes another path for large or for special arrays.
NAMES = """
add.s32 sub.u64 mul.lo.s32 mul.hi.u64 mul.hi.s32 mul.wide.s32 mad.lo.s32 mad.wide.u16 mad24.lo.u32
sad.s32 div.s32 div.u32 div.s64 rem.s32 rem.u64 min.s32 max.u16 abs.s64 neg.s32 add.sat.s32
add.u16x2 max.relu.s16x2 add.cc.u32 addc.cc.u32 addc.u64 subc.s32 madc.hi.cc.u32 popc.b32 clz.b64
brev.b32 bfind.s32 bfind.shiftamt.u64 fns.b32 bfe.s32 bfe.u64 bfi.b32 szext.clamp.s32 bmsk.wrap.b32
shf.l.wrap.b32 dp4a.u32.s32 dp2a.hi.s32.u32 lop3.b32 lop3.or.b32 and.b32 xor.pred not.b64 cnot.b32
shl.b32 shl.b64 shl.b16 shr.s32 shr.u64 shr.s16 prmt.b32 prmt.b32.rc16 mov.f32 mov.pred
vadd.s32.u32.s32.sat vmad.s32.s32.u32 vshl.u32.u32.u32.sat.clamp vset.u32.s32.lt vadd2.u32.u32.u32
vabsdiff4.u32.u32.u32.add setp.lt.s32 setp.ge.and.u64 setp.lt.ftz.f32 setp.neu.f64 setp.gt.f16
setp.lt.bf16 setp.eq.f16x2 set.lt.u32.f32 set.gt.f16x2.f16x2 set.gt.and.f16x2.f16x2 selp.b32
selp.f64 slct.f32.s32 slct.b64.f32 add.f32 add.ftz.f32 sub.ftz.f32 mul.f32 mul.ftz.f32
mul.ftz.sat.f32 fma.rn.f32 fma.rn.ftz.f32 fma.rm.ftz.f32 fma.rz.f32 add.rp.f32 mul.rz.ftz.f32
div.rn.f32 div.approx.ftz.f32 div.full.ftz.f32 div.rm.f32 rcp.rn.f32 rcp.approx.ftz.f32
sqrt.rn.ftz.f32 sqrt.rz.f32 rsqrt.approx.ftz.f32 sin.approx.ftz.f32 lg2.approx.ftz.f32
ex2.approx.ftz.f32 tanh.approx.f32 abs.ftz.f32 neg.f32 min.f32 max.ftz.f32 max.NaN.f32
min.xorsign.abs.f32 copysign.f32 testp.normal.f32 add.f64 mul.rz.f64 fma.rn.f64 fma.rp.f64
div.rn.f64 div.rm.f64 sqrt.rn.f64 sqrt.rp.f64 rcp.rn.f64 min.f64 rcp.approx.ftz.f64 add.f16
fma.rn.f16 fma.rn.ftz.relu.f16 add.f16x2 mul.sat.f16x2 fma.rn.f16x2 fma.rn.bf16x2 add.bf16 abs.f16
neg.bf16x2 min.f16x2 max.NaN.bf16x2 ex2.approx.f16x2 tanh.approx.f16 cvt.s32.u8 cvt.sat.u8.s32
cvt.u64.u32 cvt.rzi.s32.f32 cvt.rni.ftz.u64.f32 cvt.rpi.s16.f16 cvt.rn.f32.s32 cvt.rz.f64.u64
cvt.rn.f16.f32 cvt.rp.bf16.f64 cvt.f32.f16 cvt.f32.bf16 cvt.f64.f32 cvt.rn.ftz.f32.f64
cvt.rmi.f32.f32 cvt.sat.ftz.f32.f32 cvt.rn.f16x2.f32 cvt.rz.relu.bf16x2.f32 cvt.rna.tf32.f32
cvt.rn.satfinite.e4m3x2.f32 cvt.rn.f16x2.e5m2x2 cvt.pack.sat.u8.s32.b32
""".split()

KIND_OF = {"float16": "f16", "float32": "f32", "float64": "f64"}


def constant(name: str, position: int) -> bool:
    """Whether an operand is one constant in real code: lop3's truth table, prmt's selector."""
    return (name.startswith("lop3") and position == 3) or (name == "prmt.b32" and position == 2)


def operands(name: str, shapes: list[tuple[int, ...]], seed: int) -> list[np.ndarray]:
    """Random operands that nothing may write to."""
    rng = np.random.default_rng([seed, len(name)])
    op = find(name)
    wanted = [*op.inputs, *([np.dtype(bool)] if op.reads_carry else [])]
    values = []
    for i, (dtype, shape) in enumerate(zip(wanted, shapes, strict=False)):
        count = int(np.prod(shape))
        if dtype.kind == "b":
            a = rng.random(count) < 0.5
        elif dtype.kind == "f":
            a = floats(rng, KIND_OF[dtype.name], count).view(dtype)
        else:
            a = integers(rng, dtype.itemsize * 8, count).view(dtype)
        a = a.reshape(shape)
        if constant(name, i):
            a = np.full((1,) * len(shape), 0x5E1A, np.uint32)
        a.flags.writeable = False
        values.append(a)
    return values


def plain_bits(a: np.ndarray) -> list[int]:
    """The bits of every element, with one NaN for all of f64: PTX leaves its payload open."""
    return bits_of(np.where(np.isnan(a), np.nan, a) if a.dtype == np.float64 else a)


def evaluate(name: str, inputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        results = find(name).evaluate(*inputs)
    return results if isinstance(results, tuple) else (results,)


SHAPES = [
    [(2, 3, 1, 1, 4, 8)] * 5,
    [(1, 1, 1, 1, 1, 1)] * 5,
    [(1, 1, 1, 1, 1, 8), (2, 1, 1, 1, 4, 1), (1, 1, 1, 1, 1, 1), (2, 3, 1, 1, 4, 8), (1,) * 6],
    [(40, 1, 1, 1, 16, 16), (1,) * 6, (40, 1, 1, 1, 1, 1), (1, 1, 1, 1, 16, 16), (1,) * 6],
]


@pytest.mark.parametrize("name", NAMES)
def test_types_and_shapes(name: str) -> None:
    op = find(name)
    types = [*op.outputs, *([np.dtype(bool)] if op.writes_carry else [])]
    for seed, shapes in enumerate(SHAPES):
        inputs = operands(name, shapes, seed)
        results = evaluate(name, inputs)
        full = np.broadcast_shapes(*[a.shape for a in inputs])
        assert [r.dtype for r in results] == types
        for result in results:
            assert isinstance(result, np.ndarray) and result.flags.writeable
            assert np.broadcast_shapes(result.shape, full) == full
            assert not any(np.shares_memory(result, a) for a in inputs)
        spread = [
            a if constant(name, i) else np.broadcast_to(a, full) for i, a in enumerate(inputs)
        ]
        for got, want in zip(results, evaluate(name, spread), strict=True):
            assert plain_bits(np.broadcast_to(got, full)) == plain_bits(np.broadcast_to(want, full))


@pytest.mark.parametrize("name", NAMES)
def test_elements_do_not_influence_each_other(name: str) -> None:
    """Thousands together, with NaNs and subnormals among them, give what each gives alone."""
    inputs = operands(name, [(5000,)] * 5, 17)
    together = evaluate(name, inputs)
    rng = np.random.default_rng(len(name))
    for i in rng.integers(0, 5000, 25).tolist():
        alone = evaluate(name, [a if a.size == 1 else a[i : i + 1] for a in inputs])
        for many, one in zip(together, alone, strict=True):
            assert plain_bits(np.broadcast_to(many, (5000,))[i : i + 1]) == plain_bits(one), i
    backwards = evaluate(name, [a if a.size == 1 else a[::-1] for a in inputs])
    for many, reverse in zip(together, backwards, strict=True):
        many, reverse = (np.broadcast_to(r, (5000,)) for r in (many, reverse))
        assert plain_bits(many) == plain_bits(reverse[::-1])


@pytest.mark.parametrize(
    "name",
    """
    add add.f33 fma.f32 fma.rn.ftz.f64 mul.wide.u64 div.f32 setp.ltu.s32 setp.lo.s32 setp.lt.b32
    ld.global.f32 bar.sync sqrt.f32 cvt.rni.f32.f64 cvt.f32 selp.pred ex2.f32 min.relu.f32 shl.u32
    neg.u32 abs.u64 add.rn.s32 add.sat.u32 lop3.b64 prmt.b64 set.lt.f64.f32 cvt.pack.sat.u32.s32
    fma.rn.sat.bf16 cvt.rn.satfinite.e4m3x2.s32 vadd.u16.u32.u32 dp4a.u32.f32 frobnicate.u32
    """.split(),
)
def test_unknown_names(name: str) -> None:
    opcode, *modifiers = name.split(".")
    assert operation(opcode, tuple(modifiers)) is None


def test_floating_point_operations_are_counted_as_profilers_do() -> None:
    flops = {
        "add.ftz.f32": 1, "sub.f64": 1, "mul.f32": 1, "fma.rn.ftz.f32": 2, "fma.rn.f64": 2,
        "add.f16x2": 2, "fma.rn.bf16x2": 4, "fma.rn.f16": 2, "div.rn.f32": 0, "ex2.approx.f32": 0,
        "max.f32": 0, "add.s32": 0, "mad.lo.s32": 0, "cvt.rn.f32.s32": 0,
    }  # fmt: skip
    assert {name: find(name).flops for name in flops} == flops


def test_carry_flags_are_declared() -> None:
    flags = {
        "add.cc.u32": (False, True), "addc.u32": (True, False), "addc.cc.u32": (True, True),
        "mad.lo.cc.u32": (False, True), "madc.hi.u32": (True, False), "add.u32": (False, False),
    }  # fmt: skip
    assert {n: (find(n).reads_carry, find(n).writes_carry) for n in flags} == flags
