"""What ends a block: branches, calls, returns, barriers; and the faults of control flow."""

import numpy as np

from ..errors import SimulatorError
from ..limits import LANES
from ..ptx.program import call_target
from ..ptx.syntax import Instruction, Reg, Sym
from .code import Activation, Code, Group
from .faults import everyone, fault, part_written, plain_name, where
from .operands import BOOL, getter, putter
from .params import store
from .printf import BUILTIN
from .waiting import Parked


def _split(mask, p) -> tuple[np.ndarray, np.ndarray]:
    """The threads of a mask for which a predicate holds, and the others."""
    return (p, ~p) if mask is None else (mask & p, mask & ~p)


def _first(values: np.ndarray, group: Group) -> int:
    """The value of the first thread of a group."""
    values, here = np.broadcast_arrays(values, everyone(group.mask))
    return int(values[here][0])


class Branching:
    """The half of `Machine` that deals with the ends of blocks."""

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
        taken, stay = _split(group.mask, p)
        if not stay.any():
            return target
        if not taken.any():
            return block + 1
        if S.counting:
            S.tally.diverged(S, end, taken, stay)
        self._queue(group, target, taken)
        self._queue(group, block + 1, stay)
        return None

    def _queue(self, group: Group, block: int, mask) -> None:
        """Let a part of a group, or all of it, go on at another block when its turn comes."""
        self.groups.append(Group(group.frame, block, mask, group.visited))

    def _end(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        guard = code.guards[block]
        if guard is not None:
            taken, stay = _split(group.mask, guard(S, R))
            if not taken.any():
                return block + 1
            if stay.any():
                self._queue(group, block + 1, stay)
                part = Group(group.frame, block, taken, group.visited)
                self._enter(part)
                following = self._carry_out(part, code, block, end, R)
                if following is not None:
                    self._queue(part, following, taken)
                return None
        return self._carry_out(group, code, block, end, R)

    def _carry_out(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        S = self.S
        op = end.opcode
        if op in ("ret", "exit"):
            self._leave(group, block, everywhere=op == "exit")
            return None
        if op == "trap":
            raise SimulatorError(
                "trap",
                f"{S.entry}{f', line {end.line}' if end.line else ''}: "
                f"{where(S, everyone(group.mask))} ran into a trap instruction (__trap(), or code "
                f"that the compiler found unreachable).{part_written(S)}",
                end.line,
            )
        if op == "brx":
            self._indexed_branch(group, code, end, R)
            return None
        if op == "call":
            results, function, arguments = call_target(end)
            if isinstance(function, Reg):
                return self._indirect_call(group, block, end, R, results, function, arguments)
            return self._call_named(group, block, end, function.name, results, arguments)
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
            entries = parent.params.setdefault(result.name, {})
            for key, value in frame.params.get(name, {}).items():
                store(entries, key, value, group.mask)
        self.groups.append(Group(parent, after, group.mask, group.visited))

    def _indexed_branch(self, group: Group, code: Code, end: Instruction, R) -> None:
        S = self.S
        index = getter(end, end.operands[0], np.dtype(np.uint32))(S, R)
        labels = code.function.tables[end.operands[1].name]
        mask = everyone(group.mask)
        whole = group.mask is None and index.size == 1
        for n, label in enumerate(labels):
            here = (index == n) & mask
            if here.any():
                target = code.graph.target(label, end.line)
                self._queue(group, target, None if whole else here)

    def _call_named(self, group, block, end, name, results, arguments) -> int | None:
        S = self.S
        arguments, results = (v.items if v is not None else () for v in (arguments, results))
        params = group.frame.params
        builtin = BUILTIN.get(name)
        if builtin is not None:
            values = [params[a.name][0] for a in arguments]
            out = builtin(S, end, values)
            for r in results:
                params.setdefault(r.name, {})[0] = out
            return block + 1
        callee = S.functions.get(name)
        if callee is None:
            if "cudaCDP" in name or name.startswith("cudaLaunchDevice"):
                why = "a kernel cannot launch kernels here: launch them from Python, one after the "
                raise SimulatorError("unsupported", f"line {end.line}: {why}other.", end.line)
            raise end.unsupported(f"does not have the device function {plain_name(name)}")
        passed = {}
        for param, argument in zip(callee.function.params, arguments, strict=True):
            if isinstance(argument, Sym):
                passed[param.name] = dict(params.get(argument.name, {}))
            else:
                get = getter(end, argument, np.dtype(f"u{max(param.size, 1)}"))
                passed[param.name] = {0: get(S, group.frame.registers)}
        depot = group.frame.depot + group.frame.code.depot
        S.reserve_local(depot + callee.depot, end)
        frame = Activation(
            callee, passed, group.frame,
            (block, block + 1, results, [r.name for r in callee.function.returns]),
            group.frame.prefix + (group.frame.code.ranks[block],), depot,
        )  # fmt: skip
        if len(frame.prefix) > 512:
            raise fault(
                S, end.line, "endless_loop", f"{plain_name(name)} calls itself more than 512 deep; "
                "give the recursion an end.",
            )  # fmt: skip
        self.groups.append(Group(frame, 0, group.mask, group.visited))
        return None

    def _indirect_call(self, group, block, end, R, results, function, arguments):
        S = self.S
        address = getter(end, function, np.dtype(np.int64))(S, R)
        mask = everyone(group.mask)
        lost = mask
        for name, place in S.function_addresses.items():
            here = (address == place) & mask
            lost = lost & ~here
            if here.any():
                part = Group(group.frame, block, here, group.visited)
                if group.mask is None and address.size == 1:
                    part.mask = None
                following = self._call_named(part, block, end, name, results, arguments)
                if following is not None:
                    self._queue(group, following, part.mask)
        if lost.any():
            raise fault(
                S, end.line, "out_of_bounds", f"{where(S, lost)} calls through a pointer that is "
                "no function's; give it one first.",
            )  # fmt: skip
        return None

    def _barrier(self, group: Group, code: Code, block: int, end: Instruction, R) -> int | None:
        """Threads that name several barriers in one instruction come to each of them apart."""
        at = 1 if "red" in end.modifiers else 0  # behind a destination
        if "warp" in end.modifiers or len(end.operands) <= at:
            return self._come(group, block, end, R)
        number = getter(end, end.operands[at], np.dtype(np.uint32))(self.S, R)
        mask = everyone(group.mask)
        numbers, here = np.broadcast_arrays(number, mask)
        named = np.unique(numbers[here]) if number.size > 1 else number
        if len(named) == 1:
            return self._come(group, block, end, R)
        for one in named:
            part = Group(group.frame, block, (number == one) & mask, group.visited)
            self._enter(part)
            following = self._come(part, block, end, R, apart=True)
            if following is not None:
                self._queue(part, following, part.mask)
        return None

    def _come(self, group: Group, block: int, end: Instruction, R, apart=False) -> int | None:
        """Threads come to one barrier; `apart` from others, which come to another."""
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
        count = _first(getter(end, rest[0], np.dtype(np.uint32))(S, R), group) if rest else None
        parked = Parked(
            Group(group.frame, block + 1, group.mask),
            "warp" if warp else _first(number, group) if number is not None else 0,
            count, end, block, number if warp else None, predicate, red,
            putter(end, destination) if destination is not None else None,
        )  # fmt: skip
        if S.counting and not warp:
            S.tally.arrives(S, end, group.mask)
        if "arrive" in end.modifiers:
            S.arrived.append(parked)
            return block + 1
        if warp and S.sanitizer is not None:
            S.sanitizer.named(S, end, group.mask, number)
        alone = not (apart or self.groups or self.parked or self.spinning or S.arrived)
        if warp and (alone or self._warps_complete(group, number)):
            if S.sanitizer is not None:
                S.sanitizer.warp_barrier(S, group.mask, number)
            return block + 1
        if alone and destination is None and (count is None or group.mask is None):
            group.visited = 0
            if S.sanitizer is not None:
                S.sanitizer.block_barrier(S, group.mask)
            return block + 1
        self.parked.append(parked)
        return None

    def _warps_complete(self, group: Group, members) -> bool:
        """Whether no other thread of the group's warps is expected at a warp barrier."""
        layout = self.S.layout
        here = layout.lanes(group.mask, fill=False)
        named = layout.lanes(members.view(np.uint32))
        named = (named >> np.arange(LANES, dtype=np.uint32)) & np.uint32(1) != 0
        named = named & here.any(axis=-1, keepdims=True)
        others = self.groups + [p.group for p in self.parked] + [g for g, _ in self.spinning]
        return not any(
            (layout.lanes(o.mask, fill=False) & named).any() for o in others if o is not group
        )

    # ------------------------------------------------------------------ faults

    def _check_bypass(self, group: Group, block: int) -> None:
        """Threads left the kernel and went around a barrier at which others of their block wait."""
        S = self.S
        code = group.frame.code
        for parked in self.parked:
            if not isinstance(parked.barrier, int) or parked.group.frame.code is not code:
                continue
            if parked.count is not None:
                continue  # it is not for all threads of the block
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
            _, left = S.layout.locate(everyone(group.mask) & both)
            raise fault(
                S, parked.instruction.line, "barrier",
                f"{where(S, everyone(parked.group.mask) & both)} waits at a barrier that thread "
                f"{left} never reaches: move the barrier out of the branch or loop, so that every "
                "thread of the block passes it.",
            )  # fmt: skip

    def _endless(
        self, group: Group, end: Instruction | None, why: str | None, budget: bool = False
    ) -> None:
        """Stop at a loop without an end; `budget`: a larger number of steps might end it."""
        S = self.S
        code = group.frame.code
        b = code.graph.blocks[group.block]
        lines = [i.line for i in code.function.instructions[b.start : b.end] if i.line]
        line = end.line if end is not None and end.line else (lines[0] if lines else None)
        reason = why or f"has not ended after {self.max_steps:,} instructions"
        more = ", or let more threads share the work, or give it less (launch() takes max_steps)"
        more = "" if why and not budget else more
        raise fault(
            S, line, "endless_loop", f"the loop {reason} ({where(S, everyone(group.mask))}); check "
            f"the condition that should end it{more}.",
        )  # fmt: skip
