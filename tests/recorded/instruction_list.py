"""The PTX instructions that are recorded, by subject."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

ROUNDINGS = ("rn", "rz", "rm", "rp")
SIZES = ("16", "32", "64")


@dataclass(frozen=True)
class Spec:
    """One instruction: its asm text and what goes in and out (kinds of `operands.operand`).

    `approximate` is None where PTX defines every bit, else (format, relative, absolute): the results are numbers of
    that format and may differ by that much. The bounds are PTX's own for the instruction, doubled, since both
    sides err.
    """

    name: str
    asm: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    approximate: tuple[str, float, float] | None = None


def ins(name: str, output: str, *inputs: str, approximate=None, tail: str = "") -> Spec:
    """An instruction of the plain form `name d, a, b, ...;`, `tail` being immediate operands."""
    places = ", ".join(f"%{i}" for i in range(len(inputs) + 1))
    return Spec(f"{name}{tail}", f"{name} {places}{tail};", (output,), inputs, approximate)


def block(name: str, asm: str, outputs: Iterable[str], *inputs: str, approximate=None) -> Spec:
    """Several instructions in braces."""
    return Spec(name, "{ " + asm + " }", tuple(outputs), inputs, approximate)


def predicate(name: str, *inputs: str) -> Spec:
    """An instruction whose result is a predicate, stored as 0 or 1."""
    places = ", ".join(f"%{i + 1}" for i in range(len(inputs)))
    return block(name, f".reg .pred p; {name} p, {places}; selp.b32 %0, 1, 0, p;", ["b32"], *inputs)


def bits(kind: str) -> str:
    """The kind of raw operands of a PTX type: s32 -> b32, f32 -> f32."""
    return f"b{kind[1:]}" if kind[0] in "su" else kind


def _integer() -> list[Spec]:
    out = []
    for size in SIZES:
        b = f"b{size}"
        for op in ("add", "sub"):
            out.append(ins(f"{op}.s{size}", b, b, b))
        for t in (f"s{size}", f"u{size}"):
            for op in ("mul.lo", "mul.hi", "div", "rem", "min", "max"):
                out.append(ins(f"{op}.{t}", b, b, b))
            for op in ("mad.lo", "mad.hi"):
                out.append(ins(f"{op}.{t}", b, b, b, b))
            out.append(ins(f"sad.{t}", b, b, b, b))
            if size != "64":
                wide = f"b{int(size) * 2}"
                out.append(ins(f"mul.wide.{t}", wide, b, b))
                out.append(ins(f"mad.wide.{t}", wide, b, b, wide))
        for op in ("neg", "abs"):
            out.append(ins(f"{op}.s{size}", b, b))
    for op in (
        "add.sat.s32",
        "sub.sat.s32",
        "mul24.lo.s32",
        "mul24.hi.s32",
        "mul24.lo.u32",
        "mul24.hi.u32",
    ):
        out.append(ins(op, "b32", "b32", "b32"))
    for op in (
        "mad.hi.sat.s32",
        "mad24.lo.s32",
        "mad24.hi.s32",
        "mad24.lo.u32",
        "mad24.hi.u32",
        "mad24.hi.sat.s32",
    ):
        out.append(ins(op, "b32", "b32", "b32", "b32"))
    for op in ("min.relu.s32", "max.relu.s32"):
        out.append(ins(op, "b32", "b32", "b32"))
    for op in (
        "add.u16x2",
        "add.s16x2",
        "min.u16x2",
        "max.s16x2",
        "min.s16x2",
        "max.u16x2",
        "min.relu.s16x2",
        "max.relu.s16x2",
    ):
        out.append(ins(op, "b32", "b16x2", "b16x2"))
    for a in "su":
        for b in "su":
            out.append(ins(f"dp4a.{a}32.{b}32", "b32", "b8x4", "b8x4", "b32"))
            for half in ("lo", "hi"):
                out.append(ins(f"dp2a.{half}.{a}32.{b}32", "b32", "b16x2", "b8x4", "b32"))
    return out


def _carry() -> list[Spec]:
    out = []
    for size in ("32", "64"):
        b = f"b{size}"
        four = (b, b, b, b)
        out += [
            block(
                f"add.cc+addc.u{size}",
                f"add.cc.u{size} %0, %2, %4; addc.u{size} %1, %3, %5;",
                (b, b),
                *four,
            ),
            block(
                f"sub.cc+subc.u{size}",
                f"sub.cc.u{size} %0, %2, %4; subc.u{size} %1, %3, %5;",
                (b, b),
                *four,
            ),
            block(
                f"add.cc+addc.cc+addc.s{size}",
                f"add.cc.s{size} %0, %2, %3; addc.cc.s{size} %1, %4, %5; addc.s{size} %0, %0, %1;",
                (b, b),
                *four,
            ),
            block(
                f"sub.cc+subc.cc+subc.s{size}",
                f"sub.cc.s{size} %0, %2, %3; subc.cc.s{size} %1, %4, %5; subc.s{size} %0, %0, %1;",
                (b, b),
                *four,
            ),
            block(
                f"mad.lo.cc+madc.hi.u{size}",
                f"mad.lo.cc.u{size} %0, %2, %3, %4; madc.hi.u{size} %1, %2, %3, %5;",
                (b, b),
                *four,
            ),
            block(
                f"mad.hi.cc+madc.lo.cc+addc.s{size}",
                f"mad.hi.cc.s{size} %0, %2, %3, %4; madc.lo.cc.s{size} %1, %2, %4, %5; addc.s{size} %0, %0, %3;",
                (b, b),
                *four,
            ),
            block(
                f"mad.lo.cc+madc.hi.cc+addc.u{size}",
                f"mad.lo.cc.u{size} %0, %2, %3, %5; madc.hi.cc.u{size} %1, %2, %4, %5; addc.u{size} %0, 0, 0;",
                (b, b),
                *four,
            ),
        ]
    return out


def _bit() -> list[Spec]:
    out = []
    for size in SIZES:
        b = f"b{size}"
        out += [ins(f"{op}.{b}", b, b, b) for op in ("and", "or", "xor")]
        out += [ins(f"{op}.{b}", b, b) for op in ("not", "cnot")]
        out += [ins(f"shl.{b}", b, b, "shift")]
        out += [ins(f"shr.{t}{size}", b, b, "shift") for t in "bus"]
    for size in ("32", "64"):
        b = f"b{size}"
        out += [ins(f"popc.{b}", "b32", b), ins(f"clz.{b}", "b32", b), ins(f"brev.{b}", b, b)]
        for t in (f"u{size}", f"s{size}"):
            out += [ins(f"bfind.{t}", "b32", b), ins(f"bfind.shiftamt.{t}", "b32", b)]
            out += [ins(f"bfe.{t}", b, b, "shift", "shift")]
        out += [ins(f"bfi.{b}", b, b, b, "shift", "shift")]
    for mode in ("clamp", "wrap"):
        out += [ins(f"szext.{mode}.{t}32", "b32", "b32", "shift") for t in "su"]
        out += [ins(f"bmsk.{mode}.b32", "b32", "shift", "shift")]
        out += [ins(f"shf.{way}.{mode}.b32", "b32", "b32", "b32", "shift") for way in "lr"]
    for table in (0x96, 0xE8, 0xCA, 0x80, 0x1F, 0x00, 0xFF, 0x6A):
        out.append(ins("lop3.b32", "b32", "b32", "b32", "b32", tail=f", {table}"))
    out.append(ins("prmt.b32", "b32", "b32", "b32", "b32"))
    out += [
        ins(f"prmt.b32.{m}", "b32", "b32", "b32", "b32")
        for m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    ]
    out.append(ins("fns.b32", "b32", "b32", "lane", "shift"))
    out += [
        block("mov.b32{h,h}", "mov.b32 %0, {%1, %2};", ["b32"], "b16", "b16"),
        block("mov{h,h}.b32", "mov.b32 {%0, %1}, %2;", ["b16", "b16"], "b32"),
        block("mov.b64{r,r}", "mov.b64 %0, {%1, %2};", ["b64"], "b32", "b32"),
        block("mov{r,r}.b64", "mov.b64 {%0, %1}, %2;", ["b32", "b32"], "b64"),
        block("mov.b64{h,h,h,h}", "mov.b64 %0, {%1, %2, %3, %4};", ["b64"], *["b16"] * 4),
        block("mov{h,h,h,h}.b64", "mov.b64 {%0, %1, %2, %3}, %4;", ["b16"] * 4, "b64"),
    ]
    return out


def _compare() -> list[Spec]:
    out = []
    for size in SIZES:
        for t, ops in (
            (f"s{size}", ("eq", "ne", "lt", "le", "gt", "ge")),
            (f"u{size}", ("lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")),
            (f"b{size}", ("eq", "ne")),
        ):
            out += [predicate(f"setp.{op}.{t}", f"b{size}", f"b{size}") for op in ops]
    ordered = ("eq", "ne", "lt", "le", "gt", "ge")
    unordered = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    for t in ("f32", "ftz.f32", "f64", "f16", "bf16"):
        kind = t.split(".")[-1]
        out += [predicate(f"setp.{op}.{t}", kind, kind) for op in ordered + unordered]
    for bool_op in ("and", "or", "xor"):
        for t, op in (("s32", "lt"), ("f32", "geu"), ("u64", "hi")):
            k = bits(t)
            name = f"setp.{op}.{bool_op}.{t}"
            asm = (
                f".reg .pred p, q, c; setp.ne.b32 c, %4, 0; {name} p|q, %2, %3, c; "
                "selp.b32 %0, 1, 0, p; selp.b32 %1, 1, 0, q;"
            )
            out.append(block(f"{name} p|q", asm, ["b32", "b32"], k, k, "pred"))
            asm = f".reg .pred p, c; setp.ne.b32 c, %3, 0; {name} p, %1, %2, !c; selp.b32 %0, 1, 0, p;"
            out.append(block(f"{name} !c", asm, ["b32"], k, k, "pred"))
    for t in ("f16x2", "bf16x2", "ftz.f16x2"):
        kind = t.split(".")[-1]
        for op in ("lt", "neu", "nan"):
            asm = f".reg .pred p, q; setp.{op}.{t} p|q, %2, %3; selp.b32 %0, 1, 0, p; selp.b32 %1, 1, 0, q;"
            out.append(block(f"setp.{op}.{t} p|q", asm, ["b32", "b32"], kind, kind))
    for name, d, k in (
        ("set.lt.u32.s32", "b32", "b32"),
        ("set.ge.s32.u32", "b32", "b32"),
        ("set.ne.f32.s32", "f32", "b32"),
        ("set.gt.u32.f32", "b32", "f32"),
        ("set.leu.s32.f32", "b32", "f32"),
        ("set.eq.f32.f32", "f32", "f32"),
        ("set.lt.ftz.f32.f32", "f32", "f32"),
        ("set.nan.u32.f64", "b32", "f64"),
        ("set.gt.f32.f64", "f32", "f64"),
        ("set.hi.u32.u64", "b32", "b64"),
        ("set.lt.s32.s16", "b32", "b16"),
        ("set.lt.f16.f16", "f16", "f16"),
        ("set.geu.u32.f16", "b32", "f16"),
        ("set.eq.s16.f16", "b16", "f16"),
        ("set.gt.bf16.bf16", "bf16", "bf16"),
        ("set.lt.u32.bf16", "b32", "bf16"),
        ("set.le.f16x2.f16x2", "b32", "f16x2"),
        ("set.gtu.bf16x2.bf16x2", "b32", "bf16x2"),
        ("set.ne.ftz.f16x2.f16x2", "b32", "f16x2"),
    ):
        out.append(ins(name, d, k, k))
    asm = ".reg .pred c; setp.ne.b32 c, %3, 0; set.lt.and.u32.f32 %0, %1, %2, c;"
    out.append(block("set.lt.and.u32.f32", asm, ["b32"], "f32", "f32", "pred"))
    for t in ("b16", "s32", "u64", "f32", "f64"):
        k = bits(t)
        out.append(ins(f"slct.{t}.s32", k, k, k, "b32"))
        out.append(ins(f"slct.{t}.f32", k, k, k, "f32"))
        asm = f".reg .pred c; setp.ne.b32 c, %3, 0; selp.{t} %0, %1, %2, c;"
        out.append(block(f"selp.{t}", asm, [k], k, k, "pred"))
    out.append(ins("slct.ftz.f32.f32", "f32", "f32", "f32", "f32"))
    for op in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        out += [predicate(f"testp.{op}.{t}", t) for t in ("f32", "f64")]
    for op in ("and", "or", "xor", "not", "mov"):
        second = "" if op in ("not", "mov") else ", q"
        asm = (
            f".reg .pred p, q; setp.ne.b32 p, %1, 0; setp.ne.b32 q, %2, 0; {op}.pred p, p{second}; "
            "selp.b32 %0, 1, 0, p;"
        )
        out.append(block(f"{op}.pred", asm, ["b32"], "pred", "pred"))
    return out


def _contains(target: str, source: str) -> bool:
    """Whether every value of the integer type `source` is one of `target`."""
    more = int(target[1:]) > int(source[1:])
    return more and (target[0] == "s" or source[0] == "u")


def _convert_integers() -> list[Spec]:
    out = []
    types = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    for source in types:
        for target in types:
            if source != target:
                out.append(ins(f"cvt.{target}.{source}", bits(target), bits(source)))
                if not _contains(target, source):  # where nothing can saturate, ptxas refuses .sat
                    out.append(ins(f"cvt.sat.{target}.{source}", bits(target), bits(source)))
    out += [
        ins("cvt.pack.sat.s16.s32", "b32", "b32", "b32"),
        ins("cvt.pack.sat.u16.s32", "b32", "b32", "b32"),
        ins("cvt.pack.sat.u8.s32.b32", "b32", "b32", "b32", "b32"),
        ins("cvt.pack.sat.s8.s32.b32", "b32", "b32", "b32", "b32"),
    ]
    return out


def _convert_floats() -> list[Spec]:
    out = []
    types = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    for t in types:
        for f in ("f32", "f64", "f16"):
            out += [ins(f"cvt.{r}.{t}.{f}", bits(t), f) for r in ("rni", "rzi", "rmi", "rpi")]
        out += [ins(f"cvt.{r}.ftz.{t}.f32", bits(t), "f32") for r in ("rni", "rpi")]
        if t[1:] != "8":
            out += [ins(f"cvt.{r}.{t}.bf16", bits(t), "bf16") for r in ("rni", "rzi", "rmi", "rpi")]
        out.append(ins(f"cvt.rzi.sat.{t}.f32", bits(t), "f32"))
        kind = f"{bits(t)}>f" if bits(t) in ("b32", "b64") else bits(t)
        for f in ("f32", "f64", "f16", "bf16")[: 3 if t[1:] == "8" else 4]:
            out += [ins(f"cvt.{r}.{f}.{t}", f, kind) for r in ROUNDINGS]
    for r in ROUNDINGS:
        out += [
            ins(f"cvt.{r}.f32.f64", "f32", "f64>f32"),
            ins(f"cvt.{r}.ftz.f32.f64", "f32", "f64>f32"),
            ins(f"cvt.{r}.sat.f32.f64", "f32", "f64>f32"),
            ins(f"cvt.{r}.f16.f32", "f16", "f32>f16"),
            ins(f"cvt.{r}.f16.f64", "f16", "f64>f16"),
            ins(f"cvt.{r}.bf16.f32", "bf16", "f32>bf16"),
            ins(f"cvt.{r}.bf16.f64", "bf16", "f64>bf16"),
        ]
    out += [
        ins("cvt.f64.f32", "f64", "f32"),
        ins("cvt.ftz.f64.f32", "f64", "f32"),
        ins("cvt.f32.f16", "f32", "f16"),
        ins("cvt.ftz.f32.f16", "f32", "f16"),
        ins("cvt.f64.f16", "f64", "f16"),
        ins("cvt.f32.bf16", "f32", "bf16"),
        ins("cvt.f64.bf16", "f64", "bf16"),
        ins("cvt.rn.bf16.f16", "bf16", "f16"),
        ins("cvt.rn.f16.bf16", "f16", "bf16"),
        ins("cvt.rn.ftz.f16.f32", "f16", "f32>f16"),
        ins("cvt.rn.sat.f16.f32", "f16", "f32>f16"),
        ins("cvt.rn.relu.f16.f32", "f16", "f32>f16"),
        ins("cvt.rz.relu.f16.f32", "f16", "f32>f16"),
        ins("cvt.rn.relu.bf16.f32", "bf16", "f32>bf16"),
        ins("cvt.rz.relu.bf16.f32", "bf16", "f32>bf16"),
        ins("cvt.rna.tf32.f32", "b32", "f32"),
        ins("cvt.rn.tf32.f32", "b32", "f32"),
        ins("cvt.rz.tf32.f32", "b32", "f32"),
        ins("cvt.rn.relu.tf32.f32", "b32", "f32"),
        ins("cvt.sat.f32.f32", "f32", "f32"),
        ins("cvt.ftz.sat.f32.f32", "f32", "f32"),
        ins("cvt.ftz.f32.f32", "f32", "f32"),
        ins("cvt.sat.f64.f64", "f64", "f64"),
        ins("cvt.sat.f32.f16", "f32", "f16"),
        ins("cvt.rn.sat.f32.s32", "f32", "b32"),
    ]
    for r in ("rn", "rz"):
        for x2, one in (("f16x2", "f16"), ("bf16x2", "bf16")):
            for relu in ("", ".relu"):
                out.append(ins(f"cvt.{r}{relu}.{x2}.f32", "b32", f"f32>{one}", f"f32>{one}"))
    for r in ("rni", "rzi", "rmi", "rpi"):
        out += [ins(f"cvt.{r}.{f}.{f}", f, f) for f in ("f16", "f32", "f64", "bf16")]
        out.append(ins(f"cvt.{r}.ftz.f32.f32", "f32", "f32"))
    return out


def _float32() -> list[Spec]:
    out = []
    f = "f32"
    for op, arguments in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for r in ROUNDINGS:
            for rest in ("", ".ftz", ".sat", ".ftz.sat"):
                if r in ("rz", "rm") and rest == ".sat":
                    continue
                out.append(ins(f"{op}.{r}{rest}.f32", f, *[f] * arguments))
    for name in ("add.f32", "add.ftz.f32", "sub.f32", "mul.f32", "mul.ftz.f32", "mul.sat.f32"):
        out.append(ins(name, f, f, f))
    for r in ROUNDINGS:
        for ftz in ("", ".ftz"):
            out.append(ins(f"div.{r}{ftz}.f32", f, f, f))
            out.append(ins(f"rcp.{r}{ftz}.f32", f, f))
            out.append(ins(f"sqrt.{r}{ftz}.f32", f, f))
    for ftz in ("", ".ftz"):
        out += [ins(f"{op}{ftz}.f32", f, f) for op in ("abs", "neg")]
        for op in ("min", "max"):
            out += [
                ins(f"{op}{ftz}{rest}.f32", f, f, f)
                for rest in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")
            ]
    out.append(ins("copysign.f32", f, f, f))
    return out


def _float64() -> list[Spec]:
    out = []
    f = "f64"
    for r in ROUNDINGS:
        out += [ins(f"{op}.{r}.f64", f, f, f) for op in ("add", "sub", "mul", "div")]
        out.append(ins(f"fma.{r}.f64", f, f, f, f))
        out += [ins(f"{op}.{r}.f64", f, f) for op in ("rcp", "sqrt")]
    out += [ins(f"{op}.f64", f, f, f) for op in ("add", "sub", "mul", "min", "max", "copysign")]
    out += [ins(f"{op}.f64", f, f) for op in ("abs", "neg")]
    return out


def _half() -> list[Spec]:
    out = []
    for f in ("f16", "f16x2"):
        o = "f16" if f == "f16" else "b32"
        for op in ("add", "sub", "mul"):
            for rest in ("", ".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat"):
                out.append(ins(f"{op}{rest}.{f}", o, f, f))
        for rest in ("", ".ftz", ".sat", ".relu", ".ftz.relu", ".ftz.sat"):
            out.append(ins(f"fma.rn{rest}.{f}", o, f, f, f))
        for op in ("neg", "abs"):
            out += [ins(f"{op}{ftz}.{f}", o, f) for ftz in ("", ".ftz")]
        for op in ("min", "max"):
            for rest in ("", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                out.append(ins(f"{op}{rest}.{f}", o, f, f))
    for f in ("bf16", "bf16x2"):
        o = "bf16" if f == "bf16" else "b32"
        for op in ("add", "sub", "mul"):
            out += [ins(f"{op}{rest}.{f}", o, f, f) for rest in ("", ".rn")]
        out += [ins(f"fma.rn{rest}.{f}", o, f, f, f) for rest in ("", ".relu")]
        out += [ins(f"{op}.{f}", o, f) for op in ("neg", "abs")]
        for op in ("min", "max"):
            for rest in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                out.append(ins(f"{op}{rest}.{f}", o, f, f))
    return out


def _approximate() -> list[Spec]:
    """PTX bounds these; relative 2^-20 for f32 unless the manual allows more."""
    out = []
    near = ("f32", 2.0**-20, 0.0)
    for ftz in ("", ".ftz"):
        for op in ("rcp.approx", "sqrt.approx", "rsqrt.approx", "ex2.approx"):
            out.append(ins(f"{op}{ftz}.f32", "f32", "f32", approximate=near))
        out.append(
            ins(f"lg2.approx{ftz}.f32", "f32", "f32", approximate=("f32", 2.0**-20, 2.0**-21))
        )
        for op in ("div.approx", "div.full"):
            out.append(ins(f"{op}{ftz}.f32", "f32", "f32", "f32", approximate=near))
        for op in ("sin.approx", "cos.approx"):
            out.append(
                ins(f"{op}{ftz}.f32", "f32", "angle", approximate=("f32", 2.0**-19, 2.0**-19))
            )
    out.append(ins("tanh.approx.f32", "f32", "f32", approximate=("f32", 2.0**-10, 0.0)))
    for op in ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"):
        out.append(ins(op, "f64", "f64", approximate=("f64", 2.0**-19, 0.0)))
    for f in ("f16", "f16x2"):
        o = "f16" if f == "f16" else "b32"
        out.append(ins(f"tanh.approx.{f}", o, f, approximate=(f, 2.0**-9, 2.0**-23)))
        out.append(ins(f"ex2.approx.{f}", o, f, approximate=(f, 2.0**-8, 2.0**-23)))
    for f in ("bf16", "bf16x2"):
        o = "bf16" if f == "bf16" else "b32"
        out.append(ins(f"tanh.approx.{f}", o, f, approximate=(f, 2.0**-6, 0.0)))
        out.append(ins(f"ex2.approx.ftz.{f}", o, f, approximate=(f, 2.0**-6, 0.0)))
    return out


def _video() -> list[Spec]:
    out = []
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for types in ("s32.s32.s32", "u32.u32.u32", "s32.u32.s32"):
            out.append(ins(f"{op}.{types}", "b32", "b32", "b32"))
        out.append(ins(f"{op}.s32.s32.u32.sat", "b32", "b32", "b32"))
        for second in ("add", "min", "max"):
            out.append(ins(f"{op}.s32.s32.s32.{second}", "b32", "b32", "b32", "b32"))
        name = f"{op}.u32.s32.u32"
        out.append(block(f"{name} .b2,.h1", f"{name} %0, %1.b2, %2.h1;", ["b32"], "b32", "b32"))
        out.append(
            block(f"{name} merge", f"{name} %0.h1, %1.b0, %2.b3, %3;", ["b32"], "b32", "b32", "b32")
        )
        simd = {"vmin": "vmin", "vmax": "vmax"}.get(op, op)
        for lanes in ("2", "4"):
            for types in ("s32.s32.s32", "u32.u32.u32", "u32.s32.u32.sat", "s32.s32.s32.add"):
                out.append(ins(f"{simd}{lanes}.{types}", "b32", "b8x4", "b8x4", "b32"))
    for op in ("vavrg2", "vavrg4"):
        for types in ("s32.s32.s32", "u32.u32.u32"):
            out.append(ins(f"{op}.{types}", "b32", "b8x4", "b8x4", "b32"))
    for mode in ("clamp", "wrap"):
        out.append(ins(f"vshl.u32.u32.u32.{mode}", "b32", "b32", "shift"))
        out.append(ins(f"vshr.s32.s32.u32.{mode}", "b32", "b32", "shift"))
    for name in (
        "vmad.s32.s32.s32",
        "vmad.u32.u32.u32",
        "vmad.u32.u32.u32.shr7",
        "vmad.s32.s32.s32.shr15",
        "vmad.s32.s32.s32.sat",
    ):
        out.append(ins(name, "b32", "b32", "b32", "b32"))
    for name in ("vset.s32.s32.lt", "vset.u32.u32.ge", "vset.s32.u32.ne"):
        out.append(ins(name, "b32", "b32", "b32"))
    for name in (
        "vset2.s32.s32.lt",
        "vset4.u32.u32.ge",
        "vset4.s32.s32.eq.add",
        "vset2.u32.u32.ne.add",
    ):
        out.append(ins(name, "b32", "b8x4", "b8x4", "b32"))
    return out


@functools.cache
def all_specs() -> dict[str, list[Spec]]:
    """Subject -> instructions."""
    return {
        "integer": _integer(),
        "carry": _carry(),
        "bit": _bit(),
        "compare": _compare(),
        "video": _video(),
        "convert_integers": _convert_integers(),
        "convert_floats": _convert_floats(),
        "float32": _float32(),
        "float64": _float64(),
        "half": _half(),
        "approximate": _approximate(),
    }
