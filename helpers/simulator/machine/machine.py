"""The schedule: runs a batch of blocks, all threads at once, and lets them diverge and meet again.

Threads that stand at the same place form a group with a mask. The group at the lowest place (in the
order of the program text, callers before callees) runs until it meets or passes another one, so
threads that diverged come together where their paths do. A group with mask None is every thread of
the batch: that is the fast path, and most kernels never leave it for long.
"""

import traceback
from dataclasses import dataclass, field

import numpy as np

from ..limits import LANES
from ..ptx.constant_loops import UnrolledLoop
from .code import Activation, Code, Group
from .control import Branching
from .faults import everyone
from .loops import same, same_way
from .matrix.wgmma_steps import whole_warpgroups
from .rounds import FEWEST, SPEED, TOGETHER, fold
from .waiting import Parked, release

_GROUP_WARPS = 4
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


@dataclass(slots=True)
class LoopWatch:
    """What a group that goes round and round saw at an earlier round."""

    head: int | None = None  # the loop's first block, if the rest stands for it
    writes: int = 0
    live: list = field(default_factory=list)


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
        """All threads at the first instruction; as one group, or a group a warp or warpgroup.

        Warps that run one after another have frames of their own, so that they never join; the
        place of a warp's group starts with its turn.
        """
        S = self.S
        if S.schedule == "lockstep" or S.layout.warps == 1:
            return [Group(Activation(self.entry), 0, None)]
        warp = S.layout.thread_index // LANES
        if any(code.has_group_products for code in S.functions.values()):
            warp //= _GROUP_WARPS  # they multiply with one another's registers
        turns = list(range(int(warp.max()) + 1))
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
        """Run a group until it ends, waits, splits up or comes to the place of another one."""
        S = self.S
        limit = min((g.key for g in self.groups), default=None)
        self._enter(group)
        code, R, prefix = group.frame.code, group.frame.registers, group.frame.prefix
        ranks, meetings, loops = code.ranks, code.meetings, code.loops
        block, before = group.block, -1
        rounds, watch = 0, None
        while True:
            if meetings[block] is not None and self._waits(group, code, block, R):
                return
            group.met = False
            first_round = S.counting and block != before
            before = block
            if first_round and (whole := code.unrolled_whole(block)) is not None:
                self._run_whole(group, code, whole, R)
                following = whole.after
            elif first_round and block in loops and self._unrolled(group, code, block, R):
                following = block + 1
            else:
                following = self._run_block(group, code, block, R)
                if following is None:
                    return
                if ranks[following] <= ranks[block]:
                    rounds += 1
                    if rounds & 31 == 0 and following == block and self._folded(code, block, R):
                        watch = None
                    elif rounds >= 32:
                        watch = watch or LoopWatch()
                        if self._gives_way(watch, rounds, group, block, following):
                            return
            block = following
            if limit is not None and prefix + (ranks[block],) >= limit:
                group.block = block
                self.groups.append(group)
                return

    def _waits(self, group: Group, code: Code, block: int, R) -> bool:
        """Park a group at a warp-wide instruction to which other lanes have yet to come.

        Or those of its threads for which the phase of an mbarrier has yet to complete.
        """
        if group.met:
            return False
        get, i = code.meetings[block]
        if i.opcode == "mbarrier":
            return self._wait_for_phase(group, block, i, get, R)
        if group.mask is None:
            return False
        if i.opcode == "wgmma":
            return self._wait_for_group(group, block, i)
        named = get(self.S, R)
        if self._warps_complete(group, named):
            return False
        waits = Group(group.frame, block, group.mask, group.visited, met=True)
        self.parked.append(Parked(waits, "warp", None, i, block, named))
        return True

    def _wait_for_group(self, group: Group, block: int, i) -> bool:
        """Park a group in front of a product if a part of a warpgroup is missing in it."""
        if whole_warpgroups(self.S, i, group.mask)[1]:
            return False
        waits = Group(group.frame, block, group.mask, group.visited, met=True)
        self.parked.append(Parked(waits, "warpgroup", None, i, block))
        return True

    def _wait_for_phase(self, group: Group, block: int, i, get, R) -> bool:
        waiting = get(self.S, R)
        if waiting is None:
            return False
        go = everyone(group.mask) & ~waiting
        if not go.any():
            waiting = group.mask
        waits = Group(group.frame, block, waiting, group.visited, met=True)
        self.parked.append(Parked(waits, "phase", None, i, block, still=get))
        if go.any():
            self.groups.append(Group(group.frame, block, go, group.visited, met=True))
        return True

    def _run_block(self, group: Group, code: Code, block: int, R) -> int | None:
        """Run one block; the one that follows, or None if the group does not go on as it is."""
        S = self.S
        steps = code.steps[block]
        self.steps_left -= len(steps) + 1
        S.issued = self.max_steps - self.steps_left
        if self.steps_left < 0:
            self._endless(Group(group.frame, block, group.mask), code.ends[block], None)
        if code.endless[block] and group.frame.parent is None:
            self._endless(Group(group.frame, block, group.mask), code.ends[block], "has no way out")
        if S.counting:
            S.tally.runs(S, code, block, group.mask)
        if self.parked:
            group.visited |= 1 << block
        for step in steps:
            step(S, R)
        end = code.ends[block]
        if end is None:
            if block + 1 < len(code.steps):
                return block + 1
            self._leave(group, block)
            return None
        if end.opcode == "bra":
            return self._branch(group, code, block, end, R)
        group.block = block
        return self._end(group, code, block, end, R)

    def _gives_way(self, watch: LoopWatch, rounds: int, group: Group, block, following) -> bool:
        """After many rounds: whether others are to have a turn first. Raises for endless loops.

        What the loop sees is kept at the rounds 32, 64, 128 …, and compared with later rounds.
        """
        S, code = self.S, group.frame.code
        if rounds == 32 and following in code.loops:
            self._check_rounds(Group(group.frame, following, group.mask))
        R, seen_at = group.frame.registers, None
        if rounds & (rounds - 1) == 0:
            watch.head, watch.writes = following, S.writes
            watch.live = self._live(code, following, R)
        elif watch.head == following:
            now = self._live(code, following, R)
            if watch.writes == S.writes and all(map(same, watch.live, now)):
                seen_at = S.writes
            else:
                self._check_ways(watch.live, now, Group(group.frame, block, group.mask), following)
                if rounds & 15 == 0:
                    watch.head = None
        if seen_at is None and (rounds % PATIENCE or not self._must_yield(code, following, block)):
            return False
        group.block = following
        self.spinning.append((group, seen_at))
        return True

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

    def _unrolled(self, group: Group, code: Code, block: int, R) -> bool:
        """Run a loop as ptxas unrolls it, if its lanes go round unequally often.

        By four while four rounds are left, then by two, then one.
        """
        rounds = self._uneven_rounds(code, block, R)
        if rounds is None or not code.unrolled_by_four(block):
            return False
        S = self.S
        S.keep = -1
        every = everyone(group.mask)
        for chunk in (4, 2, 1):
            while (mask := every & (rounds >= chunk)).any():
                S.mask = mask
                for _ in range(chunk):
                    self.steps_left -= len(code.steps[block]) + 1
                    S.tally.runs(S, code, block, mask)
                    for step in code.steps[block]:
                        step(S, R)
                if self.steps_left < 0:
                    self._endless(Group(group.frame, block, mask), code.ends[block], None)
                rounds = np.where(mask, rounds - chunk, rounds)
        self._enter(group)
        return True

    def _run_whole(self, group: Group, code: Code, loop: UnrolledLoop, R) -> None:
        """Run a loop whose rounds are all unrolled, so that loads of several rounds are joined."""
        S = self.S
        kept = {id(i): (i, i.plan) for _, plans in loop.path for i, _ in plans}
        for at, plans in loop.path:
            for i, plan in plans:
                i.plan = plan
            self.steps_left -= len(code.steps[at]) + 1
            if self.steps_left < 0:
                self._endless(Group(group.frame, at, group.mask), code.ends[at], None)
            S.tally.runs(S, code, at, group.mask)
            for step in code.steps[at]:
                step(S, R)
        for i, plan in kept.values():
            i.plan = plan

    def _folded(self, code: Code, block: int, R) -> bool:
        """Run many rounds of a loop at once, if few threads go round it (see `rounds`)."""
        S = self.S
        if S.sanitizer is not None or S.layout.nblocks * S.layout.nthreads > TOGETHER // FEWEST:
            return False
        loop = code.foldable(block)
        if loop is None:
            return False
        if block in code.loops:
            self._check_rounds(Group(S.frame, block, S.mask), budget=False)
        cost = len(code.steps[block]) + 1
        done = fold(S, R, loop, SPEED * self.steps_left // cost)
        self.steps_left -= done * cost // SPEED
        return done > 0

    def _must_yield(self, code: Code, first: int, last: int) -> bool:
        """Whether a loop that counts its rounds may be waiting for threads that wait for it."""
        others = self.groups or self.parked or self.spinning
        return bool(others) and code.polls(first, last)

    @staticmethod
    def _live(code: Code, block: int, R: list) -> list:
        live = code.graph.blocks[block].live_in
        return [R[n] for n in range(len(R)) if live >> n & 1]

    def _check_rounds(self, group: Group, budget: bool = True) -> None:
        """Stop at a counted loop that never ends, or not within the `budget` of steps left."""
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
        if budget and most * (len(code.steps[block]) + 1) > self.steps_left:
            self._endless(
                group, code.ends[block],
                f"needs more than the {self.max_steps:,} instructions that a launch may take",
                budget=True,
            )  # fmt: skip

    def _check_ways(self, before: list, now: list, group: Group, following: int) -> None:
        """A loop in which nothing changes what its branches test will not end."""
        code = group.frame.code
        live = code.graph.blocks[following].live_in
        if same_way(code.deciding(following), live, before, now):
            self._endless(
                group, code.ends[group.block], "goes on for ever: nothing in it changes what its "
                "condition tests",
            )  # fmt: skip
