"""Runs PTX on NumPy: results, counters and a trace of every launch, with no GPU."""

from .bounds.gpus import GPUS, Gpu, gpu
from .bounds.least import Bounds
from .bounds.occupancy import Occupancy, occupancy
from .compile.machine_code import MachineCode, machine_code
from .errors import SimulatorError
from .launch import launch
from .observe.access_trace import AccessRecord
from .observe.report import COUNTERS, NCU_METRICS, Report

__all__ = [
    "COUNTERS",
    "GPUS",
    "NCU_METRICS",
    "AccessRecord",
    "Bounds",
    "Gpu",
    "MachineCode",
    "Occupancy",
    "Report",
    "SimulatorError",
    "gpu",
    "launch",
    "machine_code",
    "occupancy",
]
