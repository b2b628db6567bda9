"""What the sanitizer says: findings, each with its lines, threads and a mend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..compile.declared_elements import element_size, named_element
from ..limits import LANES
from ..machine.faults import plain_name
from ..ptx.ptxas import SHARED_BASE


@dataclass(frozen=True)
class Finding:
    """One fault that did not stop the launch.

    `kind`: race, uninitialised, barrier or async. `lines`: the source lines involved, the earlier
    access first. `threads`: ((block, thread), …) as (x, y, z), in the same order.
    """

    kind: str
    lines: tuple[int, ...]
    threads: tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...]
    message: str

    def __str__(self) -> str:
        return self.message


def _mover(i) -> str:
    """What moves or reads bytes by itself, as it is called."""
    if i.opcode != "cp":
        return i.opcode
    parts = [part for part in ("bulk", "tensor") if part in i.modifiers]
    return ".".join(["cp.async", *parts])


class Findings:
    """The half of `Sanitizer` that puts faults into words, each pair of instructions once."""

    def __init__(self, run):
        self.run = run
        self.findings: list[Finding] = []
        self._seen: set = set()
        self.has_mbarriers = self.by_phases = False  # and whether copies arrive at them
        self._instructions = {
            i.serial: i
            for function in run.prepared.module.functions.values()
            for i in function.instructions
        }

    def _place(self, S, number: int):
        block, thread = divmod(int(number), self.threads)
        gx, gy, _ = S.layout.grid
        z, rest = divmod(block, gx * gy)
        y, x = divmod(rest, gx)
        return (x, y, z), S.layout.thread_at(thread)

    def _word(self, S, region, granule: int) -> str:
        if region is not None:
            size = min(region.dtype.itemsize, 4)
            return f"{region.name}[{granule * size // region.dtype.itemsize}]"
        byte = granule * self.granule % S.shared.pitch + SHARED_BASE
        before = [place for place in self.run.shared_variables if place[0] <= byte]
        if not before:
            return f"byte {byte - SHARED_BASE} of shared memory"
        start, variable = max(reversed(before), key=lambda place: place[0])
        name = plain_name(variable.name)
        compiled = self.run.prepared.compiled
        unit = element_size(name, "shared", compiled.source)
        if unit is None:  # a type of the source's own, or of a template: as it is aligned
            unit = variable.align if 4 < variable.align <= 8 else 4
        return named_element(name, (byte - start) // unit, compiled.source, compiled.options)

    @staticmethod
    def _key(kind: str, first, second) -> tuple:
        """A finding is told once for two instructions; for products, unrolled, for two lines."""
        if any(i is not None and i.opcode == "wgmma" for i in (first, second)):
            return (kind, first and first.line, second.line)
        return (kind, first and first.serial, second.serial)

    def _add(self, kind, first, second, places, message) -> None:
        key = self._key(kind, first, second)
        if key in self._seen:
            return
        self._seen.add(key)
        lines = (second.line,) if first is None else (first.line, second.line)
        self.findings.append(Finding(kind, lines, tuple(places), message))

    def _race(self, S, i, a, bad, region, at, thread, does, did) -> None:
        where = int(np.argmax(bad))
        granule = int(a.granule[where])
        earlier = i if at is None else self._instructions[int(at[granule])]
        if self._key("race", earlier, i) in self._seen:
            return
        other = int(thread[where])
        mine = int(a.first[where]) if int(a.first[where]) != other else int(a.last[where])
        places = [self._place(S, other), self._place(S, mine)]
        word = self._word(S, region, granule)
        line = f"line {i.line}" if i.line != earlier.line else f"the same line {i.line}"
        # many threads read and write one word in one line: they count in it
        counter = does == "writes" and did == "read" and i.line == earlier.line
        counter = counter and int(np.count_nonzero(a.granule == granule)) > 1
        if places[0][0] != places[1][0]:
            mend = "blocks run in no order: " + self._between_blocks(counter)
        elif places[0][1] == places[1][1]:
            mend = "let one thread do it"
        elif at is None:
            mend = "let one thread write, or give each thread a word of its own"
        elif did == "initialised":
            mend = "put __syncthreads() behind the initialisation, before anybody uses it"
        elif counter:
            mend = "use an atomic, such as atomicAdd: each thread reads, changes and writes it"
        elif other // LANES == mine // LANES and self.known is not None:
            mend = "put __syncwarp() or __syncthreads() between the two"
        elif S.layout.warps == 1 and S.mask is not None:
            mend = "put __syncwarp() between the two: both are in one warp, in a part of an if"
        elif self.has_mbarriers:
            mend = (
                "let the other wait for a phase of an mbarrier at which the one arrives behind its "
                "access, or put __syncthreads() between the two"
            )
        elif did == "wrote" and does == "writes" and i.line == earlier.line:
            mend = "let each thread write words of its own, or put __syncthreads() between the two"
        else:
            mend = "put __syncthreads() between the two, where all threads of the block pass it"
        in_warp = places[0][0] == places[1][0] and other // LANES == mine // LANES
        parted = in_warp and at is not None and other != mine
        alone = ", which lanes of one warp need as well" if parted else ""
        self._add(
            "race", earlier, i, places,
            f"{self.run.entry}: race on {word}: thread {places[0][1]} of block {places[0][0]} "
            f"{did} it in line {earlier.line}, and thread {places[1][1]} of block "
            f"{places[1][0]} {does} it in {line} with no barrier between{alone}; {mend}.",
        )  # fmt: skip

    def _between_blocks(self, counter: bool) -> str:
        if self.has_fences:
            return (
                "let the one publish what it wrote by __threadfence() and then an atomic, and the "
                "other look at the same word by an atomic before it comes here"
            )
        if counter:
            return "use an atomic, such as atomicAdd, or give each block words of its own"
        return "give each block words of its own, use an atomic, or split the work into two kernels"

    def _uninitialised(self, S, i, a, where: int) -> None:
        place = self._place(S, int(a.first[where]))
        word = self._word(S, None, int(a.granule[where]))
        self._add(
            "uninitialised", None, i, [place],
            f"{self.run.entry}, line {i.line}: thread {place[1]} of block {place[0]} reads "
            f"{word}, which nothing has written: fill it first, the edges too.",
        )  # fmt: skip

    def _not_named(self, S, i, place) -> None:
        self._add(
            "barrier", None, i, [place],
            f"{self.run.entry}, line {i.line}: thread {place[1]} of block {place[0]} is not among "
            "the lanes that the mask of its own instruction names: name every lane that gets "
            "there, 0xffffffff if it is the whole warp.",
        )  # fmt: skip

    def _not_there(self, S, i, place, lanes: list[int]) -> None:
        runs = lanes == list(range(lanes[0], lanes[-1] + 1))
        told = f"lanes {lanes[0]} to {lanes[-1]}" if runs else "lanes " + ", ".join(map(str, lanes))
        told = told if len(lanes) > 1 else f"lane {lanes[0]}"
        self._add(
            "barrier", None, i, [place],
            f"{self.run.entry}, line {i.line}: the warp of thread {place[1]} of block {place[0]} "
            f"reads {told} by a shuffle in which {'they do' if len(lanes) > 1 else 'it does'} not "
            "take part: what comes is undefined. Let all lanes of the warp run the shuffle, and "
            "put what only some are to do with its result under the if.",
        )  # fmt: skip

    def _left_behind(self, S, i, thread: int) -> None:
        place, copy = self._place(S, thread), _mover(i)
        self._add(
            "async", None, i, [place],
            f"{self.run.entry}, line {i.line}: block {place[0]} ends while the {copy} of thread "
            f"{place[1]} may still read its shared memory: commit the group, and wait for it "
            "(cp.async.bulk.wait_group.read 0) before the thread ends.",
        )  # fmt: skip

    def _barrier_not_fenced(self, S, i, made: int, maker: int, thread: int) -> None:
        earlier = self._instructions[made]
        places = [self._place(S, maker), self._place(S, thread)]
        self._add(
            "async", earlier, i, places,
            f"{self.run.entry}, line {i.line}: a {_mover(i)} arrives at the mbarrier that thread "
            f"{places[0][1]} of block {places[0][0]} initialised in line {earlier.line}, and looks "
            "for it by another way, the async proxy: put fence.mbarrier_init or fence.proxy.async "
            "behind the initialisation, and then a barrier.",
        )  # fmt: skip

    def _not_fenced(self, S, i, a, where: int, writer) -> None:
        earlier = self._instructions[int(a.shadow.write_at[a.granule[where]])]
        places = [self._place(S, int(writer[where])), self._place(S, int(a.first[where]))]
        word, reads = self._word(S, None, int(a.granule[where])), _mover(i)
        self._add(
            "async", earlier, i, places,
            f"{self.run.entry}, line {i.line}: {reads} reads {word}, which thread {places[0][1]} "
            f"of block {places[0][0]} wrote in line {earlier.line}, and reaches shared memory by "
            "another way, the async proxy: let every thread that writes there pass "
            "fence.proxy.async behind its writes, and then a barrier.",
        )  # fmt: skip

    def _overwritten(self, S, i, a, where: int, product, reader: int, waited: bool) -> None:
        places = [self._place(S, int(reader)), self._place(S, int(a.first[where]))]
        word = self._word(S, None, int(a.granule[where]))
        mend = (
            "let a thread of the warpgroup arrive at an mbarrier behind wgmma.wait_group, and wait "
            "for it here first, or put a barrier between the two."
            if waited
            else "wait for its group (wgmma.wait_group) first."
        )
        self._add(
            "async", product, i, places,
            f"{self.run.entry}, line {i.line}: thread {places[1][1]} of block {places[1][0]} "
            f"writes {word}, which the wgmma of line {product.line} may still read: {mend}",
        )  # fmt: skip

    def _amiss(self, S, fault, thread: int) -> None:
        """Registers of a product that are not fenced, or not waited for."""
        number = int(S.layout.flat(self.number)[thread])
        place, product, other = self._place(S, number), fault.product, fault.other
        head = f"{self.run.entry}, line {product.line}: wgmma takes registers"
        if fault.kind == "fence" and other is not None:
            text = (
                f"{head} that line {other.line} writes with no wgmma.fence between: put one "
                "behind all that writes registers of its operands. If one stands there, the "
                "compiler has moved the writes past it: name the registers in its asm, as "
                '"+f"(x).'
            )
        elif fault.kind == "fence":
            text = f"{head} with no wgmma.fence before: put one in front of the first product."
        else:
            does = "reads" if fault.kind == "read" else "writes"
            text = (
                f"{self.run.entry}, line {other.line}: it {does} registers of the wgmma of line "
                f"{product.line}, which may still be under way: wait for its group first "
                "(wgmma.commit_group, then wgmma.wait_group)."
            )
        earlier, later = (other, product) if fault.kind == "fence" else (product, other)
        self._add("async", earlier, later, [place], text)

    def _not_waited(self, S, i, a, copies, copier, does, fills=True) -> None:
        where = int(np.argmax(copies))
        at = a.shadow.write_at if fills else a.shadow.read_at
        earlier = self._instructions[int(at[a.granule[where]])]
        places = [self._place(S, int(copier[where])), self._place(S, int(a.first[where]))]
        word = self._word(S, None, int(a.granule[where]))
        copy = _mover(earlier)
        wait = copy.removesuffix(".tensor") + (".wait_group" if fills else ".wait_group.read")
        mend = (
            "let every thread that uses it wait first for the phase of the mbarrier that the copy "
            "arrives at."
            if fills and self.by_phases
            else f"commit the group, wait for it ({wait}), then let the block meet at a barrier."
        )
        self._add(
            "async", earlier, i, places,
            f"{self.run.entry}, line {i.line}: thread {places[1][1]} of block {places[1][0]} "
            f"{does} {word} while the {copy} of line {earlier.line} that "
            f"{'fills' if fills else 'reads'} it may still be under way: {mend}",
        )  # fmt: skip
