"""Why settings cannot run, in one sentence, found out before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from ..kernels.source import KernelError, Value
from ..simulator.errors import SimulatorError
from .subject import Refused, Subject


def refusal(subject: Subject, settings: Mapping[str, Value]) -> str | None:
    """Why `settings` cannot run, in one sentence, or None if nothing speaks against it.

    Looks at the geometry, and asks the compiler what the source refuses and how much shared memory
    it declares; runs nothing.
    """
    try:
        for launch in subject.launches(settings):
            if reason := launch.refusal():
                return reason
    except Refused as error:
        return str(error)
    except (KernelError, SimulatorError):
        return None  # an error in the source, which is told where it is run
    return None
