"""What the rungs of chapters 02 to 07 are made of: attention in fp32 by three kernels.

A rung is three kernels, often out of two files, and how each is launched. The parameters are those
that the files declare. The rungs themselves stand in `helpers.chapters`.
"""

from collections.abc import Callable
from types import MappingProxyType

from .attention import cdiv
from .rungs import Values
from .three_kernels import Grid, KernelOfRung, Shape

# Geometry. The files' headers say the same in words; `rows` and `columns` are of the result.


def _tile_block(p: Values) -> Shape:
    return p["TILE"], p["TILE"]


def rows_first(columns: str) -> Grid:
    """x along rows of the result and y along columns, COARSE of them in a thread."""

    def grid(p: Values, N: int, d: int) -> Shape:
        across = {"N": N, "d": d}[columns]
        return cdiv(N, p["TILE"]), cdiv(across, p["TILE"] * p.get("COARSE", 1))

    return grid


def columns_first(columns: str) -> Grid:
    """x along columns of the result, COARSE of them in a thread, and y along rows."""
    turned = rows_first(columns)

    def grid(p: Values, N: int, d: int) -> Shape:
        return turned(p, N, d)[::-1]

    return grid


def row_softmax(file: str, rows_in_a_block: Callable[[Values], int]) -> KernelOfRung:
    """The softmax of a file, by blocks of BLOCK_SIZE threads."""
    return KernelOfRung(
        file,
        "softmax",
        lambda p, N, d: (cdiv(N, rows_in_a_block(p)),),
        lambda p: (p["BLOCK_SIZE"],),
    )


def steps(
    file: str, grid: Callable[[str], Grid], softmax: KernelOfRung
) -> tuple[KernelOfRung, ...]:
    """The two products out of one file, and a softmax between them."""
    return (
        KernelOfRung(file, "scaled_dot_product", grid("N"), _tile_block),
        softmax,
        KernelOfRung(file, "pv_multiply", grid("d"), _tile_block),
    )


NAIVE_SOFTMAX = row_softmax("02_naive.cu", lambda p: p["BLOCK_SIZE"])
REDUCTION = row_softmax("04_reduction.cu", lambda p: 1)
TRANSPOSES = MappingProxyType(
    {
        "transpose on load": MappingProxyType({"TRANSPOSE_ON_STORE": 0}),
        "transpose on store": MappingProxyType({"TRANSPOSE_ON_STORE": 1}),
    }
)
