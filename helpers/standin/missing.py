"""What the stand-in says about a name of CuPy's that it does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Names that people look for, and what serves them on both kinds of machine.
INSTEAD = {
    "ElementwiseKernel": "write the kernel as a RawKernel",
    "ReductionKernel": "write the kernel as a RawKernel",
    "fuse": "write the kernel as a RawKernel",
    "is_available": "ask helpers.device.is_gpu",
    "get_elapsed_time": "there are no times without a GPU: ask helpers.device.is_gpu first",
    "profiler": "a launch's counts are in kernel.report, under helpers.device.counting()",
    "nvtx": "a launch's counts are in kernel.report, under helpers.device.counting()",
}


def unknown(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `owner.name`, with the names of `known` that look like it.

    Args:
        owner: how a reader writes the namespace or object, such as `cp.cuda`.
        name: the attribute that was asked for.
        known: the names that `owner` does have.
    """
    if name.startswith("__"):  # protocols that Python and NumPy probe for
        return AttributeError(name)
    message = f"{owner}.{name} is not part of the stand-in that takes CuPy's place without a GPU"
    near = difflib.get_close_matches(name, [k for k in known if k[0] != "_"], n=3)
    if name in INSTEAD:
        message += f"; {INSTEAD[name]}."
    elif near:
        message += f"; near it there are {', '.join(near)}."
    else:
        message += "; what needs it runs on a GPU alone."
    return AttributeError(message)
