"""What one warp issued, PTX instruction by instruction, in the order of its program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..errors import SimulatorError
from ..ptx.syntax import Imm, Instruction, Reg, items_of
from .access_trace import AccessTrace, BlockAccess, block_lanes, place_of

_GROUPS = {"commit_group": "commit", "wait_group": "wait", "wait_all": "wait"}
_MOVES = ("ldmatrix", "stmatrix", "movmatrix")
_FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))
_ACROSS = ("shfl", "vote", "redux", "match")


class Issued(NamedTuple):
    """One instruction of a warp.

    Attributes:
        number: how many the warp issued before.
        line: of the source, if the compiler says.
        kind: "copy", "commit" and "wait" of cp.async; "barrier" of the block; "load" and "store",
            ldmatrix and stmatrix among them; "mma"; "math" on floats and across the warp; "other".
            Of Hopper's own: "wgmma", "wgmma commit" and "wgmma wait"; "bulk" copies, by TMA too,
            "bulk commit" and "bulk wait"; "arrive" at an mbarrier, and "phase", waits for one.
        name: the full mnemonic, such as `ex2.approx.ftz.f32`.
        accesses: what it accessed, with all warps of the block but this one masked out; a copy has
            what it read from global memory, and then what it wrote to shared memory.
        left: of a wait: how many groups may still be under way behind it.
        operands: of an mma: the numbers of the loads that A came from, and those for B.
    """

    number: int
    line: int | None
    kind: str
    name: str
    accesses: tuple[BlockAccess, ...] = ()
    left: int | None = None
    operands: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())


class InstructionTrace(AccessTrace):
    """The part of `Report` that gives the instructions of a warp."""

    def issued(self, block: tuple[int, int, int] = (0, 0, 0), *, warp: int = 0) -> list[Issued]:
        """What a warp issued, in order, as PTX has it: the assembler may order it otherwise.

        Args:
            block: (x, y, z) of the warp's block.
            warp: its number there.

        Raises:
            SimulatorError: as `accesses` does, or the launch ran too many instructions.
        """
        accesses = self._by_order()  # says where there is no trace
        tally = self._run.tally
        if tally.ran_cut:
            raise SimulatorError(
                "launch",
                f"{self.entry}: the order of instructions was dropped, since the launch ran too "
                "many: trace a smaller grid, or fewer rounds of its loops.",
            )
        found: list[Issued] = []
        loads = _Loads()
        for code, start, end, orders, at in self._stretches(block, warp):
            made = defaultdict(list)
            for order in orders:
                if order in accesses:
                    made[accesses[order].instruction.serial].append(accesses[order])
            for i in code.function.instructions[start:end]:
                mine = (self._in_block(access, at, warp) for access in made[i.serial])
                number, kind = len(found), _kind(i)
                operands = loads.follow(i, code, number, kind)
                found.append(
                    Issued(
                        number, i.line, kind, i.name, tuple(a for a in mine if a is not None),
                        _left(i) if kind.endswith("wait") else None, operands,
                    )
                )  # fmt: skip
        return found

    def _by_order(self) -> dict[int, object]:
        return {access.order: access for access in self._trace(None, None, None)}

    def _stretches(self, block, warp: int) -> Iterator[tuple]:
        """Basic blocks of a warp: code, first instruction, end, orders of accesses, place."""
        ran = self._run.tally.ran
        places: dict[object, tuple[int, ...] | None] = {}
        last = max((access.order for access in self._run.tally.trace), default=0)
        for n, one in enumerate(ran):
            if one.layout not in places:
                places[one.layout] = place_of(one.layout, block)
            at = places[one.layout]
            if at is None or not 0 <= warp < one.layout.warps:
                continue
            active = np.True_ if one.active is None else one.active
            if block_lanes(active, one.layout, at)[warp].any():
                end = ran[n + 1].order if n + 1 < len(ran) else last
                place = one.code.graph.blocks[one.block]
                yield one.code, place.start, place.end, range(one.order + 1, end + 1), at


class _Loads:
    """Which load each register came from, through moves."""

    def __init__(self):
        self._from: dict[tuple[int, int], frozenset[int]] = {}

    def follow(self, i: Instruction, code, number: int, kind: str):
        """Go on behind an instruction; for an mma, the loads of its A and of its B."""
        written = _slots(i.operands[0]) if i.operands else ()
        if kind == "mma":
            a, b = (self._of(code, i.operands[n]) for n in (1, 2))
        else:
            a = b = frozenset()
        if kind == "load":
            source = frozenset((number,))
        elif i.opcode == "mov":
            source = self._of(code, i.operands[1])
        else:
            source = frozenset()
        if kind != "store":
            for slot in written:
                self._from[id(code), slot] = source
        return a, b

    def _of(self, code, operand) -> frozenset[int]:
        nothing: frozenset[int] = frozenset()
        return nothing.union(*(self._from.get((id(code), s), nothing) for s in _slots(operand)))


def _slots(operand) -> tuple[int, ...]:
    return tuple(item.slot for item in items_of(operand) if isinstance(item, Reg))


def _kind(i: Instruction) -> str:
    if i.opcode == "cp" and "bulk" not in i.modifiers:
        return next((kind for name, kind in _GROUPS.items() if name in i.modifiers),
                    "other" if "mbarrier" in i.modifiers else "copy")  # fmt: skip
    if i.opcode in ("wgmma", "cp", "mbarrier"):
        return _hopper_kind(i)
    if i.opcode in ("bar", "barrier"):
        return "other" if "warp" in i.modifiers else "barrier"
    if i.opcode in ("ld", "ldmatrix"):
        return "load"
    if i.opcode in ("st", "stmatrix"):
        return "store"
    if i.opcode == "mma":
        return "mma"
    floats = not _FLOATS.isdisjoint(i.modifiers) and i.opcode not in ("mov", *_MOVES)
    return "math" if floats or i.opcode in _ACROSS else "other"


def _hopper_kind(i: Instruction) -> str:
    if i.opcode == "mbarrier":
        form = i.modifiers[0]
        return "arrive" if form.startswith(("arrive", "expect")) else (
            "phase" if form.endswith("_wait") else "other"
        )  # fmt: skip
    name = "wgmma" if i.opcode == "wgmma" else "bulk"
    step = next((kind for group, kind in _GROUPS.items() if group in i.modifiers), "")
    if not step and {"fence", "prefetch"}.intersection(i.modifiers):
        return "other"
    return f"{name} {step}".strip()


def _left(i: Instruction) -> int:
    first = i.operands[0] if i.operands else None
    return int(first.value) if isinstance(first, Imm) else 0
