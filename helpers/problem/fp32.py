"""The rungs of chapters 02 to 07 as data: attention in fp32, from the naive kernels up.

A rung is three kernels, often out of two files, and how each is launched. The parameters are those
that the files declare.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from .attention import cdiv
from .rungs import Values
from .three_kernels import Grid, KernelOfRung, Shape, ThreeKernels

__all__ = ["FP32"]

Steps = tuple[KernelOfRung, ...]

# Geometry. The files' headers say the same in words; `rows` and `columns` are of the result.


def _tile_block(p: Values) -> Shape:
    return p["TILE"], p["TILE"]


def _rows_first(columns: str) -> Grid:
    """x along rows of the result and y along columns, COARSE of them in a thread."""

    def grid(p: Values, N: int, d: int) -> Shape:
        across = {"N": N, "d": d}[columns]
        return cdiv(N, p["TILE"]), cdiv(across, p["TILE"] * p.get("COARSE", 1))

    return grid


def _columns_first(columns: str) -> Grid:
    """x along columns of the result, COARSE of them in a thread, and y along rows."""
    rows_first = _rows_first(columns)

    def grid(p: Values, N: int, d: int) -> Shape:
        return rows_first(p, N, d)[::-1]

    return grid


def _products(file: str, grid: Callable[[str], Grid]) -> Steps:
    """The two products out of one file."""
    return (
        KernelOfRung(file, "scaled_dot_product", grid("N"), _tile_block),
        KernelOfRung(file, "pv_multiply", grid("d"), _tile_block),
    )


def _softmax(file: str, rows_in_a_block: Callable[[Values], int]) -> KernelOfRung:
    return KernelOfRung(
        file,
        "softmax",
        lambda p, N, d: (cdiv(N, rows_in_a_block(p)),),
        lambda p: (p["BLOCK_SIZE"],),
    )


def _steps(products: Steps, softmax: KernelOfRung) -> Steps:
    return products[0], softmax, products[1]


_NAIVE_SOFTMAX = _softmax("02_naive.cu", lambda p: p["BLOCK_SIZE"])
_REDUCTION = _softmax("04_reduction.cu", lambda p: 1)
_TRANSPOSES = MappingProxyType(
    {
        "transpose on load": MappingProxyType({"TRANSPOSE_ON_STORE": 0}),
        "transpose on store": MappingProxyType({"TRANSPOSE_ON_STORE": 1}),
    }
)
_BLOCKED = "07_register_blocked.cu"

FP32: tuple[ThreeKernels, ...] = (
    ThreeKernels(
        name="naive",
        chapter=2,
        steps=_steps(_products("02_naive.cu", _rows_first), _NAIVE_SOFTMAX),
        draws=("sectors",),
    ),
    ThreeKernels(
        name="tiled",
        chapter=3,
        steps=_steps(_products("03_tiled.cu", _rows_first), _NAIVE_SOFTMAX),
        draws=("reads", "tree"),
    ),
    ThreeKernels(
        name="reduction",
        chapter=4,
        steps=_steps(_products("03_tiled.cu", _rows_first), _REDUCTION),
        draws=("tree", "reads"),
    ),
    ThreeKernels(
        name="coarsened",
        chapter=5,
        steps=_steps(_products("05_coarsened.cu", _rows_first), _REDUCTION),
        draws=("reads", "tree"),
    ),
    ThreeKernels(
        name="coalesced",
        chapter=6,
        steps=_steps(_products("06_coalesced.cu", _columns_first), _REDUCTION),
        variants=_TRANSPOSES,
        draws=("sectors and banks",),
    ),
    ThreeKernels(
        name="padded",
        chapter=7,
        steps=_steps(_products("07_padded.cu", _columns_first), _REDUCTION),
        variants=_TRANSPOSES,
    ),
    ThreeKernels(
        name="register_blocked",
        chapter=7,
        steps=(
            KernelOfRung(
                _BLOCKED,
                "scaled_dot_product",
                lambda p, N, d: (cdiv(N, 16 * p["PATCH"]), cdiv(N, 16 * p["PATCH"])),
                lambda p: (256,),
            ),
            _softmax(_BLOCKED, lambda p: 1),
            KernelOfRung(
                _BLOCKED,
                "pv_multiply",
                lambda p, N, d: (cdiv(d, 64), cdiv(N, 8 * p["PATCH"])),
                lambda p: (128,),
            ),
        ),
        alignment=16,
        usual_N=64,  # the compiler takes half a second for its file, which leaves N the less
    ),
)
