"""What an access to shared memory costs, bank by bank, and why: numbers and words, no picture.

Shared memory has 32 banks; four-byte word number w lies in bank w mod 32. Lanes go in phases (all
32 for up to 4 bytes a lane, 16 for 8 bytes, 8 for 16 bytes), and a phase takes as many wavefronts
as the busiest bank has different words. The rules are those of
`helpers.simulator.observe.counters`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from helpers.panels.numbers import listed
from helpers.simulator.limits import BANKS
from helpers.simulator.observe.access_trace import BlockAccess
from helpers.simulator.observe.counters import (
    bank_loads,
    lane_phases,
    lane_words,
    shared_wavefronts,
)
from helpers.simulator.observe.report import Report

from .canvas import counted
from .events import LANES, WORD, WarpAccess, of_warp, warp_access


class BankVerdict(NamedTuple):
    """The cost of one access of a warp.

    Attributes:
        wavefronts, ideal: what it takes, and what it would take without bank conflicts.
        words: int64 (32, n), the words that each lane touches; a word's bank is its number mod 32.
        phases: intp (32,), the phase of each lane, -1 for lanes that do not take part.
        loads: intp (4, 32), different words by phase and bank.
        reasons: in words, why; one sentence each.
    """

    wavefronts: int
    ideal: int
    words: np.ndarray
    phases: np.ndarray
    loads: np.ndarray
    reasons: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Wavefronts, actual and ideal, in a few words."""
        return f"{counted(self.wavefronts, 'wavefront')}, ideal {self.ideal}"

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond the ideal, as Nsight Compute counts bank conflicts."""
        return self.wavefronts - self.ideal


def judge(access: WarpAccess) -> BankVerdict:
    """The cost of an access to shared memory, and why.

    Raises:
        SimulatorError: the width is not 1, 2, 4, 8 or 16 bytes.
    """
    a, load = access, access.is_load
    wavefronts, ideal = shared_wavefronts(a.addresses, a.bytes, a.active, load=load)
    words = lane_words(a.addresses, a.bytes)
    phases = lane_phases(a.addresses, a.bytes, a.active, load=load)
    loads = bank_loads(a.addresses, a.bytes, a.active, load=load)
    verdict = BankVerdict(int(wavefronts), int(ideal), words, phases, loads, ())
    return verdict._replace(reasons=tuple(_reasons(access, verdict)))


def issued(
    report: Report,
    array: str,
    *,
    step: int = 0,
    line: int | None = None,
    trace: Sequence[BlockAccess] | None = None,
) -> WarpAccess:
    """A shared load of block 0's first warp as the hardware executes it.

    The assembler joins loads of neighbouring words into one of 8 or 16 bytes where it knows that
    they are aligned; the trace holds the loads as the compiler wrote them. They are put together
    here if the counters of the line show fewer instructions than loads.

    Args:
        report, array, step, line: as for `events.warp_access`, of loads.
        trace: what block 0 did, where it is at hand: `list(report.of_block())`.

    Raises:
        ValueError: there is no such load.
    """
    first = [
        of_warp(a, 0)
        for a in (report.of_block(warp=0, space="shared") if trace is None else trace)
        if a.space == "shared" and a.active[0].any()
    ]
    loads = [a for a in first if a.kind == "load" and a.array == array]
    fitting = [a for a in loads if line in (None, a.line)]
    if not 0 <= step < len(fitting):  # which says so
        return warp_access(report, array, line=line, kind="load", space="shared", step=step)
    chosen = fitting[step]
    if chosen.bytes != WORD:
        return chosen
    written = report.warp_accesses(chosen.line, kind="load", space="shared")
    if report.by_line[chosen.line]["shared_load_instructions"] >= written:
        return chosen
    stores = [a.order for a in first if a.kind == "store"]
    same = [
        a
        for a in loads
        if a.line == chosen.line
        and a.bytes == WORD
        and (a.active == chosen.active).all()
        and not any(min(a.order, chosen.order) < s < max(a.order, chosen.order) for s in stores)
    ]
    joined = (_window(chosen, same, width, least) for width, least in ((16, 3), (8, 2)))
    return next(filter(None, joined), chosen)


def _window(
    chosen: WarpAccess, loads: list[WarpAccess], width: int, least: int
) -> WarpAccess | None:
    """The load of `width` bytes that serves `chosen`, if enough words of its window are loaded."""
    on = chosen.active
    start = chosen.addresses & -width
    offset = chosen.addresses - start
    if not on.any() or (offset[on] != offset[on][0]).any():
        return None
    parts = {
        int((a.addresses - start)[on][0])
        for a in loads
        if ((a.addresses - start)[on] == (a.addresses - start)[on][0]).all()
    }
    if sum(0 <= part < width for part in parts) < least:
        return None
    indices = chosen.indices - (offset // WORD).astype(np.intp)
    return chosen._replace(
        bytes=width, addresses=np.where(on, start, 0), indices=np.where(on, indices, 0)
    )


# ---------------------------------------------------------------- words


def _reasons(access: WarpAccess, v: BankVerdict) -> list[str]:
    if not access.active.any():
        return ["No lane takes part."]
    about = (_of_phases, _of_sharing, _of_banks, _of_stride)
    return [sentence for say in about if (sentence := say(access, v))]


def _of_phases(access: WarpAccess, v: BankVerdict) -> str:
    if access.bytes <= WORD:
        return f"{access.bytes} bytes a lane: all lanes go in one phase."
    count = int(v.phases.max()) + 1
    lanes = LANES * WORD // access.bytes
    merged = _partner(access) if access.is_load else None
    if merged is not None:
        return (
            f"{access.bytes} bytes a lane would be {LANES // lanes} phases of {lanes} lanes; but "
            f"lanes n and n ^ {merged} read the same address throughout, so the load takes its "
            f"phases two by two: {v.ideal} of {2 * lanes} lanes."
        )
    if count == 1 or v.ideal == 1:
        return f"{access.bytes} bytes a lane: {lanes} lanes a phase; one phase has lanes."
    return f"{access.bytes} bytes a lane: {lanes} lanes a phase, {v.ideal} phases."


def _partner(access: WarpAccess) -> int | None:
    """1 or 2 where every active pair of lanes n, n ^ it reads equal addresses."""
    lanes = np.arange(LANES)
    for step in (1, 2):
        both = access.active & access.active[lanes ^ step]
        if (~both | (access.addresses == access.addresses[lanes ^ step])).all():
            return step
    return None


def _of_sharing(access: WarpAccess, v: BankVerdict) -> str:
    counts = []  # (lanes, different places) of each phase
    for phase in range(int(v.phases.max()) + 1):
        mine = v.words[v.phases == phase][:, 0]
        counts.append((len(mine), len(np.unique(mine))))
    if all(lanes == places for lanes, places in counts):
        return ""
    lanes, places = max(counts, key=lambda pair: pair[0] - pair[1])
    verb = "read" if access.is_load else "store to"
    of = " of a phase" if len(counts) > 1 else ""
    what = f"{lanes} lanes{of} {verb} {places} different places"
    if places == 1:
        what = f"All {lanes} lanes{of} {verb} the same place"
    if access.is_load:
        who = "they" if places == 1 else "lanes with the same one"
        return f"{what}: {who} share it (broadcast)."
    return f"{what}: each is stored once, and the value of one of its lanes stays."


def _of_banks(access: WarpAccess, v: BankVerdict) -> str:
    busiest = v.loads.max(axis=-1)
    used = [int(n) for n in busiest if n]
    if v.conflicts == 0:
        each = "No bank has two different words" + (" in any phase" if len(used) > 1 else "")
        return f"{each}: {counted(v.wavefronts, 'wavefront')}, as few as possible."
    phase = int(busiest.argmax())
    bank = int(v.loads[phase].argmax())
    worst = int(busiest.max())
    text = f"Bank {bank} is asked for {worst} different words{_askers(v, phase, bank)}"
    if len(used) == 1:
        return f"{text}: {v.wavefronts} wavefronts instead of 1."
    sums = f"{len(used)} × {used[0]}" if len(set(used)) == 1 else " + ".join(map(str, used))
    return (
        f"{text} in phase {phase + 1}; the phases take {sums} = {v.wavefronts} wavefronts "
        f"instead of {v.ideal}."
    )


def _askers(v: BankVerdict, phase: int, bank: int) -> str:
    """Who asks for the words of a bank: the first lane of each, as long as they are few."""
    first: dict[int, int] = {}
    for lane in np.flatnonzero(v.phases == phase):
        for word in v.words[lane]:
            if word % BANKS == bank:
                first.setdefault(int(word), int(lane))
    return f" by lanes {listed([*map(str, first.values())])}" if 2 <= len(first) <= 4 else ""


def _of_stride(access: WarpAccess, v: BankVerdict) -> str:
    """The gcd rule, where the places of a phase lie evenly apart."""
    unit = max(access.bytes, WORD)
    banks = BANKS * WORD // unit
    shapes = set()
    for phase in range(int(v.phases.max()) + 1):
        places = np.unique(access.addresses[v.phases == phase] // unit)
        steps = np.unique(np.diff(places))
        if len(places) < 3 or len(steps) != 1:
            return ""
        shapes.add((int(steps[0]), len(places)))
    if len(shapes) != 1:
        return ""
    ((stride, count),) = shapes
    shared = math.gcd(stride, banks)
    groups = min(count, banks // shared)
    each = -(-count // (banks // shared))
    what, where, one = "words", "banks", "bank"
    if unit > WORD:
        what, where = f"pieces of {unit} bytes", f"groups of {unit // WORD} banks"
        one = f"group of {unit // WORD} banks"
    per_phase = "" if access.bytes <= WORD else " in a phase"
    text = (
        f"{count} {what}{per_phase}, {stride} apart: gcd({stride}, {banks}) = {shared}, so they "
        f"fall into {groups} {where if groups > 1 else one}"
    )
    if each == 1:
        return f"{text}, one in each."
    return f"{text}, {'up to ' * (count % (banks // shared) > 0)}{each} in each."
