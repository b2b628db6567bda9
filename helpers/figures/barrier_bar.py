"""A barrier as figures draw it: a bar that threads arrive at, and stand on until all are there."""

from collections.abc import Sequence

from .canvas import Canvas
from .events import LANES

THICK = 6  # of the bar, in pixels
_SHARE = 0.8  # of the room of a thread, its square


def waiting(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    threads: Sequence[tuple[float, int, str]],
    pitch: float = 12,
) -> None:
    """A bar whose upper edge is at y, and the threads that have arrived at it.

    Args:
        threads: of each the middle of its square, how many rows of squares it stands above the bar,
            and its hue.
        pitch: from one row to the next; the squares are a little smaller.
    """
    canvas.rect(x, y, width, THICK, r=2, fill="ink", stroke="none")
    size = _SHARE * pitch
    by_hue: dict[str, list[tuple[float, float, float, float]]] = {}
    for middle, row, hue in threads:
        box = (middle - size / 2, y - 1 - row * pitch - size, size, size)
        by_hue.setdefault(hue, []).append(box)
    for hue, boxes in by_hue.items():
        canvas.cells(boxes, fill=hue, stroke="none")


def block_waits(
    canvas: Canvas, x: float, y: float, width: float, threads: int, room: float, hue: str = "green"
) -> None:
    """A block's threads at a bar, a row of squares for each warp, within `room` above it."""
    warps, across = -(-threads // LANES), min(threads, LANES)
    pitch = min(width / across, 14.0, room / warps)
    left = x + (width - across * pitch) / 2
    places = [
        (left + (n % LANES + 0.5) * pitch, warps - 1 - n // LANES, hue) for n in range(threads)
    ]
    waiting(canvas, x, y, width, places, pitch)
