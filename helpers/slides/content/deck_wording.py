"""Words that only a notebook can say, and what decks and pages say in their place.

    <!-- notebook -->Decide, then run.<!-- slides: Decide first. -->
    <!-- notebook -->Run the cell again.<!-- slides -->

In a notebook the comments are not seen. In Markdown a line that begins with a comment is not
formatted: at the start of a paragraph the comment has a line of its own.

What asks to play or to point is left out where a deck or a page is printed:

    <span class="on-screen">Play it, or step with the arrow keys.</span>
"""

from __future__ import annotations

import re

_PAIR = re.compile(
    r"<!--\s*notebook\s*-->(?P<notebook>.*?)<!--\s*slides(?:\s*:(?P<slides>.*?))?\s*-->", re.S
)


def for_slides(source: str) -> str:
    """The text of a cell as decks and pages show it."""
    return _PAIR.sub(lambda found: (found["slides"] or "").strip(), source)
