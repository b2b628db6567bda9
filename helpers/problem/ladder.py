"""The ladder: attention in fp32, from the naive kernels up, each rung as data.

    from helpers.problem.attention import LADDER, rung

    O = rung("tiled").run(Q, K, V, TILE=8)                 # on the GPU, or on the simulator
    O, reports = rung("tiled").simulate(Q, K, V, TILE=8)   # counted, on any machine

A rung is three kernels, often out of two files, and how each is launched. The parameters are those
that the files declare.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ..kernels.source import KernelError
from .rungs import Grid, Rung, Shape, Step, Values, cdiv

__all__ = ["LADDER", "Rung", "Step", "cdiv", "rung"]


def rung(name: str) -> Rung:
    """The rung of that name.

    Raises:
        KernelError: there is none.
    """
    for one in LADDER:
        if one.name == name:
            return one
    raise KernelError(
        f"There is no rung {name!r}; the ladder has {', '.join(r.name for r in LADDER)}."
    )


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


def _products(file: str, grid: Callable[[str], Grid]) -> tuple[Step, Step]:
    """The two products out of one file."""
    return (
        Step(file, "scaled_dot_product", grid("N"), _tile_block),
        Step(file, "pv_multiply", grid("d"), _tile_block),
    )


def _softmax(file: str, rows_in_a_block: Callable[[Values], int]) -> Step:
    return Step(
        file,
        "softmax",
        lambda p, N, d: (cdiv(N, rows_in_a_block(p)),),
        lambda p: (p["BLOCK_SIZE"],),
    )


def _steps(products: tuple[Step, Step], softmax: Step) -> tuple[Step, ...]:
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

LADDER: tuple[Rung, ...] = (
    Rung(
        "naive",
        2,
        "one thread for each element of the products, one for each row of the softmax",
        _steps(_products("02_naive.cu", _rows_first), _NAIVE_SOFTMAX),
    ),
    Rung(
        "tiled",
        3,
        "products from tiles in shared memory",
        _steps(_products("03_tiled.cu", _rows_first), _NAIVE_SOFTMAX),
    ),
    Rung(
        "reduction",
        4,
        "softmax with one block for each row",
        _steps(_products("03_tiled.cu", _rows_first), _REDUCTION),
    ),
    Rung(
        "coarsened",
        5,
        "COARSE elements of a product for each thread",
        _steps(_products("05_coarsened.cu", _rows_first), _REDUCTION),
    ),
    Rung(
        "coalesced",
        6,
        "threadIdx.x along rows of memory",
        _steps(_products("06_coalesced.cu", _columns_first), _REDUCTION),
        variants=_TRANSPOSES,
    ),
    Rung(
        "padded",
        7,
        "rows of s_K a word longer",
        _steps(_products("07_padded.cu", _columns_first), _REDUCTION),
        variants=_TRANSPOSES,
    ),
    Rung(
        "register_blocked",
        7,
        "a patch of the result in each thread's registers, four floats a load",
        (
            Step(
                _BLOCKED,
                "scaled_dot_product",
                lambda p, N, d: (cdiv(N, 16 * p["PATCH"]), cdiv(N, 16 * p["PATCH"])),
                lambda p: (256,),
            ),
            _softmax(_BLOCKED, lambda p: 1),
            Step(
                _BLOCKED,
                "pv_multiply",
                lambda p, N, d: (cdiv(d, 64), cdiv(N, 8 * p["PATCH"])),
                lambda p: (128,),
            ),
        ),
        alignment=16,
    ),
)
