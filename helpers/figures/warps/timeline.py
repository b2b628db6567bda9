"""Warps side by side over time: their work on shared memory, their waits, and races in red."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..canvas import NORMAL, SMALLEST, WIDTH, Canvas, literal, text_width
from .memory_story import Hazard, Story, Who

_LEFT, _RIGHT = 84, 948
_TOP, _BOTTOM, _LANE = 80, 240, 28  # of the lanes, and the height of one
_PITCH = 44.0  # of a moment, at most
_HEIGHT = 400
_TEXT_Y = 304


class Act(NamedTuple):
    """Accesses of one warp that are one box: from number `first` on, as many as `count`."""

    warp: int
    first: int
    count: int
    order: float
    line: int

    def holds(self, who: Who) -> bool:
        """Whether an access of a warp is one of these."""
        return who[0] == self.warp and self.first <= who[1] < self.first + self.count


class Excerpt(NamedTuple):
    """What a timeline shows of a story, and what its boxes say.

    Attributes:
        warps: those that are shown, the uppermost first.
        last: the last line of the source that counts.
        joined: line → how many accesses of it are one box, up to a store; one each, else.
        look: label and hue of an act.
        key: what the labels mean.
    """

    warps: tuple[int, ...]
    last: int
    joined: Mapping[int, int]
    look: Callable[[Story, Act], tuple[str, str]]
    key: str


def acts_of(story: Story, shown: Excerpt) -> list[Act]:
    """The boxes of the shown warps, in order."""
    found = []
    for warp in shown.warps:
        number, accesses = 0, story.accesses[warp]
        while number < len(accesses):
            one = accesses[number]
            count = 1
            if one.space == "shared" and one.line <= shown.last:
                same = accesses[number : number + shown.joined.get(one.line, 1)]
                count = next((n for n, a in enumerate(same, 1) if not a.is_load), len(same))
                found.append(Act(warp, number, count, one.order, one.line))
            number += count
    return sorted(found, key=lambda act: (act.order, act.warp))


def releases_of(story: Story, shown: Excerpt) -> list[tuple[float, int]]:
    """(order, line) at which all warps had come to a barrier and went on."""
    rows = list(zip(*story.arrivals.values(), strict=False))
    return [
        (max(order for _, _, order in row), row[0][1]) for row in rows if row[0][1] <= shown.last
    ]


class Timeline:
    """The picture: boxes by time, bars where all had come to a barrier, dashes where one waits.

    Args:
        story: the run.
        right: the run with all barriers, which says where the missing one was.
        shown: what counts.
        without: the line of the barrier that is taken out.
        races: hazards between the shown warps.
    """

    def __init__(
        self,
        story: Story,
        right: Story,
        shown: Excerpt,
        without: int | None,
        races: Sequence[Hazard],
    ):
        self.story, self.right, self.shown, self.without = story, right, shown, without
        self.acts, self.releases = acts_of(story, shown), releases_of(story, shown)
        moments = sorted({a.order for a in self.acts} | {order for order, _ in self.releases})
        self.pitch = min(_PITCH, (_RIGHT - _LEFT) / max(len(moments), 1))
        self.x = {order: _LEFT + n * self.pitch for n, order in enumerate(moments)}
        self.pairs: dict[tuple[Act, Act], Hazard] = {}
        for hazard in races:
            pair = self._act(hazard.reader), self._act(hazard.writer)
            if None not in pair:
                self.pairs.setdefault(pair, hazard)

    def _act(self, who: Who) -> Act | None:
        return next((act for act in self.acts if act.holds(who)), None)

    def draw(
        self, title: str, verdict: str, good: bool, lines: Sequence[str], label: str
    ) -> Canvas:
        """The picture with what is said below it."""
        canvas = Canvas(height=_HEIGHT, label=label)
        canvas.text(8, 22, title, size=18, bold=True)
        for warp in self.shown.warps:
            y = self._y(warp)
            canvas.text(8, y + 20, f"warp {warp}", size=18, bold=True)
            canvas.line(_LEFT, y + _LANE / 2, _RIGHT, y + _LANE / 2, stroke="grid", weight=1)
        self._barriers(canvas)
        for warp in self.shown.warps:
            self._waits(canvas, warp)
            self._missing(canvas, warp)
        for reader, writer in self.pairs:
            self._join(canvas, reader, writer)
        for act in self.acts:
            self._box(canvas, act)
        canvas.text(8, _TEXT_Y - 30, literal(self.shown.key), size=SMALLEST, fill="muted")
        hue = "green" if good else "vermillion"
        canvas.text(8, _TEXT_Y, verdict, size=18, bold=True, fill=hue)
        canvas.lines(8, _TEXT_Y + 26, map(literal, lines))
        return canvas

    def _y(self, warp: int) -> float:
        step = (_BOTTOM - _LANE - _TOP) / max(len(self.shown.warps) - 1, 1)
        return _TOP + step * self.shown.warps.index(warp)

    def _barriers(self, canvas: Canvas) -> None:
        if self.releases:
            canvas.text(8, 60, "barrier", fill="muted")
        top, bottom = _TOP - 10, _BOTTOM + 10
        free = 0.0
        for order, line in self.releases:
            middle = self.x[order] + self.pitch / 2
            canvas.rect(middle - 3, top, 6, bottom - top, r=2, fill="ink", stroke="none")
            text = f"line {line}"
            place = min(middle, WIDTH - 4 - text_width(text) / 2)
            if place - text_width(text) / 2 >= free:
                canvas.text(place, 60, text, anchor="middle", bold=True)
                free = place + text_width(text) / 2 + 4

    def _waits(self, canvas: Canvas, warp: int) -> None:
        """Dashes from the last thing that a warp did to the bar that it waits at."""
        y = self._y(warp) + _LANE / 2
        mine = [act for act in self.acts if act.warp == warp]
        arrived = [at for at in self.story.arrivals[warp] if at[1] <= self.shown.last]
        said = False
        for (order, _), (made, _, _) in zip(self.releases, arrived, strict=False):
            done = [self.x[a.order] + self.pitch for a in mine if a.first + a.count <= made]
            gone = [self.x[r] + self.pitch / 2 + 3 for r, _ in self.releases if r < order]
            start = max([*done, *gone], default=_LEFT)
            end = self.x[order] + self.pitch / 2 - 3
            if end - start < self.pitch:
                continue
            canvas.line(start + 2, y, end, y, stroke="ink", weight=3, dash="3 5")
            if not said and end - start > text_width("waits"):
                canvas.text((start + end) / 2, y - 8, "waits", anchor="middle", halo=True)
                said = True

    def _missing(self, canvas: Canvas, warp: int) -> None:
        """Where a warp would have come to the barrier that is taken out."""
        if self.without is None:
            return
        y = self._y(warp)
        mine = [act for act in self.acts if act.warp == warp]
        kept = 0
        for made, line, _ in self.right.arrivals[warp]:
            if line != self.without:
                kept += 1
                continue
            before = [a for a in mine if a.first + a.count <= made]
            ends = [self.x[a.order] + self.pitch for a in before]
            ends += [self.x[order] + self.pitch for order, _ in self.releases[:kept]]
            x = max(ends, default=_LEFT)
            canvas.line(x, y - 7, x, y + _LANE + 7, stroke="vermillion", weight=3, dash="4 4")

    def _box(self, canvas: Canvas, act: Act) -> None:
        text, hue = self.shown.look(self.story, act)
        x, y = self.x[act.order] + 1, self._y(act.warp)
        raced = any(act in pair for pair in self.pairs)
        look = {"stroke": "vermillion", "weight": 4} if raced else {"stroke": hue, "weight": 1}
        canvas.rect(x, y, self.pitch - 2, _LANE, r=3, fill=f"{hue}-fill", **look)
        size = NORMAL if text_width(text, NORMAL, mono=True) <= self.pitch - 2 else SMALLEST
        if text_width(text, size, mono=True) <= self.pitch:
            canvas.text(x + self.pitch / 2 - 1, y + 20, text, size=size, anchor="middle", mono=True,
                        bold=True, within=self.pitch - 8)  # fmt: skip

    def _join(self, canvas: Canvas, reader: Act, writer: Act) -> None:
        x1, x2 = (self.x[act.order] + self.pitch / 2 for act in (writer, reader))
        y1, y2 = self._y(writer.warp), self._y(reader.warp)
        look = {"stroke": "vermillion", "weight": 2.5}
        down = y2 > y1
        between = range(*sorted((round(x1), round(x2))))
        free = not any(
            a.warp == reader.warp and round(self.x[a.order] + self.pitch / 2) in between
            for a in self.acts if a != reader
        )  # fmt: skip
        if len(self.shown.warps) > 2 and free and abs(x2 - x1) > self.pitch:
            # Along the lanes, since straight lines would run behind boxes of other warps.
            start, level = y1 + (_LANE + 2 if down else -2), y2 + _LANE / 2
            side = (self.pitch / 2 + 1) * (1 if x1 > x2 else -1)
            canvas.elbow([(x1, start), (x1, level), (x2 + side, level)], **look)
            return
        y1, y2 = (y1 + _LANE + 2, y2 - 3) if down else (y1 - 2, y2 + _LANE + 3)
        canvas.arrow(x1, y1, x2, y2, **look)
