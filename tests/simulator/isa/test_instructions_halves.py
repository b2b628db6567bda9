"""f16 and bf16, alone and in pairs, against exact rational arithmetic, bit for bit."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest
from instruction_oracles import FORMATS, Format, bits_of, find, floats, run, with_modifiers

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
FLAGS = {
    "f16": [(), ("ftz",), ("sat",), ("ftz", "sat")],
    "bf16": [()],
}


def halves(kind: str, seed: int, count: int, operands: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    values = [floats(rng, kind, count) for _ in range(operands)]
    if operands > 1:
        values[1][::8] = values[0][::8] ^ 0x8000  # opposite numbers
    return values


def pairs(low: list[np.ndarray], high: list[np.ndarray]) -> list[np.ndarray]:
    return [h.astype(np.uint32) << np.uint32(16) | x for x, h in zip(low, high, strict=True)]


def expected(op: str, kind: str, flags: set[str], operands: list[np.ndarray]) -> list[int]:
    form = FORMATS[kind]
    rows = zip(*[a.tolist() for a in operands], strict=True)
    return [with_modifiers(op, form, "rn", flags, row) for row in rows]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("op", OPERANDS)
def test_arithmetic(op: str, kind: str) -> None:
    every = FLAGS[kind] + ([("relu",)] if op == "fma" else [])
    for flags in every:
        low = halves(kind, 1, 300, OPERANDS[op])
        high = halves(kind, 2, 300, OPERANDS[op])
        want_low = expected(op, kind, set(flags), low)
        want_high = expected(op, kind, set(flags), high)
        name = ".".join([op, "rn", *flags, kind])
        assert bits_of(run(name, *low)) == want_low, name
        packed = bits_of(run(name + "x2", *pairs(low, high)))
        assert [p & 0xFFFF for p in packed] == want_low, name
        assert [p >> 16 for p in packed] == want_high, name
    plain = f"{op}.{kind}" if op != "fma" else f"{op}.rn.{kind}"
    assert bits_of(run(plain, *low)) == bits_of(run(f"{op}.rn.{kind}", *low))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_fma_rounds_once(kind: str) -> None:
    """Products at a tie, and addends so small that float64 loses them beside it."""
    form = FORMATS[kind]
    one, p = form.bias << form.fraction_bits, form.fraction_bits
    # (1 + 2^-k) squared = 1 + 2^(1-k) + 2^-2k is a tie where 2k is one more than the fraction
    k = (p + 1) // 2
    a = one | 1 << (p - k)
    if 2 * k != p + 1:  # f16 has 10 bits: 1.5 * (1 + 2^-10) is a tie instead
        a, b = one | 1 << (p - 1), one | 1
    else:
        b = a
    square = form.value(a) * form.value(b)
    assert form.round(square, "rz") != form.round(square, "rp")
    least = [1, 1 | 0x8000, 0, 0x8000, 5]
    operands = [np.full(5, x, np.uint16) for x in (a, b)] + [np.array(least, np.uint16)]
    got = bits_of(run(f"fma.rn.{kind}", *operands))
    assert got == expected("fma", kind, set(), operands)
    assert got[0] == got[1] + 1  # the addend's sign decides


def test_bf16_agrees_with_another_library() -> None:
    low = halves("bf16", 3, 500, 2)
    a, b = (x.view(ml_dtypes.bfloat16) for x in low)
    with np.errstate(all="ignore"):
        for name, want in (("add.bf16", a + b), ("mul.bf16", a * b), ("sub.bf16", a - b)):
            number = ~np.isnan(want.astype(np.float32))
            got = run(name, *low)
            assert (got[number] == want.view(np.uint16)[number]).all()
            assert (got[~number] == 0x7FFF).all()


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_signs(kind: str) -> None:
    form = FORMATS[kind]
    (a,) = halves(kind, 4, 400, 1)

    def want(bits: int, op: str, ftz: bool) -> int:
        if form.is_nan(bits):
            return form.nan
        bits = bits & 0x7FFF if op == "abs" else bits ^ 0x8000
        return form.flush(bits) if ftz else bits

    for op in ("abs", "neg"):
        assert bits_of(run(f"{op}.{kind}", a)) == [want(x, op, False) for x in a.tolist()]
        if kind == "f16":
            assert bits_of(run(f"{op}.ftz.f16", a)) == [want(x, op, True) for x in a.tolist()]


def smaller(form: Format, a: int, b: int, flags: set[str], largest: bool) -> int:
    """min or max of bits as PTX defines it, with -0 below +0."""
    sign = (a ^ b) & form.sign_bit
    if "ftz" in flags:
        a, b = form.flush(a), form.flush(b)
    if "xorsign" in flags:
        a, b = a & (form.sign_bit - 1), b & (form.sign_bit - 1)
    if form.is_nan(a) or form.is_nan(b):
        if "NaN" in flags or (form.is_nan(a) and form.is_nan(b)):
            return form.nan
        result = b if form.is_nan(a) else a
    else:

        def order(bits: int) -> int:
            magnitude = bits & (form.sign_bit - 1)
            return -magnitude - 1 if form.negative(bits) else magnitude

        result = (max if largest else min)(a, b, key=order)
    return result | sign if "xorsign" in flags else result


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_min_and_max(op: str, kind: str) -> None:
    form = FORMATS[kind]
    rng = np.random.default_rng(5)
    a, b = floats(rng, kind, 500), floats(rng, kind, 500)
    zeros = np.array([0, form.sign_bit], a.dtype)
    a[:4], b[:4] = zeros[[0, 0, 1, 1]], zeros[[0, 1, 0, 1]]
    for ftz in ((), ("ftz",)) if kind != "bf16" else ((),):
        for nan in ((), ("NaN",)):
            for signs in ((), ("xorsign", "abs")):
                flags = [*ftz, *nan, *signs]
                name = ".".join([op, *flags, kind])
                got = bits_of(run(name, a, b))
                for x, y, bits in zip(a.tolist(), b.tolist(), got, strict=True):
                    want = smaller(form, x, y, set(flags), op == "max")
                    assert bits == want, f"{name} of {x:#x}, {y:#x}: {bits:#x}, not {want:#x}"


def test_packed_min_and_signs_work_on_each_half() -> None:
    low, high = halves("f16", 6, 300, 2), halves("f16", 7, 300, 2)
    both = pairs(low, high)
    for name in ("min.f16", "max.NaN.f16", "max.ftz.f16"):
        packed = run(name + "x2", *both)
        assert bits_of(packed & np.uint32(0xFFFF)) == bits_of(run(name, *low))
        assert bits_of(packed >> np.uint32(16)) == bits_of(run(name, *high))
    for name in ("abs.bf16", "neg.bf16"):
        packed = run(name + "x2", both[0])
        assert bits_of(packed >> np.uint32(16)) == bits_of(run(name, high[0]))


def exact_function(op: str, form: Format, bits: int) -> Fraction | int:
    """The value of ex2 or tanh, or the bits of the result where that is no number."""
    if form.is_nan(bits):
        return form.nan
    if form.is_infinite(bits):
        if op == "tanh":
            return (form.bias << form.fraction_bits) | (bits & form.sign_bit)
        return 0 if form.negative(bits) else form.infinity
    if op == "tanh" and bits & (form.sign_bit - 1) == 0:
        return bits
    with mpmath.workprec(120):
        x = mpmath.mpf(form.value(bits).numerator) / form.value(bits).denominator
        if op == "ex2" and abs(x) > 300:
            return form.infinity if x > 0 else 0
        y = mpmath.power(2, x) if op == "ex2" else mpmath.tanh(x)
        sign, mantissa, exponent, _ = y._mpf_
        return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** int(exponent)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["ex2", "tanh"])
def test_functions(op: str, kind: str) -> None:
    """Within one unit of the exact value; what an H200 gives is in test_instructions_h200.py."""
    form = FORMATS[kind]
    (a,) = halves(kind, 8, 250, 1)
    ftz = ".ftz" if (op, kind) == ("ex2", "bf16") else ""
    got = bits_of(run(f"{op}.approx{ftz}.{kind}", a))
    for x, bits in zip(a.tolist(), got, strict=True):
        exact = exact_function(op, form, form.flush(x) if ftz else x)
        if isinstance(exact, int):
            assert bits == exact, hex(x)
        else:
            down, up = (form.round(exact, mode, flush=bool(ftz)) for mode in ("rm", "rp"))
            assert bits in (down, up), f"{op} of {x:#x}: {bits:#x}, not {down:#x} or {up:#x}"
    packed = run(f"{op}.approx{ftz}.{kind}x2", a.astype(np.uint32) << np.uint32(16) | a)
    assert bits_of(packed >> np.uint32(16)) == got


def test_ex2_of_whole_numbers_is_exact() -> None:
    whole = np.arange(-24, 16).astype(np.float16)
    assert run("ex2.approx.f16", whole).tolist() == [2.0**n for n in range(-24, 16)]


def test_bf16_ex2_flushes() -> None:
    x = np.array([-127.0, -126.0, -1.0, 0.0, 7.0], ml_dtypes.bfloat16).view(np.uint16)
    got = run("ex2.approx.ftz.bf16", x).view(ml_dtypes.bfloat16).astype(np.float64)
    assert got.tolist() == [0.0, 2.0**-126, 0.5, 1.0, 128.0]


def test_pairs_count_their_operations_twice() -> None:
    assert find("fma.rn.f16x2").flops == 4
    assert find("add.bf16x2").flops == 2
    assert find("fma.rn.f16").flops == 2
    assert find("max.f16x2").flops == 0
