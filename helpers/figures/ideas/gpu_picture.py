"""The GPU in one picture, built up from a thread to the whole chip, with measured numbers."""

from __future__ import annotations

from collections.abc import Callable

from helpers.measure.facts import GpuFacts
from helpers.measure.tables import size_of
from helpers.simulator import gpu

from ..canvas import NORMAL, Canvas, Frame, telling, text_width
from ..events import LANES

_HEIGHT = 446
_LANES = (22.0, 8.0, 14.5)  # x and y of a warp's lanes, and from one to the next
_SM = (8.0, 58.0, 624.0, 268.0)  # box of the one SM that is drawn large
_CHIP = (662.0, 58.0, 290.0, 268.0)
_L2 = (8.0, 340.0, 944.0, 44.0)
_DRAM = (8.0, 396.0, 944.0, 44.0)
_QUARTER = 152.0  # from one quarter of the SM to the next
_WARP = 17.0
_ACROSS = 8  # warps side by side
_WORDS = 18  # size of what stands in boxes
_COLUMNS = (234.0, 330.0, 468.0)  # of the memories' size, latency and rate
_STEPS = ("thread", "warp", "scheduler", "SM", "shared", "chip", "L2", "DRAM", "all")

_Box = tuple[float, float, float, float]


def gpu_picture(facts: GpuFacts) -> list[Frame]:
    """One step for each part of the GPU, from a thread outwards, and one with all of them.

    Args:
        facts: the GPU's sizes, latencies and rates; all numbers of the figure are from there, but
            for the fastest rate of L2, which the simulator's `gpu` of that name has.
    """
    picture = _Picture(facts)
    frames = [picture.frame(step) for step in _STEPS]
    return [*frames[:-1], telling(frames[-1])]


class _Picture:
    """The parts, their numbers and their sentences."""

    def __init__(self, facts: GpuFacts):
        self.facts = facts
        limits, sheet = facts.limits, facts.data_sheet
        self.sms = limits["sms"]
        self.threads = limits["maxThreadsPerMultiProcessor"]
        self.warps = self.threads // LANES
        self.schedulers = int(sheet["schedulersPerMultiprocessor"])
        self.registers = limits["regsPerMultiprocessor"]
        self.l1 = size_of(sheet["l1AndSharedBytesPerMultiprocessor"])
        self.shared = size_of(limits["sharedMemPerMultiprocessor"])
        self.l2 = size_of(limits["l2CacheSize"])
        self.memory = f"{sheet['memory_GB']:.0f} GB"
        self.cycles = {level: f"{cycles:.0f}" for level, cycles in facts.latency.items()}
        a_clock = facts.measured["shared_bytes_per_clock_per_sm"]
        self.shared_rate = f"{a_clock * self.sms * facts.clock / 1e12:.0f} TB/s, all SMs"
        self.a_clock = f"{a_clock:.0f}"
        # What L2 gives depends on the loop that reads it: a simple one, the fastest.
        self.l2_loops = facts.measured["l2_read_TBps_16MB"], gpu(facts.device).measured["l2"] / 1e12
        self.l2_rate = "{:.0f}–{:.0f} TB/s, all SMs".format(*self.l2_loops)
        self.dram_rate = f"{facts.measured['dram_read_TBps']:.1f} TB/s, all SMs"

    def frame(self, step: str) -> Frame:
        """The picture as far as it goes in `step`, that step's part with a thick border."""
        canvas = Canvas(height=_HEIGHT, label=f"The parts of an {self.facts.device}: {step}.")
        parts: dict[str, Callable[[Canvas, bool], _Box]] = {
            "thread": self._thread,
            "warp": self._warp,
            "scheduler": self._scheduler,
            "SM": self._sm,
            "shared": self._shared,
            "chip": self._chip,
            "L2": lambda canvas, on: self._memory(canvas, "L2", on),
            "DRAM": lambda canvas, on: self._memory(canvas, "DRAM", on),
        }
        last = _STEPS.index(step)
        boxes = {name: draw(canvas, i <= last) for i, (name, draw) in enumerate(parts.items())}
        if step in boxes:
            canvas.rect(*boxes[step], r=4, stroke="ink", weight=3)
        return canvas.frame(self._caption(step))

    # ---------------------------------------------------------------- parts

    def _lane(self, lane: int) -> _Box:
        x, y, pitch = _LANES
        return x + lane * pitch, y, pitch - 3, 26

    def _thread(self, canvas: Canvas, on: bool) -> _Box:
        box = self._lane(0)
        canvas.rect(*box, r=4, fill="orange-fill", stroke="orange")
        return box

    def _warp(self, canvas: Canvas, on: bool) -> _Box:
        x, y, pitch = _LANES
        boxes = [self._lane(lane) for lane in range(1, LANES)]
        right = x + LANES * pitch
        if not on:
            canvas.text(x + pitch + 12, y + 20, "a thread", size=_WORDS, bold=True)
            return x, y, right, 0
        canvas.cells(boxes, **_look("orange", on))
        canvas.text(right + 12, y + 20, f"a warp: {LANES} threads", size=_WORDS, bold=True)
        warp = self._warp_box(0, 0)
        for start, end in ((x, warp[0]), (right - 3, warp[0] + warp[2])):
            canvas.line(start, y + 28, end, warp[1], stroke="muted", dash="4 3")
        return x - 4, y - 4, LANES * pitch + 5, 34

    def _warp_box(self, quarter: int, warp: int) -> _Box:
        x, y = _SM[0] + 14 + quarter * _QUARTER, _SM[1] + 44
        return x + warp % _ACROSS * _WARP, y + warp // _ACROSS * _WARP, _WARP - 3, _WARP - 3

    def _quarter(self, canvas: Canvas, number: int, on: bool) -> _Box:
        """Warps, their scheduler and their registers."""
        x, y = _SM[0] + 8 + number * _QUARTER, _SM[1] + 38
        each = self.warps // self.schedulers
        canvas.cells([self._warp_box(number, warp) for warp in range(each)], **_look("orange", on))
        kept = size_of(4 * self.registers / self.schedulers)
        below = y + 10 + -(-each // _ACROSS) * _WARP
        words = (("sky", f"{each} warps", None), ("sky", "scheduler", "sky"),
                 ("yellow", f"registers {kept}", "yellow"))  # fmt: skip
        for row, (hue, text, boxed) in enumerate(words):
            top = below + row * 38 - 6
            if boxed:
                canvas.rect(x, top, _QUARTER - 8, 32, r=4, **_look(hue, on))
            if on:
                size = NORMAL if text_width(text, _WORDS) > _QUARTER - 8 else _WORDS
                canvas.text(x + _QUARTER / 2 - 4, top + 22, text, size=size, anchor="middle")
        return x - 3, y - 4, _QUARTER - 2, below + 2 * 38 + 34 - y

    def _scheduler(self, canvas: Canvas, on: bool) -> _Box:
        return self._quarter(canvas, 0, on)

    def _sm(self, canvas: Canvas, on: bool) -> _Box:
        canvas.rect(*_SM, r=6, stroke="ink" if on else "grid", weight=1.5)
        if on:
            words = f"one SM: {self.warps} warps, {self.threads:,} threads"
            canvas.text(_SM[0] + _SM[2] - 12, _SM[1] + 26, words, size=_WORDS, anchor="end",
                        bold=True)  # fmt: skip
        for number in range(1, self.schedulers):
            self._quarter(canvas, number, on)
        return _SM

    def _shared(self, canvas: Canvas, on: bool) -> _Box:
        box = _SM[0] + 8, _SM[1] + _SM[3] - 50, _SM[2] - 16, 42.0
        canvas.rect(*box, r=4, **_look("green", on))
        if on:
            wait = f"{self.cycles['shared']}, {self.cycles['L1']} cycles"
            self._line(canvas, box, "shared memory, L1", self.l1, wait, self.shared_rate)
        return box

    def _chip(self, canvas: Canvas, on: bool) -> _Box:
        x, y, width, height = _CHIP
        across = 12
        rows = -(-self.sms // across)
        cell = (width - 24) / across, (height - 52) / rows
        boxes = [
            (x + 12 + i % across * cell[0], y + 40 + i // across * cell[1], cell[0] - 4,
             cell[1] - 4) for i in range(self.sms)
        ]  # fmt: skip
        canvas.rect(*_CHIP, r=6, stroke="ink" if on else "grid", weight=1.5)
        canvas.cells(boxes[1:], **_look("blue", on))
        if on:
            canvas.cells(boxes[:1], fill="blue", stroke="blue")
            canvas.text(x + 12, y + 26, f"{self.sms} SMs", size=_WORDS, bold=True)
        right = _SM[0] + _SM[2]
        first = boxes[0]
        for start, end in ((_SM[1], first[1]), (_SM[1] + _SM[3], first[1] + first[3])):
            canvas.line(right, start, first[0], end, stroke="muted" if on else "grid", dash="4 3")
        return _CHIP

    def _memory(self, canvas: Canvas, level: str, on: bool) -> _Box:
        box, hue, name, size, rate, who = {
            "L2": (_L2, "purple", "L2 cache", self.l2, self.l2_rate, "one for all SMs"),
            "DRAM": (_DRAM, "vermillion", "GPU memory (HBM)", self.memory, self.dram_rate,
                     "arrays of cp are here"),
        }[level]  # fmt: skip
        canvas.rect(*box, r=4, **_look(hue, on))
        if on:
            self._line(canvas, box, name, size, f"{self.cycles[level]} cycles", rate)
            canvas.text(_CHIP[0], box[1] + 28, who, size=_WORDS)
        return box

    def _line(self, canvas: Canvas, box: _Box, name: str, *numbers: str) -> None:
        """What stands in a memory's bar: its name, and size, latency and rate in columns."""
        y = box[1] + box[3] / 2 + 6
        canvas.text(box[0] + 10, y, name, size=_WORDS, bold=True)
        for x, text in zip(_COLUMNS, numbers, strict=True):
            canvas.text(x, y, text, size=_WORDS)

    # ---------------------------------------------------------------- words

    def _caption(self, step: str) -> str:
        cycles, each = self.cycles, self.warps // self.schedulers
        nanoseconds = 1e9 * self.facts.latency["DRAM"] / self.facts.clock
        return {
            "thread": "A thread runs the kernel for its own element. It keeps its numbers in "
            "registers of its own.",
            "warp": f"{LANES} threads are a warp: an instruction is issued once, for all.",
            "scheduler": f"A scheduler has up to {each} warps. In every cycle of the clock it "
            "takes one that is ready and issues its next instruction; the others wait.",
            "SM": f"{self.schedulers} schedulers make a streaming multiprocessor, SM. Its "
            f"{self.registers:,} registers of 4 bytes are {self.registers // self.threads} for "
            f"each of {self.threads:,} threads. A block runs on one SM from start to end.",
            "shared": f"Each SM has {self.l1} of fast memory: up to {self.shared} of it shared "
            f"memory, which a block's threads use together, the rest L1 cache. A value is there "
            f"after {cycles['shared']} or {cycles['L1']} cycles; each SM gets "
            f"{self.a_clock} bytes a cycle from it.",
            "chip": f"The chip has {self.sms} SMs. The blocks of a launch are handed out to all of "
            "them; with fewer blocks some have nothing to do.",
            "L2": f"What an SM does not hold it asks of the L2 cache, which all SMs share: "
            f"{cycles['L2']} cycles. Out of 16 MB in it, all SMs read {self.l2_loops[0]:.1f} TB/s "
            f"with a simple loop and {self.l2_loops[1]:.1f} with the fastest that was tried.",
            "DRAM": f"What is not there either comes from the GPU's memory: {cycles['DRAM']} "
            f"cycles, {nanoseconds:.0f} ns. Arrays of cp lie here.",
            "all": f"Farther out is larger, later and slower. All cycles and rates were measured "
            f"on an {self.facts.device}, {self.facts.date}.",
        }[step]


def _look(hue: str, on: bool) -> dict:
    return {"fill": f"{hue}-fill", "stroke": hue} if on else {"stroke": "grid", "dash": "3 3"}
