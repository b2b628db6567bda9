"""Figures of the chapters: functions of parameters and of a kernel's own run."""

from . import interacting
from .ideas.gpu_picture import gpu_picture
from .ideas.latency_hiding import hiding_frames, latency_hiding
from .pictures.causal_tiles import causal_tiles
from .pictures.filling import filling
from .pictures.footprint import footprint, sectors
from .pictures.matrix_loads import LDMATRIX_STEPS, ldmatrix_steps
from .pictures.memory_chart import memory_chart
from .pictures.multiprocessors import multiprocessors
from .pictures.threads import ownership, thread_map
from .pictures.tile_layouts import TILE_STEPS, tile_layouts
from .tile_runs import ELEMENT_BYTES
from .warps.overlap_timeline import overlap_frames, overlap_timeline

__all__ = [
    "ELEMENT_BYTES",
    "LDMATRIX_STEPS",
    "TILE_STEPS",
    "causal_tiles",
    "filling",
    "footprint",
    "gpu_picture",
    "hiding_frames",
    "latency_hiding",
    "ldmatrix_steps",
    "memory_chart",
    "multiprocessors",
    "overlap_frames",
    "overlap_timeline",
    "ownership",
    "sectors",
    "thread_map",
    "tile_layouts",
]

interacting.register()
