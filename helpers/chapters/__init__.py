"""The chapters: what each adds to the course. `ch12.py` is found by its name.

A chapter's module has what it needs of `RUNGS`, for the ladder, from the lowest up, and
`EXERCISES`, in the order of the notebook. Which pictures a bench shows stands in its rung.
"""

import pkgutil
import re
from importlib import import_module

from ..exercises.spec import Exercise
from ..problem.rungs import Rung

NAMES = tuple(
    sorted(m.name for m in pkgutil.iter_modules(__path__) if re.fullmatch(r"ch\d\d", m.name))
)
MODULES = tuple(import_module(f"{__name__}.{name}") for name in NAMES)
EXERCISES: tuple[Exercise, ...] = tuple(
    one for module in MODULES for one in getattr(module, "EXERCISES", ())
)
RUNGS: tuple[Rung, ...] = tuple(one for module in MODULES for one in getattr(module, "RUNGS", ()))

__all__ = ["EXERCISES", "MODULES", "NAMES", "RUNGS"]
