"""Figures of the chapters: functions of parameters and of a kernel's own run."""

from . import interacting
from .charts import memory_chart
from .drawing import Drawing, Markup
from .multiprocessors import multiprocessors
from .threads import ownership, thread_map
from .warps import footprint, sectors

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
