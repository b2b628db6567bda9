"""Turns an access that went wrong into one sentence: who, where, what and how to mend it."""

from __future__ import annotations

import re

import numpy as np

from ..errors import SimulatorError
from ..ptx.syntax import Instruction
from .memory import SLOT


def plain_name(symbol: str) -> str:
    """The source name in a mangled one: _ZZ1kE3s_Q is s_Q; names that are not mangled stay."""
    m = re.search(r"E(\d+)([A-Za-z_]\w*?)(?:E?_\d*)?$", symbol)
    if symbol.startswith("_ZZ") and m:
        return m.group(2)[: int(m.group(1))]
    m = re.match(r"^_Z(?:L|N)?(\d+)(\w+)$", symbol)
    return m.group(2)[: int(m.group(1))] if m else symbol


def _bad_threads(address, total, mask, low, high) -> np.ndarray:
    bad = (address < low) | (address + total > high) | (address % total != 0)
    return bad if mask is None else bad & mask


def _where(S, i: Instruction, bad: np.ndarray) -> str:
    block, thread = S.layout.locate(bad)
    return f"thread {thread} of block {block}"


def _at(S, i: Instruction) -> str:
    return f"{S.entry}, line {i.line}"


def _bytes(count: int) -> str:
    """The article and the size of an access: "a 4-byte", "an 8-byte"."""
    return f"{'an' if count == 8 else 'a'} {count}-byte"


def _value(S, array: np.ndarray, bad: np.ndarray) -> int:
    full = S.layout.full(array).reshape(-1)
    return int(full[int(np.argmax(S.layout.full(bad)))])


def part_written(S) -> str:
    """A closing sentence on which arguments the stopped launch had already written to."""
    names = S.space.written()
    if not names:
        return " No argument was changed."
    return f" The launch stopped there: {', '.join(names)} may be part-written."


def raise_fault(S, i: Instruction, address, total, mask, write, space, region=None):
    """Raise SimulatorError for a bad access ("out_of_bounds" or "misaligned")."""
    verb = "write to" if write else "read of"
    if space == "read-only":
        kind = "the read-only array" if region.kind == "global" else f"{region.kind} memory"
        raise SimulatorError(
            "argument",
            f"{_at(S, i)}: a write to {kind} {region.name}; pass a writable array, or do not "
            f"store through this pointer.{part_written(S)}",
            i.line,
        )
    if space in ("shared", "local"):
        _buffer_fault(S, i, address, total, mask, verb, space)
    every = np.ones(1, np.bool_) if mask is None else mask
    first = _value(S, address, every)
    bad = every & np.ones_like(address, np.bool_)
    # the first active thread whose bytes are in no array
    inside = np.zeros_like(address, np.bool_)
    for r in S.space.regions:
        inside |= (address >= r.start) & (address + total <= r.start + r.nbytes)
    misaligned = every & (address % total != 0)
    if (every & ~inside).any():
        bad = every & ~inside
    elif misaligned.any():
        bad = misaligned
        first = _value(S, address, bad)
        raise SimulatorError(
            "misaligned",
            f"{_at(S, i)}: {_where(S, i, bad)} makes {_bytes(total)} {verb.split()[0]} at byte "
            f"address {first % 4096} (mod 4096), which is not a multiple of {total}: a vector "
            f"access needs an index and a row length that keep it aligned.{part_written(S)}",
            i.line,
        )
    first = _value(S, address, bad)
    if 0 <= first < 4096:
        raise SimulatorError(
            "out_of_bounds",
            f"{_at(S, i)}: {_where(S, i, bad)} makes {_bytes(total)} {verb.split()[0]} through a "
            f"null pointer (address {first}); check the pointer argument.{part_written(S)}",
            i.line,
        )
    region = S.space.nearest(first)
    if region is None:
        raise SimulatorError(
            "out_of_bounds",
            f"{_at(S, i)}: {_where(S, i, bad)} makes a {verb} address {first}, but the kernel "
            f"was given no array.{part_written(S)}",
            i.line,
        )
    size = region.dtype.itemsize
    if not -SLOT < first - region.start < SLOT:
        raise SimulatorError(
            "out_of_bounds",
            f"{_at(S, i)}: {_where(S, i, bad)} makes {_bytes(total)} {verb.split()[0]} far from "
            "every array that the kernel was given; check the pointer and the type of the "
            f"index.{part_written(S)}",
            i.line,
        )
    index = (first - region.start) // size
    count = region.nbytes // size
    raise SimulatorError(
        "out_of_bounds",
        f"{_at(S, i)}: out-of-bounds {verb} {region.name}[{index}] by {_where(S, i, bad)}: "
        f"{region.name} has {count} elements of {region.dtype} "
        f"({f'valid indices 0 to {count - 1}' if count else 'it is empty'}); guard the access "
        f"with an if.{part_written(S)}",
        i.line,
    )


def _buffer_fault(S, i: Instruction, address, total, mask, verb, space):
    buffer = S.shared if space == "shared" else S.local
    low, high = buffer.base, buffer.base + buffer.nbytes
    bad = _bad_threads(address, total, mask, low, high)
    first = _value(S, address, bad)
    if first % total and low <= first and first + total <= high:
        raise SimulatorError(
            "misaligned",
            f"{_at(S, i)}: {_where(S, i, bad)} makes {_bytes(total)} {verb.split()[0]} in "
            f"{space} memory at byte {first - low}, which is not a multiple of {total}: keep "
            f"rows and indices of vector accesses aligned.{part_written(S)}",
            i.line,
        )
    if space == "local":
        raise SimulatorError(
            "out_of_bounds",
            f"{_at(S, i)}: out-of-bounds {verb} the local arrays of {_where(S, i, bad)}, at byte "
            f"{first - low} of their {buffer.nbytes}; correct the index or the size."
            f"{part_written(S)}",
            i.line,
        )
    name, index, count = f"{space} memory", first - low, buffer.nbytes
    unit, mend = "bytes", "correct the index or the size"
    if space == "shared":
        # before the first variable, the first; otherwise the last one that starts before it
        places = sorted(S.shared_variables, key=lambda p: p[0])
        if places:
            at, variable = max(
                (p for p in places if p[0] <= first), key=lambda p: p[0], default=places[0]
            )
            size = max(1, total)
            name, index = plain_name(variable.name), (first - at) // size
            length = variable.size or (high - at)
            count, unit = length // size, f"words of {size} bytes"
            if not variable.size:
                mend = "correct the index, or pass a larger shared_mem"
    raise SimulatorError(
        "out_of_bounds",
        f"{_at(S, i)}: out-of-bounds {verb} {name}[{index}] by {_where(S, i, bad)}: {name} has "
        f"{count} {unit} in {space} memory (a block has {buffer.nbytes} bytes of it); "
        f"{mend}.{part_written(S)}",
        i.line,
    )
