"""What a warp touches with one instruction: its lanes, the elements, the 32-byte sectors."""

from __future__ import annotations

from ..drawing import Drawing, hue
from ..trace import SECTOR_BYTES, Access, warp_accesses


def sectors(report, array: str, block=0, warp: int = 0, step: int = 0) -> Drawing:
    """The lanes of a warp above, the sectors they touch in `array` below.

    Args:
        report: of a counted run.
        array: an array of elements of 4 bytes.
        block, warp: which warp; `block` is an index or a tuple of indices.
        step: which of the warp's accesses to that array, counted from 0.

    Raises:
        ValueError: there is no such access.
    """
    access = _at_step(warp_accesses(report, block, warp), array, step, report.entry)
    touched = access.sectors
    words = SECTOR_BYTES // 4
    left, gap = 70, 10
    cell = min(26.0, (900 - left) / 32)
    word = min(cell, (900 - left - gap * len(touched)) / (words * len(touched)))
    if word < 1.5:
        raise ValueError(f"{len(touched)} sectors are too many to draw.")
    lanes_y, words_y, height = 34, 116, 200
    colour = hue(0)
    summary = (
        f"1 request, {len(access.elements)} lanes × {access.bytes} bytes, "
        f"{len(touched)} sector{'s' if len(touched) > 1 else ''} of 32 bytes"
    )
    drawing = Drawing(left + 32 * cell + gap * 4 + 8, height, f"Warp {warp}, {array}: {summary}.")
    drawing.text(0, lanes_y + cell / 2 + 4, "lane")
    drawing.text(0, words_y + cell / 2 + 4, f"{array}[i]", mono=True)
    active = {lane for lane, _, _ in access.elements}
    x0, y0 = left + 1.5 * gap, left + 4
    place = {
        sector * SECTOR_BYTES + 4 * w: y0 + n * (words * word + gap) + w * word
        for n, sector in enumerate(touched)
        for w in range(words)
    }
    drawing.cells(
        [(x0 + lane * cell + 1, lanes_y, cell - 2, cell - 2) for lane in sorted(active)],
        fill=colour, fill_opacity=0.35, stroke=colour,
    )  # fmt: skip
    drawing.cells(
        [(x0 + n * cell + 1, lanes_y, cell - 2, cell - 2) for n in range(32) if n not in active],
        stroke_dasharray="3 3", stroke_opacity=0.6,
    )  # fmt: skip
    hit = {}
    for _, index, address in access.elements:
        for k in range(access.bytes // 4):
            hit[address + 4 * k] = index + k
    drawing.cells(
        [(place[a] + 1, words_y, word - 2, cell - 2) for a in sorted(hit)],
        fill=colour, fill_opacity=0.35, stroke=colour,
    )  # fmt: skip
    drawing.cells(
        [(x + 1, words_y, word - 2, cell - 2) for a, x in place.items() if a not in hit],
        stroke_dasharray="3 3", stroke_opacity=0.6,
    )  # fmt: skip
    base = _base(access)
    for n, sector in enumerate(touched):
        x = y0 + n * (words * word + gap)
        drawing.rect(x - 3, words_y - 4, words * word + 6, cell + 6, stroke_width=1.5, rx=3)
        if words * word > 130:
            first = sector * SECTOR_BYTES - base
            drawing.text(
                x + words * word / 2, words_y + cell + 19, f"bytes {first} to {first + 31}",
                anchor="middle", faint=True,
            )  # fmt: skip
    drawing.lines(
        [
            (x0 + (lane + 0.5) * cell, lanes_y + cell, place[address] + word / 2, words_y - 5)
            for lane, _, address in access.elements
        ],
        stroke=colour, stroke_width=1.3, stroke_opacity=0.9,
    )  # fmt: skip
    for lane in range(32):
        drawing.text(
            x0 + (lane + 0.5) * cell, lanes_y + cell / 2 + 4, str(lane), anchor="middle",
            faint=lane not in active,
        )  # fmt: skip
    if word >= 22:
        for address, index in hit.items():
            drawing.text(
                place[address] + word / 2, words_y + cell / 2 + 4, str(index), anchor="middle",
            )  # fmt: skip
    drawing.text(left, height - 10, f"{summary}.")
    return drawing


def footprint(
    report,
    block: tuple[int, int] | int = 0,
    warp: int = 0,
    step: int = 0,
    line: int | None = None,
    **shapes: tuple[int, int],
) -> Drawing:
    """The elements of some matrices that one warp touches in one step of its loop.

    Args:
        report: of a counted run.
        block, warp: which warp.
        step: which of the warp's accesses to each matrix; one that it touches once is shown
            whatever the step.
        line: only accesses of this source line.
        **shapes: (rows, columns) of each matrix to show, by its name in the kernel.

    Raises:
        ValueError: a matrix is not touched, has more than 64 rows or columns, or there are fewer
            steps.
    """
    large = max(max(shape) for shape in shapes.values())
    if large > 64:
        raise ValueError(f"footprint has room for 64 rows and columns, not {large}.")
    accesses = warp_accesses(report, block, warp, line)
    found = {name: _at_step(accesses, name, step, report.entry, True) for name in shapes}
    columns = sum(shape[1] for shape in shapes.values())
    gap = 36.0
    cell = min(12.0, (900 - gap * (len(shapes) - 1)) / columns, 288 / large)
    widths = [max(shape[1] * cell, 190) for shape in shapes.values()]
    top = 52
    tallest = max(shape[0] for shape in shapes.values()) * cell
    label = ", ".join(_elements(access) for access in found.values())
    drawing = Drawing(
        sum(widths) + gap * (len(shapes) - 1) + 8,
        top + tallest + 72,
        f"What warp {warp} of block {block} touches in step {step}: {label}.",
    )
    colour, x = hue(warp), 4.0
    for (name, (rows, cols)), width in zip(shapes.items(), widths, strict=True):
        access = found[name]
        verb = "stored" if access.kind == "store" else "loaded"
        drawing.text(x, 18, f"{name}, {rows} × {cols}", size=16, font_weight=600)
        drawing.text(x, 38, f"{verb} by line {access.line}", faint=True)
        drawing.lines(
            [(x + c * cell, top, x + c * cell, top + rows * cell) for c in range(1, cols)]
            + [(x, top + r * cell, x + cols * cell, top + r * cell) for r in range(1, rows)],
            stroke_opacity=0.13,
            stroke_width=0.7,
        )
        fetched = _cells_of_sectors(access, rows * cols)
        box = [(x + i % cols * cell, top + i // cols * cell, cell, cell) for i in fetched]
        drawing.cells(box, fill=colour, fill_opacity=0.38, stroke="none")
        drawing.cells(
            [(x + i % cols * cell, top + i // cols * cell, cell, cell) for i in access.indices],
            fill=colour, stroke="none",
        )  # fmt: skip
        drawing.rect(x, top, cols * cell, rows * cell, stroke_opacity=0.8)
        bottom = top + rows * cell
        drawing.text(x, bottom + 20, _elements(access))
        used = len(access.indices) * access.bytes
        fetched_bytes = len(access.sectors) * SECTOR_BYTES
        drawing.text(x, bottom + 40, f"{used} of {fetched_bytes} bytes used", faint=True)
        x += width + gap
    drawing.rect(4, top + tallest + 55, 12, 12, fill=colour, stroke="none")
    drawing.text(22, top + tallest + 67, "touched")
    drawing.rect(100, top + tallest + 55, 12, 12, fill=colour, fill_opacity=0.38, stroke="none")
    drawing.text(118, top + tallest + 67, "comes along in the same 32-byte sector")
    return drawing


def _elements(access: Access) -> str:
    elements, sector_count = len(access.indices), len(access.sectors)
    return (
        f"{elements} element{'s' if elements > 1 else ''}, "
        f"{sector_count} sector{'s' if sector_count > 1 else ''}"
    )


def _cells_of_sectors(access: Access, total: int) -> list[int]:
    """Flat indices of every element in the sectors that an access touches."""
    base = _base(access)
    per = SECTOR_BYTES // access.bytes
    cells = []
    for sector in access.sectors:
        first = (sector * SECTOR_BYTES - base) // access.bytes
        cells += [i for i in range(first, first + per) if 0 <= i < total]
    return cells


def _base(access: Access) -> int:
    """The byte address of the array's element 0."""
    _, index, address = access.elements[0]
    return address - index * access.bytes


def _at_step(
    accesses: list[Access], array: str, step: int, entry: str, once_is_always: bool = False
) -> Access:
    mine = [access for access in accesses if access.array == array]
    if not mine:
        raise ValueError(f"That warp of {entry} does not touch {array}.")
    if once_is_always and len(mine) == 1:
        return mine[0]
    if not 0 <= step < len(mine):
        raise ValueError(f"That warp of {entry} touches {array} in steps 0 to {len(mine) - 1}.")
    return mine[step]
