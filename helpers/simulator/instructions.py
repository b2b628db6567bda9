"""The table of PTX instructions that only compute a value.

Loads, stores, control flow, barriers and everything that looks across a warp are elsewhere. The
semantics are those of the PTX ISA manual, version 9.0, and where the manual leaves a choice, what
an H200 was seen to do.
"""

from __future__ import annotations

from helpers.simulator import bits, comparisons, conversions, floats, integers
from helpers.simulator.instruction_types import Builder, Operation

__all__ = ["Operation", "operation"]

_TABLE: dict[str, list[Builder]] = {}
for _module in (integers, bits, comparisons, floats, conversions):
    for _opcode, _builder in _module.BUILDERS.items():
        _TABLE.setdefault(_opcode, []).append(_builder)


def operation(opcode: str, modifiers: tuple[str, ...]) -> Operation | None:
    """The instruction `opcode.modifier.modifier…`, or None if the table has no such instruction.

    `fma.rn.ftz.f32` is `operation("fma", ("rn", "ftz", "f32"))`. `setp` has two outputs, the
    predicate and its negation (the `q` of `p|q`), whether or not the program names the second.
    """
    for build in _TABLE.get(opcode, ()):
        found = build(modifiers)
        if found is not None:
            return found
    return None
