"""A warp's 32 addresses and the 32-byte sectors that they fall into, lane by lane, from a trace.

The module is not called `sectors`: `helpers.figures.sectors` is the figure of a single access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from helpers.panels.numbers import spans
from helpers.problem.attention import cdiv
from helpers.simulator.observe.counters import global_sectors
from helpers.simulator.observe.report import Report

from ..canvas import LARGE, NORMAL, SMALLEST, Canvas, Frame, counted, literal, text_width, told
from ..events import LANES, SECTOR_BYTES, WORD, WarpAccess, warp_access
from ..parts import lane_row
from ..products import run_product

_LEFT, _LANE, _WORD = 72, 27.0, 25.6
_WORDS = SECTOR_BYTES // WORD
_PER_ROW, _GAP = 4, 12
_PANEL = 202


class View(NamedTuple):
    """One access to draw: `title` above it, `code` its source line, `columns` of its matrix."""

    title: str
    access: WarpAccess
    code: str = ""
    columns: int | None = None


def view(report: Report, array: str, title: str = "", columns: int | None = None, **which) -> View:
    """The view of one access of a warp to global memory.

    Args:
        report: of a counted run.
        array: name of the array.
        title: written above; the kernel and the array unless given.
        columns: of the matrix, so that elements are written as [row][column].
        **which: line, kind, block, warp, step, as for `events.warp_access`.

    Raises:
        ValueError: there is no such access.
    """
    access = warp_access(report, array, space="global", **which)
    lines = report.source.splitlines()
    code = lines[access.line - 1].split("//")[0].strip() if access.line <= len(lines) else ""
    if f"{array}[" not in code:
        code = ""  # the compiler moved the access, and the line shows another
    verb = "load" if access.is_load else "store"
    return View(title or f"{report.entry}: {verb} of {array}", access, code, columns)


def coalescing(
    array: str = "Q", N: int = 32, d: int = 32, TILE: int = 16, COARSE: int = 2
) -> list[Frame]:
    """A warp's first access to Q, K or S: in `05_coarsened.cu` above, in `06_coalesced.cu` below.

    Args:
        array: "Q" or "K", which are loaded, or "S", which is stored.
        N, d, TILE, COARSE: sizes of the two runs.

    Raises:
        ValueError: there is no such access.
    """
    kind = "store" if array == "S" else "load"
    views = []
    for file in ("05_coarsened.cu", "06_coalesced.cu"):
        report = run_product(file, N, d, TILE, COARSE).report
        columns = N if array == "S" else d
        views.append(view(report, array, f"{file}: {kind} of {array}", columns, kind=kind))
    return sector_frames(views)


def sector_frames(views: Sequence[View], lanes_a_step: int = 4) -> list[Frame]:
    """How the lanes' addresses of one or two accesses gather in sectors, some lanes a step.

    Args:
        views: what to draw, one below the other.
        lanes_a_step: lanes that come with each step.

    Raises:
        ValueError: there are no views or more than two, or `lanes_a_step` is below 1.
    """
    if not 1 <= len(views) <= 2 or lanes_a_step < 1:
        raise ValueError("sector_frames takes one or two views, and one lane a step or more.")
    panels = [_Panel(each, _PANEL * n) for n, each in enumerate(views)]
    label = "; ".join(f"{one.view.title}: {len(one.sectors)} sectors" for one in panels)
    frames = []
    for first in range(0, LANES, lanes_a_step):
        last = min(first + lanes_a_step, LANES) - 1
        canvas = Canvas(height=_PANEL * len(panels) + 6, label=f"{label}.")
        for panel in panels:
            panel.draw(canvas, first, last)
        if len(panels) > 1:
            canvas.line(12, _PANEL - 4, 948, _PANEL - 4, stroke="grid")
        frames.append(canvas.frame(_caption(panels, first, last)))
    return told(frames, -1)


class _Panel:
    """One access: its lanes, and every sector that it will have touched at the end."""

    def __init__(self, what: View, top: float):
        self.view, self.top = what, top
        a = self.access = what.access
        self.words_of = {lane: a.words(lane) for lane in a.lanes}
        self.sectors = a.sectors
        if len(self.sectors) > LANES:
            raise ValueError(f"{len(self.sectors)} sectors are too many to show; 32 fit.")
        self.base = a.start // WORD
        # One way of writing for all: rows and columns only where no sector reaches into two rows.
        columns = what.columns or 0
        starts = [sector * _WORDS - self.base for sector in self.sectors]
        fits = columns and all(start % columns + _WORDS <= columns for start in starts)
        self.columns = columns if fits else None

        # Where sectors leave no room above them, their names stand in words that nobody asks for.
        room = min(len(self._free(sector)) for sector in self.sectors) * _WORD
        longest = max(text_width(self._name(s), SMALLEST, mono=True) for s in self.sectors)
        self.inside = cdiv(len(self.sectors), _PER_ROW) <= 4 and longest <= room

    def _free(self, sector: int) -> range:
        """The longest run of a sector's words, counted from its start, that nobody asks for."""
        asked = {word for words in self.words_of.values() for word in words}
        free = [n for n in range(_WORDS) if sector * _WORDS + n not in asked]
        first, last = max(spans(free), key=lambda run: run[1] - run[0], default=(0, -1))
        return range(first, last + 1)

    def so_far(self, last: int) -> tuple[int, int]:
        """(sectors, distinct bytes asked for) of the lanes up to `last`."""
        a = self.access
        active = a.active & (np.arange(LANES) <= last)
        used = np.unique(a.addresses[active][:, None] + np.arange(a.bytes))
        return int(global_sectors(a.addresses, a.bytes, active)), used.size

    def draw(self, canvas: Canvas, first: int, last: int) -> None:
        canvas.text(_LEFT, self.top + 20, literal(self.view.title), size=18, bold=True)
        code = self.view.code
        room = 896 - text_width(self.view.title, 18)
        if code and text_width(code, mono=True) <= room:
            canvas.text(960 - 12, self.top + 20, code, mono=True, anchor="end", fill="muted")
        self._lanes(canvas, first, last)
        self._sectors(canvas, first, last)
        self._sums(canvas, last)

    def _lanes(self, canvas: Canvas, first: int, last: int) -> None:
        y = self.top + 30
        canvas.text(_LEFT - 8, y + 19, "lane", anchor="end")

        def look_of(lane: int) -> tuple[dict, bool]:
            if lane not in self.words_of:
                return {"stroke": "grid", "dash": "3 3"}, False
            if lane > last:
                return {"fill": "faint", "stroke": "grid"}, False
            now = lane >= first
            return {
                "fill": "blue-fill", "stroke": "ink" if now else "blue", "weight": 3 if now else 1
            }, True  # fmt: skip

        lane_row(canvas, _LEFT, y, _LANE, look_of)

    def _sectors(self, canvas: Canvas, first: int, last: int) -> None:
        rows = cdiv(len(self.sectors), _PER_ROW)
        top, room = self.top + 62, 110
        pitch = min(46.0, room / rows)
        labelled = rows <= 2
        height = min(22.0, pitch - (22 if labelled else 4))
        asked: dict[int, list[int]] = {}
        for lane, words in self.words_of.items():
            if lane <= last:
                for word in words:
                    asked.setdefault(word, []).append(lane)
        if not labelled and not self.inside:
            self._first_names(canvas, top, pitch)
        for place, sector in enumerate(self.sectors):
            x = _LEFT + place % _PER_ROW * (_WORDS * _WORD + _GAP)
            y = top + place // _PER_ROW * pitch + (20 if labelled else 0)
            self._sector(canvas, x, y, height, sector, asked, first, last)
            if labelled:
                canvas.text(x, y - 6, self._name(sector), fill="muted", mono=True)
            elif self.inside:
                free = self._free(sector)
                canvas.text(x + (free[0] + 0.5 * len(free)) * _WORD, y + 16, self._name(sector),
                            fill="muted", mono=True, anchor="middle", size=SMALLEST)  # fmt: skip

    def _sector(self, canvas, x, y, height, sector, asked, first, last) -> None:
        words = range(sector * _WORDS, (sector + 1) * _WORDS)
        touched = any(word in asked for word in words)
        width = _WORDS * _WORD
        if touched:
            canvas.rect(x, y, width, height, fill="orange-fill", stroke="none")
        box = {word: (x + n * _WORD, y, _WORD, height) for n, word in enumerate(words)}
        canvas.cells([box[w] for w in words if w in asked], fill="blue-fill", stroke="blue")
        canvas.cells([box[w] for w in words if w not in asked], stroke="grid", dash="3 3")
        now = [w for w in words if any(first <= lane for lane in asked.get(w, ()))]
        canvas.cells([box[w] for w in now], fill="none", stroke="ink", weight=2)
        if touched:
            canvas.rect(x - 1, y - 1, width + 2, height + 2, r=2, stroke="orange", weight=3)
        for word in words if height >= 17 else ():
            if lanes := asked.get(word):
                text = str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}"
                middle = box[word][0] + _WORD / 2, y + height / 2 + 0.36 * NORMAL
                canvas.text(*middle, text, anchor="middle", mono=True)

    def _first_names(self, canvas: Canvas, top: float, pitch: float) -> None:
        """Left of every other row the row, or else the element, with which it begins."""
        for place in range(0, len(self.sectors), 2 * _PER_ROW):
            start = self.sectors[place] * _WORDS - self.base
            number = start // self.columns if self.columns else start
            y = top + place // _PER_ROW * pitch + 12
            text = f"{self.access.array}[{number}]" if len(str(number)) < 4 else str(number)
            canvas.text(_LEFT - 6, y, text, mono=True, size=SMALLEST, anchor="end", fill="muted")

    def _name(self, sector: int) -> str:
        """The elements in a sector, as the array numbers them."""
        start = sector * _WORDS - self.base
        name = self.access.array
        if self.columns:
            row, column = divmod(start, self.columns)
            return f"{name}[{row}][{column}…{column + _WORDS - 1}]"
        return f"{name}[{start}…{start + _WORDS - 1}]"

    def _sums(self, canvas: Canvas, last: int) -> None:
        found, used = self.so_far(last)
        y, fetched = self.top + _PANEL - 13, found * SECTOR_BYTES
        used_for = "used" if self.access.is_load else "stored"
        canvas.text(_LEFT, y, counted(found, "sector"), size=LARGE, bold=True)
        canvas.text(_LEFT + 150, y, f"of {fetched} bytes in them, {used} are {used_for}")
        canvas.text(_LEFT + 520, y, _percent(used, fetched), size=LARGE, bold=True)
        if last >= LANES - 1:
            canvas.text(948, y, "1 request", anchor="end")


def _caption(panels: list[_Panel], first: int, last: int) -> str:
    lanes = f"Lanes {first} to {last}" if last > first else f"Lane {first}"
    places = ("above", "below") if len(panels) == 2 else ("",)
    counts = [panel.so_far(last) for panel in panels]
    if last < LANES - 1:
        each = [
            f"{counted(found, 'sector')} so far {place}".rstrip()
            for (found, _), place in zip(counts, places, strict=True)
        ]
        return f"{lanes} ask for their words; a sector comes whole: {', '.join(each)}."
    sentences = []
    for panel, (found, used), place in zip(panels, counts, places, strict=True):
        fetched = found * SECTOR_BYTES
        head = f"{place.capitalize()}, one" if place else "One"
        verb = "load" if panel.access.is_load else "store"
        sentences.append(
            f"{head} {verb} of a warp is one request for {counted(found, 'sector')}: "
            f"{used} of {fetched} bytes are used ({_percent(used, fetched)})."
        )
    return " ".join(sentences)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %" if whole else ""
