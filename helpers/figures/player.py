"""The one player of the series: a figure in steps, played, stepped and scrubbed.

    from helpers.figures.player import Player
    Player(frames, alt="Tiled product of two 8 × 8 matrices")

Its controls and keys live in `player.js`, which also runs in a page of its own; see `player_page`.
"""

import base64
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from importlib.resources import files

import anywidget
import traitlets

from ..show import KeepsHtml, render
from . import palette

_HERE = files(__package__)
CSS = palette.css(".figure-player") + _HERE.joinpath("player.css").read_text("utf-8")
_NO_STEPS = "No steps to show."


def module(*names: str) -> str:
    """A figure's module in its parts, with what all of them share in front of them."""
    return "".join(_HERE.joinpath(part).read_text("utf-8") for part in ("figure.js", *names))


class Figure(KeepsHtml, anywidget.AnyWidget):
    """A widget that shows a picture, and stays one where no widget can be shown.

    Subclasses set `_esm` and give the pictures of their fallback by `stills`.
    """

    _css = CSS
    name = traitlets.Unicode(help="A short name, read out first by screen readers.").tag(sync=True)
    alt = traitlets.Unicode(help="What the figure shows, for those who do not see it.").tag(
        sync=True
    )

    def stills(self) -> list[tuple[str, str]]:
        """(SVG, caption) of what a page without widgets shows; an empty SVG leaves the caption."""
        raise NotImplementedError

    @property
    def opens(self) -> int:
        """Which of the stills is the picture of a page without widgets."""
        return 0

    def _repr_html_(self) -> str:
        """One picture, as an image in which nothing runs, and all captions."""
        stills = self.stills()
        picture = next((svg for svg, _ in stills[self.opens :] if svg), "")
        captions = [caption for _, caption in stills if caption] or ([] if stills else [_NO_STEPS])
        image = _image(picture, self.alt or self.name) if picture else {}
        return str(render("stills.html", captions=captions, **image))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name or self.alt or 'without a name'}>"


class Player(Figure):
    """Frames of SVG with captions, and controls to play and step through them.

    Args:
        frames: each a `Frame`, a pair (svg, caption), SVG text, a mapping with `svg` and `caption`,
            or anything with a method `svg()`. SVG that is not well-formed is said so in its step.
        start: the step on which it opens, counted from 0, or from the end where negative; unless
            given the first `telling` one (see `canvas.telling`), and without any the first.
        index: the step shown, counted from 0; to begin with the one on which it opens.
        labels: a name for each step; then the figure is a switch, a button for each of them in
            place of what plays it.
        interval: milliseconds a step at speed 1.
        loop: after the last step comes the first.
        autoplay: start as soon as it is seen, except where reduced motion is preferred.
        key_frames: the steps that tell the story, counted from 0, where a deck's clicker stops
            after the one on which it opens; without any, all of up to eight, of more six and the
            `telling` ones. A viewer who goes back before that step has them from there on.
        name, alt: for screen readers: a short name, and what the figure shows.

    Assign `frames` to show others in the same place; they open like any, or stay at the step to
    which the viewer has gone if there is one.
    `index` follows the viewer when playing stops, not while it goes on.

    On paper it stands at the step on which it opens, and its other telling ones beside that; where
    nobody has named one, at the last.

    Raises:
        TypeError: a frame is none of these.
        IndexError: there is no step `start`.
        traitlets.TraitError: `interval` is not positive.
    """

    _esm = module("svg.js", "player.js")
    frames = traitlets.List(traitlets.Dict()).tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)
    interval = traitlets.Int(1000, min=1).tag(sync=True)
    loop = traitlets.Bool(False).tag(sync=True)
    autoplay = traitlets.Bool(False).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_frames = traitlets.List(traitlets.Int(min=0)).tag(sync=True)

    _made = False

    def __init__(self, frames: Iterable = (), *, start: int | None = None, **options):
        given = as_frames(frames)
        if start is not None:
            given = _opening_on(given, start)
        options.setdefault("index", _opening(given))
        super().__init__(frames=given, **options)
        self._made = True

    def __setattr__(self, name: str, value) -> None:
        super().__setattr__(name, as_frames(value) if name == "frames" else value)

    @traitlets.validate("index")
    def _within_frames(self, proposal) -> int:
        return min(max(proposal["value"], 0), max(len(self.frames) - 1, 0))

    @traitlets.observe("frames")
    def _keep_index(self, change) -> None:
        # Who has not left the step on which the old ones opened sees that of the new ones.
        if self._made and self.index == _opening(change["old"]):
            self.index = _opening(self.frames)
        self.index = self._within_frames({"value": self.index})

    @property
    def opens(self) -> int:
        return self.index

    def stills(self) -> list[tuple[str, str]]:
        return [(frame["svg"], frame["caption"]) for frame in self.frames]


def _opening(frames: list[dict]) -> int:
    """The step on which frames open."""
    return next((n for n, frame in enumerate(frames) if frame.get("telling")), 0)


def _opening_on(frames: list[dict], start: int) -> list[dict]:
    """The frames with one telling step, on which they open."""
    plain = [{"svg": frame["svg"], "caption": frame["caption"]} for frame in frames]
    plain[start]["telling"] = True
    return plain


def as_frames(frames: Iterable) -> list[dict[str, str]]:
    """Frames in any of the forms that `Player` takes, as mappings with `svg` and `caption`.

    Raises:
        TypeError: a frame is none of them; says which one.
    """
    if isinstance(frames, str | bytes):
        raise TypeError("frames is a list of frames, not a text; for a single frame give [svg].")
    return [_as_frame(frame, number) for number, frame in enumerate(frames)]


def _as_frame(frame, number: int) -> dict[str, str]:
    if isinstance(frame, str):
        svg, caption = frame, ""
    elif isinstance(frame, Mapping):
        svg, caption = frame.get("svg"), frame.get("caption", "")
    elif callable(getattr(frame, "svg", None)):
        svg, caption = frame.svg(), getattr(frame, "caption", "")
    else:
        try:
            svg, caption = frame
        except (TypeError, ValueError):
            svg = caption = None
    if not isinstance(svg, str) or not isinstance(caption, str):
        raise TypeError(
            f"frame {number} is a {type(frame).__name__}; a frame is (svg, caption), both text."
        )
    told = frame.get("telling") if isinstance(frame, Mapping) else getattr(frame, "telling", False)
    return {"svg": svg, "caption": caption} | ({"telling": True} if told else {})


def _image(svg: str, alt: str) -> dict[str, str]:
    """The SVG in its light colours for an `img`, or what is wrong where it is not well-formed."""
    svg = palette.resolve(svg)
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        return {"fault": str(error)}
    extent = root.get("viewBox", "").replace(",", " ").split()
    return {
        "alt": alt,
        "data": base64.b64encode(svg.encode()).decode(),
        "width": f"max-width:{float(extent[2]):g}px;" if len(extent) == 4 else "",
    }
