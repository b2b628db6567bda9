"""Small `if`s, which ptxas makes predicated code: what stands in them is issued by every warp.

So it counts the instructions of shared loads and stores of every warp that comes to the branch,
also where none of its lanes takes part.
"""

from .program import Block, Graph
from .syntax import Imm, Instruction

SMALL_IF = 8  # machine instructions of an `if` that is turned into predicated code
FREE = frozenset("mov shl cvt cvta neg".split())  # folded into the instructions that use them


def is_shared(i: Instruction) -> bool:
    """Whether an instruction is a load or a store that names shared memory."""
    return i.opcode in ("ld", "st") and i.space == "shared"


def small_ifs(graph: Graph) -> dict[int, list[Instruction]]:
    """Shared accesses in bodies so small that ptxas predicates them, by the block that branches."""
    code = graph.function.instructions
    found: dict[int, list[Instruction]] = {}
    for block in graph.blocks[:-1]:
        if block.start == block.end or code[block.end - 1].opcode != "bra":
            continue
        if code[block.end - 1].predicate is None or len(block.after) != 2:
            continue
        inside = _small_body(graph, block) or _small_sides(graph, block)
        accesses = [i for i in inside if is_shared(i)]
        for i in accesses:
            i.predicated_off = True
        if accesses:
            found[block.index] = accesses
    return found


def _small_body(graph: Graph, block: Block) -> list[Instruction]:
    """What stands in a small `if` without `else`; nothing if it is none."""
    code = graph.function.instructions
    branch, body = code[block.end - 1], graph.blocks[block.index + 1]
    target = graph.target(branch.operands[0].name, branch.line)
    if target != body.index + 1 or body.after != [target] or not graph.blocks[target].after:
        return []
    inside = code[body.start : body.end]
    return inside if _is_small(inside) else []


def _small_sides(graph: Graph, block: Block) -> list[Instruction]:
    """What stands in both sides of a small `if` with `else`; nothing if it is none.

    One of the sides may be empty.
    """
    code = graph.function.instructions
    sides = [graph.blocks[_past_empty(graph, n)] for n in block.after]
    for side, other in (sides, sides[::-1]):
        if len(side.after) == 1 and _past_empty(graph, side.after[0]) == other.index:
            sides = [side]
            break
    if any(len(side.after) != 1 for side in sides):
        return []
    ends = {_past_empty(graph, side.after[0]) for side in sides}
    if len(ends) != 1 or ends & {block.index, *(side.index for side in sides)}:
        return []
    if not graph.blocks[min(ends)].after:  # then the threads that skip it leave at once
        return []
    inside = [i for side in sides for i in code[side.start : side.end] if not _only_jumps(i)]
    return inside if _is_small(inside) else []


def _only_jumps(i: Instruction) -> bool:
    return i.opcode == "bra" and i.predicate is None


def _past_empty(graph: Graph, block: int) -> int:
    """The block that is come to, past those with nothing but a jump."""
    for _ in graph.blocks:
        b = graph.blocks[block]
        body = graph.function.instructions[b.start : b.end]
        if len(b.after) != 1 or not all(map(_only_jumps, body)):
            break
        block = b.after[0]
    return block


def _is_small(inside: list[Instruction]) -> bool:
    if sum(map(_weight, inside)) > SMALL_IF:
        return False
    return not any(i.opcode in ("bra", "call", "bar", "barrier", "ret", "exit") for i in inside)


def _weight(i: Instruction) -> int:
    """About how many machine instructions a PTX instruction becomes."""
    if i.opcode in FREE or (i.opcode == "mul" and "wide" in i.modifiers):
        return 0
    literals = sum(isinstance(o, Imm) for o in i.operands)
    return 2 if i.opcode == "fma" and literals > 1 else 1
