"""Runs PTX on NumPy: results, counters and a trace of every launch, with no GPU."""

from .compile.machine_code import MachineCode, machine_code
from .errors import SimulatorError
from .launch import launch
from .observe.report import COUNTERS, NCU_METRICS, AccessRecord, Report

__all__ = [
    "COUNTERS",
    "NCU_METRICS",
    "AccessRecord",
    "MachineCode",
    "Report",
    "SimulatorError",
    "launch",
    "machine_code",
]
