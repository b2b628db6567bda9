"""Which decks lie in a folder, as the start page lists them, and which notebooks are meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from typing import NamedTuple

_DECK = '<div class="reveal deck'
_TITLE = re.compile(r"<title>(.*?)</title>", re.S)
_DEVICE = re.compile(r'<meta name="device" content="([^"]*)">')


class Listed(NamedTuple):
    """A deck that lies in a folder: its title, and what ran its kernels."""

    title: str
    device: str


def decks_in(folder: Path) -> list[tuple[Path, Listed]]:
    """The decks of a folder, whenever they were made."""
    found = []
    for path in sorted(folder.glob("*.html")):
        html = path.read_text("utf-8", errors="replace")
        title = _TITLE.search(html)
        if title is None or _DECK not in html:
            continue
        device = _DEVICE.search(html, 0, title.end() + 10_000)
        listed = Listed(unescape(title[1]), unescape(device[1]) if device else "")
        found.append((path, listed))
    return found


def notebooks(given: Iterable[str], folder: Path) -> list[Path]:
    """The notebooks that are meant by paths, or by names or numbers of chapters in `folder`.

    Raises:
        FileNotFoundError: one is neither; the message says so.
    """
    chapters = sorted(folder.glob("*.ipynb"))
    found = []
    for word in given:
        number = word.zfill(2) if word.isdigit() else word
        fitting = [path for path in chapters if path.stem == word or path.name == word]
        fitting = fitting or [path for path in chapters if path.name.split("_")[0] == number]
        if not Path(word).is_file() and not fitting:
            raise FileNotFoundError(
                f"{word}: there is no such notebook, and no chapter of that name or number in "
                f"{folder}/."
            )
        found.append(Path(word) if Path(word).is_file() else fitting[0])
    return found or chapters
