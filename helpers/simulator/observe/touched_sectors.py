"""Which sectors of global memory a launch touches: what DRAM has to move at least."""

from __future__ import annotations

import numpy as np

from ..bounds.demand import Traffic
from ..limits import BANKS, SECTOR_BYTES, WORD
from ..machine.memory import Region

_SHIFT = SECTOR_BYTES.bit_length() - 1
_WORD_SHIFT = WORD.bit_length() - 1


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
        self.wavefronts = 0  # of L1 that requests need at least, added up

    def add(self, access) -> None:
        """Add one access, a `tally.Access`; those of a batch come together."""
        layout = access.layout
        if layout is not self._layout:
            self._close()
            self._layout = layout
            self._batches += 1
        if access.space != "global":
            return
        addresses, wavefronts = _addresses(access)
        if not addresses.size:
            return
        if access.instruction.opcode != "cp":  # cp.async goes another way
            lanes = access.lanes
            if access.active is not None:
                lanes = np.broadcast_arrays(lanes, access.active)[0]
            self.wavefronts += layout.copies(lanes) * wavefronts
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
    """The addresses of an access's active lanes, and the wavefronts of its warps, added up."""
    lanes, active = access.lanes, access.active
    if not lanes.size:  # a box of TMA that lies outside of its array
        return lanes.reshape(-1), 0
    if active is not None:
        lanes, active = np.broadcast_arrays(lanes, active)
    rows = lanes.reshape(-1, lanes.shape[-1])
    if active is None:
        return rows.reshape(-1), int(global_wavefronts(rows).sum())
    mask = active.reshape(rows.shape)
    return rows[mask], int(global_wavefronts(rows, mask).sum())


def global_wavefronts(rows: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Wavefronts of L1 that requests of global memory take at least.

    A wavefront brings from each of the 32 banks one word of 4 bytes, whichever line it is in. So a
    request takes as many as there are different words in the fullest bank: an H200 loads with no
    more, and stores with no fewer.

    Args:
        rows: int64 (warps, lanes), addresses that are aligned to what a lane moves, so that of 8 or
            16 bytes the first word stands for the others.
        mask: bool of that shape, the active lanes; None where all are.

    Returns:
        int64 (warps,).
    """
    if mask is not None:
        some = mask.any(axis=-1)
        rows, mask = rows[some], mask[some]
        first = rows[np.arange(len(rows)), mask.argmax(axis=-1)]
        rows = np.where(mask, rows, first[:, None])
    words = np.sort(rows >> _WORD_SHIFT, axis=-1)
    new = np.ones(words.shape, np.bool_)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    places = words % BANKS + BANKS * np.arange(len(words))[:, None]
    counts = np.bincount(places[new], minlength=BANKS * len(words)).reshape(-1, BANKS)
    if mask is None:
        return counts.max(axis=-1)
    found = np.zeros(len(some), counts.dtype)
    found[some] = counts.max(axis=-1, initial=0)
    return found
