"""What one warp of a FlashAttention kernel did: tiles copied, waited for and multiplied, in order.

It is read from the trace of a small launch: which array a copy reads says whose tile it is, where
the tile lies in shared memory says what a later `ldmatrix` reads, and what the second operand of an
`mma` was loaded from says which product it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from helpers.simulator.observe.instruction_trace import Issued
from helpers.simulator.observe.report import Report

from ..events import block_place

_CHUNK = 16  # bytes that a lane copies
_MMA = 16 * 8 * 16  # products of an m16n8k16
_PRODUCTS = {"K": "S", "V": "O"}
# What the assembler leaves out: PTX moves values between registers around an `mma`.
_LEFT_OUT = "mov."


class CopiedTile(NamedTuple):
    """Rows of Q, K or V that a block works on at a time; of K and V there are several."""

    array: str
    number: int

    @property
    def name(self) -> str:
        """For `Canvas.text`: K with a lowered 1; Q alone."""
        return self.array if self.array == "Q" else f"{self.array}_{self.number}"


class Copy(NamedTuple):
    """A warp's part of the copy of a tile. Instructions are told by their numbers.

    Attributes:
        tile: what is copied.
        first, last: its first and its last `cp.async`.
        wait: the first wait behind which it is there; None if there is none.
        read: the warp's first `ldmatrix` of the tile; None if there is none.
    """

    tile: CopiedTile
    first: int
    last: int
    wait: int | None
    read: int | None


class Stretch(NamedTuple):
    """Instructions first ≤ i < end that belong together.

    `kind` is "copy" (cp.async), "S" (S = Q Kᵀ), "softmax", "O" (O += P V), or "wait", with commits
    and barriers. `tile` is the tile of K or V whose turn it is.
    """

    kind: str
    tile: CopiedTile | None
    first: int
    end: int


class CopyStory(NamedTuple):
    """A warp from its first copy to its last product.

    Attributes:
        warp: its number in the block.
        rows: of Q and S that it works on.
        issued: its instructions.
        copies: in the order in which they were started.
        stretches: without gaps, from the first copy on.
        waits: wait → the copies that are there behind it and were not before; maybe none.
        barriers: the barriers of the block.
    """

    warp: int
    rows: int
    issued: list[Issued]
    copies: list[Copy]
    stretches: list[Stretch]
    waits: dict[int, list[Copy]]
    barriers: list[int]

    @property
    def end(self) -> int:
        """The number behind its last product."""
        return self.stretches[-1].end

    def work(self, first: int, end: int) -> int:
        """Instructions first ≤ i < end that multiply or belong to the softmax."""
        parts = [s for s in self.stretches if s.kind in ("S", "softmax", "O")]
        spans = ((max(first, s.first), min(end, s.end)) for s in parts)
        return sum(self.length(start, stop) for start, stop in spans)

    def length(self, first: int, end: int) -> int:
        """Instructions first ≤ i < end, without moves between registers."""
        return sum(counts(one) for one in self.issued[first : max(first, end)])


def counts(one: Issued) -> bool:
    """Whether an instruction is one for the machine too, as far as PTX shows."""
    return not one.name.startswith(_LEFT_OUT)


def copy_story(report: Report, d: int, b_c: int, block: int = 0, warp: int = 0) -> CopyStory:
    """Read what a warp did.

    Args:
        report: of a counted run for a single head, [1, 1, n, d].
        d: elements in a row.
        b_c: rows in a tile of K or V.
        block, warp: whose story it is.

    Raises:
        ValueError: the warp copies or multiplies no tile of K or V.
        SimulatorError: the report has no trace.
    """
    issued = report.issued(block_place(block), warp=warp)

    def tile_of(array: str, index: int) -> CopiedTile:
        return CopiedTile(array, 0 if array == "Q" else index // (d * b_c))

    reads = _tiles_read(report, block, warp, tile_of)
    copies, waits = _copies(issued, reads, tile_of)
    if not copies:
        raise ValueError(
            f"{report.entry} starts no copy of Q, K or V by cp.async: its warps load values "
            "themselves and wait for each one, so there is no copy to draw beside the work."
        )
    labels = _labels(issued, reads, tile_of)
    products = [n for n, label in enumerate(labels) if label and label[0] in ("S", "O")]
    if not products:
        raise ValueError(
            f"{report.entry} has no mma that multiplies a tile of K or V, so there is no work to "
            "draw beside its copies."
        )
    stretches = _stretches(labels, copies[0].first, products[-1] + 1)
    barriers = [one.number for one in issued[: products[-1]] if one.kind == "barrier"]
    of_first = ("S", CopiedTile("K", 0))
    scores = sum(
        one.kind == "mma" for one, label in zip(issued, labels, strict=True) if label == of_first
    )
    rows = scores * _MMA // (b_c * d)
    return CopyStory(warp, rows, issued, copies, stretches, waits, barriers)


TileOf = Callable[[str, int], CopiedTile]


def _tiles_read(report: Report, block: int, warp: int, tile_of: TileOf) -> dict[int, CopiedTile]:
    """Which tile each read of shared memory by a warp is of, by the access's order."""
    tiles: list[CopiedTile | None] = [None]
    held = np.zeros(report.shared_bytes // _CHUNK + 1, np.intp)  # the tile of each chunk
    found, source = {}, None
    for a in report.of_block(block_place(block)):
        if a.space == "global":
            source = a
        elif a.kind == "copy":
            tile = None
            if source is not None and source.line == a.line and source.active.any():
                tile = tile_of(source.array, int(source.indices[source.active].min()))
            tiles += [tile] if tile not in tiles else []
            held[a.addresses[a.active] // _CHUNK] = tiles.index(tile)
            source = None
        elif a.kind == "load" and a.active[warp].any():
            first = int(a.addresses[warp][a.active[warp]][0])
            tile = tiles[held[first // _CHUNK]]
            if tile is not None:
                found[a.order] = tile
    return found


def _copies(
    issued: Iterable[Issued], reads: dict[int, CopiedTile], tile_of: TileOf
) -> tuple[list[Copy], dict[int, list[Copy]]]:
    """The copies, each group's tiles apart, and which wait each is behind."""
    started: dict[tuple[int, CopiedTile], Copy] = {}
    waits: dict[int, list[Copy]] = {}
    groups = 0
    for one in issued:
        if one.kind == "copy" and one.accesses[0].space == "global":
            source = one.accesses[0]
            tile = tile_of(source.array, int(source.indices[source.active].min()))
            before = started.get((groups, tile))
            first = before.first if before else one.number
            started[groups, tile] = Copy(tile, first, one.number, None, None)
        elif one.kind == "commit":
            groups += 1
        elif one.kind == "wait":
            done = groups + 1 if one.name.endswith("wait_all") else groups - one.left
            there = [key for key, c in started.items() if key[0] < done and c.wait is None]
            for key in there:
                started[key] = started[key]._replace(wait=one.number)
            waits[one.number] = [started[key] for key in there]
        elif one.kind == "load":
            tile = next((reads[a.order] for a in one.accesses if a.order in reads), None)
            # A place that a later copy is under way to still holds what an earlier one brought.
            mine = [k for k, c in started.items() if k[1] == tile and c.read is None]
            for key in mine[-1:]:
                started[key] = started[key]._replace(read=one.number)
    copies = sorted(started.values(), key=lambda copy: copy.first)
    by_wait = {n: [c for c in copies if c.wait == n] for n in waits}
    return copies, by_wait


Label = tuple[str, CopiedTile | None]


def _labels(
    issued: Sequence[Issued], reads: dict[int, CopiedTile], tile_of: TileOf
) -> list[Label | None]:
    """What each instruction is part of; None for addresses, moves and loops."""
    read = {one.number: reads[a.order] for one in issued for a in one.accesses if a.order in reads}
    labels: list[Label | None] = []
    turn: CopiedTile | None = None  # of the last product
    for one in issued:
        label: Label | None = None
        if one.kind == "copy":
            source = one.accesses[0]
            label = ("copy", tile_of(source.array, int(source.indices[source.active].min())))
        elif one.kind in ("commit", "wait", "barrier"):
            label = ("wait", None)
        elif one.kind == "mma":
            turn = next((read[n] for n in one.operands[1] if n in read), turn)
            if turn is not None and turn.array in _PRODUCTS:
                label = (_PRODUCTS[turn.array], turn)
        elif one.kind == "load":
            tile = read.get(one.number)
            if tile is not None and tile.array in _PRODUCTS:
                label = (_PRODUCTS[tile.array], tile)
        elif one.kind == "math" and not one.name.startswith("cvt.") and turn is not None:
            label = ("softmax", CopiedTile("S", turn.number))
        labels.append(label)
    return labels


def _stretches(labels: Sequence[Label | None], first: int, end: int) -> list[Stretch]:
    """Runs of one label; what has none leads up to what follows it."""
    found: list[Stretch] = []
    start = first
    for n in range(first, end):
        label = labels[n]
        if label is None:
            continue
        if found and (found[-1].kind, found[-1].tile) == label:
            found[-1] = found[-1]._replace(end=n + 1)
        else:
            found.append(Stretch(*label, start, n + 1))
        start = n + 1
    return found
