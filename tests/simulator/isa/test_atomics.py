"""Atomics, against one lane after another in plain Python and against an H200."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from helpers.simulator.errors import SimulatorError
from helpers.simulator.isa import atomics

DATA = Path(__file__).parents[2] / "data"

INTEGERS = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64}
CASES = (
    [(op, kind) for op in ("add", "min", "max") for kind in INTEGERS]
    + [(op, kind) for op in ("and", "or", "xor", "exch") for kind in ("b32", "b64")]
    + [("cas", kind) for kind in ("b16", "b32", "b64")]
    + [("inc", "u32"), ("dec", "u32")]
)
FLOATS = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"]
WIDTH = {"b16": 16, "f16": 16, "bf16": 16, "b64": 64, "u64": 64, "s64": 64, "f64": 64}


# ---------------------------------------------------------------- the oracle, on Python integers


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def add_float(x: int, y: int, code: str, nan: int) -> int:
    """Bits of the sum of two floats of a `struct` format, rounded once by way of float64."""
    word = {"e": "H", "f": "I", "d": "Q"}[code]
    a, b = (struct.unpack(code, struct.pack(word, bits))[0] for bits in (x, y))
    total = a + b
    if total != total:
        return nan
    try:
        return struct.unpack(word, struct.pack(code, total))[0]
    except OverflowError:
        return struct.unpack(word, struct.pack(code, float("inf") if total > 0 else -float("inf")))[
            0
        ]


def add_bf16(x: int, y: int) -> int:
    """The float64 sum (exact for these exponents) rounded to eight digits, ties to even."""
    a, b = (struct.unpack("f", struct.pack("I", bits << 16))[0] for bits in (x, y))
    total = a + b
    if total != total:
        return 0x7FFF
    if total in (float("inf"), -float("inf")) or total == 0:
        return struct.unpack("I", struct.pack("f", total))[0] >> 16
    low = -133 if abs(total) < 2.0**-126 else int(np.frexp(total)[1]) - 8
    rounded = round(np.ldexp(total, -low)) * 2.0**low  # Python rounds ties to even
    if abs(rounded) >= 2.0**128:
        rounded = float(np.copysign(np.inf, rounded))
    elif rounded == 0:
        rounded = float(np.copysign(0.0, total))
    return struct.unpack("I", struct.pack("f", rounded))[0] >> 16


def flushed(bits: int) -> int:
    return bits if bits & 0x7F800000 else bits & 0x80000000


def new_value(op: str, kind: str, old: int, operand: int, compare: int, flush: bool) -> int:
    width = WIDTH.get(kind, 32)
    mask = (1 << width) - 1
    if op == "add" and kind in FLOATS:
        if kind == "f32":
            if flush:
                return flushed(add_float(flushed(old), flushed(operand), "f", 0x7FFFFFFF))
            return add_float(old, operand, "f", 0x7FFFFFFF)
        if kind == "f64":
            return add_float(old, operand, "d", 0x7FF8000000000000)
        if kind == "f16":
            return add_float(old, operand, "e", 0x7FFF)
        if kind == "bf16":
            return add_bf16(old, operand)
        single = kind[:-2]
        low, high = (
            new_value("add", single, old >> s & 0xFFFF, operand >> s & 0xFFFF, 0, False)
            for s in (0, 16)
        )
        return low | high << 16
    if op == "add":
        return (old + operand) & mask
    if op in ("min", "max"):
        pick = min if op == "min" else max
        if kind[0] == "s":
            return pick(signed(old, width), signed(operand, width)) & mask
        return pick(old, operand)
    if op == "cas":
        return operand if old == compare else old
    if op == "inc":
        return 0 if old >= operand else old + 1
    if op == "dec":
        return operand if old == 0 or old > operand else old - 1
    return {"and": old & operand, "or": old | operand, "xor": old ^ operand, "exch": operand}[op]


def one_by_one(op, kind, memory, index, operand, compare, flush):
    memory = [int(v) for v in memory]
    found = []
    for lane, at in enumerate(index):
        old = memory[at]
        found.append(old)
        swap = int(compare[lane]) if compare is not None else 0
        memory[at] = new_value(op, kind, old, int(operand[lane]), swap, flush)
    return memory, found


def check(op, kind, memory, index, operand, compare=None, flush=False):
    """With and without old values; bits in unsigned arrays throughout."""
    expected, found = one_by_one(op, kind, memory, index, operand, compare, flush)
    inputs = index.copy(), operand.copy(), None if compare is None else compare.copy()
    for returns in (True, False):
        work = memory.copy()
        old = atomics.atomic(op, kind, work, index, operand, compare, returns, flush=flush)
        if kind == "f64":  # which NaN it is is not promised
            nan = np.isnan(work.view(np.float64))
            assert (nan == np.isnan(np.array(expected, np.uint64).view(np.float64))).all()
            work[nan] = 0x7FF8000000000000
        assert [int(v) for v in work] == expected
        if returns:
            assert old.dtype == operand.dtype
            if kind == "f64":
                old = np.where(np.isnan(old.view(np.float64)), np.uint64(0x7FF8000000000000), old)
            assert [int(v) for v in old] == found
        else:
            assert old is None
    assert (index == inputs[0]).all() and (operand == inputs[1]).all()
    assert compare is None or (compare == inputs[2]).all()


def indices(rng, cells: int) -> dict[str, np.ndarray]:
    lanes = 203
    return {
        "ascending": np.arange(5, 5 + cells // 2),
        "shuffled": rng.permutation(cells),
        "one": np.full(lanes, 7),
        "few": rng.integers(0, 3, lanes),
        "many": rng.integers(0, cells, lanes),
        "uneven": np.where(rng.random(lanes) < 0.7, 3, rng.integers(0, cells, lanes)),
        "single": np.array([2]),
        "empty": np.array([], int),
    }


def random_words(rng, count: int, width: int) -> np.ndarray:
    values = rng.integers(0, 2**width, count, dtype=np.uint64)
    small = rng.integers(0, 5, count).astype(np.uint64)
    return np.where(rng.random(count) < 0.4, small, values).astype(f"u{width // 8}")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("op", "kind"), CASES)
def test_integers_equal_one_lane_after_another(op, kind):
    rng = np.random.default_rng([CASES.index((op, kind))])
    width = WIDTH.get(kind, 32)
    cells = 60
    for index in indices(rng, cells).values():
        index = index.astype(np.intp)
        memory = random_words(rng, cells, width)
        operand = random_words(rng, len(index), width)
        compare = random_words(rng, len(index), width) % 5 if op == "cas" else None
        if op == "cas":
            memory %= 5
            operand[rng.random(len(index)) < 0.7] %= 5
        if op in ("inc", "dec"):
            operand[rng.random(len(index)) < 0.7] %= 9
            memory[rng.random(cells) < 0.7] %= 9
        check(op, kind, memory, index, operand, compare)


SPECIAL = {
    "f32": [0, 1 << 31, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800001, 0x7F7FFFFF, 0x7F800000]
    + [0xFF800000, 0x7FC00000, 0xFFC12345],
    "f64": [0, 1 << 63, 1, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000],
    "f16": [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFE55],
    "bf16": [0, 0x8000, 1, 0x8001, 0x007F, 0x0080, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFD5],
}


def random_floats(rng, count: int, kind: str, special: bool) -> np.ndarray:
    """Bits of numbers around 1 that round often, or of special ones."""
    if kind in ("f16x2", "bf16x2"):
        low, high = (random_floats(rng, count, kind[:-2], special) for _ in range(2))
        return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    if special:
        width = WIDTH.get(kind, 32)
        return rng.choice(np.array(SPECIAL[kind], np.uint64), count).astype(f"u{width // 8}")
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 4, count)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    dtype = np.dtype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[kind])
    return values.astype(dtype).view(f"u{dtype.itemsize}")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("kind", FLOATS)
def test_float_sums_round_at_every_step(kind, special):
    rng = np.random.default_rng([FLOATS.index(kind), special])
    for index in indices(rng, 60).values():
        index = index.astype(np.intp)
        memory = random_floats(rng, 60, kind, special)
        operand = random_floats(rng, len(index), kind, special)
        check("add", kind, memory, index, operand)
        if kind == "f32":
            check("add", kind, memory, index, operand, flush=True)


def test_order_of_the_lanes_matters_for_floats():
    """1 is lost next to 2^24 but not next to 0: the two orders give different sums."""
    big, one = np.float32(2**24), np.float32(1)
    for order, expected in (([big, one, one], 2**24), ([one, one, big], 2**24 + 2)):
        memory = np.zeros(1, np.float32)
        atomics.atomic("add", "f32", memory, np.zeros(3, np.intp), np.array(order), returns=False)
        assert memory[0] == expected


def test_arrays_in_the_types_own_dtype_and_strided_memory():
    backing = np.arange(20, dtype=np.int32)
    memory = backing[1::2]
    index = np.array([4, 0, 4, 9], np.intp)
    operand = np.array([-100, 5, -1, 7], np.int32)
    old = atomics.atomic("add", "s32", memory, index, operand)
    assert old.dtype == np.int32 and old.tolist() == [9, 1, -91, 19]
    expected = np.arange(20)
    expected[[9, 1, 19]] = [-92, 6, 26]
    assert backing.tolist() == expected.tolist()


@pytest.mark.filterwarnings("error")
def test_one_lane_each_recorded_on_an_h200():
    """Old value, operand and new value of special numbers, in global and in shared memory."""
    with np.load(DATA / "h200_atomics.npz") as file:
        data = {name: file[name] for name in file.files}
    assert len(data) == 24
    for name, (before, operand, after, found) in data.items():
        space, instruction = name.split("/")
        op, kind = instruction.split(".")[0], instruction.split(".")[-1]
        memory = before.copy()
        index = np.arange(len(memory), dtype=np.intp)
        old = atomics.atomic(op, kind, memory, index, operand, flush=space == "global")
        np.testing.assert_array_equal(old, found)
        if kind == "f64":
            numbers = ~np.isnan(after.view(np.float64))
            assert (np.isnan(memory.view(np.float64)) == ~numbers).all()
            memory, after = memory[numbers], after[numbers]
        np.testing.assert_array_equal(memory, after, err_msg=name)


def test_operations_that_ptx_has_not_are_refused():
    memory, index = np.zeros(4, np.uint32), np.zeros(2, np.intp)
    for op, kind in (
        ("min", "f32"),
        ("inc", "s32"),
        ("and", "u32"),
        ("exch", "b16"),
        ("mul", "u32"),
    ):
        with pytest.raises(SimulatorError, match=f"{op}.{kind}") as error:
            atomics.atomic(op, kind, memory, index, memory[:2])
        assert error.value.kind == "unsupported"
    assert "cas" in atomics.OPERATIONS and "mul" not in atomics.OPERATIONS
