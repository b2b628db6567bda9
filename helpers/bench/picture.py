"""A small picture of what a kernel did with its settings, from the trace of that very run.

One of four, by what a rung is about: the elements that a block reads for its results, the threads
that are left at each level of a reduction, the sectors of a warp's global accesses, the banks of a
warp's shared accesses. All are as large, so that nothing on the page moves.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from helpers.simulator.errors import SimulatorError
from helpers.simulator.limits import SECTOR_BYTES
from helpers.simulator.observe.access_trace import BlockAccess
from helpers.simulator.observe.report import Report

from ..figures.bank_rules import BANKS, BankVerdict, issued, judge
from ..figures.canvas import Canvas, counted, literal
from ..figures.events import LANES, WORD, WarpAccess, of_warp
from ..figures.palette import MATRIX_HUES
from ..figures.parts import Grid
from ..panels.numbers import spans

HEIGHT = 212
_LEFT = 20
_WARP = 0  # whose accesses are drawn


def picture(
    report: Report, draws: Sequence[str] = (), settings: Mapping[str, Any] | None = None
) -> str:
    """A picture of a run as SVG text; empty where its trace shows nothing, or is not there.

    Args:
        report: of a counted run.
        draws: what to look at, the first that there is: see `helpers.problem.rungs.Rung`.
        settings: N and d of a rung.
    """
    sizes = dict(settings or {})
    try:
        trace = list(report.of_block())
    except SimulatorError:
        return ""  # a large run keeps no trace
    for draw in (*map(_PICTURES.__getitem__, draws), _banks, _sectors):
        canvas = Canvas(height=HEIGHT)
        label = draw(canvas, report, trace, sizes)
        if label:
            canvas.label = label
            return canvas.svg()
    return ""


# ---------------------------------------------------------------- what a block reads


def _reads(canvas: Canvas, report: Report, trace: Sequence[BlockAccess], sizes: Mapping) -> str:
    """The elements of two matrices that block 0 reads for its tile of the third."""
    N, d = sizes.get("N"), sizes.get("d")
    if not N or not d or not any(a.space == "shared" for a in trace):
        return ""
    reads: dict[str, int] = {}
    seen: dict[str, set[int]] = {}
    tile: dict[str, set[int]] = {}
    stored: dict[str, set[int]] = {}
    loading = True
    for a in trace:
        if a.space == "shared":
            loading = loading and a.kind != "load"
            continue
        found = set(a.indices[a.active].tolist())
        if a.kind == "load":
            reads[a.array] = reads.get(a.array, 0) + int(a.active.sum())
            seen.setdefault(a.array, set()).update(found)
            if loading:
                tile.setdefault(a.array, set()).update(found)
        else:
            stored.setdefault(a.array, set()).update(found)
    if len(reads) != 2 or len(stored) != 1 or not {*reads, *stored} <= set("QKVSPO"):
        return ""
    scale = 150 / max(N, d)  # three squares stay left of the words
    [result] = stored
    x = float(_LEFT)
    for name in (*reads, result):
        grid = Grid(x, 38, scale, scale, N, N if name in "SP" else d)
        hue = MATRIX_HUES[name]
        canvas.text(x, 26, name, size=18, bold=True, fill=hue)
        canvas.text(x + 24, 26, f"{N} × {grid.columns}", fill="muted")
        canvas.rect(x, 38, grid.width, grid.height, fill="faint", stroke="grid")
        for found, look in (
            (seen.get(name) or stored[result], {"fill": f"{hue}-fill", "stroke": hue}),
            (tile.get(name), {"fill": hue, "fill_opacity": 0.75, "stroke": "ink", "weight": 2}),
        ):
            if found:
                canvas.rect(*grid.around([divmod(i, grid.columns) for i in found]), **look)
        x += max(grid.width, 110) + 34
    total, results = sum(reads.values()), len(stored[result])
    products = results * (d if result == "S" else N)
    each = " + ".join(f"{n:,}" for n in reads.values())
    x = 560
    canvas.text(x, 52, f"block (0, 0) reads {' and '.join(reads)}", bold=True)
    canvas.text(x, 78, f"{each} = {total:,} elements")
    canvas.text(x, 104, f"for {counted(products, 'product')}:")
    canvas.text(x, 144, f"{products / total:.3g} products a read", size=22, bold=True)
    canvas.text(x, 182, "dark: the first tiles in shared memory", fill="muted")
    return (
        f"Block (0, 0) reads {total:,} elements of {' and '.join(reads)} for {products:,} products."
    )


# ---------------------------------------------------------------- a reduction


def _tree(canvas: Canvas, report: Report, trace: Sequence[BlockAccess], sizes: Mapping) -> str:
    """How many threads of the block store in shared memory, from level to level."""
    levels: list[int] = []
    for a in trace:
        if a.space != "shared" or a.kind != "store":
            continue
        count = int(a.active.sum())
        if levels and count >= levels[-1]:
            break  # the next reduction begins
        levels.append(count)
    threads = int(np.prod(report.block))
    if len(levels) < 3 or levels[0] != threads or levels[-1] != 1:
        return ""
    pitch = min(24.0, (HEIGHT - 44) / len(levels))
    x, width = 150, 560
    canvas.text(_LEFT, 22, f"{threads:,} threads reduce a row", bold=True)
    canvas.text(x + width + 24, 22, "warps with work", fill="muted")
    for n, count in enumerate(levels):
        y = 36 + n * pitch
        canvas.rect(x, y, width, pitch - 4, fill="faint", stroke="none")
        canvas.rect(x, y, width * count / threads, pitch - 4, fill="yellow-fill", stroke="yellow")
        base = y + pitch / 2 + 3.5
        canvas.text(x - 12, base, "all store" if n == 0 else counted(count, "thread"),
                    anchor="end")  # fmt: skip
        busy, warps = -(-count // LANES), -(-threads // LANES)
        canvas.text(x + width + 24, base, f"{busy} of {warps}")
    return f"A reduction by {threads} threads: {', '.join(map(str, levels))} of them at each level."


# ---------------------------------------------------------------- a warp's accesses


def _groups(trace: Sequence[BlockAccess], space: str) -> list[tuple[WarpAccess, int]]:
    """The warp's accesses by line and array: the first of each, and how many there are."""
    found: dict[tuple, list[BlockAccess]] = {}
    for a in trace:
        if a.space == space and a.kind in ("load", "store") and a.active[_WARP].any():
            found.setdefault((a.line, a.array, a.kind), []).append(a)
    return [(of_warp(group[0], _WARP), len(group)) for group in found.values()]


def _sectors_and_banks(canvas: Canvas, report: Report, trace, sizes: Mapping) -> str:
    """What coalescing is about, and what it may cost in shared memory."""
    said = _sectors(canvas, report, trace, sizes, room=440)
    worst = _costly(trace)[:1]
    if said and worst:
        said += " " + _strip(canvas, 500, *_executed(report, trace, *worst[0]))
    return said


def _sectors(
    canvas: Canvas,
    report: Report,
    trace: Sequence[BlockAccess],
    sizes: Mapping,
    room: float = 920,
) -> str:
    """The sectors that the warp's first access to each of up to three arrays touches."""
    columns = {name: sizes.get("N" if name in "SP" else "d") for name in "QKVSPO"}
    said = []
    for n, (access, _) in enumerate(_groups(trace, "global")[:3]):
        bytes_of: dict[int, set[int]] = {sector: set() for sector in access.sectors}
        for start in access.addresses[access.active].tolist():
            for byte in range(start, start + access.bytes):
                bytes_of[byte // SECTOR_BYTES].add(byte % SECTOR_BYTES)
        used, count = sum(map(len, bytes_of.values())), len(bytes_of)
        y = 18 + 70 * n
        name = f"{access.kind} of {access.array}, line {access.line}"
        canvas.text(_LEFT, y, literal(name), bold=True)
        share = f"{counted(count, 'sector')}, {100 * used / (SECTOR_BYTES * count):.3g} % used"
        canvas.text(_LEFT + room, y, share, anchor="end", bold=True,
                    fill="green" if used == SECTOR_BYTES * count else "vermillion")  # fmt: skip
        width = min(110.0, room / count)
        byte = (width - 4) / SECTOR_BYTES
        boxes, asked = [], []
        for place, found in enumerate(bytes_of.values()):
            x = _LEFT + place * width
            boxes.append((x, y + 8, width - 4, 24))
            asked += [
                (x + first * byte, y + 8, (last + 1 - first) * byte, 24)
                for first, last in spans(sorted(found))
            ]
        canvas.cells(boxes, fill="orange-fill", stroke="none")
        canvas.cells(asked, fill="blue", stroke="none")
        canvas.cells(boxes, stroke="orange", weight=2)
        across = columns.get(access.array)
        for place, sector in enumerate(bytes_of if width >= 80 else ()):
            start = (sector * SECTOR_BYTES - access.start) // WORD
            row = divmod(start, across) if across else (start,)
            text = access.array + "".join(f"[{at}]" for at in row)
            canvas.text(_LEFT + place * width, y + 47, literal(text), fill="muted")
        said.append(f"{name}: {share}")
    return f"Warp 0 of block (0, 0). {'; '.join(said)}." if said else ""


def _banks(canvas: Canvas, report: Report, trace: Sequence[BlockAccess], sizes: Mapping) -> str:
    """The banks of the two shared accesses that cost the warp most wavefronts."""
    chosen = sorted(_costly(trace)[:2], key=lambda pair: pair[0].order)
    said = [
        _strip(canvas, _LEFT + n * 480, *_executed(report, trace, *pair))
        for n, pair in enumerate(chosen)
    ]
    if said:
        canvas.text(_LEFT, HEIGHT - 8, "words that a warp's access asks of each of the 32 banks",
                    fill="muted")  # fmt: skip
    return f"Warp 0 of block (0, 0). {' '.join(said)}" if said else ""


def _costly(trace: Sequence[BlockAccess]) -> list[tuple[WarpAccess, BankVerdict]]:
    """The warp's shared accesses, those that take most wavefronts in all first."""
    judged = [(access, judge(access), count) for access, count in _groups(trace, "shared")]
    judged.sort(key=lambda one: -one[2] * one[1].wavefronts)
    return [(access, verdict) for access, verdict, _ in judged]


def _executed(
    report: Report, trace: Sequence[BlockAccess], access: WarpAccess, verdict: BankVerdict
) -> tuple[WarpAccess, BankVerdict]:
    """A load as the hardware executes it, joined with its neighbours."""
    if not access.is_load or access.bytes != WORD:
        return access, verdict
    joined = issued(report, access.array, line=access.line, trace=trace)
    return joined, judge(joined)


def _strip(canvas: Canvas, x: float, access: WarpAccess, verdict: BankVerdict) -> str:
    """The banks of one access: different words stacked, each phase on top of the one before."""
    name = f"{access.kind} of {access.array}, line {access.line}"
    canvas.text(x, 26, literal(name), bold=True)
    wide = f", {access.bytes} bytes a lane" if access.bytes > WORD else ""
    text = verdict.summary + wide
    canvas.text(x, 50, text, bold=True, fill="vermillion" if verdict.conflicts > 0 else "green")
    pitch, ground, room = 13.5, 168.0, 104.0
    stacks = verdict.loads.sum(axis=0)
    high = min(26.0, room / max(int(stacks.max()), 1))
    canvas.rect(x, ground - room, BANKS * pitch, room, fill="faint", stroke="none")
    for hue in ("green", "vermillion"):
        boxes = []
        for bank in range(BANKS):
            below = 0
            for words in verdict.loads[:, bank].tolist():
                if words and (words > 1) == (hue == "vermillion"):
                    boxes += [
                        (x + bank * pitch + 1, ground - (below + row + 1) * high + 0.5, pitch - 2,
                         high - 1) for row in range(words)
                    ]  # fmt: skip
                below += words
        canvas.cells(boxes, fill=f"{hue}-fill", stroke=hue)
    canvas.line(x, ground, x + BANKS * pitch, ground)
    for bank in (0, 8, 16, 24, 31):
        canvas.text(x + (bank + 0.5) * pitch, ground + 17, str(bank), anchor="middle",
                    mono=True, fill="muted")  # fmt: skip
    return f"{name}: {text}."


_PICTURES: dict[str, Callable[..., str]] = {
    "reads": _reads,
    "tree": _tree,
    "sectors": _sectors,
    "sectors and banks": _sectors_and_banks,
}
