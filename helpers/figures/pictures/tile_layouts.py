"""A tile in shared memory as a grid coloured by bank: plain, padded and XOR, from runs of them.

Four banks have a hue, and the four are told apart by its strength.
"""

import numpy as np
from svg import G, Text

from helpers.simulator.limits import BANKS

from ..canvas import LARGE, MONO, NORMAL, SMALLEST, Canvas, Frame, counted, text_width
from ..events import LANES, WORD
from ..palette import colour, hue
from ..parts import Grid
from ..tile_runs import ELEMENT_BYTES, LAYOUTS, ROWS, BankTile, TileLayout, run_tile

TILE_STEPS = ("side by side", *LAYOUTS)  # the frames of `tile_layouts`, by name
_HEIGHT = 414
_TONES = (0.3, 0.5, 0.7, 0.92)  # of the four banks of a hue
_WORDS = {
    "column": "lane n reads row n",
    "row": "lanes read along a row",
    "mma": "lane n reads row n / 4, piece n % 4",
    "ldmatrix": "lane n gives row n % 16, piece n / 16",
}


def tile_layouts(
    columns: int = 32,
    element: str = "float",
    access: str = "column",
    pad: int = 1,
    *,
    secret: bool = False,
) -> list[Frame]:
    """A tile's elements by bank, with an access of a warp: three layouts together, then each.

    Args:
        columns, element, access, pad: as for `run_tile`.
        secret: do not write how XOR places elements; an exercise may ask for it.

    Raises:
        ValueError: the access is not possible, or the tile is too large; see `run_tile`.
    """
    tile = run_tile(columns, element, access, pad)
    return [_together(tile), *(_alone(tile, layout, secret) for layout in tile.layouts)]


def _title(tile: BankTile) -> str:
    return f"{ROWS} rows of {tile.columns} {tile.element}: {_WORDS[tile.access]}"


def _together(tile: BankTile) -> Frame:
    said = [f"{one.name} {one.verdict.wavefronts}" for one in tile.layouts]
    canvas = Canvas(height=_HEIGHT, label=f"{_title(tile)}. Wavefronts: {', '.join(said)}.")
    canvas.text(48, 20, _title(tile))
    cell = _fitting(268 / (tile.columns + tile.pad), 8)
    for number, one in enumerate(tile.layouts):
        grid = Grid(48 + 306 * number, 84, cell, 8, ROWS, tile.columns)
        canvas.text(grid.x, 46, one.name, size=LARGE, bold=True)
        _tile(canvas, tile, one, grid)
        _verdict(canvas, one, grid.x, grid.bottom + 26)
    _key(canvas, tile, 48, _HEIGHT - 34, 864)
    best = min(one.verdict.wavefronts for one in tile.layouts)
    ideal = tile.layouts[0].verdict.ideal
    caption = f"The same access in three layouts: {', '.join(said)} wavefronts; ideal {ideal}."
    if best < tile.layouts[0].verdict.wavefronts:
        caption += " Outlined cells of one colour lie in one bank and wait for each other."
    return canvas.frame(caption)


def _alone(tile: BankTile, layout: TileLayout, secret: bool) -> Frame:
    canvas = Canvas(
        height=_HEIGHT, label=f"{_title(tile)}, {layout.name}: {layout.verdict.summary}."
    )
    canvas.text(48, 22, layout.name, size=LARGE, bold=True)
    x = 48 + text_width(layout.name, LARGE) + 24
    if secret and layout.name == "XOR":
        canvas.text(x, 22, "another order in each row: see chapter 09", size=NORMAL)
    else:
        canvas.text(x, 22, f"place = {layout.formula}", size=NORMAL, mono=True)
    cell = _fitting(388 / (tile.columns + tile.pad), 12)
    grid = Grid(48, 62, cell, 9.5, ROWS, tile.columns)
    _tile(canvas, tile, layout, grid)
    _key(canvas, tile, 48, _HEIGHT - 34, 388)
    _lanes(canvas, tile, layout, 458, 62)
    _verdict(canvas, layout, 458, _HEIGHT - 28, wide=True)
    canvas.text(
        458,
        _HEIGHT - 6,
        f"{tile.columns} {tile.element} a row; {_WORDS[tile.access]}",
        fill="muted",
    )
    return canvas.frame(" ".join(layout.verdict.reasons))


# ---------------------------------------------------------------- parts


def _fitting(width: float, most: float) -> float:
    """A cell's width, in whole pixels where it is wide: short numbers make a small figure."""
    return min(most, int(width) if width >= 6 else int(8 * width) / 8)


def _tone(bank: int, size: int) -> tuple[str, float]:
    """The hue and its strength of an element of `size` bytes that begins in a bank."""
    return hue(bank // 4), _TONES[bank % 4] if size < 16 else 0.6


def _tile(canvas: Canvas, tile: BankTile, layout: TileLayout, grid: Grid) -> None:
    """The elements, coloured by bank, and those that the warp takes outlined."""
    size = ELEMENT_BYTES[tile.element]
    gap = 1 if grid.cell_width > 4.5 else 0
    banks, step = layout.banks, 1
    if (
        not gap
        and size < WORD
        and tile.columns % 2 == 0
        and (banks[:, ::2] == banks[:, 1::2]).all()
    ):
        banks, step = banks[:, ::2], 2  # two that share a bank as one
    for bank in np.unique(banks):
        name, tone = _tone(int(bank), size)
        lines, was = [], None
        for row, column in zip(*np.nonzero(banks == bank), strict=True):
            x, y, width, height = grid.box(row, step * column)
            start, across = (x, y + height / 2), step * width - gap
            dx, dy = start if was is None else (start[0] - was[0], start[1] - was[1])
            lines.append(f"{'m' if was else 'M'}{dx:g} {dy:g}h{across:g}")
            was = start[0] + across, start[1]
        weight = grid.cell_height - 1
        canvas.path("".join(lines), stroke=name, weight=weight, opacity=tone)
    if layout.name == "padded":
        pads = Grid(grid.right, grid.y, grid.cell_width, grid.cell_height, ROWS, tile.pad)
        canvas.rect(pads.x, pads.y, pads.width, pads.height, stroke="muted", dash="3 3")
    taken = [grid.box(int(row), int(column)) for row, column in tile.targets]
    boxes = [(x, y - 0.5, tile.each * width - gap, height) for x, y, width, height in taken]
    canvas.cells(boxes, stroke="ink", weight=2)
    for row in range(0, ROWS, 8):
        _, y = grid.centre(row)
        canvas.text(grid.x - 8, y + 5, str(row), size=SMALLEST, anchor="end", fill="muted",
                    mono=True)  # fmt: skip
    step = next(n for n in (4, 8, 16, 32, 64, 128) if n * grid.cell_width >= 34)
    for column in range(0, tile.columns, step):
        canvas.text(grid.centre(0, column)[0], grid.y - 6, str(column), size=SMALLEST,
                    anchor="middle", fill="muted", mono=True)  # fmt: skip
    canvas.text(grid.x - 8, grid.y - 22, "row", size=SMALLEST, anchor="end", fill="muted")
    canvas.text(grid.x, grid.y - 22, "column", size=SMALLEST, fill="muted")


def _key(canvas: Canvas, tile: BankTile, x: float, y: float, width: float) -> None:
    """The colours of the banks, from bank 0 on."""
    size = ELEMENT_BYTES[tile.element]
    each = max(1, size // WORD)
    pitch = width / BANKS
    canvas.text(x - 8, y + 11, "bank", size=SMALLEST, anchor="end", fill="muted")
    for bank in range(0, BANKS, each):
        name, tone = _tone(bank, size)
        canvas.rect(x + bank * pitch, y, each * pitch - 1, 12, fill=name, fill_opacity=tone,
                    stroke="none")  # fmt: skip
    for bank in range(0, BANKS, 4):
        canvas.text(x + bank * pitch, y + 26, str(bank), size=SMALLEST, mono=True, fill="muted")


def _verdict(canvas: Canvas, layout: TileLayout, x: float, y: float, wide: bool = False) -> None:
    v = layout.verdict
    fill = "vermillion" if v.conflicts else "green"
    canvas.text(x, y, counted(v.wavefronts, "wavefront"), size=22, bold=True, fill=fill)
    text = f"ideal {v.ideal}"
    if wide:
        said = counted(v.conflicts, "bank conflict") if v.conflicts else "no bank conflict"
        text += f": {said}"
    canvas.text(x + 196, y, text, size=18)


def _lanes(canvas: Canvas, tile: BankTile, layout: TileLayout, x: float, y: float) -> None:
    """Of each lane its element, the byte offset, the bank, and its turn in the phase."""
    size, turns = ELEMENT_BYTES[tile.element], layout.turns
    words = layout.verdict.words
    base = int(layout.access.addresses[0]) - int(layout.offsets[tuple(tile.targets[0])])
    swatches: dict[tuple[str, float], list] = {}
    lines = []
    for half in range(2):
        left = x + 254 * half
        look = {"size": SMALLEST, "mono": True, "fill": "muted"}
        canvas.text(left, y - 10, "lane", **look)
        heading = _line("", "r,c", "byte", "bank", "turn")
        named = heading.lstrip("\u00a0")
        blank = text_width(heading, SMALLEST, mono=True) - text_width(named, SMALLEST, mono=True)
        canvas.text(left + 18 + blank, y - 10, named, **look)
        for place in range(LANES // 2):
            lane = half * (LANES // 2) + place
            top = y + 18.5 * place
            if turns[lane] > 1:
                canvas.rect(left - 3, top - 1.5, 245, 17, fill="vermillion-fill", stroke="none")
            first = int(words[lane][0]) % BANKS
            swatches.setdefault(_tone(first, size), []).append((left, top, 14, 14))
            row, column = map(int, tile.targets[lane])
            last = int(words[lane][-1]) % BANKS
            bank = str(first) if first == last else f"{first}–{last}"
            offset = int(layout.access.addresses[lane]) - base
            text = _line(str(lane), f"{row},{column}", str(offset), bank, str(turns[lane]))
            lines.append(Text(x=left + 18, y=round(top + 12.5, 1), text=text))
    for (name, tone), boxes in swatches.items():
        canvas.cells(boxes, fill=name, fill_opacity=tone, stroke="none")
    look = {"font-size": SMALLEST, "font-family": MONO, "fill": colour("ink")}
    canvas.add(G(elements=lines, extra=look))


def _line(lane: str, place: str, offset: str, bank: str, turn: str) -> str:
    """Columns of a table in one line; no-break spaces stay where SVG joins others."""
    return f"{lane:>2}{place:>6}{offset:>6}{bank:>6}{turn:>5}".replace(" ", "\u00a0")
