"""What a named GPU is and what its parts give: sizes, latencies and rates, recorded once.

    from helpers.measure.facts import load_facts
    load_facts().latency["DRAM"]  # 700 cycles on an H200

Three kinds of numbers stand apart: `measured` by small kernels, `limits` that the CUDA runtime
tells, and the `data_sheet`'s. Whoever shows a number says which it is, and the GPU's name.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .recorded import FOLDER

__all__ = ["FACTS", "LEVELS", "GpuFacts", "load_facts"]

FACTS = "h200_facts"  # the name of the file
# Where a load can be answered, nearest first, and the name of its latency in the file.
LEVELS = {"shared": "shared", "L1": "l1", "L2": "l2", "DRAM": "dram"}


@dataclass(frozen=True)
class GpuFacts:
    """One file of facts.

    Attributes:
        device: the GPU's name.
        date: the day they were measured, as year-month-day.
        versions: of the driver, of CUDA, of CuPy.
        protocol: how they were measured, in a sentence.
        note: what else is to be known of them.
        measured: numbers by name; the name's end says the unit: `_cycles`, `_TBps`, `_TFLOPS`,
            `_us`, `_per_clock_per_sm`. Two are tables: see `read_by_warps` and `read_by_loads`.
        limits: what the CUDA runtime says of the device, by its names, and `sms`.
        data_sheet: what NVIDIA says.
        sources: where limits and data sheet are from.
    """

    device: str
    date: str
    versions: Mapping[str, str]
    protocol: str
    note: str
    measured: Mapping
    limits: Mapping[str, int]
    data_sheet: Mapping[str, float]
    sources: Mapping[str, str]

    @property
    def clock(self) -> float:
        """Cycles a second of a busy SM, measured."""
        return 1e9 * self.measured["clock_ghz_busy"]

    @property
    def latency(self) -> dict[str, float]:
        """Cycles from a load to its value, {"shared", "L1", "L2", "DRAM": cycles}, measured with
        nothing else going on."""
        return {level: self.measured[f"latency_{name}_cycles"] for level, name in LEVELS.items()}

    @property
    def read_by_warps(self) -> dict[int, float]:
        """{warps an SM: bytes a second read from DRAM}, measured."""
        table = self.measured["dram_read_TBps_by_warps_per_sm"]
        return {int(warps): 1e12 * rate for warps, rate in table.items()}

    @property
    def read_by_loads(self) -> dict[int, dict[int, float]]:
        """{loads that a warp has in flight: {warps an SM: bytes a second from DRAM}}, measured."""
        table = self.measured["dram_read_TBps_by_loads_and_warps"]
        return {
            int(loads): {int(warps): 1e12 * rate for warps, rate in by_warps.items()}
            for loads, by_warps in table.items()
        }

    @property
    def dram_read(self) -> float:
        """Bytes a second read from DRAM at best, measured."""
        return 1e12 * self.measured["dram_read_TBps"]

    def in_flight(self, rate: float) -> float:
        """Bytes that an SM has under way to let all SMs read `rate` bytes a second from DRAM.

        Little's law: under way = rate × latency. The latency is that of an idle memory, so this is
        the least; a memory in demand answers later.
        """
        return rate * self.latency["DRAM"] / self.clock / self.limits["sms"]

    def most_read(self, in_flight: float) -> float:
        """Bytes a second that all SMs can read from DRAM at most, each with so many under way."""
        return min(in_flight / self.in_flight(1.0), self.dram_read)

    @property
    def mma_tflops(self) -> float:
        """The most that `mma.sync` m16n8k16 with fp32 sums gave, in TFLOPS, over the numbers of
        warps and of independent products that were tried."""
        name = "mma_m16n8k16_f32acc_"
        return max(rate for key, rate in self.measured.items() if key.startswith(name))


@functools.cache
def load_facts(name: str = FACTS, folder: Path = FOLDER) -> GpuFacts:
    """Read `helpers/measure/recorded/<name>.json`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return GpuFacts(**json.loads((folder / f"{name}.json").read_text("utf-8")))
