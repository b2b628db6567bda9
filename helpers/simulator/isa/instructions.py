"""The table of PTX instructions that only compute a value.

Loads, stores, control flow, barriers and everything that looks across a warp are elsewhere. The
semantics are those of the PTX ISA manual, version 9.0, and where the manual leaves a choice, what
an H200 was seen to do.
"""

from __future__ import annotations

import numpy as np

from . import (
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
from .instruction_types import Builder, Operation, first_of

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

# Every instruction allocates results of some 100 KB to 1 MB and drops others. glibc returns blocks
# that large to the system, and each new one costs page faults, several times the arithmetic. Once
# a larger block was freed, it keeps those up to that size (mallopt(3), M_MMAP_THRESHOLD). The
# block itself is never touched, so it costs nothing.
np.empty(31 << 20, np.uint8)


def operation(opcode: str, modifiers: tuple[str, ...]) -> Operation | None:
    """The instruction `opcode.modifier.modifier…`, or None if the table has no such instruction.

    `fma.rn.ftz.f32` is `operation("fma", ("rn", "ftz", "f32"))`. `setp` has two outputs, the
    predicate and its negation (the `q` of `p|q`), whether or not the program names the second.
    """
    build = _TABLE.get(opcode)
    return None if build is None or not modifiers else build(modifiers)
