"""Chapter 11: when two warpgroups multiply and when they work on their softmax, by a model.

    group_schedule("flash_producer", "flash_ahead", "flash_ping_pong")

The order of instructions, waits and turns is that of the kernel's own run on the simulator; lengths
are a model's. Products take the tensor cores at the rate of `gpu("H200").wgmma`, one after another
in the order in which they are started. A float instruction takes a scheduler one clock, and an
exponential a warp's special functions eight; the two warps of a scheduler take turns at it. Tiles
are there when they are waited for.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from helpers.kernels.source import KernelError
from helpers.problem.flash_hopper import GROUP_ROWS, HopperRung
from helpers.problem.flash_inputs import make_inputs
from helpers.problem.ladder import rung
from helpers.simulator import gpu
from helpers.simulator.observe.instruction_trace import Issued

from ..canvas import SMALLEST, Canvas
from ..palette import MATRIX_HUES
from .lane_chart import Bar, LaneChart, LaneFrame, draw_axis, draw_lanes

_CHIP = "H200"
_SCHEDULERS = 4  # of a multiprocessor
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_LEFT, _RIGHT, _PITCH = 126.0, 950.0, 23.0
_PAUSE = 24.0  # clocks; shorter ones are not drawn


class Op(NamedTuple):
    """Something that a warp does.

    Attributes:
        kind: "work", "start" a product, "commit", "wait", "turn" (waits for its own) or "pass".
        clocks: of the tensor cores for a product, of a special function for an exponential.
        left: of a wait, the groups that may go on.
        result: of a product: S or O.
    """

    kind: str
    clocks: float = 0.0
    left: int = 0
    result: str = ""


class Span(NamedTuple):
    """What a warpgroup or its products did.

    Attributes:
        group: of the two.
        kind: S, O or softmax.
        tile: number of the tile of keys.
        start, end: in clocks.
        clocks: that it took its unit; less than from start to end if others were let in between.
    """

    group: int
    kind: str
    tile: int
    start: float
    end: float
    clocks: float


@dataclass
class _Warp:
    """One warp of a warpgroup on its way."""

    number: int
    ops: deque[Op]
    time: float = 0.0
    groups: list[float] = field(default_factory=list)  # when each is complete
    under_way: list[float] = field(default_factory=list)
    turns: deque[float] = field(default_factory=deque)  # when a turn was passed to it
    started: dict[str, int] = field(default_factory=lambda: {"S": 0, "O": 0})  # products, so far

    @property
    def stuck(self) -> bool:
        return not self.ops or (self.ops[0].kind == "turn" and not self.turns)


def group_schedule(*names: str, tiles: int = 4, d: int = 128) -> Canvas:
    """The schedule of two warpgroups, for one kernel or several above one another on one scale.

    Args:
        *names: of rungs of chapter 11 with two consumers: `flash_producer` and those after it.
        tiles: of keys.
        d: head dim, 64 or 128.

    Raises:
        KernelError: there is no such rung, or it has no producer.
    """
    found = {name: spans_of(name, tiles, d) for name in names}
    extent = max(span.end for spans in found.values() for span in spans)
    frame = LaneFrame(8, _LEFT, _RIGHT, extent, _PITCH)
    charts = [_chart(name, spans) for name, spans in found.items()]
    heights = [frame.height(chart) + 10 for chart in charts]
    label = "Two warpgroups in turn. " + " ".join(f"{c.title}: {c.remark}." for c in charts)
    canvas = Canvas(height=sum(heights) + 66, label=label.replace("\\_", "_"))
    y = 2.0
    for chart, height in zip(charts, heights, strict=True):
        draw_lanes(canvas, chart, frame, y)
        y += height
    draw_axis(canvas, frame, y, "clocks")
    note = "A model, tiles at hand: products at wgmma's full rate, a clock a float instruction, "
    canvas.text(8, y + 50, f"{note}8 an exponential.", size=SMALLEST, fill="muted")
    return canvas


def busy(spans: list[Span]) -> float:
    """The share of the time in which tensor cores multiply, from the first product to the last."""
    products = [span for span in spans if span.kind in "SO"]
    first, last = min(s.start for s in products), max(s.end for s in products)
    return sum(span.clocks for span in products) / (last - first)


@functools.lru_cache(maxsize=16)
def spans_of(name: str, tiles: int = 4, d: int = 128) -> list[Span]:
    """What both warpgroups of a kernel do, by the model; arguments as for `group_schedule`."""
    return _played([_Warp(n, deque(ops)) for n, ops in enumerate(_ops(name, tiles, d))])


def _ops(name: str, tiles: int, d: int) -> list[list[Op]]:
    """What the first warp of each of two warpgroups does in one block."""
    one = rung(name)
    if not isinstance(one, HopperRung) or not one.producers or one.stays:
        raise KernelError(f"{name} has no producer and two consumers that begin with the block.")
    one = one.with_parameters(B_R=2 * GROUP_ROWS)
    n = tiles * int(one.values["B_C"])
    Q, K, V = make_inputs(1, 1, n, d)
    launch = one.launch_of(Q, K, V, np.zeros_like(Q))
    report = dataclasses.replace(launch, grid=(1, 1, 1)).count(progress=False)
    lines = launch.kernel.source.split("\n")
    return [list(_ops_of(report.issued(warp=4 * group), lines)) for group in range(2)]


def _ops_of(issued: list[Issued], lines: list[str]) -> Iterator[Op]:
    """From the first product to the last wait; what only moves or counts takes no time."""
    chip = gpu(_CHIP)
    special = 32 / (chip.special / _SCHEDULERS)
    names = [one.name for one in issued]
    last = max(n for n, name in enumerate(names) if name.startswith("wgmma.wait_group"))
    first = min(n for n, name in enumerate(names) if name.startswith("setmaxnreg"))
    for one in issued[first : last + 1]:
        line = lines[one.line - 1] if one.line and one.line <= len(lines) else ""
        if one.name.startswith("wgmma.mma_async"):
            m, n, k = map(int, _SHAPE.search(one.name).groups())
            clocks = 2 * m * n * k / chip.wgmma["fp16"]
            yield Op("start", clocks, result="O" if "ELEMENT, true" in line else "S")
        elif one.name.startswith("wgmma.commit_group"):
            yield Op("commit")
        elif one.name.startswith("wgmma.wait_group"):
            yield Op("wait", left=int(re.search(r"wgmma_wait<(\d)>", line)[1]))
        elif "TURN" in line and one.name == "bar.sync":
            yield Op("turn")
        elif "TURN" in line and one.name == "bar.arrive":
            yield Op("pass")
        elif one.name.startswith("ex2"):
            yield Op("work", special)
        elif one.kind == "math" and "wgmma" not in one.name:
            yield Op("work")


def _played(warps: list[_Warp]) -> list[Span]:
    """Let the warps go on, always the one that can do so first."""
    spans: list[Span] = []
    free = {"scheduler": 0.0, "special": 0.0, "tensor": 0.0}
    while any(warp.ops for warp in warps):
        able = [warp for warp in warps if not warp.stuck]
        if not able:
            raise ValueError("Each of the warps waits for the other.")
        warp = min(able, key=lambda one: one.time)
        _do(warp, warp.ops.popleft(), warps, free, spans)
    return spans


def _do(warp: _Warp, op: Op, warps: list[_Warp], free: dict[str, float], spans: list[Span]) -> None:
    if op.kind == "work":
        unit = "special" if op.clocks else "scheduler"
        start = max(warp.time, free[unit])
        free[unit] = start + max(op.clocks, 1.0)
        warp.time = start + 1
        tile = warp.started["S"] - 1
        if tile >= 0:
            _add(spans, Span(warp.number, "softmax", tile, start, free[unit], 1.0))
    elif op.kind == "start":
        start = max(warp.time, free["tensor"])
        free["tensor"] = start + op.clocks
        warp.started[op.result] += not warp.under_way
        tile = warp.started[op.result] - 1
        warp.under_way.append(free["tensor"])
        warp.time += 1
        _add(spans, Span(warp.number, op.result, tile, start, free["tensor"], op.clocks))
    elif op.kind == "commit":
        warp.groups.append(max(warp.under_way, default=warp.time))
        warp.under_way.clear()
    elif op.kind == "wait":
        done = warp.groups[: len(warp.groups) - op.left]
        warp.time = max([warp.time, *done])
    elif op.kind == "turn":
        warp.time = max(warp.time, warp.turns.popleft())
    else:
        warps[1 - warp.number].turns.append(warp.time)


def _add(spans: list[Span], new: Span) -> None:
    """Let it lengthen the span that it belongs to; softmax that paused for long has two."""
    for n in range(len(spans) - 1, -1, -1):
        one = spans[n]
        if (one.group, one.kind) == (new.group, new.kind):
            paused = new.kind == "softmax" and new.start - one.end > _PAUSE
            if one.tile == new.tile and not paused:
                spans[n] = one._replace(end=max(one.end, new.end), clocks=one.clocks + new.clocks)
                return
            break
    spans.append(new)


def _chart(name: str, spans: list[Span]) -> LaneChart:
    groups = sorted({span.group for span in spans})
    rows = tuple(f"{g}: {what}" for g in groups for what in ("products", "softmax"))
    bars = []
    for span in spans:
        row = 2 * span.group + (span.kind == "softmax")
        label = {"S": "S_{}", "O": "PV_{}", "softmax": "P_{}"}[span.kind].format(span.tile)
        bars.append(Bar(row, span.start, span.end, _hue(span.kind), label))
    end = max(span.end for span in spans)
    remark = f"{end:,.0f} clocks, tensor cores busy for {busy(spans):.0%}"
    return LaneChart(rung(name).file.replace("_", "\\_"), remark, rows, bars, [], [], end)


def _hue(kind: str) -> str:
    return {"S": "sky", "O": MATRIX_HUES["O"], "softmax": MATRIX_HUES["P"]}[kind]
