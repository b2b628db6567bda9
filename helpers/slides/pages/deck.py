"""A chapter as a deck of slides: one HTML file that opens with no network and no kernel."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files

from helpers.figures.player_page import Embedded, ShownFigure, embed_shown

from ..content.chapter import Chapter, Slide, plain
from ..front import Front
from . import fonts

_HERE = files(__package__)
_REVEAL = files("sphinx_revealjs") / "_static/revealjs"
_SCRIPTS = (
    "deck_blocks.js", "deck_code.js", "deck_sheets.js", "deck_foreign.js", "deck_fill.js",
    "deck_draw.js", "deck_find.js", "deck_tools.js", "deck_reading.js", "deck_print.js",
    "deck_keys.js", "deck_speaker.js", "deck.js",
)  # fmt: skip
_SHEETS = (
    "deck.css", "deck_code.css", "notebook.css", "deck_tools.css", "deck_dark.css",
    "deck_reading.css", "paper.css", "deck_print.css",
)  # fmt: skip
_STEPS = "see|read|run|measure|tweak|try|next"
_STEP_FIRST = re.compile(rf"\A({_STEPS})(?: and ({_STEPS}))?\b(?::\s*)?", re.I)
_STEP_BEHIND = re.compile(rf" · ({_STEPS})\b(?::\s*)?", re.I)
_NAME = re.compile(r"[b-z]\b|\w+ = ")  # of a variable: not to be capitalised
# What tells, in small letters, of a figure that a GPU has given, and not of what some GPU has room
# for. Figures have megabytes of text: a search is fast if what it looks for begins with letters.
_RECORDED = tuple(
    re.compile(words)
    for words in (
        r"recorded(?<=, recorded)", r"recorded(?<=\brecorded) (?:on|time)", r"\.profile\(",
        r"ms(?<=\d\sms)\b", r"tflops(?<=\d\stflops)\b", r"on(?<=\bon) (?:an?|the) (?:h200|rtx)",
    )
)  # fmt: skip
# Of a widget's state, what only a notebook needs.
_NOT_FOR_PAGES = {"layout", "tabbable", "tooltip"}


def deck(chapter: Chapter, index: str = "") -> str:
    """The HTML of a chapter's deck.

    Args:
        chapter: what it shows.
        index: address of the page that lists all chapters; empty where there is none.
    """
    embedded = embed(chapter)
    sections = "\n".join(
        _section(slide, chapter, first=number == 0) for number, slide in enumerate(chapter.slides)
    )
    scripts = [
        _read("dist/reveal.js"),
        _read("plugin/notes/notes.js"),
        _read("plugin/zoom/zoom.js"),
        "(() => {\n" + "\n".join(map(own, _SCRIPTS)) + "})();\n",
    ]
    # The speaker's window is written by the notes plugin, and inherits this page's policy.
    speaker = re.findall(r"<script>(.*?)</script>", _read("plugin/notes/speaker-view.html"), re.S)
    theme = re.sub(r"@import[^;]+;", "", _read("dist/theme/white.css"))
    styles = [
        _read("dist/reveal.css"), theme, *chapter.outputs.styles,
        *map(own, _SHEETS),
        fonts.css(sections + chapter.title + words(chapter)),
    ]  # fmt: skip
    return page(
        chapter.title,
        head=f'<meta name="device" content="{escape(chapter.device)}">\n'
        + embedded.styles
        + "".join(f"<style>{sheet}</style>" for sheet in styles),
        body=f'<div class="reveal deck{"" if chapter.ours else " as-written"}" '
        f'data-index="{escape(index)}"><div class="slides" role="main">\n{sections}\n</div></div>\n'
        f"{chapter.maths.symbols()}\n{embedded.scripts}\n"
        + "\n".join(f"<script>{_closed(script)}</script>" for script in scripts),
        policy=policy(embedded.policy, [*map(_closed, scripts), *speaker], frames=True),
        kind="laying-out",
    )


def embed(chapter: Chapter) -> Embedded:
    """The pieces that run the chapter's widgets in a page.

    Raises:
        ValueError: a widget's module cannot run in a page.
    """
    shown = []
    places = {identity: place for place, identity in enumerate(chapter.outputs.embedded)}
    for identity in chapter.outputs.embedded:
        state = chapter.widgets[identity]
        values = {
            name: value
            for name, value in state.items()
            if not name.startswith("_") and name not in _NOT_FOR_PAGES and value is not None
        }
        name = state["_anywidget_id"].rsplit(".", 1)[-1]
        if name == "Choices":
            values["results"] = [_aimed(result, places) for result in values["results"]]
        words = state.get("alt") or state.get("name") or state.get("title") or "This figure"
        shown.append(ShownFigure(name, state["_esm"], state.get("_css", ""), values, words))
    return embed_shown(shown)


def _aimed(result: dict, places: dict[str, int]) -> dict:
    """A result whose changes name the places of widgets in the page, and not their ids."""
    changes = [
        {"target": places[change["target"]], "values": change["values"]}
        for change in result.get("changes", [])
        if change["target"] in places
    ]
    return result | {"changes": changes}


def words(chapter: Chapter) -> str:
    """All characters that the chapter's widgets may write."""
    states = [chapter.widgets[identity] for identity in chapter.outputs.embedded]
    return json.dumps(states, ensure_ascii=False)


def page(title: str, head: str, body: str, policy: str, kind: str = "") -> str:
    """A whole HTML page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
{head}
</head>
<body class="{kind}">
{body}
</body>
</html>
"""


def policy(embedded: str, scripts: Iterable[str], frames: bool = False) -> str:
    """The content security policy: nothing from any host, and these scripts, known by their hashes.

    Args:
        embedded: the policy of the embedded figures, which is added to.
        scripts: what else may run.
        frames: whether the page may show itself in a frame, as the speaker's window does.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    whole = embedded.replace("script-src ", f"script-src {hashes} " if hashes else "script-src ")
    return (
        whole + "; font-src data:; media-src data:" + ("; frame-src 'self' file:" if frames else "")
    )


def heading(html: str) -> str:
    """A heading whose step (see, read, run ...) is set off as a label."""

    def label(word: str) -> str:
        return f'<span class="step step-{word.lower()}">{word.capitalize()}</span>'

    if found := _STEP_FIRST.match(html):
        rest = html[found.end() :]
        steps = "".join(label(step) for step in found.groups() if step)
        if not rest:  # a slide has a title, and not a label alone
            return f"<span>{html}</span>"
        return steps + f"<span>{rest if _NAME.match(rest) else rest[:1].upper() + rest[1:]}</span>"
    if found := _STEP_BEHIND.search(html):
        rest = html[found.end() :]
        front = html[: found.start()]
        words = f"{front} · {rest}" if rest else front
        return label(found[1]) + f"<span>{words}</span>"
    return f"<span>{html}</span>"


def _section(slide: Slide, chapter: Chapter, first: bool) -> str:
    opening = " opening" if first and slide.level == 1 else ""
    words = heading(slide.title) if chapter.ours else f"<span>{slide.title}</span>"
    rank = "h1" if opening else "h2"
    title = f'<{rank} class="title">{words}</{rank}>' if slide.title else ""
    notes = f'<aside class="notes">{"".join(slide.notes)}</aside>' if slide.notes else ""
    source = _source(slide, chapter)
    device = f"<span>{escape(source)}</span>" if source else ""
    own = chapter.front if opening else Front()
    byline = f'<div class="block prose">{own.byline_html()}</div>' if own.byline else ""
    return (
        f'<section role="group" aria-label="{escape(plain(slide.title))}">'
        f'<div class="sheet{opening}">{own.logo_html()}{title}'
        f'<div class="body">{byline}{"".join(slide.blocks)}</div>'
        f'<div class="sheet-foot"><span>{escape(chapter.title)}</span>{device}'
        f'<span class="sheet-number"></span></div></div>{notes}</section>'
    )


def _source(slide: Slide, chapter: Chapter) -> str:
    """Where a slide's numbers come from: times and profiles beside a simulator's are recorded."""
    if not chapter.device.startswith("simulator"):
        return chapter.device
    blocks = "\n".join([slide.title, *slide.blocks])
    places = map(int, re.findall(r'data-figure="(\d+)"', blocks))
    states = [chapter.widgets[chapter.outputs.embedded[place]] for place in places]
    if tells_of_recordings(plain(blocks) + json.dumps(states, ensure_ascii=False)):
        return "counts: simulator; GPU's figures: recorded"
    return chapter.device


def tells_of_recordings(text: str) -> bool:
    """Whether a text names a figure that a GPU has given."""
    small = text.lower()
    return any(words.search(small) for words in _RECORDED)


def own(name: str) -> str:
    """The text of a file of this package."""
    return _HERE.joinpath(name).read_text("utf-8")


def _read(name: str) -> str:
    return (_REVEAL / name).read_text("utf-8")


def _closed(script: str) -> str:
    """A script that HTML's parser does not end early."""
    return script.replace("</script", r"<\/script")
