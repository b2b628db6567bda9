"""The recorded cases by file, and how results are laid out in it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from helpers.simulator.observe.report import NCU_METRICS

from .assembled.assembled_cases import assembled_cases
from .cases import Case
from .instructions import Group, groups, pack, unpack
from .memory.memory_cases import memory_cases
from .programs import programs
from .warps import warp_cases

DATA = Path(__file__).parent / "data"
FLOATING = ("convert_floats", "float32", "float64", "half", "approximate")
# file name (without .npz) of each section, and those that have counters too
SECTIONS = ("integers", "floats", "programs", "warps", "memory", "assembled")
COUNTED = ("memory", "assembled")

METRICS = NCU_METRICS
# Read beside them, for information: they count machine instructions, of which PTX does not tell all.
EXTRA_METRICS = {
    "instructions": "smsp__inst_executed.sum",
    "shared_store_instructions": "smsp__inst_executed_op_shared_st.sum",
    "thread_fadd": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "thread_fmul": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "thread_ffma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}


@functools.cache
def instruction_groups(section: str) -> tuple[Group, ...]:
    """The groups kept in the file of `section`, `integers` or `floats`."""
    wanted = section == "floats"
    return tuple(g for g in groups() if (g.name.rsplit("_", 1)[0] in FLOATING) == wanted)


@functools.cache
def cases(section: str) -> tuple[Case, ...]:
    """Every launch of a section."""
    if section == "programs":
        return programs()
    if section == "warps":
        return warp_cases()
    if section == "memory":
        return memory_cases()
    if section == "assembled":
        return assembled_cases()
    return tuple(group.case() for group in instruction_groups(section))


def to_file(section: str, case: Case, outputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Entries of the .npz that hold what a case wrote."""
    if section in ("integers", "floats"):
        group = next(g for g in groups() if g.name == case.name)
        return pack(group, outputs[0])
    return {
        f"{case.name}/{index}": value for index, value in zip(case.outputs, outputs, strict=True)
    }


def from_file(section: str, case: Case, data: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The inverse of `to_file`. Raises KeyError where nothing was recorded."""
    if section in ("integers", "floats"):
        group = next(g for g in groups() if g.name == case.name)
        return [unpack(group, data)]
    return [data[f"{case.name}/{index}"] for index in case.outputs]
