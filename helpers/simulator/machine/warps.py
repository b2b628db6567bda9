"""Instructions in which the lanes of a warp look at each other.

They work on arrays of shape (blocks…, warps, 32), see `Layout.lanes`. PTX ISA:
"Data Movement: shfl.sync", "Parallel Synchronization: vote, match, activemask, redux, elect".
Those that move and multiply matrices are in `matrix`.
"""

import numpy as np

from ..limits import LANES
from ..ptx.syntax import Imm, Instruction
from .elements import active_mask, guard_getter
from .faults import everyone
from .operands import BOOL, getter, putter

U32, S32 = np.dtype(np.uint32), np.dtype(np.int32)
LANE = np.arange(LANES, dtype=np.int64)


def _take(lanes: np.ndarray, index: np.ndarray) -> np.ndarray:
    """lanes[..., index] with an index per lane."""
    shape = np.broadcast_shapes(lanes.shape, index.shape)
    return np.take_along_axis(
        np.broadcast_to(lanes, shape), np.broadcast_to(index, shape).astype(np.intp), axis=-1
    )


def _active(S, p=None) -> np.ndarray:
    """Lanes that execute, shape (blocks or 1…, warps, 32)."""
    mask, _ = active_mask(S, p)
    return S.layout.lanes(everyone(mask), fill=False)


def _ballot(bits: np.ndarray) -> np.ndarray:
    """uint32 (…, warps) with bit n set where lane n is."""
    return (bits.astype(np.uint32) << LANE.astype(np.uint32)).sum(axis=-1, dtype=np.uint32)


def _group(active: np.ndarray, member: np.ndarray) -> np.ndarray:
    """The lanes that answer a lane: those that run and that it names, shape (…, warps, rows, 32).

    There is one row for all lanes of a warp where they name the same lanes, as they mostly do, and
    otherwise a row for each lane: half warps, or lanes of equal keys, may each be a group.
    """
    row = member[..., :1]
    if member.shape[-1] > 1:
        first = np.argmax(active, axis=-1)[..., None]
        row = _take(member, first)
        if (active & (member != row)).any():
            row = member
    named = (row[..., None] >> LANE.astype(np.uint32)) & 1 != 0
    return named & active[..., None, :]


def _each(result: np.ndarray) -> np.ndarray:
    """A result of each group, shape (…, warps, rows), as one of each lane."""
    return np.repeat(result, LANES, axis=-1) if result.shape[-1] == 1 else result


def _step(i: Instruction, compute, *dtypes: np.dtype, members: int | None = None):
    """A step that fetches its sources as lanes of `dtypes`, computes, and writes back.

    `members` is the place of the source that names the lanes, which the sanitizer looks at; an
    instruction without `.sync` has none and means all.
    """
    n = 2 if i.pair else 1
    sources = (*i.operands[n:], Imm(0xFFFFFFFF))
    gets = [getter(i, o, d) for o, d in zip(sources, dtypes, strict=False)]
    puts = [putter(i, o) for o in i.operands[:n]]
    guard = guard_getter(i)
    naming = sources[members] if members is not None else None
    whole = isinstance(naming, Imm) and int(naming.value) & 0xFFFFFFFF == 0xFFFFFFFF
    named = getter(i, naming, U32) if naming is not None and not whole else None

    def step(S, R):
        p = guard(S, R) if guard is not None else None
        if p is not None and p.size == 1:
            if not p.item():
                return
            p = None
        if named is not None and S.sanitizer is not None:
            S.sanitizer.named(S, i, active_mask(S, p)[0], named(S, R))
        lanes = S.layout.lanes
        out = compute(S, _active(S, p), *[lanes(g(S, R)) for g in gets])
        for put, value in zip(puts, out, strict=False):
            put(S, R, S.layout.threads(value), p)

    return step


def shuffle_step(i: Instruction, code):
    """shfl.sync.{up, down, bfly, idx}.b32 d|p, a, b, c, membermask"""
    mode = next(m for m in i.modifiers if m in ("up", "down", "bfly", "idx"))

    def compute(S, active, value, offset, clamp):
        offset = offset.astype(np.int64) & 31
        segment = (clamp.astype(np.int64) >> 8) & 31
        limit = clamp.astype(np.int64) & 31
        first = LANE & segment
        last = first | (limit & ~segment)
        if mode == "idx":
            source = first | (offset & ~segment)
        else:
            source = {"up": np.subtract, "down": np.add, "bfly": np.bitwise_xor}[mode](LANE, offset)
        valid = source >= last if mode == "up" else source <= last
        source = np.where(valid, source, LANE)
        if S.sanitizer is not None:
            S.sanitizer.shuffled(S, i, active, source & 31)
        # a lane that takes no part gives 0 (undefined by the manual; what an H200 does)
        return _take(np.where(active, value, U32.type(0)), source & 31), valid

    return _step(i, compute, U32, U32, U32, members=3)


def vote_step(i: Instruction, code):
    """vote.sync.{all, any, uni, ballot}"""
    mode = next(m for m in i.modifiers if m in ("all", "any", "uni", "ballot"))

    def compute(S, active, value, member):
        here, value = _group(active, member), value[..., None, :]
        if mode == "ballot":
            return (_each(_ballot(here & value)),)
        every, none = (~here | value).all(axis=-1), (~here | ~value).all(axis=-1)
        return (_each({"any": ~none, "all": every, "uni": every | none}[mode]),)

    return _step(i, compute, BOOL, U32, members=1)


def activemask_step(i: Instruction, code):
    """activemask.b32"""

    def compute(S, active):
        return (np.repeat(_ballot(active)[..., None], LANES, axis=-1),)

    return _step(i, compute)


def match_step(i: Instruction, code):
    """match.sync.{any, all}"""
    dtype = np.dtype(np.uint64 if i.modifiers[-1] == "b64" else np.uint32)

    def compute(S, active, value, member):
        here = _group(active, member)
        if "any" in i.modifiers:
            return (_ballot((value[..., :, None] == value[..., None, :]) & here),)
        # the value of a group's first lane, compared with that of every lane in it
        reference = _take(value, np.argmax(here, axis=-1))[..., None]
        equal = _each((~here | (value[..., None, :] == reference)).all(axis=-1))
        return np.where(equal, _each(_ballot(here)), np.uint32(0)), equal

    return _step(i, compute, dtype, U32, members=1)


def redux_step(i: Instruction, code):
    """redux.sync.{add, min, max, and, or, xor}"""
    op = next(m for m in i.modifiers if m in ("add", "min", "max", "and", "or", "xor"))
    kind = i.modifiers[-1]
    if kind == "f32":
        raise i.unsupported("does not have floating-point redux")
    dtype = S32 if kind == "s32" else U32
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
                 "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip
    info = np.iinfo(dtype)
    neutral = {"add": 0, "min": info.max, "max": info.min, "and": -1, "or": 0, "xor": 0}[op]
    neutral = np.array(neutral & 0xFFFFFFFF, np.uint32).view(dtype)

    def compute(S, active, value, member):
        values = np.where(_group(active, member), value[..., None, :], neutral)
        return (_each(functions[op].reduce(values, axis=-1, dtype=dtype)),)

    return _step(i, compute, dtype, U32, members=1)


def elect_step(i: Instruction, code):
    """elect.sync d|p, membermask: the lowest active member leads."""

    def compute(S, active, member):
        here = _group(active, member)
        leader = _each(np.argmax(here, axis=-1))
        return leader.astype(np.uint32), (LANE == leader) & _each(here.any(axis=-1))

    return _step(i, compute, U32)
