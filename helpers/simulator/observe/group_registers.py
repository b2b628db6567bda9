"""Registers of `wgmma`: are they fenced before a product takes them, and waited for behind it?

PTX ISA 9.0, "wgmma.fence" and "wgmma.mma_async": registers of A and D that other instructions have
written need a wgmma.fence before the first product that takes them, and hold nothing until the
group of the product has been waited for. That can be read off the code: along every path, a bit
for each register. A move between registers is none in the machine, and a constant needs no fence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..ptx.program import Graph, multiplies_group, reads_and_writes
from ..ptx.syntax import Imm, Instruction, Reg, Vec

_AGES = 9  # groups back that wait_group can name, and one that is not committed yet


class RegisterFault(NamedTuple):
    """What is amiss with a product's registers: `kind` is fence, read, or written."""

    kind: str
    product: Instruction
    other: Instruction | None


@dataclass(slots=True)
class _State:
    """Bit sets of registers at one place of the code.

    Attributes:
        unfenced: written since the last fence; the highest bit: there was none at all.
        results, factors: registers of D and of A that products under way write and read, by how
            many groups have been committed since.
    """

    unfenced: int
    results: tuple[int, ...] = (0,) * _AGES
    factors: tuple[int, ...] = (0,) * _AGES

    def joined(self, other: _State) -> _State:
        return _State(
            self.unfenced | other.unfenced,
            tuple(a | b for a, b in zip(self.results, other.results, strict=True)),
            tuple(a | b for a, b in zip(self.factors, other.factors, strict=True)),
        )


def register_faults(graph: Graph) -> list[RegisterFault]:
    """What is amiss with the registers of the products of a function, each pair once."""
    if not any(map(multiplies_group, graph.function.instructions)):
        return []
    return _Flow(graph).faults()


def _bits(operand) -> int:
    items = operand.items if isinstance(operand, Vec) else (operand,)
    return sum(1 << r.slot for r in items if isinstance(r, Reg))


class _Flow:
    """One function's states, block by block, until none changes."""

    def __init__(self, graph: Graph):
        self.graph, self.code = graph, graph.function.instructions
        self.never = 1 << len(graph.function.registers)
        self.found: dict[tuple, RegisterFault] = {}
        self.product_of: dict[int, Instruction] = {}  # by register
        self.writer_of: dict[int, Instruction] = {}

    def faults(self) -> list[RegisterFault]:
        everything = 2 * self.never - 1 if self.graph.function.entry else 0
        before = {0: _State(everything)}
        waiting = [0]
        while waiting:
            number = waiting.pop()
            after = self._through(before[number], number)
            for following in self.graph.blocks[number].after:
                old = before.get(following)
                new = after if old is None else old.joined(after)
                if new != old:
                    before[following] = new
                    waiting.append(following)
        return list(self.found.values())

    def _through(self, state: _State, number: int) -> _State:
        block = self.graph.blocks[number]
        for i in self.code[block.start : block.end]:
            if i.opcode == "wgmma":
                state = self._group_step(state, i)
            elif i.opcode == "mov" and isinstance(i.operands[0], Reg):
                state = self._moved(state, i)
            else:
                self._used(state, i)
                written = reads_and_writes(i)[1]
                state = replace(state, unfenced=state.unfenced | written)
                for slot in _slots(written):
                    self.writer_of[slot] = i
        return state

    def _group_step(self, state: _State, i: Instruction) -> _State:
        if i.modifiers[0] == "fence":
            return replace(state, unfenced=0)
        if i.modifiers[0] == "commit_group":
            return replace(state, results=_older(state.results), factors=_older(state.factors))
        if i.modifiers[0] == "wait_group":
            left = i.operands[0].value if i.operands and isinstance(i.operands[0], Imm) else 0
            kept = [n <= left for n in range(_AGES)]
            return replace(
                state,
                results=tuple(r if k else 0 for r, k in zip(state.results, kept, strict=True)),
                factors=tuple(r if k else 0 for r, k in zip(state.factors, kept, strict=True)),
            )
        d = _bits(i.operands[0])
        a = _bits(i.operands[1]) if isinstance(i.operands[1], Vec) else 0
        if wrong := (d | a | self.never) & state.unfenced:
            slot = next(_slots(wrong))
            self._add("fence", i, self.writer_of.get(slot) if wrong != self.never else None)
        if early := a & _any(state.results):
            self._add("read", self.product_of[next(_slots(early))], i)
        for slot in _slots(d | a):
            self.product_of[slot] = i
        return _State(
            state.unfenced & ~d,
            (state.results[0] | d, *(r & ~d for r in state.results[1:])),
            (state.factors[0] | a, *state.factors[1:]),
        )

    def _moved(self, state: _State, i: Instruction) -> _State:
        """A move: the register stands for the other one from now on."""
        to, source = i.operands[0].slot, i.operands[1]
        if not isinstance(source, Reg):
            self._used(state, i, writes=False)
        bit = 1 << to
        from_bit = 1 << source.slot if isinstance(source, Reg) else 0
        dirty = state.unfenced & from_bit or isinstance(source, Vec)
        if source.slot in self.product_of if from_bit else False:
            self.product_of[to] = self.product_of[source.slot]
        if not isinstance(source, Imm):
            self.writer_of[to] = self.writer_of.get(source.slot, i) if from_bit else i

        def renamed(sets: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(r & ~bit | (bit if r & from_bit else 0) for r in sets)

        return _State(
            state.unfenced & ~bit | (bit if dirty else 0),
            renamed(state.results),
            tuple(r & ~bit for r in state.factors),
        )

    def _used(self, state: _State, i: Instruction, writes: bool = True) -> None:
        """Look for what another instruction does to registers of products under way."""
        under_way, read = _any(state.results), _any(state.factors)
        if not under_way | read:
            return
        reads, written = reads_and_writes(i)
        if early := (reads | (written if writes else 0)) & under_way:
            self._add("read", self.product_of[next(_slots(early))], i)
        elif writes and (early := written & read):
            self._add("written", self.product_of[next(_slots(early))], i)

    def _add(self, kind: str, product: Instruction, other: Instruction | None) -> None:
        key = (kind, product.line)  # unrolled, a line has many
        self.found.setdefault(key, RegisterFault(kind, product, other))


def _older(sets: tuple[int, ...]) -> tuple[int, ...]:
    """One group more has been committed."""
    return (0, *sets[:-2], sets[-2] | sets[-1])


def _any(sets: tuple[int, ...]) -> int:
    every = 0
    for each in sets:
        every |= each
    return every


def _slots(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def by_product(faults: list[RegisterFault]) -> dict[int, list[RegisterFault]]:
    """Faults by the serial number of their product."""
    found: dict[int, list[RegisterFault]] = defaultdict(list)
    for fault in faults:
        found[fault.product.serial].append(fault)
    return dict(found)
