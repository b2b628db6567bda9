"""The table of PTX instructions that only compute a value.

Loads, stores, control flow, barriers and everything that looks across a warp are elsewhere. The
semantics are those of the PTX ISA manual, version 9.0, and where the manual leaves a choice, what
an H200 was seen to do.
"""

from functools import cache

import numpy as np

from . import (  # noqa: F401 (they declare their forms, which are tried in the order of imports)
    bitfields,
    bits,
    comparisons,
    conversions,
    conversions_packed,
    doubles,
    floats,
    functions,
    halves,
    integers,
    video,
)
from .instruction_types import FORMS, Operation

# Every instruction allocates results of some 100 KB to 1 MB and drops others. glibc returns blocks
# that large to the system, and each new one costs page faults, several times the arithmetic. Once
# a larger block was freed, it keeps those up to that size (mallopt(3), M_MMAP_THRESHOLD). The
# block itself is never touched, so it costs nothing.
np.empty(31 << 20, np.uint8)


@cache
def operation(opcode: str, modifiers: tuple[str, ...]) -> Operation | None:
    """The instruction `opcode.modifier.modifier…`, or None if the table has no such instruction.

    `fma.rn.ftz.f32` is `operation("fma", ("rn", "ftz", "f32"))`. `setp` has two outputs, the
    predicate and its negation (the `q` of `p|q`), whether or not the program names the second.
    """
    name = ".".join((opcode, *modifiers))
    for pattern, make in FORMS.get(opcode, ()):
        found = pattern.fullmatch(name)
        made = make(*found.groups()) if found else None
        if made is not None:
            return made
    return None
