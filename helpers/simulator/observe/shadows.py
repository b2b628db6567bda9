"""Who wrote and read every word last, and whether what a thread does now comes after it.

Every word (granule) of shared memory, and of global arrays that the kernel may write, has a shadow:
who wrote it last, who has read it since, at which instruction, and in which epoch. Two accesses
from different threads, at least one of them a write and not both atomic, that nothing orders (see
`sanitizer`) are a race.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..limits import LANES
from ..ptx.syntax import Instruction
from .fences import RELEASES
from .phases import ATOMIC, COPY, LANDED, PLAIN

SHADOW_BYTES = 70  # that a Shadow has for each granule
MOST_DEVICE_BYTES = 1 << 24  # of a __device__ array that is followed
_STRONG = {"relaxed", "acquire", "release"}


def chosen(layout, mask) -> slice | np.ndarray:
    """What picks the threads of a mask out of a flat array."""
    return slice(None) if mask is None else np.flatnonzero(layout.full(mask))


class Shadow:
    """What is known about every granule of one memory. Thread numbers run over the whole grid."""

    def __init__(self, granules: int):
        self.writer = np.full(granules, -1, np.int64)
        self.write_epoch = np.zeros(granules, np.int32)
        self.write_clock = np.zeros(granules, np.int32)
        self.write_at = np.zeros(granules, np.int32)
        self.write_kind = np.zeros(granules, np.int8)
        self.write_time = np.zeros(granules, np.int64)
        self.reader = np.full(granules, -1, np.int64)
        self.reader2 = np.full(granules, -1, np.int64)
        self.read_epoch = np.full(granules, -1, np.int32)
        self.read_clock = np.zeros(granules, np.int32)
        self.read_at = np.zeros(granules, np.int32)
        self.read_kind = np.zeros(granules, np.int8)
        self.read_time = np.zeros(granules, np.int64)
        # Most kernels only ever read and write plainly: then nobody need look at the kinds.
        self.all_writes_plain = self.all_reads_plain = True


@dataclass(slots=True)
class Accessed:
    """The granules of one instruction's accesses, a row a lane, and who makes them."""

    shadow: Shadow
    granule: np.ndarray
    first: np.ndarray  # thread number
    last: np.ndarray  # another thread that makes the same access, or the same one
    epoch: np.ndarray
    stamp: np.ndarray
    clock: np.ndarray
    each: int  # granules that one lane accesses


class Shadows:
    """The part of `Sanitizer` that checks each access, and remembers it."""

    def access(self, S, i: Instruction, kind: str, pieces, elem: int, count: int, values=None):
        """Check one load, store or atomic, and remember it."""
        strong = bool(_STRONG & set(i.modifiers))
        for region, view, index, mask in pieces:
            if region is None and view is not S.shared.view(elem)[0]:
                continue  # local memory is a thread's own
            if region is not None and not self._followed(region):
                continue
            # Threads may poll a volatile word of global memory; in shared memory the word does
            # not stand in for a barrier.
            flag = strong or (region is not None and "volatile" in i.modifiers)
            if self.orders is not None and not RELEASES.isdisjoint(i.modifiers):
                self.orders.fence(S.layout.flat(self.number)[chosen(S.layout, mask)])
            alike = kind == "load" and not (flag and self.orders is not None)  # each thread learns
            accessed = self._accessed(S, region, view, index, mask, elem, count, alike)
            if self.orders is not None and (kind == "atomic" or flag):
                words = [(id(accessed.shadow), g) for g in accessed.granule.tolist()]
                self.orders.touch(words, accessed.first, kind != "load", kind != "store")
            if kind == "load":
                self._read(S, i, accessed, region, ATOMIC if flag else PLAIN)
            elif kind == "atomic" or flag:
                self._write(S, i, accessed, region, ATOMIC, None)
            else:
                flat = None
                if values is not None and len(values) == 1 and elem >= self.granule:
                    flat = (values[0], index, mask)
                self._write(S, i, accessed, region, PLAIN, flat)

    def _followed(self, region) -> bool:
        """Whether threads can get in each other's way in a region: it is written, and not huge."""
        if region.kind == "device":
            return region.nbytes <= MOST_DEVICE_BYTES
        if region.kind == "workspace":
            return True  # through it the blocks of a grid meet
        return region.kind == "global" and region.name not in self.constant

    def _shadow(self, region, elem: int) -> tuple[Shadow, int, int]:
        """(shadow, bytes a granule, bytes in front of the region's first element)."""
        if region is None:
            return self.shared, self.granule, 0
        size = min(region.dtype.itemsize, 4) if region.dtype.itemsize in (1, 2, 4, 8, 16) else 1
        shadow = self._global.get(id(region))
        if shadow is None:
            shadow = self._global[id(region)] = Shadow(-(-region.nbytes // size) + 1)
        return shadow, size, -region.start % elem

    def _accessed(self, S, region, view, index, mask, elem, count, compress) -> Accessed:
        shadow, size, skip = self._shadow(region, elem)
        layout = S.layout
        clock = self._own_clock(S)
        alike = self.epoch.size == self.stamp.size == 1
        if compress and mask is None and alike and self.known is None and self.views is None:
            index = layout.lift(index)
            first, last = self._ends(layout, index.shape)
            flat, epoch, stamp = index.reshape(-1), self.epoch, self.stamp
            first, last = first.reshape(-1), last.reshape(-1)
        else:
            keep = chosen(layout, mask)
            flat, first, epoch, stamp, clock = (
                layout.flat(each)[keep]
                for each in (index, self.number, self.epoch, self.stamp, clock)
            )
            last = first
        start = (flat.astype(np.int64) * elem + skip) // size
        granules = max(1, elem * count // size)
        if granules > 1:
            start = (start[:, None] + np.arange(granules)).reshape(-1)
            first, last = np.repeat(first, granules), np.repeat(last, granules)
            epoch, stamp, clock = (
                np.repeat(each, granules) if each.size > 1 else each
                for each in (epoch, stamp, clock)
            )
        return Accessed(shadow, start.astype(np.intp), first, last, epoch, stamp, clock, granules)

    def _ends(self, layout, shape) -> tuple[np.ndarray, np.ndarray]:
        """First and last thread that each element of a compressed array stands for."""
        full = np.broadcast_to(self.number, layout.shape)
        low = tuple(slice(None) if n > 1 else slice(0, 1) for n in shape)
        high = tuple(slice(None) if n > 1 else slice(-1, None) for n in shape)
        return full[low], full[high]

    def _unordered(self, S, a: Accessed, thread, epoch, clock, time) -> np.ndarray:
        """Where an earlier access by `thread` at a time is not ordered before what a does now."""
        same_block = thread // self.threads == a.first // self.threads
        unordered = ~same_block | (epoch >= a.epoch)
        if self.views is not None:
            block = self._block_row(S, a.first // self.threads)
            view = self.views[block, a.first % self.threads, thread % self.threads // LANES]
            unordered |= epoch >= view
        if self.known is not None and unordered.any():
            mine, other = a.first % self.threads, thread % self.threads
            warp = (mine // LANES == other // LANES) & same_block & unordered & (thread >= 0)
            if warp.any():
                at = np.flatnonzero(warp)
                blocks = self._block_row(S, a.first[at] // self.threads)
                knows = self.known[blocks, mine[at] // LANES, mine[at] % LANES, other[at] % LANES]
                unordered[at] = knows < clock[at]
        if self.orders is not None and unordered.any():
            at = np.flatnonzero(unordered & (thread >= 0))
            unordered[at] = ~self.orders.ordered(a.first[at], thread[at], time[at])
        return unordered

    def _check_race(self, S, i, a: Accessed, bad, region, thread, does: str, did: str) -> bool:
        """Whether one of the `bad` accesses is not ordered after what `thread` did; a finding."""
        if not bad.any():
            return False
        s, g, read = a.shadow, a.granule, did == "read"
        epoch, clock = (s.read_epoch, s.read_clock) if read else (s.write_epoch, s.write_clock)
        time = s.read_time if read else s.write_time
        unordered = self._unordered(S, a, thread, epoch[g], clock[g], time[g])
        bad = bad & unordered
        if bad.any():
            at = s.read_at if read else s.write_at
            self._race(S, i, a, bad, region, at, thread, does, did)
        return bool(bad.any())

    @staticmethod
    def may_race(kinds: np.ndarray | int) -> np.ndarray:
        """Which words, by how they were written, are not there by a copy that has landed."""
        return np.asarray(kinds) != LANDED

    def _check_copies(self, S, i, a: Accessed, writer, does: str) -> None:
        s, g = a.shadow, a.granule
        if s.all_writes_plain:
            return
        kinds = s.write_kind[g]
        if kinds.max(initial=PLAIN) < COPY:
            return
        copies = kinds == COPY
        landed = np.flatnonzero(kinds == LANDED)
        if landed.size:
            copies[landed] = self.not_told(S, a, landed)
        if copies.any():
            self._not_waited(S, i, a, copies, writer, does)

    def _block_row(self, S, number: np.ndarray) -> np.ndarray:
        order = np.sort(self.first_block.reshape(-1))
        return np.searchsorted(order, number)

    def _read(self, S, i: Instruction, a: Accessed, region, kind: int) -> None:
        s, g = a.shadow, a.granule
        writer = s.writer[g]
        if region is None and writer.min(initial=0) < 0:
            unwritten = (writer < 0) & self._used(i, a)
            if unwritten.any():
                self._uninitialised(S, i, a, int(np.argmax(unwritten)))
        epoch = s.write_epoch[g]
        suspect = (epoch >= a.epoch) | (region is not None or self.views is not None)
        if suspect.any():
            bad = (writer >= 0) & ((writer != a.first) | (a.first != a.last))
            if not s.all_writes_plain:
                bad &= s.write_kind[g] != LANDED
                if kind == ATOMIC:
                    bad &= s.write_kind[g] != ATOMIC
            self._check_race(S, i, a, bad, region, writer, "reads", "wrote")
        self._check_copies(S, i, a, writer, "reads")
        old, old_epoch = s.reader[g], s.read_epoch[g]
        keep = (old_epoch == a.stamp) & (old != a.first) & (old >= 0)
        s.reader2[g] = np.where(keep, old, a.last)
        s.reader[g] = a.first
        s.read_epoch[g] = a.stamp
        s.read_at[g] = i.serial
        if self.known is not None:
            s.read_clock[g] = a.clock
        s.all_reads_plain &= kind == PLAIN
        if not s.all_reads_plain:
            s.read_kind[g] = kind
        if self.orders is not None:
            s.read_time[g] = self.orders.tick()

    def _used(self, i: Instruction, a: Accessed) -> np.ndarray:
        """Which granules of a load are more than the padding of a struct."""
        if i.used_bytes is None:
            return np.ones(1, np.bool_)
        part = (1 << self.granule) - 1
        used = [i.used_bytes >> n * self.granule & part != 0 for n in range(a.each)]
        return np.tile(np.array(used), len(a.granule) // a.each)

    def _write(self, S, i: Instruction, a: Accessed, region, kind: int, values) -> None:
        s, g = a.shadow, a.granule
        writer = s.writer[g]
        bad = (writer >= 0) & (writer != a.first)
        if not s.all_writes_plain:
            kinds = s.write_kind[g]
            bad &= (kinds != LANDED) & ((kinds != ATOMIC) | (kind != ATOMIC))
        self._check_race(S, i, a, bad, region, writer, "writes", "wrote")
        self._check_copies(S, i, a, writer, "writes")
        ordered = np.zeros(1, np.bool_)
        if kind == ATOMIC and not s.all_reads_plain:
            ordered = s.read_kind[g] == ATOMIC  # threads may poll it
        if region is None:
            ordered = ordered | self.read_by_bulk(S, i, a)
            self.check_overwritten(S, i, a)
            self.wrote_plainly(g, i)
        for reader in (s.reader[g], s.reader2[g]):
            bad = (reader >= 0) & (reader != a.first) & ~ordered
            if self._check_race(S, i, a, bad, region, reader, "writes", "read"):
                break
        s.writer[g] = a.first
        if kind != ATOMIC:
            self._same_instruction(S, i, a, region, values)
        s.write_epoch[g] = a.stamp
        s.write_at[g] = i.serial
        if self.known is not None:
            s.write_clock[g] = a.clock
        s.all_writes_plain &= kind == PLAIN
        if not s.all_writes_plain:
            s.write_kind[g] = kind
        if self.orders is not None:
            s.write_time[g] = self.orders.tick()
        s.reader[g] = -1
        s.reader2[g] = -1

    def _same_instruction(self, S, i, a: Accessed, region, values) -> None:
        """Two threads write one word in the same instruction, and not the same value."""
        lost = a.shadow.writer[a.granule] != a.first
        if not lost.any():
            return
        if values is not None:
            value, index, mask = values
            full = S.layout.flat(value)[chosen(S.layout, mask)]
            if len(full) == len(a.granule):
                order = np.argsort(a.granule, kind="stable")
                g, v = a.granule[order], full[order]
                clash = (g[1:] == g[:-1]) & (v[1:] != v[:-1])
                if not clash.any():
                    return
                at = int(np.argmax(clash))
                lost = np.zeros(len(g), np.bool_)
                lost[order[at]] = True
                winner = a.first[order[at + 1]]
                self._race(S, i, a, lost, region, None, np.full(len(g), winner), "writes", "writes")
                return
        winner = a.shadow.writer[a.granule]
        self._race(S, i, a, lost, region, None, winner, "writes", "writes")
