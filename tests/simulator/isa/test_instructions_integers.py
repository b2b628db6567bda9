"""Integer arithmetic against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from instruction_oracles import bits_of, integers, run, signed

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
COUNT = 400


def split(kind: str) -> tuple[bool, int]:
    return kind[0] == "s", int(kind[1:])


def value(bits: int, kind: str) -> int:
    is_signed, width = split(kind)
    return signed(bits, width) if is_signed else bits & ((1 << width) - 1)


def clamp(x: int, kind: str) -> int:
    is_signed, width = split(kind)
    low, high = (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    )
    return min(max(x, low), high)


def check(name: str, kinds: str, result: str, expected: Callable[..., int]) -> None:
    """`name` on random operands of the types `kinds` against a function of Python integers."""
    rng = np.random.default_rng(sum(map(ord, name)))
    operands = [integers(rng, split(kind)[1], COUNT) for kind in kinds.split()]
    if len(operands) > 1 and operands[0].dtype == operands[1].dtype:
        operands[1][::9] = operands[0][::9]
    before = [a.copy() for a in operands]
    got = bits_of(run(name, *operands))
    width = split(result)[1]
    for i, bits in enumerate(got):
        row = [value(int(a[i]), kind) for a, kind in zip(operands, kinds.split(), strict=True)]
        want = expected(*row) & ((1 << width) - 1)
        assert bits == want, f"{name} of {row}: {bits:#x}, not {want:#x}"
    assert all((a == b).all() for a, b in zip(operands, before, strict=True))


def truncated_quotient(a: int, b: int) -> int:
    if b == 0:
        return -1  # all ones, as on an H200
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * truncated_quotient(a, b)


@pytest.mark.parametrize("kind", TYPES)
def test_arithmetic(kind: str) -> None:
    width = split(kind)[1]
    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
    check(f"add.{kind}", two, kind, lambda a, b: a + b)
    check(f"sub.{kind}", two, kind, lambda a, b: a - b)
    check(f"mul.lo.{kind}", two, kind, lambda a, b: a * b)
    check(f"mul.hi.{kind}", two, kind, lambda a, b: a * b >> width)
    check(f"mad.lo.{kind}", three, kind, lambda a, b, c: a * b + c)
    check(f"mad.hi.{kind}", three, kind, lambda a, b, c: (a * b >> width) + c)
    check(f"sad.{kind}", three, kind, lambda a, b, c: c + abs(a - b))
    check(f"min.{kind}", two, kind, min)
    check(f"max.{kind}", two, kind, max)
    check(f"div.{kind}", two, kind, truncated_quotient)
    check(f"rem.{kind}", two, kind, remainder)
    if kind[0] == "s":
        check(f"neg.{kind}", kind, kind, lambda a: -a)
        check(f"abs.{kind}", kind, kind, abs)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    wide = f"{kind[0]}{2 * split(kind)[1]}"
    check(f"mul.wide.{kind}", f"{kind} {kind}", wide, lambda a, b: a * b)
    check(f"mad.wide.{kind}", f"{kind} {kind} {wide}", wide, lambda a, b, c: a * b + c)


def test_division_by_numbers_without_zeros_takes_the_quick_way() -> None:
    # every pair of the extremes, where a truncating division of float64 could go wrong
    edges = [1, -1, 2, -2, 3, 7, 2**31 - 1, -(2**31), 2**31 - 2, -(2**31) + 1, 46341, 65536]
    a, b = (
        np.array(x, np.int32) for x in zip(*[(x, y) for x in edges for y in edges], strict=True)
    )
    for name, expected in (("div.s32", truncated_quotient), ("rem.s32", remainder)):
        want = [expected(x, y) & 0xFFFFFFFF for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert bits_of(run(name, a, b)) == want


def test_saturating() -> None:
    check("add.sat.s32", "s32 s32", "s32", lambda a, b: clamp(a + b, "s32"))
    check("sub.sat.s32", "s32 s32", "s32", lambda a, b: clamp(a - b, "s32"))
    check("mad.hi.sat.s32", "s32 s32 s32", "s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32"))
    check("min.relu.s32", "s32 s32", "s32", lambda a, b: max(min(a, b), 0))
    for name in ("max.relu.s32", "max.s32.relu"):
        check(name, "s32 s32", "s32", lambda a, b: max(a, b, 0))


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bits(kind: str) -> None:
    def cut(a: int) -> int:
        return signed(a, 24) if kind == "s32" else a & 0xFFFFFF

    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
    check(f"mul24.lo.{kind}", two, kind, lambda a, b: cut(a) * cut(b))
    check(f"mul24.hi.{kind}", two, kind, lambda a, b: cut(a) * cut(b) >> 16)
    check(f"mad24.lo.{kind}", three, kind, lambda a, b, c: cut(a) * cut(b) + c)
    check(f"mad24.hi.{kind}", three, kind, lambda a, b, c: (cut(a) * cut(b) >> 16) + c)
    if kind == "s32":
        check(
            "mad24.hi.sat.s32",
            three,
            kind,
            lambda a, b, c: clamp(signed(cut(a) * cut(b) >> 16, 32) + c, "s32"),
        )


@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
def test_packed_pairs(kind: str) -> None:
    def lanes(x: int) -> list[int]:
        halves = [x & 0xFFFF, x >> 16]
        return [signed(h, 16) for h in halves] if kind[0] == "s" else halves

    def on_lanes(combine: Callable[[int, int], int]) -> Callable[[int, int], int]:
        def joined(a: int, b: int) -> int:
            low, high = (combine(x, y) & 0xFFFF for x, y in zip(lanes(a), lanes(b), strict=True))
            return high << 16 | low

        return joined

    check(f"add.{kind}", "u32 u32", "u32", on_lanes(lambda a, b: a + b))
    check(f"min.{kind}", "u32 u32", "u32", on_lanes(min))
    check(f"max.{kind}", "u32 u32", "u32", on_lanes(max))
    if kind == "s16x2":
        check("max.relu.s16x2", "u32 u32", "u32", on_lanes(lambda a, b: max(a, b, 0)))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carries(kind: str) -> None:
    width = split(kind)[1]
    modulus = 1 << width
    rng = np.random.default_rng(width)
    a, b, c = (integers(rng, width, COUNT) for _ in range(3))
    b[::7] = ~a[::7]  # sums of all ones, where only the carry-in carries on
    carry = rng.random(COUNT) < 0.5

    def half(x: int, y: int, part: str) -> int:
        if part == "lo":
            return x * y % modulus
        return (value(x, kind) * value(y, kind) >> width) % modulus

    def compare(name: str, inputs: list[np.ndarray], expected: Callable, writes: bool) -> None:
        got = run(name, *inputs)
        results, flags = got if writes else (got, None)
        for i, bits in enumerate(bits_of(results)):
            exact = expected(*[int(x[i]) for x in inputs])
            assert bits == exact % modulus, name
            if flags is not None:
                wrapped = not 0 <= exact < modulus  # a difference sets the flag if it is not
                assert flags[i] == (wrapped != name.startswith("sub")), name

    compare(f"add.cc.{kind}", [a, b], lambda x, y: x + y, True)
    compare(f"sub.cc.{kind}", [a, b], lambda x, y: x - y, True)
    for suffix in ("", ".cc"):
        writes = bool(suffix)
        compare(f"addc{suffix}.{kind}", [a, b, carry], lambda x, y, f: x + y + f, writes)
        compare(f"subc{suffix}.{kind}", [a, b, carry], lambda x, y, f: x - y - 1 + f, writes)
        for part in ("lo", "hi"):
            compare(
                f"madc.{part}{suffix}.{kind}",
                [a, b, c, carry],
                lambda x, y, z, f, part=part: half(x, y, part) + z + f,
                writes,
            )
    for part in ("lo", "hi"):
        compare(
            f"mad.{part}.cc.{kind}",
            [a, b, c],
            lambda x, y, z, part=part: half(x, y, part) + z,
            True,
        )
