"""The steps of bulk copies: cp.async.bulk between global and shared memory, and its groups.

PTX ISA 9.0, "Data Movement: Bulk copy". One thread copies many bytes. As with cp.async the bytes
are there at once; the sanitizer says who does not wait for them. The machinery that moves them is
not that of loads and stores, whose counters they leave alone.
"""

from typing import NamedTuple

import numpy as np

from ...ptx.syntax import Imm, Instruction
from ..elements import active_mask, guard_getter
from ..faults import everyone, fault, where_is
from ..memory import Region
from ..operands import address_getter, getter
from .mbarrier_steps import Objects, arrive
from .tensor_copies import tensor_step

_UNIT = 16  # bytes: addresses and sizes are multiples


class Bytes(NamedTuple):
    """Where one thread's bulk copy reads or writes: `data[start:start + n]`."""

    region: Region | None  # None: shared memory
    data: np.ndarray
    start: int


def bulk_step(i: Instruction):
    """cp.async.bulk of every kind."""
    kinds = set(i.modifiers)
    if "commit_group" in kinds:
        return lambda S, R: S.sanitizer.commit_bulk(S) if S.sanitizer is not None else None
    if "wait_group" in kinds:
        left = i.operands[0].value if isinstance(i.operands[0], Imm) else 0
        return lambda S, R: S.sanitizer.wait_bulk(S, left) if S.sanitizer is not None else None
    if "prefetch" in kinds:
        return None
    if "tensor" in kinds and "reduce" not in kinds:
        return tensor_step(i)
    if "reduce" in kinds or "multicast__cluster" in kinds or "cp_mask" in kinds:
        raise i.unsupported("has bulk copies without reduction, multicast and masks of bytes only")
    return _copy_step(i)


def _copy_step(i: Instruction):
    to_space, from_space = [m.split("__")[0] for m in i.modifiers if m.startswith(("sh", "gl"))]
    to, come = (address_getter(i, operand) for operand in i.operands[:2])
    size_of = getter(i, i.operands[2], np.dtype(np.uint32))
    named = Objects(i, i.operands[3]) if "mbarrier__complete_tx__bytes" in i.modifiers else None
    guard = guard_getter(i)

    def step(S, R):
        mask, some = active_mask(S, guard(S, R) if guard is not None else None)
        if not some:
            return
        where = np.flatnonzero(S.layout.full(everyone(mask)))
        target, source, size = (
            S.layout.flat(get(S, R))[where].tolist() for get in (to, come, size_of)
        )
        S.writes += 1
        objects = named(S, R)[1:3] if named is not None else None
        for lane, number in enumerate(where.tolist()):
            n = size[lane]
            source_bytes = _find(S, i, from_space, source[lane], n, number, False)
            target_bytes = _find(S, i, to_space, target[lane], n, number, True)
            if S.counting:
                for bytes_, kind in ((source_bytes, "load"), (target_bytes, "store")):
                    if bytes_.region is not None:
                        first = bytes_.region.start + bytes_.start
                        S.tally.bulk(S, i, kind, np.arange(first, first + n))
            if S.sanitizer is not None:
                word = objects[1][lane] if objects is not None else None
                S.sanitizer.bulk(S, i, number, source_bytes, target_bytes, n, word)
            target_bytes.data[target_bytes.start : target_bytes.start + n] = source_bytes.data[
                source_bytes.start : source_bytes.start + n
            ]
        if objects is not None:
            arrive(S, i, *objects, where, 0, -np.array(size, np.int64))

    return step


def _find(S, i: Instruction, space: str, address: int, n: int, number: int, write: bool) -> Bytes:
    """The bytes behind an address, for one thread.

    Raises:
        SimulatorError: they are not all in one array, or not aligned, or may not be written.
    """
    who, verb = where_is(S, number), "to" if write else "from"
    if address % _UNIT or n % _UNIT:
        raise fault(
            S, i.line, "misaligned", f"{who} makes a bulk copy of {n:,} bytes {verb} byte address "
            f"{address % 4096} (mod 4096): size and addresses are to be multiples of {_UNIT}.",
        )  # fmt: skip
    if space == "shared":
        start = address - S.shared.base
        if 0 <= start <= S.shared.nbytes - n:
            block = number // S.layout.nthreads
            return Bytes(None, S.shared.bytes, block * S.shared.pitch + start)
        raise fault(
            S, i.line, "out_of_bounds", f"{who} makes a bulk copy of {n:,} bytes {verb} byte "
            f"{start:,} of shared memory, of which a block has {S.shared.nbytes:,}; correct the "
            "size or the address.",
        )  # fmt: skip
    region = S.space.find(address, address + n)
    if region is None:
        near = S.space.nearest(address)
        at = f"{near.name}, from its byte {address - near.start:,}" if near else "global memory"
        has = f"; {near.name} has {near.nbytes:,} bytes" if near else ""
        raise fault(
            S, i.line, "out_of_bounds", f"{who} makes a bulk copy of {n:,} bytes {verb} {at} "
            f"on{has}: correct the size or the address.",
        )  # fmt: skip
    if write and not region.writable:
        raise fault(
            S, i.line, "argument", f"a bulk copy to {region.name}, which is read-only; pass a "
            "writable array, or do not store through this pointer.",
        )  # fmt: skip
    region.written = region.written or write
    return Bytes(region, region.data, address - region.start)
