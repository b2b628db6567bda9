"""Lanes of a warp into the 32 banks of shared memory, lane by lane, from the trace of an access."""

from helpers.simulator.observe.report import Report

from ..bank_film import bank_frames
from ..bank_rules import issued, judge
from ..canvas import Frame
from ..events import WORD, warp_access
from ..products import run_product
from ..runs import SmallRun

_K = 3  # which of a thread's loads from s_K is drawn


def run_tile(TILE: int = 16, TRANSPOSE_ON_STORE: int = 0, PAD: int = 0) -> SmallRun:
    """One block of `06_coalesced.cu`, or with PAD of `07_padded.cu`, that multiplies two tiles.

    Args:
        TILE: edge of a tile.
        TRANSPOSE_ON_STORE: 0 reads `s_K[tx][k]`, 1 reads `s_K[k][tx]`.
        PAD: words behind each row of s_K.
    """
    file = "07_padded.cu" if PAD else "06_coalesced.cu"
    defines = {"TRANSPOSE_ON_STORE": TRANSPOSE_ON_STORE} | ({"PAD": PAD} if PAD else {})
    return run_product(file, TILE, TILE, TILE, 1, **defines)


def tile_banks(
    TILE: int = 16,
    TRANSPOSE_ON_STORE: int = 0,
    PAD: int = 0,
    *,
    kind: str = "load",
    joined: bool = False,
) -> list[Frame]:
    """How warp 0's access to s_K falls into the banks: `s_K[tx][k]`, `s_K[k][tx]`, or padded.

    Args:
        TILE, TRANSPOSE_ON_STORE, PAD: of the run, as for `run_tile`.
        kind: "load" when tiles are multiplied, "store" when they are copied.
        joined: show the load as the hardware executes it, joined with its neighbours where the
            assembler could.

    Raises:
        ValueError: there is no such access.
    """
    report = run_tile(TILE, TRANSPOSE_ON_STORE, PAD).report
    step = _K if kind == "load" else 0
    access = warp_access(report, "s_K", kind=kind, space="shared", step=step)
    executed = issued(report, "s_K", step=step) if kind == "load" else access
    note = ""
    if executed.bytes > access.bytes and not joined:
        note = (
            f" The assembler joins this load with its neighbours into one of {executed.bytes} "
            f"bytes a lane: {judge(executed).wavefronts} wavefronts for all of them."
        )
    access = executed if joined else access
    row = f"{TILE} + {PAD}" if PAD else f"{TILE}"
    index = ("[k][tx]", "[tx][k]") if kind == "load" else ("[tx][ty]", "[ty][tx]")
    index = index[not TRANSPOSE_ON_STORE]
    title = f"{kind} of s_K{index} in s_K[{TILE}][{row}]"
    if access.bytes > WORD:
        title += f", {access.bytes // WORD} loads joined"
    frames = bank_frames(access, title, columns=TILE + PAD)
    return [*frames[:-1], frames[-1]._replace(caption=frames[-1].caption + note)]


def access_banks(report: Report, array: str, title: str = "", **which) -> list[Frame]:
    """The banks of any access to shared memory in a trace.

    Args:
        report: of a counted run.
        array: name of the shared variable.
        title: written above.
        **which: line, kind, block, warp, step, as for `events.warp_access`.

    Raises:
        ValueError: there is no such access.
    """
    access = warp_access(report, array, space="shared", **which)
    return bank_frames(
        access, title or f"{report.entry}, line {access.line}: {access.kind} of {array}"
    )
