"""Finds races, reads of what nothing wrote, and copies that were not waited for.

Every word (granule) of shared memory, and of global arrays that the kernel may write, has a shadow:
who wrote it last, who has read it since, at which instruction, and in which epoch. A thread's
epoch grows at every barrier of its block, so an access of an earlier epoch of the same block comes
before everything that a thread does now. Within a warp, __syncwarp orders too: there, vector
clocks say what each lane knows of the others. Blocks are ordered by fences and atomics alone (see
`fences`). Two accesses that are not ordered by any of this, from different threads, at least one of
them a write and not both atomic: a race.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..limits import LANES
from ..machine.faults import everyone
from ..ptx.program import fences_device
from ..ptx.syntax import TYPE_SIZES, Instruction
from .fences import RELEASES, Orders
from .findings import Findings
from .phases import ATOMIC, COPY, LANDED, PLAIN, Phases

_OWN = (..., np.arange(LANES), np.arange(LANES))  # what lanes know of themselves
_STRONG = {"relaxed", "acquire", "release"}
SHADOW_BYTES = 70  # that a Shadow has for each granule
MOST_DEVICE_BYTES = 1 << 24  # of a __device__ array that is followed


def _named(layout, mask) -> slice | np.ndarray:
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
class _Accessed:
    """The granules of one instruction's accesses, a row a lane, and who makes them."""

    shadow: Shadow
    granule: np.ndarray
    first: np.ndarray  # thread number
    last: np.ndarray  # another thread that makes the same access, or the same one
    epoch: np.ndarray
    stamp: np.ndarray
    clock: np.ndarray
    each: int  # granules that one lane accesses


class Sanitizer(Phases, Findings):
    """Follows one launch. `findings` holds each fault once per pair of instructions."""

    def __init__(self, run):
        super().__init__(run)
        self._global: dict[int, Shadow] = {}
        sizes = []
        self.warp_syncs = fences = False
        for function in run.prepared.module.functions.values():
            for i in function.instructions:
                if i.opcode in ("ld", "st", "atom", "red") and i.modifiers:
                    if "global" not in i.modifiers and "param" not in i.modifiers:
                        sizes.append(TYPE_SIZES.get(i.modifiers[-1], 4))
                if i.opcode == "wmma" and i.modifiers[-1] in ("s8", "u8"):
                    sizes.append(1)  # those that do not lie side by side are fetched one by one
                self.has_mbarriers |= i.opcode == "mbarrier"
                self.by_phases |= i.opcode == "cp" and any("mbarrier" in m for m in i.modifiers)
                fences |= fences_device(i)
                fences |= i.opcode != "mbarrier" and not RELEASES.isdisjoint(i.modifiers)
                self.warp_syncs |= i.opcode in ("bar", "barrier") and "warp" in i.modifiers
        self.has_fences, self.orders = fences, None
        self.granule = min([4, *sizes])
        self.constant = {a.name for a in run.arguments if a.constant}

    def shadow_bytes(self, shared: int) -> int:
        """Bytes that the shadow of a block's shared memory takes."""
        return SHADOW_BYTES * shared // self.granule

    # ------------------------------------------------------------------ batches

    def begin(self, S) -> None:
        """A new batch of blocks: fresh shared memory, no thread has passed a barrier."""
        layout = S.layout
        self.shared = Shadow(len(S.shared.bytes) // self.granule)
        self.threads = layout.nthreads
        if self.has_fences and self.orders is None:
            self.orders = Orders(self.threads)
        z, y, x = np.unravel_index(np.arange(layout.nblocks), layout.extent)
        gx, gy, _ = layout.grid
        number = ((z + layout.first[0]) * gy + y + layout.first[1]) * gx + x + layout.first[2]
        blocks = number.astype(np.int64).reshape(layout.block_index.shape)
        self.number = blocks * self.threads + layout.thread_index
        self.first_block = blocks
        self.epoch = self.stamp = np.zeros(1, np.int32)
        self.begin_phases(S)
        self.committed = np.zeros(1, np.int32)
        self.pending: list[tuple] = []
        self.known = None
        if self.warp_syncs:
            self.known = np.zeros((layout.nblocks, layout.warps, LANES, LANES), np.int32)
            self.known[_OWN] = 1

    def _own_clock(self, S) -> np.ndarray:
        if self.known is None:
            return np.zeros(1, np.int32)
        lanes = self.known[_OWN]
        return S.layout.threads(lanes.reshape(S.layout.bshape + lanes.shape[1:]))

    # ------------------------------------------------------------------ synchronisation

    def block_barrier(self, S, mask, arrived=()) -> None:
        """Threads passed a barrier of their block together with those that had only arrived."""
        if self.orders is not None:
            blocks, here = np.broadcast_arrays(self.first_block, S.layout.blocks_of(mask))
            self.orders.barrier(np.unique(blocks[here]))
        if mask is None or (self.stamp.size == 1 and not arrived and self._all(S, mask)):
            self.epoch = self.stamp = np.full(1, self.stamp.max() + 1, np.int32)
            self.views = None
            return
        layout = S.layout
        epoch, here = layout.rows(self.stamp), layout.rows(mask)
        both = here.copy()
        for other in arrived:
            both |= layout.rows(other)
        top = np.where(both, epoch, 0).max(axis=1, keepdims=True) + 1
        self.epoch = np.where(here, top, layout.rows(self.epoch)).astype(np.int32)
        self.epoch = self.epoch.reshape(layout.shape)
        self.stamp = np.where(here, top, epoch).astype(np.int32).reshape(layout.shape)
        if self.views is not None:
            self.meet(S, here, both, top)

    def fence(self, S) -> None:
        """Threads passed a fence of the whole device."""
        if self.orders is not None:
            self.orders.fence(S.layout.flat(self.number)[_named(S.layout, S.mask)])

    def _all(self, S, mask) -> bool:
        return not S.exited and bool(S.layout.full(mask).all())

    def warp_barrier(self, S, mask, members) -> None:
        """The named lanes of a warp met: each now knows what the others had done."""
        layout = S.layout
        lane = np.arange(LANES, dtype=np.uint32)
        here, named = (
            np.broadcast_to(layout.lanes(each), layout.lanes_shape).reshape(self.known.shape[:3])
            for each in (everyone(mask), members.view(np.uint32))
        )
        met = here[..., :, None] & here[..., None, :] & ((named[..., None] >> lane) & 1 != 0)
        # what lane i learns: the most that any lane it met knew
        learnt = np.where(met[..., None], self.known[..., None, :, :], 0).max(axis=-2)
        self.known = np.maximum(self.known, learnt)
        self.known[_OWN] += here
        if self.views is not None:
            self.meet_in_warps(S, here)

    def named(self, S, i: Instruction, mask, members) -> None:
        """Every lane that runs a warp's instruction is to be among those that it names."""
        lane = (S.layout.thread_index % LANES).astype(np.uint32)
        left_out = (members.view(np.uint32) >> lane) & np.uint32(1) == 0
        if mask is not None:
            left_out = left_out & mask
        if left_out.any():
            self._not_named(S, i, S.layout.locate(left_out))

    def shuffled(self, S, i: Instruction, active, source) -> None:
        """Every lane that runs a shuffle is to read a lane that runs it too."""
        there = np.take_along_axis(
            np.broadcast_to(active, S.layout.lanes_shape),
            np.broadcast_to(source, S.layout.lanes_shape), axis=-1,
        )  # fmt: skip
        absent = active & ~there
        if absent.any():
            at = tuple(np.argwhere(absent)[0])
            lanes = np.unique(np.broadcast_to(source, absent.shape)[at[:-1]][absent[at[:-1]]])
            self._not_there(S, i, S.layout.locate(S.layout.threads(absent)), lanes.tolist())

    def barrier_mismatch(self, S, parked) -> None:
        """Threads of one block met at different barrier instructions."""
        first = parked[0]
        for other in parked[1:]:
            if other.instruction.serial == first.instruction.serial:
                continue
            both = S.layout.blocks_of(first.group.mask) & S.layout.blocks_of(other.group.mask)
            if not both.any():
                continue
            places = [
                S.layout.locate(both if p.group.mask is None else p.group.mask & both)
                for p in (first, other)
            ]
            lines = (first.instruction.line, other.instruction.line)
            self._add(
                "barrier", first.instruction, other.instruction, places,
                f"{self.run.entry}: threads of one block wait at different barriers, line "
                f"{lines[0]} (thread {places[0][1]}) and line {lines[1]} (thread "
                f"{places[1][1]}): put one barrier where all threads of the block pass it.",
            )  # fmt: skip

    # ------------------------------------------------------------------ accesses

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
                self.orders.fence(S.layout.flat(self.number)[_named(S.layout, mask)])
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

    def _accessed(self, S, region, view, index, mask, elem, count, compress) -> _Accessed:
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
            keep = _named(layout, mask)
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
        return _Accessed(shadow, start.astype(np.intp), first, last, epoch, stamp, clock, granules)

    def _ends(self, layout, shape) -> tuple[np.ndarray, np.ndarray]:
        """First and last thread that each element of a compressed array stands for."""
        full = np.broadcast_to(self.number, layout.shape)
        low = tuple(slice(None) if n > 1 else slice(0, 1) for n in shape)
        high = tuple(slice(None) if n > 1 else slice(-1, None) for n in shape)
        return full[low], full[high]

    def _unordered(self, S, a: _Accessed, thread, epoch, clock, time) -> np.ndarray:
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

    def _check_race(self, S, i, a: _Accessed, bad, region, thread, does: str, did: str) -> bool:
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

    def _check_copies(self, S, i, a: _Accessed, writer, does: str) -> None:
        s, g = a.shadow, a.granule
        if s.all_writes_plain:
            return
        kinds = s.write_kind[g]
        if kinds.max(initial=PLAIN) < COPY:
            return
        copies = kinds == COPY
        copies |= (kinds == LANDED) & (s.write_epoch[g] >= a.epoch)
        if copies.any():
            self._not_waited(S, i, a, copies, writer, does)

    def _block_row(self, S, number: np.ndarray) -> np.ndarray:
        order = np.sort(self.first_block.reshape(-1))
        return np.searchsorted(order, number)

    def _read(self, S, i: Instruction, a: _Accessed, region, kind: int) -> None:
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

    def _used(self, i: Instruction, a: _Accessed) -> np.ndarray:
        """Which granules of a load are more than the padding of a struct."""
        if i.used_bytes is None:
            return np.ones(1, np.bool_)
        part = (1 << self.granule) - 1
        used = [i.used_bytes >> n * self.granule & part != 0 for n in range(a.each)]
        return np.tile(np.array(used), len(a.granule) // a.each)

    def _write(self, S, i: Instruction, a: _Accessed, region, kind: int, values) -> None:
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

    def _same_instruction(self, S, i, a: _Accessed, region, values) -> None:
        """Two threads write one word in the same instruction, and not the same value."""
        lost = a.shadow.writer[a.granule] != a.first
        if not lost.any():
            return
        if values is not None:
            value, index, mask = values
            full = S.layout.flat(value)[_named(S.layout, mask)]
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

    # ------------------------------------------------------------------ asynchronous copies

    def copied(self, S, i: Instruction, pieces, elem: int, count: int) -> None:
        """cp.async wrote shared memory; the data is there only after its group was waited for."""
        for region, view, index, mask in pieces:
            a = self._accessed(S, region, view, index, mask, elem, count, False)
            self._write(S, i, a, None, COPY, None)
            group = S.layout.flat(self.committed)[_named(S.layout, mask)]
            repeat = len(a.granule) // max(1, len(group))
            self.pending.append((a.granule, a.first, np.repeat(group, repeat)))

    def commit(self, S) -> None:
        """cp.async.commit_group"""
        more = np.ones(1, np.int32) if S.mask is None else S.mask.astype(np.int32)
        self.committed = self.committed + more

    def wait(self, S, left: int) -> None:
        """cp.async.wait_group: of every thread at most `left` groups are still under way."""
        done, epoch, clock, waits = map(
            S.layout.flat,
            (self.committed - left, self.stamp, self._own_clock(S), everyone(S.mask)),
        )
        row = {int(n): k for k, n in enumerate(self.number.reshape(-1)[:: self.threads])}
        base = np.array(sorted(row), np.int64)
        kept = []
        for granule, thread, group in self.pending:
            block = np.searchsorted(base, thread // self.threads * self.threads)
            at = block * self.threads + thread % self.threads
            ready = waits[at] & (group < done[at])
            mine = ready & (self.shared.writer[granule] == thread)
            where = granule[mine]
            self.shared.write_kind[where] = PLAIN
            self.shared.write_epoch[where] = epoch[at[mine]]
            self.shared.write_clock[where] = clock[at[mine]]
            if not ready.all():
                kept.append((granule[~ready], thread[~ready], group[~ready]))
        self.pending = kept
