"""What the notebooks import: `cp`, kernels from `kernels/`, checks, benches and figures.

`cp` is CuPy where an NVIDIA GPU answers and otherwise a stand-in with the same calls; see
`helpers.gpu.device`. It is looked for when it is first asked for, so that `helpers.simulator` can
be used without.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gpu import device
    from .gpu.device import cp
    from .measure import profile, timing

__version__ = "0.1.0"
__all__ = ["cp", "device", "profile", "timing"]

_PLACES = {"device": ".gpu.device", "profile": ".measure.profile", "timing": ".measure.timing"}


def __getattr__(name: str):
    # late: `helpers.simulator` is imported without the rest, and without looking for a GPU
    if name == "cp":
        return importlib.import_module(".gpu.device", __name__).cp
    if name in _PLACES:
        # late: as above
        return importlib.import_module(_PLACES[name], __name__)
    raise AttributeError(f"module 'helpers' has no attribute {name!r}")


if "IPython" in sys.modules:  # a notebook shows errors as panels, whichever room it imports
    from .panels.notebook import install

    install()
