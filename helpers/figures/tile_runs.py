"""A tile in shared memory in three layouts, plain, padded and XOR, and one access of a warp to it.

Where elements lie and what the access costs is what a small kernel does on the simulator.
"""

from math import gcd
from typing import NamedTuple

import numpy as np

from helpers import simulator
from helpers.simulator.limits import BANKS
from helpers.simulator.observe.report import Report

from .bank_rules import BankVerdict, judge
from .events import LANES, WORD, WarpAccess, warp_access

LAYOUTS = ("plain", "padded", "XOR")
ELEMENT_BYTES = {"half": 2, "float": 4, "float2": 8, "float4": 16}
ACCESSES = ("column", "row", "mma", "ldmatrix")
ROWS = 32
MOST_BYTES = 48 * 1024  # of shared memory, without asking for more
_LDMATRIX = 16  # bytes of a matrix's row

_SOURCE = """\
enum { PLAIN, PADDED, XOR };
enum { COLUMN, ROW, MMA, LDMATRIX };
extern __shared__ __align__(128) unsigned char s[];

// Where an element lies. XOR moves groups of `group` elements, `period` of them among each other.
__device__ int place(int layout, int row, int column, int columns, int pad, int group, int period) {
    if (layout == XOR) column ^= row % period * group;
    return row * (columns + (layout == PADDED ? pad : 0)) + column;
}

// The row and the column of a lane's first element; it takes `each` of them.
__device__ int row_of(int access, int lane, int columns) {
    if (access == COLUMN) return lane;
    if (access == ROW) return FROM_ROW + lane / columns;
    return access == MMA ? lane / 4 : lane % 16;
}
__device__ int column_of(int access, int lane, int columns, int each) {
    if (access == COLUMN) return columns > FROM_COLUMN ? FROM_COLUMN : columns - 1;
    if (access == ROW) return lane % columns;
    return (access == MMA ? lane % 4 : lane / 16) * each;
}

extern "C" __global__ void places(int* out, int columns, int pad, int group, int period) {
    for (int column = 0; column < columns; column++) {
        out[(blockIdx.x * 32 + threadIdx.x) * columns + column] =
            place(blockIdx.x, threadIdx.x, column, columns, pad, group, period);
    }
}
extern "C" __global__ void targets(int* out, int access, int columns, int each) {
    out[2 * threadIdx.x] = row_of(access, threadIdx.x, columns);
    out[2 * threadIdx.x + 1] = column_of(access, threadIdx.x, columns, each);
}

__device__ int offset(
    int layout, int access, int bytes, int each, int columns, int pad, int group, int period
) {
    const int lane = threadIdx.x;
    const int row = row_of(access, lane, columns);
    const int column = column_of(access, lane, columns, each);
    return bytes * place(layout, row, column, columns, pad, group, period);
}
#define READ(name, type) \\
    extern "C" __global__ void name(type* out, int first, int access, int bytes, int each, \\
                                    int columns, int pad, int group, int period) { \\
        const int layout = first + blockIdx.x; \\
        out[blockIdx.x * 32 + threadIdx.x] = *(type*)( \\
            s + offset(layout, access, bytes, each, columns, pad, group, period)); \\
    }
READ(read_2, unsigned short)
READ(read_4, float)
READ(read_8, float2)
READ(read_16, float4)
extern "C" __global__ void read_matrix(uint4* out, int first, int access, int bytes, int each,
                                       int columns, int pad, int group, int period) {
    const int layout = first + blockIdx.x;
    const unsigned from = (unsigned)__cvta_generic_to_shared(
        s + offset(layout, access, bytes, each, columns, pad, group, period));
    uint4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(from) : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = r;
}
"""
_FROM = {"FROM_ROW": 5, "FROM_COLUMN": 3}
_DEFINES = "".join(f"#define {name} {value}\n" for name, value in _FROM.items())
SOURCE = _DEFINES + _SOURCE


class TileLayout(NamedTuple):
    """A tile in one of the layouts, and the access to it.

    Attributes:
        name: of the layout.
        offsets: intp (rows, columns), the byte at which each element begins.
        access, verdict: the access of the warp, from the trace, and its cost.
        formula: the offset in words of CUDA C.
    """

    name: str
    offsets: np.ndarray
    access: WarpAccess
    verdict: BankVerdict
    formula: str

    @property
    def banks(self) -> np.ndarray:
        """intp (rows, columns), the bank of each element, the first of several."""
        return self.offsets // WORD % BANKS

    @property
    def turns(self) -> list[int]:
        """In which wavefront of its phase each lane gets the last of its words."""
        stacks: dict[tuple[int, int], list[int]] = {}
        found = []
        for lane, phase in enumerate(self.verdict.phases):
            turn = 0
            for word in self.verdict.words[lane]:
                words = stacks.setdefault((int(phase), int(word) % BANKS), [])
                if word not in words:
                    words.append(int(word))
                turn = max(turn, words.index(word) + 1)
            found.append(turn)
        return found


class BankTile(NamedTuple):
    """A tile of 32 rows and how a warp reads it, in each of `LAYOUTS`.

    Attributes:
        columns, element, access: as for `run_tile`.
        pad: elements behind each row where it is padded.
        each: elements that a lane takes.
        targets: intp (32, 2), the row and column of each lane's first element.
        layouts: one for each of `LAYOUTS`.
        report: of the run; it counted the accesses of all layouts.
    """

    columns: int
    element: str
    access: str
    pad: int
    each: int
    targets: np.ndarray
    layouts: tuple[TileLayout, ...]
    report: Report


def run_tile(
    columns: int = 32, element: str = "float", access: str = "column", pad: int = 1
) -> BankTile:
    """Run an access of one warp to a tile of 32 rows, in each layout.

    Args:
        columns: elements of a row.
        element: one of `ELEMENT_BYTES`.
        access: "column" (lane n takes an element of row n), "row" (lane n takes element n of a
            row), "mma" (a fragment: lane n takes 4 bytes or an element of row n / 4, at n % 4),
            "ldmatrix" (lane n gives the address of 16 bytes of row n % 16, at n / 16).
        pad: how many of what a lane takes a padded row has more.

    Raises:
        ValueError: a value is none of these, the access has no room in a row or no address that
            it may have, or the tile is too large.
    """
    size = _checked(columns, element, access, pad)
    wide = {"ldmatrix": _LDMATRIX, "mma": max(size, WORD)}.get(access, size)
    each = wide // size
    # Halves are moved in groups of 16 bytes, which `ldmatrix` reads at once, where rows allow it.
    group = gcd(columns, _LDMATRIX // size) if element == "half" else 1
    groups = columns // group
    period = min(groups & -groups, BANKS * WORD // (group * size))
    pads = pad * each
    if ROWS * (columns + pads) * size > MOST_BYTES:
        raise ValueError(f"32 rows of {columns} {element} are more than the 48 KB of a block.")
    many = len(LAYOUTS)
    offsets, targets = np.zeros((many, ROWS, columns), np.int32), np.zeros((LANES, 2), np.int32)
    _launch("places", many, (offsets, columns, pads, group, period), count=False)
    _launch("targets", 1, (targets, ACCESSES.index(access), columns, each), count=False)
    report = launch_reads(tuple(range(many)), element, access, columns, pads, each, group, period)
    kept = f"column ^ row % {period}" if group == 1 else f"column ^ row % {period} * {group}"
    formulas = (f"row * {columns} + column", f"row * {columns + pads} + column",
                f"row * {columns} + ({kept})")  # fmt: skip
    layouts = []
    for number, (name, formula) in enumerate(zip(LAYOUTS, formulas, strict=True)):
        seen = warp_access(report, "s", kind="load", space="shared", block=number)
        verdict = judge(seen)
        layouts.append(TileLayout(name, offsets[number] * size, seen, verdict, formula))
    return BankTile(columns, element, access, pads, each, targets, tuple(layouts), report)


def launch_reads(
    layouts: tuple[int, ...], element: str, access: str, columns: int, pads: int, each: int,
    group: int, period: int,
) -> Report:  # fmt: skip
    """Count the access in neighbouring layouts, a block for each."""
    size = ELEMENT_BYTES[element]
    entry = "read_matrix" if access == "ldmatrix" else f"read_{size * each}"
    out = np.zeros((len(layouts), LANES, 4), np.float32)
    numbers = (layouts[0], ACCESSES.index(access), size, each, columns, pads, group, period)
    return _launch(entry, len(layouts), (out, *numbers))


def _launch(entry: str, blocks: int, arguments: tuple, count: bool = True) -> Report:
    arrays = (arguments[0], *map(np.int32, arguments[1:]))
    return simulator.launch(
        SOURCE, entry, blocks, LANES, arrays, shared_mem=MOST_BYTES, count=count,
        filename="tile.cu", progress=False,
    )  # fmt: skip


def _checked(columns: int, element: str, access: str, pad: int) -> int:
    """Bytes of an element, where the tile and the access are possible."""
    if element not in ELEMENT_BYTES or access not in ACCESSES:
        raise ValueError(
            f"element is one of {', '.join(ELEMENT_BYTES)} and access one of "
            f"{', '.join(ACCESSES)}, not {element!r} and {access!r}."
        )
    if columns < 1 or pad < 0:
        raise ValueError(f"A row has one element or more, and a pad none or more, not {columns}.")
    size = ELEMENT_BYTES[element]
    if access == "ldmatrix" and (size not in (2, 16) or columns * size % _LDMATRIX):
        raise ValueError(
            "ldmatrix reads rows of 16 bytes, 8 halves, that start at multiples of 16 bytes: "
            f"take a multiple of 8 half, or float4, in a row, not {columns} {element}."
        )
    if access == "ldmatrix" and columns * size < 2 * _LDMATRIX:
        raise ValueError("ldmatrix reads two pieces of 16 bytes of a row here.")
    if access == "mma" and (size == 2 and columns % 2 or columns < 4 * max(1, WORD // size)):
        raise ValueError(
            f"A row of {columns} {element} has no four pairs or elements for a fragment that start "
            "where they may."
        )
    return size
