"""Machine code beside source: of a line's instructions those that tell something, and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..simulator.compile.machine_code import MachineCode
from ..simulator.compile.sass import KINDS, MachineInstruction
from .source import KernelError

# How kinds look; those that are not here make addresses, copies and jumps, as every kernel does.
_LOOKS = {
    "global": ("global loads", "global stores", "asynchronous copies"),
    "shared": ("shared loads", "shared stores"),
    "math": ("fp32", "fp64", "special functions"),
    "tensor": ("tensor cores",),
    "lanes": ("between lanes", "barriers", "atomics"),
    "local": ("local memory", "generic memory"),
}
_LOOK = {kind: look for look, kinds in _LOOKS.items() for kind in kinds}


@dataclass(frozen=True)
class OpcodeCount:
    """So many instructions of one opcode; `look` names the colour, empty for none."""

    opcode: str
    count: int
    look: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.opcode}"


@dataclass(frozen=True)
class LineCode:
    """The machine code of a line: what is told of it, how much else there is, and all of it."""

    told: tuple[OpcodeCount, ...] = ()
    others: int = 0
    instructions: tuple[MachineInstruction, ...] = ()

    def __str__(self) -> str:
        more = [f"{self.others:,} other{'s' * (self.others > 1)}"] if self.others else []
        return ", ".join([*map(str, self.told), *more])


def code_by_line(code: MachineCode | None, kinds: Collection[str] | None) -> dict[int, LineCode]:
    """The machine code of each line.

    Args:
        code: of a kernel.
        kinds: those to tell, names of `code.kinds`, and then nothing of lines that have none; by
            default all that work on numbers or memory.

    Raises:
        KernelError: `code` is something else, or there is no such kind.
    """
    if not isinstance(code, MachineCode | None):
        raise KernelError(
            "machine_code is what a kernel's machine_code() returns, or a GPU's architecture, not "
            f"of type {type(code).__name__}."
        )
    if kinds is not None and (unknown := [kind for kind in kinds if kind not in KINDS]):
        known = ", ".join(KINDS)
        raise KernelError(f"There is no kind of instruction {unknown[0]!r}; there are {known}.")
    if code is None:
        return {}
    chosen = _LOOK.keys() if kinds is None else kinds
    lines = {line: _told(found, chosen) for line, found in code.by_line.items()}
    return {line: found for line, found in lines.items() if kinds is None or found.told}


def look_of(one: MachineInstruction) -> str:
    """The name of an instruction's colour, empty for none."""
    return _LOOK.get(one.kind, "")


def _told(found: Iterable[MachineInstruction], kinds: Collection[str]) -> LineCode:
    found = tuple(found)
    shown = [one for one in found if one.kind in kinds]
    looks = {one.opcode: look_of(one) for one in shown}
    counts = Counter(one.opcode for one in shown)
    told = tuple(OpcodeCount(opcode, counts[opcode], look) for opcode, look in looks.items())
    return LineCode(told, len(found) - len(shown), found)
