"""The least cycles that a warp takes for its machine code if nobody is in its way.

A warp issues in order, at most one instruction a clock, and an instruction waits for the registers
it reads. Latencies are taken lower than those measured on an H200 (FFMA 4, shared memory 28, L1 45,
shuffle 24 cycles), and low enough for a T4, whose shared memory answers sooner (Jia and others,
arXiv 1903.07486), so that no warp is faster. What other warps take from it comes on top.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..compile.sass import MachineInstruction
from .issue import kind_counts, stretches

# Cycles until the result can be read, by the first word of the opcode; what is not here takes 2.
_LATENCY = {
    **dict.fromkeys(("FFMA", "FADD", "FMUL", "IMAD"), 4),
    **dict.fromkeys(("LDS", "LDSM", "SHFL"), 18),
    **dict.fromkeys(("LDG", "LD", "ATOMG", "ATOMS", "LDL"), 28),
    **dict.fromkeys(("MUFU", "HMMA"), 8),
}
_NO_RESULT = re.compile(
    r"(?:ST\w*|RED\w*|BRA|BRX|JMP|EXIT|RET|CALL|BAR|MEMBAR|LDGSTS|LDGDEPBAR|DEPBAR|NOP|BSSY|BSYNC|"
    r"WARPSYNC|CCTL|FENCE|YIELD)$"
)
_REGISTER = re.compile(r"\b(U?R|U?P)(\d+)\b")
_ROUNDS = 3  # of a loop, after which each takes as long as the one before


def least_cycles(code: Iterable[MachineInstruction], run: Mapping[str, float]) -> float:
    """Cycles that a warp takes at least, on average over the warps.

    Args:
        code: the kernel's machine code.
        run: how many instructions of each kind a warp executes, on average.

    As for `least_issued`, the stretch with most of a kind for its cycles counts.
    """
    cut = stretches(code)
    where = kind_counts(cut)
    cycles = {n: _cycles(cut[n]) for counts in where.values() for n in counts}
    least = (
        run[kind] * min(cycles[n] / count for n, count in counts.items())
        for kind, counts in where.items()
        if run.get(kind)
    )
    return max(least, default=0.0)


def _cycles(stretch: Sequence[MachineInstruction]) -> int:
    """Clocks from a stretch's first issue to the next one's; of a loop, of a round."""
    last = stretch[-1]
    loops = last.opcode == "BRA" and stretch[0].label and f"({stretch[0].label})" in last.text
    ready: dict[tuple[str, int], int] = {}
    clock, begins = 0, []
    for _ in range(_ROUNDS if loops else 1):
        for number, one in enumerate(stretch):
            written, read = registers(one)
            clock = max([clock + 1, *(ready.get(register, 0) for register in read)])
            if not number:
                begins.append(clock)
            word = one.opcode.split(".", 1)[0]
            ready.update(dict.fromkeys(written, clock + _LATENCY.get(word, 2)))
    return begins[-1] - begins[-2] if loops else clock


def registers(one: MachineInstruction) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """(those that an instruction writes, those that it reads), as far as its text tells."""
    _, _, rest = one.text.partition(one.opcode)
    operands = rest.split(",")
    guard = [(kind, int(n)) for kind, n in _REGISTER.findall(one.predicate)]
    word = one.opcode.split(".", 1)[0]
    if _NO_RESULT.match(word):
        return [], guard + [(kind, int(n)) for kind, n in _REGISTER.findall(rest)]
    first = _REGISTER.findall(operands[0])
    read = guard + [
        (kind, int(n)) for operand in operands[1:] for kind, n in _REGISTER.findall(operand)
    ]
    if not first:
        return [], read
    kind, start = first[0][0], int(first[0][1])
    return [(kind, start + n) for n in range(_width(word, one.opcode))], read


def _width(word: str, opcode: str) -> int:
    """How many registers a result takes."""
    parts = opcode.split(".")
    if word == "HMMA":
        return 4 if "F32" in parts else 2
    if word == "LDSM":
        return 4 if "4" in parts else 2 if "2" in parts else 1
    if "128" in parts and word in ("LDG", "LDS", "LD", "LDL"):
        return 4
    return 2 if "64" in parts or "WIDE" in parts else 1
