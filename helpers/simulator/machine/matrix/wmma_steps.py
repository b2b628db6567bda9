"""The steps of wmma, which <mma.h> becomes: loads and stores of fragments, and products.

PTX ISA, "Warp-level Matrix Instructions: wmma.load, wmma.store, wmma.mma". As the assembler for
Hopper does, fragments are fetched by `ldmatrix` where the instruction names shared memory and that
instruction can, and otherwise by ordinary loads of each lane's elements; 16-bit elements that do
not lie side by side are fetched as they lie and turned in registers. Counters follow from that.
"""

import functools
import itertools

import numpy as np

from ...isa.tensor import wmma
from ...limits import LANES
from ...ptx.syntax import Imm, Instruction, items_of
from ..elements import check_writable, gather, pieces_of, scatter
from ..faults import everyone, fault
from ..memory import UNSIGNED
from ..operands import address_getter, getter, putter
from .matrix_steps import (
    guarded,
    how_of,
    load_matrices,
    product_step,
    shape_of,
    turned,
    types_of,
    where,
)


def wmma_step(i: Instruction, code):
    """wmma.load.{a, b, c}, wmma.store.d, wmma.mma"""
    return {"load": _load_step, "store": _store_step, "mma": _mma_step}[i.modifiers[0]](i)


class _Memory:
    """What the loads and stores of a fragment have in common."""

    def __init__(self, i: Instruction, memory, stride):
        self.i, self.space = i, i.space
        self.layout = next(m for m in i.modifiers if m in ("row", "col"))
        self.element = types_of(i)[-1]
        self.fragment = wmma.fragment(i.modifiers[1], shape_of(i), self.element, self.layout)
        self.address_of = address_getter(i, memory)
        stride = Imm(self.fragment.default_stride) if stride is None else stride
        self.stride_of = getter(i, stride, np.dtype(np.uint32))
        # bytes of a lane's access, in parts of `part` bytes
        width = self.fragment.block_bytes
        if not self.fragment.contiguous and not self.fragment.turns:
            width //= self.fragment.width
        self.width, self.part = width, min(width, max(4, self.fragment.bits // 8))
        self.cache: dict = {}

    def find(self, S, R, mask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Addresses, the lane of each thread and the stride, all int64."""
        stride = self.stride_of(S, R).astype(np.int64)
        wrong = everyone(mask) & (stride * self.fragment.bits % (8 * self.width) != 0)
        if wrong.any():
            bad = int(np.broadcast_to(stride, wrong.shape).reshape(-1)[int(wrong.argmax())])
            raise fault(
                S, self.i.line, "misaligned", f"wmma moves {self.width} bytes at a time here, and "
                f"a leading dimension of {bad} {self.element} elements puts rows off that "
                f"boundary: pass a multiple of {128 // self.fragment.bits} elements.",
            )  # fmt: skip
        return self.address_of(S, R), S.layout.thread_index % LANES, stride

    def pieces(self, S, address, mask, write: bool):
        """The elements behind one access of each lane, which is counted."""
        if S.counting:
            kind = "store" if write else "load"
            S.tally.access(S, self.i, self.space, kind, address, self.width, mask)
        return pieces_of(
            S, self.i, self.space, address, self.part, self.width, mask, self.cache, write
        )


def _load_step(i: Instruction):
    """wmma.load.{a, b, c}.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}"""
    memory = _Memory(i, i.operands[1], i.operands[2] if len(i.operands) > 2 else None)
    puts = [putter(i, d) for d in items_of(i.operands[0])]
    fragment = memory.fragment
    by_matrices = memory.space == "shared" and i.modifiers[1] != "c"
    matrices = list(fragment.matrices()) if by_matrices else []
    count = memory.width // memory.part
    if len(puts) != fragment.registers:
        raise i.unsupported(f"puts this fragment in {fragment.registers} registers")

    def step(S, R, mask):
        address, lane, stride = memory.find(S, R, mask)
        values = []
        for blocks in matrices:
            rows = address + fragment.row_offsets(blocks, lane, stride)
            values += load_matrices(S, i, "shared", rows, len(blocks), fragment.turns, mask)
        for places in fragment.offsets(lane, stride) if not matrices else ():
            found = []
            for place in places:
                pieces = memory.pieces(S, address + place, mask, False)
                if S.sanitizer is not None:
                    S.sanitizer.access(S, i, "load", pieces, memory.part, count)
                found += gather(pieces, count)
            values += [_packed(found)] if memory.part < 4 else found
            if fragment.turns:
                values[-1] = turned(S, values[-1])
        for put, value in zip(puts, itertools.cycle(values), strict=False):
            put(S, R, value, where(S, mask))

    return guarded(i, step)


def _packed(found: list[np.ndarray]) -> np.ndarray:
    """Bytes as one register, the first lowest."""
    words = (value.astype(np.uint32) << np.uint32(8 * n) for n, value in enumerate(found))
    return functools.reduce(np.bitwise_or, words)


def _store_step(i: Instruction):
    """wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}"""
    memory = _Memory(i, i.operands[0], i.operands[2] if len(i.operands) > 2 else None)
    fragment = memory.fragment
    sources = items_of(i.operands[1])
    if len(sources) != fragment.registers:
        raise i.unsupported(f"stores this fragment from {fragment.registers} registers")
    gets = [getter(i, s, UNSIGNED[memory.part]) for s in sources]
    count = memory.width // memory.part

    def step(S, R, mask):
        address, lane, stride = memory.find(S, R, mask)
        values = iter([g(S, R) for g in gets])
        S.writes += 1
        for place in itertools.chain(*fragment.offsets(lane, stride)):
            pieces = memory.pieces(S, address + place, mask, True)
            check_writable(S, i, pieces)
            stored = list(itertools.islice(values, count))
            if fragment.turns:
                stored = [turned(S, stored[0])]
            if S.sanitizer is not None:
                S.sanitizer.access(S, i, "store", pieces, memory.part, count, stored)
            scatter(pieces, stored)

    return guarded(i, step)


def _mma_step(i: Instruction):
    """wmma.mma{.op.popc}.sync.aligned.alayout.blayout.shape.dtype{.atype.btype}.ctype"""
    shape, types = shape_of(i), types_of(i)
    d_type, c_type = types[0], types[-1]
    element = types[1] if len(types) == 4 else "f16"
    how = how_of(i)
    if how["saturate"] and c_type != "s32":
        raise i.unsupported("saturates only sums of integers")

    def multiply(a, b, c):
        return wmma.multiply(shape, element, d_type, c_type, a, b, c, **how)

    return product_step(i, multiply, element, c_type)
