"""Addresses as base plus constant: which loads share a base, and how well is it aligned?

A register that is written once is followed back through copies and additions of constants to its
base: a register that cannot be followed further, or a variable. Shared addresses have 32 bits on
the machine, so widening is no obstacle. Alignment is a matter of low bits that are zero whatever
the program does; ptxas does not look through a subtraction.
"""

from .program import destination_count
from .syntax import Function, Imm, Instruction, Mem, Reg, Sym, Vec, items_of

MOST_ZEROS = 32
Form = tuple[object, int]  # a base (None: the number alone is the value), and what is added


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
                for item in items_of(operand):
                    if isinstance(item, Reg):
                        self.definitions.setdefault(item.slot, []).append(i)
        self._forms: dict[int, tuple[object, int]] = {}
        self._zeros: dict[int, int] = {}

    def address(self, memory: Mem) -> Form:
        """(base, constant) of a memory operand; equal bases differ by the constants alone."""
        base, constant = self.operand(memory.base) if memory.base is not None else (None, 0)
        return base, constant + memory.offset

    def alignment(self, base) -> int:
        """The largest power of two, up to 16, that is known to divide a base."""
        if base is None:
            return 16
        zeros = trailing_zeros(self.places.get(base, 0)) if isinstance(base, str) else None
        return 1 << min(4, self.zeros(base) if zeros is None else zeros)

    def operand(self, operand) -> Form:
        """(base, constant) of a register, a symbol or a literal."""
        if isinstance(operand, Imm):
            return None, int(operand.value)
        if isinstance(operand, Sym):
            if (at := self.places.get(operand.name)) is not None:
                return None, at + operand.offset  # the assembler knows where it lies
            return operand.name, operand.offset
        return self.register(operand.slot)

    def register(self, slot: int) -> Form:
        """The base and constant of a register."""
        got = self._forms.get(slot)
        if got is None:
            self._forms[slot] = (slot, 0)  # breaks cycles
            got = self._forms[slot] = self._follow(slot) or (slot, 0)
        return got

    def _follow(self, slot: int):
        definitions = self.definitions.get(slot, [])
        return self.result(definitions[0]) if len(definitions) == 1 else None

    def result(self, i: Instruction) -> Form | None:
        """The base and constant of what an instruction writes; None if it is a base itself."""
        if i.predicate is not None:
            return None
        o = i.operands
        kind = i.modifiers[-1] if i.modifiers else ""
        if kind[:1] not in ("u", "s", "b") or kind[1:] not in ("32", "64"):
            return None
        if i.opcode == "mov" and not isinstance(o[1], Vec):
            if isinstance(o[1], Reg) or (isinstance(o[1], Sym) and o[1].name in self.places):
                return self.operand(o[1])
        elif i.opcode in ("add", "sub") and isinstance(o[2], Imm) and isinstance(o[1], Reg):
            base, constant = self.operand(o[1])
            amount = int(o[2].value)
            return base, constant + (amount if i.opcode == "add" else -amount)
        elif i.opcode == "cvt" and kind[0] in "us" and i.modifiers[-2][1:] in ("32", "64"):
            return self.operand(o[1])
        elif i.opcode == "cvta":
            return self.operand(o[1])
        elif i.opcode == "or" and isinstance(o[2], Imm) and isinstance(o[1], Reg):
            if 0 <= o[2].value < 1 << self.zeros(o[1].slot):
                base, constant = self.operand(o[1])
                return base, constant + int(o[2].value)
        return None

    def zeros(self, slot: int) -> int:
        """How many low bits of a register are zero whatever the program does."""
        got = self._zeros.get(slot)
        if got is None:
            self._zeros[slot] = MOST_ZEROS
            definitions = self.definitions.get(slot, [])
            got = min((self.defined_zeros(i) for i in definitions), default=0)
            self._zeros[slot] = got
        return got

    def _operand_zeros(self, operand) -> int:
        if isinstance(operand, Imm):
            return trailing_zeros(operand.value) if isinstance(operand.value, int) else 0
        if isinstance(operand, Reg):
            return self.zeros(operand.slot)
        if isinstance(operand, Sym):
            return trailing_zeros(self.places.get(operand.name, 1) + operand.offset)
        return 0

    def defined_zeros(self, i: Instruction) -> int:
        """How many low bits of what an instruction writes are zero."""
        o = i.operands
        z = self._operand_zeros
        op = i.opcode
        if op in ("mov", "cvta", "cvt") and len(o) == 2 and not isinstance(o[1], Vec):
            return z(o[1])
        if op == "sub" and isinstance(o[2], Reg):
            return 0
        if op in ("add", "sub", "or", "xor", "min", "max", "selp"):
            return min(z(o[1]), z(o[2]))
        if op == "and":
            return max(z(o[1]), z(o[2]))
        if op == "shl" and isinstance(o[2], Imm):
            return min(MOST_ZEROS, z(o[1]) + int(o[2].value))
        if op == "shr" and isinstance(o[2], Imm):
            return max(0, z(o[1]) - int(o[2].value))
        if op == "mul" and "hi" not in i.modifiers:
            return min(MOST_ZEROS, z(o[1]) + z(o[2]))
        if op == "mad" and "hi" not in i.modifiers:
            return min(MOST_ZEROS, z(o[1]) + z(o[2]), z(o[3]))
        return 0
