"""Finds races, reads of what nothing wrote, and copies that were not waited for.

What was done to every word stands in `shadows`, with the epoch in which it was. Here is what orders
it. A thread's epoch grows at every barrier of its block, so an access of an earlier epoch of the
same block comes before everything that a thread does now. Within a warp, __syncwarp orders too:
there, vector clocks say what each lane knows of the others. Blocks are ordered by fences and
atomics alone (see `fences`), and what mbarriers order is in `phases`.
"""

from __future__ import annotations

import numpy as np

from ..limits import LANES
from ..machine.faults import everyone
from ..ptx.program import fences_device
from ..ptx.syntax import TYPE_SIZES, Instruction
from .fences import RELEASES, Orders
from .findings import Findings
from .group_products import GroupProducts, uses_async_proxy
from .phases import COPY, PLAIN, Phases
from .shadows import SHADOW_BYTES, Shadow, Shadows, chosen

_OWN = (..., np.arange(LANES), np.arange(LANES))  # what lanes know of themselves


class Sanitizer(Shadows, Phases, GroupProducts, Findings):
    """Follows one launch. `findings` holds each fault once per pair of instructions."""

    def __init__(self, run):
        super().__init__(run)
        self._global: dict[int, Shadow] = {}
        sizes = []
        self.warp_syncs = fences = self.by_async_proxy = False
        for function in run.prepared.module.functions.values():
            for i in function.instructions:
                if i.opcode in ("ld", "st", "atom", "red") and i.modifiers:
                    if "global" not in i.modifiers and "param" not in i.modifiers:
                        sizes.append(TYPE_SIZES.get(i.modifiers[-1], 4))
                if i.opcode == "wmma" and i.modifiers[-1] in ("s8", "u8"):
                    sizes.append(1)  # those that do not lie side by side are fetched one by one
                self.has_mbarriers |= i.opcode == "mbarrier"
                self.by_phases |= i.opcode == "cp" and any("mbarrier" in m for m in i.modifiers)
                self.by_async_proxy |= uses_async_proxy(i)
                fences |= fences_device(i)
                fences |= i.opcode != "mbarrier" and not RELEASES.isdisjoint(i.modifiers)
                self.warp_syncs |= i.opcode in ("bar", "barrier") and "warp" in i.modifiers
        self.has_fences, self.orders = fences, None
        self.granule = min([4, *sizes])
        self.prepare_products(run)
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
        self.begin_products(S)
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
            self.alike()
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
            self.orders.fence(S.layout.flat(self.number)[chosen(S.layout, S.mask)])

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

    # ------------------------------------------------------------------ asynchronous copies

    def copied(self, S, i: Instruction, pieces, elem: int, count: int) -> None:
        """cp.async wrote shared memory; the data is there only after its group was waited for."""
        for region, view, index, mask in pieces:
            a = self._accessed(S, region, view, index, mask, elem, count, False)
            self._write(S, i, a, None, COPY, None)
            group = S.layout.flat(self.committed)[chosen(S.layout, mask)]
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
            self.wrote_plainly(where, None)  # only now
            self.shared.write_kind[where] = PLAIN
            self.shared.write_epoch[where] = epoch[at[mine]]
            self.shared.write_clock[where] = clock[at[mine]]
            if not ready.all():
                kept.append((granule[~ready], thread[~ready], group[~ready]))
        self.pending = kept
