"""Threads that wait at barriers, and who may go on."""

from dataclasses import dataclass

import numpy as np

from ..isa.tensor.warpgroup_products import THREADS
from ..limits import LANES
from ..ptx.syntax import Instruction
from .asynchronous.mbarrier_steps import what_is_missing
from .code import Group
from .faults import everyone, fault, where

_PATIENCE = 32  # times that a try_wait may run out of time with nothing else going on


@dataclass(slots=True)
class Parked:
    """A group at a barrier: `group` stands behind it. `barrier` is its number, or "warp".

    Or "phase", for threads in front of a try_wait: `still` tells for whom it is not complete. Or
    "warpgroup", for those in front of a product of theirs.
    """

    group: Group
    barrier: int | str
    count: int | None
    instruction: Instruction
    block: int
    members: np.ndarray | None = None
    predicate: np.ndarray | None = None
    reduction: str | None = None
    put: object = None
    still: object = None


def _full(S, mask) -> np.ndarray:
    """(blocks, threads) of a mask."""
    return S.layout.rows(everyone(mask))


def _shape(S, mask) -> np.ndarray:
    return mask.reshape(S.layout.shape)


def release(S, parked: list[Parked], spinning: list) -> list:
    """Groups that may go on now that nothing else can run; empties `parked` of them.

    A block's barrier opens when every thread of the block that is still alive has come (or as many
    as it asks for); a warp's when every named lane that is alive has. Raises SimulatorError
    ("barrier") if nothing can go on and no group is `spinning`, which might yet come.
    """
    alive = np.zeros((S.layout.nblocks, S.layout.nthreads), np.bool_)
    for group in [p.group for p in parked] + spinning:
        alive |= _full(S, group.mask)
    freed: list = []
    for number in dict.fromkeys(p.barrier for p in parked):
        here = [p for p in parked if p.barrier == number]
        if number == "phase":
            open_ = _open_phases(S, here)
        elif number == "warpgroup":
            open_ = _open_warpgroups(S, here)
        elif number == "warp":
            open_ = _open_warps(S, here, alive)
        else:
            open_ = _open_blocks(S, here, alive)
        if not open_.any():
            continue
        for p in here:
            if p.reduction is not None:
                _reduce(S, p, here, open_)
        if S.sanitizer is not None:
            _tell_sanitizer(S, here, number, open_)
        for p in here:
            parked.remove(p)
            mask = _full(S, p.group.mask)
            go, stay = mask & open_, mask & ~open_
            if go.any():
                # keep the compressed mask where the whole group goes
                kept = p.group.mask if not stay.any() else _shape(S, go)
                freed.append(Group(p.group.frame, p.group.block, kept, met=p.group.met))
            if stay.any():
                g, rest = p.group, _shape(S, stay)
                p.group = Group(g.frame, g.block, rest, g.visited, g.met)
                parked.append(p)
        if isinstance(number, int):
            _forget(S, number, open_)
    if not freed and not spinning:
        return _time_out(S, parked, alive)
    return freed


def _forget(S, number: int, open_) -> None:
    """Arrivals at a barrier count once: those of the blocks in which it has opened are over."""
    kept = []
    for a in S.arrived:
        left = _full(S, a.group.mask) & ~open_
        if a.barrier == number and left.any():
            a.group = Group(a.group.frame, a.group.block, _shape(S, left))
        if a.barrier != number or left.any():
            kept.append(a)
    S.arrived = kept


def _time_out(S, parked: list[Parked], alive) -> list:
    """Nothing can go on: the time limits of try_waits run out. At last that is a deadlock."""
    for p in parked:
        if p.barrier == "warpgroup" and _is_torn(S, p, alive):
            _deadlock(S, [p, *parked])
    late = [p for p in parked if p.barrier == "phase"]
    writes, times = S.timed_out
    times = times + 1 if writes == S.writes else 0
    S.timed_out = (S.writes, times)
    if not late or times >= _PATIENCE:
        _deadlock(S, sorted(late, key=lambda p: _lacks(S, p)[0]) or parked)
    for p in late:
        parked.remove(p)
    return [p.group for p in late]


def _lacks(S, p: Parked) -> tuple[int, str]:
    S.mask, S.frame = p.group.mask, p.group.frame
    return what_is_missing(S, p.instruction, p.group.frame.registers)


def _open_phases(S, here: list[Parked]) -> np.ndarray:
    """The threads for which the phase that they wait for is complete."""
    open_ = np.zeros((S.layout.nblocks, S.layout.nthreads), np.bool_)
    for p in here:
        S.mask, S.frame = p.group.mask, p.group.frame
        still = p.still(S, p.group.frame.registers)
        mask = _full(S, p.group.mask)
        open_ |= mask if still is None else mask & ~_full(S, still)
    return open_


def _open_warpgroups(S, here: list[Parked]) -> np.ndarray:
    """The threads of warpgroups that have all come to one product."""
    open_ = np.zeros((S.layout.nblocks, S.layout.nthreads), np.bool_)
    for serial in {p.instruction.serial for p in here}:
        masks = [_full(S, p.group.mask) for p in here if p.instruction.serial == serial]
        come = np.logical_or.reduce(masks).reshape(S.layout.nblocks, -1, THREADS)
        whole = come.all(axis=-1, keepdims=True) & come
        open_ |= whole.reshape(open_.shape)
    return open_


def _is_torn(S, p: Parked, alive) -> bool:
    """Whether threads have ended of a warpgroup of which others wait at a product."""
    shape = (S.layout.nblocks, -1, THREADS)
    waits = _full(S, p.group.mask).reshape(shape).any(axis=-1, keepdims=True)
    return bool((waits & ~alive.reshape(shape)).any())


def _tell_sanitizer(S, here: list[Parked], number, open_) -> None:
    if number in ("phase", "warpgroup"):
        return
    passing = [_full(S, p.group.mask) & open_ for p in here]
    passed = _shape(S, np.logical_or.reduce(passing))
    if number == "warp":
        for p, some in zip(here, passing, strict=True):
            bar = p.members is not None and p.instruction.opcode in ("bar", "barrier")
            if bar and some.any():
                S.sanitizer.warp_barrier(S, passed, p.members)
                return
        return
    arrived = [a.group.mask for a in S.arrived if a.barrier == number]
    S.sanitizer.barrier_mismatch(S, here)
    S.sanitizer.block_barrier(S, passed, arrived)


def _open_blocks(S, here: list[Parked], alive) -> np.ndarray:
    come = np.zeros(S.layout.nblocks, np.int64)
    together = here + [a for a in S.arrived if a.barrier == here[0].barrier]
    for p in together:
        come += _full(S, p.group.mask).sum(axis=1)
    counts = [p.count for p in together if p.count is not None]
    if len(set(counts)) > 1:
        _different_counts(S, together)
    wanted = max(counts) if counts else alive.sum(axis=1)  # a barrier counts whole warps
    return ((come >= wanted) & (come > 0))[:, None]


def _different_counts(S, together: list[Parked]) -> None:
    """Refuse a barrier at which threads of one block count differently."""
    counted = [p for p in together if p.count is not None]
    for p in counted:
        for q in counted:
            blocks = _full(S, p.group.mask).any(axis=1) & _full(S, q.group.mask).any(axis=1)
            if p.count < q.count and blocks.any():
                raise fault(
                    S, p.instruction.line, "barrier",
                    f"{where(S, _shape(S, _full(S, p.group.mask)))} comes to barrier {p.barrier} "
                    f"of {p.count} threads, and others come to it in line {q.instruction.line} as "
                    f"to one of {q.count}: let all name one number of threads.",
                )  # fmt: skip


def _lanes(S, full: np.ndarray) -> np.ndarray:
    padding = S.layout.warps * LANES - S.layout.nthreads
    return np.pad(full, ((0, 0), (0, padding))).reshape(S.layout.nblocks, S.layout.warps, LANES)


def _open_warps(S, here: list[Parked], alive) -> np.ndarray:
    come = np.zeros((S.layout.nblocks, S.layout.warps, LANES), np.bool_)
    named = np.zeros_like(come)
    lane = np.arange(LANES, dtype=np.uint32)
    for p in here:
        mask = _lanes(S, _full(S, p.group.mask))
        members = _lanes(S, S.layout.rows(p.members))
        bits = (members[..., :, None] >> lane) & 1 != 0  # [.., lane that names, named lane]
        named |= (bits & mask[..., :, None]).any(axis=-2)
        come |= mask
    waiting = _lanes(S, alive) & named & ~come
    open_ = ~waiting.any(axis=-1, keepdims=True) & come
    return open_.reshape(S.layout.nblocks, -1)[:, : S.layout.nthreads]


def _reduce(S, p: Parked, here: list[Parked], open_) -> None:
    """The result of bar.red for the threads of one group: over all threads of each block."""
    masks = [_full(S, other.group.mask) for other in here]
    come = sum(mask.sum(axis=1) for mask in masks)
    values = (_full(S, other.predicate) for other in here)
    trues = sum((mask & value).sum(axis=1) for mask, value in zip(masks, values, strict=True))
    if p.reduction == "popc":
        out = trues.astype(np.uint32)
    else:
        out = trues == come if p.reduction == "and" else trues > 0
    shape = S.layout.bshape + (1,) * (S.layout.ndim - S.layout.nb)
    value = out.reshape(shape)
    mask = _shape(S, _full(S, p.group.mask) & open_)
    S.mask, S.keep = mask, -1
    p.put(S, p.group.frame.registers, value)


def _deadlock(S, parked: list[Parked]) -> None:
    first = parked[0]
    who = where(S, _shape(S, _full(S, first.group.mask)))
    line = first.instruction.line
    found = S.sanitizer.findings if S.sanitizer is not None else []
    before = f" The sanitizer found before: {found[0]}" if found else ""
    others = sorted({p.instruction.line for p in parked[1:] if p.instruction.line != line})
    elsewhere = f", while others wait at line {others[0]}" if others else ""
    if first.barrier == "phase":
        lacks = _lacks(S, first)[1]
        raise fault(
            S, line, "barrier", f"{who} waits for ever at an mbarrier, whose phase lacks "
            f"{lacks}{elsewhere}: check the count of its initialisation, who arrives, the bytes "
            f"expected, and the parity that is waited for.{before}",
        )  # fmt: skip
    if first.barrier == "warpgroup":
        raise fault(
            S, line, "barrier", f"{who} waits at a product of its warpgroup (wgmma) that other "
            f"threads of the warpgroup never reach{elsewhere}: let all 128 pass the same products."
            f"{before}",
        )  # fmt: skip
    if first.count is not None:
        alike = [p for p in parked + S.arrived if p.barrier == first.barrier]
        block = _full(S, first.group.mask).any(axis=1).argmax()
        come = sum(int(_full(S, p.group.mask)[block].sum()) for p in alike)
        raise fault(
            S, line, "barrier", f"{who} waits for ever at barrier {first.barrier}: it opens for "
            f"{first.count} threads, and {come} have come{elsewhere}. Check its number, who "
            f"arrives, and for how many threads each says it is.{before}",
        )  # fmt: skip
    raise fault(
        S, line, "barrier", f"{who} waits at a barrier that some threads of its block never "
        f"reach{elsewhere}: every thread must pass the same barriers.",
    )  # fmt: skip
