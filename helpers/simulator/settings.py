"""Checks the settings of a launch: shared memory, schedule, limits."""

import functools
import os

import numpy as np

from .errors import SimulatorError
from .limits import SIMULATED

_LAUNCH = functools.partial(SimulatorError, "launch")
_ARGUMENT = functools.partial(SimulatorError, "argument")
DEFAULT_SHARED, MAX_SHARED = SIMULATED.shared, SIMULATED.opt_in_shared
SCHEDULES = ("lockstep", "warps", "warps_reversed")


def is_whole(value) -> bool:
    """Whether a value is a whole number, of Python or of NumPy, and no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_source(entry, filename, include_dirs) -> None:
    """Refuse a kernel name, a file name or folders of another type."""
    if not isinstance(entry, str) or not entry.strip():
        raise _ARGUMENT(f"The name of the kernel must be a string such as 'scale', not {entry!r}.")
    if not isinstance(filename, str):
        raise _ARGUMENT(f"{entry}: filename must be a string, not {filename!r}.")
    good = isinstance(include_dirs, (tuple, list))
    if not good or not all(isinstance(d, (str, os.PathLike)) for d in include_dirs):
        raise _ARGUMENT(
            f"{entry}: include_dirs must be a tuple of folders such as ('include',), not "
            f"{include_dirs!r}.",
        )


def check_settings(entry: str, schedule, shared_mem, max_dynamic_shared, **limits) -> None:
    """Check what can be checked without the kernel.

    Args:
        entry: the kernel's name, for messages.
        schedule, shared_mem, max_dynamic_shared: as launch() has them.
        **limits: numbers by name, each with the least that it may be: name=(value, least).
    """
    if schedule not in SCHEDULES:
        raise _LAUNCH(f"{entry}: schedule is one of {', '.join(SCHEDULES)}, not {schedule!r}.")
    if not is_whole(shared_mem) or shared_mem < 0:
        raise _LAUNCH(f"{entry}: shared_mem is a number of bytes of 0 or more, not {shared_mem!r}.")
    if max_dynamic_shared is not None:
        if not is_whole(max_dynamic_shared) or not 0 <= max_dynamic_shared <= MAX_SHARED:
            raise _LAUNCH(
                f"{entry}: max_dynamic_shared is None or a number of bytes of 0 to "
                f"{MAX_SHARED:,}, not {max_dynamic_shared!r}.",
            )
    for name, (value, least) in limits.items():
        if not is_whole(value) or value < least:
            raise _LAUNCH(f"{entry}: {name} is a whole number of {least} or more, not {value!r}.")


def check_shared(entry: str, static: int, dynamic: int, opted: int | None) -> None:
    """Refuse more shared memory than a block can have."""
    if static > DEFAULT_SHARED:
        raise _LAUNCH(
            f"{entry}: {static:,} bytes of static __shared__ memory are more than the 48 KB "
            f"({DEFAULT_SHARED:,} bytes) a block may have: use smaller tiles, or extern "
            "__shared__ with shared_mem= and an opt-in.",
        )
    asked = (
        f"{entry}: {static + dynamic:,} bytes of shared memory ({static:,} static and {dynamic:,} "
        "dynamic) are more than"
    )
    if opted is None and static + dynamic > DEFAULT_SHARED:
        raise _LAUNCH(
            f"{asked} the 48 KB ({DEFAULT_SHARED:,} bytes) a block may have without an opt-in: set "
            f"kernel.max_dynamic_shared_size_bytes first (at most {MAX_SHARED:,}), or use smaller "
            "tiles."
        )
    if opted is not None and (dynamic > opted or static + dynamic > MAX_SHARED):
        raise _LAUNCH(
            f"{asked} this kernel may have ({opted:,} dynamic bytes by its opt-in, {MAX_SHARED:,} "
            "in all): raise max_dynamic_shared_size_bytes or use smaller tiles."
        )
