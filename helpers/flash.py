"""FlashAttention in one kernel: the rungs of chapters 08 and 09, their inputs and their reference.

Elements are fp16 (float16 arrays) or bf16 (uint16 arrays that hold the bits, or bfloat16 arrays
where NumPy knows that type).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .attention import cdiv
from .kernels import Kernel, KernelError, load_kernel

__all__ = [
    "FLASH_BASELINE",
    "FLASH_SWIZZLED",
    "TOLERANCE",
    "FlashRung",
    "Geometry",
    "flops",
    "from_bf16",
    "make_inputs",
    "reference",
    "to_bf16",
    "to_float",
]

# The largest relative error of a right result, by element: two units in the last place of a weight
# or an output, and some to spare for roundings that add up.
TOLERANCE = {"half": 5e-3, "nv_bfloat16": 2e-2}
LAYOUTS = ("bhnd", "bnhd")
OLDEST = 8.0  # compute capability that has cp.async and bf16 on tensor cores
# What the type of an array's elements is called in the kernels.
_ELEMENTS = {"float16": "half", "uint16": "nv_bfloat16", "bfloat16": "nv_bfloat16"}


class Geometry(NamedTuple):
    """One launch: blocks and threads along x, y, z, and bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_mem: int


@dataclass(frozen=True)
class FlashRung:
    """One way to compute attention with a single kernel.

    Attributes:
        name: what it is called.
        chapter: where it is taught.
        file: its file in `kernels/`.
        values: parameters that are not the file's defaults, such as `{"B_R": 128}`.
    """

    name: str
    chapter: int
    file: str
    values: dict[str, int] = field(default_factory=dict)
    entry: str = "flash_attention"

    @property
    def kernels(self) -> tuple[tuple[str, str], ...]:
        """File and entry of every kernel that is launched, in order."""
        return ((self.file, self.entry),)

    def with_values(self, **values: int) -> FlashRung:
        """The same rung with other values of B_R, B_C or WARPS."""
        return FlashRung(self.name, self.chapter, self.file, {**self.values, **values}, self.entry)

    def kernel(self, element: str = "half", d: int = 128) -> Kernel:
        """The kernel for elements of type `element`, `half` or `nv_bfloat16`, and head dim d.

        Raises:
            KernelError: d or a parameter is not among the choices, or they do not go together.
        """
        declared = load_kernel(self.file, self.entry).parameters
        if d not in (choices := declared["HEAD_DIM"].choices):
            listed = " or ".join(map(str, choices))
            raise KernelError(f"{self.name} takes a head dim of {listed}, not {d}.")
        k = load_kernel(self.file, self.entry, ELEMENT=element, HEAD_DIM=d, **self.values)
        b_r, b_c, warps = (k.parameters[name].value for name in ("B_R", "B_C", "WARPS"))
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

    def geometry(self, b: int, h: int, n: int, d: int) -> Geometry:
        """The launch for a batch of b, h heads, n rows and head dim d.

        Raises:
            KernelError: as for `kernel`.
        """
        return self._geometry(self.kernel("half", d), b, h, n, d)

    @staticmethod
    def _geometry(k: Kernel, b: int, h: int, n: int, d: int) -> Geometry:
        b_r, b_c, warps = (k.parameters[name].value for name in ("B_R", "B_C", "WARPS"))
        shared = (b_r + 2 * b_c) * d * 2
        return Geometry((cdiv(n, b_r), h, b), (32 * warps, 1, 1), shared)

    def prepare(self, Q, K, V, O, layout: str = "bhnd"):  # noqa: E741 (the field's letter)
        """The kernel, its geometry and its arguments for these arrays.

        Raises:
            KernelError: shapes or types do not fit each other or the kernel.
        """
        b, h, n, d = _shape(self.name, Q, K, V, layout)
        k = self.kernel(_element(self.name, Q), d)
        strides = (h * n * d, n * d, d) if layout == "bhnd" else (n * h * d, d, h * d)
        return k, self._geometry(k, b, h, n, d), (Q, K, V, O, n, *strides)

    def launcher(self, Q, K, V, O, layout: str = "bhnd"):  # noqa: E741
        """A function that launches the kernel on arrays of `cp`, and does nothing else.

        Raises:
            KernelError: as for `prepare`, or this machine's GPU cannot run the kernel.
        """
        from helpers import cp

        k, (grid, block, shared), args = self.prepare(Q, K, V, O, layout)
        device = cp.cuda.Device()
        check_device(
            self.name,
            int(device.compute_capability) / 10,
            shared,
            int(device.attributes["MaxSharedMemoryPerBlockOptin"]),
        )
        return lambda: k(grid, block, args, shared)

    def run(self, Q, K, V, layout: str = "bhnd"):
        """O = softmax(Q Kᵀ / √d) V on this machine's device.

        Args:
            Q, K, V: arrays of `cp`, [batch, heads, n, d] or, with layout="bnhd", [batch, n, heads,
                d]; float16, or bf16 as uint16.

        Raises:
            KernelError: as for `launcher`.
        """
        from helpers import cp

        out = cp.empty(Q.shape, Q.dtype)
        self.launcher(Q, K, V, out, layout)()
        return out

    def simulate(self, Q, K, V, layout: str = "bhnd", **launch_options):
        """The same on the simulator, on any machine: O as a NumPy array, and a list of reports.

        Raises:
            KernelError: as for `prepare`.
            SimulatorError: the kernel does something wrong.
        """
        from helpers import simulator

        Q, K, V = (np.ascontiguousarray(x.get() if hasattr(x, "get") else x) for x in (Q, K, V))
        out = np.full(Q.shape, 0x7FFF, np.uint16).view(Q.dtype)  # NaN in fp16 and in bf16
        k, (grid, block, shared), args = self.prepare(Q, K, V, out, layout)
        numbers = zip(k.arguments[4:], args[4:], strict=True)
        report = simulator.launch(
            k.code,
            k.entry,
            grid,
            block,
            (
                # The simulator moves bits, and knows a pointer by the default of ELEMENT, half.
                *(x.view(np.float16) for x in args[:4]),
                *(np.dtype(a.dtypes[0]).type(value) for a, value in numbers),
            ),
            options=k.options,
            shared_mem=shared,
            **{"max_dynamic_shared": shared, **launch_options},
        )
        return out, [report]


FLASH_BASELINE = FlashRung("flash_baseline", 8, "08_flash_baseline.cu")
FLASH_SWIZZLED = FlashRung("flash_swizzled", 9, "09_flash_swizzled.cu")


def check_device(name: str, capability: float, shared: int, limit: int) -> None:
    """Check that a GPU can run a rung.

    Args:
        name: the rung's.
        capability: the GPU's compute capability, such as 9.0.
        shared: bytes of shared memory that a block needs.
        limit: the most that a block can have.

    Raises:
        KernelError: it cannot.
    """
    if capability < OLDEST:
        raise KernelError(
            f"{name} needs a GPU of compute capability {OLDEST} or newer (cp.async, and bf16 on "
            f"tensor cores), and this one has {capability}: use the simulator (HELPERS_DEVICE="
            "simulator)."
        )
    if shared > limit:
        raise KernelError(
            f"{name}: its tiles need {shared:,} bytes of shared memory, and a block on this GPU "
            f"can have {limit:,}: take a smaller B_R or B_C."
        )


def make_inputs(
    b: int, h: int, n: int, d: int, element: str = "half", seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V of shape [b, h, n, d], standard normal, as fp16 or as bits of bf16.

    Raises:
        ValueError: `element` is neither `half` nor `nv_bfloat16`.
    """
    if element not in TOLERANCE:
        raise ValueError(f"element is half or nv_bfloat16, not {element!r}.")
    normal = np.random.default_rng(seed).standard_normal
    arrays = (normal((b, h, n, d), dtype=np.float32) for _ in range(3))
    convert = to_bf16 if element == "nv_bfloat16" else lambda x: x.astype(np.float16)
    return tuple(convert(x) for x in arrays)


def reference(Q, K, V, layout: str = "bhnd") -> np.ndarray:
    """softmax(Q Kᵀ / √d) V in float64, head after head, in the layout of its inputs.

    Args:
        Q, K, V: [b, h, n, d] (or [b, n, h, d]); any float type, or bits of bf16 as uint16.
    """
    Q, K, V = (to_float(x) for x in (Q, K, V))
    if layout == "bnhd":
        Q, K, V = (x.transpose(0, 2, 1, 3) for x in (Q, K, V))
    out = np.empty(Q.shape)
    for head in np.ndindex(Q.shape[:2]):
        S = Q[head] @ K[head].T / np.sqrt(Q.shape[-1])
        P = np.exp(S - S.max(axis=1, keepdims=True))
        out[head] = P @ V[head] / P.sum(axis=1, keepdims=True)
    return out.transpose(0, 2, 1, 3) if layout == "bnhd" else out


def flops(b: int, h: int, n: int, d: int) -> int:
    """Floating-point operations of the two products, 4 b h n² d; what TFLOPS are counted by."""
    return 4 * b * h * n * n * d


def to_bf16(x: np.ndarray) -> np.ndarray:
    """The bits of float32 `x` rounded to bf16 (to nearest, ties to even), as uint16."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """float32 values of bf16 bits in uint16."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_float(x) -> np.ndarray:
    """float64 values of fp16 or of bf16, the latter also as bits; NumPy or device arrays."""
    x = np.asarray(x.get() if hasattr(x, "get") else x)
    return (from_bf16(x) if x.dtype == np.uint16 else x).astype(np.float64)


def _element(name: str, array) -> str:
    try:
        return _ELEMENTS[array.dtype.name]
    except KeyError:
        raise KernelError(
            f"{name} takes fp16 (float16) or bf16 (its bits as uint16), not {array.dtype}: pass "
            "x.astype(np.float16), or to_bf16(x)."
        ) from None


def _shape(name: str, Q, K, V, layout: str) -> tuple[int, int, int, int]:
    """Batch, heads, n and d of three arrays that fit each other."""
    if layout not in LAYOUTS:
        raise KernelError(f"{name}: layout is bhnd or bnhd, not {layout!r}.")
    if len(Q.shape) != 4 or not all(Q.shape):
        raise KernelError(
            f"{name} takes Q, K and V of shape (batch, heads, n, d), none of them 0, not "
            f"{tuple(Q.shape)}; one head goes in as x[None, None]."
        )
    for letter, array in (("K", K), ("V", V)):
        if array.shape != Q.shape or array.dtype != Q.dtype:
            raise KernelError(
                f"{name} takes Q, K and V of one shape and type: Q is {tuple(Q.shape)} of "
                f"{Q.dtype}, {letter} {tuple(array.shape)} of {array.dtype}."
            )
    b, h, n, d = Q.shape if layout == "bhnd" else (Q.shape[i] for i in (0, 2, 1, 3))
    if max(b, h) > 65535:
        raise KernelError(
            f"{name}: a grid has at most 65,535 heads and batches, not {max(b, h):,}."
        )
    return b, h, n, d
