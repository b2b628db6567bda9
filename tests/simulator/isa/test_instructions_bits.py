"""Logic, shifts, bit fields, byte permutation and dot products against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_oracles import bits_of, integers, run, signed

WIDTHS = (16, 32, 64)
COUNT = 400


def operands(seed: int, width: int, count: int = COUNT) -> np.ndarray:
    return integers(np.random.default_rng([seed, width]), width, count)


def counts(seed: int, count: int = COUNT) -> np.ndarray:
    """Shift counts and field positions: mostly small, some huge."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 70, count, dtype=np.uint32)
    return np.where(rng.random(count) < 0.1, rng.integers(0, 2**32, count, dtype=np.uint32), small)


def expect(name: str, inputs: list[np.ndarray], expected, width: int) -> None:
    """Every result of an instruction against a function of the operands' bits."""
    got = bits_of(run(name, *inputs))
    for i, bits in enumerate(got):
        row = [int(a[i]) for a in inputs]
        want = expected(*row) & ((1 << width) - 1)
        assert bits == want, f"{name} of {[hex(x) for x in row]}: {bits:#x}, not {want:#x}"


@pytest.mark.parametrize("width", WIDTHS)
def test_logic_and_shifts(width: int) -> None:
    a, b, n = operands(1, width), operands(2, width), counts(3)
    kind = f"b{width}"
    expect(f"and.{kind}", [a, b], lambda x, y: x & y, width)
    expect(f"or.{kind}", [a, b], lambda x, y: x | y, width)
    expect(f"xor.{kind}", [a, b], lambda x, y: x ^ y, width)
    expect(f"not.{kind}", [a], lambda x: ~x, width)
    expect(f"cnot.{kind}", [a], lambda x: int(x == 0), width)
    expect(f"shl.{kind}", [a, n], lambda x, s: x << min(s, 99), width)
    expect(f"shr.u{width}", [a, n], lambda x, s: x >> s, width)
    expect(f"shr.b{width}", [a, n], lambda x, s: x >> s, width)
    expect(f"shr.s{width}", [a, n], lambda x, s: signed(x, width) >> s, width)


def test_predicates() -> None:
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert run("and.pred", p, q).tolist() == [False, False, False, True]
    assert run("or.pred", p, q).tolist() == [False, True, True, True]
    assert run("xor.pred", p, q).tolist() == [False, True, True, False]
    assert run("not.pred", p).tolist() == [True, True, False, False]
    assert run("mov.pred", p).tolist() == p.tolist()


@pytest.mark.parametrize("width", [32, 64])
def test_counting_and_finding(width: int) -> None:
    a = operands(4, width)
    a[:width] = [1 << i for i in range(width)]
    a[width : 2 * width] = [(1 << (i + 1)) - 1 for i in range(width)]
    kind = f"b{width}"
    expect(f"popc.{kind}", [a], lambda x: x.bit_count(), 32)
    expect(f"clz.{kind}", [a], lambda x: width - x.bit_length(), 32)
    expect(f"brev.{kind}", [a], lambda x: int(f"{x:0{width}b}"[::-1], 2), width)

    def magnitude(x: int) -> int:
        return x if signed(x, width) >= 0 else ~x & ((1 << width) - 1)

    expect(f"bfind.u{width}", [a], lambda x: x.bit_length() - 1, 32)
    expect(f"bfind.s{width}", [a], lambda x: magnitude(x).bit_length() - 1, 32)

    def shift_amount(x: int) -> int:
        return width - x.bit_length() if x else -1

    expect(f"bfind.shiftamt.u{width}", [a], shift_amount, 32)
    expect(f"bfind.shiftamt.s{width}", [a], lambda x: shift_amount(magnitude(x)), 32)


@pytest.mark.parametrize("width", [32, 64])
def test_bit_fields(width: int) -> None:
    a, b, start, length = operands(5, width), operands(6, width), counts(7), counts(8)
    start[::11] += 256
    # Of 32-bit fields the low eight bits of position and length count, of 64-bit fields all (seen
    # on an H200; the manual leaves more than 255 open).
    used = 0xFF if width == 32 else 0xFFFFFFFF

    def extract(kind: str, x: int, start: int, length: int) -> int:
        # bit by bit, as the manual puts it
        start, length, msb = start & used, length & used, width - 1
        sign = 0
        if kind == "s" and length:
            sign = x >> min(start + length - 1, msb) & 1
        result = 0
        for i in range(width):
            inside = i < length and start + i <= msb
            result |= (x >> (start + i) & 1 if inside else sign) << i
        return result

    for kind in "us":
        expect(
            f"bfe.{kind}{width}",
            [a, start, length],
            lambda x, p, n, kind=kind: extract(kind, x, p, n),
            width,
        )

    def insert(x: int, y: int, start: int, length: int) -> int:
        start, length = start & used, length & used
        for i in range(min(length, width)):
            if start + i < width:
                y = y & ~(1 << (start + i)) | (x >> i & 1) << (start + i)
        return y

    expect(f"bfi.b{width}", [a, b, start, length], insert, width)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_extensions_and_funnel_shifts(mode: str) -> None:
    a, b, n, m = operands(9, 32), operands(10, 32), counts(11), counts(12)

    def mask(first: int, count: int) -> int:
        if mode == "wrap":
            first, count = first % 32, count % 32
        return sum(1 << i for i in range(first, min(first + count, 32)))

    expect(f"bmsk.{mode}.b32", [n, m], mask, 32)

    def kept(count: int) -> int:
        return count % 32 if mode == "wrap" else min(count, 32)

    expect(f"szext.{mode}.u32", [a, n], lambda x, c: x & ((1 << kept(c)) - 1), 32)
    expect(f"szext.{mode}.s32", [a, n], lambda x, c: signed(x, kept(c)) if kept(c) else 0, 32)

    def left(x: int, y: int, count: int) -> int:
        return (y << 32 | x) << kept(count) >> 32

    expect(f"shf.l.{mode}.b32", [a, b, n], left, 32)
    expect(f"shf.r.{mode}.b32", [a, b, n], lambda x, y, c: (y << 32 | x) >> kept(c), 32)


def test_fns() -> None:
    mask = operands(13, 32)
    rng = np.random.default_rng(14)
    base = rng.integers(0, 32, COUNT, dtype=np.uint32)
    offset = rng.integers(-6, 7, COUNT).astype(np.int32)

    def find(mask: int, base: int, offset: int) -> int:
        ups = [i for i in range(base, 32) if mask >> i & 1]
        downs = [i for i in range(base, -1, -1) if mask >> i & 1]
        if offset == 0:
            return base if mask >> base & 1 else -1
        found = ups if offset > 0 else downs
        return found[abs(offset) - 1] if abs(offset) <= len(found) else -1

    expect("fns.b32", [mask, base, offset], find, 32)


def test_lop3_has_all_256_functions() -> None:
    rng = np.random.default_rng(15)
    a, b, c = (rng.integers(0, 2**32, 6, dtype=np.uint32) for _ in range(3))
    for table in range(256):
        got = run("lop3.b32", a, b, c, np.array([table], np.uint32))
        for i, bits in enumerate(bits_of(got)):
            want = 0
            for k in range(32):
                index = (a[i] >> k & 1) * 4 + (b[i] >> k & 1) * 2 + (c[i] >> k & 1)
                want |= (table >> int(index) & 1) << k
            assert bits == want, table


def test_lop3_with_a_predicate() -> None:
    a = np.array([1, 0, 1, 0], np.uint32)
    ones = np.full(4, 1, np.uint32)
    q = np.array([0, 0, 1, 1], bool)
    both = np.array([0x80], np.uint32)  # a & b & c
    bits, p = run("lop3.or.b32", a, ones, ones, both, q)
    assert bits.tolist() == [1, 0, 1, 0]
    assert p.tolist() == [True, False, True, True]
    assert run("lop3.and.b32", a, ones, ones, both, q)[1].tolist() == [False, False, True, False]


def bytes_of(x: int, count: int = 4) -> list[int]:
    return [x >> (8 * i) & 0xFF for i in range(count)]


def from_bytes(parts: list[int]) -> int:
    return sum(byte << (8 * i) for i, byte in enumerate(parts))


def permuted(a: int, b: int, selector: int) -> int:
    pool = bytes_of(a) + bytes_of(b)
    parts = []
    for i in range(4):
        nibble = selector >> (4 * i) & 15
        byte = pool[nibble & 7]
        parts.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return from_bytes(parts)


def test_prmt() -> None:
    a, b = operands(16, 32), operands(17, 32)
    selector = np.random.default_rng(18).integers(0, 2**32, COUNT, dtype=np.uint32)
    expect("prmt.b32", [a, b, selector], permuted, 32)
    for constant in (0x3210, 0x5410, 0x7632, 0x1054, 0x0000, 0x4444, 0xBA98, 0x8F21, 0x77777654):
        got = bits_of(run("prmt.b32", a, b, np.array([constant], np.uint32)))
        assert got == [permuted(int(x), int(y), constant) for x, y in zip(a, b, strict=True)]


# The manual's table of selected bytes, most significant first, for selectors 0 to 3.
PERMUTE_MODES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


@pytest.mark.parametrize("mode", PERMUTE_MODES)
def test_prmt_modes(mode: str) -> None:
    a, b, c = operands(19, 32), operands(20, 32), operands(21, 32)
    rows = PERMUTE_MODES[mode]
    expect(
        f"prmt.b32.{mode}",
        [a, b, c],
        lambda x, y, n: permuted(x, y, int(rows[n & 3], 16)),
        32,
    )
    for n in range(4):
        got = bits_of(run(f"prmt.b32.{mode}", a, b, np.array([n], np.uint32)))
        assert got == [
            permuted(int(x), int(y), int(rows[n], 16)) for x, y in zip(a, b, strict=True)
        ]


@pytest.mark.parametrize("a_kind", ["u32", "s32"])
@pytest.mark.parametrize("b_kind", ["u32", "s32"])
def test_dot_products(a_kind: str, b_kind: str) -> None:
    a, b, c = operands(22, 32), operands(23, 32), operands(24, 32)

    def lanes(x: int, kind: str, size: int) -> list[int]:
        parts = [x >> shift & ((1 << size) - 1) for shift in range(0, 32, size)]
        return [signed(p, size) for p in parts] if kind == "s32" else parts

    def dot(x: int, y: int, z: int, size: int, first: int) -> int:
        left = lanes(x, a_kind, size)
        right = lanes(y, b_kind, 8)[first : first + len(left)]
        return sum(p * q for p, q in zip(left, right, strict=True)) + z

    kinds = f"{a_kind}.{b_kind}"
    expect(f"dp4a.{kinds}", [a, b, c], lambda x, y, z: dot(x, y, z, 8, 0), 32)
    expect(f"dp2a.lo.{kinds}", [a, b, c], lambda x, y, z: dot(x, y, z, 16, 0), 32)
    expect(f"dp2a.hi.{kinds}", [a, b, c], lambda x, y, z: dot(x, y, z, 16, 2), 32)
