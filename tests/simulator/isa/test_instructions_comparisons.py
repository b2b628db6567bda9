"""Comparisons and selections against Python's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from instruction_oracles import FORMATS, bits_of, floats, integers, run, signed

COUNT = 300
ORDERED: dict[str, Callable] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
SAME = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
BOOLEAN = {
    "and": lambda p, q: p and q,
    "or": lambda p, q: p or q,
    "xor": lambda p, q: p != q,
}


def operands(kind: str, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if kind[0] in "fb" and kind in FORMATS:
        a, b = floats(rng, kind, COUNT), floats(rng, kind, COUNT)
    else:
        a, b = (integers(rng, int(kind[1:]), COUNT) for _ in range(2))
    b[::5] = a[::5]
    return [a, b]


def float_compare(name: str, kind: str, a: int, b: int, ftz: bool = False) -> bool:
    form = FORMATS[kind]
    nan = form.is_nan(a) or form.is_nan(b)
    if name in ("nan", "num"):
        return nan == (name == "nan")
    if nan:
        return name.endswith("u")
    name = name.removesuffix("u")

    def number(bits: int) -> tuple[int, object]:
        if form.is_infinite(bits):
            return (-1 if form.negative(bits) else 1), 0
        return 0, form.value(form.flush(bits) if ftz else bits)

    return ORDERED[name](number(a), number(b))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64", "b16", "b32", "b64"])
def test_integers(kind: str) -> None:
    a, b = operands(kind)
    width = int(kind[1:])
    names = ["eq", "ne"] if kind[0] == "b" else [*ORDERED, *(SAME if kind[0] == "u" else ())]

    def number(x: int) -> int:
        return signed(x, width) if kind[0] == "s" else x

    for name in names:
        p, q = run(f"setp.{name}.{kind}", a, b)
        compare = ORDERED[SAME.get(name, name)]
        want = [compare(number(x), number(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert p.tolist() == want
        assert q.tolist() == [not w for w in want]


FLOAT_NAMES = [*ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_floats(name: str, kind: str) -> None:
    a, b = operands(kind)
    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    for ftz in (False, True) if kind in ("f32", "f16") else (False,):
        p, q = run(f"setp.{name}{'.ftz' if ftz else ''}.{kind}", a, b)
        want = [float_compare(name, kind, x, y, ftz) for x, y in rows]
        assert p.tolist() == want
        assert q.tolist() == [not w for w in want]


def test_a_subnormal_equals_zero_when_flushed() -> None:
    tiny = np.full(9, 1e-40, np.float32)
    for zero in (np.zeros(1, np.float32), np.zeros(9, np.float32), np.full(9, -1e-39, np.float32)):
        assert run("setp.eq.ftz.f32", tiny, zero)[0].all()
        assert run("setp.eq.ftz.f32", zero, tiny)[0].all()
        assert not run("setp.eq.f32", tiny, zero)[0].any()
    assert run("setp.gt.ftz.f32", tiny, np.full(1, -1.0, np.float32))[0].all()


@pytest.mark.parametrize("combine", BOOLEAN)
@pytest.mark.parametrize(("name", "kind"), [("lt", "s32"), ("geu", "f32"), ("hi", "u64")])
def test_combined_with_a_predicate(name: str, kind: str, combine: str) -> None:
    a, b = operands(kind)
    c = np.random.default_rng(2).random(COUNT) < 0.5
    holds = run(f"setp.{name}.{kind}", a, b)[0].tolist()
    p, q = run(f"setp.{name}.{combine}.{kind}", a, b, c)
    join = BOOLEAN[combine]
    assert p.tolist() == [join(h, d) for h, d in zip(holds, c.tolist(), strict=True)]
    assert q.tolist() == [join(not h, d) for h, d in zip(holds, c.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_pairs_give_a_predicate_each(kind: str) -> None:
    low, high = operands(kind, 3), operands(kind, 4)
    both = [h.astype(np.uint32) << np.uint32(16) | x for x, h in zip(low, high, strict=True)]
    c = np.random.default_rng(5).random(COUNT) < 0.5
    for name in ("lt", "neu", "nan", "geu"):
        p, q = run(f"setp.{name}.{kind}x2", *both)
        want_low = run(f"setp.{name}.{kind}", *low)[0]
        want_high = run(f"setp.{name}.{kind}", *high)[0]
        assert p.tolist() == want_low.tolist()
        assert q.tolist() == want_high.tolist()
        marks = run(f"set.{name}.{kind}x2.{kind}x2", *both)
        one = 0x3C00 if kind == "f16" else 0x3F80
        want = [one * int(x) | one * int(y) << 16 for x, y in zip(want_low, want_high, strict=True)]
        assert marks.tolist() == want
        p, q = run(f"setp.{name}.and.{kind}x2", *both, c)
        assert p.tolist() == (want_low & c).tolist() and q.tolist() == (want_high & c).tolist()


@pytest.mark.parametrize(
    ("to", "true"),
    [("u32", 0xFFFFFFFF), ("s32", 0xFFFFFFFF), ("f32", 0x3F800000), ("bf16", 0x3F80)],
)
def test_set(to: str, true: int) -> None:
    c = np.random.default_rng(6).random(COUNT) < 0.5
    for name, kind in (("lt", "s32"), ("hi", "u64"), ("leu", "f32"), ("nan", "f64"), ("eq", "b32")):
        a, b = operands(kind)
        holds = run(f"setp.{name}.{kind}", a, b)[0]
        assert bits_of(run(f"set.{name}.{to}.{kind}", a, b)) == [true * int(h) for h in holds]
        got = bits_of(run(f"set.{name}.xor.{to}.{kind}", a, b, c))
        assert got == [true * int(h != d) for h, d in zip(holds, c, strict=True)]


def test_set_of_halves() -> None:
    for kind, one in (("f16", 0x3C00), ("bf16", 0x3F80)):
        a, b = operands(kind)
        holds = run(f"setp.gt.{kind}", a, b)[0]
        assert bits_of(run(f"set.gt.{kind}.{kind}", a, b)) == [one * int(h) for h in holds]
        assert bits_of(run(f"set.gt.s16.{kind}", a, b)) == [0xFFFF * int(h) for h in holds]
        assert bits_of(run(f"set.gt.u32.{kind}", a, b)) == [0xFFFFFFFF * int(h) for h in holds]


@pytest.mark.parametrize("kind", ["b16", "s32", "u64", "f32", "f64"])
@pytest.mark.parametrize("count", [COUNT, 5000])
def test_selections(kind: str, count: int) -> None:
    width = int(kind[1:])
    rng = np.random.default_rng(7)
    a, b = (integers(rng, width, count) for _ in range(2))
    c = rng.random(count) < 0.5
    choice = [x if h else y for x, y, h in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    assert bits_of(run(f"selp.{kind}", a, b, c)) == choice
    scalar = bits_of(run(f"selp.{kind}", a[:1], b, c))
    assert scalar == [int(a[0]) if h else y for y, h in zip(b.tolist(), c.tolist(), strict=True)]
    scalar = bits_of(run(f"selp.{kind}", a, b[:1], c))
    assert scalar == [x if h else int(b[0]) for x, h in zip(a.tolist(), c.tolist(), strict=True)]
    number = integers(rng, 32, count)
    got = bits_of(run(f"slct.{kind}.s32", a, b, number))
    want = [
        x if n < 2**31 else y
        for x, y, n in zip(a.tolist(), b.tolist(), number.tolist(), strict=True)
    ]
    assert got == want
    test = floats(rng, "f32", count)
    form = FORMATS["f32"]
    for ftz in (False, True):
        got = bits_of(run(f"slct{'.ftz' if ftz else ''}.{kind}.f32", a, b, test))
        for x, y, t, bits in zip(a.tolist(), b.tolist(), test.tolist(), got, strict=True):
            assert bits == (x if float_compare("ge", "f32", t, 0, ftz) else y), hex(t)
    assert form.value(0x80000000) == 0
