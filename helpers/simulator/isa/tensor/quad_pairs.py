"""`mma.m8n8k4` with float16 factors: four small products at once, each by a pair of quads.

Lanes 0-3 and 16-19 make the first, 4-7 and 20-23 the second, and so on (PTX ISA 9.0, "Matrix
Fragments for mma.m8n8k4"). It is Volta's instruction. The assembler for Hopper, which has no such
tensor core, makes it of shuffles and ordinary float32 arithmetic; the order of that is kept here,
as read off the machine code: products added in the order of k, and C added to their sum; with a
float16 result, C plus the first two products plus the last two, rounded once more at the end.
"""

from collections.abc import Sequence

import numpy as np

from ...limits import LANES
from ..instructions import operation
from .mma_fragments import ACCUMULATORS, stack

# An axis each for: half of the warp, quad, lane in the quad, element.
_SPLIT = (2, 4, 4)


def multiply_quad_pairs(
    layouts: tuple[str, str],
    d_type: str,
    c_type: str,
    registers: tuple[Sequence[np.ndarray], Sequence[np.ndarray], Sequence[np.ndarray]],
    leading: tuple[int, ...],
) -> np.ndarray:
    """D = A B + C: the registers of D, (registers, warps, 32), in the type of D.

    layouts: "row" or "col" for A and for B. registers: those of A, B and C, (..., 32) each.
    """
    a, b, c = registers
    mul, fma, add = (operation(name, ("rn", "f32")).evaluate for name in ("mul", "fma", "add"))
    left = _outer_by_k(a, leading, layouts[0] == "row")[..., :, None, :]
    right = _outer_by_k(b, leading, layouts[1] == "col")[..., None, :, :]
    total = _c_matrix(c, c_type, leading)
    if d_type == "f32":
        products = np.zeros(1, np.float32)
        for k in range(4):
            products = fma(left[..., k], right[..., k], products)
        return _d_registers(add(total, products), d_type)
    for k in (0, 2):
        product = mul(left[..., k], right[..., k])
        total = add(total, fma(left[..., k + 1], right[..., k + 1], product))
    return _d_registers(total, d_type)


def _outer_by_k(registers, leading: tuple[int, ...], along_k: bool) -> np.ndarray:
    """Factors as float32 (warps, quad pairs, 8 rows of A or columns of B, k)."""
    halves = stack(registers, np.dtype(np.uint32), leading).view(np.float16)
    halves = halves.reshape(2, -1, *_SPLIT, 2)  # register, warp, half, quad, lane, element
    order = (1, 3, 2, 4, 0, 5) if along_k else (1, 3, 2, 0, 5, 4)
    return halves.transpose(order).reshape(-1, 4, 8, 4).astype(np.float32)


def _c_matrix(registers, c_type: str, leading: tuple[int, ...]) -> np.ndarray:
    """C as float32 (warps, quad pairs, row, column)."""
    stacked = stack(registers, ACCUMULATORS[c_type], leading)
    if c_type == "f16":
        halves = stacked.view(np.float16).reshape(4, -1, *_SPLIT, 2)
        return halves.transpose(1, 3, 2, 4, 0, 5).reshape(-1, 4, 8, 8).astype(np.float32)
    # register 4 i2 + 2 i1 + i0 of lane 2 b1 + b0: row 4 half + 2 i1 + b0, column 4 i2 + 2 b1 + i0
    split = stacked.reshape(2, 2, 2, -1, 2, 4, 2, 2)  # i2 i1 i0 warp half quad b1 b0
    return split.transpose(3, 5, 4, 1, 7, 0, 6, 2).reshape(-1, 4, 8, 8)


def _d_registers(matrix: np.ndarray, d_type: str) -> np.ndarray:
    """The way back from (warps, quad pairs, row, column)."""
    if d_type == "f16":
        halves = operation("cvt", ("rn", "f16", "f32")).evaluate(matrix)
        split = halves.reshape(-1, 4, 2, 4, 4, 2)  # warp quad half lane register element
        ordered = np.ascontiguousarray(split.transpose(4, 0, 2, 1, 3, 5))
        return ordered.view(np.uint32).reshape(4, -1, LANES)
    split = matrix.reshape(-1, 4, 2, 2, 2, 2, 2, 2)  # warp quad half i1 b0 i2 b1 i0
    return np.ascontiguousarray(split.transpose(5, 3, 7, 0, 2, 1, 6, 4)).reshape(8, -1, LANES)
