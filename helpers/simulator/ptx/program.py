"""A function's control flow: basic blocks, what is live where, and who post-dominates whom.

Sets of registers and of blocks are Python integers used as bit sets. A block ends at a branch, and
also behind every instruction at which threads may have to wait for others (barriers) or go
elsewhere (calls), so that a waiting thread always stands at the start of a block.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..errors import SimulatorError
from .syntax import Function, Imm, Instruction, Mem, Part, Reg, Sym, Vec

# Instructions whose first operand is not a destination.
NO_DESTINATION = frozenset(
    "st red bra brx bar barrier ret exit trap brkpt call membar fence prefetch prefetchu stmatrix "
    "cp nanosleep discard applypriority griddepcontrol pmevent setmaxnreg".split()
)
ENDS_BLOCK = frozenset("bra brx ret exit trap call bar barrier".split())
# Instructions at which the named lanes of a warp wait for each other.
WARP_SYNCS = frozenset("shfl vote match redux elect ldmatrix stmatrix movmatrix mma wmma".split())
_MBARRIER_RESULTS = frozenset("arrive arrive_drop test_wait try_wait pending_count".split())
_LESSER_FENCES = frozenset(("cta", "proxy", "mbarrier_init"))


def destination_count(i: Instruction) -> int:
    """How many leading operands the instruction writes."""
    if i.opcode == "wmma" and i.modifiers[0] == "store":
        return 0
    if i.opcode == "wgmma":
        return int(multiplies_group(i))
    if i.opcode == "mbarrier":
        return 1 if i.modifiers[0] in _MBARRIER_RESULTS else 0
    if i.opcode in NO_DESTINATION:
        # bar.red has a destination; cp, bar.sync, ... have none
        return 1 if i.opcode in ("bar", "barrier") and "red" in i.modifiers else 0
    return 2 if i.pair else 1


def multiplies_group(i: Instruction) -> bool:
    """Whether a whole warpgroup meets at an instruction: a product of it."""
    return i.opcode == "wgmma" and i.modifiers[0] == "mma_async"


def union(sets: Iterable[int]) -> int:
    """The union of bit sets."""
    return functools.reduce(operator.or_, sets, 0)


def _registers(operand) -> int:
    if isinstance(operand, Reg):
        return 1 << operand.slot
    if isinstance(operand, Imm):
        return 0
    if isinstance(operand, Vec):
        return union(map(_registers, operand.items))
    if isinstance(operand, Mem):
        return _registers(operand.base)
    if isinstance(operand, Part):
        return 1 << operand.register.slot
    return 0


def reads_and_writes(i: Instruction) -> tuple[int, int]:
    """Bit sets of the registers that an instruction reads and writes."""
    n = destination_count(i)
    reads = writes = 0
    for place, operand in enumerate(i.operands):  # asked for every instruction of every kernel
        if place < n:
            writes |= _registers(operand)
        else:
            reads |= _registers(operand)
    if i.opcode == "wgmma" and n:
        reads |= writes  # D is what is added to
    if i.predicate is not None:
        reads |= 1 << i.predicate.slot
    if i.opcode == "call" and isinstance(i.operands[0], Vec) and len(i.operands) > 1:
        writes |= _registers(i.operands[0])  # results given in registers
    return reads, writes


@dataclass(slots=True)
class Block:
    """Instructions start ≤ i < end. `after` names the blocks that may follow."""

    index: int
    start: int
    end: int
    after: list[int] = field(default_factory=list)
    live_in: int = 0
    reach: int = 0  # blocks reachable from the end of this one
    post: int = 0  # blocks that every path from here to the exit passes (this one left out)
    continues: bool = False  # starts only as threads wait here: no label, no branch before it
    rank: int = 0  # place in the order in which diverged threads run: lower first


@dataclass(slots=True)
class Graph:
    """The blocks of a function in the order of the text, and the block of every label.

    `effects` are the registers that each instruction reads and writes (`reads_and_writes`).
    """

    function: Function
    blocks: list[Block]
    block_at: dict[int, int]
    effects: list[tuple[int, int]]

    def target(self, label: str, line: int | None) -> int:
        """The block that a label names."""
        try:
            return self.block_at[self.function.labels[label]]
        except KeyError:
            raise SimulatorError(
                "unsupported",
                f"line {line}: a branch to the label {label}, which is not there.",
                line,
            ) from None


def ends_block(i: Instruction) -> bool:
    """Whether control may leave, or wait, behind this instruction."""
    return i.opcode in ENDS_BLOCK


def suspends(i: Instruction) -> bool:
    """Whether threads wait at this instruction, and not behind it, until others let them go on."""
    if i.opcode == "mbarrier":
        return i.modifiers[0] == "try_wait"
    if multiplies_group(i):
        return True
    return i.opcode in WARP_SYNCS and "sync" in i.modifiers


def fences_device(i: Instruction) -> bool:
    """Whether an instruction is a fence of more than the block, between ordinary accesses."""
    return i.opcode in ("membar", "fence") and not _LESSER_FENCES.intersection(i.modifiers)


def _targets(f: Function, i: Instruction) -> list[str]:
    if i.opcode == "bra":
        return [i.operands[0].name]
    if i.opcode == "brx":
        return f.tables[i.operands[1].name]
    return []


def build(f: Function) -> Graph:
    """Cut a function into blocks and analyse them."""
    code = f.instructions
    end = len(code)
    starts = {0} | {at for at in f.labels.values() if at < end}
    starts |= {i.index + 1 for i in code if ends_block(i) and i.index + 1 < end}
    meetings = {i.index for i in code if suspends(i)} - starts
    order = sorted(starts | meetings)
    blocks = [
        Block(n, start, order[n + 1] if n + 1 < len(order) else end, continues=start in meetings)
        for n, start in enumerate(order)
    ]
    block_at = {b.start: b.index for b in blocks}
    # A label at the very end of a function means "return".
    exit_needed = any(at >= end for at in f.labels.values())
    last = code[-1] if code else None
    if exit_needed or last is None or last.opcode not in ("ret", "exit", "trap", "bra", "brx"):
        blocks.append(Block(len(blocks), end, end))
        block_at[end] = len(blocks) - 1
    graph = Graph(f, blocks, block_at, [reads_and_writes(i) for i in code])
    for b in blocks:
        if b.start == b.end:
            continue
        tail = code[b.end - 1]
        following = b.index + 1
        if tail.opcode in ("bra", "brx"):
            b.after = [graph.target(t, tail.line) for t in _targets(f, tail)]
            if tail.predicate is not None:
                b.after.append(following)
        elif tail.opcode in ("ret", "exit", "trap"):
            b.after = [following] if tail.predicate is not None else []
        else:
            b.after = [following]
        b.after = [n for n in dict.fromkeys(b.after) if n < len(blocks)]
    _liveness(graph)
    _reachability(blocks)
    _post_dominators(blocks)
    for rank, n in enumerate(run_order(blocks)):
        blocks[n].rank = rank
    return graph


def _settle(blocks: list[Block], values: list[int], update: Callable[[Block], int]) -> list[int]:
    """Bit sets of every block, updated from the last block to the first until none changes."""
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            new = update(b)
            changed |= new != values[b.index]
            values[b.index] = new
    return values


def _liveness(graph: Graph) -> None:
    blocks = graph.blocks
    use, define = [], []
    for b in blocks:
        used = defined = 0
        here = slice(b.start, b.end)
        code = graph.function.instructions[here]
        for i, (reads, writes) in zip(code, graph.effects[here], strict=True):
            used |= reads & ~defined
            if i.predicate is None:  # a predicated write keeps the old value of other lanes
                defined |= writes
            else:
                used |= writes & ~defined
        use.append(used)
        define.append(defined)
    live = [0] * len(blocks)
    _settle(
        blocks, live, lambda b: use[b.index] | union(live[n] for n in b.after) & ~define[b.index]
    )
    for b in blocks:
        b.live_in = live[b.index]


def _reachability(blocks: list[Block]) -> None:
    reach = [0] * len(blocks)
    _settle(blocks, reach, lambda b: union((1 << n) | reach[n] for n in b.after))
    for b in blocks:
        b.reach = reach[b.index]


def _post_dominators(blocks: list[Block]) -> None:
    everything = (1 << len(blocks)) - 1
    post = [everything if b.after else 0 for b in blocks]

    def passed(b: Block) -> int:
        """The blocks that lie on all ways from b, itself left out."""
        ways = (post[n] | (1 << n) for n in b.after)
        return functools.reduce(operator.and_, ways, everything if b.after else 0)

    _settle(blocks, post, lambda b: passed(b) & ~(1 << b.index))
    for b in blocks:
        b.post = post[b.index]


def run_order(blocks: list[Block]) -> list[int]:
    """Blocks in an order in which threads that diverged wait for each other where paths join.

    A block comes behind all that lead to it, loops aside, and a loop's blocks come before what
    follows the loop: the order of the text, mended where the compiler moved code out of line.
    """
    return _order(blocks, list(range(len(blocks))), 0)


def _order(blocks: list[Block], inside: list[int], entry: int) -> list[int]:
    """Topological order of the strongly connected parts, each ordered within without its head."""
    members = set(inside)
    out: list[int] = []
    for part in _components(blocks, members):
        if len(part) == 1:
            out += part
            continue
        outside = members.difference(part)
        entered = {entry}.union(*(blocks[m].after for m in outside))
        head = min(entered.intersection(part), default=min(part))
        rest = sorted(set(part) - {head})
        out.append(head)
        out += _order(blocks, rest, rest[0])
    return out


def _components(blocks: list[Block], members: set[int]) -> list[list[int]]:
    """Strongly connected parts in topological order (Tarjan 1972, without recursion).

    Of parts that do not depend on each other the one that comes first in the text goes first.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    work: list[tuple[int, Iterator[int]]] = []

    def enter(m: int) -> None:
        index[m] = low[m] = len(index)
        stack.append(m)
        on_stack.add(m)
        after = (k for k in blocks[m].after if k in members)
        work.append((m, iter(sorted(after, reverse=True))))

    for root in sorted(members, reverse=True):
        if root not in index:
            enter(root)
        while work:
            node, successors = work[-1]
            for m in successors:
                if m not in index:
                    enter(m)
                    break
                if m in on_stack:
                    low[node] = min(low[node], index[m])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[:at:-1] + [node])
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return found[::-1]


def call_target(i: Instruction) -> tuple[Vec | None, Sym | Reg, Vec | None]:
    """(results, function, arguments) of a call instruction."""
    operands = list(i.operands)
    results = operands.pop(0) if isinstance(operands[0], Vec) else None
    function = operands.pop(0)
    arguments = operands.pop(0) if operands and isinstance(operands[0], Vec) else None
    return results, function, arguments
