"""The table of PTX instructions that only compute a value.

Loads, stores, control flow, barriers and everything that looks across a warp are elsewhere. The
semantics are those of the PTX ISA manual, version 9.0, and where the manual leaves a choice, what
an H200 was seen to do.
"""

from __future__ import annotations

from helpers.simulator import (
    bitfields,
    bits,
    comparisons,
    conversions,
    doubles,
    floats,
    functions,
    halves,
    integers,
    video,
)
from helpers.simulator.instruction_types import Builder, Operation, first_of

__all__ = ["Operation", "operation"]

_MODULES = (
    integers,
    bits,
    bitfields,
    comparisons,
    floats,
    doubles,
    functions,
    halves,
    conversions,
    video,
)


def _table() -> dict[str, Builder]:
    """opcode -> builder; `add`, say, is in several modules, each with types of its own."""
    found: dict[str, list[Builder]] = {}
    for module in _MODULES:
        for opcode, builder in module.BUILDERS.items():
            found.setdefault(opcode, []).append(builder)
    return {opcode: first_of(*builders) for opcode, builders in found.items()}


_TABLE = _table()


def operation(opcode: str, modifiers: tuple[str, ...]) -> Operation | None:
    """The instruction `opcode.modifier.modifier…`, or None if the table has no such instruction.

    `fma.rn.ftz.f32` is `operation("fma", ("rn", "ftz", "f32"))`. `setp` has two outputs, the
    predicate and its negation (the `q` of `p|q`), whether or not the program names the second.
    """
    build = _TABLE.get(opcode)
    return None if build is None or not modifiers else build(modifiers)
