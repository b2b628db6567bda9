"""An mbarrier through its phases: who arrives, which bytes come, and which parity lets whom go on.

    Player(phase_frames())

A producer and two warps of consumers share one place for tiles, with a full and an empty mbarrier.
`Barrier` follows the PTX ISA: "mbarrier", "Phase of the mbarrier object".
"""

from __future__ import annotations

from dataclasses import dataclass

from ..canvas import Canvas, Frame, told

TILE_BYTES = 16384
WARPS = 2
TILES = 3


@dataclass
class Barrier:
    """An mbarrier.

    Attributes:
        count: arrivals that complete a phase.
        phase: the number of the phase that is under way.
        pending: arrivals that it lacks.
        bytes: bytes announced that have not come.
    """

    count: int
    phase: int = 0
    pending: int = 0
    bytes: int = 0

    def __post_init__(self):
        self.pending = self.count

    def arrive(self, announced: int = 0) -> None:
        """One arrives, and announces bytes."""
        self.pending -= 1
        self.bytes += announced
        self._complete()

    def bring(self, number: int) -> None:
        """A copy has brought so many bytes."""
        self.bytes -= number
        self._complete()

    def _complete(self) -> None:
        if not self.pending and not self.bytes:
            self.phase, self.pending = self.phase + 1, self.count

    def passes(self, parity: int) -> bool:
        """Whether a wait for the phase of this parity is over: that phase is not under way."""
        return self.phase % 2 != parity


@dataclass
class _Scene:
    """What a frame shows."""

    full: Barrier
    empty: Barrier
    place: str = "empty"
    producer: str = ""
    consumers: str = ""

    def frame(self, caption: str) -> Frame:
        canvas = Canvas(height=392, label="A full and an empty mbarrier beside one place for tiles")
        for y, who, doing in ((28, "producer", self.producer), (318, "consumers", self.consumers)):
            canvas.rect(20, y, 130, 46, r=6, fill="faint", stroke="muted")
            canvas.text(85, y + 29, who, anchor="middle", bold=True)
            canvas.text(172, y + 30, doing, mono=True, size=17)
        canvas.rect(20, 110, 170, 172, r=6, fill=_fill(self.place), stroke="ink", weight=2)
        canvas.text(105, 190, self.place, anchor="middle", size=20, bold=True)
        canvas.text(105, 216, "shared memory", anchor="middle", fill="muted")
        _barrier(canvas, 222, "full", self.full)
        _barrier(canvas, 596, "empty", self.empty)
        return canvas.frame(caption)


def phase_frames() -> list[Frame]:
    """Three tiles through one place: frames of who does what, in an order that a GPU may take."""
    scene = _Scene(Barrier(1), Barrier(WARPS))
    frames = [scene.frame("Both mbarriers are made. Their phase 0, of parity 0, is under way.")]

    def step(caption: str, producer: str = "", consumers: str = "") -> None:
        scene.producer, scene.consumers = producer, consumers
        frames.append(scene.frame(caption))

    for tile in range(TILES):
        parity = tile % 2
        _produce(scene, step, tile, parity)
        assert scene.full.passes(parity)
        wait = f"mbarrier_wait(&full, {parity})"
        step(
            f"Phase {tile} of full is complete, so the consumers' wait for parity {parity} is "
            f"over. They read tile {tile}.",
            consumers=wait,
        )
        for warp in range(WARPS):
            scene.empty.arrive()
            scene.place = "empty" if warp == WARPS - 1 else scene.place
            last = " All have arrived: its phase is complete." if warp == WARPS - 1 else ""
            step(
                f"Warp {warp} is done with tile {tile} and arrives at empty.{last}",
                consumers="mbarrier_arrive_warp(&empty)",
            )
    return told(frames, 5)


def _produce(scene: _Scene, step, tile: int, parity: int) -> None:
    assert scene.empty.passes(1 - parity)
    wait = f"mbarrier_wait(&empty, {1 - parity})"
    why = (
        "No phase before phase 0 is under way, so the wait for parity 1 is over at once."
        if not tile
        else f"Phase {tile - 1} of empty, of parity {1 - parity}, is complete: the place is free."
    )
    step(f"The producer may fill the place? {why}", producer=wait)
    scene.full.arrive(TILE_BYTES)
    scene.place = "on its way"
    step(
        f"The producer arrives at full, announces {TILE_BYTES:,} bytes, and starts the copy of "
        f"tile {tile}. Phase {tile} lacks no arrival, but bytes.",
        producer=f"mbarrier_expect(&full, {TILE_BYTES}); tma_load(…)",
        consumers=f"mbarrier_wait(&full, {parity})  waits",
    )
    scene.full.bring(TILE_BYTES)
    scene.place = f"tile {tile}"
    step(f"The bytes have come. Phase {tile} of full is complete, and phase {tile + 1} begins.")


def _fill(place: str) -> str:
    return {"empty": "paper", "on its way": "yellow-fill"}.get(place, "green-fill")


def _barrier(canvas: Canvas, x: float, name: str, barrier: Barrier) -> None:
    canvas.rect(x, 110, 344, 172, r=6, fill="faint", stroke="muted")
    canvas.text(x + 16, 138, f"mbarrier {name}", bold=True)
    parity = barrier.phase % 2
    canvas.text(x + 16, 170, f"phase {barrier.phase} under way, parity {parity}", size=18)
    canvas.text(x + 16, 200, f"arrivals to come: {barrier.pending} of {barrier.count}")
    if name == "full":
        canvas.text(x + 16, 226, f"bytes to come: {barrier.bytes:,}")
    for number in (0, 1):
        over = barrier.passes(number)
        words = "goes on" if over else "waits"
        left = x + 16 + number * 160
        canvas.rect(left, 240, 150, 30, r=4, fill="green-fill" if over else "vermillion-fill",
                    stroke="green" if over else "vermillion")  # fmt: skip
        canvas.text(left + 75, 260, f"wait({number}): {words}", anchor="middle")
