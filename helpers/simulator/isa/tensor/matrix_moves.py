"""Instructions in which a warp moves matrices of 8 x 8 elements of 16 bits, and nothing else.

Pure functions on NumPy arrays whose last axis is the 32 lanes of a warp; leading axes are free.
PTX ISA 9.0: "ldmatrix", "stmatrix", "movmatrix".
"""

from collections.abc import Sequence

import numpy as np

from ...errors import SimulatorError
from ...limits import LANES


def ldmatrix(rows: np.ndarray, matrices: int, transposed: bool = False) -> tuple[np.ndarray, ...]:
    """`ldmatrix.sync.aligned.m8n8.x{matrices}{.trans}.shared.b16`.

    rows: uint8 (..., 32, 16), the 16 bytes at each lane's address; lanes 8m .. 8m+7 give the rows
    of matrix m, the others' bytes do not matter.
    Returns one uint32 (..., 32) a matrix: lane 4r + c holds elements 2c and 2c + 1 of row r, or of
    column r when transposed.
    """
    check_matrices(matrices)
    rows = np.ascontiguousarray(rows[..., : 8 * matrices, :])
    leading = rows.shape[:-2]
    elements = rows.view(np.uint16).reshape(leading + (matrices, 8, 8))
    if transposed:
        elements = np.ascontiguousarray(elements.swapaxes(-1, -2))
    registers = elements.view(np.uint32).reshape(leading + (matrices, LANES))
    return tuple(registers[..., m, :] for m in range(matrices))


def stmatrix(registers: Sequence[np.ndarray], transposed: bool = False) -> np.ndarray:
    """`stmatrix.sync.aligned.m8n8.x{1, 2, 4}{.trans}.shared.b16`.

    registers: one uint32 (..., 32) a matrix, laid out as `ldmatrix` returns them.
    Returns uint8 (..., 32, 16): the bytes for each lane's row address; zeros for the lanes beyond
    the last matrix, which store nothing.
    """
    matrices = len(registers)
    check_matrices(matrices)
    stacked = np.stack(np.broadcast_arrays(*registers), axis=-2).astype(np.uint32, copy=False)
    leading = stacked.shape[:-2]
    elements = stacked.view(np.uint16).reshape(leading + (matrices, 8, 8))
    if transposed:
        elements = elements.swapaxes(-1, -2)
    rows = np.zeros(leading + (LANES, 16), np.uint8)
    filled = rows.view(np.uint16).reshape(leading + (4, 8, 8))
    filled[..., :matrices, :, :] = elements
    return rows


def movmatrix_trans(register: np.ndarray) -> np.ndarray:
    """`movmatrix.sync.aligned.m8n8.trans.b16`: an 8 x 8 matrix across a warp, transposed.

    register: uint32 (..., 32); returns the same shape.
    """
    register = np.ascontiguousarray(register, np.uint32)
    elements = register.view(np.uint16).reshape(register.shape[:-1] + (8, 8))
    turned = np.ascontiguousarray(elements.swapaxes(-1, -2))
    return turned.view(np.uint32).reshape(register.shape)


def check_matrices(matrices: int) -> None:
    """Refuse another number of matrices than ldmatrix and stmatrix move."""
    if matrices not in (1, 2, 4):
        raise SimulatorError(
            "unsupported",
            f"ldmatrix and stmatrix move 1, 2 or 4 matrices, not {matrices}.",
        )
