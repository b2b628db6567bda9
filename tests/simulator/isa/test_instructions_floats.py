"""f32 and f64 arithmetic against exact rational arithmetic, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from instruction_oracles import FORMATS, bits_of, floats, run, same, with_modifiers

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}
MODES = ("rn", "rz", "rm", "rp")


def check(op: str, kind: str, mode: str, flags: tuple[str, ...], *operands: np.ndarray) -> None:
    name = ".".join([op, mode, *flags, kind])
    got = bits_of(run(name, *operands))
    form = FORMATS[kind]
    rows = list(zip(*[a.tolist() for a in operands], strict=True))
    for row, result in zip(rows, got, strict=True):
        want = with_modifiers(op, form, mode, set(flags), row)
        assert same(kind, result, want), (
            f"{name} of {[hex(x) for x in row]}: {result:#x}, not {want:#x}"
        )


@pytest.mark.parametrize("flags", [(), ("ftz",)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", OPERANDS)
def test_f32(op: str, mode: str, flags: tuple[str, ...]) -> None:
    rng = np.random.default_rng([MODES.index(mode), len(flags)])
    check(op, "f32", mode, flags, *[floats(rng, "f32", 400) for _ in range(OPERANDS[op])])


@pytest.mark.parametrize("flags", [("sat",), ("ftz", "sat")])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_f32_saturated(op: str, flags: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    for mode in MODES:
        check(op, "f32", mode, flags, *[floats(rng, "f32", 150) for _ in range(OPERANDS[op])])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", OPERANDS)
def test_f64(op: str, mode: str) -> None:
    rng = np.random.default_rng([7, MODES.index(mode)])
    check(op, "f64", mode, (), *[floats(rng, "f64", 300) for _ in range(OPERANDS[op])])


def near_ties(rng: np.random.Generator, kind: str, count: int) -> list[np.ndarray]:
    """Factors and addends whose exact a*b + c is, or lies very near, a tie or a number."""
    form = FORMATS[kind]
    half = (form.fraction_bits + 1) // 2
    a, b, c = ([] for _ in range(3))
    for _ in range(count):
        # product: a few leading bits, then zeros, then the very last bit: 1xxxx0000...0001
        x = (1 << form.fraction_bits) + (int(rng.integers(0, 1 << 4)) << (form.fraction_bits - 4))
        y = (1 << form.fraction_bits) + int(rng.integers(0, 2)) + (1 << int(rng.integers(0, half)))
        exponent = int(rng.integers(-3, 4))
        a.append(((form.bias + exponent) << form.fraction_bits) | (x & (form.least_normal - 1)))
        b.append((form.bias << form.fraction_bits) | (y & (form.least_normal - 1)))
        # addend: a power of two at half a unit of the product's last place, or far below, or above
        far = int(rng.choice([-form.fraction_bits - 1, form.fraction_bits, -60, -40, 1, 30]))
        c.append((form.bias + exponent + far) << form.fraction_bits)
        c[-1] |= int(rng.integers(0, 2)) << (form.width - 1)
        c[-1] += int(rng.integers(-1, 2))
    dtype = np.uint32 if kind == "f32" else np.uint64
    return [np.array(part, dtype) for part in (a, b, c)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fma_near_ties(kind: str, mode: str) -> None:
    rng = np.random.default_rng(11)
    a, b, c = near_ties(rng, kind, 500)
    check("fma", kind, mode, (), a, b, c)
    if kind == "f32":
        check("fma", kind, mode, ("ftz",), a, b, c)


def test_fma_that_a_second_rounding_would_spoil() -> None:
    # a*a = 1 + 2^-11 + 2^-24 lies half-way between two float32, and c decides; a float64 sum
    # loses c, and would round both to even.
    a = np.array([1 + 2.0**-12] * 2, np.float32)
    c = np.array([2.0**-90, -(2.0**-90)], np.float32)
    got = run("fma.rn.ftz.f32", a, a, c)
    assert got.tolist() == [1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-11]
    assert run("fma.rn.f32", a, a, c).tolist() == got.tolist()


def test_fma_breaks_a_tie_by_a_subnormal_only_when_subnormals_count() -> None:
    a = np.array([1 + 2.0**-12], np.float32)
    c = np.array([2.0**-140], np.float32)
    assert run("fma.rn.f32", a, a, c).item() == 1 + 2.0**-11 + 2.0**-23
    assert run("fma.rn.ftz.f32", a, a, c).item() == 1 + 2.0**-11


def test_fma_is_rounded_once_among_the_subnormals() -> None:
    # a*b = 2^-150 (1 - 2^-46) is just below half a unit, which float64 makes of it beside c
    a = np.array([(1 + 2.0**-23) * 2.0**-75] * 2, np.float32)
    b = np.array([(1 - 2.0**-23) * 2.0**-75] * 2, np.float32)
    c = np.array([2.0**-128 + 2.0**-149, 2.0**-128], np.float32)
    assert run("fma.rn.f32", a, b, c).tolist() == c.tolist()


def test_fma_of_a_product_that_cancels_a_subnormal() -> None:
    # flushed, c is 0 and the product a zero of its own sign; unflushed, the sum is +0
    a, b = np.array([2.0**-100], np.float32), np.array([-(2.0**-30)], np.float32)
    c = np.array([2.0**-130], np.float32)
    assert bits_of(run("fma.rn.ftz.f32", a, b, c)) == [0x80000000]
    assert bits_of(run("fma.rn.f32", a, b, c)) == [0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["mul", "div", "fma"])
def test_flushing_just_below_the_smallest_normal(op: str, mode: str) -> None:
    """Alone and with each other: quotients and products around 2^-126 times 1 - 2^-24."""
    rng = np.random.default_rng([13, MODES.index(mode)])
    b = rng.integers(0x20000000, 0x5F000000, 400).astype(np.uint32)
    factor = b.view(np.float32).astype(np.float64)
    aim = 2.0**-126 * (1 - 2.0 ** -rng.integers(22, 27, 400).astype(np.float64))
    with np.errstate(all="ignore"):
        a = (aim * factor if op == "div" else aim / factor).astype(np.float32)
    a = a.view(np.uint32) + rng.integers(-1, 2, 400).astype(np.uint32)
    a = np.where(a < 0x00800000, np.uint32(0x3F800000), a)
    operands = [a, b]
    if op == "fma":
        operands.append(rng.choice(np.array([0, 0x80000000, 0x80000001], np.uint32), 400))
    check(op, "f32", mode, ("ftz",), *operands)
    for i in range(0, 400, 2):
        check(op, "f32", mode, ("ftz",), *[x[i : i + 1] for x in operands])


@pytest.mark.parametrize("mode", MODES)
def test_f64_fma_that_needs_all_its_tail(mode: str) -> None:
    # (1 + 2^-52)(1 - 2^-52) = 1 - 2^-104 beside 2^53 + 2, where 1 is half a unit
    one = np.float64(1).view(np.uint64)
    above, below = one + np.uint64(1), one - np.uint64(2)
    rows = [
        (above, below, np.float64(sign * (2.0**53 + more)).view(np.uint64))
        for sign in (1, -1)
        for more in (0, 2, 4)
    ]
    check("fma", "f64", mode, (), *[np.array(x, np.uint64) for x in zip(*rows, strict=True)])


def test_ties_among_thousands() -> None:
    rng = np.random.default_rng(17)
    parts = near_ties(rng, "f32", 5000)
    check("fma", "f32", "rn", ("ftz",), *parts)
    calm = [rng.standard_normal(5000).astype(np.float32) for _ in range(3)]
    for x, value in zip(calm, (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-90), strict=True):
        x[3210] = value
    assert run("fma.rn.ftz.f32", *calm)[3210] == 1 + 2.0**-11 + 2.0**-23
    assert run("fma.rn.f32", *calm)[3210] == 1 + 2.0**-11 + 2.0**-23


@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("flags", [(), ("ftz",)])
def test_many_elements_give_what_few_give(op: str, flags: tuple[str, ...]) -> None:
    """Large arrays take other paths than small ones; one odd element sends all the careful way."""
    rng = np.random.default_rng(3)
    name = ".".join([op, "rn", *flags, "f32"])
    operands = [rng.standard_normal(6000).astype(np.float32) for _ in range(OPERANDS[op])]
    calm = run(name, *operands)
    want = np.concatenate(
        [run(name, *[a[i : i + 60] for a in operands]) for i in range(0, 6000, 60)]
    )
    assert bits_of(calm) == bits_of(want)
    odd = floats(rng, "f32", 6).view(np.float32)
    for value in odd:
        operands[0][1234] = value
        got = bits_of(run(name, *operands))
        alone = bits_of(run(name, *[a[1234:1235] for a in operands]))
        assert got[1234] == alone[0]
        assert got[:1234] == bits_of(calm)[:1234]


def test_fma_broadcasts_like_numpy() -> None:
    rng = np.random.default_rng(9)
    a = rng.standard_normal((3, 1, 16)).astype(np.float32)
    b = rng.standard_normal((3, 16, 1)).astype(np.float32)
    c = rng.standard_normal((1, 16, 16)).astype(np.float32)
    got = run("fma.rn.ftz.f32", a, b, c)
    full = [np.ascontiguousarray(np.broadcast_to(x, (3, 16, 16))) for x in (a, b, c)]
    assert got.shape == (3, 16, 16)
    assert bits_of(got) == bits_of(run("fma.rn.ftz.f32", *full))


words = st.integers(0, 2**32 - 1)


@settings(max_examples=150, deadline=None)
@given(words, words, words, st.sampled_from(MODES), st.booleans())
@example(0x3F800800, 0x3F800800, 0x80000001, "rn", False)
@example(0x00800000, 0x3F000000, 0x80400000, "rm", True)  # cancels to -0
@example(0x80000001, 0x3F800000, 0x00000001, "rn", True)  # two subnormals of opposite sign
def test_fma_of_any_bits(a: int, b: int, c: int, mode: str, ftz: bool) -> None:
    flags = ("ftz",) if ftz else ()
    check("fma", "f32", mode, flags, *[np.array([x], np.uint32) for x in (a, b, c)])


doubles = st.one_of(
    st.integers(0, 2**64 - 1),
    st.floats(width=64).map(lambda x: int(np.float64(x).view(np.uint64))),
)


@settings(max_examples=150, deadline=None)
@given(doubles, doubles, doubles, st.sampled_from(MODES))
def test_f64_fma_of_any_bits(a: int, b: int, c: int, mode: str) -> None:
    check("fma", "f64", mode, (), *[np.array([x], np.uint64) for x in (a, b, c)])


def test_every_nan_result_is_canonical() -> None:
    nans = np.array([0x7F800001, 0xFFC00000, 0xFFFFFFFF, 0x7FC12345], np.uint32)
    one = np.full(4, 1.0, np.float32)
    for name in ("add.f32", "sub.ftz.f32", "mul.f32", "mul.ftz.f32", "div.full.ftz.f32"):
        assert bits_of(run(name, nans, one)) == [0x7FFFFFFF] * 4
    for name in ("fma.rn.f32", "fma.rn.ftz.f32", "fma.rm.ftz.f32"):
        assert bits_of(run(name, one, nans, one)) == [0x7FFFFFFF] * 4
    for name in ("abs.f32", "neg.f32", "neg.ftz.f32", "sqrt.approx.ftz.f32", "ex2.approx.f32"):
        assert bits_of(run(name, nans)) == [0x7FFFFFFF] * 4
    infinity = np.array([np.inf], np.float32)
    assert bits_of(run("sub.f32", infinity, infinity)) == [0x7FFFFFFF]


def test_plain_names_mean_round_to_nearest() -> None:
    rng = np.random.default_rng(4)
    a, b = floats(rng, "f32", 300), floats(rng, "f32", 300)
    for op, flag in itertools.product(("add", "sub", "mul"), ("", ".ftz", ".sat")):
        plain, full = run(f"{op}{flag}.f32", a, b), run(f"{op}.rn{flag}.f32", a, b)
        assert bits_of(plain) == bits_of(full)
    c = floats(rng, "f32", 300)
    assert bits_of(run("mad.rn.f32", a, b, c)) == bits_of(run("fma.rn.f32", a, b, c))
