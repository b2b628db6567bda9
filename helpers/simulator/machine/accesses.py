"""The steps of instructions that touch memory: ld, st, atom, red, cp.async."""

import numpy as np

from ..errors import SimulatorError
from ..isa import atomics
from ..ptx.syntax import Imm, Instruction, Reg, Sym, items_of
from .asynchronous.bulk_copies import bulk_step
from .asynchronous.mbarrier_steps import copies_arrive_step
from .elements import (
    active_mask,
    buffer_pieces,
    check_writable,
    gather,
    guard_getter,
    pieces_of,
    scatter,
)
from .faults import everyone
from .memory import UNSIGNED
from .operands import BOOL, address_getter, getter, putter
from .params import param_load, param_store

# ------------------------------------------------------------------ ld and st


def load_step(i: Instruction, code):
    """ld, ldu: every width and vector form ("Data Movement: ld")."""
    space, memory = i.space, items_of(i.operands[1])[0]
    if space == "param" and isinstance(memory.base, Sym):
        return param_load(i, code)
    n, elem = i.vector_length, i.dtype.itemsize
    total = elem * n
    puts = [putter(i, item) for item in items_of(i.operands[0])]
    address_of, guard = address_getter(i, memory), guard_getter(i)
    signed = i.dtype if i.dtype.kind == "i" else None
    cache: dict = {}
    single = puts[0] if n == 1 else None

    def step(S, R):
        p = None
        mask = S.mask
        if guard is not None:
            p = guard(S, R)
            mask, some = active_mask(S, p)
            if not some:
                if S.counting:
                    S.tally.idle(S, i, space)
                return
            if p.size == 1:
                p = None
        address = address_of(S, R)
        if S.counting:
            S.tally.access(S, i, space, "load", address, total, mask)
        pieces = pieces_of(S, i, space, address, elem, total, mask, cache, False)
        if S.sanitizer is not None:
            S.sanitizer.access(S, i, "load", pieces, elem, n)
        values = gather(pieces, n)
        if signed is not None:
            values = [v.view(signed) for v in values]
        if single is not None:
            single(S, R, values[0], p)
        else:
            for put, value in zip(puts, values, strict=True):
                put(S, R, value, p)

    return step


def store_step(i: Instruction, code):
    """st: every width and vector form ("Data Movement: st")."""
    space, memory = i.space, items_of(i.operands[0])[0]
    if space == "param" and isinstance(memory.base, Sym):
        return param_store(i)
    n, elem = i.vector_length, i.dtype.itemsize
    total = elem * n
    gets = [getter(i, item, UNSIGNED[elem]) for item in items_of(i.operands[1])]
    address_of, guard = address_getter(i, memory), guard_getter(i)
    cache: dict = {}

    def step(S, R):
        mask = S.mask
        if guard is not None:
            mask, some = active_mask(S, guard(S, R))
            if not some:
                return
        address = address_of(S, R)
        if S.counting:
            S.tally.access(S, i, space, "store", address, total, mask)
        pieces = pieces_of(S, i, space, address, elem, total, mask, cache, True)
        check_writable(S, i, pieces)
        S.writes += 1
        values = [g(S, R) for g in gets]
        if S.sanitizer is not None:
            S.sanitizer.access(S, i, "store", pieces, elem, n, values)
        scatter(pieces, values)

    return step


# ------------------------------------------------------------------ atomics


def atomic_step(i: Instruction, code):
    """atom and red ("Parallel Synchronization and Communication Instructions: atom, red")."""
    space = i.space
    returns = i.opcode == "atom"
    kind = i.modifiers[-1]
    op = next(m for m in i.modifiers if m in atomics.OPERATIONS)
    n = i.vector_length
    if kind == "b128" or n > 1 and space != "global":
        raise i.unsupported("has no 128-bit atomics, and those of vectors in global memory alone")
    size = i.dtype.itemsize
    unsigned = UNSIGNED[size]
    operands = list(i.operands)
    puts = [putter(i, o) for o in items_of(operands.pop(0))] if returns else []
    wanted = returns and i.operands[0] is not None
    memory = operands.pop(0)
    gets = [
        getter(i, item, unsigned)
        for operand in operands[: 2 if op == "cas" else 1]
        for item in items_of(operand)
    ]
    address_of, guard = address_getter(i, memory), guard_getter(i)
    cache: dict = {}

    def step(S, R):
        p = guard(S, R) if guard is not None else None
        mask, some = active_mask(S, p)
        if not some:
            return
        address = address_of(S, R)
        if S.counting:
            S.tally.access(S, i, space, "atomic", address, size * n, mask)
        pieces = pieces_of(S, i, space, address, size, size * n, mask, cache, True)
        check_writable(S, i, pieces)
        if S.sanitizer is not None:
            S.sanitizer.access(S, i, "atomic", pieces, size, n)
        inputs = [S.layout.flat(g(S, R)) for g in gets]
        outs = [np.zeros(S.layout.shape, unsigned) for _ in range(n)] if wanted else []
        for region, view, index, sub in pieces:
            if region is not None:
                region.written = True
            where = np.flatnonzero(S.layout.full(everyone(sub)))
            first = S.layout.flat(index)[where]
            values = [v[where] for v in inputs]
            compare = values[0] if op == "cas" else None
            for k, operand in enumerate(values[-n:]):  # each element of a vector is atomic alone
                at = first + k
                old = atomics.atomic(
                    op, kind, view, at, operand, compare, wanted or op == "cas",
                    flush=region is not None,
                )  # fmt: skip
                # one that leaves memory as it was, such as a lock tried in vain, is no news
                if old is None or bool((view[at] != old).any()):
                    S.writes += 1
                if wanted:
                    outs[k].reshape(-1)[where] = old
        for put, out in zip(puts, outs, strict=False):
            put(S, R, out, p)

    return step


# ------------------------------------------------------------------ cp.async


def copy_step(i: Instruction, code):
    """cp.async, its groups and its mbarriers; bulk copies."""
    if "bulk" in i.modifiers:
        return bulk_step(i)
    if "async" not in i.modifiers:
        raise i.unsupported(f"does not know the instruction {i.name}")
    if "commit_group" in i.modifiers:
        return lambda S, R: S.sanitizer.commit(S) if S.sanitizer is not None else None
    if {"wait_group", "wait_all"} & set(i.modifiers):
        return _wait_step(i)
    if "mbarrier" in i.modifiers:
        return copies_arrive_step(i)
    return _copy_step(i)


def _copy_step(i: Instruction):
    """cp.async ("Data Movement: Non-bulk copy"). A copy is visible at once."""
    destination, source, size = i.operands[:3]
    if not isinstance(size, Imm) or size.value not in (4, 8, 16):
        raise i.unsupported("copies 4, 8 or 16 bytes at a time")
    total = size.value
    elem = min(total, 8)
    n = total // elem
    to, come = address_getter(i, destination), address_getter(i, source)
    bytes_read = _bytes_read(i, i.operands[3] if len(i.operands) > 3 else None, total)
    guard = guard_getter(i)
    cache: dict = {}

    def step(S, R):
        mask, some = active_mask(S, guard(S, R) if guard is not None else None)
        if not some:
            return
        read = mask
        used = bytes_read(S, R) if bytes_read is not None else None
        if used is not None:
            _check_bytes(S, i, used, total, mask)
        if used is not None and (used < total).any():
            wanted = used > 0
            read = wanted if mask is None else mask & wanted
        address, target = come(S, R), to(S, R)
        if S.counting:
            S.tally.copy_async(S, i, address, target, total, read, mask)
        if read is None or read.any():
            pieces = pieces_of(S, i, "global", address, elem, total, read, cache, False)
            if S.sanitizer is not None:
                S.sanitizer.access(S, i, "load", pieces, elem, n)
            values = gather(pieces, n)
        else:
            values = [np.zeros(1, UNSIGNED[elem])] * n
        if used is not None:
            values = [
                _first_bytes(v, np.minimum(np.maximum(used.astype(np.int64) - k * elem, 0), elem))
                for k, v in enumerate(values)
            ]
        S.writes += 1
        pieces = buffer_pieces(S, i, target, elem, total, mask, "shared", True)
        if S.sanitizer is not None:
            S.sanitizer.copied(S, i, pieces, elem, n)
        scatter(pieces, values)

    return step


def _bytes_read(i: Instruction, extra, total: int):
    """get(S, R) -> bytes that a cp.async reads (uint32), or None where it reads all of them."""
    if isinstance(extra, Reg) and extra.size == 0:
        ignore = getter(i, extra, BOOL)
        return lambda S, R: np.where(ignore(S, R), np.uint32(0), np.uint32(total))
    if isinstance(extra, Imm) or (isinstance(extra, Reg) and extra.size != 8):
        return getter(i, extra, np.dtype(np.uint32))
    return None  # nothing, or a cache policy


def _check_bytes(S, i: Instruction, used: np.ndarray, total: int, mask) -> None:
    """Refuse to read more bytes than are copied."""
    if ((used > total) & everyone(mask)).any():
        raise SimulatorError(
            "argument",
            f"{S.entry}, line {i.line}: cp.async copies {total} bytes and is to read "
            f"{int(used.max()):,} of them, which has no meaning: pass {total}, or less to fill up "
            "with zeros.",
            i.line,
        )


def _wait_step(i: Instruction):
    """cp.async.wait_group N and cp.async.wait_all: of interest to the sanitizer alone."""
    left = int(i.operands[0].value) if i.operands else None
    if left is not None and left < 0:
        raise SimulatorError(
            "unsupported",
            f"line {i.line}: cp.async.wait_group takes the number of groups that may still be "
            f"under way, 0 or more, not {left}.",
            i.line,
        )

    def step(S, R):
        if S.sanitizer is None:
            return
        if left is None:
            S.sanitizer.commit(S)
        S.sanitizer.wait(S, left or 0)

    return step


def _first_bytes(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The value with only its `count` lowest bytes kept (cp.async fills the rest with zeros)."""
    bits = value.dtype.itemsize * 8
    keep = (np.uint64(1) << (8 * np.minimum(count, 7)).astype(np.uint64)) - np.uint64(1)
    keep = np.where(count * 8 >= bits, np.uint64(0xFFFFFFFFFFFFFFFF), keep)
    return (value.astype(np.uint64) & keep).astype(value.dtype)
