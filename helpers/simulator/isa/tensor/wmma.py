"""The tables of `wmma`: the fragments of the C++ interface <mma.h> and what a product is made of.

CUDA leaves a fragment's layout open. These are the ones that the assembler uses from sm_80 on, read
off its machine code for Hopper: a fragment is a list of blocks, one to a register (a pair of
accumulators is one block too), each laid out like those of `mma.sync`. With g = lane // 4 and
t = lane % 4, element j of w in block (o, i) is

    row (A) or column (B) 8 o + g,   along k  w (4 i + t) + j.

A product is then a few `mma.sync` on parts of the fragments. The shape m8n32k16 is computed
transposed, B^T A^T, so that there 8 o + g is a column of an accumulator and not a row.
Float16 factors repeat their registers until there are eight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...errors import SimulatorError
from ..instructions import operation
from .mma_fragments import FACTORS
from .tensor_cores import mma

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f64": 64,
         "f32": 32, "s32": 32}  # fmt: skip
_WIDE = ("m16n16k16", "m32n8k16", "m8n32k16")
# type of factors -> shapes, the mma.sync that is used, and the types of C and D
_PRODUCTS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "f16": (_WIDE, "m16n8k16", ("f32", "f16")),
    "bf16": (_WIDE, "m16n8k16", ("f32",)),
    "s8": (_WIDE, "m16n8k16", ("s32",)),
    "u8": (_WIDE, "m16n8k16", ("s32",)),
    "tf32": (("m16n16k8",), "m16n8k4", ("f32",)),
    "f64": (("m8n8k4",), "m8n8k4", ("f64",)),
    "s4": (("m8n8k32",), "m8n8k32", ("s32",)),
    "u4": (("m8n8k32",), "m8n8k32", ("s32",)),
    "b1": (("m8n8k128",), "m8n8k128", ("s32",)),
}


def _size(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Where the elements of a matrix lie in a fragment and in memory.

    blocks: (o, i) of each register's block. `bits` of an element, `width` elements in a block.
    contiguous: whether the elements of a block follow each other in memory. registers: how many
    registers the instruction names. default_stride: elements from a line in memory to the next.
    """

    blocks: tuple[tuple[int, int], ...]
    bits: int
    width: int
    contiguous: bool
    registers: int
    default_stride: int

    @property
    def block_bytes(self) -> int:
        """Bytes of a lane's elements of a block."""
        return self.width * self.bits // 8

    @property
    def turns(self) -> bool:
        """Whether blocks of 16-bit elements are fetched as they lie and turned in registers."""
        return self.bits == 16 and not self.contiguous

    def offsets(self, lane: np.ndarray, stride: np.ndarray) -> list[list[np.ndarray]]:
        """Byte offsets of the accesses that fetch each block: one, or one for every element.

        lane: int64, the lane of each thread. stride: int64 elements from line to line.
        """
        g, t = lane // 4, lane % 4
        found = []
        for o, i in self.blocks:
            outer, inner = 8 * o + g, self.width * (4 * i + t)
            if self.contiguous:
                places = [outer * stride + inner]
            elif self.turns:
                places = [(8 * i + g) * stride + 8 * o + 2 * t]
            else:
                places = [(inner + j) * stride + outer for j in range(self.width)]
            found.append([place * self.bits // 8 for place in places])
        return found

    def matrices(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """The blocks that one `ldmatrix` each fetches from shared memory; nothing if none does."""
        if self.bits <= 16 and (self.contiguous or self.turns):
            count = 4 if self.bits == 16 else 2
            for first in range(0, len(self.blocks), count):
                yield self.blocks[first : first + count]

    def row_offsets(self, blocks, lane: np.ndarray, stride: np.ndarray) -> np.ndarray:
        """Byte offsets of the rows that lanes name to fetch some blocks by `ldmatrix`."""
        blocks = np.array(blocks, np.int64)
        o, i = blocks[np.minimum(lane // 8, len(blocks) - 1)].transpose(-1, *range(lane.ndim))
        if self.contiguous:
            place = (8 * o + lane % 8) * stride + 4 * self.width * i
        else:
            place = (8 * i + lane % 8) * stride + 8 * o
        return place * self.bits // 8


@cache
def fragment(operand: str, shape: str, element: str, layout: str) -> Fragment:
    """The fragment of `wmma.load.{a, b, c}` and `wmma.store.d`.

    operand: "a", "b", "c" or "d". element: the type in the instruction's name, such as f16.
    layout: "row" or "col". Raises SimulatorError (`unsupported`) for what Hopper has not.
    """
    _check_known(operand, shape, element)
    m, n, k = _size(shape)
    if operand in "cd":
        rows, columns = m, n
        swapped = m < n
        high, wide = (n, m) if swapped else (m, n)
        # two blocks of eight rows make an m16n8 part, and a fragment has one or two of those
        blocks = [
            (2 * p + o if high == 32 else o, p if wide == 16 else 0)
            for p in range(max(1, m * n // 128))
            for o in range(min(2, high // 8))
        ]
        width, count = 2, 1 if element == "f16" else 2
        contiguous = (layout == "col") == swapped
        registers = count * len(blocks)
    else:
        rows, columns = (m, k) if operand == "a" else (k, n)
        across = operand == "b"
        width = FACTORS[element].width
        outer, deep = (n if across else m) // 8, k // (4 * width)
        if outer > 1 and across == (m < n):  # the operand that goes in as A of mma.sync
            blocks = [
                (pair + o, i) for pair in range(0, outer, 2) for i in range(deep) for o in (0, 1)
            ]
        else:
            blocks = [(o, i) for o in range(outer) for i in range(deep)]
        contiguous = (layout == "row") != across
        registers = 8 if element == "f16" else len(blocks)
    stride = columns if layout == "row" else rows
    return Fragment(tuple(blocks), _BITS[element], width, contiguous, registers, stride)


def _check_known(operand: str, shape: str, element: str) -> None:
    known = {
        of: products[0]
        for of, products in _PRODUCTS.items()
        if element in (products[2] if operand in "cd" else (of,))
    }
    if not any(shape in shapes for shapes in known.values()):
        matrix = "accumulators" if operand in "cd" else "factors"
        having = "; ".join(f"{of}: {', '.join(found[0])}" for of, found in _PRODUCTS.items())
        raise SimulatorError(
            "unsupported",
            f"wmma has no shape {shape} with {element} {matrix} on Hopper: use one of {having}.",
        )


@cache
def _steps(shape: str, element: str) -> tuple[tuple, ...]:
    """(registers of A, of B, blocks of C) of each mma.sync; A and B as that takes them."""
    m, n, k = _size(shape)
    step_m, _, step_k = _size(_PRODUCTS[element][1])
    each_k = step_k // (4 * FACTORS[element].width)  # blocks along k in one step
    tall, deep = step_m // 8, k // (4 * FACTORS[element].width)
    tall_blocks = max(m, n) // 8 if m != n else tall
    parts = max(1, m * n // 128)
    steps = []
    for part in range(parts):
        a_first = part * tall * deep if tall_blocks > tall else 0
        b_first = 0 if tall_blocks > tall else part * deep
        for s in range(0, deep, each_k):
            a = slice(a_first + s * tall, a_first + (s + each_k) * tall)
            b = slice(b_first + s, b_first + s + each_k)
            steps.append((a, b, slice(part * tall, (part + 1) * tall)))
    return tuple(steps)


def multiply(
    shape: str,
    element: str,
    d_type: str,
    c_type: str,
    a: Sequence[np.ndarray],
    b: Sequence[np.ndarray],
    c: Sequence[np.ndarray],
    **how: object,
) -> list[np.ndarray]:
    """`wmma.mma.sync`: the registers of D = A B + C.

    Arguments as for `tensor_cores.mma`, with the registers of wmma's fragments; C and D may be of
    different types, float32 and float16.
    """
    _check_known("a", shape, element)
    if not {c_type, d_type} <= set(_PRODUCTS[element][2]):
        raise SimulatorError(
            "unsupported",
            f"wmma with {element} factors has C and D of type "
            f"{' or '.join(_PRODUCTS[element][2])}, not {c_type} and {d_type}.",
        )
    sums = "f32" if c_type != d_type else d_type
    if c_type != sums:
        c = _widened(c)
    m, n, _ = _size(shape)
    if m < n:
        a, b = b, a
    size = 1 if sums == "f16" else 2  # registers of a block of C
    d = list(c)
    for a_part, b_part, c_part in _steps(shape, element):
        place = slice(c_part.start * size, c_part.stop * size)
        types = (element, element, sums, sums)
        d[place] = mma(_PRODUCTS[element][1], *types, a[a_part], b[b_part], d[place], **how)
    return _narrowed(d) if d_type != sums else d


def _widened(registers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Packed float16 as float32, an element a register."""
    halves = [np.ascontiguousarray(r).view(np.float16) for r in registers]
    return [pair[..., j::2].astype(np.float32) for pair in halves for j in (0, 1)]


def _narrowed(registers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Float32 registers rounded to packed float16."""
    pack = operation("cvt", ("rn", "f16x2", "f32")).evaluate
    return [pack(high, low) for low, high in zip(registers[::2], registers[1::2], strict=True)]
