"""What mbarriers order, and the copies that are waited for through them.

A thread has an `epoch`, before which it knows of all that its block did, and a `stamp`, with which
its own accesses are remembered. At a barrier of the block both grow. Who arrives at an mbarrier
leaves its stamp there and goes on with a larger one; who waits for the phase has an epoch behind
all stamps that were left. So what came before the arrivals is ordered before what follows the wait,
and what an arriver does afterwards is not. Since not all warps need to have arrived, each thread
has a view besides: an epoch of its own for every warp of its block. Copies land in no order: behind
the warps a view has, for every mbarrier of the block, how many of its phases a thread knows of.
"""

from __future__ import annotations

import numpy as np

from ..isa.tensor.matrix_descriptors import CHUNK
from ..limits import LANES
from ..machine.asynchronous.bulk_copies import Bytes
from ..machine.asynchronous.tensor_copies import TensorBox
from ..ptx.syntax import Instruction

# How a word was written last. LANDED: by a copy that is there for who waited for its mbarrier.
PLAIN, ATOMIC, COPY, LANDED = range(4)
_WORD = 8  # bytes of an mbarrier
_NEVER = np.iinfo(np.int32).max


class Phases:
    """The part of `Sanitizer` that follows mbarriers and bulk copies."""

    def begin_phases(self, S) -> None:
        """A new batch: nobody has arrived anywhere."""
        self._number = np.zeros(0, np.int32)  # of each object, by its word
        self._left = self._done = np.zeros((0, S.layout.warps), np.int32)  # views, by number
        self._phases = self._column = np.zeros(0, np.int32)  # completed, and place in a view
        self._columns: dict[int, int] = {}  # by an object's word in its block
        self.views: np.ndarray | None = None  # (blocks, threads, warps and objects), if they differ
        self._common = np.zeros((S.layout.nblocks, 0), np.int32)  # phases, where they do not
        self._bound: list[tuple] = []  # copies: (object, granules, thread)
        # Copies out of shared memory: (thread, group, granules, instruction).
        self._bulk: list[tuple] = []
        self._groups: dict[int, int] = {}  # of bulk copies that each thread has committed

    def _objects(self, S) -> None:
        if not self._number.size:
            self._number = np.full(len(S.shared.bytes) // _WORD, -1, np.int32)
            granules = len(self.shared.writer)
            self._landed = np.zeros((2, granules), np.int32)  # by which object's which phase
            self._maker = np.full(granules, -1, np.int64)  # who initialised an object, and when
            self._made_stamp = np.zeros(granules, np.int32)
            self._made_clock = np.zeros(granules, np.int32)
            self._made_at = np.zeros(granules, np.int32)

    def _numbers(self, S, at: np.ndarray) -> np.ndarray:
        """The objects at words, numbered as they first come up."""
        self._objects(S)
        new = np.unique(at[self._number[at] < 0])
        if new.size:
            self._number[new] = len(self._left) + np.arange(len(new))
            more = np.zeros((len(new), self._left.shape[1]), np.int32)
            self._left, self._done = (np.concatenate([v, more]) for v in (self._left, self._done))
            offsets = (new % (S.shared.pitch // _WORD)).tolist()
            before = len(self._columns)
            columns = [self._columns.setdefault(o, len(self._columns)) for o in offsets]
            self._column = np.concatenate([self._column, np.array(columns, np.int32)])
            self._phases = np.concatenate([self._phases, np.zeros(len(new), np.int32)])
            if len(self._columns) > before:
                self._widen(len(self._columns) - before)
        return self._number[at]

    def _widen(self, count: int) -> None:
        """Let views have places for more objects."""

        def wider(values: np.ndarray) -> np.ndarray:
            return np.concatenate([values, np.zeros((*values.shape[:-1], count), np.int32)], -1)

        self._left, self._done, self._common = map(wider, (self._left, self._done, self._common))
        if self.views is not None:
            self.views = wider(self.views)

    def alike(self) -> None:
        """All threads of every block met: each knows what any of them knew."""
        if self.views is not None:
            warps = self.views.shape[-1] - self._common.shape[-1]
            self._common = self.views[..., warps:].max(axis=1)
        self.views = None

    def _spread(self, S) -> None:
        """Give every thread an epoch, a stamp and a view of its own."""
        self.epoch = S.layout.flat(self.epoch).copy().reshape(S.layout.shape)
        self.stamp = S.layout.flat(self.stamp).copy().reshape(S.layout.shape)
        if self.views is None:
            epochs = S.layout.rows(self.epoch)[..., None]
            phases = np.repeat(self._common[:, None], S.layout.nthreads, axis=1)
            warps = np.repeat(epochs, S.layout.warps, axis=-1)
            self.views = np.concatenate([warps, phases], axis=-1)

    def meet(self, S, here: np.ndarray, both: np.ndarray, top: np.ndarray) -> None:
        """Threads (`here`) passed a barrier of some (`both`) of their block, all known up to `top`.

        All are arrays of (blocks, threads), `top` of (blocks, 1).
        """
        seen = np.where(both[..., None], self.views, 0).max(axis=1)
        warp = np.arange(S.layout.nthreads) // LANES
        took_part = np.zeros(seen.shape, np.bool_)
        for w in range(S.layout.warps):
            took_part[:, w] = both[:, warp == w].any(axis=1)
        seen = np.where(took_part, top, seen)
        self.views = np.where(here[..., None], seen[:, None], self.views).astype(np.int32)

    def meet_in_warps(self, S, here: np.ndarray) -> None:
        """Lanes (blocks, warps, 32) met in their warps: they know and stamp alike."""
        layout = S.layout
        self._spread(S)

        def alike(values: np.ndarray) -> np.ndarray:  # (blocks, threads, …)
            rest = values.shape[2:]
            padded = np.zeros((len(values), layout.warps * LANES, *rest), values.dtype)
            padded[:, : layout.nthreads] = values
            lanes = padded.reshape(len(values), layout.warps, LANES, *rest)
            met = here.reshape(here.shape + (1,) * len(rest))
            most = np.where(met, lanes, 0).max(axis=2, keepdims=True)
            return np.where(met, most, lanes).reshape(padded.shape)[:, : layout.nthreads]

        self.epoch = alike(layout.rows(self.epoch)).reshape(layout.shape)
        self.stamp = alike(layout.rows(self.stamp)).reshape(layout.shape)
        self.views = alike(self.views)

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
            self.made_barriers(g)
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
        if where.size:
            self._spread(S)
            number = self._numbers(S, at)
            stamps = self.stamp.reshape(-1)
            views = self.views.reshape(-1, self.views.shape[-1])[where]
            rows, warps = np.arange(len(where)), where % S.layout.nthreads // LANES
            views[rows, warps] = np.maximum(views[rows, warps], stamps[where] + 1)
            order = np.argsort(number, kind="stable")
            starts = np.flatnonzero(np.r_[True, np.diff(number[order]) != 0])
            objects = number[order][starts]
            most = np.maximum.reduceat(views[order], starts)
            self._left[objects] = np.maximum(self._left[objects], most)
            stamps[where] += 1
        done = self._numbers(S, completed)
        self._done[done] = self._left[done]
        self._phases[done] += 1
        self._done[done, S.layout.warps + self._column[done]] = self._phases[done]
        kept = []
        for objects, granules, thread in self._bound:
            landed = np.isin(objects, completed)
            self._land(objects[landed], granules[landed], thread[landed])
            if not landed.all():
                kept.append((objects[~landed], granules[~landed], thread[~landed]))
        self._bound = kept

    def _land(self, objects, granules, thread) -> None:
        mine = (self.shared.writer[granules] == thread) & (self.shared.write_kind[granules] == COPY)
        number, granules = self._number[objects[mine]], granules[mine]
        self.shared.write_kind[granules] = LANDED
        self._landed[:, granules] = self._column[number], self._phases[number]

    def not_told(self, S, a, which: np.ndarray) -> np.ndarray:
        """Which of the chosen accesses of landed words are by threads that know of no landing."""
        column, phase = self._landed[:, a.granule[which]]
        threads = np.broadcast_to(a.first, a.granule.shape)[which]
        block = self._block_row(S, threads // self.threads)
        if self.views is None:
            return self._common[block, column] < phase
        return self.views[block, threads % self.threads, S.layout.warps + column] < phase

    def waited(self, S, at: np.ndarray, where: np.ndarray) -> None:
        """Threads (`where`) saw that a phase of the objects `at` is complete."""
        if not where.size:
            return
        self._spread(S)
        number = self._numbers(S, at)
        done = self._done[number]
        epoch, stamp = self.epoch.reshape(-1), self.stamp.reshape(-1)
        views = self.views.reshape(-1, self.views.shape[-1])
        views[where] = np.maximum(views[where], done)
        epoch[where] = np.maximum(epoch[where], done[:, : S.layout.warps].max(axis=1))
        stamp[where] = np.maximum(stamp[where], epoch[where])

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
            if bytes_.region is None or self._followed(bytes_.region):
                self._bulk_part(S, i, who, bytes_, n, write, at)

    def _bulk_part(self, S, i: Instruction, who: int, bytes_: Bytes, n: int, write: bool, at):
        """One side of a copy: bytes in a row that it reads or writes."""
        region = bytes_.region
        mask = np.zeros(S.layout.shape, np.bool_)
        mask.reshape(-1)[who] = True
        index = np.full(1, bytes_.start, np.intp)
        a = self._accessed(S, region, None, index, mask, 1, n, False)
        if write:
            self._write(S, i, a, region, PLAIN if at is None else COPY, None)
        else:
            self._read(S, i, a, region, PLAIN)
        if not write and region is None and at is None:  # read until it is waited for
            self.check_proxies(S, i, a)
            a.shadow.read_epoch[a.granule] = _NEVER
            thread = int(a.first[0])
            self._bulk.append((thread, self._groups.get(thread, 0), a.granule, i))
        if write and at is not None:
            self.check_barrier(S, i, at, int(a.first[0]))
            self._bound.append((np.full(len(a.granule), at), a.granule, a.first))

    def box(self, S, i: Instruction, who: int, box: TensorBox, at) -> None:
        """A thread of the batch copies a box; `at` is the object that is told, or None: a store."""
        shared = np.unique(box.places)
        target = Bytes(None, S.shared.bytes, int(shared[0]) * CHUNK)
        if at is None:
            self._bulk_part(S, i, who, target, len(shared) * CHUNK, False, at)
        if self._followed(box.region):
            self._box_in_array(S, i, who, box, at is None)
        if at is not None:
            self._bulk_part(S, i, who, target, len(shared) * CHUNK, True, at)

    def _box_in_array(self, S, i: Instruction, who: int, box: TensorBox, write: bool) -> None:
        """The array's side of a copied box."""
        shadow, size, _ = self._shadow(box.region, 1)
        granules = np.unique((box.addresses() - box.region.start) // size)
        if not granules.size:
            return
        a = self._thread(S, who, granules)
        a.shadow = shadow
        (self._write if write else self._read)(
            S, i, a, box.region, PLAIN, *((None,) if write else ())
        )

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

    def end(self, S) -> None:
        """The blocks of a batch have ended."""
        for thread, _, _, i in self._bulk:
            self._left_behind(S, i, thread)

    def commit_bulk(self, S) -> None:
        """cp.async.bulk.commit_group"""
        for thread in self._running(S):
            self._groups[thread] = self._groups.get(thread, 0) + 1

    def wait_bulk(self, S, left: int) -> None:
        """cp.async.bulk.wait_group: at most `left` groups of a thread still read shared memory."""
        threads, kept, s = set(self._running(S)), [], self.shared
        stamps = S.layout.flat(self.stamp)
        numbers = S.layout.flat(self.number)
        for one in self._bulk:
            thread, group, granules, _ = one
            if thread not in threads or group >= self._groups.get(thread, 0) - left:
                kept.append(one)
                continue
            mine = granules[(s.reader[granules] == thread) & (s.read_epoch[granules] == _NEVER)]
            s.read_epoch[mine] = stamps[np.argmax(numbers == thread)]
        self._bulk = kept

    def _running(self, S) -> list[int]:
        mask = np.ones(1, np.bool_) if S.mask is None else S.mask
        return S.layout.flat(self.number)[S.layout.full(mask).reshape(-1)].tolist()
