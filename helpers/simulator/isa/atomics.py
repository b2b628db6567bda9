"""Atomic read-modify-write on arrays, as if the lanes came one after another.

PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: atom" and "red". A GPU may
take the lanes of a launch in any order; here they come in the order of the arrays, so that a run
repeats itself to the last bit. Floating-point sums round at every step, in their own precision.

Read off an H200: the sum of f32 in *global* memory flushes subnormal inputs and results to zero
with their sign, in shared memory it does not; a NaN result is 0x7fffffff (f16, bf16: 0x7fff), but
in f64 a NaN's bits are passed on (here as NumPy does).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..errors import SimulatorError
from .floats import canonical, flush
from .halves import narrow_to_bf16, narrow_to_f16, on_halves
from .instruction_types import F16, F32, TYPES, U16
from .rounding import widen_bf16

OPERATIONS = frozenset(("add", "and", "or", "xor", "exch", "cas", "min", "max", "inc", "dec"))

_UFUNCS = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
_WORDS = ("u32", "s32", "u64", "s64")


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one operation on one type is done.

    `step(old, operand)` gives the new values, elementwise. `ufunc`, where there is one, does the
    same; `exact` says that it may be regrouped (integers) rather than only accumulated in order.
    """

    dtype: np.dtype
    step: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ufunc: np.ufunc | None = None
    exact: bool = False


def atomic(
    op: str,
    kind: str,
    memory: np.ndarray,
    index: np.ndarray,
    operand: np.ndarray,
    compare: np.ndarray | None = None,
    returns: bool = True,
    *,
    flush: bool = False,
) -> np.ndarray | None:
    """Apply an atomic operation to memory[index] for each lane in turn, in place.

    op: one of OPERATIONS; kind: the PTX type (u32, s64, b32, f32, f16x2, ...).
    memory: 1-D, writable; operand, compare (cas alone): (lanes,). Their dtypes may be any of the
    size of `kind`: the bits are taken as `kind`. index: intp (lanes,), within memory.
    returns: whether the old values are wanted. flush: subnormal f32 become zero (global memory).
    Returns what each lane found, (lanes,) in operand's dtype, or None.
    Raises SimulatorError (`unsupported`) where PTX has no such operation on this type.
    """
    rule = _rule(op, kind, flush and kind == "f32")
    if not index.size:
        return operand.copy() if returns else None
    values = memory.view(rule.dtype)
    operands = operand.view(rule.dtype)
    with np.errstate(all="ignore"):
        if not returns and rule.exact:
            rule.ufunc.at(values, index, operands)
            return None
        if _ascending(index):
            old = values[index]
            if op == "cas":
                hit = old == compare.view(rule.dtype)
                values[index[hit]] = operands[hit]
            else:
                values[index] = rule.step(old, operands)
        else:
            order = np.argsort(index, kind="stable")
            groups = _Groups(index[order])
            sorted_operands = operands[order]
            if op == "cas":
                found = _compare_and_swap(
                    values, groups, sorted_operands, compare.view(rule.dtype)[order]
                )
            elif op == "exch":
                found = _exchange(values, groups, sorted_operands)
            elif rule.exact:
                found = _scan(rule, values, groups, sorted_operands)
            elif rule.ufunc is not None and groups.count <= groups.most:
                found = _accumulate(rule, values, groups, sorted_operands)
            else:
                found = _rounds(rule, values, groups, sorted_operands)
            old = np.empty_like(found)
            old[order] = found
    return old.view(operand.dtype) if returns else None


# ---------------------------------------------------------------- lanes that hit the same element


class _Groups:
    """Lanes sorted by the element that they hit, those of one element in lane order."""

    def __init__(self, index: np.ndarray):
        first = np.ones(len(index), np.bool_)
        np.not_equal(index[1:], index[:-1], out=first[1:])
        self.starts = np.flatnonzero(first)
        self.element = index[self.starts]  # of memory, for each group
        self.ends = np.append(self.starts[1:], len(index))
        self.count = len(self.starts)
        self.most = int((self.ends - self.starts).max())
        self.of_lane = np.cumsum(first, dtype=np.intp) - 1
        # How many lanes of the group come before this one.
        self.rank = np.arange(len(index), dtype=np.intp) - self.starts[self.of_lane]


def _ascending(index: np.ndarray) -> bool:
    """True where no two lanes can hit the same element, seen without sorting."""
    return len(index) < 2 or bool((index[1:] > index[:-1]).all())


def _scan(rule: _Rule, values, groups: _Groups, operands) -> np.ndarray:
    """Operations that may be regrouped: prefixes of every group, twice as long each time."""
    prefix = operands.copy()
    length = 1
    while length < groups.most:
        reaches = np.flatnonzero(groups.rank >= length)
        prefix[reaches] = rule.ufunc(prefix[reaches - length], prefix[reaches])
        length *= 2
    return _found(rule, values, groups, prefix)


def _found(rule: _Rule, values, groups: _Groups, prefix) -> np.ndarray:
    """From each lane's prefix, its own operand included, to what it found; memory is updated."""
    before = values[groups.element]
    later = groups.rank > 0
    found = before[groups.of_lane]
    found[later] = rule.ufunc(found[later], prefix[:-1][later[1:]])
    values[groups.element] = rule.ufunc(before, prefix[groups.ends - 1])
    return found


def _accumulate(rule: _Rule, values, groups: _Groups, operands) -> np.ndarray:
    """Sums that round at every step, for few elements hit by many lanes: one element at a time."""
    found = np.empty_like(operands)
    for element, start, end in zip(
        groups.element.tolist(), groups.starts.tolist(), groups.ends.tolist(), strict=True
    ):
        run = np.concatenate([values[element : element + 1], operands[start:end]])
        sums = rule.ufunc.accumulate(run, dtype=rule.dtype)
        stepped = rule.step(sums[:-1], run[1:])
        flushed = (_bits(stepped) != _bits(sums[1:])) & ~np.isnan(stepped)
        if not flushed.any():
            sums[1:] = stepped  # the same, but for the bits of NaN
        else:
            for lane in range(1, len(sums)):
                sums[lane] = rule.step(sums[lane - 1 : lane], run[lane : lane + 1])[0]
        found[start:end] = sums[:-1]
        values[element] = sums[-1]
    return found


def _rounds(rule: _Rule, values, groups: _Groups, operands) -> np.ndarray:
    """The general case: first every element's first lane, then every element's second, ..."""
    found = np.empty_like(operands)
    order = np.argsort(groups.rank, kind="stable")
    sizes = np.bincount(groups.rank)
    start = 0
    for size in sizes.tolist():
        lanes = order[start : start + size]
        start += size
        elements = groups.element[groups.of_lane[lanes]]
        old = values[elements]
        found[lanes] = old
        values[elements] = rule.step(old, operands[lanes])
    return found


def _exchange(values, groups: _Groups, operands) -> np.ndarray:
    """Each lane finds what the lane before it left."""
    found = np.empty_like(operands)
    found[1:] = operands[:-1]
    found[groups.starts] = values[groups.element]
    values[groups.element] = operands[groups.ends - 1]
    return found


def _compare_and_swap(values, groups: _Groups, operands, compare) -> np.ndarray:
    """One pass for every time that an element changes, over the lanes that come after it."""
    found = np.empty_like(operands)
    current = values[groups.element]
    pending = np.arange(len(operands), dtype=np.intp)
    while pending.size:
        group = groups.of_lane[pending]
        found[pending] = current[group]
        # A swap that stores what is already there changes nothing for the lanes after it.
        changes = (compare[pending] == current[group]) & (operands[pending] != current[group])
        hits = pending[changes]
        if not hits.size:
            break
        winner = np.full(groups.count, len(operands), np.intp)
        np.minimum.at(winner, groups.of_lane[hits], hits)
        changed = np.flatnonzero(winner < len(operands))
        current[changed] = operands[winner[changed]]
        pending = pending[pending > winner[group]]
    values[groups.element] = current
    return found


# ---------------------------------------------------------------- the operations


@cache
def _rule(op: str, kind: str, flush_f32: bool) -> _Rule:
    dtype = TYPES[kind]
    if op == "exch" and kind in ("b32", "b64") or op == "cas" and kind in ("b16", "b32", "b64"):
        return _Rule(dtype, lambda old, operand: operand)
    if (op in ("add", "min", "max") and kind in _WORDS) or (
        op in ("and", "or", "xor") and kind in ("b32", "b64")
    ):
        return _Rule(dtype, _UFUNCS[op], _UFUNCS[op], True)
    if op in ("inc", "dec") and kind == "u32":
        return _Rule(dtype, _COUNTING[op])
    if op == "add" and kind in _FLOAT_SUMS:
        step = _add_f32_flushing if flush_f32 else _FLOAT_SUMS[kind]
        return _Rule(dtype, step, np.add if kind in ("f32", "f64", "f16") else None)
    raise SimulatorError(
        "unsupported",
        f"atom.{op}.{kind} and red.{op}.{kind} are not simulated: PTX has add for integers and "
        "floats, min and max for integers, inc and dec for u32, and, or, xor, exch and cas for b32 "
        "and b64.",
    )


_COUNTING = {
    "inc": lambda old, most: np.where(old >= most, np.uint32(0), old + np.uint32(1)),
    "dec": lambda old, most: np.where((old == 0) | (old > most), most, old - np.uint32(1)),
}


def _add_f32(old, operand):
    return canonical(old + operand)


def _add_f32_flushing(old, operand):
    return flush(_add_f32(flush(old), flush(operand)))


def _add_f16(old, operand):
    return narrow_to_f16(old.astype(F32) + operand.astype(F32))


def _add_f16_bits(old, operand):
    return _add_f16(old.view(F16), operand.view(F16)).view(U16)


def _add_bf16(old, operand):
    # float32 has more than twice the digits of bfloat16: rounding twice gives what once would.
    return narrow_to_bf16(widen_bf16(old) + widen_bf16(operand))


_FLOAT_SUMS = {
    "f32": _add_f32,
    "f64": np.add,
    "f16": _add_f16,
    "bf16": _add_bf16,
    "f16x2": on_halves(_add_f16_bits),
    "bf16x2": on_halves(_add_bf16),
}


def _bits(values: np.ndarray) -> np.ndarray:
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))
