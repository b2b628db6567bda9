"""What fences and atomics order: what one thread has published and another has come to know.

A thread publishes by an atomic (or a store to a flag that others poll) behind a fence of the whole
device: all that it did before the fence, and all that its block did before a barrier in front of
it. Whoever then looks at the same word with an atomic (or polls it) knows all that, and so does his
block from its next barrier on (PTX ISA, "Memory Consistency Model": release and acquire patterns).
Times count the events of one launch; a thread's entry in an array is the time before which all that
it did is known.
"""

from __future__ import annotations

import numpy as np

Known = dict[int, np.ndarray]  # by block: for each thread, the time before which all is known
RELEASES = frozenset(("release", "acq_rel", "sc"))


def _learn(known: Known, more: Known) -> None:
    for block, times in more.items():
        known[block] = np.maximum(known[block], times) if block in known else times


class Orders:
    """Follows fences, atomics and barriers of a launch whose kernel has fences."""

    def __init__(self, threads: int):
        self.threads = threads  # of a block
        self.now = 1
        self._fenced: dict[int, np.ndarray] = {}  # by block: when each thread last fenced
        self._fence_seen: dict[int, np.ndarray] = {}  # the same, as of the block's last barrier
        self._barrier: dict[int, int] = {}  # by block: when it last met
        self._barrier_fenced: dict[int, np.ndarray] = {}  # what barrier came before each fence
        self._of_thread: dict[int, Known] = {}
        self._of_block: dict[int, Known] = {}
        self._published: dict[tuple, Known] = {}  # by word

    def tick(self) -> int:
        """The time of the next event."""
        self.now += 1
        return self.now

    def _times(self, of: dict[int, np.ndarray], block: int) -> np.ndarray:
        if block not in of:
            of[block] = np.zeros(self.threads, np.int64)
        return of[block]

    def fence(self, threads: np.ndarray) -> None:
        """Threads, by their numbers in the grid, passed a fence of the device."""
        now = self.tick()
        for block in np.unique(threads // self.threads).tolist():
            mine = threads[threads // self.threads == block] % self.threads
            self._times(self._fenced, block)[mine] = now
            self._times(self._barrier_fenced, block)[mine] = self._barrier.get(block, 0)

    def barrier(self, blocks: np.ndarray) -> None:
        """Blocks met at a barrier: what one of their threads knows, all do."""
        now = self.tick()
        for block in blocks.tolist():
            self._barrier[block] = now
            if block in self._fenced:
                self._fence_seen[block] = self._fenced[block].copy()
        for thread in [t for t in self._of_thread if t // self.threads in set(blocks.tolist())]:
            known = self._of_block.setdefault(thread // self.threads, {})
            _learn(known, self._of_thread.pop(thread))

    def touch(self, words: list, threads: np.ndarray, publish: bool, learn: bool) -> None:
        """Threads look at words by atomics, in their order: they learn, and then publish."""
        for word, thread in zip(words, threads.tolist(), strict=True):
            block = thread // self.threads
            published = self._published.get(word)
            if learn and published:
                _learn(self._of_thread.setdefault(thread, {}), published)
            if publish and block in self._fenced and self._fenced[block][thread % self.threads]:
                _learn(self._published.setdefault(word, {}), self._told_by(thread, block))

    def _told_by(self, thread: int, block: int) -> Known:
        me = thread % self.threads
        times = np.full(self.threads, self._barrier_fenced[block][me])
        if block in self._fence_seen:
            times = np.maximum(times, self._fence_seen[block])
        times[me] = max(times[me], self._fenced[block][me])
        told: Known = {block: times}
        for known in (self._of_thread.get(thread, {}), self._of_block.get(block, {})):
            _learn(told, known)
        return told

    def ordered(self, thread: np.ndarray, earlier: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Whether each `thread` knows what each `earlier` one did at a time."""
        out = np.zeros(len(thread), np.bool_)
        for n, (me, other, when) in enumerate(
            zip(thread.tolist(), earlier.tolist(), time.tolist(), strict=True)
        ):
            block, place = divmod(other, self.threads)
            for known in (self._of_thread.get(me), self._of_block.get(me // self.threads)):
                out[n] |= bool(known) and block in known and when < known[block][place]
        return out
