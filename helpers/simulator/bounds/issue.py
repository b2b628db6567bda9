"""How many machine instructions a launch issues at least, out of how often some of them run.

The simulator runs PTX and knows how often its arithmetic runs. The assembler keeps that arithmetic,
wherever it moves, unrolls or repeats it. So the stretches of the machine code in which it stands
run often enough to execute all of it, and with it everything else that stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..compile.sass import MachineInstruction

FP32, SPECIAL, TENSOR = "fp32", "special", "tensor"
# The opcodes of what is counted in PTX, by its kind.
_WORDS = {"FFMA": FP32, "FADD": FP32, "FMUL": FP32, "MUFU": SPECIAL, "HMMA": TENSOR}
_ENDS = frozenset(("BRA", "BRX", "JMP", "EXIT", "RET", "CALL", "BSYNC", "WARPSYNC", "BREAK"))


def stretches(code: Iterable[MachineInstruction]) -> list[list[MachineInstruction]]:
    """Machine code cut where a jump may lead or leave: what runs as a whole or not at all."""
    found: list[list[MachineInstruction]] = [[]]
    for one in code:
        if one.label and found[-1]:
            found.append([])
        found[-1].append(one)
        if one.opcode.split(".", 1)[0] in _ENDS:
            found.append([])
    return [stretch for stretch in found if stretch]


def kind_counts(cut: Sequence[Sequence[MachineInstruction]]) -> dict[str, dict[int, int]]:
    """How many instructions of each kind there are in the stretches that have some, by number."""
    where: dict[str, dict[int, int]] = {}
    for number, stretch in enumerate(cut):
        for one in stretch:
            if kind := _WORDS.get(one.opcode.split(".", 1)[0]):
                counts = where.setdefault(kind, {})
                counts[number] = counts.get(number, 0) + 1
    return where


def least_issued(code: Iterable[MachineInstruction], run: Mapping[str, float]) -> float:
    """Instructions that the warps of a launch issue at least.

    Of each kind, the stretch that has most of them for its length gives the fewest instructions.
    Lines are not told apart: the assembler gives some of an unrolled line to its neighbours. Kinds
    whose stretches are others' too are not added up.

    Args:
        code: the kernel's machine code.
        run: how many instructions of warps there were of each kind.
    """
    cut = stretches(code)
    where = kind_counts(cut)
    least = {
        kind: run[kind] * min(len(cut[n]) / count for n, count in counts.items())
        for kind, counts in where.items()
        if run.get(kind)
    }
    taken: set[int] = set()
    total = 0.0
    for kind in sorted(least, key=least.get, reverse=True):
        if taken.isdisjoint(where[kind]):
            taken.update(where[kind])
            total += least[kind]
    return total
