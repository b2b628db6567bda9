"""The ladder: every way to compute attention that the chapters build, from the naive kernels up.

    from helpers.problem.ladder import ladder, rung

    O = rung("tiled").run(Q, K, V, TILE=8)                 # on the GPU, or on the simulator
    O, reports = rung("tiled").simulate(Q, K, V, TILE=8)   # counted, on any machine

A chapter that adds a rung says so in its own module; they are gathered when first asked for.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING

from ..kernels.source import KernelError

if TYPE_CHECKING:
    from .rungs import Rung


@functools.cache
def _all() -> tuple[Rung, ...]:
    # late: a chapter's rungs are made of what is here, and lie in a room above this one
    return import_module("helpers.chapters").RUNGS


def ladder(kind: str = "") -> tuple[Rung, ...]:
    """The rungs by chapter: all of them, or those of a kind: `fp32`, `flash`, or `hopper`."""
    return tuple(one for one in _all() if kind in ("", one.kind))


def rung(name: str, kind: str = "") -> Rung:
    """The rung of that name.

    Raises:
        KernelError: there is none, or it is of another kind than asked for.
    """
    known = {one.name: one for one in ladder(kind)}
    if not isinstance(name, str) or name not in known:
        which = f" of kind {kind}" if kind else ""
        raise KernelError(f"There is no rung {name!r}{which}; the ladder has {', '.join(known)}.")
    return known[name]
