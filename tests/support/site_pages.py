"""A page of the site taken apart: its headings, its anchors, where it leads."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Tags(HTMLParser):
    """The elements of a page, and where it leads."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[int] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        for name in ("href", "src", "action"):
            if found.get(name) and tag not in ("use", "image"):
                self.addresses.append(found[name])
