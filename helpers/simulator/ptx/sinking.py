"""Loads that ptxas moves behind a branch.

A shared load in front of a branch, of which only the way that falls through makes use, is made
there: warps that jump never issue it. Nothing that could change the word may stand between.
"""

from .program import Graph, build, reads_and_writes
from .syntax import Function, Instruction, Reg


def sink_loads(f: Function) -> Graph:
    """Move such loads, in place; labels and numbers follow. Returns the graph of what is left."""
    graph = build(f)
    labelled = set(f.labels.values())
    moved = False
    for block in graph.blocks[:-1]:
        if block.start == block.end:
            continue
        branch = f.instructions[block.end - 1]
        if branch.opcode != "bra" or branch.predicate is None or block.end in labelled:
            continue
        target = graph.blocks[graph.target(branch.operands[0].name, branch.line)]
        if target.index <= block.index:
            continue  # a loop's way back
        moved |= _sink(f.instructions, block.start, block.end, target.live_in)
    if not moved:
        return graph
    for n, i in enumerate(f.instructions):
        i.index = n
    return build(f)


def _sink(code: list[Instruction], start: int, end: int, live: int) -> bool:
    """Sink loads of code[start:end], whose last instruction is the branch."""
    if not any(_may_sink(i) for i in code[start:end]):
        return False
    used = reads_and_writes(code[end - 1])[0]
    written = 0
    later: list[Instruction] = []
    place = end - 2
    while place >= start:
        i = code[place]
        reads, writes = reads_and_writes(i)
        if _orders_memory(i):
            break
        if _may_sink(i) and not writes & (live | used | written) and not reads & written:
            later.insert(0, i)
            del code[place]
            code.insert(end - 1, i)
            end -= 1
        else:
            used |= reads
            written |= writes
        place -= 1
    return bool(later)


def _may_sink(i: Instruction) -> bool:
    return (
        i.opcode == "ld"
        and isinstance(i.operands[0], Reg)
        and i.space == "shared"
        and i.predicate is None
        and "volatile" not in i.modifiers
    )


def _orders_memory(i: Instruction) -> bool:
    if i.opcode == "st":
        return i.space in ("shared", "generic")
    return i.opcode in (
        "bar", "barrier", "membar", "fence", "atom", "red", "call", "cp", "stmatrix", "wmma",
        "wgmma",
    )  # fmt: skip
