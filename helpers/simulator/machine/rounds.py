"""Many rounds of a loop at once, where few threads go round it often.

One thread over a million elements is the first kernel of every introduction, and NumPy is fast only
on many numbers. A loop of one block is run for thousands of rounds together, as if each round were
a block of threads of its own, if nothing tells the difference: what one round hands to the next are
counters stepped by what stays the same, and sums; no round reads or writes what another writes; and
all threads are known to go round once more. What is counted is the same; the trace is given up.
"""

import copy
import itertools
import struct
from dataclasses import dataclass, field

import numpy as np

from ..errors import SimulatorError
from ..isa.instructions import operation
from ..ptx.program import reads_and_writes, union
from ..ptx.syntax import Imm, Instruction, Part, Reg, Special, items_of
from .elements import active_mask
from .operands import BOOL, address_getter, getter

TOGETHER = 1 << 16  # rounds times threads that are run at once
FEWEST = 128  # rounds for which it is worth the looking
COUNTED_THREADS = 8  # at most, where the launch is counted, and
COUNTED_ROUNDS = 2048  # at least: such a trace says nothing that a shorter one does not
SPEED = 64  # how many rounds count as one against the launch's budget of instructions
TRIES = 8  # in vain, after which a loop is left alone
_SUMS = {"f32": np.float32, "f64": np.float64}
_SUMS |= {f"{s}{n}": np.dtype(f"u{n // 8}").type for s in "usb" for n in (32, 64)}
_TINY = np.finfo(np.float32).tiny


@dataclass(slots=True)
class Sum:
    """Additions that hand a register on from round to round, in their order."""

    slot: int
    dtype: type
    links: dict[int, list] = field(default_factory=dict)  # place -> getters of what is added
    flush: bool = False


@dataclass(slots=True)
class Foldable:
    """A loop of one block whose rounds do not depend on each other but for counters and sums.

    `body` and `steps` go together; `test` are the places that decide whether a round follows.
    """

    block: int
    body: list[Instruction]
    steps: list
    counters: dict[int, tuple]  # slot -> (getter of the step, its sign, bytes)
    sums: list[Sum]
    test: list[int]
    again: object
    tries: int = 0


def foldable(code, block: int) -> Foldable | None:
    """What there is to know of the loop of `block` before it runs; None if it does not fit."""
    b = code.graph.blocks[block]
    body = code.function.instructions[b.start : b.end]
    if block not in b.after or len(body) < 2 or body[-1].opcode != "bra":
        return None
    branch, body = body[-1], body[:-1]
    if branch.predicate is None or code.graph.target(branch.operands[0].name, None) != block:
        return None
    if len(code.steps[block]) != len(body) or not all(map(_plain, body)):
        return None
    effects = [reads_and_writes(i) for i in body]
    written = union(writes for _, writes in effects)
    counters, sums = {}, []
    handed_on = written & b.live_in
    for slot in (n for n in range(handed_on.bit_length()) if handed_on >> n & 1):
        counter = _counter(body, effects, written, slot)
        if counter is not None:
            counters[slot] = counter
            continue
        found = _sum(body, effects, slot)
        if found is None:
            return None
        sums.append(found)
    test = _deciding(body, effects, sums, branch.predicate.slot)
    if test is None:
        return None
    again = getter(branch, branch.predicate, BOOL)
    return Foldable(block, body, code.steps[block], counters, sums, test, again)


def _plain(i: Instruction) -> bool:
    """Whether an instruction only computes, or loads or stores at an address of its own."""
    if i.predicate is not None or any(isinstance(o, Part) for o in i.operands):
        return False
    if i.opcode == "ld":
        return i.space in ("global", "const") and not {"volatile", "relaxed", "acquire"} & set(
            i.modifiers
        )
    if i.opcode == "st":
        return i.space == "global" and not {"volatile", "relaxed", "release"} & set(i.modifiers)
    if i.opcode == "mov":
        return isinstance(i.operands[0], Reg) and not isinstance(i.operands[1], Special)
    op = operation(i.opcode, i.modifiers)
    return op is not None and not (op.reads_carry or op.writes_carry)


def _writer(body, effects, slot: int) -> Instruction | None:
    """The one instruction that writes a register; None if there are several."""
    places = [n for n, (_, writes) in enumerate(effects) if writes >> slot & 1]
    return body[places[0]] if len(places) == 1 else None


def _counter(body, effects, written: int, slot: int) -> tuple | None:
    """A register that each round steps by the same amount, perhaps through a copy."""
    i = _writer(body, effects, slot)
    if i is not None and i.opcode == "mov" and isinstance(i.operands[1], Reg):
        i = _writer(body, effects, i.operands[1].slot)
    if i is None or i.opcode not in ("add", "sub"):
        return None
    if i.modifiers[-1][0] not in "usb" or len(i.modifiers) > 1:
        return None
    left, right = i.operands[1:3]
    if i.opcode == "add" and isinstance(right, Reg) and right.slot == slot:
        left, right = right, left
    if not isinstance(left, Reg) or left.slot != slot:
        return None
    if not (isinstance(right, Imm) or isinstance(right, Reg) and not written >> right.slot & 1):
        return None
    size = left.size
    return getter(i, right, np.dtype(f"i{size}")), -1 if i.opcode == "sub" else 1, size


def _sum(body, effects, slot: int) -> Sum | None:
    """A register to which each round adds in a chain of additions that nothing else looks at."""
    head, found = slot, None
    for place, i in enumerate(body):
        reads, writes = effects[place]
        if not reads >> head & 1:
            if writes >> head & 1:
                return None
            continue
        if i.opcode == "mov" and i.operands[0].slot == slot and found is not None:
            head = slot
            continue
        link = _link(i, head)
        if link is None or (found is not None and found.dtype is not link[0]):
            return None
        dtype, added = link
        found = found or Sum(slot, dtype)
        found.links[place] = added
        found.flush = found.flush or "ftz" in i.modifiers
        head = i.operands[0].slot
    single = _writer(body, effects, slot) is not None
    return found if found is not None and head == slot and single else None


def _link(i: Instruction, head: int) -> tuple | None:
    """(type, getters of the number, or of the two factors, that are added to register `head`)."""
    dtype = _SUMS.get(i.modifiers[-1]) if i.modifiers else None
    if dtype is None or set(i.modifiers[:-1]) - {"rn", "ftz"}:
        return None
    at = [n for n, o in enumerate(i.operands[1:]) if isinstance(o, Reg) and o.slot == head]
    if len(at) != 1 or not isinstance(i.operands[0], Reg):
        return None
    if i.opcode == "add":
        added = [i.operands[2 - at[0]]]
    elif i.opcode == "fma" and at[0] == 2 and dtype is np.float32:
        added = list(i.operands[1:3])
    else:
        return None
    return dtype, [getter(i, operand, np.dtype(dtype)) for operand in added]


def _deciding(body, effects, sums: list[Sum], slot: int) -> list[int] | None:
    """The places that the loop's condition follows from, if it does so without memory."""
    needed, places = 1 << slot, []
    linked = {place for one in sums for place in one.links}
    for place in range(len(body) - 1, -1, -1):
        reads, writes = effects[place]
        if writes & needed:
            if body[place].opcode == "ld" or place in linked:
                return None
            needed = needed & ~writes | reads
            places.append(place)
    return places[::-1]


# ------------------------------------------------------------------ running


def fold(S, R: list, loop: Foldable, most: int) -> int:
    """Run up to `most` rounds of those known to be followed by another; returns how many.

    At the start of a round; afterwards the threads stand at the start of a later one.
    """
    threads = S.layout.nblocks * S.layout.nthreads
    if S.counting and threads > COUNTED_THREADS:
        return 0
    done = 0
    fewest = COUNTED_ROUNDS if S.counting else FEWEST
    while loop.tries < TRIES:
        together = min(TOGETHER // threads, most - done)
        if together < fewest and not done:
            break
        n = _followed(S, R, loop, together) if together else 0
        if n < (FEWEST if done else fewest):
            loop.tries += not done
            break
        if not _run_together(S, R, loop, n):
            loop.tries = TRIES
            break
        done += n
        if n < together:
            break
    return done


def _spread(S, R: list, loop: Foldable, n: int):
    """The batch and its registers with `n` rounds along a leading axis."""
    T = copy.copy(S)
    layout = T.layout = copy.copy(S.layout)
    layout.bshape = (n, *layout.bshape)
    layout.shape = (n, *layout.shape)
    layout.lanes_shape = (n, *layout.lanes_shape)
    layout.nb, layout.ndim, layout.nblocks = layout.nb + 1, layout.ndim + 1, layout.nblocks * n
    T._lanes_of = (None, None)
    T._numbers_of = (None, (layout.warps * layout.nblocks, layout.nthreads * layout.nblocks))
    T.counting = False
    registers = list(R)
    rounds = np.arange(n).reshape((n,) + (1,) * S.layout.ndim)
    for slot, (step, sign, size) in loop.counters.items():
        value = S.layout.lift(R[slot])
        signed = value.view(f"i{size}")
        steps = S.layout.lift(step(S, R)) * rounds.astype(f"i{size}") * np.array(sign, f"i{size}")
        registers[slot] = (signed + steps).view(value.dtype)
    return T, registers


def _followed(S, R: list, loop: Foldable, n: int) -> int:
    """Of the next `n` rounds, how many come before the first that some thread ends with."""
    T, registers = _spread(S, R, loop, n)
    for place in loop.test:
        loop.steps[place](T, registers)
    again = loop.again(T, registers)
    if S.mask is not None:
        again = again | ~S.mask
    if again.ndim <= S.layout.ndim:
        return n if again.all() else 0
    stops = np.flatnonzero(~again.reshape(again.shape[0], -1).all(axis=1))
    return int(stops[0]) if stops.size else n


def _run_together(S, R: list, loop: Foldable, n: int) -> bool:
    """Run `n` rounds, or change nothing and say False: they depend on each other."""
    T, registers = _spread(S, R, loop, n)
    linked = {place: one for one in loop.sums for place in one.links}
    added: dict[int, list[np.ndarray]] = {}
    accesses = []
    try:
        for place, i in enumerate(loop.body):
            if place in linked:
                added[place] = [get(T, registers) for get in linked[place].links[place]]
                continue
            if i.opcode in ("ld", "st"):
                memory = items_of(i.operands[1 if i.opcode == "ld" else 0])[0]
                address = address_getter(i, memory)(T, registers)
                accesses.append((place, i, address))
            if i.opcode != "st":
                loop.steps[place](T, registers)
    except SimulatorError:  # told where the rounds go one by one
        return False
    totals = {one.slot: _total(S, R, one, added, n) for one in loop.sums}
    if any(total is None for total in totals.values()) or _entangled(T, accesses, n):
        return False
    T, registers = _spread(S, R, loop, n)
    if S.counting:
        T.counting = True
        T.tally.trace_cut = True
        T.tally.trace.clear()
        T.tally.block((id(S.frame.code), loop.block), *T.active_numbers(S.mask))
    for place, step in enumerate(loop.steps):
        if place not in linked:
            step(T, registers)
    S.writes = T.writes
    for slot, value in enumerate(registers):
        if value is not R[slot]:
            last = value[-1] if value.ndim > S.layout.ndim else value
            R[slot] = _where_active(S, last, R[slot])
    for slot, total in totals.items():
        R[slot] = _where_active(S, total, R[slot])
    return True


def _where_active(S, new: np.ndarray, old: np.ndarray | None) -> np.ndarray:
    """A register after the rounds: lanes that have left the loop keep what they had."""
    if S.mask is None or old is None:
        return new
    return np.where(S.mask, new, S.layout.lift(old)).astype(new.dtype)


def _entangled(T, accesses: list, n: int) -> bool:
    """Whether a round touches what another round writes, or loads what it has written itself."""
    stores = [a for a in accesses if a[1].opcode == "st"]
    if not stores:
        return False
    mask, _ = active_mask(T, None)
    unit = min(i.dtype.itemsize for _, i, _ in accesses)
    cells, rounds, places, writes = [], [], [], []
    for place, i, address in accesses:
        full = np.broadcast_to(address, T.layout.shape)
        number = np.broadcast_to(
            np.arange(n).reshape((n,) + (1,) * (T.layout.ndim - 1)), T.layout.shape
        )
        if mask is not None:
            here = np.broadcast_to(mask, T.layout.shape)
            full, number = full[here], number[here]
        for offset in range(0, i.dtype.itemsize * i.vector_length, unit):
            cells.append((full.reshape(-1) + offset) // unit)
            rounds.append(number.reshape(-1))
            places.append(np.full(full.size, place))
            writes.append(np.full(full.size, i.opcode == "st"))
    cell, number, place, write = map(np.concatenate, (cells, rounds, places, writes))
    order = np.argsort(cell, kind="stable")
    cell, number, place, write = cell[order], number[order], place[order], write[order]
    starts = np.flatnonzero(np.r_[True, cell[1:] != cell[:-1]])
    written = np.logical_or.reduceat(write, starts)
    several = np.minimum.reduceat(number, starts) != np.maximum.reduceat(number, starts)
    first = np.minimum.reduceat(np.where(write, place, len(place) + n), starts)
    last = np.maximum.reduceat(np.where(write, -1, place), starts)
    return bool((written & (several | (last > first))).any())


def _total(S, R: list, one: Sum, added: dict, n: int) -> np.ndarray | None:
    """A sum after `n` rounds, rounded after each addition as the GPU does; None if unsure."""
    start = S.layout.lift(R[one.slot]).view(one.dtype)
    shape = (n, *S.layout.shape)
    terms = [[np.broadcast_to(_lifted(S, v), shape) for v in added[place]] for place in one.links]
    if np.issubdtype(one.dtype, np.integer):
        whole = sum(t[0].sum(axis=0, dtype=one.dtype) for t in terms)
        return (start + whole).astype(one.dtype).view(R[one.slot].dtype)
    if one.flush and any(
        ((np.abs(v) < _TINY) & (v != 0)).any() for v in itertools.chain.from_iterable(terms)
    ):
        return None
    if any(len(t) > 1 for t in terms):
        return _fused(np.broadcast_to(start, S.layout.shape), terms, one.flush, R[one.slot].dtype)
    row = np.stack([t[0] for t in terms], axis=1).reshape(-1, *S.layout.shape)
    row = np.concatenate([np.broadcast_to(start, (1, *S.layout.shape)), row])
    sums = np.add.accumulate(row, axis=0)
    if not np.isfinite(sums[-1]).all():
        return None
    if one.flush and ((np.abs(sums) < _TINY) & (sums != 0)).any():
        return None
    return sums[-1].view(R[one.slot].dtype)


def _lifted(S, value: np.ndarray) -> np.ndarray:
    """A value with the axis of the rounds, and all axes of the batch behind it."""
    missing = S.layout.ndim + 1 - value.ndim
    return value.reshape((1,) * missing + value.shape) if missing > 0 else value


def _fused(start: np.ndarray, terms: list, flush: bool, dtype) -> np.ndarray | None:
    """A chain of fp32 additions some of which are fused with a product, one thread at a time.

    The product of two fp32 numbers is exact as a double. Their sum is rounded to a double first,
    which goes wrong only where that double lies halfway between two fp32 numbers: there the error
    of the sum (Knuth's TwoSum) says to which side the exact sum lies.
    """
    with np.errstate(all="ignore"):
        products = [np.multiply.reduce([v.astype(np.float64) for v in t]) for t in terms]
    row = np.stack(products, axis=1).reshape(-1, start.size)
    out = []
    for total, column in zip(start.reshape(-1).tolist(), row.T, strict=True):
        for product in column.tolist():
            exact = product + total
            if struct.unpack("<q", struct.pack("<d", exact))[0] & 0x1FFFFFFF == 0x10000000:
                other = exact - product
                error = (product - (exact - other)) + (total - other)
                if error:
                    exact = float(np.nextafter(exact, np.inf if error > 0 else -np.inf))
            try:
                total = struct.unpack("<f", struct.pack("<f", exact))[0]
            except (OverflowError, ValueError):
                return None
            if total != total or (total and abs(total) < _TINY):
                return None  # not a number, or one that flushing or another halfway point decides
        out.append(total)
    return np.array(out, np.float32).reshape(start.shape).view(dtype)
