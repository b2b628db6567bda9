"""Which sectors of global memory a launch touches: what DRAM has to move at least."""

from __future__ import annotations

import numpy as np

from ..bounds.demand import Traffic
from ..limits import SECTOR_BYTES
from ..machine.memory import Region

_SHIFT = SECTOR_BYTES.bit_length() - 1
_LINE_SHIFT = 7  # 128 bytes


class _Touched:
    """The sectors of one region: those read before they were written, and those written."""

    def __init__(self, region: Region):
        self.first = region.start >> _SHIFT
        self.sectors = (region.start + region.nbytes - 1 >> _SHIFT) - self.first + 1
        self.read = np.zeros(self.sectors, np.bool_)
        self.written = np.zeros(self.sectors, np.bool_)
        self.numbers: list[tuple[int, int]] = []  # read and written, after each batch

    def add(self, sectors: np.ndarray, kind: str) -> None:
        at = sectors - self.first
        if kind in ("load", "atomic"):
            self.read[at] |= ~self.written[at]
        if kind in ("store", "atomic"):
            self.written[at] = True

    def note(self) -> None:
        """Keep how many sectors there are so far."""
        self.numbers.append((np.count_nonzero(self.read), np.count_nonzero(self.written)))

    def grown(self, blocks: int) -> tuple[float, float]:
        """What so many blocks would touch, if those to come add as much as the last one did."""
        numbers = self.numbers or [(0, 0)]
        before = numbers[-2] if len(numbers) > 1 else (0, 0)
        more = blocks - len(numbers)
        return tuple(
            min(self.sectors, last + more * (last - one))
            for last, one in zip(numbers[-1], before, strict=True)
        )


class Footprint:
    """What the accesses of a launch touch, added one after the other.

    Args:
        space: the launch's address space.
    """

    def __init__(self, space):
        self._space = space
        self._touched: dict[int, _Touched] = {}
        self._layout = None
        self._batches = 0
        self.lines = 0  # of 128 bytes that each request touches, added up

    def add(self, access) -> None:
        """Add one access, a `tally.Access`; those of a batch come together."""
        layout = access.layout
        if layout is not self._layout:
            self._close()
            self._layout = layout
            self._batches += 1
        addresses, lines = _addresses(access)
        if access.space != "global" or not addresses.size:
            return
        if access.instruction.opcode != "cp":  # cp.async goes another way
            lanes = access.lanes
            if access.active is not None:
                lanes = np.broadcast_arrays(lanes, access.active)[0]
            self.lines += layout.copies(lanes) * lines
        region = self._space.find(int(addresses[0]), int(addresses[0]) + 1)
        if region is None:
            return
        touched = self._touched.get(region.start)
        if touched is None:
            touched = self._touched[region.start] = _Touched(region)
            touched.numbers = [(0, 0)] * (self._batches - 1)
        end = region.start + region.nbytes
        inside = addresses[(addresses >= region.start) & (addresses < end)]
        touched.add(inside >> _SHIFT, access.kind)

    def _close(self) -> None:
        for one in self._touched.values():
            one.note()

    def traffic(self, sample_of: int = 0) -> Traffic:
        """Bytes to read and write at least; asked for once, when all is added.

        Args:
            sample_of: blocks of the grid, if only some ran, each in a batch of its own.
        """
        self._close()
        sizes = [
            one.grown(sample_of) if sample_of else one.numbers[-1] for one in self._touched.values()
        ]
        read, written = (SECTOR_BYTES * float(sum(size[n] for size in sizes)) for n in (0, 1))
        return Traffic(read, written, bool(sample_of))


def _addresses(access) -> tuple[np.ndarray, int]:
    """The addresses of an access's active lanes, and the lines that its warps touch, added up."""
    lanes, active = access.lanes, access.active
    if active is not None:
        lanes, active = np.broadcast_arrays(lanes, active)
    rows = lanes.reshape(-1, lanes.shape[-1])
    keys = rows >> _LINE_SHIFT
    if active is None:
        chosen = rows.reshape(-1)
    else:
        mask = active.reshape(rows.shape)
        chosen = rows[mask]
        first = keys[np.arange(len(keys)), mask.argmax(axis=-1)]
        keys = np.where(mask, keys, first[:, None])
    keys = np.sort(keys, axis=-1)
    lines = int(np.count_nonzero(keys[:, 1:] != keys[:, :-1])) + len(keys)
    if active is not None:
        lines -= int(np.count_nonzero(~mask.any(axis=-1)))
    return chosen, lines
