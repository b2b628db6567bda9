"""Where a matrix of `wgmma` lies in shared memory: its descriptor, and the swizzle of addresses.

PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions": "Shared Memory Matrix Layout" and
"Matrix Descriptor". A matrix is made of chunks of 16 bytes. Along k, an instruction takes two of
them (K-major), or eight elements of another row each (MN-major). Eight rows of one chunk are a core
matrix. With a swizzle of 2^b chunks, 32, 64 or 128 bytes of a row lie side by side, and bits 4 to
3 + b of a chunk's address are XORed with bits 7 to 6 + b: so does the tensor memory accelerator.
"""

from dataclasses import dataclass

import numpy as np

CHUNK = 16  # bytes
SPANS = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a row side by side, by the descriptor's mode
_LINE = 128  # bytes: rows of the pattern of a swizzle
_FIELD = (1 << 14) - 1


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The fields of 64-bit descriptors, each int64 of their shape; strides and start in bytes."""

    start: np.ndarray
    leading: np.ndarray
    stride: np.ndarray
    base_offset: np.ndarray
    span: int


def descriptors(words: np.ndarray) -> list[tuple[np.ndarray, Descriptors]]:
    """Descriptors (uint64, 1-D) by their swizzle: [(which of them, their fields)]."""
    modes = (words >> np.uint64(62)).astype(np.int64)
    found = []
    for mode in np.unique(modes).tolist():
        which = np.flatnonzero(modes == mode)
        start, leading, stride = (
            (words[which] >> np.uint64(shift)).astype(np.int64) % (_FIELD + 1) * CHUNK
            for shift in (0, 16, 32)
        )
        base = (words[which] >> np.uint64(49)).astype(np.int64) & 7
        found.append((which, Descriptors(start, leading, stride, base, SPANS[mode])))
    return found


def swizzled(address: np.ndarray, span: int, base_offset: np.ndarray | int = 0) -> np.ndarray:
    """Addresses in shared memory as a swizzle of rows of `span` bytes moves them.

    base_offset: lines of 128 bytes by which the pattern begins behind a multiple of its length.
    """
    lines = (address // _LINE - base_offset) & (span // CHUNK - 1)
    return address ^ lines * CHUNK


def chunk_addresses(d: Descriptors, extent: int, along_k: bool, elements: int) -> np.ndarray:
    """The addresses of a matrix's chunks, int64 (descriptors, rows or blocks of rows, chunks).

    Args:
        d: n descriptors.
        extent: rows of the matrix, m or n of the instruction.
        along_k: K-major: (n, extent, 2), a row's two chunks of `elements` along k each. Otherwise
            (n, extent / elements, 2 `elements`): for each k the chunk of `elements` rows.
        elements: of a chunk, 8 for 16-bit ones.
    """
    start, leading, stride = (f[:, None, None] for f in (d.start, d.leading, d.stride))
    if along_k:
        row, chunk = np.ogrid[:extent, :2]
        offset = row % 8 * d.span + row // 8 * stride
        offset = offset + chunk * (leading if d.span == CHUNK else CHUNK)
    else:
        block, k = np.ogrid[: extent // elements, : 2 * elements]
        if d.span == CHUNK:
            offset = block * stride + k // 8 * leading + k % 8 * CHUNK
        else:
            wide = d.span // CHUNK
            offset = block % wide * CHUNK + block // wide * leading
            offset = offset + k % 8 * d.span + k // 8 * stride
    return swizzled(start + offset, d.span, d.base_offset[:, None, None])
