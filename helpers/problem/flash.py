"""FlashAttention in one kernel: what the rungs of chapters 08 and 09 are.

    from helpers.problem.flash import FLASH_SWIZZLED

    O = FLASH_SWIZZLED.run(Q, K, V)                 # on the GPU, or on the simulator
    O, reports = FLASH_SWIZZLED.simulate(Q, K, V)   # counted, on any machine

Q, K and V are [batch, heads, n, d], of fp16 (float16) or of bf16 (its bits as uint16, or bfloat16
where NumPy knows that type). ELEMENT and HEAD_DIM of the kernels follow from the arrays; B_R, B_C,
WARPS and CAUSAL are the parameters of a rung. With `CAUSAL=1` a row sees the keys up to its own, as
`reference(..., causal=True)` of `flash_inputs` has it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..gpu import device
from ..kernels.kernel import Kernel
from ..kernels.launches import Launch
from ..kernels.source import CannotRun, KernelError, Value
from ..simulator.limits import SIMULATED
from .attention import on_host
from .flash_inputs import TOLERANCE, make_inputs, reference
from .input_checks import check_inputs
from .problem import PreparedProblem, Problem
from .rungs import Rung, Size, kernel_of

# The orders of axes that a rung takes, by the first letters of batch, heads, n and d.
LAYOUTS = ("bhnd", "bnhd")
# The compute capability that first has cp.async, and bf16 on tensor cores.
OLDEST = 8.0
NAN = 0x7FFF  # bits of a NaN, in fp16 and in bf16
# What the kernels call the type of an array's elements.
_ELEMENTS = {"float16": "half", "uint16": "nv_bfloat16", "bfloat16": "nv_bfloat16"}


@dataclass(frozen=True, kw_only=True, repr=False)
class FlashRung(Rung):
    """Heads in fp16 or bf16, [batch, heads, n, d], by a single kernel.

    With `layout="bnhd"`, which `prepare`, `run` and `simulate` take as well, Q, K and V are
    [batch, n, heads, d].

    Attributes:
        file: the .cu file in `kernels/`.
        entry: the kernel's name.
        stages: tiles of K, and of V, that a block has room for.
    """

    kind: ClassVar[str] = "flash"
    from_arrays: ClassVar[tuple[str, ...]] = ("ELEMENT", "HEAD_DIM")

    file: str
    entry: str = "flash_attention"
    stages: int = 1

    @property
    def title(self) -> str:
        return f"{self.file} · {self.entry}"

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]:
        return ((self.file, self.entry),)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (Size("n", (64, 100, 128, 256), 128, (1024, 4096)),)

    def with_parameters(self, **values: Value) -> FlashRung:
        changed = super().with_parameters(**values)
        changed.kernel()
        return changed

    def kernel(self, element: str = "half", d: int = 128) -> Kernel:
        """The kernel for elements of type `element`, `half` or `nv_bfloat16`, and head dim d.

        Raises:
            KernelError: d or a parameter is not among the choices, or they do not go together.
        """
        k = self._kernel_for(element, d)
        b_r, b_c, warps = _tiles(k)
        if b_r % (16 * warps):
            raise CannotRun(
                f"{self.name}: B_R = {b_r} is no multiple of 16 * WARPS = {16 * warps}: every warp "
                "multiplies tiles of 16 rows; take fewer warps or a larger B_R."
            )
        if b_c % (4 * warps):
            raise CannotRun(
                f"{self.name}: B_C = {b_c} is no multiple of 4 * WARPS = {4 * warps}: every warp "
                "copies 4 rows at a time; take fewer warps or a larger B_C."
            )
        return k

    def _kernel_for(self, element: str, d: int, **more: Value) -> Kernel:
        """The kernel, whose tiles need not go together, with more of its parameters set."""
        choices = kernel_of(self.file, self.entry).parameters["HEAD_DIM"].choices
        if d not in choices:
            listed = " or ".join(map(str, choices))
            raise KernelError(f"{self.name} takes a head dim of {listed}, not {d}.")
        values = {**self.settings, **more, "ELEMENT": element, "HEAD_DIM": d}
        return kernel_of(self.file, self.entry, **values)

    def launch_of(self, Q, K, V, O, layout: str = "bhnd") -> Launch:  # noqa: E741 (its letter)
        """The launch that writes O, for arrays of `cp` or of NumPy.

        Raises:
            KernelError: shapes, types or parameters do not fit each other or the kernel.
        """
        b, h, n, d = self._check(Q, K, V, layout)
        k = self.kernel(self.element_of(Q), d)
        b_r, b_c, warps = _tiles(k)
        return Launch.of(
            k,
            (-(-n // b_r), h, b),
            (32 * warps, 1, 1),
            (Q, K, V, O, n, *self.strides(h, n, d, layout)),
            (b_r + 2 * self.stages * b_c) * d * 2,
        )

    @staticmethod
    def element_of(array) -> str:
        """What the kernels call the type of an array's elements."""
        return _ELEMENTS[array.dtype.name]

    @staticmethod
    def strides(h: int, n: int, d: int, layout: str) -> tuple[int, int, int]:
        """Elements from one batch, head and row to the next."""
        return (h * n * d, n * d, d) if layout == "bhnd" else (n * h * d, d, h * d)

    def problem(self, entry: str | None = None, **settings: Value) -> Problem:
        n, d = int(settings.pop("n")), int(settings.pop("HEAD_DIM", 128))
        rung = self.with_parameters(
            **{name: value for name, value in settings.items() if name != "ELEMENT"}
        )
        if settings.get("ELEMENT", "half") != "half":
            raise CannotRun("The bench compares fp16 numbers; take half for ELEMENT.")
        (Q, K, V), exact = _one_head(n, d, bool(rung.values.get("CAUSAL", 0)))
        launch = rung.launch_of(Q, K, V, np.empty_like(Q))
        return Problem((launch,), launch.by_name, {"O": exact}, TOLERANCE["half"])

    def _bind(self, module, arrays, layout: str = "bhnd", **parameters: Value) -> PreparedProblem:
        rung = self.with_parameters(**parameters)
        self._check(*arrays, layout)
        Q, K, V = map(on_host if module is np else module.asarray, arrays)
        out = module.full(Q.shape, NAN, np.uint16).view(Q.dtype)
        launch = rung.launch_of(Q, K, V, out, layout)
        return PreparedProblem({**launch.by_name, "O": out}, [launch])

    def _check_device(self, launch: Launch) -> None:
        gpu = device.cp.cuda.Device()
        limit = int(gpu.attributes["MaxSharedMemoryPerBlockOptin"])
        check_device(self.name, int(gpu.compute_capability) / 10, launch.shared_mem, limit)

    def _check(self, Q, K, V, layout: str) -> tuple[int, int, int, int]:
        """Batch, heads, n and d of arrays that the kernel can take, or a KernelError."""
        if layout not in LAYOUTS:
            raise KernelError(f"{self.name}: layout is bhnd or bnhd, not {layout!r}.")
        check_inputs(
            (Q, K, V), "[batch, heads, n, d]", tuple(_ELEMENTS), "fp16 or bf16", 16,
            more="; one head goes in as Q[None, None]",
        )  # fmt: skip
        b, h, n, d = (Q.shape[layout.index(letter)] for letter in "bhnd")
        if max(b, h) > SIMULATED.grid[1]:
            raise KernelError(
                f"{self.name} takes at most {SIMULATED.grid[1]:,} heads and as many batches, not "
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


@functools.lru_cache(maxsize=4)
def _one_head(
    n: int, d: int, causal: bool
) -> tuple[tuple[np.ndarray, ...], Callable[[], np.ndarray]]:
    """Q, K and V of a bench, which change with its sizes alone, and what gives O for them."""
    arrays = make_inputs(1, 1, n, d)
    for array in arrays:
        array.flags.writeable = False  # all problems of these sizes share them
    return arrays, functools.cache(lambda: reference(*arrays, causal=causal))


def _tiles(k: Kernel) -> tuple[int, int, int]:
    """Rows of Q in a block, keys in a tile, and warps."""
    return tuple(k.parameters[name].value for name in ("B_R", "B_C", "WARPS"))


FLASH_BASELINE = FlashRung(name="flash_baseline", chapter=8, file="08_flash_baseline.cu")
FLASH_SWIZZLED = FlashRung(name="flash_swizzled", chapter=9, file="09_flash_swizzled.cu")
