"""What figures are drawn with: a canvas over svg.py that knows the series' colours and text sizes.

`Canvas` collects elements in pixels from the top left corner and gives them out as one SVG text,
with a caption as a `Frame` of the player, or as the picture under a notebook's cell. Nothing on it
needs an `id`, so that many fit on a page. What figures are made of is in `helpers.figures.parts`.
"""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from svg import SVG, Circle, Element, Line, Path, Polygon, Polyline, Rect, Text, TSpan, ViewBoxSpec

from ..panels.numbers import spans
from ..show import Shows, render
from .palette import colour, css

WIDTH = 960  # of a figure; on a slide it is shown a fifth larger
SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
MONO = "var(--fig-mono, monospace)"
SMALLEST = 15
_LOWERED = 15  # of an index beside a letter; on a slide it is a fifth larger
NORMAL, LARGE = 16, 20
_ANCHORS = ("start", "middle", "end")
_COLOURS = css(".kernel-figure")


class Frame(NamedTuple):
    """One step of a figure: SVG text, and the sentence that goes with it."""

    svg: str
    caption: str = ""

    @property
    def telling(self) -> bool:
        """Whether this is a step to open on, and to show where only one or two can be."""
        return isinstance(self, _Telling)


class _Telling(Frame):
    __slots__ = ()


def telling(frame: Frame) -> Frame:
    """The same step, marked as one that says most of the figure; see `Frame.telling`."""
    return _Telling(*frame)


def told(frames: Sequence[Frame], *steps: int) -> list[Frame]:
    """The frames with these steps marked as `telling`; a player opens on the first of them.

    Args:
        frames: of a figure.
        steps: counted from 0, or from the end where negative.
    """
    wanted = {step % len(frames) for step in steps}
    return [telling(one) if n in wanted else one for n, one in enumerate(frames)]


class Canvas(Shows):
    """A drawing under construction; at the end of a notebook's cell, a picture.

    Args:
        width, height: extent in pixels.
        label: what it shows, for screen readers and where there are no pictures.
    """

    def __init__(self, width: float = WIDTH, height: float = 480, label: str = ""):
        self.width, self.height, self.label = width, height, label
        self._elements: list[Element] = []

    def add(self, *elements: Element) -> None:
        """Put elements of svg.py on top; svg.py writes text and attributes as they are."""
        self._elements.extend(elements)

    def rect(self, x: float, y: float, width: float, height: float, *, r: float = 0, **look):
        """A rectangle with corners of radius `r`; `look` as in `style`."""
        size = {"width": _n(max(width, 0)), "height": _n(max(height, 0))}
        self.add(Rect(x=_n(x), y=_n(y), rx=_n(r) if r else None, **size, **style(**look)))

    def line(self, x1: float, y1: float, x2: float, y2: float, **look):
        """A straight line."""
        ends = {"x1": _n(x1), "y1": _n(y1), "x2": _n(x2), "y2": _n(y2)}
        look = style(**({"stroke": "ink"} | look))
        self.add(Line(**ends, **{key: value for key, value in look.items() if "fill" not in key}))

    def polyline(self, points: Iterable[tuple[float, float]], *, closed: bool = False, **look):
        """Straight lines from point to point; a polygon if `closed`."""
        kind = Polygon if closed else Polyline
        flat = [_n(value) for point in points for value in point]
        self.add(kind(points=flat, **style(**({"fill": "none", "stroke": "ink"} | look))))

    def path(self, d: str, **look):
        """A path in SVG's own notation."""
        self.add(Path(d=escape(d), **style(**({"fill": "none", "stroke": "ink"} | look))))

    def circle(self, x: float, y: float, radius: float, **look):
        """A circle about (x, y)."""
        self.add(Circle(cx=_n(x), cy=_n(y), r=_n(radius), **style(**look)))

    def cells(self, boxes: Iterable[tuple[float, float, float, float]], **look):
        """Many rectangles (x, y, width, height) of one look, as a single element."""
        d = "".join(f"M{_n(x)} {_n(y)}h{_n(w)}v{_n(h)}h{_n(-w)}z" for x, y, w, h in boxes)
        if d:
            self.path(d, **look)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, head: float = 9, **look):
        """A straight arrow whose tip is at (x2, y2); without a head where it has no length."""
        length = math.hypot(x2 - x1, y2 - y1)
        look = {"stroke": "ink", "weight": 2} | look
        if length < 1e-6:
            return
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        head = min(head, length)
        bx, by = x2 - head * ux, y2 - head * uy
        # The shaft ends inside the head, or its square end would show beside the tip.
        self.line(x1, y1, bx + 0.5 * ux, by + 0.5 * uy, **look)
        wing = 0.45 * head
        tip = [(x2, y2), (bx - wing * uy, by + wing * ux), (bx + wing * uy, by - wing * ux)]
        opacity = {"opacity": look["opacity"]} if "opacity" in look else {}
        self.polyline(tip, closed=True, fill=look["stroke"], stroke="none", **opacity)

    def elbow(self, points: Sequence[tuple[float, float]], **look):
        """Straight lines from point to point, the last one ending in an arrow's head."""
        if len(points) > 2:
            self.polyline(points[:-1], **{"weight": 2, **look})
        self.arrow(*points[-2], *points[-1], **look)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = NORMAL,
        anchor: str = "start",
        fill: str = "ink",
        bold: bool = False,
        mono: bool = False,
        halo: bool = False,
        turn: float = 0,
        within: float = math.inf,
    ):
        """One line of text whose baseline is at y.

        `_` lowers what follows it, one character or a group in braces: `W_Q`, `q_{12}`; `\\_` is
        the character itself, as are all in `mono` text, which is for code. `anchor` says what of
        the text stands at x: start, middle or end.
        `halo` draws the paper's colour around the letters, for text on top of lines; `turn` makes
        the line rise by so many degrees. Letters of `mono` text are narrowed where it is wider than
        `within` pixels.

        Raises:
            ValueError: `size` is below 15 pixels, or `anchor` is none of the three.
        """
        if size < SMALLEST:
            raise ValueError(
                f"text of {size:g} px cannot be read in a lecture hall; {SMALLEST} is least."
            )
        if anchor not in _ANCHORS:
            raise ValueError(f"anchor is start, middle or end, not {anchor!r}.")
        look = {
            "font-size": _n(size),
            "text-anchor": anchor if anchor != "start" else None,
            "font-weight": "600" if bold else None,
            "font-family": MONO if mono else None,
            "fill": colour(fill),
            "transform": f"rotate({_n(-turn)} {_n(x)} {_n(y)})" if turn else None,
        }
        if mono and text_width(text, size, mono=True) > within:
            look |= {"textLength": _n(within), "lengthAdjust": "spacingAndGlyphs"}
        if halo:
            look |= {"stroke": colour("paper"), "stroke-width": 5, "paint-order": "stroke"}
            look["stroke-linejoin"] = "round"
        if text:
            written = escape(text) if mono else _lowered(text, size)
            given = {key: value for key, value in look.items() if value is not None}
            self.add(Text(text=written, extra=given, x=_n(x), y=_n(y)))

    def lines(self, x: float, y: float, lines: Iterable[str]):
        """Several lines of text, the first one's baseline at y."""
        for number, line in enumerate(lines):
            self.text(x, y + number * 1.35 * NORMAL, line)

    def svg(self) -> str:
        """The drawing as SVG text."""
        return SVG(
            viewBox=ViewBoxSpec(0, 0, _n(self.width), _n(self.height)),
            elements=self._elements or None,
            extra={
                "font-family": SANS,
                "role": "img",
                "aria-label": escape(self.label),
            },
        ).as_str()

    def frame(self, caption: str) -> Frame:
        """The drawing with its caption."""
        return Frame(self.svg(), caption)

    def html(self):
        """The drawing as a page has it: inline, and no wider than it was drawn."""
        svg = self.svg().replace("<svg ", f'<svg style="max-width:{_n(self.width)}px" ', 1)
        return render("chart.html", svg=f"<style>{_COLOURS}</style>{svg}", label="")

    def __repr__(self) -> str:
        return f"<Figure: {self.label}>"


def style(
    *,
    fill: str | None = None,
    stroke: str | None = None,
    weight: float | None = None,
    dash: str | None = None,
    opacity: float | None = None,
    fill_opacity: float | None = None,
) -> dict:
    """Attributes of svg.py for a look: colours by name, the line's weight in pixels, its dashes."""
    if fill is None and stroke is None:
        stroke = "ink"
    return {
        "fill": colour(fill or "none"),
        "stroke": colour(stroke) if stroke not in (None, "none") else None,
        "stroke_width": None if weight is None else _n(weight),
        "stroke_dasharray": dash,
        "opacity": None if opacity is None else _n(opacity),
        "fill_opacity": None if fill_opacity is None else _n(fill_opacity),
    }


def literal(text: str) -> str:
    """`text` for `Canvas.text` with its underscores as they are: names, tokens."""
    return text.replace("_", "\\_")


def text_width(text: str, size: float = NORMAL, mono: bool = False) -> float:
    """About how wide a line of text is, in pixels: exact if `mono`, else rather too much."""
    if mono:
        return len(text) * size * 0.602
    return len(re.sub(r"\\_|_\{|[_}]", lambda m: "_" * (m[0] == "\\_"), text)) * size * 0.62


def fitting(text: str, room: float, largest: float, least: int) -> int | None:
    """The largest size, `least` at least, in which `mono` text takes no more than `room` pixels."""
    sizes = range(int(largest), least - 1, -1)
    return next((n for n in sizes if text_width(text, n, mono=True) <= room), None)


def shortened(text: str, width: float, size: float = NORMAL) -> str:
    """`text`, or as much of its beginning as fits into `width` pixels, ending in "…"."""
    if text_width(literal(text), size) <= width:
        return text
    while text and text_width(literal(text) + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def number(value: float, digits: int = 2) -> str:
    """A number in few characters with a true minus sign: 0.25, −1.30, 12.5, 1.2e5."""
    value = float(value)
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    text = f"{value:.{digits}f}"
    if abs(value) >= 1e5:
        text = f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    elif len(text.lstrip("-")) > digits + 3:  # three digits before the point leave one fewer behind
        text = f"{value:.{max(digits - 1, 0)}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def counted(number: int, what: str) -> str:
    """A number of things: "1 element", "1,024 elements"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in few characters: 0–3, 8, 10–11."""
    runs = spans(sorted(numbers))
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)


def bracketed(number: str) -> str:
    """A number's text as part of a formula: in brackets where it is negative."""
    return f"({number})" if number.startswith("−") else number


def product(a: float, b: float) -> str:
    """A product of two numbers as text: 0.50·(−1.20)."""
    return "·".join(bracketed(number(factor)) for factor in (a, b))


def pair(vector: Sequence[float]) -> str:
    """Two numbers as a vector's text: (0.50, −1.20)."""
    return f"({number(vector[0])}, {number(vector[1])})"


def _lowered(text: str, size: float) -> str:
    """`text` for an SVG text element, escaped, with lowered groups as `tspan`."""
    out = []
    drop, below = 0.24 * size, 0.0
    for part in re.split(r"(\\_|_\{[^{}]*\}|_[^\s_{])", text):
        lowered = len(part) > 1 and part[0] == "_"
        plain = escape("_" if part == "\\_" else part[1:].strip("{}") if lowered else part)
        shift = (drop if lowered else 0.0) - below
        if not plain:
            continue
        if lowered or shift:
            smaller = {"font-size": _n(max(_LOWERED, 0.75 * size))} if lowered else None
            plain = TSpan(text=plain, dy=_n(shift) if shift else None, extra=smaller).as_str()
        out.append(plain)
        below += shift
    return "".join(out)


def _n(value: float) -> float | int:
    """A number without needless digits."""
    rounded = round(float(value), 2)
    return int(rounded) if rounded == int(rounded) else rounded
