"""Integer, bit, comparison and video instructions."""

from __future__ import annotations

from .spec import Spec, bits, block, ins, predicate

SIZES = ("16", "32", "64")


def integer() -> list[Spec]:
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


def carry() -> list[Spec]:
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


def bit() -> list[Spec]:
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


def compare() -> list[Spec]:
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


def convert_integers() -> list[Spec]:
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


def video() -> list[Spec]:
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
