"""GPUs by name: what a multiprocessor holds, and the most that each part of the chip can do.

Rates of a multiprocessor are for one clock cycle. Sources:

- Limits of a multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities" (in `limits`).
- Arithmetic for each clock: the guide's "Throughput of Native Arithmetic Instructions".
- Tensor cores: the whitepapers of Turing, Ampere (GA100, GA102), Hopper and Ada.
- Multiprocessors, clocks, memory: the data sheet of each GPU.
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
        l2_clock_bytes: bytes a clock that the cache gives to all multiprocessors together; None if
            nobody says.
        fp32: lanes of a multiprocessor that finish an FFMA, FADD or FMUL in a clock.
        special: lanes that finish a special function (`ex2`, `rcp`, `sin`) in a clock.
        tensor: floating-point operations a clock of a multiprocessor's tensor cores, by the way
            they are used: `fp16`, `fp16, fp16 sum`, `bf16`, `tf32`, `int8`, `fp64`; those that a
            kind lacks are not there.
        measured: rates that were seen, by name (`dram`, `l2`: bytes a second; `mma.sync`: as
            `tensor`). A bound takes them in place of the data sheet's.
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
    l2_clock_bytes: float | None = None
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
    def l2_rate(self) -> float | None:
        """Bytes a second of the level-two cache at best; None if nobody says."""
        seen = self.measured.get("l2")
        if seen is not None:
            return MARGIN * seen
        return None if self.l2_clock_bytes is None else self.l2_clock_bytes * self.clock

    def tensor_rate(self, kind: str) -> float | None:
        """Operations a clock and multiprocessor of `mma.sync` on a kind of numbers at best."""
        peak = self.tensor.get(kind)
        seen = self.measured.get(f"mma.sync {kind}")
        return peak if peak is None or seen is None else min(peak, MARGIN * seen)

    def __repr__(self) -> str:
        return f"<Gpu {self.name}: {self.multiprocessors} multiprocessors>"


_T4 = {"fp16": 1024, "fp16, fp16 sum": 1024, "int8": 2048}
_A100 = {
    "fp16": 2048, "fp16, fp16 sum": 2048, "bf16": 2048, "tf32": 1024, "int8": 4096, "fp64": 128,
}  # fmt: skip
_HOPPER = {
    "fp16": 4096, "fp16, fp16 sum": 4096, "bf16": 4096, "tf32": 2048, "int8": 8192, "fp64": 256,
    "fp8": 8192,
}  # fmt: skip
_GEFORCE = {"fp16": 512, "fp16, fp16 sum": 1024, "bf16": 512, "tf32": 256, "int8": 2048}
_ADA = {**_GEFORCE, "fp8": 1024}
_HOPPER_MMA = 629.4e12 / (132 * 1.98e9)  # 2,408 of the 4,096 that wgmma reaches

_ALL = (
    Gpu(
        "T4", 75, 40, 1.59e9, 320e9, 4 * _MIB, 64, 16, _T4,
        "NVIDIA T4 data sheet; Turing whitepaper (TU104)",
        l2_clock_bytes=1024,
    ),
    Gpu(
        "A100", 80, 108, 1.41e9, 1555e9, 40 * _MIB, 64, 16, _A100,
        "NVIDIA A100 data sheet, SXM4 40 GB; Ampere whitepaper (GA100)",
        l2_clock_bytes=5120,
    ),
    Gpu(
        "H100", 90, 132, 1.98e9, 3350e9, 50 * _MIB, 128, 16, _HOPPER,
        "NVIDIA H100 data sheet, SXM5; Hopper whitepaper (GH100); mma.sync as on the H200",
        measured={"mma.sync fp16": _HOPPER_MMA, "mma.sync fp16, fp16 sum": _HOPPER_MMA,
                  "mma.sync bf16": _HOPPER_MMA},
    ),
    Gpu(
        "H200", 90, 132, 1.98e9, 4800e9, 60 * _MIB, 128, 16, _HOPPER,
        "NVIDIA H200 data sheet, SXM; Hopper whitepaper (GH100); measured on one H200",
        measured={"dram": 4.404e12, "l2": 6.908e12, "mma.sync fp16": _HOPPER_MMA,
                  "mma.sync fp16, fp16 sum": _HOPPER_MMA, "mma.sync bf16": _HOPPER_MMA},
    ),
    Gpu(
        "RTX 3090", 86, 82, 1.695e9, 936e9, 6 * _MIB, 128, 16, _GEFORCE,
        "NVIDIA Ampere GA102 whitepaper; clock: its boost, which a cool card exceeds",
    ),
    Gpu(
        "RTX 4090", 89, 128, 2.52e9, 1008e9, 72 * _MIB, 128, 16, _ADA,
        "NVIDIA Ada whitepaper (AD102); clock: its boost, which a cool card exceeds",
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
