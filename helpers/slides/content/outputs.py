"""What cells show, as HTML: the richest form that a page without a kernel can carry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from . import terminal
from .carried import Carrier, balanced, ignore, not_shown
from .maths import Maths
from .prose import to_html

VIEW = "application/vnd.jupyter.widget-view+json"
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_TEXTS = ("HTMLModel", "HTMLMathModel", "LabelModel")
_BETWEEN = re.compile(r'</pre><pre class="lines"[^>]*>')
_SEEN = re.compile(r"<(?:svg|img|hr|video|audio|table)\b", re.I)
_SIZED = re.compile(r"<img\b[^>]*\s(?:width|height)=", re.I)
_WRAPPED = re.compile(r"\A<div>\s*(<table\b.*</table>.*?)</div>\Z", re.S | re.I)
# Of text in a drawing; what is lowered beside a letter may be smaller.
_SIZE = re.compile(r'<(?:text|g)\b[^>]*?\bfont-size="([\d.]+)"')
_VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_FIGURE = re.compile(r"<svg\b|<img\b|<figure\b", re.I)


class Shown(NamedTuple):
    """One output.

    Attributes:
        kind: `figure`, `bench`, `listing`, `table`, `text` or `html`.
        html: without its style sheets.
    """

    kind: str
    html: str


class Outputs:
    """Turns outputs into HTML, and collects what the page has to hold for them.

    Args:
        widgets: states of the notebook's widgets, by id.
        maths: draws the formulas of the page.
        folder: where relative addresses start.
        choices: for an `interact`, the widget with the results of all its settings; by id.
        warn: told what cannot be shown.
        whole: show long texts to their end, and not only where they begin and end.

    Attributes:
        styles: style sheets that outputs brought along, each once.
        embedded: ids of the widgets whose modules the page runs, in the order of their places.
    """

    def __init__(
        self,
        widgets: Mapping[str, dict],
        maths: Maths,
        folder: Path,
        choices: Mapping[str, str] | None = None,
        warn: Callable[[str], None] = ignore,
        whole: bool = True,
    ):
        self._widgets, self._maths, self._folder = widgets, maths, folder
        self._choices, self._warn, self._long = choices or {}, warn, whole
        self.styles: dict[str, None] = {}
        self.embedded: list[str] = []

    def of(self, cell: NotebookNode) -> list[Shown]:
        """All that a code cell shows, with what its controls are set to in one line at the end."""
        shown: list[Shown] = []
        settings: list[str] = []
        for output in _joined(cell.get("outputs", [])):
            for one in self._of(output):
                if one.kind == "settings":
                    settings.append(one.html)
                    continue
                # Two prints in a row are one text.
                if one.kind == "text" and shown and shown[-1].kind == "text":
                    both = shown.pop().html + one.html
                    one = Shown("text", _BETWEEN.sub("\n", both))
                shown.append(one)
        if settings:
            shown.append(Shown("settings", f"<p>{' · '.join(settings)}</p>"))
        return shown

    def _of(self, output: Mapping) -> Iterator[Shown]:
        kind = output["output_type"]
        if kind == "stream":
            if terminal.last_state(output["text"]).strip():  # a bar may have been taken away
                yield self._written(output["text"].strip("\n"))
            return
        if kind == "error":
            said = f"{output['ename']}: {output['evalue']}".strip("\n")
            yield Shown("text error", terminal.html(said))
            return
        data = output["data"]
        if VIEW in data:
            found = list(self._widget(data[VIEW]["model_id"]))
            if found:
                yield from found
                return
            if "text/html" not in data:
                name = data.get("text/plain", "").split("(")[0] or "a widget"
                yield self._nothing(f"Widget not shown: {name}", "It needs its running notebook.")
                return
        yield from self._static(data, output.get("metadata") or {})

    def _static(self, data: Mapping, metadata: Mapping) -> Iterator[Shown]:
        shown = self._html(data["text/html"]) if "text/html" in data else None
        image = next((kind for kind in _IMAGES if kind in data), None)
        if shown is not None and shown.html:
            yield shown
        elif "image/svg+xml" in data:
            svg = data["image/svg+xml"]
            svg = self._carried(svg[max(svg.find("<svg"), 0) :])
            yield Shown("figure", f'<div class="kernel-figure plain">{svg}</div>')
        elif image is not None:
            yield _image(image, data[image], metadata.get(image, metadata))
        elif "text/latex" in data:
            yield Shown("html", self._text(data["text/latex"]))
        elif "text/markdown" in data:
            yield Shown("prose", self._text(data["text/markdown"]))
        elif shown is not None or any("javascript" in kind or "vnd." in kind for kind in data):
            yield self._nothing(
                "Output not shown", "It is drawn by a script, which needs its running notebook."
            )
        elif text := data.get("text/plain", "").strip("\n"):
            yield self._written(text)

    def _written(self, text: str) -> Shown:
        lines = terminal.lines_of(text)
        if not self._long and (left := terminal.shorten(lines)):
            self._warn(f"{left:,} lines of a long text are left out of the slides")
        return Shown("text", terminal.pre(lines))

    def _text(self, source: str) -> str:
        return to_html(source, self._maths, self._folder, warn=self._warn, styles=self.styles)

    def _nothing(self, what: str, why: str) -> Shown:
        self._warn(f"{what[:1].lower()}{what[1:]}: {why[:1].lower()}{why.rstrip('.')[1:]}")
        return Shown("html", not_shown(what, why))

    def _carried(self, html: str) -> str:
        carrier = Carrier(self._folder, self._warn)
        html = balanced(carrier.html(html)).strip()
        self.styles |= dict.fromkeys(carrier.styles)
        return html

    def _html(self, html: str) -> Shown:
        runs = "<script" in html
        html = self._carried(html)
        if wrapped := _WRAPPED.match(html):  # as pandas does
            html = wrapped[1].strip()
        if 'class="kernel-listing' in html:
            kind = "listing"
        elif re.match(r"<table\b", html):
            kind = "table"
        elif _SIZED.search(html) and "<svg" not in html:
            kind = "html sized"
        elif _FIGURE.search(html) and not re.search(r"<(?:table|h[1-6])\b", html):
            kind = "figure"
        else:
            kind = "html"
        empty = not _SEEN.search(html) and not re.sub(r"<[^>]*>|&nbsp;|\s", "", html)
        return Shown(kind, "" if runs and empty else html)

    def _widget(self, identity: str) -> Iterator[Shown]:
        """A widget: run in the page if it is a module, otherwise what it last showed."""
        state = self._widgets.get(identity)
        if state is None:
            return
        if "_esm" in state:
            name = state["_anywidget_id"].rsplit(".", 1)[-1]
            if name == "Bench" and not state.get("sweep"):
                return  # its HTML says what it found
            yield Shown("bench" if name == "Bench" else "figure", self._place(identity))
            return
        if state.get("_model_name") in _TEXTS:
            value = state.get("value", "")
            yield self._html(value if "HTML" in state["_model_name"] else escape(value))
            return
        children = [child.removeprefix("IPY_MODEL_") for child in state.get("children", [])]
        if identity in self._choices:
            yield from self._turned(self._choices[identity], children)
            return
        controls = []
        # What runs in the page says itself what is to be said.
        plays = any("_esm" in self._widgets.get(child, {}) for child in children)
        for child in children:
            model = self._widgets.get(child, {})
            if "outputs" in model:
                for output in model["outputs"]:
                    yield from self._of(output)
            elif "children" in model or "_esm" in model:
                yield from self._widget(child)
            elif model.get("_model_name") in _TEXTS and not plays:
                yield from self._widget(child)
            elif model.get("description") and ("value" in model or "index" in model):
                controls.append((model["description"], _value(model)))
        if controls:
            pairs = " · ".join(f"{escape(name)} = {escape(value)}" for name, value in controls)
            yield Shown("settings", pairs)

    def _place(self, identity: str) -> str:
        """Where a widget is to stand."""
        self.embedded.append(identity)
        state = self._widgets[identity]
        said = _drawn([state, *(change["values"] for change in _changes(state))])
        return f'<div class="figure-embedded" data-figure="{len(self.embedded) - 1}"{said}></div>'

    def _turned(self, identity: str, children: list[str]) -> Iterator[Shown]:
        """An `interact` with all its results: controls, and what they pick."""
        state = self._widgets[identity]
        outputs = [one for child in children
                   for one in self._widgets.get(child, {}).get("outputs", [])]  # fmt: skip
        # Brings the style sheets along, and the figure if it is one.
        first = [one for output in outputs for one in self._of(output)]
        html = "".join(result.get("html", "") for result in state["results"])
        place = self._place(identity)
        returned = [one for one in _changes(state) if one["target"] == "returned"]
        if returned:
            for change in returned:
                change["target"] = self.embedded[-2]
            yield Shown("choices", place)
            yield next(one for one in first if one.kind == "figure")
        elif drawn := [child for child in children if "_esm" in self._widgets.get(child, {})]:
            yield Shown("choices", place)
            for child in drawn:
                yield from self._widget(child)
        elif _FIGURE.search(html):
            yield Shown("figure", place)
        else:
            yield Shown("html" if html else "choices", place)


def _changes(state: Mapping) -> list[dict]:
    """What the results of an `interact` change, one after the other."""
    return [one for result in state.get("results") or [] for one in result.get("changes", [])]


def _drawn(states: Sequence[Mapping]) -> str:
    """Of all frames of some players: their smallest text, and height by width of the tallest."""
    drawings = [str(one.get("svg", "")) for state in states for one in state.get("frames") or []]
    sizes = [float(size) for svg in drawings for size in _SIZE.findall(svg)]
    shapes = [found for svg in drawings if (found := _VIEW_BOX.search(svg[:300]))]
    tallest = max(
        (float(high) / float(wide) for wide, high in map(re.Match.groups, shapes)), default=0
    )
    said = f' data-smallest="{min(sizes):g}"' if sizes else ""
    return f'{said} data-tallest="{tallest:.4f}"' if tallest else said


def _value(model: Mapping) -> str:
    """What a control is set to."""
    if "_options_labels" in model and model.get("index") is not None:
        return str(model["_options_labels"][model["index"]])
    value = model.get("value", "")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _joined(outputs: Sequence[Mapping]) -> Iterator[Mapping]:
    """Outputs, with what a stream says in a row in one: a progress bar overwrites what it said."""
    for (kind, _), found in groupby(outputs, lambda one: (one["output_type"], one.get("name"))):
        if kind == "stream":
            yield {"output_type": kind, "text": "".join(one["text"] for one in found)}
        else:
            yield from found


def _image(kind: str, content: str, metadata: Mapping) -> Shown:
    """An image; one that has a size of its own keeps it, any other takes the room that there is."""
    content = "".join(content.split())
    size = "".join(
        f' {name}="{round(float(metadata[name]))}"'
        for name in ("width", "height")
        if str(metadata.get(name, "")).replace(".", "", 1).isdigit()
    )
    image = f'<img alt=""{size} src="data:{kind};base64,{content}">'
    return Shown("html sized", image) if size else Shown("figure", image)
