"""GPUs by name: what a multiprocessor holds, and the most that each part of the chip can do.

Rates of a multiprocessor are for one clock cycle. Sources:

- Limits of a multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities" (in `limits`).
- Arithmetic for each clock: the guide's "Throughput of Native Arithmetic Instructions".
- Tensor cores: the whitepapers of Turing, Ampere (GA100, GA102), Hopper and Ada.
- Multiprocessors, clocks, memory: the data sheet of each GPU.
- L2: the Ampere whitepaper (A100: 5,120 bytes a clock). An H200's slices were seen to move 4,857;
  T4 (half the slices' width) and the others are taken by analogy, rather too high than too low.
- H200, `measured`: loops that do one thing alone, on one H200 (`README.md` of this folder).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..errors import SimulatorError
from ..limits import LIMITS, Limits

_MIB = 1 << 20
# A run is never the best that a chip can give, so a measured rate is taken this much higher.
MARGIN = 1.01


@dataclass(frozen=True, eq=False)
class Gpu:
    """A GPU.

    Attributes:
        name: as it is usually called.
        capability: 10 * major + minor of its compute capability.
        multiprocessors: how many there are.
        clock: of a multiprocessor, in Hz, as high as the data sheet has it.
        dram: bytes a second between memory and the chip, of the data sheet.
        l2_bytes: what the level-two cache holds.
        l2_clock_bytes: bytes a clock that the cache's slices read or write together.
        fp32: lanes of a multiprocessor that finish an FFMA, FADD or FMUL in a clock.
        special: lanes that finish a special function (`ex2`, `rcp`, `sin`) in a clock.
        tensor: operations a clock of a multiprocessor's tensor cores by `mma.sync`, by the kind of
            numbers: `fp16`, `fp16, fp16 sum`, `bf16`, `tf32`, `int8`, `fp64`, `fp8`,
            `fp8, fp16 sum`; those that a GPU lacks are not there.
        wgmma: the same by `wgmma`, of a whole warpgroup; empty before Hopper.
        measured: the highest rates that were seen: `dram`, `l2` and `l2, 1 MB` in bytes a second,
            `mma.sync fp16` and so on in operations a second. A bound takes those of DRAM and of
            `mma.sync` if they are lower than the data sheet's.
        source: where the numbers are from.
    """

    name: str
    capability: int
    multiprocessors: int
    clock: float
    dram: float
    l2_bytes: int
    fp32: int
    special: int
    tensor: Mapping[str, float]
    source: str
    l2_clock_bytes: float
    wgmma: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        """What a multiprocessor holds, and a block may ask for."""
        return LIMITS[self.capability]

    @property
    def architecture(self) -> str:
        """The name of its machine code, such as `sm_90`."""
        return f"sm_{self.capability}"

    @property
    def warps(self) -> int:
        """The most warps that a multiprocessor holds."""
        return self.limits.multiprocessor_threads // 32

    @property
    def issue(self) -> int:
        """Instructions of a warp that a multiprocessor starts in a clock, one each scheduler."""
        return self.limits.partitions

    @property
    def dram_rate(self) -> float:
        """Bytes a second of memory that a kernel can count on at best."""
        seen = self.measured.get("dram")
        return self.dram if seen is None else min(self.dram, MARGIN * seen)

    @property
    def l2_rate(self) -> float:
        """Bytes a second of the level-two cache's slices at best."""
        return self.l2_clock_bytes * self.clock

    def tensor_limit(self, kind: str) -> float | None:
        """Operations a second of `mma.sync` on all multiprocessors that were not exceeded.

        Tensor cores at work take so much power that the clock goes down, on an H200 to 1.8 GHz.
        """
        seen = self.measured.get(f"mma.sync {kind}")
        return None if seen is None else MARGIN * seen

    def __repr__(self) -> str:
        return f"<Gpu {self.name}: {self.multiprocessors} multiprocessors>"


_T4 = {"fp16": 1024, "fp16, fp16 sum": 1024, "int8": 2048}
_A100 = {
    "fp16": 2048, "fp16, fp16 sum": 2048, "bf16": 2048, "tf32": 1024, "int8": 4096, "fp64": 128,
}  # fmt: skip
_WGMMA = {"fp16": 4096, "fp16, fp16 sum": 4096, "bf16": 4096, "tf32": 2048, "int8": 8192,
          "fp8": 8192, "fp8, fp16 sum": 8192}  # fmt: skip
# An m16n8k16 takes a quarter of a multiprocessor six clocks, two thirds of what wgmma reaches: 98 %
# of this was measured, and of tf32's.
_HOPPER = {kind: rate * 2 / 3 for kind, rate in _WGMMA.items()} | {"fp64": 256}
_GEFORCE = {"fp16": 512, "fp16, fp16 sum": 1024, "bf16": 512, "tf32": 256, "int8": 2048}
_ADA = {**_GEFORCE, "fp8": 1024, "fp8, fp16 sum": 2048}
_H200 = {
    "dram": 4.64e12, "l2": 9.24e12, "l2, 1 MB": 16.05e12,
    "mma.sync fp16": 635.2e12, "mma.sync bf16": 635.2e12, "mma.sync tf32": 317.6e12,
}  # fmt: skip

_ALL = (
    Gpu(
        "T4", 75, 40, 1.59e9, 320e9, 4 * _MIB, 64, 16, _T4,
        "NVIDIA T4 data sheet; Turing whitepaper (TU104)", 2560,
    ),
    Gpu(
        "A100", 80, 108, 1.41e9, 1555e9, 40 * _MIB, 64, 16, _A100,
        "NVIDIA A100 data sheet, SXM4 40 GB; Ampere whitepaper (GA100)", 5120,
    ),
    Gpu(
        "H100", 90, 132, 1.98e9, 3350e9, 50 * _MIB, 128, 16, _HOPPER,
        "NVIDIA H100 data sheet, SXM5; Hopper whitepaper (GH100); mma.sync as on the H200", 5120,
        _WGMMA,
    ),
    Gpu(
        "H200", 90, 132, 1.98e9, 4800e9, 60 * _MIB, 128, 16, _HOPPER,
        "NVIDIA H200 data sheet, SXM; Hopper whitepaper (GH100); measured on one H200", 5120,
        _WGMMA, _H200,
    ),
    Gpu(
        "RTX 3090", 86, 82, 1.695e9, 936e9, 6 * _MIB, 128, 16, _GEFORCE,
        "NVIDIA Ampere GA102 whitepaper; clock: its boost, which a cool card exceeds", 5120,
    ),
    Gpu(
        "RTX 4090", 89, 128, 2.52e9, 1008e9, 72 * _MIB, 128, 16, _ADA,
        "NVIDIA Ada whitepaper (AD102); clock: its boost, which a cool card exceeds", 5120,
    ),
)  # fmt: skip
GPUS: Mapping[str, Gpu] = MappingProxyType({one.name: one for one in _ALL})


def gpu(name: str | Gpu = "H200") -> Gpu:
    """The GPU of that name, however it is written; a `Gpu` is given back.

    Raises:
        SimulatorError: of kind `argument`, if there is none.
    """
    if isinstance(name, Gpu):
        return name
    asked = _plain(name) if isinstance(name, str) else ""
    for known in GPUS.values():
        if asked in (_plain(known.name), _plain(f"NVIDIA {known.name}"), _plain(known.name)[3:]):
            return known
    raise SimulatorError(
        "argument", f"There is no GPU {name!r} here to ask about; there are {', '.join(GPUS)}."
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
