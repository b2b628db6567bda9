"""FlashAttention in one kernel: the rungs of chapters 08 and 09, as data.

    from helpers.problem.flash import FLASH_SWIZZLED

    O = FLASH_SWIZZLED.run(Q, K, V)                 # on the GPU, or on the simulator
    O, reports = FLASH_SWIZZLED.simulate(Q, K, V)   # counted, on any machine

Q, K and V are [batch, heads, n, d], of fp16 (float16) or of bf16 (its bits as uint16, or bfloat16
where NumPy knows that type). ELEMENT and HEAD_DIM of the kernels follow from the arrays; B_R, B_C
and WARPS are the parameters of a rung.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ..gpu import device
from ..kernels.kernel import KERNELS, Kernel, load_kernel
from ..kernels.launches import Launch
from ..kernels.source import KernelError, Parameter, Value
from ..simulator.limits import SIMULATED
from .rungs import Prepared

__all__ = [
    "FLASH",
    "FLASH_BASELINE",
    "FLASH_SWIZZLED",
    "LAYOUTS",
    "FlashRung",
    "check_device",
]

# The orders of axes that a rung takes, by the first letters of batch, heads, n and d.
LAYOUTS = ("bhnd", "bnhd")
# The compute capability that first has cp.async, and bf16 on tensor cores.
OLDEST = 8.0
NAN = 0x7FFF  # bits of a NaN, in fp16 and in bf16
MOST_BLOCKS = SIMULATED.grid[1]  # along y and z
# What the kernels call the type of an array's elements.
_ELEMENTS = {"float16": "half", "uint16": "nv_bfloat16", "bfloat16": "nv_bfloat16"}
_FROM_ARRAYS = ("ELEMENT", "HEAD_DIM")


@dataclass(frozen=True)
class FlashRung:
    """A way to compute attention with a single kernel.

    Attributes:
        name: such as `flash_swizzled`.
        chapter: number of the chapter that teaches it.
        adds: what it adds to the rung below, in a few words.
        file: the .cu file in `kernels/`.
        settings: parameters that differ from the file's defaults.
        entry: the kernel's name.
    """

    name: str
    chapter: int
    adds: str
    file: str
    settings: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    entry: str = "flash_attention"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """B_R, B_C and WARPS with the values that the rung has set."""
        declared = self.kernel().parameters
        return {name: p for name, p in declared.items() if name not in _FROM_ARRAYS}

    @property
    def choices(self) -> dict[str, tuple[Value, ...]]:
        """The values that each parameter may have, by name. Not all of them go together."""
        return {name: parameter.choices for name, parameter in self.parameters.items()}

    @property
    def values(self) -> dict[str, Value]:
        """The value that each parameter has."""
        return {name: parameter.value for name, parameter in self.parameters.items()}

    def with_parameters(self, **values: Value) -> FlashRung:
        """The same rung with some of B_R, B_C and WARPS set.

        Raises:
            KernelError: there is no such parameter, the value is not among its choices, or the
                values do not go together.
        """
        for name in values:
            if name in _FROM_ARRAYS:
                raise KernelError(
                    f"{name} of the rung {self.name} follows from Q, K and V; its parameters are "
                    f"{', '.join(self.choices)}."
                )
        changed = replace(self, settings=MappingProxyType({**self.settings, **values}))
        changed.kernel()
        return changed

    def kernel(self, element: str = "half", d: int = 128) -> Kernel:
        """The kernel for elements of type `element`, `half` or `nv_bfloat16`, and head dim d.

        Raises:
            KernelError: d or a parameter is not among the choices, or they do not go together.
        """
        path = KERNELS / self.file
        changed = path.stat().st_mtime_ns
        choices = _load(path, changed, self.entry, ()).parameters["HEAD_DIM"].choices
        if d not in choices:
            listed = " or ".join(map(str, choices))
            raise KernelError(f"{self.name} takes a head dim of {listed}, not {d}.")
        settings = {**self.settings, "ELEMENT": element, "HEAD_DIM": d}
        k = _load(path, changed, self.entry, tuple(settings.items()))
        b_r, b_c, warps = _tiles(k)
        if b_r % (16 * warps):
            raise KernelError(
                f"{self.name}: B_R = {b_r} is no multiple of 16 * WARPS = {16 * warps}: every warp "
                "multiplies tiles of 16 rows; take fewer warps or a larger B_R."
            )
        if b_c % (4 * warps):
            raise KernelError(
                f"{self.name}: B_C = {b_c} is no multiple of 4 * WARPS = {4 * warps}: every warp "
                "copies 4 rows at a time; take fewer warps or a larger B_C."
            )
        return k

    def launch_of(self, Q, K, V, O, layout: str = "bhnd") -> Launch:  # noqa: E741 (its letter)
        """The launch that writes O, for arrays of `cp` or of NumPy.

        Raises:
            KernelError: shapes, types or parameters do not fit each other or the kernel.
        """
        b, h, n, d = self._check(Q, K, V, layout)
        k = self.kernel(_ELEMENTS[Q.dtype.name], d)
        b_r, b_c, warps = _tiles(k)
        strides = (h * n * d, n * d, d) if layout == "bhnd" else (n * h * d, d, h * d)
        return Launch.of(
            k,
            (-(-n // b_r), h, b),
            (32 * warps, 1, 1),
            (Q, K, V, O, n, *strides),
            (b_r + 2 * b_c) * d * 2,
        )

    def prepare(self, Q, K, V, layout: str = "bhnd", **parameters: Value) -> Prepared:
        """Allocate O on the device and compile, so that a launch does nothing else.

        Args:
            Q, K, V: as for `run`.

        Raises:
            KernelError: as for `run`.
        """
        cp = device.cp
        rung = self.with_parameters(**parameters)
        self._check(Q, K, V, layout)
        Q, K, V = (cp.asarray(x) for x in (Q, K, V))
        launch = rung.launch_of(Q, K, V, _poisoned(cp, Q), layout)
        gpu = cp.cuda.Device()
        limit = int(gpu.attributes["MaxSharedMemoryPerBlockOptin"])
        capability = int(gpu.compute_capability) / 10
        check_device(self.name, capability, launch.shared_mem, limit)
        launch.kernel.compile()
        return Prepared(launch.by_name, [launch])

    def run(self, Q, K, V, layout: str = "bhnd", **parameters: Value):
        """O = softmax(Q Kᵀ / √d) V of every head, on the current device.

        Args:
            Q, K, V: [batch, heads, n, d] or, with layout="bnhd", [batch, n, heads, d], of `cp` or
                of NumPy; the latter are copied to the device. fp16, or bf16 as uint16.
            **parameters: as for `with_parameters`.

        Returns:
            O: like Q, an array of `cp`. What no thread wrote is NaN.

        Raises:
            KernelError: the arrays or the parameters do not fit, or this GPU cannot run the
                kernel; the message says what to do.
        """
        prepared = self.prepare(Q, K, V, layout, **parameters)
        prepared.run()
        return prepared.arrays["O"]

    def simulate(
        self, Q, K, V, layout: str = "bhnd", count: bool = True, **parameters: Value
    ) -> tuple[np.ndarray, list]:
        """The same on the simulator, on any machine.

        Args:
            Q, K, V: as for `run`.
            count: whether to count and trace, which takes a few times as long.
            **parameters: as for `with_parameters`.

        Returns:
            (O, reports): O is a NumPy array; the list has the one report of
                `helpers.simulator.launch`.

        Raises:
            KernelError: the arrays or the parameters do not fit; the message says what to do.
        """
        rung = self.with_parameters(**parameters)
        self._check(Q, K, V, layout)
        Q, K, V = (np.asarray(x.get() if hasattr(x, "get") else x) for x in (Q, K, V))
        out = _poisoned(np, Q)
        launch = rung.launch_of(Q, K, V, out, layout)
        return out, [launch.simulate(copy=False, count=count).report]

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"<FlashRung {self.name} of chapter {self.chapter}{settings}>"

    def _check(self, Q, K, V, layout: str) -> tuple[int, int, int, int]:
        """Batch, heads, n and d of arrays that the kernel can take, or a KernelError."""
        if layout not in LAYOUTS:
            raise KernelError(f"{self.name}: layout is bhnd or bnhd, not {layout!r}.")
        for name, array in zip("QKV", (Q, K, V), strict=True):
            if not all(hasattr(array, a) for a in ("shape", "dtype", "flags")):
                raise KernelError(
                    f"{name} is a {type(array).__name__}: pass an array of fp16 or bf16 of shape "
                    "[batch, heads, n, d]."
                )
            if len(array.shape) != 4 or 0 in array.shape:
                raise KernelError(
                    f"{name} has the shape {tuple(array.shape)}: these kernels take four "
                    "dimensions, [batch, heads, n, d], each at least 1; one head goes in as "
                    f"{name}[None, None]."
                )
            if array.dtype.name not in _ELEMENTS:
                raise KernelError(
                    f"{name} is {array.dtype}, and these kernels are for fp16 and bf16: pass "
                    f"{name}.astype(np.float16), or bits of bf16 as uint16."
                )
            if not array.flags.c_contiguous:
                raise KernelError(
                    f"{name} is not contiguous in memory, row after row: pass "
                    f"cp.ascontiguousarray({name})."
                )
            if tuple(array.shape) != tuple(Q.shape) or array.dtype != Q.dtype:
                raise KernelError(
                    f"{name} is {tuple(array.shape)} of {array.dtype} and Q {tuple(Q.shape)} of "
                    f"{Q.dtype}: all three have one shape and one type."
                )
            if not isinstance(array, np.ndarray) and array.data.ptr % 16:
                raise KernelError(
                    f"{name} does not start at a multiple of 16 bytes, which cp.async needs: pass "
                    f"{name}.copy()."
                )
        b, h, n, d = (Q.shape[layout.index(letter)] for letter in "bhnd")
        if max(b, h) > MOST_BLOCKS:
            raise KernelError(
                f"{self.name} takes at most {MOST_BLOCKS:,} heads and as many batches, not "
                f"{max(b, h):,}."
            )
        return b, h, n, d


def check_device(name: str, capability: float, shared: int, limit: int) -> None:
    """Check that a GPU can run a rung.

    Args:
        name: the rung's.
        capability: the GPU's compute capability, such as 9.0.
        shared: bytes of shared memory that a block needs.
        limit: the most that a block can have there.

    Raises:
        KernelError: it cannot.
    """
    if capability < OLDEST:
        raise KernelError(
            f"{name} needs a GPU of compute capability {OLDEST} or newer, for cp.async, and this "
            f"one has {capability}: set HELPERS_DEVICE=simulator, or call simulate()."
        )
    if shared > limit:
        raise KernelError(
            f"The tiles of {name} need {shared:,} bytes of shared memory, and a block on this GPU "
            f"can have {limit:,}: take a smaller B_R or B_C."
        )


def _tiles(k: Kernel) -> tuple[int, int, int]:
    """Rows of Q in a block, keys in a tile, and warps."""
    return tuple(k.parameters[name].value for name in ("B_R", "B_C", "WARPS"))


def _poisoned(module, like):
    """An array of NaN with the shape and type of another."""
    return module.full(like.shape, NAN, np.uint16).view(like.dtype)


@functools.lru_cache(256)
def _load(path: Path, changed: int, entry: str, values: tuple[tuple[str, Value], ...]) -> Kernel:
    return load_kernel(path, entry, **dict(values))


FLASH_BASELINE = FlashRung(
    "flash_baseline",
    8,
    "one kernel on tensor cores, the softmax kept up to date from tile to tile",
    "08_flash_baseline.cu",
)
FLASH_SWIZZLED = FlashRung(
    "flash_swizzled",
    9,
    "16-byte chunks of a tile moved within their rows, so that no banks conflict",
    "09_flash_swizzled.cu",
)
FLASH: tuple[FlashRung, ...] = (FLASH_BASELINE, FLASH_SWIZZLED)
