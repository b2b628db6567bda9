"""What the notebooks import: `cp`, kernels from `kernels/`, checks, benches and figures.

`cp` is CuPy where an NVIDIA GPU answers and otherwise a stand-in with the same calls; see
`helpers.gpu.device`. It is looked for when it is first asked for, so that `helpers.simulator` can
be used without.
"""

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gpu import device
    from .gpu.device import cp
    from .measure import timing
    from .measure.profile import profile

__version__ = "0.1.0"
__all__ = ["cp", "device", "profile", "timing"]

# Where each is, and its name there if it is no module.
_PLACES = {
    "cp": (".gpu.device", "cp"),
    "device": (".gpu.device", ""),
    "profile": (".measure.profile", "profile"),
    "timing": (".measure.timing", ""),
}


def __getattr__(name: str):
    if name not in _PLACES:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}")
    place, member = _PLACES[name]
    if name == "cp":
        # late: a program that takes `cp` may also say `import cupy`
        importlib.import_module(".gpu.import_cupy", __name__).install()
    # late: the simulator is imported without the rest, and without looking for a GPU
    module = importlib.import_module(place, __name__)
    return getattr(module, member) if member else module


if "IPython" in sys.modules:  # a notebook, whichever room it imports
    from .gpu import import_cupy
    from .panels import notebook as _panels

    _panels.install()  # shows errors as panels
    import_cupy.install()
