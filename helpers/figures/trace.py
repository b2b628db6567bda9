"""What figures ask of a kernel's run: who wrote which element, and what a warp touched."""

from __future__ import annotations

import weakref
from typing import NamedTuple

SECTOR_BYTES = 32
_tables: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class Owner(NamedTuple):
    """The thread behind an element: block and thread as (x, y, z), warp and lane in the block."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    warp: int
    lane: int


class Access(NamedTuple):
    """What a warp touched in one array with one instruction.

    `elements` holds one entry a lane: (lane, flat index, byte address); `bytes` is how much each
    lane moved.
    """

    array: str
    kind: str
    line: int
    bytes: int
    elements: tuple[tuple[int, int, int], ...]

    @property
    def indices(self) -> list[int]:
        """The different elements, in order."""
        return sorted({index for _, index, _ in self.elements})

    @property
    def sectors(self) -> list[int]:
        """The 32-byte sectors touched, as byte address divided by 32, in order."""
        return sorted(
            {
                sector
                for _, _, address in self.elements
                for sector in range(
                    address // SECTOR_BYTES, (address + self.bytes - 1) // SECTOR_BYTES + 1
                )
            }
        )


def owners(report, array: str) -> dict[int, Owner]:
    """Which thread stored each element of `array`, by flat index; of several the last one.

    Raises:
        ValueError: the kernel stored nothing in an array of this name.
    """
    found = {
        a.index: Owner(a.block, a.thread, a.warp, a.lane)
        for a in _table(report)
        if a.kind == "store" and a.array == array
    }
    if not found:
        raise ValueError(f"{report.entry} stored nothing in {array}.")
    return found


def warp_accesses(
    report,
    block: tuple[int, int, int] | tuple[int, int] | int = 0,
    warp: int = 0,
    line: int | None = None,
) -> list[Access]:
    """What one warp of one block touched, instruction by instruction.

    Raises:
        ValueError: that warp made no access (at that line).
    """
    block = block if isinstance(block, tuple) else (block,)
    block = (*block, 0, 0)[:3]
    found: dict[tuple, list] = {}
    for a in _table(report):
        if a.block == block and a.warp == warp and line in (None, a.line):
            key = (a.order, a.array, a.kind, a.line, a.bytes)
            found.setdefault(key, []).append((a.lane, a.index, a.address))
    if not found:
        where = "" if line is None else f" at line {line}"
        raise ValueError(f"Warp {warp} of block {block} of {report.entry} made no access{where}.")
    return [Access(*key[1:], tuple(found[key])) for key in sorted(found)]


def _table(report) -> list:
    """The report's global accesses, kept as long as the report, since a slider asks repeatedly."""
    if report not in _tables:
        _tables[report] = report.accesses(space="global")
    return _tables[report]
