"""How a batch of blocks is laid out in arrays.

A register's value is an array that broadcasts to (block axes…, thread axes…), with size 1 along
every axis that it does not vary along: a parameter has one element, threadIdx.x has blockDim.x.
Grid and block axes of extent 1 are left out. Work that the threads share is then done once, which
is where most of the simulator's speed comes from.
"""

import math

import numpy as np

from ..limits import LANES, MULTIPROCESSORS


class Layout:
    """One batch: blocks [first, first + extent) of a grid along (z, y, x)."""

    def __init__(self, grid, block, first, extent, specials: dict[str, int] | None = None):
        self.grid, self.block = grid, block  # (x, y, z)
        self.first, self.extent = first, extent  # (z, y, x)
        self.bshape = tuple(n for n in extent if n > 1)
        threads = tuple(reversed(block))
        self.tshape = tuple(n for n in threads if n > 1) or (1,)
        self.nb = len(self.bshape)
        self.ndim = self.nb + len(self.tshape)
        self.shape = self.bshape + self.tshape
        self.nblocks, self.nthreads = math.prod(extent), math.prod(threads)
        self.warps = -(-self.nthreads // LANES)
        self.lanes_shape = self.bshape + (self.warps, LANES)
        self._specials = self._make_specials()
        for name, value in (specials or {}).items():
            self._specials[name] = np.full(1, value, np.uint32)
        self.block_index = np.arange(self.nblocks, dtype=np.int64).reshape(
            self.bshape + (1,) * len(self.tshape)
        )
        self.thread_index = np.arange(self.nthreads, dtype=np.int64).reshape(
            (1,) * self.nb + self.tshape
        )

    def _axis(self, values, axis: int, extents) -> np.ndarray:
        """Values along one of six axes (bz, by, bx, tz, ty, tx), unit axes left out."""
        shape = [len(values) if n == axis else 1 for n, extent in enumerate(extents) if extent > 1]
        shape += [1] * (self.ndim - len(shape))  # where a block is a single thread
        return np.asarray(values, np.uint32).reshape(shape if len(values) > 1 else 1)

    def _make_specials(self) -> dict[str, np.ndarray]:
        extents = tuple(self.extent) + tuple(reversed(self.block))
        out = {}
        for position, name in enumerate("zyx"):
            start, count = self.first[position], self.extent[position]
            ids = np.arange(start, start + count, dtype=np.uint32)
            out[f"ctaid.{name}"] = self._axis(ids, position, extents)
            size = self.block[2 - position]
            out[f"tid.{name}"] = self._axis(np.arange(size, dtype=np.uint32), 3 + position, extents)
            out[f"ntid.{name}"] = np.full(1, size, np.uint32)
            out[f"nctaid.{name}"] = np.full(1, self.grid[2 - position], np.uint32)
        return out

    def special(self, name: str) -> np.ndarray | None:
        """The value of a special register, or None where it is not known."""
        value = self._specials.get(name)
        if value is None:
            value = self._rare_special(name)
            if value is not None:
                self._specials[name] = value
        return value

    def _rare_special(self, name: str) -> np.ndarray | None:
        thread = self.thread_index.astype(np.uint32)
        bit = np.uint32(1) << thread % LANES
        below = bit - np.uint32(1)
        of_lane = {
            "laneid": thread % LANES,
            "warpid": thread // LANES,
            "lanemask_eq": bit,
            "lanemask_lt": below,
            "lanemask_le": below | bit,
            "lanemask_gt": ~(below | bit),
            "lanemask_ge": ~below,
        }
        if name in of_lane:
            return of_lane[name]
        if name == "smid":  # blocks go round the SMs; a GPU's order is its own
            x, y, z = (self._specials[f"ctaid.{axis}"] for axis in "xyz")
            return (x + self.grid[0] * (y + self.grid[1] * z)) % np.uint32(MULTIPROCESSORS)
        # A cluster is one block.
        head, _, axis = name.partition(".")
        if head in ("clusterid", "nclusterid"):
            return self._specials[f"{'n' if head[0] == 'n' else ''}ctaid.{axis}"]
        constants = {"nwarpid": self.warps, "nsmid": MULTIPROCESSORS, "cluster_nctarank": 1}
        constants |= dict.fromkeys(("gridid", "cluster_ctarank", "cluster_ctaid"), 0)
        constants |= {"reserved_smem_offset_begin": 0, "cluster_nctaid": 1}
        return np.full(1, constants[head], np.uint32) if head in constants else None

    def lift(self, value: np.ndarray) -> np.ndarray:
        """The same value with all axes present."""
        if value.ndim < self.ndim:
            return value.reshape((1,) * (self.ndim - value.ndim) + value.shape)
        return value

    def full(self, value: np.ndarray) -> np.ndarray:
        """The value broadcast to every thread of the batch (a view)."""
        return np.broadcast_to(value, self.shape)

    def flat(self, value: np.ndarray) -> np.ndarray:
        """The value of every thread of the batch, one after another."""
        return self.full(value).reshape(-1)

    def rows(self, value: np.ndarray) -> np.ndarray:
        """(blocks, threads) of a value."""
        return self.full(value).reshape(self.nblocks, self.nthreads)

    def lanes(self, value: np.ndarray, fill=0) -> np.ndarray:
        """(block axes (may be 1)…, warps, 32): threads padded to whole warps with `fill`."""
        value = self.lift(value)
        blocks = value.shape[: self.nb]
        if value.shape[self.nb :] != self.tshape:
            value = np.broadcast_to(value, blocks + self.tshape)
        flat = value
        if self.warps * LANES != self.nthreads:
            flat = value.reshape(blocks + (self.nthreads,))
            padded = np.full(blocks + (self.warps * LANES,), fill, value.dtype)
            padded[..., : self.nthreads] = flat
            flat = padded
        return flat.reshape(blocks + (self.warps, LANES))

    def threads(self, lanes: np.ndarray) -> np.ndarray:
        """The inverse of `lanes`."""
        blocks = lanes.shape[:-2]
        if self.warps * LANES != self.nthreads:
            lanes = lanes.reshape(blocks + (self.warps * LANES,))[..., : self.nthreads]
        return lanes.reshape(blocks + self.tshape)

    def active_lanes(self, mask: np.ndarray | None) -> np.ndarray | None:
        """The lanes of a mask; None when every lane of every warp is active."""
        if mask is None:
            if self.nthreads % LANES == 0:
                return None
            mask = np.ones(1, np.bool_)
        return self.lanes(mask, fill=False)

    def copies(self, lanes: np.ndarray) -> int:
        """How many blocks each block of a lanes array stands for."""
        return self.nblocks // math.prod(lanes.shape[:-2])

    def blocks_of(self, mask: np.ndarray | None) -> np.ndarray:
        """Blocks in which a mask holds for some thread, shaped to broadcast over threads."""
        if mask is None:
            return np.ones(1, np.bool_)
        mask = self.lift(mask)
        axes = tuple(range(self.nb, self.ndim))
        return mask.any(axis=axes, keepdims=True)

    def locate(self, mask: np.ndarray) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """(block, thread) as (x, y, z) of the first thread for which the mask is set."""
        flat = int(np.argmax(self.full(mask)))
        block, thread = divmod(flat, self.nthreads)
        return self.block_at(block), self.thread_at(thread)

    def block_at(self, index: int) -> tuple[int, int, int]:
        """(x, y, z) of the batch's block with this number."""
        z, rest = divmod(index, self.extent[1] * self.extent[2])
        y, x = divmod(rest, self.extent[2])
        return (x + self.first[2], y + self.first[1], z + self.first[0])

    def thread_at(self, index: int) -> tuple[int, int, int]:
        """(x, y, z) of a block's thread with this number."""
        z, rest = divmod(index, self.block[0] * self.block[1])
        y, x = divmod(rest, self.block[0])
        return (x, y, z)


def batches(grid, block, threads_wanted: int):
    """Cut a grid into boxes of whole rows or planes of blocks of about `threads_wanted` threads.

    Yields ((z, y, x), (nz, ny, nx)): first block and extent, in the order in which blocks start.
    """
    gx, gy, gz = grid
    wanted = max(1, threads_wanted // max(1, block[0] * block[1] * block[2]))
    nx, ny, nz = min(gx, wanted), max(1, min(gy, wanted // gx)), max(1, wanted // (gx * gy))
    for z in range(0, gz, nz):
        for y in range(0, gy, ny):
            for x in range(0, gx, nx):
                yield (z, y, x), (min(nz, gz - z), min(ny, gy - y), min(nx, gx - x))


def sampled(grid, number: int | None):
    """Single blocks spread over a grid, as `batches` gives them; None if all of them are asked for.

    They lie at even distances, neither at the first block nor at the last.
    """
    gx, gy, gz = grid
    total = gx * gy * gz
    if number is None or total <= number:
        return None
    places = (int((n + 0.382) * total / number) for n in range(number))  # no round part of a row
    return [((at // (gx * gy), at // gx % gy, at % gx), (1, 1, 1)) for at in places]
