"""Loops whose number of rounds is known: where each round's loads and stores go.

The assembler unrolls such a loop whole if it is small; then addresses of several rounds stand side
by side, and what a round adds to them is a constant. Here the rounds are gone through with values
as in `linear`: a base, plus a number.
"""

import operator
from dataclasses import dataclass

from .linear import Form, LinearForms, trailing_zeros
from .program import Block, Graph, destination_count, ends_block, reads_and_writes
from .syntax import Imm, Instruction, Mem, Reg, Sym, Vec, items_of

MOST_STEPS = 2048  # instructions of all rounds: much more than is unrolled
Plan = tuple[tuple[int, int], ...]
_COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_COMPUTE = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "min": min, "max": max,
}  # fmt: skip


@dataclass(slots=True)
class UnrolledLoop:
    """What becomes of a loop's accesses if all its rounds are unrolled.

    `path` has the blocks that are run one after the other, with the plan of each access there;
    `after` is the block that follows the loop. `whole` says whether the rounds are unrolled: first
    the `guess`, then what the machine code shows.
    """

    path: list[tuple[int, list[tuple[Instruction, Plan | None]]]]
    after: int
    guess: bool
    whole: bool
    known: bool = False  # the machine code was looked at


@dataclass(slots=True)
class Rounds:
    """The blocks that all rounds of a loop go through, and where their accesses go.

    `addresses` has a list for each block of `path`: None for what is no access of shared memory.
    """

    path: list[int]
    addresses: list[list[Form | None]]
    after: int
    zeros: dict[object, int]
    forms: LinearForms

    def alignment(self, base) -> int:
        """The largest power of two, up to 16, that is known to divide a base."""
        if base in self.zeros:
            return 1 << min(4, self.zeros[base])
        return self.forms.alignment(base) if base is None or isinstance(base, str | int) else 1


def loops(graph: Graph) -> dict[int, set[int]]:
    """The blocks of every loop, by the block through which it is entered."""
    before: dict[int, list[int]] = {b.index: [] for b in graph.blocks}
    for b in graph.blocks:
        for n in b.after:
            before[n].append(b.index)
    found: dict[int, set[int]] = {}
    for last, head in _ways_back(graph):
        inside = found.setdefault(head, {head})
        waiting = [last]
        while waiting:
            n = waiting.pop()
            if n not in inside:
                inside.add(n)
                waiting += before[n]
    return found


def _ways_back(graph: Graph) -> list[tuple[int, int]]:
    """Branches from inside a loop to its head: to a block on the way to where they stand."""
    found, seen, on_way = [], {0}, {0}
    stack = [(0, iter(graph.blocks[0].after))] if graph.blocks else []
    while stack:
        block, following = stack[-1]
        n = next(following, None)
        if n is None:
            on_way.discard(block)
            stack.pop()
        elif n in on_way:
            found.append((block, n))
        elif n not in seen:
            seen.add(n)
            on_way.add(n)
            stack.append((n, iter(graph.blocks[n].after)))
    return found


def constant_rounds(graph: Graph, head: int, inside: set[int], forms: LinearForms) -> Rounds | None:
    """All rounds of a loop; None if their number is not known, or nothing in it is shared memory.

    Args:
        graph: of the function.
        head: the block through which the loop is entered.
        inside: its blocks.
        forms: of the function's registers.
    """
    code = graph.function.instructions
    blocks = [graph.blocks[n] for n in sorted(inside)]
    everything = [i for b in blocks for i in code[b.start : b.end]]
    if not any(i.opcode in ("ld", "st") and i.space == "shared" for i in everything):
        return None
    if any(b.start <= at < b.end for b in blocks for at in graph.function.nounroll):
        return None
    rounds = Rounds([], [], head, {}, forms)
    values = _before(graph.blocks[head], everything, rounds)
    steps = 0
    while rounds.after in inside:
        block = graph.blocks[rounds.after]
        body = code[block.start : block.end]
        steps += len(body) or 1
        if steps > MOST_STEPS:
            return None
        rounds.path.append(block.index)
        rounds.addresses.append(_go_through(body, values, rounds))
        following = _following(graph, block, values)
        if following is None:
            return None
        rounds.after = following
    return rounds


def _following(graph: Graph, block: Block, values: dict) -> int | None:
    """The block that is run next; None if that is not known, or threads may wait there."""
    end = graph.function.instructions[block.end - 1] if block.start < block.end else None
    if end is None or not ends_block(end):
        return block.index + 1
    if end.opcode != "bra":
        return None
    target = graph.target(end.operands[0].name, end.line)
    if end.predicate is None:
        return target
    goes = values.get(end.predicate.slot)
    if not isinstance(goes, bool):
        return None
    return target if goes != end.predicate.negated else block.index + 1


def _before(head: Block, body: list[Instruction], rounds: Rounds) -> dict[int, object]:
    """What the registers that the loop changes hold before its first round."""
    written = 0
    for i in body:
        written |= reads_and_writes(i)[1]
    inside = set(map(id, body))
    values: dict[int, object] = {}
    changed = written & head.live_in
    for slot in (n for n in range(changed.bit_length()) if changed >> n & 1):
        outside = [i for i in rounds.forms.definitions.get(slot, ()) if id(i) not in inside]
        if len(outside) == 1 and (form := _first_value(outside[0], rounds.forms)) is not None:
            values[slot] = form
            continue
        base = ("before", slot)
        values[slot] = (base, 0)
        rounds.zeros[base] = min(map(rounds.forms.defined_zeros, outside), default=0)
    return values


def _first_value(i: Instruction, forms: LinearForms) -> Form | None:
    if i.opcode == "mov" and isinstance(i.operands[1], Imm):
        return _literal(i.operands[1])
    return forms.result(i)


def _literal(operand: Imm) -> Form | None:
    return (None, operand.value) if isinstance(operand.value, int) else None


def _go_through(body: list[Instruction], values: dict, rounds: Rounds) -> list[Form | None]:
    """Addresses of a block's accesses; `values` is brought up to date."""

    def value(operand) -> Form | None:
        if isinstance(operand, Imm):
            return _literal(operand)
        if isinstance(operand, Reg):
            return values.get(operand.slot) or rounds.forms.register(operand.slot)
        return rounds.forms.operand(operand) if isinstance(operand, Sym) else None

    addresses: list[Form | None] = []
    for place, i in enumerate(body):
        memory = next((o for o in i.operands if isinstance(o, Mem)), None)
        form = None
        if i.opcode in ("ld", "st") and i.space == "shared" and memory is not None:
            base, constant = value(memory.base) if memory.base is not None else (None, 0)
            form = (base, constant + memory.offset)
        addresses.append(form)
        for operand in i.operands[: destination_count(i)]:
            for item in items_of(operand):
                if not isinstance(item, Reg):
                    continue
                found = None
                if i.predicate is None and not isinstance(operand, Vec):
                    found = _result(i, value, rounds)
                if found is None:
                    found = ((item.slot, len(rounds.addresses), place), 0)
                    rounds.zeros[found[0]] = rounds.forms.defined_zeros(i)
                values[item.slot] = found
    return addresses


def _result(i: Instruction, value, rounds: Rounds):
    """What an instruction writes: a form, a bool of a comparison, or None if nothing is known."""
    op, kind = i.opcode, i.modifiers[-1] if i.modifiers else ""
    if op not in ("cvta", "setp") and (kind[:1] not in "usb" or kind[1:] not in ("32", "64")):
        return None
    parts = [value(o) for o in i.operands[1:]]
    if not parts or any(not isinstance(part, tuple) for part in parts):
        return None
    if op in ("mov", "cvta", "cvt"):
        return parts[0]
    if op == "mad" and "hi" not in i.modifiers:
        product = _sum("mul", *parts[:2], rounds)
        return _sum("add", product, parts[2], rounds) if product is not None else None
    constant = all(base is None for base, _ in parts)
    numbers = [number for _, number in parts]
    if op == "setp" and constant and i.modifiers[0] in _COMPARE and len(parts) == 2:
        return _COMPARE[i.modifiers[0]](*numbers)
    if op in ("shl", "shr") and constant:
        return (None, numbers[0] << numbers[1] if op == "shl" else numbers[0] >> numbers[1])
    if op not in _COMPUTE or "hi" in i.modifiers or len(parts) != 2:
        return None
    return _sum(op, *parts, rounds)


def _sum(op: str, a: Form, b: Form, rounds: Rounds) -> Form | None:
    """A sum, a difference, or any operation on two numbers."""
    if a[0] is None and b[0] is None:
        return None, _COMPUTE[op](a[1], b[1])
    if op == "add" and (a[0] is None or b[0] is None):
        return a[0] if b[0] is None else b[0], a[1] + b[1]
    if op == "sub" and b[0] is None:
        return a[0], a[1] - b[1]
    if op == "add":
        base = ("sum", *sorted((a[0], b[0]), key=repr))
        zeros = [trailing_zeros(rounds.alignment(part)) for part in (a[0], b[0])]
        rounds.zeros.setdefault(base, min(zeros))
        return base, a[1] + b[1]
    return None
