"""A plane with two axes, for vectors and linear maps."""

import math
from collections.abc import Iterable

import numpy as np

from .canvas import NORMAL, Canvas, text_width


class Plane:
    """A square of a canvas that shows `extent` of both axes on each side of its centre.

    Args:
        x, y: its top left corner, in pixels.
        side: its edge, in pixels.
        extent: the largest coordinate shown, counted from the centre.
        centre: the point in its middle.
    """

    def __init__(
        self,
        canvas: Canvas,
        x: float,
        y: float,
        side: float,
        extent: float,
        centre: tuple[float, float] = (0, 0),
    ):
        self.canvas, self.x, self.y, self.side, self.extent = canvas, x, y, side, extent
        self.centre = np.asarray(centre, dtype=float)
        self.scale = side / (2 * extent)
        self._taken: list[tuple[float, float, float, float]] = []  # left, top, right, bottom

    def at(self, point) -> tuple[float, float]:
        """Where a point of the plane lies on the canvas, in pixels."""
        return (
            self.x + self.side / 2 + (float(point[0]) - self.centre[0]) * self.scale,
            self.y + self.side / 2 - (float(point[1]) - self.centre[1]) * self.scale,
        )

    def axes(self) -> None:
        """The frame and both axes."""
        self.canvas.rect(self.x, self.y, self.side, self.side, stroke="grid")
        for along in ((1, 0), (0, 1)):
            ends = (along * (self.centre + way * self.extent) for way in (-1, 1))
            if (part := self._within(*ends)) is not None:
                self.canvas.line(*part, stroke="muted", weight=1.5)

    def ticks(self) -> None:
        """Numbers along the axes, where nothing else is written; to be called last."""
        step = spacing(self.extent)
        look = {"size": NORMAL, "fill": "muted", "halo": True}
        for axis in range(2):
            ends = (self.centre[axis] + way * 0.93 * self.extent for way in (-1, 1))
            least, most = (end / step for end in ends)
            for number in range(math.ceil(least), math.floor(most) + 1):
                text = f"{number * step:g}".replace("-", "−") if number else ""
                x, y = self.at((number * step, 0) if axis == 0 else (0, number * step))
                where = (x - 7, y + 4, text, "end") if axis else (x, y + 16, text, "middle")
                if text:
                    self._write(*where, only_if_free=True, **look)

    def lattice(self, matrix=None, **look) -> None:
        """Lines of whole coordinates; with `matrix`, where it takes these (rows, x·matrix)."""
        matrix = np.eye(2) if matrix is None else np.asarray(matrix, dtype=float)
        step = spacing(self.extent)
        # Lines far outside may be mapped into the square, so ask which could get there.
        smallest = np.linalg.svd(matrix, compute_uv=False)[-1]
        far = self.extent + np.abs(self.centre).max()
        reach = 40 if smallest < 1e-6 else min(40, math.ceil(1.5 * far / smallest / step))
        segments = []
        for number in range(-reach, reach + 1):
            along = reach * step
            for start, end in (
                ((number * step, -along), (number * step, along)),
                ((-along, number * step), (along, number * step)),
            ):
                part = self._within(np.array(start) @ matrix, np.array(end) @ matrix)
                if part is not None:
                    segments.append(part)
        path = "".join(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" for x1, y1, x2, y2 in segments)
        if path:
            self.canvas.path(path, **{"stroke": "grid", **look})

    def through(self, direction, **look) -> None:
        """The line through the origin along a direction, as far as it is seen."""
        far = np.asarray(direction) / np.abs(direction).max()
        far = far * 2 * (self.extent + np.abs(self.centre).max())
        if (part := self._within(-far, far)) is not None:
            self.canvas.line(*part, **look)

    def polygon(self, points: Iterable, **look) -> None:
        """The polygon with these corners."""
        self.canvas.polyline([self.at(point) for point in points], closed=True, **look)

    def vector(self, end, start=(0, 0), **look) -> None:
        """An arrow between two points of the plane, from the origin unless `start` is given."""
        self.canvas.arrow(*self.at(start), *self.at(end), **{"weight": 3, "head": 13, **look})

    def point(self, place, **look) -> None:
        """A dot."""
        x, y = self.at(place)
        self.canvas.circle(x, y, 5, **look)
        self._taken.append((x - 6, y - 6, x + 6, y + 6))

    def label(self, place, text: str, *, away_from=(0, 0), **look) -> None:
        """Text beside a point of the plane: on the side away from another, or where there is room.

        Draw all points first: labels keep clear of what is there already.
        """
        x, y = self.at(place)
        other = self.at(away_from)
        towards = math.atan2(y - other[1], x - other[0])
        size = look.get("size", NORMAL)
        best = None
        for turn in (0, 1, -1, 2, -2, 3, -3, 4):
            for reach in (12, 24, 42, 60):
                angle = towards + turn * math.pi / 4
                dx, dy = math.cos(angle), math.sin(angle)
                anchor = "start" if dx > 0.35 else "end" if dx < -0.35 else "middle"
                at = x + reach * dx, y + reach * dy + 0.36 * size
                if anchor == "middle":
                    at = at[0], at[1] + 0.3 * size * dy
                cost = self._overlap(_box(*at, text, size, anchor)) + 3 * abs(turn) + reach / 4
                if best is None or cost < best[0]:
                    best = cost, at, anchor, reach, (dx, dy)
        _, at, anchor, reach, (dx, dy) = best
        if reach > 24:  # lead the eye back to the point
            ends = (x + 7 * dx, y + 7 * dy), (x + (reach - 3) * dx, y + (reach - 3) * dy)
            self.canvas.line(*ends[0], *ends[1], stroke="muted", weight=1)
        self._write(*at, text, anchor, **{"halo": True, "size": size, **look})

    def _write(self, x, y, text, anchor, *, only_if_free=False, **look) -> None:
        box = _box(x, y, text, look["size"], anchor)
        if only_if_free and self._overlap(box):
            return
        self._taken.append(box)
        self.canvas.text(x, y, text, anchor=anchor, **look)

    def _overlap(self, box) -> float:
        """How many square pixels of a box are taken or outside the square."""
        shared = 0.0
        for other in self._taken:
            width = min(box[2], other[2]) - max(box[0], other[0])
            height = min(box[3], other[3]) - max(box[1], other[1])
            shared += max(width, 0.0) * max(height, 0.0)
        inside = (
            min(box[2], self.x + self.side) - max(box[0], self.x),
            min(box[3], self.y + self.side) - max(box[1], self.y),
        )
        area = (box[2] - box[0]) * (box[3] - box[1])
        return shared + area - max(inside[0], 0.0) * max(inside[1], 0.0)

    def _within(self, start, end) -> tuple[float, float, float, float] | None:
        """The part of a line that lies in the square, in pixels (Liang and Barsky, 1984)."""
        lower, upper = 0.0, 1.0
        for axis in range(2):
            step = end[axis] - start[axis]
            for sign in (1.0, -1.0):
                room = self.extent - sign * (start[axis] - self.centre[axis])
                if abs(step) < 1e-12:
                    if room < 0:
                        return None
                elif sign * step > 0:
                    upper = min(upper, room / (sign * step))
                else:
                    lower = max(lower, room / (sign * step))
        if lower >= upper:
            return None
        return *self.at(start + lower * (end - start)), *self.at(start + upper * (end - start))


def _box(x, y, text, size, anchor) -> tuple[float, float, float, float]:
    """About what a line of text covers: left, top, right, bottom."""
    width = text_width(text, size) + 4
    left = x - {"start": 2, "middle": width / 2, "end": width - 2}[anchor]
    return left, y - 0.85 * size, left + width, y + 0.3 * size


def spacing(extent: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides -extent ... extent into 4 to 12."""
    rough = extent / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
