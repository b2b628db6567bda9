"""`mma.sync`: a warp multiplies two small matrices and adds a third.

Pure functions on NumPy arrays whose last axis is the 32 lanes of a warp; leading axes are free and
broadcast. Who holds which element is in `mma_fragments`, what the tensor core computes in
`tensor_core_arithmetic`. Hopper's tensor cores have no 8-bit floats in `mma.sync`, which its
assembler turns into float16 instructions; `_multiply_bytes` does the same.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from ...errors import SimulatorError
from ...limits import LANES
from ..doubles import fused_multiply_add
from ..instructions import operation
from . import tensor_core_arithmetic as arithmetic
from .mma_fragments import ACCUMULATORS, FACTORS, Form, elements_of, form_of, stack
from .quad_pairs import multiply_quad_pairs

_fma = cache(fused_multiply_add)


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
    layouts: tuple[str, str] = ("row", "col"),
    rounding: str = "rn",
    bits: str = "xor",
) -> list[np.ndarray]:
    """`mma.sync.aligned.{shape}.row.col.{d_type}.{a_type}.{b_type}.{c_type}`: D = A B + C.

    a, b: registers, uint32 (..., 32) each (float64 for f64 factors). c: registers, float32 for f32,
    uint32 with two packed float16 for f16, int32 for s32, float64 for f64. Leading axes broadcast.
    saturate: `.satfinite`, for integers only. layouts: of A and B, other than row and col only for
    m8n8k4 with f16 factors. rounding: rn, rz, rm or rp, for f64. bits: "xor" or "and", for b1.
    Returns the registers of D, in the type of d_type.
    Raises SimulatorError (`unsupported`) for a combination that Hopper has not or that is not
    simulated, and for a wrong number of registers.
    """
    registers = (a, b, c)
    shapes = {r.shape for r in (*a, *b, *c)}
    leading = (shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes))[:-1]
    if shape == "m8n8k4" and a_type == b_type == "f16":
        _check_quad_pairs(d_type, c_type, registers)
        out = multiply_quad_pairs(layouts, d_type, c_type, registers, leading)
        return list(out.reshape((-1,) + leading + (LANES,)))
    form = form_of(shape, a_type)
    _check(shape, layouts, (a_type, b_type, d_type, c_type), form, registers)
    a_elements, b_elements = elements_of(a, a_type, leading), elements_of(b, b_type, leading)
    stacked = stack(c, ACCUMULATORS[c_type], leading)
    packed = c_type == "f16"
    c_values = form.c_matrix(_unpacked(stacked, form) if packed else stacked)
    c_values = np.ascontiguousarray(c_values)
    if a_type in ("e4m3", "e5m2"):
        d = _multiply_bytes(form, (a_elements, a_type), (b_elements, b_type), c_values)
    else:
        words = form.a_matrix(a_elements), form.b_matrix(b_elements), c_values
        if a_type == "b1":
            d = arithmetic.multiply_accumulate_bits(*words, bits)
        elif c_type == "s32":
            d = arithmetic.multiply_accumulate_integers(*words, saturate)
        elif a_type == "f64":
            d = arithmetic.multiply_accumulate_doubles(*words, _fma(rounding))
        else:
            d = arithmetic.multiply_accumulate(*words, a_type)
    fragments = form.c_fragments(d)
    if packed:
        pairs = fragments.reshape(form.tall, 2, -1, LANES)
        fragments = np.ascontiguousarray(pairs.transpose(0, 2, 3, 1)).view(np.uint32)
    return list(fragments.reshape((-1,) + leading + (LANES,)))


def _unpacked(stacked: np.ndarray, form: Form) -> np.ndarray:
    """The float16 of registers that hold two each, apart."""
    halves = stacked.view(np.float16).reshape(form.tall, -1, LANES, 2)
    return np.ascontiguousarray(halves.transpose(0, 3, 1, 2))


def _check(shape, layouts, types, form: Form, registers) -> None:
    """Refuse types that do not go together, other layouts and a wrong number of registers."""
    a_type, b_type, d_type, c_type = types
    if layouts != ("row", "col"):
        raise SimulatorError(
            "unsupported", f"mma.sync.{shape} takes A by rows and B by columns (.row.col) only."
        )
    factors = FACTORS[a_type]
    if b_type not in factors.partners or c_type not in factors.accumulators or d_type != c_type:
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with types .{d_type}.{a_type}.{b_type}.{c_type} is not simulated: "
            f"{a_type} factors need {' or '.join(factors.partners)} factors "
            f"and {' or '.join(factors.accumulators)} for both C and D.",
        )
    sums = form.tall if c_type == "f16" else form.c_elements
    _check_numbers(shape, a_type, c_type, (form.a_registers, form.deep, sums), registers)


def _check_quad_pairs(d_type: str, c_type: str, registers) -> None:
    if (d_type, c_type) not in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
        raise SimulatorError(
            "unsupported",
            f"mma.sync.m8n8k4 with types .{d_type}.f16.f16.{c_type} is not simulated: C and D are "
            "f32 or f16, and D is f32 where C is.",
        )
    wanted = (2, 2, 8 if c_type == "f32" else 4)
    _check_numbers("m8n8k4", "f16", c_type, wanted, registers)


def _check_numbers(shape, a_type, c_type, wanted: tuple[int, int, int], registers) -> None:
    given = tuple(map(len, registers))
    if given != wanted:
        raise SimulatorError(
            "unsupported",
            f"mma.sync.{shape} with {a_type} factors and {c_type} accumulators takes {wanted[0]}, "
            f"{wanted[1]} and {wanted[2]} registers of A, B and C, not {given[0]}, {given[1]} and "
            f"{given[2]}.",
        )


@cache
def _halves_of_bytes(kind: str) -> np.ndarray:
    """The bits of the float16 that each code of an 8-bit float is, uint16 (256,)."""
    widen = operation("cvt", ("rn", "f16x2", f"{kind}x2")).evaluate
    return (widen(np.arange(256, dtype=np.uint16)) & np.uint32(0xFFFF)).astype(np.uint16)


def _multiply_bytes(form: Form, a, b, c: np.ndarray) -> np.ndarray:
    """A B + C of 8-bit floats as the assembler for Hopper does it.

    The lower two elements of every register make one float16 instruction, the upper two a second
    one that goes on from the first, which began at zero; C is added at the end. a and b are pairs
    of elements (registers, warps, 32, 4) and their type; c: (m, n, warps) float32 or float16.
    """
    left, right = (_halves_of_bytes(kind)[codes] for codes, kind in (a, b))
    half = Form(form.tall, form.deep, 2)
    total = np.zeros_like(c)
    for part in (np.s_[..., :2], np.s_[..., 2:]):
        total = arithmetic.multiply_accumulate(
            half.a_matrix(left[part]), half.b_matrix(right[part]), total, "f16"
        )
    kind = "f32" if c.dtype == np.float32 else "f16"
    return operation("add", ("rn", kind)).evaluate(total, c)
