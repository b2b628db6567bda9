"""The steps of wgmma: PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions".

A product is there at once, as copies are; the sanitizer says who does not wait for it. It reads
shared memory through the async proxy, past the units that load and store for threads, whose
counters it leaves alone.
"""

import re

import numpy as np

from ...isa.tensor import warpgroup_products as products
from ...isa.tensor.matrix_descriptors import CHUNK, chunk_addresses, descriptors
from ...isa.tensor.warpgroup_products import FACTOR_TYPES, ROWS, THREADS
from ...ptx.syntax import Imm, Instruction, Vec, items_of
from ..elements import active_mask, guard_getter
from ..faults import everyone, fault, where_is
from ..operands import BOOL, getter, putter
from .matrix_steps import shape_of, where

_WORD = np.dtype(np.uint64)
_REGISTER = np.dtype(np.uint32)
_MOST_PENDING = 7  # that wait_group can name


def wgmma_step(i: Instruction, code):
    """wgmma.fence, wgmma.commit_group, wgmma.wait_group N, wgmma.mma_async"""
    form = i.modifiers[0]
    if form == "fence":
        return None  # whether registers are fenced, the sanitizer reads off the code
    if form == "commit_group":
        return lambda S, R: S.sanitizer.commit_products(S) if S.sanitizer is not None else None
    if form == "wait_group":
        return _wait_step(i)
    if form != "mma_async" or "sp" in i.modifiers:
        raise i.unsupported("does not multiply sparse matrices: use the dense wgmma.mma_async")
    return _Product(i).step


def _wait_step(i: Instruction):
    left = i.operands[0].value if i.operands and isinstance(i.operands[0], Imm) else -1
    if not 0 <= left <= _MOST_PENDING:
        raise i.unsupported(f"waits until 0 to {_MOST_PENDING} groups are under way")
    return lambda S, R: S.sanitizer.wait_products(S, left) if S.sanitizer is not None else None


def whole_warpgroups(S, i: Instruction, mask) -> tuple[np.ndarray, bool]:
    """(bool (blocks, warpgroups): those with a thread in a mask, whether they are all whole).

    Raises:
        SimulatorError: the block has no whole warpgroups.
    """
    layout = S.layout
    if layout.nthreads % THREADS:
        raise fault(
            S, i.line, "barrier", f"{i.opcode} is run by warpgroups, four warps each, and a block "
            f"has {layout.nthreads} threads: start blocks of a multiple of {THREADS}.",
        )  # fmt: skip
    groups = layout.rows(everyone(mask)).reshape(layout.nblocks, -1, THREADS)
    some = groups.any(axis=-1)
    return some, mask is None or bool((groups.all(axis=-1) == some).all())


class SharedMatrix:
    """A matrix in shared memory: where its chunks lie, for each warpgroup that multiplies."""

    def __init__(self, i: Instruction, descriptor, extent: int, along_k: bool, kind: str):
        self.i, self.get = i, getter(i, descriptor, _WORD)
        self.extent, self.along_k, self.type = extent, along_k, FACTOR_TYPES[kind]

    def places(self, S, R, at: np.ndarray) -> np.ndarray:
        """Which 16-byte chunks of shared memory the matrix is, for threads `at` of the batch."""
        words = S.layout.flat(self.get(S, R))[at]
        chunks = None
        for which, fields in descriptors(words):
            found = chunk_addresses(fields, self.extent, self.along_k, self.type.chunk)
            if chunks is None:
                chunks = np.empty((len(words), *found.shape[1:]), np.int64)
            chunks[which] = found
        relative = chunks - S.shared.base
        bad = (relative < 0) | (relative + CHUNK > S.shared.nbytes)
        if bad.any():
            first = int(np.argmax(bad.any(axis=(1, 2))))
            byte = int(relative[first][bad[first]][0])
            raise fault(
                S, self.i.line, "out_of_bounds", f"the descriptor of {where_is(S, at[first])} "
                f"leads wgmma to byte {byte:,} of shared memory, of which a block has "
                f"{S.shared.nbytes:,}; check its address and its two strides.",
            )  # fmt: skip
        blocks = at // S.layout.nthreads
        return relative // CHUNK + (blocks * (S.shared.pitch // CHUNK))[:, None, None]

    def matrix(self, S, places: np.ndarray) -> np.ndarray:
        """The elements behind places: (groups, extent, k)."""
        lines = S.shared.bytes.reshape(-1, CHUNK).view(self.type.dtype)
        found = lines[places]  # (groups, rows or their blocks, chunks, elements)
        if self.along_k:
            return found.reshape(len(found), self.extent, -1)
        return found.transpose(0, 1, 3, 2).reshape(len(found), self.extent, -1)


class _Product:
    """wgmma.mma_async.sync.aligned.m64nNkK.{sums}.{a}.{b} d, a, b, scale-d, …"""

    def __init__(self, i: Instruction):
        types = list(i.modifiers[i.modifiers.index(shape_of(i)) + 1 :])
        if len(types) == 4 and types[-1] == "satfinite":
            types.pop()
        if len(types) != 3 or not set(types[1:]) <= FACTOR_TYPES.keys():
            raise i.unsupported("has wgmma for factors f16, bf16, tf32, s8 and u8")
        self.i, self.sums, self.kinds = i, types[0], (types[1], types[2])
        kind = FACTOR_TYPES[types[1]]
        m, self.n, k = map(int, re.findall(r"\d+", shape_of(i)))
        if m != ROWS or k != 2 * kind.chunk or self.n % 8 or not 8 <= self.n <= 256:
            raise i.unsupported(f"multiplies shapes m64nNk{2 * kind.chunk} here, N from 8 to 256")
        if FACTOR_TYPES[types[2]].sums != kind.sums or self.sums != "s32" and len({*types[1:]}) > 1:
            raise i.unsupported("multiplies floats of one type, or bytes")
        if self.sums not in kind.sums:
            raise i.unsupported(f"adds such products up in {' or '.join(kind.sums)}")
        d, a, b, self.scale = i.operands[0], i.operands[1], i.operands[2], i.operands[3]
        self.accumulates = getter(i, self.scale, BOOL)
        self._read_numbers(isinstance(a, Vec), kind.dtype.itemsize == 2)
        registers = items_of(d)
        wanted = self.n // (4 if self.sums == "f16" else 2)
        if len(registers) != wanted:
            raise i.unsupported(f"takes {wanted} registers of D here, not {len(registers)}")
        self.gets = [getter(i, r, _REGISTER) for r in registers]
        self.puts = [putter(i, r) for r in registers]
        self.a_gets = [getter(i, r, _REGISTER) for r in a.items] if isinstance(a, Vec) else []
        self.a = None if self.a_gets else SharedMatrix(i, a, ROWS, not self.turns[0], types[1])
        self.b = SharedMatrix(i, b, self.n, not self.turns[1], types[2])
        self.guard = guard_getter(i)

    def _read_numbers(self, from_registers: bool, halves: bool) -> None:
        """What stands behind the operands: signs of A and B, and whether they are MN-major."""
        numbers = [o.value for o in self.i.operands[4:] if isinstance(o, Imm)]
        wanted = (0 if self.sums == "s32" else 2) + (2 - from_registers if halves else 0)
        if len(numbers) != wanted:
            raise self.i.unsupported(f"takes {wanted} numbers behind scale-d here")
        self.negative = [n < 0 for n in numbers[:2]] if self.sums != "s32" else [False, False]
        turns = [bool(n) for n in numbers[2:]] if halves else []
        self.turns = ([False] * 2 + turns)[-2:]

    def step(self, S, R) -> None:
        mask, some = active_mask(S, None if self.guard is None else self.guard(S, R))
        if not some:
            return
        groups, whole = whole_warpgroups(S, self.i, mask)
        if not whole:
            raise fault(
                S, self.i.line, "barrier", f"{self.i.opcode} is run by the four warps of a "
                "warpgroup together, and here only some of their threads run it: branch by whole "
                "warpgroups, threads 128 w to 128 w + 127.",
            )  # fmt: skip
        number = np.flatnonzero(groups)  # of a warpgroup in the batch
        at = number * THREADS
        places = [o.places(S, R, at) for o in (self.a, self.b) if o is not None]
        if S.sanitizer is not None:
            S.sanitizer.product(S, self.i, number, places)
        b = self.b.matrix(S, places[-1])
        if self.a is None:
            words = [S.layout.flat(g(S, R)).reshape(-1, THREADS)[number] for g in self.a_gets]
            a = products.a_matrix(words, self.kinds[0])
        else:
            a = self.a.matrix(S, places[0])
        a, b = (
            products.negated(m) if negative else m
            for m, negative in zip((a, b), self.negative, strict=True)
        )
        out = products.multiply(
            a, b, self._sums(S, R, number), self.kinds, "satfinite" in self.i.modifiers
        )
        self._put(S, R, mask, number, products.d_registers(out))

    def _sums(self, S, R, number: np.ndarray) -> np.ndarray:
        """C: what the registers of D hold, or zeros where scale-d is false."""
        adds = S.layout.flat(self.accumulates(S, R))[number * THREADS]
        if not adds.any():
            return np.zeros((len(number), ROWS, self.n), products.SUM_TYPES[self.sums])
        words = np.empty((len(self.gets), len(number), THREADS), np.uint32)
        for place, get in zip(words, self.gets, strict=True):
            place[...] = S.layout.flat(get(S, R)).reshape(-1, THREADS)[number]
        found = products.d_matrix(words, self.sums)
        if not adds.all():
            found[~adds] = 0
        return found

    def _put(self, S, R, mask, number: np.ndarray, words: np.ndarray) -> None:
        full = S.layout.nblocks * S.layout.nthreads // THREADS
        if len(number) < full:
            spread = np.zeros((len(words), full, THREADS), np.uint32)
            spread[:, number] = words
            words = spread
        for put, value in zip(self.puts, words, strict=True):
            put(S, R, value.reshape(S.layout.shape), where(S, mask))
