"""The schedule: runs a batch of blocks, all threads at once, and lets them diverge and meet again.

Threads that stand at the same place form a group with a mask. The group at the lowest place (in the
order of the program text, callers before callees) runs until it meets or passes another one, so threads
that diverged come together where their paths do. A group with mask None is every thread of
the batch: that is the fast path, and most kernels never leave it for long.
"""

from __future__ import annotations

import numpy as np

from . import calls
from .errors import SimulatorError
from .faults import part_written
from .operands import BOOL, getter, putter, unsupported, zero_register
from .program import WARP_SYNCS, Graph, call_target
from .ptx import Imm, Instruction, Reg, Sym
from .steps import compile_step
from .unrolling import counted_loops
from .waiting import Parked, release


class Code:
    """A function made ready to run: the steps of each block, and what ends it."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.function = graph.function
        code = self.function.instructions
        self.blank = [zero_register(size) for _, size in self.function.registers]
        self.depot = sum(
            v.size + 15 for v in self.function.variables.values() if v.space == "local"
        )
        self.converted: dict[int, list[Instruction]] = {}
        self.loops = counted_loops(graph)
        self.ranks = [b.rank for b in graph.blocks]
        self.meetings = [self._meeting(b) for b in graph.blocks]
        self.steps: list[list] = []
        self.ends: list[Instruction | None] = []
        self.guards: list = []
        ends_here = [not b.after for b in graph.blocks]
        leaves = sum(1 << n for n, end in enumerate(ends_here) if end)
        self.endless = [not (b.reach & leaves) and not ends_here[b.index] for b in graph.blocks]
        for block in graph.blocks:
            body = list(code[block.start : block.end])
            end = body.pop() if body and _is_end(body[-1]) else None
            steps = []
            for i in body:
                step = compile_step(i, self)
                if step is not None:
                    steps.append((step, i))
            self.steps.append(steps)
            self.ends.append(end)
            guard = end.predicate if end is not None else None
            self.guards.append(getter(end, guard, BOOL) if guard is not None else None)

    def _meeting(self, block):
        """For a block that starts with a warp-wide instruction: its getter of the named lanes."""
        if block.start == block.end:
            return None
        i = self.function.instructions[block.start]
        if i.opcode not in WARP_SYNCS or "sync" not in i.modifiers:
            return None
        if i.opcode in ("shfl", "vote", "match", "redux", "elect") and i.operands:
            return getter(i, i.operands[-1], np.dtype(np.uint32)), i
        everyone = np.full(1, 0xFFFFFFFF, np.uint32)
        return (lambda S, R: everyone), i

    def only_returns(self, block: int) -> bool:
        """Whether nothing but a return stands in a block."""
        b = self.graph.blocks[block]
        return not b.after and b.end - b.start <= 1


def _is_end(i: Instruction) -> bool:
    from .program import ends_block

    return ends_block(i)


class Frame:
    """One activation of a function: its registers and call parameters."""

    __slots__ = ("code", "registers", "params", "parent", "call", "prefix", "depot", "carry")

    def __init__(self, code: Code, params=None, parent=None, call=None, prefix=(), depot=0):
        self.code, self.params = code, params if params is not None else {}
        self.registers = list(code.blank)
        self.parent, self.call, self.prefix, self.depot = parent, call, prefix, depot
        self.carry = np.zeros(1, BOOL)


class Group:
    """Threads (a mask; None for all) that stand at the start of a block of a frame."""

    __slots__ = ("frame", "block", "mask", "visited", "met")

    def __init__(self, frame: Frame, block: int, mask, visited: int = 0, met: bool = False):
        self.frame, self.block, self.mask, self.visited = frame, block, mask, visited
        self.met = met  # the warp has met for the instruction that the block starts with

    @property
    def key(self) -> tuple:
        """Place in the program: call sites from the outside in, then the block."""
        return self.frame.prefix + (self.frame.code.ranks[self.block],)


class Machine:
    """Runs the batches of one launch. `S` is the batch in progress."""

    def __init__(self, S, entry: Code, max_steps: int):
        self.S, self.entry, self.max_steps = S, entry, max_steps
        self.groups: list[Group] = []
        self.parked: list[Parked] = []
        self.spinning: list[tuple[Group, int]] = []

    def run(self) -> None:
        """Run the batch to its end."""
        S = self.S
        S.exited = False
        self.steps_left = self.max_steps
        self.groups = [Group(Frame(self.entry), 0, None)]
        while self.groups or self.parked or self.spinning:
            if self.spinning and (not self.groups or S.writes != self.spinning[0][1]):
                self._wake_spinning()
            if not self.groups:
                self.groups = release(S, self.parked)
                self._restore_full()
                continue
            self._run_lowest()

    def _wake_spinning(self) -> None:
        S = self.S
        if not self.groups and all(at == S.writes for _, at in self.spinning):
            group = self.spinning[0][0]
            self._endless(group, group.frame.code.ends[group.block], "waits for ever")
        self.groups += [g for g, _ in self.spinning]
        self.spinning = []

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
            if code.endless[block] and prefix == ():
                self._endless(Group(frame, block, group.mask), code.ends[block], "has no way out")
            if S.counting:
                S.tally.block((id(code), block), *S.active_numbers(group.mask))
            if watch:
                group.visited |= 1 << block
            for step, i in steps:
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
                    if repeats & (repeats - 1) == 0:
                        snapshot = (following, S.writes, self._live(code, following, R))
                    elif snapshot is not None and snapshot[0] == following:
                        if self._unchanged(snapshot, code, following, R):
                            group.block = following
                            self.spinning.append((group, S.writes))
                            return
                        if repeats & 15 == 0:
                            snapshot = None
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

    @staticmethod
    def _live(code: Code, block: int, R: list) -> list:
        live = code.graph.blocks[block].live_in
        return [R[n] for n in range(len(R)) if live >> n & 1]

    def _unchanged(self, snapshot, code, block, R) -> bool:
        if snapshot[1] != self.S.writes:
            return False
        return all(
            a is b or (a.shape == b.shape and np.array_equal(a, b))
            for a, b in zip(snapshot[2], self._live(code, block, R), strict=True)
        )

    # ------------------------------------------------------------------ ends of blocks

    def _branch(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        """The next block, or None when the group split up (its parts are queued)."""
        S = self.S
        target = code.graph.target(end.operands[0].name, end.line)
        guard = code.guards[block]
        if guard is None:
            return target
        p = guard(S, R)
        if S.counting and block in code.converted:
            S.tally.converted(S, code.converted[block], group.mask)
        if p.size == 1:
            return target if p.item() else block + 1
        mask = group.mask
        if mask is None:
            taken, stay = p, ~p
        else:
            taken, stay = mask & p, mask & ~p
        if not stay.any():
            return target
        if not taken.any():
            return block + 1
        if S.counting:
            S.tally.diverged(S, end, taken, stay)
        self.groups.append(Group(group.frame, target, taken, group.visited))
        self.groups.append(Group(group.frame, block + 1, stay, group.visited))
        return None

    def _end(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        guard = code.guards[block]
        if guard is not None:
            p = guard(S, R)
            taken = p if group.mask is None else group.mask & p
            if not taken.any():
                return block + 1
            stay = ~p if group.mask is None else group.mask & ~p
            if stay.any():
                self.groups.append(Group(group.frame, block + 1, stay, group.visited))
                part = Group(group.frame, block, taken, group.visited)
                self._enter(part)
                following = self._carry_out(part, code, block, end, R)
                if following is not None:
                    self.groups.append(Group(group.frame, following, taken, part.visited))
                return None
        return self._carry_out(group, code, block, end, R)

    def _carry_out(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        op = end.opcode
        if op in ("ret", "exit"):
            self._leave(group, block, everywhere=op == "exit")
            return None
        if op == "trap":
            where = S.layout.locate(np.ones(1, BOOL) if group.mask is None else group.mask)
            raise SimulatorError(
                "trap",
                f"{S.entry}, line {end.line}: thread {where[1]} of block {where[0]} ran into a trap "
                f"instruction (__trap(), or code that the compiler found unreachable)."
                f"{part_written(S)}",
                end.line,
            )
        if op == "brx":
            self._indexed_branch(group, code, end, R)
            return None
        if op == "call":
            return self._call(group, code, block, end, R)
        return self._barrier(group, code, block, end, R)

    def _leave(self, group: Group, block: int, everywhere: bool = False) -> None:
        frame = group.frame
        if frame.parent is None or everywhere:
            if self.parked:
                self._check_bypass(group, block)
            if self.groups or self.parked or self.spinning:
                self.S.exited = True
            return
        parent, (_, after, results, names) = frame.parent, frame.call
        for result, name in zip(results, names, strict=False):
            self._hand_back(frame.params.get(name, {}), parent, result, group.mask)
        self.groups.append(Group(parent, after, group.mask, group.visited))

    def _hand_back(self, values: dict, parent: Frame, result, mask) -> None:
        entries = parent.params.setdefault(result.name, {})
        for key, value in values.items():
            old = entries.get(key)
            if mask is not None and old is not None and old.dtype == value.dtype:
                value = np.where(mask, value, old)
            entries[key] = value

    def _indexed_branch(self, group: Group, code: Code, end: Instruction, R) -> None:
        S = self.S
        index = getter(end, end.operands[0], np.dtype(np.uint32))(S, R)
        labels = code.function.tables[end.operands[1].name]
        mask = np.ones(1, BOOL) if group.mask is None else group.mask
        whole = group.mask is None and index.size == 1
        for n, label in enumerate(labels):
            here = (index == n) & mask
            if here.any():
                target = code.graph.target(label, end.line)
                self.groups.append(
                    Group(group.frame, target, None if whole else here, group.visited)
                )

    def _call(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        results, function, arguments = call_target(end)
        if isinstance(function, Reg):
            return self._indirect_call(group, block, end, R, results, function, arguments)
        return self._call_named(group, block, end, function.name, results, arguments)

    def _call_named(self, group, block, end, name, results, arguments) -> int | None:
        S = self.S
        arguments = arguments.items if arguments is not None else ()
        results = results.items if results is not None else ()
        params = group.frame.params
        builtin = calls.BUILTIN.get(name)
        if builtin is not None:
            values = [params[a.name][0] for a in arguments]
            out = builtin(S, end, values)
            for r in results:
                params.setdefault(r.name, {})[0] = out
            return block + 1
        callee = S.functions.get(name)
        if callee is None:
            raise unsupported(end, f"does not have the device function {name}")
        passed = {}
        for param, argument in zip(callee.function.params, arguments, strict=True):
            if isinstance(argument, Sym):
                passed[param.name] = dict(params.get(argument.name, {}))
            else:
                get = getter(end, argument, np.dtype(f"u{max(param.size, 1)}"))
                passed[param.name] = {0: get(S, group.frame.registers)}
        depot = group.frame.depot + group.frame.code.depot
        S.reserve_local(depot + callee.depot, end)
        frame = Frame(
            callee, passed, group.frame,
            (block, block + 1, results, [r.name for r in callee.function.returns]),
            group.frame.prefix + (group.frame.code.ranks[block],), depot,
        )  # fmt: skip
        if len(frame.prefix) > 512:
            raise SimulatorError(
                "endless_loop",
                f"{S.entry}, line {end.line}: {name} calls itself more than 512 deep; give the "
                f"recursion an end.{part_written(S)}",
                end.line,
            )
        self.groups.append(Group(frame, 0, group.mask, group.visited))
        return None

    def _indirect_call(self, group, block, end, R, results, function, arguments):
        S = self.S
        address = getter(end, function, np.dtype(np.int64))(S, R)
        mask = np.ones(1, BOOL) if group.mask is None else group.mask
        names = S.function_addresses
        for name, place in names.items():
            here = (address == place) & mask
            if here.any():
                part = Group(group.frame, block, here, group.visited)
                if group.mask is None and address.size == 1:
                    part.mask = None
                following = self._call_named(part, block, end, name, results, arguments)
                if following is not None:
                    self.groups.append(Group(group.frame, following, part.mask, group.visited))
        return None

    def _barrier(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        operands = list(end.operands)
        red = next((m for m in ("popc", "and", "or") if m in end.modifiers), None)
        destination = operands.pop(0) if "red" in end.modifiers else None
        warp = "warp" in end.modifiers
        number = getter(end, operands[0], np.dtype(np.uint32))(S, R) if operands else None
        rest = operands[1:]
        predicate = None
        if "red" in end.modifiers:
            predicate = getter(end, rest.pop(), BOOL)(S, R)
        count = int(getter(end, rest[0], np.dtype(np.uint32))(S, R).flat[0]) if rest else None
        parked = Parked(
            Group(group.frame, block + 1, group.mask),
            "warp" if warp else int(number.flat[0]) if number is not None else 0,
            count, end, block, number if warp else None, predicate, red,
            putter(end, destination) if destination is not None else None,
        )  # fmt: skip
        if "arrive" in end.modifiers:
            S.arrived.append(parked)
            return block + 1
        alone = not self.groups and not self.parked and not self.spinning and not S.arrived
        if warp and (alone or self._warps_complete(group, number)):
            return block + 1
        if alone and destination is None and (count is None or group.mask is None):
            group.visited = 0
            return block + 1
        self.parked.append(parked)
        return None

    def _warps_complete(self, group: Group, members) -> bool:
        """Whether no other thread of the group's warps is expected at a warp barrier."""
        layout = self.S.layout
        here = layout.lanes(group.mask, fill=False)
        named = layout.lanes(members.view(np.uint32))
        named = (named >> np.arange(32, dtype=np.uint32)) & np.uint32(1) != 0
        named = named & here.any(axis=-1, keepdims=True)
        others = self.groups + [p.group for p in self.parked] + [g for g, _ in self.spinning]
        return not any(
            (layout.lanes(o.mask, fill=False) & named).any() for o in others if o is not group
        )

    # ------------------------------------------------------------------ faults

    def _check_bypass(self, group: Group, block: int) -> None:
        """Threads left the kernel while others of their block wait at a barrier they went around."""
        S = self.S
        code = group.frame.code
        for parked in self.parked:
            if parked.barrier == "warp" or parked.group.frame is not group.frame:
                continue
            shared = code.graph.blocks[parked.block].post
            for n in range(len(code.steps)):
                if shared >> n & 1 and code.only_returns(n):
                    shared &= ~(1 << n)
            went_around = group.visited & shared
            if not went_around and not code.only_returns(parked.group.block):
                continue
            both = S.layout.blocks_of(group.mask) & S.layout.blocks_of(parked.group.mask)
            if not both.any():
                continue
            waiting = S.layout.locate(
                both if parked.group.mask is None else parked.group.mask & both
            )
            left = S.layout.locate(both if group.mask is None else group.mask & both)
            raise SimulatorError(
                "barrier",
                f"{S.entry}, line {parked.instruction.line}: thread {waiting[1]} of block {waiting[0]} "
                f"waits at a barrier that thread {left[1]} never reaches: move the barrier out of the "
                f"branch or loop, so that every thread of the block passes it.{part_written(S)}",
                parked.instruction.line,
            )

    def _endless(self, group: Group, end: Instruction | None, why: str | None) -> None:
        S = self.S
        code = group.frame.code
        b = code.graph.blocks[group.block]
        lines = [i.line for i in code.function.instructions[b.start : b.end] if i.line]
        line = end.line if end is not None and end.line else (lines[0] if lines else None)
        block, thread = S.layout.locate(np.ones(1, BOOL) if group.mask is None else group.mask)
        reason = why or f"has not ended after {self.max_steps:,} instructions"
        more = "" if why else ", or give launch() a larger max_steps"
        raise SimulatorError(
            "endless_loop",
            f"{S.entry}, line {line}: the loop {reason} (thread {thread} of block {block}); check the "
            f"condition that should end it{more}.{part_written(S)}",
            line,
        )


__all__ = ["Code", "Frame", "Group", "Imm", "Machine"]
