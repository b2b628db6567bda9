"""The video instructions against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from instruction_oracles import bits_of, integers, run, signed

KINDS = ("u32", "s32")
COUNT = 120
COMBINE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def value(bits: int, kind: str, width: int = 32) -> int:
    return signed(bits, width) if kind[0] == "s" else bits & ((1 << width) - 1)


def clamp(x: int, kind: str, width: int = 32) -> int:
    low, high = (0, (1 << width) - 1)
    if kind[0] == "s":
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    return min(max(x, low), high)


def clamp_scalar(x: int, kind: str) -> int:
    """`.sat` of the scalar instructions: an u32 that is too large wraps (seen on an H200)."""
    return clamp(x, kind) if kind == "s32" else max(x, 0) & 0xFFFFFFFF


def operands(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b, c = (integers(rng, 32, COUNT) for _ in range(3))
    b[::10] = a[::10]
    return [a, b, c]


def expect(name: str, inputs: list[np.ndarray], expected: Callable[..., int]) -> None:
    for i, bits in enumerate(bits_of(run(name, *inputs))):
        row = [int(a[i]) for a in inputs]
        want = expected(*row) & 0xFFFFFFFF
        assert bits == want, f"{name} of {[hex(x) for x in row]}: {bits:#x}, not {want:#x}"


@pytest.mark.parametrize("sat", [False, True])
@pytest.mark.parametrize("op", ["add", "sub", "absdiff", "min", "max"])
def test_scalar(op: str, sat: bool) -> None:
    a, b, c = operands(1)
    for d, x, y in itertools.product(KINDS, KINDS, KINDS):

        def first(p: int, q: int, d: str = d, x: str = x, y: str = y) -> int:
            exact = COMBINE[op](value(p, x), value(q, y))
            return clamp_scalar(exact, d) if sat else value(exact, d)

        name = f"v{op}.{d}.{x}.{y}" + (".sat" if sat else "")
        expect(name, [a, b], first)
        expect(f"{name}.add", [a, b, c], lambda p, q, r, first=first: first(p, q) + r)
        for second in ("min", "max"):

            def compared(p: int, q: int, r: int, d=d, first=first, second=second) -> int:
                result = first(p, q)
                # seen on an H200: what stands in the register, read as signed, but as unsigned
                # after absdiff; two u32 are then compared as unsigned 64-bit numbers
                if op in ("add", "sub"):
                    result = signed(result, 32)
                elif op == "absdiff":
                    result &= 0xFFFFFFFF
                if d == "u32":
                    return COMBINE[second](result % 2**64, r)
                return COMBINE[second](result, signed(r, 32))

            expect(f"{name}.{second}", [a, b, c], compared)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_shifts(mode: str) -> None:
    a, _, c = operands(2)
    n = np.random.default_rng(3).integers(0, 80, COUNT, dtype=np.uint32)
    for d, x, sat in itertools.product(KINDS, KINDS, ("", ".sat")):

        def amount(count: int) -> int:
            return count % 32 if mode == "wrap" else min(count, 32)

        def finish(exact: int, d: str = d, sat: str = sat) -> int:
            return clamp(exact, d) if sat else value(exact, d)

        def finish_right(exact: int, d: str = d, sat: str = sat) -> int:
            return clamp_scalar(exact, d) if sat else value(exact, d)

        expect(
            f"vshl.{d}.{x}.u32{sat}.{mode}",
            [a, n],
            lambda p, s, x=x, finish=finish: finish(value(p, x) << amount(s)),
        )
        expect(
            f"vshr.{d}.{x}.u32{sat}.{mode}.add",
            [a, n, c],
            lambda p, s, r, x=x, finish=finish_right: finish(value(p, x) >> amount(s)) + r,
        )


def test_multiply_and_add() -> None:
    a, b, c = operands(4)
    flags = ("", ".shr7", ".shr15", ".sat", ".sat.shr7", ".po.sat.shr15", ".po")
    for d, x, y, flag in itertools.product(KINDS, KINDS, KINDS, flags):
        shift = 7 if "shr7" in flag else 15 if "shr15" in flag else 0

        def expected(p: int, q: int, r: int, x=x, y=y, flag=flag, shift=shift) -> int:
            # seen on an H200: all operands count as signed
            exact = signed(p, 32) * signed(q, 32) + signed(r, 32) + ("po" in flag) >> shift
            if "sat" not in flag:
                return exact
            if "s32" in (x, y):
                return clamp(exact, "s32")
            return 0xFFFFFFFF if shift and exact < 0 else clamp(exact, "u32")

        expect(f"vmad.{d}.{x}.{y}{flag}", [a, b, c], expected)


@pytest.mark.parametrize("name", COMPARE)
def test_set(name: str) -> None:
    a, b, c = operands(5)
    for x, y in itertools.product(KINDS, KINDS):

        def holds(p: int, q: int, x: str = x, y: str = y) -> int:
            return int(COMPARE[name](value(p, x), value(q, y)))

        expect(f"vset.{x}.{y}.{name}", [a, b], holds)
        expect(f"vset.{x}.{y}.{name}.add", [a, b, c], lambda p, q, r, holds=holds: holds(p, q) + r)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("flag", ["", ".sat", ".add"])
def test_simd(count: int, flag: str) -> None:
    a, b, c = operands(6)
    width = 32 // count

    def lanes(x: int, kind: str) -> list[int]:
        return [value(x >> shift, kind, width) for shift in range(0, 32, width)]

    def join(parts: list[int]) -> int:
        return sum((p & ((1 << width) - 1)) << (width * i) for i, p in enumerate(parts))

    for op, d, x, y in itertools.product(COMBINE, KINDS, KINDS, KINDS):

        def expected(p: int, q: int, r: int, op=op, d=d, x=x, y=y) -> int:
            parts = [COMBINE[op](s, t) for s, t in zip(lanes(p, x), lanes(q, y), strict=True)]
            if flag == ".add":
                return sum(parts) + value(r, d)
            return join([clamp(s, d, width) if flag else s for s in parts])

        expect(f"v{op}{count}.{d}.{x}.{y}{flag}", [a, b, c], expected)
    if flag != ".sat":
        for name, x, y in itertools.product(COMPARE, KINDS, KINDS):

            def marks(p: int, q: int, r: int, name=name, x=x, y=y) -> int:
                pairs = zip(lanes(p, x), lanes(q, y), strict=True)
                parts = [int(COMPARE[name](s, t)) for s, t in pairs]
                return sum(parts) + r if flag else join(parts)

            expect(f"vset{count}.{x}.{y}.{name}{flag}", [a, b, c], marks)
