"""From addresses to array elements: which array, which index, and who is out of bounds.

An access gathers with the addresses in their compressed shape (see `layout`): sixteen threads that
read the same word cost one look-up. Inactive threads may hold any address; only when an address is
out of bounds does it matter who was active.
"""

import numpy as np

from ..ptx.syntax import Instruction
from .faults import everyone, raise_fault
from .memory import FUNCTION_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, SHIFT
from .operands import BOOL, getter

_PLACES = (  # of generic addresses: from, below
    ("global", -(1 << 63), SHARED_WINDOW),
    ("shared", SHARED_WINDOW, LOCAL_WINDOW),
    ("local", LOCAL_WINDOW, FUNCTION_WINDOW),
    ("global", FUNCTION_WINDOW, 1 << 63),  # where no array can be
)
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def guard_getter(i: Instruction):
    """get(S, R) -> bool array, or None for an instruction without a guard."""
    return None if i.predicate is None else getter(i, i.predicate, BOOL)


def active_mask(S, p):
    """(mask of the threads that execute, whether any does) under a guard p."""
    if p is None:
        return S.mask, True
    if p.size == 1:
        return S.mask, bool(p.item())
    mask = p if S.mask is None else S.mask & p
    return mask, bool(mask.any())


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
    """The elements behind global addresses: [(region, view, index, mask)], one per array."""
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
    left = everyone(mask)
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


def _wrapped(address: np.ndarray) -> np.ndarray:
    """Shared addresses as a GPU takes them: the low 32 bits, here with a sign.

    A pointer into shared memory that was moved by a negative unsigned index is such an address
    (PTX ISA, "Addresses as Operands": an address that is wider than its space is truncated).
    """
    return ((address + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def buffer_pieces(S, i, address, elem, total, mask, space, write):
    """The elements behind shared or local addresses: one piece."""
    buffer = S.shared if space == "shared" else S.local
    view, offset = buffer.view(elem)
    rel = address - buffer.base
    limit = buffer.nbytes - total
    if not _inside(rel, limit, total):
        if space == "shared":
            rel = _wrapped(address) - buffer.base
            address = np.where((rel >= 0) & (rel <= limit), rel + buffer.base, address)
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
    out = []
    for name, lowest, beyond in _PLACES:
        if high < lowest or low >= beyond:
            continue
        moved = address - lowest if name != "global" else address
        if lowest <= low and high < beyond:
            return [(name, moved, mask)]
        here = (address >= lowest) & (address < beyond)
        if mask is not None:
            here = here & mask
        if here.any():
            out.append((name, moved, here))
    return out


def gather(pieces, n: int) -> list[np.ndarray]:
    """n consecutive elements at every index; where pieces are several, each serves its lanes."""
    if len(pieces) == 1:
        _, view, index, _ = pieces[0]
        return [view.take(index if k == 0 else index + k) for k in range(n)]
    out = gather(pieces[:1], n)
    for _, view, index, mask in pieces[1:]:
        out = [np.where(mask, view.take(index + k), o) for k, o in enumerate(out)]
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


def check_writable(S, i: Instruction, pieces) -> None:
    """Refuse to write into a read-only argument."""
    for region, _, _, _ in pieces:
        if region is not None and not region.writable:
            raise_fault(S, i, None, 0, None, True, "read-only", region)
