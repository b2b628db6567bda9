"""The FlashAttention kernels' launches that are recorded on a GPU: sizes, counted cases, variants."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field

import numpy as np

from helpers.kernels import Kernel, Launch, load_kernel
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED, FlashRung
from helpers.problem.flash_inputs import make_inputs

RUNGS = {"baseline": FLASH_BASELINE, "swizzled": FLASH_SWIZZLED}
ELEMENTS = ("half", "nv_bfloat16")

# Correctness: every head dim with every length, and for each some heads and batches.
HEAD_DIMS = (64, 128)
LENGTHS = (1, 17, 64, 100, 257, 512)
BATCHES_HEADS = ((1, 1), (2, 3), (3, 2))

# Times: batch, heads, n, d.
TIMED = ((4, 16, 4096, 128), (2, 16, 8192, 128), (1, 16, 16384, 128), (4, 16, 4096, 64))
TUNED = ((4, 16, 4096, 128), (4, 16, 4096, 64))  # with every variant below
PROFILED = ((1, 4, 1024, 128), (4, 16, 4096, 128))


@dataclass(frozen=True)
class Counted:
    """One launch whose memory counters are read.

    `shape` is (batch, heads, n, d) of a FlashAttention kernel and () of a toy. The inputs come from
    `arguments`; no counter depends on their values.
    """

    file: str
    entry: str
    values: dict = field(default_factory=dict)
    shape: tuple[int, ...] = ()

    def kernel(self) -> Kernel:
        """The kernel with its parameters set."""
        return load_kernel(self.file, self.entry, **self.values)

    def launch(self) -> tuple[tuple[int, ...], tuple[int, ...], int, list]:
        """Grid, block, bytes of dynamic shared memory, and arguments on the host."""
        if self.entry == "turn":
            size = self.values["SIZE"]
            words = 4 if self.values["ELEMENT"] == "float4" else 1
            rows = np.arange(size * size * words, dtype=np.float32)
            return (1, 1, 1), (size, size, 1), 0, [rows, np.full_like(rows, np.nan)]
        if self.entry == "phases":
            chunks = np.arange(32 * 8 * 4, dtype=np.float32)
            return (1, 1, 1), (32, 1, 1), 0, [chunks, np.full(32 * 4, np.nan, np.float32)]
        element = self.values["ELEMENT"]
        Q, K, V = make_inputs(*self.shape, element, seed=1)
        out = np.full(Q.shape, 0x7FFF, np.uint16).view(Q.dtype)
        rung = next(r for r in RUNGS.values() if r.file == self.file)
        own = {k: v for k, v in self.values.items() if k not in ("ELEMENT", "HEAD_DIM")}
        launch = rung.with_parameters(**own).launch_of(Q, K, V, out)
        return launch.grid, launch.block, launch.shared_mem, list(launch.args)


def counted_cases() -> list[Counted]:
    """Small grids, where wavefronts of one warp do not meet those of others."""
    flash = [
        ((1, 1, 256, 128), "half", {}),
        ((1, 1, 256, 128), "nv_bfloat16", {}),
        ((1, 1, 256, 64), "half", {}),
        ((1, 1, 100, 128), "half", {}),
        ((1, 1, 1, 64), "half", {}),
        ((2, 3, 17, 64), "nv_bfloat16", {}),
        ((1, 2, 257, 64), "half", {"B_R": 128}),
        ((1, 1, 130, 128), "half", {"B_R": 128, "WARPS": 8, "B_C": 32}),
        ((1, 1, 100, 64), "half", {"B_R": 32, "WARPS": 2, "B_C": 128}),
        ((1, 1, 33, 128), "half", {"B_R": 16, "WARPS": 1}),
    ]
    cases = [
        Counted(
            rung.file,
            rung.entry,
            {"ELEMENT": element, "HEAD_DIM": shape[3], **values},
            shape,
        )
        for shape, element, values in flash
        for rung in RUNGS.values()
    ]
    toy = "09_toy_swizzle.cu"
    parameters = load_kernel(toy, "turn").parameters
    choices = [parameters[name].choices for name in ("ELEMENT", "SIZE", "SWIZZLE")]
    cases += [
        Counted(toy, "turn", {"ELEMENT": element, "SIZE": size, "SWIZZLE": swizzle})
        for element, size, swizzle in itertools.product(*choices)
    ]
    cases += [Counted(toy, "phases", {"STRIDE": stride}) for stride in parameters["STRIDE"].choices]
    return cases


# ---- Variants of a rung, to choose from: its source with some text replaced


@dataclass(frozen=True)
class Variant:
    """A kernel to time: parameters of the swizzled rung, and pairs (old, new) of its text."""

    name: str
    values: dict = field(default_factory=dict)
    changes: tuple[tuple[str, str], ...] = ()
    rung: FlashRung = FLASH_SWIZZLED

    def kernel(self, element: str, d: int) -> Kernel:
        """The changed kernel. Raises ValueError if a text to replace is not there once."""
        rung = self.rung.with_parameters(**self.values)
        own = rung.kernel(element, d).parameters
        k = load_kernel(rung.file, rung.entry, **{name: p.value for name, p in own.items()})
        for old, new in self.changes:
            if k.code.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is there {k.code.count(old)} times.")
            k.code = k.code.replace(old, new)
        return k

    def launch_of(self, Q, K, V, out, layout: str = "bhnd") -> Launch:
        """The launch of the changed kernel that writes `out`."""
        launch = self.rung.with_parameters(**self.values).launch_of(Q, K, V, out, layout)
        own = launch.kernel.parameters
        k = self.kernel(own["ELEMENT"].value, own["HEAD_DIM"].value)
        return dataclasses.replace(launch, kernel=k)


def _blocks(count: int) -> tuple[tuple[str, str], ...]:
    """Ask for `count` blocks on a multiprocessor, which bounds the registers."""
    old = "__launch_bounds__(32 * WARPS, BLOCKS) flash"
    return ((old, f"__launch_bounds__(32 * WARPS, {count}) flash"),)


# Fragments of K in neighbouring registers, as mma takes them.
_PAIRED = (
    (
        "place(8 * j + lane % 16, 2 * k + lane / 16)",
        "place(8 * j + lane % 8 + 8 * (lane / 16), 2 * k + lane / 8 % 2)",
    ),
    ("r_Q[m], r_K[0], r_K[2]", "r_Q[m], r_K[0], r_K[1]"),
    ("r_Q[m], r_K[1], r_K[3]", "r_Q[m], r_K[2], r_K[3]"),
)
# exp(scale (s - max)) as exp2(s c - max c) with c = scale log2(e): one fma and one ex2.
_EXP2 = (
    ("r_S[m][j][i] *= scale;", ""),
    ("const float scale = 1.0f / sqrtf((float)HEAD_DIM);", ""),
    (
        "const float correction = __expf(r_max[m][h] - new_max);",
        "const float c = 1.44269504f / sqrtf((float)HEAD_DIM);\n"
        "            const float shift = new_max * c;\n"
        "            const float correction = exp2f(r_max[m][h] * c - shift);",
    ),
    ("__expf(r_S[m][j][2 * h] - new_max)", "exp2f(r_S[m][j][2 * h] * c - shift)"),
    ("__expf(r_S[m][j][2 * h + 1] - new_max)", "exp2f(r_S[m][j][2 * h + 1] * c - shift)"),
)
_UNGUARDED = (("row < rows ? 16 : 0", "16"), ("if (keys < B_C)", "if (false)"))
# V is on its way while the scores are made.
_COPY_V = (
    "        copy_rows<B_C / WARPS>(s_V, V + tile, warp * (B_C / WARPS), n - key, row_stride);\n"
    "        cp_async_commit();\n"
)
_SCORES = "        float r_S[ROW_TILES][KEY_TILES][4] = {};\n        multiply_qk"
_EARLY_V = ((_COPY_V, ""), (_SCORES, _COPY_V + _SCORES))

VARIANTS = (
    Variant("2 blocks", changes=_blocks(2)),
    Variant("3 blocks", changes=_blocks(3)),
    Variant("4 blocks", changes=_blocks(4)),
    Variant("paired K", changes=_PAIRED),
    Variant("paired K, 3 blocks", changes=_PAIRED + _blocks(3)),
    Variant("exp2", changes=_EXP2),
    Variant("exp2, 3 blocks", changes=_EXP2 + _blocks(3)),
    Variant("exp2, paired K", changes=_EXP2 + _PAIRED),
    Variant("exp2, paired K, 3 blocks", changes=_EXP2 + _PAIRED + _blocks(3)),
    Variant("unguarded", changes=_UNGUARDED),
    Variant("early V", changes=_EARLY_V),
    Variant("B_C 32", {"B_C": 32}),
    Variant("B_C 32, 3 blocks", {"B_C": 32}, _blocks(3)),
    Variant("B_C 128", {"B_C": 128}),
    Variant("B_R 32, 2 warps", {"B_R": 32, "WARPS": 2}),
    Variant("B_R 128, 8 warps", {"B_R": 128, "WARPS": 8}),
    Variant("B_R 128, 4 warps", {"B_R": 128}),
    Variant("B_R 128, 4 warps, B_C 32", {"B_R": 128, "B_C": 32}),
)


def contenders() -> list[Variant]:
    """The two rungs as they are, and the variants."""
    rungs = [Variant(name, rung=rung) for name, rung in RUNGS.items()]
    baseline = [
        dataclasses.replace(v, name=f"baseline, {v.name}", rung=FLASH_BASELINE)
        for v in VARIANTS
        if v.name in ("3 blocks", "paired K")
    ]
    return [*rungs, *baseline, *VARIANTS]
