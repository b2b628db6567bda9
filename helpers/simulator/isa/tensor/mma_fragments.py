"""Which element of a matrix each lane of a warp holds for an `mma`, and the way there and back.

Pure functions on NumPy arrays whose last axis is the 32 lanes of a warp. Layouts are those of PTX
ISA 9.0, "Warp Level Matrix Multiply-Accumulate Instructions". All but one follow one pattern. With
g = lane // 4, t = lane % 4, and w elements in a 32-bit register (f64: one element a register):

===========  ==========================  ================================================
A (m x k)    register 8 rows by 8 rows   row 8 i + g,  column 4 w s + w t + j
             first (i), then along k (s)
B (k x n)    register along k (s)        row 4 w s + w t + j,  column g
C, D         two elements a row (j)      row 8 i + g,  column 2 t + j
===========  ==========================  ================================================

j is the element in the register. The exception, m8n8k4 with f16 factors, is in `quad_pairs`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...errors import SimulatorError
from ...limits import LANES

_N = 8  # every shape has eight columns


@dataclass(frozen=True, slots=True)
class Factors:
    """A type of factors: elements a register, the NumPy type in which one element is unpacked,
    the shapes, the types of C and D, and the types that may stand on the other side.
    """

    width: int
    dtype: np.dtype
    shapes: tuple[str, ...]
    accumulators: tuple[str, ...]
    partners: tuple[str, ...]


def _same(names: str, width: int, dtype: type | str, shapes: str, accumulators: str) -> dict:
    """Types that go together, such as s8 and u8."""
    partners = tuple(names.split())
    return {
        name: Factors(
            width, np.dtype(dtype), tuple(shapes.split()), tuple(accumulators.split()), partners
        )
        for name in partners
    }


FACTORS: dict[str, Factors] = {
    **_same("f16", 2, np.uint16, "m16n8k8 m16n8k16", "f32 f16"),
    **_same("bf16", 2, np.uint16, "m16n8k8 m16n8k16", "f32"),
    **_same("tf32", 1, np.uint32, "m16n8k4 m16n8k8", "f32"),
    **_same("e4m3 e5m2", 4, np.uint8, "m16n8k16 m16n8k32", "f32 f16"),
    **_same("s8 u8", 4, np.int8, "m8n8k16 m16n8k16 m16n8k32", "s32"),
    **_same("s4 u4", 8, np.int8, "m8n8k32 m16n8k32 m16n8k64", "s32"),
    **_same("b1", 32, np.int8, "m8n8k128 m16n8k128 m16n8k256", "s32"),
    **_same("f64", 1, np.float64, "m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64"),
}
# What holds an accumulator in registers; two float16 share one.
ACCUMULATORS = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.uint32),
    "s32": np.dtype(np.int32),
    "f64": np.dtype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Form:
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
def form_of(shape: str, element: str) -> Form:
    """The form of a shape such as m16n8k16 with factors of a type."""
    factors = FACTORS.get(element)
    if factors is None or shape not in factors.shapes:
        known = "; ".join(f"{name}: {', '.join(of.shapes)}" for name, of in FACTORS.items())
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with {element} factors is not simulated: use one of {known}.",
        )
    m, k = (int(n) for n in re.fullmatch(r"m(\d+)n8k(\d+)", shape).groups())
    return Form(m // 8, k // (4 * factors.width), factors.width)


def fragment_layout(shape: str, operand: str, element: str = "f16") -> tuple[np.ndarray, ...]:
    """Where in its matrix each element of an mma fragment is.

    shape: such as "m16n8k16"; operand: "a", "b", "c" or "d"; element: the type of the factors (f16,
    bf16, tf32, s8, u8, s4, u4, b1, e4m3, e5m2, f64), on which the layout of a and b depends.
    Returns rows and columns, intp (elements, 32): [i, lane] for the element that the PTX manual
    calls a_i, b_i or c_i; element i is in register i // w, where a register holds w of them.
    Raises SimulatorError (`unsupported`) for a shape that has no such factors.
    """
    form = form_of(shape, element)
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


def stack(registers: Sequence[np.ndarray], dtype: np.dtype, leading: tuple[int, ...]) -> np.ndarray:
    """Registers as one contiguous array (registers, warps, 32) of a type of the same size."""
    stacked = np.empty((len(registers),) + leading + (LANES,), dtype)
    for place, register in zip(stacked, registers, strict=True):
        place[...] = register if register.dtype == dtype else register.view(dtype)
    return stacked.reshape(len(registers), -1, LANES)


def elements_of(
    registers: Sequence[np.ndarray], element: str, leading: tuple[int, ...]
) -> np.ndarray:
    """The elements in registers of factors: (registers, warps, 32, elements a register)."""
    if element == "f64":
        return stack(registers, np.dtype(np.float64), leading)[..., None]
    factors = FACTORS[element]
    words = stack(registers, np.dtype(np.uint32), leading)
    if factors.width <= 4:
        dtype = np.dtype(np.uint8) if element == "u8" else factors.dtype
        return words.view(dtype).reshape(words.shape + (factors.width,))
    bits = np.uint32(32 // factors.width)
    parts = words[..., None] >> (np.arange(factors.width, dtype=np.uint32) * bits)
    parts = (parts & np.uint32((1 << bits) - 1)).astype(np.int8)
    return (parts ^ 8) - 8 if element == "s4" else parts
