"""What mbarriers order, and the copies that are waited for through them.

A thread has an `epoch`, before which it knows of all that its block did, and a `stamp`, with which
its own accesses are remembered. At a barrier of the block both grow. Who arrives at an mbarrier
leaves its stamp there and goes on with a larger one; who waits for the phase has an epoch behind
all stamps that were left. So what came before the arrivals is ordered before what follows the wait,
and what an arriver does afterwards is not.
"""

from __future__ import annotations

import numpy as np

from ..machine.asynchronous.bulk_copies import Bytes
from ..ptx.syntax import Instruction

# How a word was written last. LANDED: by a copy that is there for who waited for its mbarrier.
PLAIN, ATOMIC, COPY, LANDED = range(4)
_WORD = 8  # bytes of an mbarrier
_NEVER = np.iinfo(np.int32).max


class Phases:
    """The part of `Sanitizer` that follows mbarriers and bulk copies."""

    def begin_phases(self, S) -> None:
        """A new batch: nobody has arrived anywhere."""
        self._left = self._done = np.zeros(0, np.int32)  # stamps, by the object's word
        self._bound: list[tuple] = []  # copies: (object, granules, thread)
        self._bulk: list[tuple] = []  # copies out of shared memory: (thread, group, granules)
        self._groups: dict[int, int] = {}  # of bulk copies that each thread has committed

    def _objects(self, S) -> None:
        if not self._left.size:
            self._left = np.full(len(S.shared.bytes) // _WORD, -1, np.int32)
            self._done = self._left.copy()
            granules = len(self.shared.writer)
            self._maker = np.full(granules, -1, np.int64)  # who initialised an object, and when
            self._made_stamp = np.zeros(granules, np.int32)
            self._made_clock = np.zeros(granules, np.int32)
            self._made_at = np.zeros(granules, np.int32)

    def _spread(self, S) -> None:
        """Give every thread an epoch and a stamp of its own."""
        self.epoch = S.layout.flat(self.epoch).copy().reshape(S.layout.shape)
        self.stamp = S.layout.flat(self.stamp).copy().reshape(S.layout.shape)

    def _granules(self, at: np.ndarray) -> np.ndarray:
        each = max(1, _WORD // self.granule)
        return (at[:, None] * each + np.arange(each)).reshape(-1)

    # ------------------------------------------------------------------ the objects

    def made(self, S, i: Instruction, memory, at, where, makes: bool) -> None:
        """Threads initialised objects, or gave them up: then their memory is like new."""
        if makes:
            self._touch(S, i, "store", memory, at, where)
        else:
            self._objects(S)
            granules = self._granules(at)
            for each in (self.shared.writer, self.shared.reader, self.shared.reader2, self._maker):
                each[granules] = -1

    def touched(self, S, i: Instruction, memory, at, where) -> None:
        """Threads are about to arrive at objects, which somebody must have made before."""
        self._touch(S, i, "atomic", memory, at, where)

    def watched(self, S, i: Instruction, memory, at, where) -> None:
        """Threads look at the phase of objects, which somebody must have made before."""
        self._touch(S, i, "load", memory, at, where)

    def _touch(self, S, i: Instruction, kind: str, memory, at, where) -> None:
        mask, index = np.zeros(S.layout.shape, np.bool_), np.zeros(S.layout.shape, np.intp)
        mask.reshape(-1)[where], index.reshape(-1)[where] = True, at
        a = self._accessed(S, None, memory, index, mask, _WORD, 1, False)
        self._objects(S)
        g = a.granule
        if kind == "store":
            self._maker[g], self._made_at[g] = a.first, i.serial
            self._made_stamp[g], self._made_clock[g] = a.stamp, a.clock
        else:
            maker, never = self._maker[g], np.zeros(len(g), np.int64)
            when = (self._made_stamp[g], self._made_clock[g], never)
            bad = (maker >= 0) & (maker != a.first) & self._unordered(S, a, maker, *when)
            if bad.any():
                self._race(S, i, a, bad, None, self._made_at, maker, "uses", "initialised")
        if kind == "load":
            self._read(S, i, a, None, ATOMIC)
        else:
            self._write(S, i, a, None, PLAIN if kind == "store" else ATOMIC, None)

    def arrived(self, S, at: np.ndarray, where: np.ndarray, completed: np.ndarray) -> None:
        """Threads (`where`) arrived at the objects `at`; of some a phase completed."""
        self._objects(S)
        if where.size:
            self._spread(S)
            stamps = self.stamp.reshape(-1)
            np.maximum.at(self._left, at, stamps[where])
            stamps[where] += 1
            if (stamps == stamps[0]).all() and (self.epoch == self.epoch.flat[0]).all():
                self.stamp, self.epoch = stamps[:1], self.epoch.reshape(-1)[:1]
        self._done[completed] = self._left[completed]
        kept = []
        for objects, granules, thread in self._bound:
            landed = np.isin(objects, completed)
            self._land(objects[landed], granules[landed], thread[landed])
            if not landed.all():
                kept.append((objects[~landed], granules[~landed], thread[~landed]))
        self._bound = kept

    def _land(self, objects, granules, thread) -> None:
        mine = (self.shared.writer[granules] == thread) & (self.shared.write_kind[granules] == COPY)
        self.shared.write_kind[granules[mine]] = LANDED
        self.shared.write_epoch[granules[mine]] = self._done[objects[mine]]

    def waited(self, S, at: np.ndarray, where: np.ndarray) -> None:
        """Threads (`where`) saw that a phase of the objects `at` is complete."""
        if not where.size:
            return
        self._objects(S)
        self._spread(S)
        epoch, stamp = self.epoch.reshape(-1), self.stamp.reshape(-1)
        epoch[where] = np.maximum(epoch[where], self._done[at] + 1)
        stamp[where] = np.maximum(stamp[where], epoch[where])
        if (epoch == epoch[0]).all() and (stamp == stamp[0]).all():
            self.epoch, self.stamp = epoch[:1], stamp[:1]

    # ------------------------------------------------------------------ copies

    def bind(self, S, at: np.ndarray, where: np.ndarray) -> None:
        """The cp.async copies that threads started belong to an object's phase from now on."""
        threads = S.layout.flat(self.number)[where]
        order = np.argsort(threads)
        threads, at = threads[order], at[order]
        kept = []
        for granule, thread, group in self.pending:
            place = np.minimum(np.searchsorted(threads, thread), len(threads) - 1)
            mine = threads[place] == thread
            self._bound.append((at[place[mine]], granule[mine], thread[mine]))
            if not mine.all():
                kept.append((granule[~mine], thread[~mine], group[~mine]))
        self.pending = kept

    def bulk(self, S, i: Instruction, who: int, source: Bytes, target: Bytes, n: int, at) -> None:
        """A thread of the batch copies n bytes at once; `at` is the object that is told, if any."""
        for bytes_, write in ((source, False), (target, True)):
            region = bytes_.region
            if region is not None and not self._followed(region):
                continue
            mask = np.zeros(S.layout.shape, np.bool_)
            mask.reshape(-1)[who] = True
            index = np.full(1, bytes_.start, np.intp)
            a = self._accessed(S, region, None, index, mask, 1, n, False)
            if write:
                self._write(S, i, a, region, PLAIN if at is None else COPY, None)
            else:
                self._read(S, i, a, region, PLAIN)
            if not write and region is None and at is None:  # read until it is waited for
                a.shadow.read_epoch[a.granule] = _NEVER
                thread = int(a.first[0])
                self._bulk.append((thread, self._groups.get(thread, 0), a.granule))
            if write and at is not None:
                self._bound.append((np.full(len(a.granule), at), a.granule, a.first))

    def read_by_bulk(self, S, i: Instruction, a) -> np.ndarray:
        """Where an access writes what a bulk copy may still read; a finding."""
        if not self._bulk:
            return np.zeros(1, np.bool_)
        reading = a.shadow.read_epoch[a.granule] == _NEVER
        reading &= a.shadow.reader[a.granule] >= 0
        if reading.any():
            readers = a.shadow.reader[a.granule]
            self._not_waited(S, i, a, reading, readers, "writes", fills=False)
        return reading

    def commit_bulk(self, S) -> None:
        """cp.async.bulk.commit_group"""
        for thread in self._running(S):
            self._groups[thread] = self._groups.get(thread, 0) + 1

    def wait_bulk(self, S, left: int) -> None:
        """cp.async.bulk.wait_group: at most `left` groups of a thread still read shared memory."""
        threads, kept, s = set(self._running(S)), [], self.shared
        stamps = S.layout.flat(self.stamp)
        numbers = S.layout.flat(self.number)
        for thread, group, granules in self._bulk:
            if thread not in threads or group >= self._groups.get(thread, 0) - left:
                kept.append((thread, group, granules))
                continue
            mine = granules[(s.reader[granules] == thread) & (s.read_epoch[granules] == _NEVER)]
            s.read_epoch[mine] = stamps[np.argmax(numbers == thread)]
        self._bulk = kept

    def _running(self, S) -> list[int]:
        mask = np.ones(1, np.bool_) if S.mask is None else S.mask
        return S.layout.flat(self.number)[S.layout.full(mask).reshape(-1)].tolist()
