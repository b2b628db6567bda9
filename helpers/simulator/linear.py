"""Addresses as linear forms: which loads have the same base, and how well is it aligned?

A register that is written once is followed back through additions, shifts and multiplications by
constants to a sum of multiples of "atoms" (registers that cannot be followed further, and the
addresses of variables) plus a constant. Shared addresses have 32 bits on the machine, so widening is no obstacle.
"""

from __future__ import annotations

from .program import destination_count
from .ptx import Function, Imm, Instruction, Mem, Reg, Sym, Vec

MOST_ZEROS = 32


def trailing_zeros(n: int) -> int:
    """Number of low zero bits; MOST_ZEROS for 0."""
    return MOST_ZEROS if n == 0 else min(MOST_ZEROS, (n & -n).bit_length() - 1)


class LinearForms:
    """The linear forms of one function's registers.

    `places` gives the address of every shared variable, whose alignment counts too.
    """

    def __init__(self, function: Function, places: dict[str, int]):
        self.places = places
        self.definitions: dict[int, list[Instruction]] = {}
        for i in function.instructions:
            for operand in i.operands[: destination_count(i)]:
                items = operand.items if isinstance(operand, Vec) else (operand,)
                for item in items:
                    if isinstance(item, Reg):
                        self.definitions.setdefault(item.slot, []).append(i)
        self._forms: dict[int, tuple[dict, int]] = {}
        self._zeros: dict[int, int] = {}

    def address(self, memory: Mem) -> tuple[frozenset, int]:
        """(base, constant) of a memory operand; equal bases differ by the constants alone."""
        atoms, constant = self.operand(memory.base) if memory.base is not None else ({}, 0)
        return frozenset(atoms.items()), constant + memory.offset

    def alignment(self, base: frozenset) -> int:
        """The largest power of two, up to 16, that divides a base."""
        zeros = 4
        for atom, factor in base:
            zeros = min(zeros, self._atom_zeros(atom) + trailing_zeros(factor))
        return 1 << zeros

    def _atom_zeros(self, atom) -> int:
        if isinstance(atom, str):
            return trailing_zeros(self.places.get(atom, 0))
        return self.zeros(atom)

    def operand(self, operand) -> tuple[dict, int]:
        """The form of a register, a symbol or a literal."""
        if isinstance(operand, Imm):
            return {}, int(operand.value)
        if isinstance(operand, Sym):
            return {operand.name: 1}, operand.offset
        if isinstance(operand, Reg):
            return self.register(operand.slot)
        return {}, 0

    def register(self, slot: int) -> tuple[dict, int]:
        """The form of a register."""
        got = self._forms.get(slot)
        if got is None:
            self._forms[slot] = ({slot: 1}, 0)  # breaks cycles
            got = self._forms[slot] = self._follow(slot) or ({slot: 1}, 0)
        return got

    def _follow(self, slot: int):
        definitions = self.definitions.get(slot, [])
        if len(definitions) != 1 or definitions[0].predicate is not None:
            return None
        i = definitions[0]
        o = i.operands
        kind = i.modifiers[-1] if i.modifiers else ""
        if kind[1:] not in ("16", "32", "64"):
            return None
        if i.opcode == "mov" and not isinstance(o[1], Vec):
            if isinstance(o[1], (Reg, Imm)) or (isinstance(o[1], Sym) and o[1].name in self.places):
                return self.operand(o[1])
        elif i.opcode in ("add", "sub") and "cc" not in i.modifiers:
            return _sum(self.operand(o[1]), self.operand(o[2]), -1 if i.opcode == "sub" else 1)
        elif i.opcode == "shl" and isinstance(o[2], Imm) and 0 <= o[2].value < 32:
            return _times(self.operand(o[1]), 1 << o[2].value)
        elif i.opcode == "mul" and ("lo" in i.modifiers or "wide" in i.modifiers):
            return self._product(o[1], o[2])
        elif i.opcode == "mad" and ("lo" in i.modifiers or "wide" in i.modifiers):
            product = self._product(o[1], o[2])
            return None if product is None else _sum(product, self.operand(o[3]), 1)
        elif i.opcode == "cvt" and kind[0] in "us" and i.modifiers[-2][1:] in ("32", "64"):
            return self.operand(o[1])
        elif i.opcode == "cvta":
            return self.operand(o[1])
        elif i.opcode == "or" and isinstance(o[2], Imm) and isinstance(o[1], Reg):
            if 0 <= o[2].value < 1 << self.zeros(o[1].slot):
                return _sum(self.operand(o[1]), ({}, o[2].value), 1)
        return None

    def _product(self, a, b):
        if isinstance(b, Imm):
            return _times(self.operand(a), int(b.value))
        if isinstance(a, Imm):
            return _times(self.operand(b), int(a.value))
        return None

    def zeros(self, slot: int) -> int:
        """How many low bits of a register are zero whatever the program does."""
        got = self._zeros.get(slot)
        if got is None:
            self._zeros[slot] = 0 if len(self.definitions.get(slot, ())) != 1 else MOST_ZEROS
            definitions = self.definitions.get(slot, [])
            got = min((self._defined_zeros(i) for i in definitions), default=0)
            self._zeros[slot] = got
        return got

    def _operand_zeros(self, operand) -> int:
        if isinstance(operand, Imm):
            return trailing_zeros(int(operand.value))
        if isinstance(operand, Reg):
            return self.zeros(operand.slot)
        if isinstance(operand, Sym):
            return trailing_zeros(self.places.get(operand.name, 1) + operand.offset)
        return 0

    def _defined_zeros(self, i: Instruction) -> int:
        o = i.operands
        z = self._operand_zeros
        op = i.opcode
        if op in ("mov", "cvta", "cvt") and len(o) == 2 and not isinstance(o[1], Vec):
            return z(o[1])
        if op in ("add", "sub", "or", "xor", "min", "max"):
            return min(z(o[1]), z(o[2]))
        if op == "and":
            return max(z(o[1]), z(o[2]))
        if op == "selp":
            return min(z(o[1]), z(o[2]))
        if op == "shl" and isinstance(o[2], Imm):
            return min(MOST_ZEROS, z(o[1]) + int(o[2].value))
        if op == "shr" and isinstance(o[2], Imm):
            return max(0, z(o[1]) - int(o[2].value))
        if op == "mul" and "hi" not in i.modifiers:
            return min(MOST_ZEROS, z(o[1]) + z(o[2]))
        if op == "mad" and "hi" not in i.modifiers:
            return min(MOST_ZEROS, z(o[1]) + z(o[2]), z(o[3]))
        return 0


def _sum(a: tuple[dict, int], b: tuple[dict, int], sign: int) -> tuple[dict, int]:
    atoms = dict(a[0])
    for atom, factor in b[0].items():
        atoms[atom] = atoms.get(atom, 0) + sign * factor
    return {k: v for k, v in atoms.items() if v}, a[1] + sign * b[1]


def _times(a: tuple[dict, int], factor: int) -> tuple[dict, int]:
    if factor == 0:
        return {}, 0
    return {k: v * factor for k, v in a[0].items()}, a[1] * factor
