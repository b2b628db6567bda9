"""Loads, stores, atomics and asynchronous copies: from addresses to array elements and back.

An access gathers with the addresses in their compressed shape (see `layout`): sixteen threads that read
the same word cost one look-up. Inactive threads may hold any address; only when an address is out of
bounds does it matter who was active.
"""

from __future__ import annotations

import numpy as np

from . import atomics
from .faults import raise_fault
from .instruction_types import TYPES
from .memory import LOCAL_WINDOW, SHARED_WINDOW, SHIFT, UNSIGNED
from .operands import BOOL, address_getter, getter, putter, unsupported
from .ptx import Imm, Instruction, Mem, Reg, Sym, Vec

WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
SPACES = ("global", "shared", "local", "param", "const")


def space_of(i: Instruction) -> str:
    """The state space an instruction names; "generic" if none."""
    for m in i.modifiers:
        head = m.split("__")[0]
        if head in SPACES:
            return head
    return "generic"


def vector_length(i: Instruction) -> int:
    """2 for .v2 and so on, 1 for a scalar."""
    for m in i.modifiers:
        if m in ("v2", "v4", "v8"):
            return int(m[1:])
    return 1


def element_dtype(i: Instruction) -> np.dtype:
    """The dtype of the elements that a load or store moves."""
    dtype = TYPES.get(i.modifiers[-1])
    if dtype is None:
        raise unsupported(i, f"cannot move elements of type {i.modifiers[-1]}")
    return dtype


def _guard(i: Instruction):
    return None if i.predicate is None else getter(i, i.predicate, BOOL)


def active_mask(S, p):
    """(mask of the threads that execute, whether any does) under a guard p."""
    if p is None:
        return S.mask, True
    if p.size == 1:
        return S.mask, bool(p.item())
    mask = p if S.mask is None else S.mask & p
    return mask, bool(mask.any())


# ------------------------------------------------------------------ finding elements


def _inside(rel: np.ndarray, limit: int, total: int) -> bool:
    """Whether every offset is within 0…limit and aligned to `total` bytes."""
    if rel.size == 1:
        value = int(rel.item())
        return 0 <= value <= limit and value % total == 0
    if limit < 0 or int(rel.view(np.uint64).max()) > limit:
        return False
    return total == 1 or not int(np.bitwise_or.reduce(rel, axis=None)) & (total - 1)


def _forgiven(rel, limit, total, mask):
    """Offsets with those of inactive threads replaced by 0, or None if an active one is bad."""
    bad = (rel.view(np.uint64) > np.uint64(max(limit, 0))) | (rel & (total - 1) != 0)
    if limit < 0:
        bad = np.ones_like(bad)
    if mask is None or (bad & mask).any():
        return None
    return np.where(bad, 0, rel)


def _global_piece(S, i, address, elem, total, mask, region):
    view, start = region.view(elem)
    rel = address - start
    limit = view.size * elem - total
    if not _inside(rel, limit, total):
        # alignment is a matter of the address, not of the offset in the array
        if start % total:
            return None
        rel = _forgiven(rel, limit, total, mask)
        if rel is None:
            return None
    return region, view, (rel >> SHIFT[elem]).astype(np.intp, copy=False), mask


def global_pieces(S, i, address, elem, total, mask, cache, write):
    """The elements behind global addresses: [(region, view, index, mask)], one per array touched."""
    region = cache.get(S.space)
    if region is not None:
        piece = _global_piece(S, i, address, elem, total, mask, region)
        if piece is not None:
            return [piece]
    first = _first_active(S, address, mask)
    region = S.space.find(first, first + total)
    if region is not None:
        piece = _global_piece(S, i, address, elem, total, mask, region)
        if piece is not None:
            cache.clear()
            cache[S.space] = region
            return [piece]
    return _split_by_region(S, i, address, elem, total, mask, write)


def _first_active(S, address, mask) -> int:
    if address.size == 1:
        return int(address.item())
    if mask is None:
        return int(address.flat[0])
    both, m = np.broadcast_arrays(address, mask)
    return int(both.reshape(-1)[int(np.argmax(m))])


def _split_by_region(S, i, address, elem, total, mask, write):
    """Lanes that point into different arrays are served one array at a time."""
    left = np.ones(1, BOOL) if mask is None else mask
    pieces = []
    while left.any():
        first = _first_active(S, address, left)
        region = S.space.find(first, first + total)
        if region is None or first % total:
            raise_fault(S, i, address, total, left, write, "global")
        inside = (address >= region.start) & (address + total <= region.start + region.nbytes)
        here = inside & left
        piece = _global_piece(S, i, address, elem, total, here, region)
        if piece is None:
            raise_fault(S, i, address, total, here, write, "global")
        pieces.append(piece)
        left = left & ~inside
    return pieces


def buffer_pieces(S, i, address, elem, total, mask, space, write):
    """The elements behind shared or local addresses: one piece."""
    buffer = S.shared if space == "shared" else S.local
    view, offset = buffer.view(elem)
    rel = address - buffer.base
    limit = buffer.nbytes - total
    if not _inside(rel, limit, total):
        rel = _forgiven(rel, limit, total, mask)
        if rel is None:
            raise_fault(S, i, address, total, mask, write, space)
    index = (rel >> SHIFT[elem]).astype(np.intp, copy=False) + offset
    return [(None, view, index, mask)]


def pieces_of(S, i, space, address, elem, total, mask, cache, write):
    """[(region or None, view, index, mask)] for an access in any state space."""
    if space == "shared" or space == "local":
        return buffer_pieces(S, i, address, elem, total, mask, space, write)
    if space != "generic":
        return global_pieces(S, i, address, elem, total, mask, cache, write)
    out = []
    for name, here, sub in generic_spaces(S, address, mask):
        out += pieces_of(S, i, name, here, elem, total, sub, cache, write)
    return out


def generic_spaces(S, address, mask):
    """[(space, address in that space, mask)] behind generic addresses."""
    low, high = int(address.min()), int(address.max())
    if high < SHARED_WINDOW:
        return [("global", address, mask)]
    if low >= LOCAL_WINDOW:
        return [("local", address - LOCAL_WINDOW, mask)]
    if low >= SHARED_WINDOW and high < LOCAL_WINDOW:
        return [("shared", address - SHARED_WINDOW, mask)]
    out = []
    for name, lowest, highest, window in (
        ("global", -(1 << 62), SHARED_WINDOW, 0),
        ("shared", SHARED_WINDOW, LOCAL_WINDOW, SHARED_WINDOW),
        ("local", LOCAL_WINDOW, 1 << 62, LOCAL_WINDOW),
    ):
        here = (address >= lowest) & (address < highest)
        if mask is not None:
            here = here & mask
        if here.any():
            out.append((name, address - window, here))
    return out


def gather(pieces, n: int) -> list[np.ndarray]:
    """n consecutive elements at every index; where pieces are several, each serves its lanes."""
    if len(pieces) == 1:
        _, view, index, _ = pieces[0]
        return [view.take(index if k == 0 else index + k) for k in range(n)]
    out = None
    for _, view, index, mask in pieces:
        values = [view.take(index + k) for k in range(n)]
        if out is None:
            out = values
        else:
            out = [np.where(mask, v, o) for v, o in zip(values, out, strict=True)]
    return out


def scatter(pieces, values: list[np.ndarray]) -> None:
    """Store consecutive elements at every index; of several threads at one word the last wins."""
    for region, view, index, mask in pieces:
        if region is not None:
            region.written = True
        for k, value in enumerate(values):
            where = index + k if k else index
            if mask is None:
                if where.shape != value.shape:
                    where, value = np.broadcast_arrays(where, value)
                view[where] = value
            else:
                where, value, m = np.broadcast_arrays(where, value, mask)
                view[where[m]] = value[m]


# ------------------------------------------------------------------ ld and st


def load_step(i: Instruction, code):
    """ld, ldu: every width and vector form ("Data Movement: ld")."""
    space = space_of(i)
    destination, memory = i.operands[0], i.operands[1]
    if isinstance(memory, Vec):
        memory = memory.items[0]
    if space == "param" and isinstance(memory.base, Sym):
        return _param_load(i, code)
    n = vector_length(i)
    dtype = element_dtype(i)
    elem, total = dtype.itemsize, dtype.itemsize * n
    items = destination.items if isinstance(destination, Vec) else (destination,)
    puts = [putter(i, item) for item in items]
    address_of = address_getter(i, memory)
    guard = _guard(i)
    signed = dtype if dtype.kind == "i" else None
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
        values = gather(pieces_of(S, i, space, address, elem, total, mask, cache, False), n)
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
    space = space_of(i)
    memory, source = i.operands[0], i.operands[1]
    if isinstance(memory, Vec):
        memory = memory.items[0]
    if space == "param" and isinstance(memory.base, Sym):
        return _param_store(i)
    n = vector_length(i)
    dtype = UNSIGNED[element_dtype(i).itemsize]
    elem, total = dtype.itemsize, dtype.itemsize * n
    items = source.items if isinstance(source, Vec) else (source,)
    gets = [getter(i, item, dtype) for item in items]
    address_of = address_getter(i, memory)
    guard = _guard(i)
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
        scatter(pieces, [g(S, R) for g in gets])

    return step


def check_writable(S, i: Instruction, pieces) -> None:
    """Refuse to write into a read-only argument."""
    for region, _, _, _ in pieces:
        if region is not None and not region.writable:
            raise_fault(S, i, None, 0, None, True, "read-only", region)


# ------------------------------------------------------------------ param


def _param_key(memory: Mem) -> tuple[str, int]:
    return memory.base.name, memory.base.offset + memory.offset


def _param_load(i: Instruction, code):
    """ld.param: the kernel's parameters, or arguments and results of a call."""
    name, offset = _param_key(i.operands[1])
    dtype = element_dtype(i)
    destination = i.operands[0]
    items = destination.items if isinstance(destination, Vec) else (destination,)
    puts = [putter(i, item) for item in items]
    size = dtype.itemsize
    if code.function.entry and any(p.name == name for p in code.function.params):

        def from_kernel(S, R):
            for n, put in enumerate(puts):
                put(S, R, S.parameter(name, offset + n * size, dtype))

        return from_kernel

    def step(S, R):
        for n, put in enumerate(puts):
            put(S, R, read_param(S.frame.params, name, offset + n * size, dtype))

    return step


def read_param(params: dict, name: str, offset: int, dtype: np.dtype) -> np.ndarray:
    """A value of a call's parameter buffer, put together from bytes where widths differ."""
    entries = params.get(name, {})
    value = entries.get(offset)
    if value is not None and value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    wide = UNSIGNED[dtype.itemsize]
    out = np.zeros(1, wide)
    for k in range(dtype.itemsize):
        for start, stored in entries.items():
            at = offset + k - start
            if 0 <= at < stored.dtype.itemsize:
                unsigned = stored.view(UNSIGNED[stored.dtype.itemsize])
                byte = (unsigned >> unsigned.dtype.type(8 * at)) & unsigned.dtype.type(0xFF)
                out = out | (byte.astype(wide) << wide.type(8 * k))
                break
    return out.view(dtype)


def _param_store(i: Instruction):
    name, offset = _param_key(i.operands[0])
    dtype = UNSIGNED[element_dtype(i).itemsize]
    source = i.operands[1]
    items = source.items if isinstance(source, Vec) else (source,)
    gets = [getter(i, item, dtype) for item in items]

    def step(S, R):
        entries = S.frame.params.setdefault(name, {})
        for n, get in enumerate(gets):
            value, key = get(S, R), offset + n * dtype.itemsize
            old = entries.get(key)
            if S.mask is not None and old is not None and old.dtype == value.dtype:
                value = np.where(S.mask, value, old)
            entries[key] = value

    return step


# ------------------------------------------------------------------ atomics


def atomic_step(i: Instruction, code):
    """atom and red ("Parallel Synchronization and Communication Instructions: atom, red")."""
    space = space_of(i)
    returns = i.opcode == "atom"
    kind = i.modifiers[-1]
    op = next(m for m in i.modifiers if m in atomics.OPERATIONS)
    n = vector_length(i)
    if n > 1 or kind == "b128":
        raise unsupported(i, "does not have vector or 128-bit atomics")
    dtype = element_dtype(i)
    unsigned = UNSIGNED[dtype.itemsize]
    operands = list(i.operands)
    put = putter(i, operands.pop(0)) if returns else None
    wanted = returns and i.operands[0] is not None
    memory = operands.pop(0)
    gets = [getter(i, o, unsigned) for o in operands[: 2 if op == "cas" else 1]]
    address_of = address_getter(i, memory)
    guard = _guard(i)
    cache: dict = {}
    size = dtype.itemsize

    def step(S, R):
        p = guard(S, R) if guard is not None else None
        mask, some = active_mask(S, p)
        if not some:
            return
        address = address_of(S, R)
        if S.counting:
            S.tally.access(S, i, space, "atomic", address, size, mask)
        pieces = pieces_of(S, i, space, address, size, size, mask, cache, True)
        check_writable(S, i, pieces)
        inputs = [np.broadcast_to(g(S, R), S.layout.shape) for g in gets]
        out = np.zeros(S.layout.shape, unsigned) if wanted else None
        for region, view, index, sub in pieces:
            if region is not None:
                region.written = True
            m = np.ones(1, BOOL) if sub is None else sub
            where = np.flatnonzero(np.broadcast_to(m, S.layout.shape))
            at = np.broadcast_to(index, S.layout.shape).reshape(-1)[where]
            values = [v.reshape(-1)[where] for v in inputs]
            operand, compare = values[-1], values[0] if op == "cas" else None
            old = atomics.atomic(
                op, kind, view, at, operand, compare, wanted or op == "cas",
                flush=region is not None,
            )  # fmt: skip
            if op != "cas" or bool((old == compare).any()):
                S.writes += 1
            if out is not None:
                out.reshape(-1)[where] = old
        if out is not None:
            put(S, R, out, p)

    return step


# ------------------------------------------------------------------ cp.async


def copy_step(i: Instruction, code):
    """cp.async and its groups ("Data Movement: Non-bulk copy"). A copy is visible at once."""
    if "bulk" in i.modifiers or "reduce" in i.modifiers or "async" not in i.modifiers:
        raise unsupported(i, "does not have bulk copies (TMA)")
    if {"commit_group", "wait_group", "wait_all"} & set(i.modifiers):
        return None
    if "mbarrier" in i.modifiers:
        raise unsupported(i, "does not have mbarriers")
    destination, source, size = i.operands[:3]
    if not isinstance(size, Imm) or size.value not in (4, 8, 16):
        raise unsupported(i, "copies 4, 8 or 16 bytes at a time")
    total = size.value
    elem = min(total, 8)
    n = total // elem
    to, come = address_getter(i, destination), address_getter(i, source)
    extra = i.operands[3] if len(i.operands) > 3 else None
    if isinstance(extra, Reg) and extra.size == 0:
        ignore, source_size = getter(i, extra, BOOL), None
    else:
        ignore = None
        small = isinstance(extra, (Imm, Reg)) and not (isinstance(extra, Reg) and extra.size == 8)
        source_size = getter(i, extra, np.dtype(np.uint32)) if small else None
    guard = _guard(i)
    cache: dict = {}

    def step(S, R):
        mask, some = active_mask(S, guard(S, R) if guard is not None else None)
        if not some:
            return
        read = mask
        used = source_size(S, R) if source_size is not None else None
        if ignore is not None:
            used = np.where(ignore(S, R), np.uint32(0), np.uint32(total))
        if used is not None and (used < total).any():
            wanted = used > 0
            read = wanted if mask is None else mask & wanted
        address, target = come(S, R), to(S, R)
        if S.counting:
            S.tally.copy_async(S, i, address, target, total, read, mask)
        if read is None or read.any():
            pieces = pieces_of(S, i, "global", address, elem, total, read, cache, False)
            values = gather(pieces, n)
        else:
            values = [np.zeros(1, UNSIGNED[elem])] * n
        if used is not None:
            values = [
                _first_bytes(v, np.minimum(np.maximum(used.astype(np.int64) - k * elem, 0), elem))
                for k, v in enumerate(values)
            ]
        S.writes += 1
        scatter(buffer_pieces(S, i, target, elem, total, mask, "shared", True), values)

    return step


def _first_bytes(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The value with only its `count` lowest bytes kept (cp.async fills the rest with zeros)."""
    bits = value.dtype.itemsize * 8
    keep = (np.uint64(1) << (8 * np.minimum(count, 7)).astype(np.uint64)) - np.uint64(1)
    keep = np.where(count * 8 >= bits, np.uint64(0xFFFFFFFFFFFFFFFF), keep)
    return (value.astype(np.uint64) & keep).astype(value.dtype)
