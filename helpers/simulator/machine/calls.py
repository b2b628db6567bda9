"""Calls that the simulator answers itself: printf, assert, trap."""

from __future__ import annotations

import numpy as np

from ..errors import SimulatorError
from ..ptx.syntax import Instruction
from .faults import part_written
from .printf import string_at, vprintf


def alloca_step(i: Instruction, code):
    """alloca and stacksave are not part of the simulator."""
    raise i.unsupported("does not have dynamic stack allocation")


def assertion(S, i: Instruction, arguments: list[np.ndarray]) -> np.ndarray:
    """A failed assert() stops the launch."""
    mask = np.ones(1, np.bool_) if S.mask is None else S.mask
    block, thread = S.layout.locate(mask)
    flat = int(np.argmax(S.layout.full(mask)))
    address = int(S.layout.full(arguments[0].view(np.int64)).reshape(-1)[flat])
    raise SimulatorError(
        "assert",
        f"{S.entry}, line {i.line}: assertion `{string_at(S, i, address, flat)}` failed in thread "
        f"{thread} of block {block}.{part_written(S)}",
        i.line,
    )


BUILTIN = {"vprintf": vprintf, "__assertfail": assertion}
