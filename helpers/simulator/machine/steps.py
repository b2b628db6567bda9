"""Compiles one PTX instruction into a step: a function step(S, R) that executes it.

S is the batch (layout, active mask, memories, tally), R the register file of the running frame.
Pure instructions come from the table in `instructions`; memory instructions are in `accesses`,
instructions that look across a warp in `warps`, those on matrices in `matrix`.
"""

import numpy as np

from ..errors import SimulatorError
from ..isa.instructions import operation
from ..ptx.program import destination_count, fences_device
from ..ptx.syntax import Imm, Instruction, Part, Reg, Special, Sym, Vec, items_of
from . import accesses, elements, warps
from .asynchronous.mbarrier_steps import mbarrier_step
from .elements import guard_getter
from .matrix import matrix_steps, wgmma_steps, wmma_steps
from .operands import BOOL, getter, guarded_putter, putter

IGNORED = frozenset(
    "membar fence prefetch prefetchu discard applypriority nanosleep pmevent "
    "griddepcontrol createpolicy isspacep_ brkpt".split()
)

CLOCKS = frozenset("clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi".split())


def compile_step(i: Instruction, code) -> object:
    """The step of an instruction that does not end a block. `code` is the function's Code."""
    special = SPECIAL.get(i.opcode)
    if special is not None:
        return special(i, code)
    if fences_device(i):
        return lambda S, R: S.sanitizer.fence(S) if S.sanitizer is not None else None
    if i.opcode == "fence" and ("async" in i.modifiers or "mbarrier_init" in i.modifiers):
        return lambda S, R: S.sanitizer.fence_proxy(S) if S.sanitizer is not None else None
    if i.opcode in IGNORED:
        return None
    if i.opcode == "mov" and isinstance(i.operands[1], Special) and i.operands[1].name in CLOCKS:
        return _clock(i, code)
    return pure_step(i)


def _clock(i: Instruction, code):
    """A clock counts the PTX instructions that were issued to the batch: order, and no time."""
    put, size = putter(i, i.operands[0]), i.operands[0].size
    shift = 32 if i.operands[1].name in ("clock_hi", "globaltimer_hi") else 0

    def step(S, R):
        block = next(b for b in code.graph.blocks if b.start <= i.index < b.end)
        now = S.issued - (block.end - i.index) >> shift
        put(S, R, np.full(1, now & ((1 << 8 * size) - 1), f"u{size}"))

    return step


def pure_step(i: Instruction):
    """An instruction of the table: fetch, evaluate, write back."""
    if i.opcode == "mov":
        return _mov(i)
    op = operation(i.opcode, i.modifiers)
    if op is None:
        raise i.unsupported(f"does not know the instruction {i.name}")
    n = destination_count(i)
    sources = i.operands[n:]
    if isinstance(i.operands[0], Part):
        return _merged(i, op)
    if len(sources) != len(op.inputs):
        raise i.unsupported(f"expects {len(op.inputs)} source operands here")
    gets = [getter(i, s, d) for s, d in zip(sources, op.inputs, strict=True)]
    put = putter(i, i.operands[0])
    evaluate = op.evaluate
    several = len(op.outputs) > 1
    if op.reads_carry or op.writes_carry or (several and n > 1):
        return _general(i, op, gets)
    if several:
        plain = evaluate

        def evaluate(*inputs):
            return plain(*inputs)[0]

    guard = guard_getter(i)
    if guard is not None:

        def guarded(S, R):
            p = guard(S, R)
            if p.size == 1:
                if p.item():
                    put(S, R, evaluate(*[g(S, R) for g in gets]))
                return
            put(S, R, evaluate(*[g(S, R) for g in gets]), p)

        return guarded
    if len(gets) == 1:
        (a,) = gets
        return lambda S, R: put(S, R, evaluate(a(S, R)))
    if len(gets) == 2:
        a, b = gets
        return lambda S, R: put(S, R, evaluate(a(S, R), b(S, R)))
    if len(gets) == 3:
        a, b, c = gets
        return lambda S, R: put(S, R, evaluate(a(S, R), b(S, R), c(S, R)))
    return lambda S, R: put(S, R, evaluate(*[g(S, R) for g in gets]))


def _merged(i: Instruction, op):
    """A video instruction that replaces one part of its last operand ("Video Instructions").

    The manual moves the result's low bits to that part; an H200 takes the bits that stand there.
    """
    part, *sources = i.operands
    *gets, base = [
        getter(i, s, d) for s, d in zip(sources, (*op.inputs, np.dtype(np.uint32)), strict=True)
    ]
    put = guarded_putter(i, part.register)
    keep = np.uint32(~(((1 << 8 * part.size) - 1) << part.shift) & 0xFFFFFFFF)

    def step(S, R):
        value = op.evaluate(*[g(S, R) for g in gets]).view(np.uint32)
        put(S, R, (base(S, R) & keep) | (value & ~keep))

    return step


def _general(i: Instruction, op, gets):
    """Carry chains, and instructions with two destinations."""
    n = destination_count(i)
    puts = [putter(i, o) for o in i.operands[:n]]
    guard = guard_getter(i)

    def step(S, R):
        inputs = [g(S, R) for g in gets]
        if op.reads_carry:
            inputs.append(S.frame.carry)
        out = op.evaluate(*inputs)
        if op.writes_carry:
            out, S.frame.carry = out
        if not isinstance(out, tuple):
            out = (out,)
        p = guard(S, R) if guard is not None else None
        for put, value in zip(puts, out, strict=False):
            put(S, R, value, p)

    return step


_MOV_SIZES = {"pred": 0} | {f"{kind}{n}": n // 8 for kind in "busf" for n in (16, 32, 64)}


def _mov(i: Instruction):
    """mov: registers, addresses, and packing to and from vectors ("Data Movement: mov")."""
    destination, source = i.operands[0], i.operands[1]
    size = _MOV_SIZES.get(i.modifiers[-1])
    if size is None:
        raise i.unsupported(f"does not know the instruction {i.name}")
    parts = items_of(source) if isinstance(source, Vec) else items_of(destination)
    unsigned, wide = (np.dtype(f"u{n}") if n else BOOL for n in (size // len(parts), size))
    shifts = [8 * unsigned.itemsize * n for n in range(len(parts))]
    if isinstance(source, Vec):
        gets = [getter(i, s, unsigned) for s in parts]
        put = guarded_putter(i, destination)

        def pack(S, R):
            value = gets[0](S, R).astype(wide)
            for shift, get in zip(shifts[1:], gets[1:], strict=True):
                value = value | (get(S, R).astype(wide) << wide.type(shift))
            put(S, R, value)

        return pack
    if isinstance(destination, Vec):
        get = getter(i, source, wide)
        puts = [guarded_putter(i, d) for d in parts]

        def unpack(S, R):
            value = get(S, R)
            for shift, put in zip(shifts, puts, strict=True):
                put(S, R, (value >> wide.type(shift)).astype(unsigned))

        return unpack
    put = guarded_putter(i, destination)
    if isinstance(source, Reg) and isinstance(destination, Reg):
        if source.size == destination.size and not source.negated:
            slot = source.slot
            return lambda S, R: put(S, R, R[slot])
    get = getter(i, source, wide)
    return lambda S, R: put(S, R, get(S, R))


def _cvta(i: Instruction, code):
    """cvta: between the addresses of a state space and generic ones."""
    space = next(m for m in i.modifiers if m in ("global", "shared", "local", "const", "param"))
    destination, source = i.operands
    window = 0 if isinstance(source, Sym) else elements.WINDOWS.get(space, 0)
    get, put = getter(i, source, np.dtype(np.uint64)), guarded_putter(i, destination)
    if not window:
        return lambda S, R: put(S, R, get(S, R))
    shift = np.array([-window if "to" in i.modifiers else window], np.int64).view(np.uint64)
    return lambda S, R: put(S, R, get(S, R) + shift)


def _isspacep(i: Instruction, code):
    """isspacep: does a generic address lie in a state space?"""
    window = elements.WINDOWS.get(i.modifiers[-1].split("__")[0], 0)
    get, put = getter(i, i.operands[1], np.dtype(np.int64)), putter(i, i.operands[0])
    low, high = (window, 2 * window) if window else (-(1 << 63), elements.SHARED_WINDOW)

    def step(S, R):
        address = get(S, R)
        put(S, R, (address >= low) & (address < high))

    return step


def _set_registers(i: Instruction, code):
    """setmaxnreg.{inc, dec}: registers here do not run out."""
    number = i.operands[0].value if isinstance(i.operands[0], Imm) else 0
    if number % 8 or not 24 <= number <= 256:
        raise SimulatorError(
            "unsupported",
            f"line {i.line}: setmaxnreg takes 24 to 256 registers, a multiple of 8, not {number}.",
            i.line,
        )
    return None


def _lacking(what: str):
    """What stands in the table for instructions that the simulator does not have."""

    def refuse(i: Instruction, code):
        raise i.unsupported(f"does not have {what}")

    return refuse


SPECIAL = {
    "ld": accesses.load_step,
    "ldu": accesses.load_step,
    "st": accesses.store_step,
    "atom": accesses.atomic_step,
    "red": accesses.atomic_step,
    "cp": accesses.copy_step,
    "mbarrier": mbarrier_step,
    "cvta": _cvta,
    "isspacep": _isspacep,
    "mapa": _lacking("thread-block clusters"),
    "shfl": warps.shuffle_step,
    "vote": warps.vote_step,
    "match": warps.match_step,
    "activemask": warps.activemask_step,
    "redux": warps.redux_step,
    "elect": warps.elect_step,
    "ldmatrix": matrix_steps.ldmatrix_step,
    "stmatrix": matrix_steps.stmatrix_step,
    "movmatrix": matrix_steps.movmatrix_step,
    "mma": matrix_steps.mma_step,
    "wmma": wmma_steps.wmma_step,
    "wgmma": wgmma_steps.wgmma_step,
    "setmaxnreg": _set_registers,
    **dict.fromkeys(("alloca", "stacksave"), _lacking("dynamic stack allocation")),
}
