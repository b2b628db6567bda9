"""HTML of a notebook as a page can carry it: files inside it, frames as links, nothing that runs.

What cannot be shown leaves a box that says so, and a warning.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote

_OUTSIDE = re.compile(r"(?:https?:)?//", re.I)
_IMAGE = re.compile(r"""<img\b(?:[^>"']|"[^"]*"|'[^']*')*>""", re.I)
_FRAME = re.compile(r"<(iframe|embed|object)\b([^>]*)>(?:.*?</\1\s*>)?", re.I | re.S)
_FILM = re.compile(r"<(video|audio)\b([^>]*)>(.*?)</\1\s*>", re.I | re.S)
_SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
_FORMULA = re.compile(r"<script\b[^>]*\btype=[\"']math/tex.*?</script\s*>", re.S | re.I)
_STYLE = re.compile(r"<style\b[^>]*>(.*?)</style\s*>", re.S | re.I)
_LINK = re.compile(r"<(?:link|base|meta)\b[^>]*>", re.I)
_HANDLER = re.compile(r"(<[a-z][^<>]*?)\son[a-z]+\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.I)
_FIXED = re.compile(r"(\bposition\s*:\s*)(?:fixed|sticky)", re.I)  # over all else of a page
# A drawing with nothing but a size, which would not grow.
_SIZED_DRAWING = re.compile(
    r"<svg(?![^>]*\bviewBox)([^>]*?)(\swidth=[\"']([\d.]+)(?:px)?[\"']\sheight=[\"']([\d.]+)(?:px)?[\"'])"
    r"([^>]*>)", re.I
)  # fmt: skip
_REMOTE_STYLE = re.compile(r"@import[^;]*;?|url\(\s*(?![\"']?(?:data:|#))[^)]*\)", re.I)
_ATTRIBUTE = r"""\b{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_BOX = re.compile(
    r"<(/?)(div|section|article|aside|main|header|footer|nav|details|center|blockquote|ul|ol|table"
    r"|svg|body|html|head)\b[^>]*>", re.I
)  # fmt: skip
# A selector that begins with an element's name, and so reaches all of a page.
_REACHES = re.compile(r"(?:\A|[{},;])\s*(?!from\b|to\b)(?:[a-z][a-z0-9-]*|\*|:root)[^{};]*\{", re.I)
LARGEST = 8 * 2**20  # bytes of a file that is put into a page


def ignore(text: str) -> None:
    """A warning that nobody wants."""


class Carrier:
    """Makes the HTML of one cell complete in itself.

    Args:
        folder: where relative addresses start.
        warn: told what cannot be shown, one sentence each.
        attachments: of the cell, by name.
    """

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None] = ignore,
        attachments: Mapping | None = None,
    ):
        self._folder, self.warn, self._files = folder, warn, attachments or {}
        self.styles: list[str] = []

    def html(self, html: str) -> str:
        """HTML without scripts and style sheets, the latter in `styles`."""
        self.styles += [_kept_to_blocks(sheet) for sheet in _STYLE.findall(html)]
        html = _STYLE.sub("", html)
        if _SCRIPT.search(_FORMULA.sub("", html)):
            self.warn("a script is left out")
        html = _LINK.sub("", _SCRIPT.sub("", html))
        html = _FRAME.sub(self._frame, html)
        html = _FILM.sub(self._film, html)
        html = _IMAGE.sub(lambda found: self._tag(found[0]), html)
        html = _FIXED.sub(r"\1static", html)
        html = _SIZED_DRAWING.sub(r'<svg\1\2 viewBox="0 0 \3 \4"\5', html)
        while (less := _HANDLER.sub(r"\1", html)) != html:
            html = less
        return html

    def content(self, url: str) -> tuple[str | None, str]:
        """The address of a file as its content, or None and what is wrong."""
        if url.startswith("data:"):
            return url, ""
        if url.startswith("attachment:"):
            name = unquote(url.removeprefix("attachment:"))
            for kind, data in self._files.get(name, {}).items():
                return f"data:{kind};base64,{''.join(data).replace(chr(10), '')}", ""
            return None, "it is not attached to its cell"
        if _OUTSIDE.match(url):
            return None, "it is on another host, and this file asks no host for anything"
        if re.match(r"[a-z][a-z0-9+.-]+:", url, re.I):
            return None, "this file can carry nothing from there"
        plain = re.split(r"[?#]", url, maxsplit=1)[0]
        path = next(
            (
                one
                for name in (url, plain, unquote(plain))
                if os.path.isfile(one := self._folder / name)  # of a name too long, it says no
            ),
            None,
        )
        if path is None:
            return None, "there is no such file beside the notebook"
        if path.stat().st_size > LARGEST:
            return None, f"it is larger than {LARGEST // 2**20} MB"
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}", ""

    def _tag(self, tag: str) -> str:
        """An `img` of HTML with its own width and words, and its content inside."""
        source = attribute(tag, "src")
        content, fault = self.content(source or "")
        if content is None:
            return self._box("Image", source or "", fault, attribute(tag, "alt") or "")
        tag = re.sub(r"""\ssrcset\s*=\s*("[^"]*"|'[^']*')""", "", tag, flags=re.I)
        tag = re.sub(
            _ATTRIBUTE.format(name="src"), lambda _: f'src="{content}"', tag, count=1, flags=re.I
        )
        return tag if attribute(tag, "alt") is not None else f'<img alt=""{tag[4:]}'

    def _frame(self, found: re.Match) -> str:
        url = attribute(found[2], "src") or attribute(found[2], "data") or ""
        if not _OUTSIDE.match(url):
            return self._box("Frame", url, "frames of files are not carried along")
        self.warn(f"the frame {url} became a link")
        title = attribute(found[2], "title")
        words = escape(title or re.sub(r"\A(?:https?:)?//", "", url))
        return (
            f'<span class="not-shown elsewhere"><b>On the web:</b> '
            f'<a href="{escape(url)}" rel="noopener">{words}</a></span>'
        )

    def _film(self, found: re.Match) -> str:
        url = attribute(found[2], "src") or attribute(found[3], "src") or ""
        content, fault = self.content(url)
        name = found[1].lower()
        if content is None:
            return self._box("Film" if name == "video" else "Sound", url, fault)
        width = attribute(found[2], "width")
        size = f' width="{escape(width)}"' if width else ""
        return f'<{name} controls{size} src="{content}"></{name}>'

    def _box(self, what: str, url: str, fault: str, alt: str = "") -> str:
        shown = url if len(url) < 80 else url[:77] + "..."
        self.warn(f"the {what.lower()} {shown} is not shown: {fault}")
        return not_shown(f"{what} not shown: {shown}", f"{fault[:1].upper()}{fault[1:]}.", alt)


def not_shown(what: str, why: str, instead: str = "") -> str:
    """A box in the place of what a page cannot show."""
    words = f"<q>{escape(instead)}</q>" if instead else ""
    return (
        f'<span class="not-shown"><b>{escape(what)}</b>{words}<small>{escape(why)}</small></span>'
    )


def balanced(html: str) -> str:
    """HTML whose boxes all close, and close nothing outside: a page goes on after it."""
    done, at, open_tags = "", 0, []
    for tag in _BOX.finditer(html):
        name = tag[2].lower()
        done += html[at : tag.start()]
        at = tag.end()
        if not tag[1]:
            open_tags.append(name)
            done += tag[0]
        elif name in open_tags:
            while (inner := open_tags.pop()) != name:
                done += f"</{inner}>"
            done += tag[0]
    return done + html[at:] + "".join(f"</{name}>" for name in reversed(open_tags))


def attribute(tag: str, name: str) -> str | None:
    """An attribute of a tag."""
    found = re.search(_ATTRIBUTE.format(name=name), tag, re.I)
    return unescape(next(one for one in found.groups() if one is not None)) if found else None


def _kept_to_blocks(sheet: str) -> str:
    """A style sheet that asks no host, does not reach what the page itself has, and outweighs no
    rule that it did not outweigh before."""
    sheet = _REMOTE_STYLE.sub("", sheet)
    reaches = _REACHES.search(re.sub(r"/\*.*?\*/", "", sheet, flags=re.S))
    return f":where(.block) {{ {sheet} }}" if reaches else sheet
