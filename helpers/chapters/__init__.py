"""The chapters: of each, what its exercises are made of. `ch12.py` is found by its name.

A chapter's module has `EXERCISES`, in the order of the notebook.
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

NAMES = tuple(
    sorted(m.name for m in pkgutil.iter_modules(__path__) if re.fullmatch(r"ch\d\d", m.name))
)
MODULES = tuple(import_module(f"{__name__}.{name}") for name in NAMES)
EXERCISES = tuple(one for module in MODULES for one in module.EXERCISES)

__all__ = ["EXERCISES", "MODULES", "NAMES"]
