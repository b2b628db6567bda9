"""What runs: a function's steps (Code), one activation of it, threads in it (Group)."""

from collections.abc import Callable

import numpy as np

from ..ptx.constant_loops import UnrolledLoop
from ..ptx.program import Graph, ends_block, multiplies_group, suspends
from ..ptx.ptxas import Habits
from ..ptx.syntax import Instruction, Sym
from .asynchronous.mbarrier_steps import suspended
from .loops import counted_loops, deciding_registers
from .operands import BOOL, blank_register, getter
from .rounds import Foldable, foldable
from .steps import compile_step

POLLING = frozenset(("volatile", "relaxed", "acquire", "mmio"))


class Code:
    """A function made ready to run: the steps of each block, and what ends it.

    `habits` are the assembler's (see `ptxas.annotate`); `local_addresses` are the
    places of the local arrays in an activation's `depot` bytes of the stack. Launches share a Code
    and change nothing in it.
    """

    def __init__(self, graph: Graph, habits: Habits):
        self.graph = graph
        self.function = graph.function
        code = self.function.instructions
        # The names of all variables and functions that it refers to.
        self.symbols: set[str] = {
            base.name
            for i in code
            for operand in i.operands
            if isinstance(base := getattr(operand, "base", operand), Sym)
        }
        self.has_group_products = any(map(multiplies_group, code))
        unset = graph.blocks[0].live_in
        self.blank = [
            blank_register(size, bool(unset >> slot & 1))
            for slot, (_, size) in enumerate(self.function.registers)
        ]
        self.converted, self.unrolled = habits.small_ifs, habits.unrolled
        self.local_addresses: dict[str, int] = {}
        at = 0
        for v in self.function.variables.values():
            if v.space == "local":
                at = -(-at // v.align) * v.align
                self.local_addresses[v.name] = at
                at += v.size
        self.depot = -(-at // 16) * 16
        self.loops = counted_loops(graph)
        # Looks into the machine code for which loops are unrolled, where that is in doubt.
        self.settle: Callable[[], None] | None = None
        self._deciding: dict[int, int | None] = {}
        self._foldable: dict[int, Foldable | None] = {}
        self.ranks = [b.rank for b in graph.blocks]
        self.meetings = [self._meeting(b) for b in graph.blocks]
        self.steps: list[list] = []
        self.ends: list[Instruction | None] = []
        self.guards: list = []
        ends_here = [not b.after for b in graph.blocks]
        leaves = sum(1 << n for n, end in enumerate(ends_here) if end)
        self.endless = [bool(b.reach >> b.index & 1) and not b.reach & leaves for b in graph.blocks]
        for block in graph.blocks:
            body = list(code[block.start : block.end])
            end = body.pop() if body and ends_block(body[-1]) else None
            steps = [compile_step(i, self) for i in body]
            self.steps.append([step for step in steps if step is not None])
            self.ends.append(end)
            guard = end.predicate if end is not None else None
            self.guards.append(getter(end, guard, BOOL) if guard is not None else None)

    def _meeting(self, block):
        """For a block that starts where threads wait: a getter, and the instruction.

        What is got are the lanes that a warp-wide instruction names, or the threads for which an
        mbarrier's phase is not complete (None: nobody).
        """
        if block.start == block.end:
            return None
        i = self.function.instructions[block.start]
        if not suspends(i):
            return None
        if i.opcode == "mbarrier":
            return suspended(i), i
        if i.opcode in ("shfl", "vote", "match", "redux", "elect") and i.operands:
            return getter(i, i.operands[-1], np.dtype(np.uint32)), i
        everyone = np.full(1, 0xFFFFFFFF, np.uint32)
        return (lambda S, R: everyone), i

    def unrolled_whole(self, head: int) -> UnrolledLoop | None:
        """The loop that a block enters, if all its rounds are unrolled and that shows."""
        loop = self.unrolled.get(head)
        if loop is not None and not loop.known:
            self._settle()
        return loop if loop is not None and loop.whole else None

    def unrolled_by_four(self, block: int) -> bool:
        """Whether a counted loop of one block is unrolled by four, two and one."""
        if self.loops[block].unrolled is None:
            self._settle()
        return bool(self.loops[block].unrolled)

    def _settle(self) -> None:
        if self.settle is not None:
            settle, self.settle = self.settle, None
            settle()

    def deciding(self, head: int) -> int | None:
        """What `deciding_registers` says of the loop around a block, remembered."""
        if head not in self._deciding:
            self._deciding[head] = deciding_registers(self.graph, head)
        return self._deciding[head]

    def foldable(self, block: int) -> Foldable | None:
        """What `rounds.foldable` says of the loop of a block, remembered."""
        if block not in self._foldable:
            self._foldable[block] = foldable(self, block)
        return self._foldable[block]

    def polls(self, first: int, last: int) -> bool:
        """Whether the blocks first to last read what other threads may be about to write."""
        low, high = min(first, last), max(first, last)
        blocks = self.graph.blocks
        return any(
            i.opcode in ("atom", "call", "mbarrier")
            or (i.opcode == "ld" and not POLLING.isdisjoint(i.modifiers))
            for i in self.function.instructions[blocks[low].start : blocks[high].end]
        )

    def only_returns(self, block: int) -> bool:
        """Whether nothing but a return stands in a block."""
        b = self.graph.blocks[block]
        return not b.after and b.end - b.start <= 1


class Activation:
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

    def __init__(self, frame: Activation, block: int, mask, visited: int = 0, met: bool = False):
        self.frame, self.block, self.mask, self.visited = frame, block, mask, visited
        self.met = met  # the warp has met for the instruction that the block starts with

    @property
    def key(self) -> tuple:
        """Place in the program: call sites from the outside in, then the block."""
        return self.frame.prefix + (self.frame.code.ranks[self.block],)
