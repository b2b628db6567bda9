"""The steps of ldmatrix, stmatrix, movmatrix and mma: PTX ISA, "Warp-level matrix instructions"."""

import re

import numpy as np

from ...isa.tensor import matrix_moves
from ...isa.tensor.mma_fragments import ACCUMULATORS, FACTORS
from ...isa.tensor.tensor_cores import mma
from ...limits import LANES
from ...ptx.syntax import Instruction, items_of
from ..elements import active_mask, buffer_pieces, gather, generic_spaces, guard_getter, scatter
from ..faults import fault
from ..operands import address_getter, getter, putter

U32 = np.dtype(np.uint32)
SHAPE = re.compile(r"m\d+n\d+k\d+")
_TYPES = {*FACTORS, *ACCUMULATORS}


def guarded(i: Instruction, step):
    """step(S, R, mask) under the instruction's guard; it is left out where no thread runs it.

    Raises SimulatorError (`barrier`) where only some lanes of a warp do.
    """
    guard = guard_getter(i)

    def run(S, R):
        mask, some = active_mask(S, None if guard is None else guard(S, R))
        if some:
            _check_whole(S, i, mask)
            step(S, R, mask)

    return run


def _check_whole(S, i: Instruction, mask) -> None:
    lanes = S.layout.active_lanes(mask)
    if lanes is None:
        return
    count = lanes.sum(axis=-1)
    part = count[(count > 0) & (count < LANES)]
    if part.size:
        raise fault(
            S, i.line, "barrier", f"{i.opcode} works on matrices that the 32 lanes of a warp hold "
            f"together, and here {int(part[0])} of them run it, which has no meaning: let whole "
            "warps come here, and start blocks of a multiple of 32 threads.",
        )  # fmt: skip


def types_of(i: Instruction) -> list[str]:
    """The types of matrices in an instruction's name, in order."""
    return [m for m in i.modifiers if m in _TYPES]


def shape_of(i: Instruction) -> str:
    """The shape in an instruction's name, such as m16n8k16."""
    shape = next((m for m in i.modifiers if SHAPE.fullmatch(m)), None)
    if shape is None:
        raise i.unsupported("does not have this matrix shape")
    return shape


# ------------------------------------------------------------------ ldmatrix and stmatrix


def _matrices(i: Instruction, does: str) -> tuple[int, bool]:
    """How many matrices are moved, and whether transposed."""
    if "m8n8" not in i.modifiers or i.modifiers[-1] != "b16":
        raise i.unsupported(f"{does} only m8n8 matrices of 16-bit elements, as Hopper does")
    count = next((m for m in i.modifiers if m in ("x1", "x2", "x4")), None)
    if count is None:
        raise i.unsupported(f"{does} 1, 2 or 4 matrices at a time (.x1, .x2, .x4)")
    return int(count[1:]), "trans" in i.modifiers


def shared_rows(S, i, space, address, matrices, mask, write):
    """The 16-byte rows behind the addresses of the lanes that give one."""
    if space == "generic":
        spaces = generic_spaces(S, address, mask)
        if len(spaces) != 1 or spaces[0][0] != "shared":
            raise i.unsupported("needs addresses in shared memory")
        address = spaces[0][1]
    used = S.layout.thread_index % LANES < 8 * matrices
    mask = used if mask is None else used & mask
    return buffer_pieces(S, i, S.layout.lift(address), 4, 16, mask, "shared", write)


def load_matrices(S, i, space, address, count, transposed, mask) -> list[np.ndarray]:
    """What `ldmatrix` gives for row addresses: a register a matrix, for each thread."""
    if S.counting:
        S.tally.matrix(S, i, address, count, "load", mask)
    pieces = shared_rows(S, i, space, address, count, mask, False)
    if S.sanitizer is not None:
        S.sanitizer.access(S, i, "load", pieces, 4, 4)
    words = [S.layout.lanes(w) for w in gather(pieces, 4)]
    rows = np.stack(np.broadcast_arrays(*words), axis=-1)
    rows = np.ascontiguousarray(rows).view(np.uint8)
    return [S.layout.threads(v) for v in matrix_moves.ldmatrix(rows, count, transposed)]


def ldmatrix_step(i: Instruction, code):
    """ldmatrix.sync.aligned.m8n8.{x1, x2, x4}{.trans}.shared.b16"""
    (count, transposed), space = _matrices(i, "loads"), i.space
    puts = [putter(i, d) for d in items_of(i.operands[0])]
    address_of = address_getter(i, i.operands[1])

    def step(S, R, mask):
        values = load_matrices(S, i, space, address_of(S, R), count, transposed, mask)
        for put, value in zip(puts, values, strict=True):
            put(S, R, value, where(S, mask))

    return guarded(i, step)


def stmatrix_step(i: Instruction, code):
    """stmatrix.sync.aligned.m8n8.{x1, x2, x4}{.trans}.shared.b16"""
    (count, transposed), space = _matrices(i, "stores"), i.space
    gets = [getter(i, s, U32) for s in items_of(i.operands[1])]
    address_of = address_getter(i, i.operands[0])

    def step(S, R, mask):
        address = address_of(S, R)
        if S.counting:
            S.tally.matrix(S, i, address, count, "store", mask)
        values = tuple(np.broadcast_arrays(*[S.layout.lanes(g(S, R)) for g in gets]))
        rows = matrix_moves.stmatrix(values, transposed)
        words = np.ascontiguousarray(rows).view(np.uint32)
        pieces = shared_rows(S, i, space, address, count, mask, True)
        S.writes += 1
        if S.sanitizer is not None:
            S.sanitizer.access(S, i, "store", pieces, 4, 4)
        scatter(pieces, [S.layout.threads(words[..., k]) for k in range(4)])

    return guarded(i, step)


def movmatrix_step(i: Instruction, code):
    """movmatrix.sync.aligned.m8n8.trans.b16"""
    get, put = getter(i, i.operands[1], U32), putter(i, i.operands[0])

    def step(S, R, mask):
        put(S, R, turned(S, get(S, R)), where(S, mask))

    return guarded(i, step)


def turned(S, value: np.ndarray) -> np.ndarray:
    """A register that holds an 8 x 8 matrix across a warp, transposed, for each thread."""
    return S.layout.threads(matrix_moves.movmatrix_trans(S.layout.lanes(value)))


def where(S, mask) -> np.ndarray | None:
    """The predicate of a guarded write: None where it is the batch's own mask."""
    return None if mask is S.mask else mask


# ------------------------------------------------------------------ mma


def mma_step(i: Instruction, code):
    """mma.sync.aligned.mXnYkZ.alayout.blayout{.satfinite}.dtype.atype.btype.ctype{.op.popc}"""
    if "sync" not in i.modifiers or {"sp", "sp__ordered_metadata"} & set(i.modifiers):
        raise i.unsupported("does not multiply sparse matrices: use the dense mma.sync")
    shape, types = shape_of(i), types_of(i)
    if len(types) != 4:
        raise i.unsupported("does not multiply matrices of these types")
    d_type, a_type, b_type, c_type = types
    how = how_of(i)
    how["layouts"] = tuple(m for m in i.modifiers if m in ("row", "col"))

    def multiply(a, b, c):
        return mma(shape, a_type, b_type, d_type, c_type, a, b, c, **how)

    return product_step(i, multiply, a_type, c_type)


def how_of(i: Instruction) -> dict:
    """What else the name of a multiplication says: saturation, rounding, the operation on bits."""
    return {
        "saturate": "satfinite" in i.modifiers,
        "rounding": next((m for m in i.modifiers if m in ("rn", "rz", "rm", "rp")), "rn"),
        "bits": "and" if "and" in i.modifiers else "xor",
    }


def product_step(i: Instruction, multiply, a_type: str, c_type: str):
    """The step of D = multiply(A, B, C) on the registers of the lanes."""
    d, a, b, c = map(items_of, i.operands[:4])
    in_type = np.dtype(np.float64) if a_type == "f64" else U32
    kinds = (in_type, in_type, ACCUMULATORS[c_type])
    groups = [[getter(i, o, t) for o in g] for g, t in zip((a, b, c), kinds, strict=True)]
    puts = [putter(i, o) for o in d]

    def step(S, R, mask):
        lanes = [[S.layout.lanes(g(S, R)) for g in group] for group in groups]
        for put, value in zip(puts, multiply(*lanes), strict=True):
            put(S, R, S.layout.threads(value), where(S, mask))

    return guarded(i, step)
