"""Instructions in which a warp moves and multiplies small matrices.

Pure functions on NumPy arrays whose last axis is the 32 lanes of a warp; leading axes are free and
broadcast. Fragment layouts are those of PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate
Instructions". They all follow one pattern. With g = lane // 4, t = lane % 4, and w elements in a
32-bit register (f64: one element a register):

===========  ==========================  ================================================
A (m x k)    register 8 rows by 8 rows   row 8 i + g,  column 4 w s + w t + j
             first (i), then along k (s)
B (k x n)    register along k (s)        row 4 w s + w t + j,  column g
C, D         two elements a row (j)      row 8 i + g,  column 2 t + j
===========  ==========================  ================================================

j is the element in the register. What the tensor core computes is in `tensor_core_arithmetic`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..errors import SimulatorError
from ..limits import LANES
from . import tensor_core_arithmetic as arithmetic
from .doubles import fused_multiply_add

_N = 8  # every shape has eight columns
_FMA = fused_multiply_add("rn")

# Elements a register, and the numpy type of one element's bits.
_ELEMENTS = {
    "f16": (2, np.dtype(np.uint16)),
    "bf16": (2, np.dtype(np.uint16)),
    "tf32": (1, np.dtype(np.uint32)),
    "s8": (4, np.dtype(np.int8)),
    "u8": (4, np.dtype(np.uint8)),
    "f64": (1, np.dtype(np.float64)),
}
_SHAPES = {
    "f16": ("m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
}
_ACCUMULATORS = {
    "f16": {"f32": np.dtype(np.float32), "f16": np.dtype(np.uint32)},
    "bf16": {"f32": np.dtype(np.float32)},
    "tf32": {"f32": np.dtype(np.float32)},
    "s8": {"s32": np.dtype(np.int32)},
    "u8": {"s32": np.dtype(np.int32)},
    "f64": {"f64": np.dtype(np.float64)},
}


# ---------------------------------------------------------------- moving 8 x 8 matrices


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


# ---------------------------------------------------------------- fragments


@dataclass(frozen=True, slots=True)
class _Form:
    """Sizes of an mma: `tall` blocks of eight rows, `deep` registers along k, `width` elements."""

    tall: int
    deep: int
    width: int

    @property
    def a_registers(self) -> int:
        return self.tall * self.deep

    @property
    def c_elements(self) -> int:
        return 2 * self.tall

    # Each takes fragments with (registers, warps, 32 lanes [, elements]) axes to a matrix with the
    # warps last, as `tensor_core_arithmetic` wants them.

    def a_matrix(self, fragments: np.ndarray) -> np.ndarray:
        """(registers, warps, 32, width) -> (k, m, warps)."""
        split = fragments.reshape(self.deep, self.tall, -1, 8, 4, self.width)
        warps = split.shape[2]
        return split.transpose(0, 4, 5, 1, 3, 2).reshape(-1, 8 * self.tall, warps)

    def b_matrix(self, fragments: np.ndarray) -> np.ndarray:
        """(registers, warps, 32, width) -> (k, n, warps)."""
        split = fragments.reshape(self.deep, -1, 8, 4, self.width)
        return split.transpose(0, 3, 4, 2, 1).reshape(-1, _N, split.shape[1])

    def c_matrix(self, fragments: np.ndarray) -> np.ndarray:
        """(elements, warps, 32) -> (m, n, warps)."""
        split = fragments.reshape(self.tall, 2, -1, 8, 4)
        return split.transpose(0, 3, 4, 1, 2).reshape(8 * self.tall, _N, split.shape[2])

    def c_fragments(self, matrix: np.ndarray) -> np.ndarray:
        """(m, n, warps) -> (elements, warps, 32), contiguous."""
        split = matrix.reshape(self.tall, 8, 4, 2, -1)
        return np.ascontiguousarray(split.transpose(0, 3, 4, 1, 2)).reshape(
            self.c_elements, -1, LANES
        )


@cache
def _form(shape: str, element: str) -> _Form:
    if shape not in _SHAPES.get(element, ()):
        known = "; ".join(f"{name}: {', '.join(shapes)}" for name, shapes in _SHAPES.items())
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with {element} factors is not simulated: use one of {known}.",
        )
    m, k = (int(n) for n in re.fullmatch(r"m(\d+)n8k(\d+)", shape).groups())
    width = _ELEMENTS[element][0]
    return _Form(m // 8, k // (4 * width), width)


def fragment_layout(
    shape: str, operand: str, element: str = "f16"
) -> tuple[np.ndarray, np.ndarray]:
    """Where in its matrix each element of an mma fragment is.

    shape: such as "m16n8k16"; operand: "a", "b", "c" or "d"; element: the type of the factors (f16,
    bf16, tf32, s8, u8, f64), on which the layout of a and b depends.
    Returns rows and columns, intp (elements, 32): [i, lane] for the element that the PTX manual
    calls a_i, b_i or c_i; element i is in register i // w, where a register holds w of them.
    Raises SimulatorError (`unsupported`) for a shape that has no such factors.
    """
    form = _form(shape, element)
    if operand == "a":
        count, matrix = form.a_registers * form.width, form.a_matrix
    elif operand == "b":
        count, matrix = form.deep * form.width, form.b_matrix
    elif operand in ("c", "d"):
        count, matrix = form.c_elements, form.c_matrix
    else:
        raise SimulatorError("unsupported", f"an mma has operands a, b, c and d, not {operand!r}.")
    # Number the elements, see where in the matrix each number goes, and turn that round.
    numbers = np.arange(count * LANES, dtype=np.intp).reshape(count, LANES)
    if operand in ("a", "b"):
        fragments = numbers.reshape(-1, form.width, 1, LANES).transpose(0, 2, 3, 1)
    else:
        fragments = numbers[:, None]
    placed = matrix(fragments)[..., 0]
    if operand == "a":
        placed = placed.T
    order = np.argsort(placed, axis=None)
    rows, columns = np.unravel_index(order, placed.shape)
    return rows.reshape(count, LANES), columns.reshape(count, LANES)


# ---------------------------------------------------------------- mma


def mma(
    shape: str,
    a_type: str,
    b_type: str,
    d_type: str,
    c_type: str,
    a: Sequence[np.ndarray],
    b: Sequence[np.ndarray],
    c: Sequence[np.ndarray],
    *,
    saturate: bool = False,
) -> list[np.ndarray]:
    """`mma.sync.aligned.{shape}.row.col.{d_type}.{a_type}.{b_type}.{c_type}`: D = A B + C.

    a, b: registers, uint32 (..., 32) each (float64 for f64 factors). c: registers, float32 for f32,
    uint32 with two packed float16 for f16, int32 for s32, float64 for f64. Leading axes broadcast.
    saturate: `.satfinite`, for integers only.
    Returns the registers of D, in the type of c.
    Raises SimulatorError (`unsupported`) for a combination that Hopper has not or that is not
    simulated, and for a wrong number of registers.
    """
    form = _form(shape, a_type)
    integers = ("s8", "u8")
    accumulator = _ACCUMULATORS[a_type].get(c_type)
    mixed = a_type != b_type and not (a_type in integers and b_type in integers)
    if mixed or accumulator is None or d_type != c_type:
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with types .{d_type}.{a_type}.{b_type}.{c_type} is not simulated: "
            f"{a_type} factors need {a_type if a_type not in integers else 's8 or u8'} factors "
            f"and {' or '.join(_ACCUMULATORS[a_type])} for both C and D.",
        )
    packed = c_type == "f16"
    wanted = (form.a_registers, form.deep, form.tall if packed else form.c_elements)
    if (len(a), len(b), len(c)) != wanted:
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with {a_type} factors and {c_type} accumulators takes {wanted[0]}, "
            f"{wanted[1]} and {wanted[2]} registers of A, B and C, not {len(a)}, {len(b)} and "
            f"{len(c)}.",
        )
    leading = np.broadcast_shapes(*(r.shape for r in (*a, *b, *c)))[:-1]
    a_words = form.a_matrix(_elements(a, a_type, leading))
    b_words = form.b_matrix(_elements(b, b_type, leading))
    stacked = _stack(c, accumulator, leading)
    if packed:
        halves = stacked.view(np.float16).reshape(form.tall, -1, LANES, 2)
        stacked = np.ascontiguousarray(halves.transpose(0, 3, 1, 2))
    c_values = np.ascontiguousarray(form.c_matrix(stacked))
    if a_type in integers:
        d = arithmetic.multiply_accumulate_integers(a_words, b_words, c_values, saturate)
    elif a_type == "f64":
        d = arithmetic.multiply_accumulate_doubles(a_words, b_words, c_values, _FMA)
    else:
        d = arithmetic.multiply_accumulate(a_words, b_words, c_values, a_type)
    fragments = form.c_fragments(d)
    if packed:
        pairs = fragments.reshape(form.tall, 2, -1, LANES).transpose(0, 2, 3, 1)
        fragments = np.ascontiguousarray(pairs).view(np.uint32)
    return list(fragments.reshape((-1,) + leading + (LANES,)))


def _stack(
    registers: Sequence[np.ndarray], dtype: np.dtype, leading: tuple[int, ...]
) -> np.ndarray:
    """Registers as one contiguous array (registers, warps, 32) of a type of the same size."""
    stacked = np.empty((len(registers),) + leading + (LANES,), dtype)
    for place, register in zip(stacked, registers, strict=True):
        place[...] = register if register.dtype == dtype else register.view(dtype)
    return stacked.reshape(len(registers), -1, LANES)


def _elements(
    registers: Sequence[np.ndarray], element: str, leading: tuple[int, ...]
) -> np.ndarray:
    """The elements in registers of factors: (registers, warps, 32, elements a register)."""
    width, dtype = _ELEMENTS[element]
    word = np.dtype(np.float64) if element == "f64" else np.dtype(np.uint32)
    stacked = _stack(registers, word, leading)
    return stacked.view(dtype).reshape(stacked.shape + (width,))
