"""The schedule: runs a batch of blocks, all threads at once, and lets them diverge and meet again.

Threads that stand at the same place form a group with a mask. The group at the lowest place (in the
order of the program text, callers before callees) runs until it meets or passes another one, so
threads that diverged come together where their paths do. A group with mask None is every thread of
the batch: that is the fast path, and most kernels never leave it for long.
"""

from __future__ import annotations

import traceback

import numpy as np

from .code import Activation, Code, Group
from .control import Branching
from .endless import same_way
from .operands import BOOL
from .waiting import Parked, release

PATIENCE = 1024  # rounds that a loop may poll memory before other threads get their turn


def running_line(error: BaseException) -> int | None:
    """The source line that ran when `error` came up inside a machine, or None.

    It is read from the frames of the traceback, so that running costs nothing.
    """
    line = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is Machine._run_group.__code__:
            code, block = frame.f_locals.get("code"), frame.f_locals.get("block")
            if code is not None and block is not None:
                place = code.graph.blocks[block]
                instructions = code.function.instructions[place.start : place.end]
                line = next((i.line for i in reversed(instructions) if i.line), line)
    return line


class Machine(Branching):
    """Runs the batches of one launch. `S` is the batch in progress."""

    def __init__(self, S, entry: Code, max_steps: int):
        self.S, self.entry, self.max_steps = S, entry, max_steps
        self.groups: list[Group] = []
        self.parked: list[Parked] = []
        # with S.writes where it saw nothing change, or None: others may have a turn first
        self.spinning: list[tuple[Group, int | None]] = []

    def run(self) -> None:
        """Run the batch to its end."""
        S = self.S
        S.exited = False
        self.steps_left = self.max_steps
        self.groups = self._start()
        while self.groups or self.parked or self.spinning:
            if self.spinning:
                self._wake_spinning(lambda at: at is not None and at != S.writes)
            if not self.groups and self.parked:
                self.groups = release(S, self.parked, [g for g, _ in self.spinning])
                self._restore_full()
            if not self.groups:
                self._wake_spinning(lambda at: True)
            self._run_lowest()

    def _start(self) -> list[Group]:
        """All threads at the first instruction; as one group, or a group a warp.

        Warps that run one after another have frames of their own, so that they never join; the
        place of a warp's group starts with its turn.
        """
        S = self.S
        if S.schedule == "lockstep" or S.layout.warps == 1:
            return [Group(Activation(self.entry), 0, None)]
        warp = S.layout.thread_index // 32
        turns = list(range(S.layout.warps))
        if S.schedule == "warps_reversed":
            turns.reverse()
        return [
            Group(Activation(self.entry, prefix=(turn,)), 0, warp == number)
            for turn, number in enumerate(turns)
        ]

    def _wake_spinning(self, when) -> None:
        """Let the threads look again that found nothing new at a number of writes."""
        S = self.S
        woken = [(g, at) for g, at in self.spinning if when(at)]
        if woken and not self.groups and all(at == S.writes for _, at in woken):
            group = woken[0][0]
            self._endless(group, group.frame.code.ends[group.block], "waits for ever")
        self.groups += [g for g, _ in woken]
        self.spinning = [(g, at) for g, at in self.spinning if not when(at)]

    def _restore_full(self) -> None:
        if len(self.groups) == 1 and not self.parked and not self.S.exited and not self.spinning:
            self.groups[0].mask = None

    def _run_lowest(self) -> None:
        groups = self.groups
        if len(groups) == 1:
            group = groups.pop()
        else:
            groups.sort(key=lambda g: g.key, reverse=True)
            group = groups.pop()
            while groups and groups[-1].key == group.key and groups[-1].frame is group.frame:
                other = groups.pop()
                group.met = group.met and other.met
                group.mask = group.mask | other.mask
                group.visited |= other.visited
            if not groups and not self.parked and not self.S.exited and not self.spinning:
                group.mask = None
        self._run_group(group)

    def _kept(self, group: Group) -> int:
        """Registers of the group's frame that threads outside the group still need."""
        kept = 0
        others = self.groups + [p.group for p in self.parked] + [g for g, _ in self.spinning]
        for other in others:
            frame, block = other.frame, other.block
            while frame is not None:
                if frame is group.frame:
                    kept |= frame.code.graph.blocks[block].live_in
                if frame.call is not None:
                    block = frame.call[1]
                frame = frame.parent
        return kept

    def _enter(self, group: Group) -> None:
        S = self.S
        S.mask = group.mask
        S.frame = group.frame
        S.keep = 0 if group.mask is None else self._kept(group)

    def _run_group(self, group: Group) -> None:
        S = self.S
        limit = min((g.key for g in self.groups), default=None)
        self._enter(group)
        frame = group.frame
        code, R, prefix = frame.code, frame.registers, frame.prefix
        ranks, meetings = code.ranks, code.meetings
        block = group.block
        watch = self.parked
        repeats = 0
        snapshot = None
        before = -1
        while True:
            if meetings[block] is not None and group.mask is not None and not group.met:
                members, i = meetings[block]
                named = members(S, R)
                if not self._warps_complete(group, named):
                    waits = Group(frame, block, group.mask, group.visited, met=True)
                    self.parked.append(Parked(waits, "warp", None, i, block, named))
                    return
            group.met = False
            if S.counting and block != before and block in code.loops:
                rounds = self._uneven_rounds(code, block, R)
                if rounds is not None:
                    self._run_unrolled(group, code, block, R, rounds)
                    self._enter(group)
                    before = block
                    block += 1
                    if limit is not None and prefix + (ranks[block],) >= limit:
                        group.block = block
                        self.groups.append(group)
                        return
                    continue
            before = block
            steps = code.steps[block]
            self.steps_left -= len(steps) + 1
            if self.steps_left < 0:
                self._endless(Group(frame, block, group.mask), code.ends[block], None)
            if code.endless[block] and frame.parent is None:
                self._endless(Group(frame, block, group.mask), code.ends[block], "has no way out")
            if S.counting:
                S.tally.block((id(code), block), *S.active_numbers(group.mask))
            if watch:
                group.visited |= 1 << block
            for step, _ in steps:
                step(S, R)
            end = code.ends[block]
            if end is None:
                following = block + 1
                if following >= len(code.steps):
                    self._leave(group, block)
                    return
            elif end.opcode == "bra":
                following = self._branch(group, code, block, end, R)
                if following is None:
                    return
            else:
                group.block = block
                following = self._end(group, code, block, end, R)
                if following is None:
                    return
            if ranks[following] <= ranks[block]:
                repeats += 1
                if repeats >= 32:
                    if repeats == 32 and following in code.loops:
                        self._check_rounds(Group(frame, following, group.mask))
                    if repeats & (repeats - 1) == 0:
                        snapshot = (following, S.writes, self._live(code, following, R))
                    elif snapshot is not None and snapshot[0] == following:
                        if self._unchanged(snapshot, code, following, R):
                            group.block = following
                            self.spinning.append((group, S.writes))
                            return
                        self._check_ways(snapshot, Group(frame, block, group.mask), following)
                        if repeats & 15 == 0:
                            snapshot = None
                    if repeats % PATIENCE == 0 and self._must_yield(code, following, block):
                        group.block = following
                        self.spinning.append((group, None))
                        return
            block = following
            if limit is not None and prefix + (ranks[block],) >= limit:
                group.block = block
                self.groups.append(group)
                return

    def _uneven_rounds(self, code: Code, block: int, R) -> np.ndarray | None:
        """Rounds left in a counted loop, where lanes of a warp differ in them; else None."""
        S = self.S
        rounds = code.loops[block].rounds(S, R)
        if rounds is None or rounds.size == 1:
            return None
        lanes = S.layout.lanes(rounds)
        if S.mask is not None:
            active = S.active_lanes(S.mask)
            low = np.where(active, lanes, np.iinfo(np.int64).max).min(axis=-1)
            high = np.where(active, lanes, 0).max(axis=-1)
        else:
            low, high = lanes.min(axis=-1), lanes.max(axis=-1)
        return rounds if (low < high).any() else None

    def _run_unrolled(self, group: Group, code: Code, block: int, R, rounds) -> None:
        """A loop as ptxas unrolls it: by four while four rounds are left, then by two, then one."""
        S = self.S
        S.keep = -1
        everyone = np.ones(1, BOOL) if group.mask is None else group.mask
        for chunk in (4, 2, 1):
            while True:
                mask = everyone & (rounds >= chunk)
                if not mask.any():
                    break
                S.mask = mask
                for _ in range(chunk):
                    self.steps_left -= len(code.steps[block]) + 1
                    if S.counting:
                        S.tally.block((id(code), block), *S.active_numbers(mask))
                    for step, _ in code.steps[block]:
                        step(S, R)
                if self.steps_left < 0:
                    self._endless(Group(group.frame, block, mask), code.ends[block], None)
                rounds = np.where(mask, rounds - chunk, rounds)

    def _must_yield(self, code: Code, first: int, last: int) -> bool:
        """Whether a loop that counts its rounds may be waiting for threads that wait for it."""
        others = self.groups or self.parked or self.spinning
        return bool(others) and code.polls(first, last)

    @staticmethod
    def _live(code: Code, block: int, R: list) -> list:
        live = code.graph.blocks[block].live_in
        return [R[n] for n in range(len(R)) if live >> n & 1]

    def _check_rounds(self, group: Group) -> None:
        """A counted loop that has more rounds to go than there are steps left will not end."""
        code, block = group.frame.code, group.block
        loop, R = code.loops[block], group.frame.registers
        rounds = loop.rounds(self.S, R)
        if rounds is None:
            lost = loop.never_ends(self.S, R)
            lost = lost if group.mask is None or lost is None else lost & group.mask
            if lost is not None and lost.any():
                lost = Group(group.frame, block, lost)
                self._endless(
                    lost, code.ends[block],
                    "goes on for ever: its counter steps over the value that would end it",
                )  # fmt: skip
            return
        if group.mask is not None:
            rounds = np.where(group.mask, rounds, 0)
        most = int(rounds.max())
        if most * (len(code.steps[block]) + 1) > self.steps_left:
            self._endless(
                group, code.ends[block],
                f"needs more than the {self.max_steps:,} instructions that a launch may take",
                budget=True,
            )  # fmt: skip

    def _check_ways(self, snapshot, group: Group, following: int) -> None:
        """A loop in which nothing changes what its branches test will not end."""
        code = group.frame.code
        live = code.graph.blocks[following].live_in
        if same_way(
            code.deciding(following), live, snapshot[2],
            self._live(code, following, group.frame.registers),
        ):  # fmt: skip
            self._endless(
                group, code.ends[group.block], "goes on for ever: nothing in it changes what its "
                "condition tests",
            )  # fmt: skip

    def _unchanged(self, snapshot, code, block, R) -> bool:
        if snapshot[1] != self.S.writes:
            return False
        return all(
            a is b or (a.shape == b.shape and np.array_equal(a, b))
            for a, b in zip(snapshot[2], self._live(code, block, R), strict=True)
        )
