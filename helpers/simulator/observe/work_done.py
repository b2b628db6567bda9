"""The work of a launch, as bounds on its time take it: out of what was counted and traced."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from ..bounds.demand import WGMMA, Traffic, Work
from ..bounds.issue import FP32, SPECIAL, TENSOR
from ..isa.instructions import operation
from ..limits import SECTOR_BYTES
from .touched_sectors import Footprint

if TYPE_CHECKING:
    from ..ptx.syntax import Instruction
    from .report import Report

_GROUP_WARPS = 4  # that share a product of a warpgroup
_MMA = re.compile(r"m(\d+)n(\d+)k(\d+)")
_FP32 = frozenset(("add", "sub", "mul", "fma", "mad"))
# What the special-function unit is for; a division takes a reciprocal.
_SPECIAL = frozenset(("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "div"))
_MEMORY = frozenset(("ld", "st", "atom", "red"))
_ELSE = frozenset(("shfl", "vote", "redux", "bar", "barrier", "ldmatrix", "stmatrix"))
_KINDS = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", "s8": "int8", "u8": "int8",
          "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8"}  # fmt: skip


def work_of(report: Report) -> Work:
    """What all blocks of a launch have to do.

    Args:
        report: of a launch that was counted.
    """
    run = report._run
    blocks = report.blocks
    threads = report.block[0] * report.block[1] * report.block[2]
    scale = blocks / report.counted_blocks
    numbers: dict[str, float] = defaultdict(float)
    tensor: dict[str, float] = defaultdict(float)
    for i, warps in executed(run):
        kind = kind_of(i)
        if kind == TENSOR:
            by = WGMMA if i.opcode == "wgmma" else ""
            tensor[by + _numbers(i)] += scale * warps * flops_of(i)
        if kind:
            numbers[kind] += scale * warps
        numbers["instructions"] += scale * warps * issues(i)
    c = report.counters
    moved, wavefronts = _touched(run, blocks, report.counted_blocks)
    requests = sum(c[f"global_{kind}_requests"] for kind in ("load", "store", "atomic"))
    passed = SECTOR_BYTES * _past_l1(run) + c["bulk_load_bytes"]
    shared = c["shared_load_wavefronts"] + c["shared_store_wavefronts"]
    conflicts = c["shared_load_bank_conflicts"] + c["shared_store_bank_conflicts"]
    stored = SECTOR_BYTES * (c["global_store_sectors"] + c["global_atomic_sectors"])
    stored += c["bulk_store_bytes"]
    return Work(
        blocks=blocks,
        counted=report.counted_blocks,
        threads=threads,
        instructions=numbers["instructions"],
        fp32=numbers[FP32],
        special=numbers[SPECIAL],
        tensor=dict(tensor),
        products=numbers[TENSOR],
        shared_wavefronts=scale * shared,
        conflicts=scale * conflicts,
        global_wavefronts=scale * wavefronts,
        requests=scale * (requests - c["cp_async_instructions"]),
        store_bytes=scale * stored,
        bypass_bytes=scale * passed,
        traffic=moved,
    )


def _touched(run, blocks: int, counted: int) -> tuple[Traffic | None, float]:
    """What has to move between DRAM and the chip, and the wavefronts of all requests."""
    tally = run.tally
    if tally.footprint is not None:
        return tally.footprint.traffic(
            blocks if counted < blocks else 0
        ), tally.footprint.wavefronts
    if not tally.trace_cut:
        found = Footprint(run.space)
        for access in [*tally.trace, *tally.boxes]:
            found.add(access)
        return found.traffic(), found.wavefronts
    requests = sum(
        counts.get(f"global_{kind}_requests", 0)
        for counts in tally.counts.values()
        if "cp_async_instructions" not in counts
        for kind in ("load", "store", "atomic")
    )
    return None, requests  # one wavefront each at least


def executed(run):
    """(instruction, warps that executed it) of all that a launch ran."""
    for code in run.prepared.codes.values():
        for n, block in enumerate(code.graph.blocks):
            warps, _ = run.tally.block_warps.get((id(code), n), (0, 0))
            if warps:
                for i in code.function.instructions[block.start : block.end]:
                    yield i, warps


def kind_of(i: Instruction) -> str:
    """`fp32`, `special`, `tensor`, or empty for what is none of them."""
    return _kind(i.opcode, i.modifiers)


@lru_cache(maxsize=4096)
def _kind(opcode: str, modifiers: tuple[str, ...]) -> str:
    if opcode in ("mma", "wmma", "wgmma"):
        return TENSOR if opcode == "mma" or {"mma", "mma_async"}.intersection(modifiers) else ""
    last = modifiers[-1] if modifiers else ""
    if opcode in _SPECIAL and last in ("f32", "f16", "f16x2", "bf16", "bf16x2"):
        return SPECIAL
    return FP32 if opcode in _FP32 and last == "f32" else ""


def issues(i: Instruction) -> int:
    """The instructions that one of PTX surely becomes: 0 where it may vanish into another.

    Addresses, loop counters and moves may; loads and stores, arithmetic on floats, products of
    tensor cores and what warps do together do not.
    """
    if i.opcode in _MEMORY:
        if i.space in ("param", "const", "local") or i.predicated_off:
            return 0
        return 1 if i.plan is None else len(i.plan)
    if i.opcode == "cp":
        return int("async" in i.modifiers and not {"commit_group", "wait_group", "wait_all"}
                   & set(i.modifiers))  # fmt: skip
    if i.opcode in _ELSE:
        return int("warp" not in i.modifiers)
    return int(bool(kind_of(i)))


def _numbers(i: Instruction) -> str:
    """The kind of numbers that an `mma` multiplies, as `Gpu.tensor` calls it."""
    types = [m for m in i.modifiers if m in _KINDS or m in ("f32", "s32")]
    kinds = [_KINDS[m] for m in types if m in _KINDS]
    kind = kinds[0] if kinds else "fp16"
    # mma...d.a.b.c: the first type is the sum's. wmma names elements only if they are no halves.
    if types and types[0] == "f16":
        return f"{'fp8' if 'fp8' in kinds else 'fp16'}, fp16 sum"
    if i.opcode == "wmma":
        return kind
    return _KINDS.get(types[1], "fp16") if len(types) > 1 else kind


def _past_l1(run) -> int:
    """Sectors of loads and copies that pass by L1."""
    serials = [
        i.serial
        for i, _ in executed(run)
        if i.opcode in ("cp", "ld") and {"cg", "cv", "volatile"}.intersection(i.modifiers)
    ]
    counts = run.tally.counts
    return sum(
        counts[serial].get("global_load_sectors", 0) for serial in serials if serial in counts
    )


def flops_of(i) -> int:
    """Floating-point operations of a thread, or of a warp for mma (2·m·n·k)."""
    if kind_of(i) == TENSOR:
        for m in i.modifiers:
            shape = _MMA.fullmatch(m)
            if shape:
                x, y, z = map(int, shape.groups())
                return 2 * x * y * z // (_GROUP_WARPS if i.opcode == "wgmma" else 1)
        return 0
    if i.opcode in ("fma", "fms", "fnma", "add", "sub", "mul", "mad"):
        op = operation(i.opcode, i.modifiers)
        return op.flops if op is not None else 0
    return 0
