"""The kernels of chapter 11, for GPUs of compute capability 9.0: wgmma, TMA, producer, consumers.

    from helpers.problem.flash_hopper import FLASH_PING_PONG

    O = FLASH_PING_PONG.run(Q, K, V)                           # on the GPU, or on the simulator
    O, reports = FLASH_PING_PONG.simulate(Q, K, V, CAUSAL=1)   # counted, on any machine

Each is one step over the one before, and the first over the double buffer of chapter 10. All but
the first take tensor maps, which tell the copies of TMA where Q, K, V and O lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..gpu import device
from ..gpu.tensor_map import tensor_map
from ..kernels.kernel import Kernel
from ..kernels.launches import Launch
from ..kernels.source import KernelError
from .flash import FlashRung

CAPABILITY = 9.0
TOOLKIT = 12  # the first with sm_90a
WARPGROUP = 128  # threads
GROUP_ROWS = 64  # rows of Q that a warpgroup multiplies
THREE = 3 * GROUP_ROWS  # rows of Q of three warpgroups
PANEL = 64  # elements in a row of a box: the 128 bytes that TMA swizzles
STORED = 16  # rows of O in a box: a warp's
BARRIERS = 128  # bytes of mbarriers behind the tiles, at most
MULTIPROCESSORS = 132  # of an H100 or H200, for launches on the simulator


@dataclass(frozen=True, kw_only=True, repr=False)
class HopperRung(FlashRung):
    """A rung whose warpgroups multiply.

    Attributes:
        maps: whether it takes tensor maps; else arrays and strides, as the rungs before.
        producers: warpgroups beside those that multiply.
        stays: whether its blocks stay, one on each multiprocessor, until all work is done.
    """

    kind: ClassVar[str] = "hopper"

    stages: int = 2
    maps: bool = True
    producers: int = 0
    stays: bool = False

    def kernel(self, element: str = "half", d: int = 128) -> Kernel:
        return self._kernel_for(element, d, B_R=self._rows(d)[0])

    def shared_bytes(self, d: int) -> int:
        """Dynamic shared memory of a block: tiles of Q, K, V, and of O if it stays; mbarriers."""
        b_r, b_c = self._rows(d)
        tiles = b_r * (1 + self.stays) + 2 * self.stages * b_c
        return tiles * d * 2 + BARRIERS * self.maps

    def launch_of(self, Q, K, V, O, layout: str = "bhnd") -> Launch:  # noqa: E741 (its letter)
        b, h, n, d = self._check(Q, K, V, layout)
        k = self.kernel(self.element_of(Q), d)
        b_r, b_c = self._rows(d)
        grid = (-(-n // b_r), h, b)
        args = (Q, K, V, O, n, *self.strides(h, n, d, layout))
        if self.maps:
            boxes = zip((Q, K, V, O), (b_r, b_c, b_c, STORED), strict=True)
            args = (*(_mapped(x, rows, layout) for x, rows in boxes), n)
        if self.stays:
            items = grid[0] * h * b
            args = (*args, h, items)
            grid = (self._blocks(items, Q), 1, 1)
        threads = (b_r // GROUP_ROWS + self.producers) * WARPGROUP
        return Launch.of(k, grid, (threads, 1, 1), args, self.shared_bytes(d))

    def _rows(self, d: int) -> tuple[int, int]:
        """Rows in a tile of Q, and of K.

        With rows of 64 elements the registers suffice for a third consumer, unless B_R is set.
        """
        values = self.values
        third = self.producers and d <= 64 and "B_R" not in self.settings
        return THREE if third else int(values["B_R"]), int(values["B_C"])

    def _blocks(self, items: int, array) -> int:
        """Blocks that stay, for so many pieces of work.

        With CAUSAL these take unequal time: each has a block then, which starts where one ends.
        """
        if self.values["CAUSAL"]:
            return items
        on_host = isinstance(array, np.ndarray)
        return min(items, MULTIPROCESSORS if on_host else multiprocessors())

    def refused_here(self) -> str:
        return refused_here(self.name)

    def _check_device(self, launch: Launch) -> None:
        if refused := self.refused_here():
            raise KernelError(refused)


def multiprocessors() -> int:
    """How many this GPU has."""
    return int(device.cp.cuda.Device().attributes["MultiProcessorCount"])


def refused_here(name: str) -> str:
    """Why this machine's GPU cannot run what has this name, in a sentence; empty if there is none,
    or if it can."""
    if not device.is_gpu:
        return ""
    cuda = device.cp.cuda
    try:
        check_hopper(name, int(cuda.Device().compute_capability) / 10, cuda.nvrtc.getVersion()[0])
    except KernelError as error:
        return str(error)
    return ""


def check_hopper(name: str, capability: float, compiler: int) -> None:
    """Check that a GPU and its compiler know the instructions of chapter 11.

    Args:
        name: the rung's.
        capability: the GPU's compute capability, such as 9.0.
        compiler: the number before the point of NVRTC's version, such as 13.

    Raises:
        KernelError: they do not.
    """
    instead = "set HELPERS_DEVICE=simulator, or call simulate()."
    if capability != CAPABILITY:
        raise KernelError(
            f"{name} needs a GPU of compute capability {CAPABILITY}, such as the H100 and H200, "
            f"for wgmma, and this one has {capability}: {instead}"
        )
    if compiler < TOOLKIT:
        raise KernelError(
            f"{name} needs CUDA {TOOLKIT} or newer, which knows sm_90a, and CuPy's is of CUDA "
            f"{compiler}: run `make lab` again; or {instead}"
        )


def _mapped(array, rows: int, layout: str):
    """The tensor map of an array, whose boxes are so many rows of one head, 64 elements wide."""
    view = array if layout == "bhnd" else array.transpose(0, 2, 1, 3)
    return tensor_map(view, (1, 1, rows, PANEL), 2 * PANEL)


FLASH_WGMMA = HopperRung(name="flash_wgmma", chapter=11, file="11a_wgmma.cu", maps=False)
FLASH_TMA = HopperRung(name="flash_tma", chapter=11, file="11b_tma.cu")
FLASH_PRODUCER = HopperRung(name="flash_producer", chapter=11, file="11c_producer.cu", producers=1)
FLASH_AHEAD = HopperRung(name="flash_ahead", chapter=11, file="11d_ahead.cu", producers=1)
FLASH_PING_PONG = HopperRung(
    name="flash_ping_pong", chapter=11, file="11e_ping_pong.cu", producers=1
)
FLASH_RARE_RESCALE = HopperRung(
    name="flash_rare_rescale", chapter=11, file="11f_rescale.cu", producers=1
)
FLASH_PERSISTENT = HopperRung(
    name="flash_persistent", chapter=11, file="11g_persistent.cu", producers=1, stays=True
)

HOPPER = (
    FLASH_WGMMA,
    FLASH_TMA,
    FLASH_PRODUCER,
    FLASH_AHEAD,
    FLASH_PING_PONG,
    FLASH_RARE_RESCALE,
    FLASH_PERSISTENT,
)
