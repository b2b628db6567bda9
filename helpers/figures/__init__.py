"""Figures of the chapters: functions of parameters and of a kernel's own run."""

from . import interacting
from .charts import memory_chart
from .drawing import Drawing, Markup
from .pictures.footprint import footprint, sectors
from .pictures.multiprocessors import multiprocessors
from .pictures.threads import ownership, thread_map

__all__ = [
    "Drawing",
    "Markup",
    "footprint",
    "memory_chart",
    "multiprocessors",
    "ownership",
    "sectors",
    "thread_map",
]

interacting.register()
