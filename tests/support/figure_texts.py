"""What a frame of a figure says: its texts with their places, and whether any of them collide."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

_INHERITED = ("font-size", "text-anchor", "font-family")


class Said(NamedTuple):
    """A text of a frame, and about the box that it covers."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def said(svg: str) -> list[Said]:
    """All texts of a frame, in the order in which they are drawn; the SVG has to be well-formed."""
    found: list[Said] = []
    _collect(ET.fromstring(svg), {}, found)
    return found


def _collect(node: ET.Element, inherited: dict, found: list[Said]) -> None:
    own = inherited | {name: node.get(name) for name in _INHERITED if node.get(name)}
    if node.tag.split("}")[-1] == "text":
        text = "".join(node.itertext())
        size = float(own.get("font-size", 16))
        mono = "mono" in own.get("font-family", "")
        width = len(text) * size * (0.602 if mono else 0.5)
        width = float(node.get("textLength", width))  # what is too wide is pressed together
        x, y = float(node.get("x")), float(node.get("y"))
        left = {"middle": x - width / 2, "end": x - width}.get(own.get("text-anchor", ""), x)
        found.append(Said(text, left, y - 0.7 * size, left + width, y))
        return
    for child in node:
        _collect(child, own, found)


def texts(svg: str) -> list[str]:
    return [each.text for each in said(svg)]


def after(svg: str, label: str) -> str:
    """The text drawn right after `label`."""
    found = texts(svg)
    return found[found.index(label) + 1]


def faults(svg: str) -> list[str]:
    """Texts that lie outside the picture, and pairs that lie on each other."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    width, height = float(box[1]), float(box[2])
    all_said = said(svg)
    found = [
        f"outside: {s.text!r}"
        for s in all_said
        if s.left < -1 or s.top < -1 or s.right > width + 1 or s.bottom > height + 1
    ]
    for n, a in enumerate(all_said):
        for b in all_said[n + 1 :]:
            across = min(a.right, b.right) - max(a.left, b.left)
            down = min(a.bottom, b.bottom) - max(a.top, b.top)
            if across > 1 and down > 1:
                found.append(f"{a.text!r} on {b.text!r}")
    return found
