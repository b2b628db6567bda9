"""How warps fill the time that a load takes: one SM's loads on a line of time, and Little's law.

The model has two numbers of a GPU: a load's value comes after the latency, and the SM's share of
the memory's rate lets one request through after another. Beside it stands what was measured.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from helpers.measure.facts import GpuFacts

from ..canvas import Canvas, Frame, counted, telling
from ..events import LANES

REQUEST = 4 * LANES  # bytes of a warp's load of neighbouring floats
_HEIGHT = 412
_X, _WIDTH = 20.0, 600.0  # of the line of time
_TOP, _ROWS = 44.0, 232.0
_PIPE, _AXIS = 300.0, 346.0
_CYCLES = 1600.0
_TABLE = 660.0
_TOLD = ((2, 1), (4, 1), (64, 1), (64, 8))  # warps and loads of the later steps


@dataclass(frozen=True)
class WarpTurn:
    """A warp's loads and the use of their values: cycles from the start.

    Attributes:
        warp: its number.
        issued: when each load was issued.
        arrived: when each value was there.
        used: when the warp could use all of them.
    """

    warp: int
    issued: tuple[float, ...]
    arrived: tuple[float, ...]

    @property
    def used(self) -> float:
        return self.arrived[-1]


def turns(
    warps: int, loads: int, latency: float, service: float, until: float, schedulers: int = 4
) -> list[WarpTurn]:
    """What the warps of an SM do up to a cycle: load, wait, use, and again.

    Args:
        warps: on the SM.
        loads: that a warp issues before it uses their values.
        latency: cycles from a load to its value.
        service: cycles between two requests' values, as the memory can give no more.
        until: no turn begins at or after this cycle.
        schedulers: of the SM; each issues one instruction a cycle, for its own warps.

    Raises:
        ValueError: there are no warps or no loads.
    """
    if warps < 1 or loads < 1:
        raise ValueError(f"there is at least one warp and one load, not {warps} and {loads}.")
    ready = [(0.0, warp) for warp in range(warps)]
    free, last = [0.0] * schedulers, -service
    found = []
    while ready[0][0] < until:
        when, warp = heapq.heappop(ready)
        start = max(when, free[warp % schedulers])
        issued = tuple(start + load for load in range(loads))
        free[warp % schedulers] = start + loads
        arrived = []
        for cycle in issued:
            last = max(cycle + latency, last + service)
            arrived.append(last)
        found.append(WarpTurn(warp, issued, tuple(arrived)))
        heapq.heappush(ready, (last + 1, warp))
    return found


def latency_hiding(facts: GpuFacts, warps: int, loads: int = 1) -> Canvas:
    """The line of time of one SM, and what all SMs together read, by law and measured.

    Args:
        facts: the GPU's latency and rates.
        warps: on each SM.
        loads: that a warp has in flight.
    """
    return _Film(facts, warps, loads).canvas(_CYCLES)


def hiding_frames(facts: GpuFacts) -> list[Frame]:
    """One warp's load issued, waited for and used; then 2, 4 and 64 warps, and more loads."""
    alone = _Film(facts, 1, 1)
    wait = facts.latency["DRAM"]
    parts = (
        (1.0, "One warp issues a load, and needs its value next. Until that comes, the load is in "
         "flight and the warp waits."),
        (wait, f"It waits for {wait:.0f} cycles: that is the load's latency. Nobody else is on "
         "this SM, so its schedulers have nothing to issue."),
        (_CYCLES, "The value comes, the warp uses it and issues its next load. Nearly all the time "
         "it was waiting."),
    )  # fmt: skip
    frames = [alone.canvas(until).frame(caption) for until, caption in parts]
    for warps, loads in _TOLD:
        film = _Film(facts, warps, loads)
        frames.append(film.canvas(_CYCLES).frame(film.caption()))
    frames[-2] = telling(frames[-2])
    return frames


class _Film:
    """One SM with some warps, and what that is worth."""

    def __init__(self, facts: GpuFacts, warps: int, loads: int):
        self.facts, self.warps, self.loads = facts, warps, loads
        self.latency = facts.latency["DRAM"]
        # Cycles in which the SM's share of the memory's rate lets one request through.
        self.service = REQUEST * facts.limits["sms"] * facts.clock / facts.dram_read
        self.turns = turns(warps, loads, self.latency, self.service, _CYCLES)
        self.in_flight = warps * loads * REQUEST
        self.law = facts.most_read(self.in_flight)

    @property
    def measured(self) -> float | None:
        """Bytes a second that such warps read, if that was measured."""
        return self.facts.read_by_loads.get(self.loads, {}).get(self.warps)

    def canvas(self, until: float) -> Canvas:
        """The line of time up to a cycle, the memory's values below it, and the numbers."""
        label = (
            f"{counted(self.warps, 'warp')} on an SM, each with {counted(self.loads, 'load')} in "
            f"flight, over {_CYCLES:.0f} cycles."
        )
        canvas = Canvas(height=_HEIGHT, label=label)
        head = f"{counted(self.warps, 'warp')} on an SM, {counted(self.loads, 'load')} in flight"
        canvas.text(_X, 24, head + (" each" if self.warps > 1 else ""), size=20, bold=True)
        self._warps(canvas, until)
        self._pipe(canvas, until)
        self._axis(canvas)
        self._numbers(canvas)
        return canvas

    # ---------------------------------------------------------------- the line of time

    def _at(self, cycle: float) -> float:
        return _X + min(cycle, _CYCLES) / _CYCLES * _WIDTH

    def _warps(self, canvas: Canvas, until: float) -> None:
        """A row for each warp: where it issues, waits and uses."""
        pitch = min(_ROWS / self.warps, 44.0)
        height = 0.72 * pitch
        waits, issues, uses = [], [], []
        for turn in self.turns:
            y = _TOP + turn.warp * pitch + (pitch - height) / 2
            lane = height / self.loads
            for load, (start, end) in enumerate(zip(turn.issued, turn.arrived, strict=True)):
                if start < until:
                    x, right = self._at(start), self._at(min(end, until))
                    waits.append((x, y + load * lane, right - x, 0.86 * lane))
            if turn.issued[0] < until:
                issues.append((self._at(turn.issued[0]), y, 3.0, height))
            if turn.used < min(until, _CYCLES):
                uses.append((self._at(turn.used) - 3, y, 3.0, height))
        canvas.cells(waits, fill="blue-fill", stroke="none")
        canvas.cells(issues, fill="blue", stroke="none")
        canvas.cells(uses, fill="green", stroke="none")

    def _pipe(self, canvas: Canvas, until: float) -> None:
        """When the memory gives the SM a request's values."""
        canvas.text(_X, _PIPE - 8, "values from the GPU's memory")
        canvas.rect(_X, _PIPE, _WIDTH, 24, fill="faint", stroke="grid")
        boxes = []
        for turn in self.turns:
            for end in turn.arrived:
                start = max(end - self.service, 0.0)
                if end <= min(until, _CYCLES) + 1:
                    boxes.append((self._at(start), _PIPE, self._at(end) - self._at(start), 24))
        canvas.cells(boxes, fill="vermillion", stroke="none")

    def _axis(self, canvas: Canvas) -> None:
        canvas.line(_X, _AXIS, _X + _WIDTH, _AXIS, stroke="muted")
        for tick in range(0, int(_CYCLES) + 1, 400):
            x = self._at(tick)
            canvas.line(x, _AXIS, x, _AXIS + 6, stroke="muted")
            anchor = "start" if not tick else "end" if tick == _CYCLES else "middle"
            unit = " cycles" if tick == _CYCLES else ""
            canvas.text(x, _AXIS + 24, f"{tick}{unit}", anchor=anchor, fill="muted")
        x = _X
        for hue, meaning, step in (
            ("blue", "issues a load", 150), ("blue-fill", "waits", 90),
            ("green", "uses the value", 160), ("vermillion", "a value comes", 0),
        ):  # fmt: skip
            canvas.rect(x, _HEIGHT - 25, 14, 16, fill=hue, stroke="none")
            canvas.text(x + 20, _HEIGHT - 12, meaning)
            x += step

    # ---------------------------------------------------------------- numbers

    def _numbers(self, canvas: Canvas) -> None:
        """Little's law with its numbers, and the table of what was measured."""
        facts, x = self.facts, _TABLE
        under_way = facts.limits["sms"] * self.in_flight
        seconds = self.latency / facts.clock
        canvas.text(x, 24, "Little's law", size=20, bold=True)
        amount = f"{under_way / 1e3:,.0f} kB"
        canvas.lines(x, 50, [
            "rate = bytes in flight / latency",
            f"{self.warps} × {self.loads} × {REQUEST} B × {facts.limits['sms']} SMs",
            f"= {amount} in {1e9 * seconds:.0f} ns = {_rate(under_way / seconds)} TB/s",
        ])  # fmt: skip
        best = facts.dram_read
        if self.law >= best:
            canvas.text(x, 118, f"The memory gives {_rate(best)} TB/s.")
        canvas.text(x, 154, f"{counted(self.loads, 'load')} a warp", bold=True)
        heads = ((70.0, "warps"), (170.0, "by law"), (286.0, "measured"))
        for right, text in heads:
            canvas.text(x + right, 180, text, anchor="end", fill="muted")
        by_warps = facts.read_by_loads.get(self.loads, {})
        for row, (warps, rate) in enumerate(by_warps.items()):
            y = 206 + row * 27
            if warps == self.warps:
                canvas.rect(x - 4, y - 20, 298, 27, r=4, fill="vermillion-fill", stroke="none")
            law = facts.most_read(warps * self.loads * REQUEST)
            for (right, _), text in zip(heads, (str(warps), _rate(law), _rate(rate)), strict=True):
                canvas.text(x + right, y, text, size=18, anchor="end", mono=True)
        canvas.text(x, 404, f"TB/s, all SMs, {facts.device}", fill="muted")

    def caption(self) -> str:
        """What there is to see with so many warps."""
        busy = self.law / self.facts.dram_read
        if self.warps < 8:
            return (
                f"{self.warps} warps: while one waits, the others issue their loads. "
                f"{self.warps} values come in the time of one, and the SM reads {self.warps} "
                "times as much."
            )
        if busy < 1:
            return (
                f"{self.warps} warps, as many as the SM has room for: somebody nearly always has a "
                f"load under way. Values come at {100 * busy:.0f} % of the memory's rate."
            )
        return (
            f"{self.loads} loads a warp ask for more than the memory can give. It is full now, and "
            f"a load takes longer than {self.latency:.0f} cycles: more in flight no longer helps."
        )


def _rate(rate: float) -> str:
    return f"{rate / 1e12:.2f}"
