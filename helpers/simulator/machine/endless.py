"""Loops that will not end, seen before the budget of instructions is spent."""

from __future__ import annotations

import numpy as np

from ..ptx.program import Graph, reads_and_writes

# What gives a value that registers at the loop's head do not decide alone: memory, other lanes,
# what is called, and the carry flag. A `ld.param` reads what never changes.
_UNDECIDED = frozenset(
    "ld ldu atom tex call shfl vote match redux activemask elect ldmatrix movmatrix mma wmma bar "
    "barrier addc subc madc".split()
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
