"""Loops that ptxas unrolls by four, then two, then one; and loops that will not end.

Unrolling does not change what a loop does, nor what it costs while all lanes of a warp go round it
equally often. Where they do not, it decides which lanes run together: all with four or more rounds
left take four, then those with two or three left take two, and at the end those with one left.

A loop that will not end is seen before the budget of instructions is spent.
"""

from dataclasses import dataclass

import numpy as np

from ..ptx.program import Block, Graph, destination_count, reads_and_writes
from ..ptx.syntax import Imm, Instruction, Reg
from .operands import getter

# Machine instructions of a loop body up to which it is unrolled, branch included; found by growing
# loops until ptxas 13.0 left them alone. Up to the second number, the machine code is to say.
LARGEST_BODY = 49
LARGEST_DOUBTFUL = 110
# Instructions that keep a loop from being unrolled: they synchronise, or hide a call.
OBSTACLES = frozenset(
    "bar barrier shfl vote match redux activemask atom red call cp ldmatrix stmatrix movmatrix mma "
    "wmma membar fence elect trap ret exit brx mbarrier".split()
)
WEIGHTS = {"mov": 0, "neg": 0, "rem": 20, "div": 20}


@dataclass(slots=True)
class CountedLoop:
    """A loop of one block: how many rounds are left follows from the counter and the bound.

    `unrolled` says whether ptxas unrolls it by four, two and one; None if the body's size does not.
    """

    block: int
    counter: Reg
    step: int
    compare: str
    signed: bool
    bound: object
    tail: Instruction
    after_step: bool  # the comparison sees the counter after it was stepped
    unrolled: bool | None = True

    def rounds(self, S, R) -> np.ndarray | None:
        """Rounds that every thread still makes, counting the one that it is about to begin."""
        i, n = self._counter_and_bound(S, R)
        step, compare = self.step, self.compare
        # the loop goes on after round r (from 1) while compare(i + (r - 1)·step, n)
        if compare == "ne":
            left, never_ends = self._until_equal(n - i)
            if S.mask is not None:
                never_ends = never_ends & S.mask
            if never_ends.any():
                return None
        elif compare in ("lt", "le") and step > 0:
            left = -((i - n) // step) if compare == "lt" else (n - i) // step + 1
        elif compare in ("gt", "ge") and step < 0:
            left = -((n - i) // -step) if compare == "gt" else (i - n) // -step + 1
        else:
            return None
        return np.maximum(left, 0) + 1

    def never_ends(self, S, R) -> np.ndarray | None:
        """Where the counter steps over the bound that it is to equal, again and again."""
        if self.compare != "ne" or self.counter.size != 4:
            return None
        i, n = self._counter_and_bound(S, R)
        return self._until_equal(n - i)[1]

    def _counter_and_bound(self, S, R) -> tuple[np.ndarray, np.ndarray]:
        """The counter as the next comparison sees it, and what it is compared with (int64)."""
        dtype = np.dtype(f"{'i' if self.signed else 'u'}{self.counter.size}")
        i, n = (
            getter(self.tail, operand, dtype)(S, R).astype(np.int64)
            for operand in (self.counter, self.bound)
        )
        return i + (self.step if self.after_step else 0), n

    def _until_equal(self, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps until the counter has gone a distance, and where it never meets it exactly.

        A counter of 32 bits wraps, so it meets any distance that the step's largest power of two
        divides, if only after some rounds about.
        """
        if self.counter.size != 4:
            left = distance // self.step
            return left, (distance % self.step != 0) | (left < 0)
        step = self.step % 2**32
        power = step & -step
        distance = distance & 0xFFFFFFFF
        cycle = 2**32 // power
        inverse = np.uint64(pow(step // power, -1, cycle)) if cycle > 1 else np.uint64(0)
        left = (distance // power).astype(np.uint64) * inverse % np.uint64(cycle)
        return left.astype(np.int64), distance % power != 0


def _weight(i: Instruction) -> int:
    if i.opcode in ("add", "sub") and i.modifiers[-1] in ("s64", "u64"):
        return 2
    if i.opcode in ("div", "rem") and i.modifiers[-1][0] not in "us":
        return 1
    return WEIGHTS.get(i.opcode, 1)


def counted_loops(graph: Graph) -> dict[int, CountedLoop]:
    """The loops of a function that ptxas unrolls, by their block."""
    found = {}
    code = graph.function.instructions
    for block in graph.blocks:
        if block.start < block.end and block.index in block.after:
            loop = _counted(graph, block, code[block.start : block.end])
            if loop is not None:
                found[block.index] = loop
    return found


def _counted(graph: Graph, block: Block, body: list[Instruction]) -> CountedLoop | None:
    branch = body[-1]
    if branch.opcode != "bra" or branch.predicate is None:
        return None
    if graph.target(branch.operands[0].name, branch.line) != block.index:
        return None
    if any(block.start <= at < block.end for at in graph.function.nounroll):
        return None
    if any(
        i.opcode in OBSTACLES
        or (i.opcode in ("div", "sqrt", "rcp") and "rn" in i.modifiers)
        or "volatile" in i.modifiers
        for i in body
    ):
        return None
    weight = sum(map(_weight, body))
    if weight > LARGEST_DOUBTFUL:
        return None
    writers: dict[int, list[int]] = {}
    for place, i in enumerate(body):
        for operand in i.operands[: destination_count(i)]:
            if isinstance(operand, Reg):
                writers.setdefault(operand.slot, []).append(place)
    test = writers.get(branch.predicate.slot, [])
    if len(test) != 1 or body[test[0]].opcode != "setp" or body[test[0]].pair:
        return None
    setp = body[test[0]]
    if len(setp.modifiers) != 2 or setp.modifiers[1] not in ("s32", "u32", "s64", "u64", "b32"):
        return None
    left, right = setp.operands[1], setp.operands[2]
    compare = setp.modifiers[0]
    if branch.predicate.negated:
        compare = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne"}.get(compare)
    if not isinstance(left, Reg) or compare not in ("lt", "le", "gt", "ge", "ne"):
        return None
    if isinstance(right, Reg) and right.slot in writers:
        return None
    loop = _find_step(block, body, writers, left, right, compare, setp, test[0])
    if loop is not None and weight > LARGEST_BODY:
        loop.unrolled = None
    return loop


def _find_step(block, body, writers, left, right, compare, setp, test) -> CountedLoop | None:
    """The counter is stepped by a constant, before or after the comparison, perhaps by a copy."""
    places = writers.get(left.slot, [])
    if len(places) != 1:
        return None
    stepped = body[places[0]]
    if stepped.opcode not in ("add", "sub") or stepped.predicate is not None:
        return None
    source, amount = stepped.operands[1], stepped.operands[2]
    if not isinstance(source, Reg) or not isinstance(amount, Imm):
        return None
    step = int(amount.value) * (-1 if stepped.opcode == "sub" else 1)
    if step == 0:
        return None
    counter = left
    if source.slot != left.slot:
        # next = i + step; …; i = next
        wanted = [source.slot, left.slot]
        moves = (i.operands for i in body if i.opcode == "mov")
        copies = [o for o in moves if [getattr(one, "slot", None) for one in o] == wanted]
        if len(copies) != 1 or len(writers.get(source.slot, [])) != 1:
            return None
        counter = source
    return CountedLoop(
        block.index, counter, step, compare, setp.modifiers[1][0] != "u", right, setp,
        places[0] < test,
    )  # fmt: skip


# ------------------------------------------------------------------ loops that will not end

# What gives a value that registers at the loop's head do not decide alone: memory, other lanes,
# what is called, and the carry flag. A `ld.param` reads what never changes.
_UNDECIDED = frozenset(
    "ld ldu atom tex call shfl vote match redux activemask elect ldmatrix movmatrix mma wmma bar "
    "barrier addc subc madc mbarrier".split()
)


def deciding_registers(graph: Graph, head: int) -> int | None:
    """The registers, as a bit set, that decide which way threads go in the loop around a block.

    They are found backwards from the conditions of its branches. None if one of them also comes
    from memory or from other threads.
    """
    blocks = graph.blocks
    inside = [b for b in blocks if blocks[head].reach >> b.index & 1 and b.reach >> head & 1]
    code = [i for b in inside for i in graph.function.instructions[b.start : b.end]]
    needed = 0
    for i in code:
        if i.opcode in ("bra", "brx", "ret", "exit", "trap"):
            needed |= reads_and_writes(i)[0]
    before = -1
    while before != needed:
        before = needed
        for i in code:
            reads, writes = reads_and_writes(i)
            if writes & needed:
                if i.opcode in _UNDECIDED and "param" not in i.modifiers:
                    return None
                needed |= reads
    return needed


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a register holds what it held before."""
    return a is b or (a.shape == b.shape and np.array_equal(a, b))


def same_way(needed: int | None, live: int, before: list, now: list) -> bool:
    """Whether all that decides the way is as it was one round before: then it stays so for ever.

    Args:
        needed: what `deciding_registers` says.
        live: the registers that are live at the loop's head, as a bit set.
        before, now: their values, in ascending order of the registers.
    """
    if needed is None:
        return False
    slots = (slot for slot in range(live.bit_length()) if live >> slot & 1)
    return all(
        same(a, b) for slot, a, b in zip(slots, before, now, strict=True) if needed >> slot & 1
    )
