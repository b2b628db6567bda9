"""`cvt` against exact rational arithmetic, bit for bit."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from instruction_oracles import (
    FORMATS,
    Format,
    bits_of,
    clamp,
    floats,
    integers,
    run,
    same,
    signed,
)

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")


def value(bits: int, kind: str) -> int:
    width = int(kind[1:])
    return signed(bits, width) if kind[0] == "s" else bits & ((1 << width) - 1)


def limits(kind: str) -> tuple[int, int]:
    width = int(kind[1:])
    return (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    )


@pytest.mark.parametrize("to", INTEGERS)
def test_integer_to_integer(to: str) -> None:
    low, high = limits(to)
    mask = (1 << int(to[1:])) - 1
    for source in INTEGERS:
        a = integers(np.random.default_rng(1), int(source[1:]), 200)
        values = [value(x, source) for x in a.tolist()]
        assert bits_of(run(f"cvt.{to}.{source}", a)) == [x & mask for x in values]
        clamped = [min(max(x, low), high) & mask for x in values]
        assert bits_of(run(f"cvt.sat.{to}.{source}", a)) == clamped


def whole(exact: Fraction, rounding: str) -> int:
    below = exact.numerator // exact.denominator
    if rounding == "rmi" or exact == below:
        return below
    if rounding == "rpi":
        return below + 1
    if rounding == "rzi":
        return below + (exact < 0)
    rest = exact - below
    return below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2))


@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer(source: str, rounding: str) -> None:
    form = FORMATS[source]
    rng = np.random.default_rng(2)
    a = floats(rng, source, 300)
    # whole numbers and a half, and the edges of the integer types
    edges = [
        s * (2**n + d) for n in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1) for d in (-1, 0)
    ]
    extra = [form.round(Fraction(x), "rz") for x in edges]
    extra += [form.round(Fraction(2 * n + 1, 2), "rn") for n in range(-5, 6)]
    a[: len(extra)] = extra
    for to in INTEGERS:
        if source == "bf16" and to in ("u8", "s8"):
            continue  # PTX has no such conversion
        width = int(to[1:])
        low, high = limits(to)
        for ftz in (False, True) if source == "f32" else (False,):
            got = bits_of(run(f"cvt.{rounding}{'.ftz' if ftz else ''}.{to}.{source}", a))
            for x, bits in zip(a.tolist(), got, strict=True):
                if form.is_nan(x):  # seen on an H200
                    want = 1 << (width - 1) if source == "f64" or width == 64 else 0
                elif form.is_infinite(x):
                    want = low if form.negative(x) else high
                else:
                    exact = form.value(form.flush(x) if ftz else x)
                    want = min(max(whole(exact, rounding), low), high)
                want &= (1 << width) - 1
                assert bits == want, f"{rounding}.{to}.{source} of {x:#x}: {bits:#x}, not {want:#x}"


def test_large_arrays_convert_as_small_ones_do() -> None:
    rng = np.random.default_rng(3)
    calm = rng.standard_normal(5000).astype(np.float32) * 1000
    odd = calm.copy()
    odd[77] = np.nan
    for a in (calm, odd):
        for name in ("cvt.rzi.s32.f32", "cvt.rni.u8.f32", "cvt.rn.f16.f32", "cvt.rn.bf16.f32"):
            want = [bits_of(run(name, a[i : i + 50])) for i in range(0, 5000, 50)]
            assert bits_of(run(name, a)) == sum(want, [])
    for special in (0x3C00, 0x7C00, 0xFC00, 0x7E01, 0x8001, 0x0000):
        h = calm.astype(np.float16)
        h.view(np.uint16)[123] = special
        want = [bits_of(run("cvt.f32.f16", h[i : i + 50])) for i in range(0, 5000, 50)]
        assert bits_of(run("cvt.f32.f16", h)) == sum(want, [])


def ties(form: Format, rng: np.random.Generator, width: int, count: int) -> np.ndarray:
    """Integers half-way between two neighbours of a float format, and one beside."""
    keep = form.fraction_bits + 1
    values = []
    for _ in range(count):
        length = int(rng.integers(1, width + 1))
        x = int(rng.integers(0, 2**63)) << 1 >> (64 - length) | 1 << (length - 1)
        if length > keep:
            lost = length - keep
            x = x >> lost << lost | 1 << (lost - 1)
            x += int(rng.integers(-1, 2))
        values.append(x % 2**width)
    return np.array(values, f"u{width // 8}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", FLOATS)
def test_integer_to_float(to: str, mode: str) -> None:
    form = FORMATS[to]
    rng = np.random.default_rng([4, MODES.index(mode)])
    for source in INTEGERS:
        width = int(source[1:])
        a = np.concatenate([integers(rng, width, 60), ties(form, rng, width, 60)])
        got = bits_of(run(f"cvt.{mode}.{to}.{source}", a))
        for x, bits in zip(a.tolist(), got, strict=True):
            want = form.round(Fraction(value(x, source)), mode)
            assert bits == want, f"{mode}.{to}.{source} of {x:#x}: {bits:#x}, not {want:#x}"


def near(rng: np.random.Generator, source: str, to: str, count: int) -> np.ndarray:
    """Values at, half-way between and beside neighbours of the narrower format."""
    wide, narrow = FORMATS[source], FORMATS[to]
    values = []
    for bits in floats(rng, to, count).tolist():
        if narrow.is_nan(bits) or narrow.is_infinite(bits) or narrow.is_infinite(bits + 1):
            values.append(wide.infinity - 1)
            continue
        middle = (narrow.value(bits) + narrow.value(bits + 1)) / 2
        near_it = wide.round(middle, "rz") + int(rng.integers(-1, 2))
        values.append(near_it % (1 << wide.width))
    return np.array(values, f"u{wide.width // 8}")


def converted_nan(to: str, source: str, flags: set[str], bits: int) -> int:
    """Which NaN a NaN becomes, as seen on an H200."""
    new = FORMATS[to]
    if source == "f64" and to != "f64":  # sign and upper bits, made quiet
        fraction = bits >> (52 - new.fraction_bits) & (new.least_normal - 1)
        sign = new.sign_bit if FORMATS[source].negative(bits) else 0
        return sign | new.infinity | new.least_normal >> 1 | fraction
    if (to, source) == ("f32", "bf16") and not flags:
        return bits << 16
    if (to, source) == ("f32", "f32") and not flags:
        return bits
    return new.nan


def converted(to: str, source: str, mode: str, flags: set[str], bits: int) -> int:
    old, new = FORMATS[source], FORMATS[to]
    sign = new.sign_bit if old.negative(bits) else 0
    if "ftz" in flags and source == "f32" and to != "f16":
        bits = old.flush(bits)
    flush = "ftz" in flags and to == "f32"
    if old.is_nan(bits):
        result = converted_nan(to, source, flags, bits)
    elif old.is_infinite(bits):
        result = new.infinity | sign
    else:
        result = new.round(old.value(bits), mode, int(bool(sign)), flush=flush)
    return clamp(new, flags, result)


NARROWING = [
    ("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f16", "f64"), ("bf16", "f64"),
    ("bf16", "f16"), ("f16", "bf16"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "source"), NARROWING)
def test_float_to_narrower_float(to: str, source: str) -> None:
    rng = np.random.default_rng(5)
    a = floats(rng, source, 300)
    if FORMATS[to].width < FORMATS[source].width:
        a = np.concatenate([a, near(rng, source, to, 300)])
    for mode in MODES:
        for flags in ((), ("sat",), ("ftz",), ("relu",)):
            if flags == ("ftz",) and "f32" not in (to, source):
                continue
            if flags == ("relu",) and to not in ("f16", "bf16"):
                continue
            name = ".".join(["cvt", mode, *flags, to, source])
            got = bits_of(run(name, a))
            for x, bits in zip(a.tolist(), got, strict=True):
                want = converted(to, source, mode, set(flags), x)
                assert bits == want, f"{name} of {x:#x}: {bits:#x}, not {want:#x}"


WIDENING = [("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16"), ("f64", "f32")]


@pytest.mark.parametrize(("to", "source"), WIDENING)
def test_float_to_wider_float(to: str, source: str) -> None:
    a = floats(np.random.default_rng(6), source, 500)
    if source != "f32":
        a = np.arange(65536, dtype=np.uint16)  # every one
    for ftz in ((), ("ftz",)) if "f32" in (to, source) else ((),):
        got = bits_of(run(".".join(["cvt", *ftz, to, source]), a))
        for x, bits in zip(a.tolist()[::17], got[::17], strict=True):
            assert same(to, bits, converted(to, source, "rn", set(ftz), x)), hex(x)
    wide = {"f32": np.float32, "f64": np.float64}[to]
    narrow = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[source]
    with np.errstate(all="ignore"):
        want = a.view(narrow).astype(wide)
    result = run(f"cvt.{to}.{source}", a)
    assert np.array_equal(result, want, equal_nan=True)
    number = ~np.isnan(want)
    assert (np.signbit(result) == np.signbit(want))[number].all()


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
def test_rounding_to_whole_numbers(kind: str, rounding: str) -> None:
    form = FORMATS[kind]
    rng = np.random.default_rng(7)
    a = floats(rng, kind, 300)
    a[:22] = [form.round(Fraction(n, 2), "rn", 1) for n in range(-11, 11)]
    got = bits_of(run(f"cvt.{rounding}.{kind}.{kind}", a))
    for x, bits in zip(a.tolist(), got, strict=True):
        if form.is_nan(x):
            want = form.nan
        elif form.is_infinite(x):
            want = x
        else:
            exact = Fraction(whole(form.value(x), rounding))
            want = form.round(exact, "rn", int(form.negative(x)))
        assert same(kind, bits, want), f"{x:#x}: {bits:#x}, not {want:#x}"


def test_same_type_with_modifiers() -> None:
    a = floats(np.random.default_rng(8), "f32", 500)
    for flags in ((), ("ftz",), ("sat",), ("ftz", "sat"), ("sat", "ftz")):
        got = bits_of(run(".".join(["cvt", *flags, "f32", "f32"]), a))
        want = [converted("f32", "f32", "rn", set(flags), x) for x in a.tolist()]
        assert got == want, flags


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_two_floats_into_a_pair(kind: str, mode: str) -> None:
    rng = np.random.default_rng(9)
    a, b = near(rng, "f32", kind, 300), floats(rng, "f32", 300)
    for relu in ((), ("relu",)):
        got = bits_of(run(".".join(["cvt", mode, *relu, kind + "x2", "f32"]), a, b))
        for x, y, bits in zip(a.tolist(), b.tolist(), got, strict=True):
            upper = converted(kind, "f32", mode, set(relu), x)
            lower = converted(kind, "f32", mode, set(relu), y)
            assert bits == upper << 16 | lower


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32(mode: str) -> None:
    form = FORMATS["f32"]
    tf32 = Format(8, 10, 0)
    a = floats(np.random.default_rng(10), "f32", 400)
    a[::3] = a[::3] & np.uint32(0xFFFFE000) | np.uint32(0x1000)  # ties
    got = bits_of(run(f"cvt.{mode}.tf32.f32", a))
    for x, bits in zip(a.tolist(), got, strict=True):
        if form.is_nan(x):  # seen on an H200
            want = x & 0xFFFFE000 if mode == "rna" else 0x7FFFE000
        elif form.is_infinite(x):
            want = x
        else:
            want = tf32.round(form.value(x), mode, int(form.negative(x))) << 13
        assert bits == want, f"{x:#x}: {bits:#x}, not {want:#x}"


BYTES = {
    "e4m3x2": (ml_dtypes.float8_e4m3fn, 448.0),
    "e5m2x2": (ml_dtypes.float8_e5m2, 57344.0),
}


@pytest.mark.parametrize("kind", BYTES)
def test_eight_bit_floats(kind: str) -> None:
    dtype, largest = BYTES[kind]
    rng = np.random.default_rng(11)
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    finite = np.sort(every[np.isfinite(every)])
    a = np.concatenate([every, (finite[1:] + finite[:-1]) / 2, rng.standard_normal(200) * 30])
    a = np.concatenate([a, [np.inf, -np.inf, 1e9, -1e-9]]).astype(np.float32)
    b = a[::-1].copy()

    def byte(values: np.ndarray) -> np.ndarray:
        codes = np.clip(values, -largest, largest).astype(dtype).view(np.uint8)
        return np.where(np.isnan(values), 0x7F, codes).astype(np.uint16)

    got = run(f"cvt.rn.satfinite.{kind}.f32", a, b)
    assert got.tolist() == (byte(a) << 8 | byte(b)).tolist()
    with np.errstate(all="ignore"):
        halves = a.astype(np.float16)
    packed = halves.view(np.uint16).astype(np.uint32) << np.uint32(16)
    got = run(f"cvt.rn.satfinite.{kind}.f16x2", packed)
    with np.errstate(all="ignore"):
        assert (got >> 8).tolist() == byte(halves.astype(np.float32)).tolist()
    codes = np.arange(256, dtype=np.uint16)
    back = run(f"cvt.rn.f16x2.{kind}", codes << np.uint16(8) | codes[::-1])
    upper = (back >> np.uint32(16)).astype(np.uint16).view(np.float16)
    assert np.array_equal(upper.astype(np.float32), every, equal_nan=True)
    lower = back.astype(np.uint16).view(np.float16)
    assert np.array_equal(lower.astype(np.float32), every[::-1], equal_nan=True)


@pytest.mark.parametrize("kind", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_pack(kind: str) -> None:
    rng = np.random.default_rng(12)
    a, b, c = (integers(rng, 32, 200) for _ in range(3))
    a[:100] = (a[:100] % 300).astype(np.uint32)
    b[50:150] = -(b[50:150] % 300).astype(np.int32).view(np.uint32)
    low, high = limits(kind)
    size = int(kind[1:])

    def cut(x: int) -> int:
        return min(max(signed(x, 32), low), high) & ((1 << size) - 1)

    inputs = [a, b] if size == 16 else [a, b, c]
    got = bits_of(run(f"cvt.pack.sat.{kind}.s32{'' if size == 16 else '.b32'}", *inputs))
    for row, bits in zip(zip(*[x.tolist() for x in inputs], strict=True), got, strict=True):
        above = row[2] << (2 * size) if size < 16 else 0
        assert bits == (above | cut(row[0]) << size | cut(row[1])) & 0xFFFFFFFF
