"""SVG that suits a light and a dark page: elements through `xml.etree`, colours from the page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from ..measure.charts import HUES, hue
from ..show import Shows, render

__all__ = ["HUES", "Drawing", "hue"]


class Drawing(Shows):
    """A figure under construction, in pixels from the top left corner.

    Shown at the end of a notebook's cell it is inline SVG, no wider than the page.

    Args:
        width, height: extent in pixels.
        label: what it shows, for screen readers and where there are no pictures.
    """

    def __init__(self, width: float, height: float, label: str):
        self.width, self.height, self.label = width, height, label
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {_n(width)} {_n(height)}",
                "style": f"max-width:{_n(width)}px",
                "role": "img",
                "aria-label": label,
            },
        )

    def _add(self, tag: str, attributes: dict) -> ET.Element:
        given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return ET.SubElement(
            self._root, tag, {name: _n(value) for name, value in given.items() if value is not None}
        )

    def rect(self, x: float, y: float, width: float, height: float, **attributes) -> None:
        """A rectangle; unfilled unless `fill` is given, drawn round unless `stroke="none"`."""
        self._add("rect", {"x": x, "y": y, "width": width, "height": height, **_shape(attributes)})

    def cells(self, boxes: Iterable[tuple[float, float, float, float]], **attributes) -> None:
        """Many rectangles (x, y, width, height) of one look, as a single element."""
        d = "".join(f"M{_n(x)} {_n(y)}h{_n(w)}v{_n(h)}h{_n(-w)}z" for x, y, w, h in boxes)
        if d:
            self._add("path", {"d": d, **_shape(attributes)})

    def lines(self, segments: Iterable[tuple[float, float, float, float]], **attributes) -> None:
        """Straight lines (x1, y1, x2, y2) of one look, as a single element."""
        d = "".join(f"M{_n(x)} {_n(y)}L{_n(u)} {_n(v)}" for x, y, u, v in segments)
        if d:
            self._add("path", {"d": d, **_shape({"stroke_opacity": 0.45, **attributes})})

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 15,
        anchor: str = "start",
        faint: bool = False,
        mono: bool = False,
        **attributes,
    ) -> None:
        """Text whose baseline is at y; `anchor` says what of it stands at x: start, middle, end."""
        element = self._add(
            "text",
            {
                "x": x,
                "y": y,
                "font_size": size,
                "text_anchor": anchor if anchor != "start" else None,
                "opacity": 0.75 if faint else None,
                "class_": "mono" if mono else None,
                **attributes,
            },
        )
        element.text = text

    def svg(self) -> str:
        """The figure as SVG text."""
        return ET.tostring(self._root, encoding="unicode")

    def html(self):
        return render("chart.html", svg=self.svg(), label="")

    def __repr__(self) -> str:
        return f"<Figure: {self.label}>"


def _shape(attributes: dict) -> dict:
    return {"fill": "none", "stroke": "currentColor", "stroke_width": 1, **attributes}


def _n(value) -> str:
    """A number without needless digits; text as it is."""
    if isinstance(value, str):
        return value
    return f"{round(float(value), 2):g}"
