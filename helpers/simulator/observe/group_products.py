"""What `wgmma` and copies out of shared memory read there, and who may write it again.

They reach shared memory through the async proxy. What threads wrote by ordinary stores (or by
cp.async) they find only behind a fence.proxy.async, of the thread that wrote or, once it knows of
the write, of the one that reads (PTX ISA, "Async proxy"). And a product reads until its group has
been waited for: who overwrites an operand has to come after a wait of one of the four warps.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ..isa.tensor.matrix_descriptors import CHUNK
from ..isa.tensor.warpgroup_products import THREADS
from ..limits import LANES
from ..machine.code import Code
from ..ptx.program import multiplies_group
from ..ptx.syntax import Instruction
from .group_registers import RegisterFault, by_product, register_faults
from .shadows import Accessed, chosen

_WARPS = THREADS // LANES
# Of code that has been looked at: launches of one kernel share it.
_KNOWN: WeakKeyDictionary[Code, list[RegisterFault]] = WeakKeyDictionary()
_NOT_YET = np.iinfo(np.int32).max


def uses_async_proxy(i: Instruction) -> bool:
    """Whether an instruction reaches shared memory past the ordinary way."""
    return (i.opcode == "cp" and "bulk" in i.modifiers) or multiplies_group(i)


class GroupProducts:
    """The part of `Sanitizer` that follows products of warpgroups, and the two ways to memory."""

    def begin_products(self, S) -> None:
        """A new batch: nothing is under way."""
        layout, granules = S.layout, len(self.shared.writer)
        self._clock = 0
        if not self.by_async_proxy:
            return
        # When each word was last written by a thread's own way; 0 for what the async proxy wrote.
        self._plainly = np.zeros(granules, np.int64)
        self._fenced = np.zeros(layout.nblocks * layout.nthreads, np.int64)
        self._made = np.zeros(granules, np.int64)  # when each mbarrier was initialised
        self._fence_epochs = np.full(len(self._fenced), -1, np.int32)  # known before the last fence
        self._commits = np.zeros((layout.nblocks, layout.warps), np.int64)  # groups of each warp
        self._reading: dict[int, np.ndarray] = {}  # by warpgroup of a block: product of each word
        self._products: list[Instruction] = []
        self._of_group: list[int] = []  # which group of its warpgroup each product is in
        self._waits = np.zeros((0, _WARPS), np.int32)  # stamps with which warps waited for each
        self._under_way: dict[int, list[int]] = {}  # products, by warpgroup of the batch

    # ------------------------------------------------------------------ two ways to memory

    def wrote_plainly(self, granules: np.ndarray, i: Instruction | None) -> None:
        """Words of shared memory were written: by threads, or (cp.async.bulk) by the proxy."""
        if self.by_async_proxy:
            self._clock += 1
            self._plainly[granules] = 0 if i is not None and "bulk" in i.modifiers else self._clock

    def fence_proxy(self, S) -> None:
        """Threads passed a fence.proxy.async."""
        if self.by_async_proxy:
            self._clock += 1
            where = chosen(S.layout, S.mask)
            self._fenced[where] = self._clock
            self._fence_epochs[where] = S.layout.flat(self.epoch)[where]

    def made_barriers(self, granules: np.ndarray) -> None:
        """Threads initialised the mbarriers in words of shared memory."""
        if self.by_async_proxy:
            self._clock += 1
            self._made[granules] = self._clock

    def check_barrier(self, S, i: Instruction, word: int, thread: int) -> None:
        """Whether a copy finds the mbarrier that it arrives at: its maker fenced; or a finding."""
        granule = self._granules(np.array([word]))[0]
        maker = int(self._maker[granule])
        block = int(self._block_row(S, np.array([maker // self.threads]))[0])
        if self._fenced[block * self.threads + maker % self.threads] <= self._made[granule]:
            self._barrier_not_fenced(S, i, int(self._made_at[granule]), maker, thread)

    def check_proxies(self, S, i: Instruction, a: Accessed) -> None:
        """What the proxy reads was written through it, or is behind a fence; a finding if not."""
        plainly = self._plainly[a.granule]
        if not plainly.any():
            return
        writer = a.shadow.writer[a.granule]
        block = self._block_row(S, writer // self.threads)
        own = self._fenced[block * self.threads + writer % self.threads] > plainly
        reader = self._block_row(S, a.first // self.threads) * self.threads
        knew = self._fence_epochs[reader + a.first % self.threads]
        bad = (plainly > 0) & (writer >= 0) & ~own & (a.shadow.write_epoch[a.granule] >= knew)
        if bad.any():
            self._not_fenced(S, i, a, int(np.argmax(bad)), writer)

    # ------------------------------------------------------------------ products

    def product(self, S, i: Instruction, number: np.ndarray, places: list[np.ndarray]) -> None:
        """Warpgroups (`number`, of the batch) multiply what lies in chunks of shared memory.

        Args:
            places: of each operand, (warpgroups, …) chunks of 16 bytes.
        """
        for fault in self.of_registers.get(i.serial, ()):
            self._amiss(S, fault, int(number[0]) * THREADS)
        each = CHUNK // self.granule
        for row, group in enumerate(number.tolist()):
            chunks = np.unique(np.concatenate([p[row].reshape(-1) for p in places]))
            granules = (chunks[:, None] * each + np.arange(each)).reshape(-1)
            for warp in range(_WARPS):
                self._check_operand(S, i, group * THREADS + warp * LANES, granules)
            in_block = group % (self.threads // THREADS)
            if in_block not in self._reading:
                self._reading[in_block] = np.full(len(self.shared.writer), -1, np.int32)
            self._reading[in_block][granules] = len(self._products)
            self._under_way.setdefault(group, []).append(len(self._products))
            self._of_group.append(int(self._commits.reshape(-1)[group * _WARPS]))
            self._products.append(i)
        while len(self._waits) < len(self._products):
            more = np.full((max(64, len(self._waits)), _WARPS), _NOT_YET, np.int32)
            self._waits = np.concatenate([self._waits, more])

    def _thread(self, S, thread: int, granules: np.ndarray) -> Accessed:
        """Granules of shared memory as one thread of the batch accesses them."""
        number, epoch, stamp, clock = (
            S.layout.flat(each)[thread : thread + 1]
            for each in (self.number, self.epoch, self.stamp, self._own_clock(S))
        )
        first = np.repeat(number, len(granules))
        return Accessed(self.shared, granules, first, first, epoch, stamp, clock, 1)

    def _check_operand(self, S, i: Instruction, thread: int, granules: np.ndarray) -> None:
        a = self._thread(S, thread, granules)
        writer = a.shadow.writer[granules]
        if (writer < 0).any():
            self._uninitialised(S, i, a, int(np.argmax(writer < 0)))
        landed = a.shadow.write_kind[granules] if not a.shadow.all_writes_plain else 0
        bad = (writer >= 0) & (writer != a.first) & self.may_race(landed)
        if not self._check_race(S, i, a, bad, None, writer, "reads", "wrote"):
            self.check_proxies(S, i, a)
        self._check_copies(S, i, a, writer, "reads")

    def commit_products(self, S) -> None:
        """wgmma.commit_group"""
        self._commits += self._warps_running(S)

    def wait_products(self, S, left: int) -> None:
        """wgmma.wait_group: of each warp at most `left` groups are still under way."""
        running = self._warps_running(S)
        stamps = S.layout.rows(self.stamp).reshape(S.layout.nblocks, -1, LANES).max(axis=-1)
        stamps, running, commits = (v.reshape(-1) for v in (stamps, running, self._commits))
        for group, under_way in self._under_way.items():
            warps = slice(group * _WARPS, (group + 1) * _WARPS)
            for one in under_way if running[warps].any() else ():
                done = running[warps] & (self._of_group[one] < commits[warps] - left)
                first = done & (self._waits[one] == _NOT_YET)
                self._waits[one] = np.where(first, stamps[warps], self._waits[one])
            self._under_way[group] = [
                one for one in under_way if (self._waits[one] == _NOT_YET).any()
            ]

    def _warps_running(self, S) -> np.ndarray:
        """Bool (blocks, warps)."""
        if S.mask is None:
            return np.ones(self._commits.shape, np.bool_)
        return S.layout.rows(S.mask).reshape(S.layout.nblocks, -1, LANES).any(axis=-1)

    def check_overwritten(self, S, i: Instruction, a: Accessed) -> None:
        """Whether what is written in shared memory may still be read by a product; a finding."""
        if not self.by_async_proxy or not self._reading:
            return
        for in_block, products in self._reading.items():
            one = products[a.granule]
            at = np.flatnonzero(one >= 0)
            if not at.size:
                continue
            bad = ~self._after_a_wait(S, a, at, in_block, one[at])
            if bad.any():
                place = at[int(np.argmax(bad))]
                waited = bool((self._waits[one[place]] != _NOT_YET).any())
                reader = self._group_start(a.first[place], in_block)
                self._overwritten(S, i, a, place, self._products[one[place]], reader, waited)
            products[a.granule] = -1

    def _group_start(self, thread, in_block: int):
        """The first thread, in the grid, of a warpgroup in the block of a thread."""
        return thread // self.threads * self.threads + in_block * THREADS

    def _after_a_wait(self, S, a: Accessed, at, in_block: int, one: np.ndarray) -> np.ndarray:
        """Which of the accesses `at` come after some warp waited for the products `one`."""
        first = np.broadcast_to(a.first, a.granule.shape)[at]
        epoch, stamp, clock = (
            np.broadcast_to(each, a.granule.shape)[at] for each in (a.epoch, a.stamp, a.clock)
        )
        part = Accessed(a.shadow, a.granule[at], first, first, epoch, stamp, clock, 1)
        never = np.zeros(len(at), np.int64)
        after = np.zeros(len(at), np.bool_)
        for warp in range(_WARPS):
            when = self._waits[one, warp]
            reader = self._group_start(first, in_block) + warp * LANES
            known = ~self._unordered(S, part, reader, when, never, never)
            known |= first // LANES == reader // LANES
            after |= known & (when != _NOT_YET)
        return after

    def prepare_products(self, run) -> None:
        """Read off the code of a launch what is amiss with registers."""
        faults: list[RegisterFault] = []
        for code in run.prepared.codes.values():
            if code not in _KNOWN:
                _KNOWN[code] = register_faults(code.graph)
            faults += _KNOWN[code]
        self.of_registers = by_product(faults)
