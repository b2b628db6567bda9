"""Floating-point instructions and conversions."""

from __future__ import annotations

from .spec import Spec, bits, ins

ROUNDINGS = ("rn", "rz", "rm", "rp")


def convert_floats() -> list[Spec]:
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


def float32() -> list[Spec]:
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


def float64() -> list[Spec]:
    out = []
    f = "f64"
    for r in ROUNDINGS:
        out += [ins(f"{op}.{r}.f64", f, f, f) for op in ("add", "sub", "mul", "div")]
        out.append(ins(f"fma.{r}.f64", f, f, f, f))
        out += [ins(f"{op}.{r}.f64", f, f) for op in ("rcp", "sqrt")]
    out += [ins(f"{op}.f64", f, f, f) for op in ("add", "sub", "mul", "min", "max", "copysign")]
    out += [ins(f"{op}.f64", f, f) for op in ("abs", "neg")]
    return out


def half() -> list[Spec]:
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


def approximate() -> list[Spec]:
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
