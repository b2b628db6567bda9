"""What the notebooks import: `cp`, kernels from `kernels/`, checks, benches and figures.

`cp` is CuPy where an NVIDIA GPU answers and otherwise a stand-in with the same calls; see
`helpers.device`. It is looked for when it is first asked for, so that `helpers.simulator` can be
used without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import profile
    from .device import cp

__version__ = "0.1.0"
__all__ = ["cp", "profile"]


def __getattr__(name: str):
    if name == "cp":
        from .device import cp

        globals()["cp"] = cp
        return cp
    if name == "profile":  # the module, which can be called
        return importlib.import_module(".profile", __name__)
    raise AttributeError(f"module 'helpers' has no attribute {name!r}")
