"""What of the ladder is recorded on a GPU: which kernels are counted, and which settings are timed."""

from __future__ import annotations

from typing import NamedTuple

from helpers.kernels import Launch
from helpers.problem.ladder import ladder, rung
from helpers.problem.rungs import Rung

KERNELS = ("scaled_dot_product", "softmax", "pv_multiply", "fused_attention")
# 200 x 72 has rows of whole float4; 257 rows of S do not, and no tile fits into 257.
COUNTED_SIZES = ((200, 72), (257, 80))
SANITIZED_SIZE = (67, 33)
TIMED_N = (256, 512, 1024, 4096, 16384)
TIMED_D = 64
CHECKED_N = (1, 17, 64, 200, 257)
CHECKED_D = (1, 16, 64, 80)

# Settings that are counted next to each rung's own.
COUNTED = {
    "naive": [{"TILE": 32, "BLOCK_SIZE": 64}],
    "tiled": [{"TILE": 8}, {"TILE": 32}],
    "reduction": [{"BLOCK_SIZE": 64}, {"BLOCK_SIZE": 1024}],
    "coarsened": [{"TILE": 8, "COARSE": 2}, {"COARSE": 1}],
    "coalesced": [
        {"TRANSPOSE_ON_STORE": 1},
        {"TILE": 8, "COARSE": 8},
        {"TILE": 32, "COARSE": 2, "TRANSPOSE_ON_STORE": 1},
    ],
    "padded": [
        {"TRANSPOSE_ON_STORE": 1},
        {"PAD": 0},
        {"PAD": 0, "TRANSPOSE_ON_STORE": 1},
        {"TILE": 8, "COARSE": 2},
        {"TILE": 32, "COARSE": 2},
    ],
    "register_blocked": [
        {"WARP_ROWS": 2, "BLOCK_SIZE": 64},
        {"PATCH": 4, "TILE": 16, "BLOCK_SIZE": 256},
        {"TILE": 16, "BLOCK_SIZE": 1024},
    ],
    "fused": [{"KEYS": 64}, {"WARPS": 2}, {"KEYS": 64, "WARPS": 8}],
}


class Counted(NamedTuple):
    """One kernel whose counters are read: a step of a rung, its settings, N and d."""

    rung: Rung
    number: int
    N: int
    d: int

    def launch(self) -> Launch:
        return self.rung.launches(self.N, self.d)[self.number]

    def key(self) -> tuple:
        """Equal for two launches of the same kernel."""
        launch = self.launch()
        kernel = launch.kernel
        return (kernel.file.name, kernel.entry, kernel.options, launch.grid, launch.block, self.N)

    def describe(self) -> dict:
        """What identifies it in the record."""
        launch = self.launch()
        return {
            "rung": self.rung.name,
            "file": launch.kernel.file.name,
            "entry": launch.kernel.entry,
            "parameters": {n: p.value for n, p in launch.kernel.parameters.items()},
            "N": self.N,
            "d": self.d,
            "grid": list(launch.grid),
            "block": list(launch.block),
        }


def counted() -> list[Counted]:
    """Every kernel of every rung with the settings above at both sizes, none twice."""
    found: dict[tuple, Counted] = {}
    for N, d in COUNTED_SIZES:
        for one in ladder("fp32"):
            for settings in ({}, *COUNTED[one.name]):
                chosen = one.with_parameters(**settings)
                for number in range(len(one.steps)):
                    case = Counted(chosen, number, N, d)
                    found.setdefault((case.key(), d), case)
    return list(found.values())


def sanitized() -> list[Rung]:
    """Every rung with the settings that are counted."""
    return [
        one.with_parameters(**settings)
        for one in ladder("fp32")
        for settings in ({}, *COUNTED[one.name])
    ]


def contenders() -> dict[str, Rung]:
    """What the ladder's table times, by label: the rungs and their variants."""
    found = {}
    for one in ladder("fp32"):
        if not one.variants:
            found[one.name] = one
        for label, settings in one.variants.items():
            found[f"{one.name}, {label}"] = one.with_parameters(**settings)
    return found


def kernel_settings() -> list[tuple[Rung, int]]:
    """Every step with every choice of its own file's parameters: what is swept, none twice."""
    found: dict[tuple, tuple[Rung, int]] = {}
    for one in ladder("fp32"):
        for values in one.combinations():
            chosen = one.with_parameters(**values)
            for number, launch in enumerate(chosen.launches(64, 64)):
                kernel = launch.kernel
                own = [(n, p.value) for n, p in kernel.parameters.items() if _concerns(n, kernel)]
                found.setdefault((kernel.file.name, kernel.entry, *own), (chosen, number))
    return list(found.values())


def _concerns(parameter: str, kernel) -> bool:
    """Whether a parameter changes this kernel: BLOCK_SIZE only softmax, and so on."""
    entry = kernel.entry
    if parameter in ("TRANSPOSE_ON_STORE", "PAD"):
        return entry == "scaled_dot_product"
    if parameter == "BLOCK_SIZE":
        return entry == "softmax"
    return entry != "softmax"


def third_barrier_missing() -> str:
    """The reduction softmax without its third barrier: the race that a check has to find."""
    source = rung("reduction").launches(1, 1)[1].kernel.source
    lines = source.split("\n")
    (number,) = (n for n, line in enumerate(lines) if "const float row_max = s_data[0];" in line)
    if "__syncthreads()" not in lines[number + 1]:
        raise RuntimeError("04_reduction.cu has no barrier behind the reading of the maximum.")
    del lines[number + 1]
    return "\n".join(lines)
