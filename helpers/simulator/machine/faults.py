"""Turns an access that went wrong into one sentence: who, where, what and how to mend it."""

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


def fault(S, line: int | None, kind: str, text: str) -> SimulatorError:
    """What stops a running kernel: with its name and line before, what it had written behind."""
    return SimulatorError(kind, f"{S.entry}, line {line}: {text}{part_written(S)}", line)


def part_written(S) -> str:
    """A closing sentence on which arguments the stopped launch had already written to."""
    names = S.space.written()
    if not names:
        return " No argument was changed."
    return f" The launch stopped there: {', '.join(names)} may be part-written."


def everyone(mask: np.ndarray | None) -> np.ndarray:
    """A mask that is an array, also where None stands for all threads."""
    return np.ones(1, np.bool_) if mask is None else mask


def where(S, mask: np.ndarray) -> str:
    """The first thread of a mask and its block: "thread (1, 0, 0) of block (0, 0, 0)"."""
    block, thread = S.layout.locate(mask)
    return f"thread {thread} of block {block}"


def where_is(S, number: int) -> str:
    """The same of the thread with this number in the batch."""
    block, thread = divmod(int(number), S.layout.nthreads)
    return f"thread {S.layout.thread_at(thread)} of block {S.layout.block_at(block)}"


def _value(S, array: np.ndarray, bad: np.ndarray) -> int:
    return int(S.layout.flat(array)[np.argmax(S.layout.full(bad))])


def _makes(S, bad: np.ndarray, total: int, verb: str) -> str:
    """Who makes the access: "thread … makes an 8-byte read"."""
    return f"{where(S, bad)} makes {'an' if total == 8 else 'a'} {total}-byte {verb.split()[0]}"


def raise_fault(S, i: Instruction, address, total, mask, write, space, region=None):
    """Raise SimulatorError for a bad access ("out_of_bounds" or "misaligned")."""
    verb = "write to" if write else "read of"
    if space == "read-only":
        kind = "the read-only array" if region.kind == "global" else f"{region.kind} memory"
        raise fault(
            S, i.line, "argument", f"a write to {kind} {region.name}; pass a writable array, or do "
            "not store through this pointer.",
        )  # fmt: skip
    if space in ("shared", "local"):
        kind, text = _buffer_fault(S, address, total, mask, verb, space)
    else:
        kind, text = _global_fault(S, address, total, mask, verb)
    raise fault(S, i.line, kind, text)


def _global_fault(S, address, total, mask, verb: str) -> tuple[str, str]:
    every = everyone(mask) & np.ones_like(address, np.bool_)
    inside = np.zeros_like(address, np.bool_)
    for slot in np.unique(np.broadcast_to(address, every.shape)[every] // SLOT):
        S.space.find(int(slot) * SLOT, int(slot) * SLOT + 1)  # makes known what pointers lead to
    for r in S.space.regions:
        inside |= (address >= r.start) & (address + total <= r.start + r.nbytes)
    outside, misaligned = every & ~inside, every & (address % total != 0)
    # the first active thread whose bytes are in no array
    bad = outside if outside.any() else misaligned if misaligned.any() else every
    first, makes = _value(S, address, bad), _makes(S, bad, total, verb)
    if bad is misaligned:
        return "misaligned", (
            f"{makes} at byte address {first % 4096} (mod 4096), which is not a multiple of "
            f"{total}: a vector access needs an index and a row length that keep it aligned."
        )
    if 0 <= first < 4096:
        return "out_of_bounds", (
            f"{makes} through a null pointer (address {first}); check the pointer argument."
        )
    region = S.space.nearest(first)
    if region is None:
        return "out_of_bounds", (
            f"{where(S, bad)} makes a {verb} address {first}, but the kernel was given no array."
        )
    if not -SLOT < first - region.start < SLOT:
        return "out_of_bounds", (
            f"{makes} far from every array that the kernel was given; check the pointer and the "
            "type of the index."
        )
    size, element = region.dtype.itemsize, region.element or region.dtype
    index, count = (first - region.start) // size, region.nbytes // size
    valid = f"valid indices 0 to {count - 1}" if count else "it is empty"
    return "out_of_bounds", (
        f"out-of-bounds {verb} {region.name}[{index}] by {where(S, bad)}: {region.name} has "
        f"{count} elements of {element} ({valid}); guard the access with an if."
    )


def _buffer_fault(S, address, total, mask, verb: str, space: str) -> tuple[str, str]:
    buffer = S.shared if space == "shared" else S.local
    low, high = buffer.base, buffer.base + buffer.nbytes
    bad = everyone(mask) & ((address < low) | (address + total > high) | (address % total != 0))
    first = _value(S, address, bad)
    if first % total and low <= first and first + total <= high:
        return "misaligned", (
            f"{_makes(S, bad, total, verb)} in {space} memory at byte {first - low}, which is not "
            f"a multiple of {total}: keep rows and indices of vector accesses aligned."
        )
    if space == "local":
        return "out_of_bounds", (
            f"out-of-bounds {verb} the local arrays of {where(S, bad)}, at byte {first - low} of "
            f"their {buffer.nbytes}; correct the index or the size."
        )
    name, index, count, unit = "shared memory", first - low, buffer.nbytes, "bytes"
    mend = "correct the index or the size"
    # before the first variable, the first; otherwise the last one that starts before it
    places = sorted(S.shared_variables, key=lambda p: p[0])
    if places:
        at, variable = max(
            (p for p in places if p[0] <= first), key=lambda p: p[0], default=places[0]
        )
        size = max(1, total)
        name, index = plain_name(variable.name), (first - at) // size
        count, unit = (variable.size or (high - at)) // size, f"words of {size} bytes"
        if not variable.size:
            mend = "correct the index, or pass a larger shared_mem"
    return "out_of_bounds", (
        f"out-of-bounds {verb} {name}[{index}] by {where(S, bad)}: {name} has {count} {unit} in "
        f"shared memory (a block has {buffer.nbytes} bytes of it); {mend}."
    )
