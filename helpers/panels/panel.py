"""A panel: what went wrong (or right), where, and what to do, for a notebook or a terminal."""

import textwrap
from dataclasses import dataclass

from ..kernels.listing import Listing
from ..show import Shows, render

WIDTH = 100
_ROLES = {"error": "alert", "good": "status", "note": "status"}
_ICONS = {
    "error": "M12 2 1 21h22zm-1 7h2v6h-2zm0 8h2v2h-2z",
    "good": "M9.2 16.6 4.6 12l-1.6 1.6 6.2 6.2L21.4 7.6 19.8 6z",
    "note": "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-1 5h2v2h-2zm0 4h2v7h-2z",
}
_SIGNS = {"error": "✗", "good": "✓", "note": "·"}


@dataclass(frozen=True, repr=False)
class Panel(Shows):
    """One thing that a reader should know at once.

    Attributes:
        title: what it is, in a few words.
        said: what is the matter, a sentence or two each.
        todo: what to do about it.
        listing: the lines of source that it is about, those at fault marked.
        kind: `error`, `good` or `note`.
        details: what only few need, such as a traceback; folded away, and not in the text.
        summary: what `details` is.

    Raises:
        ValueError: another kind.
    """

    title: str
    said: tuple[str, ...] = ()
    todo: str = ""
    listing: Listing | None = None
    kind: str = "error"
    details: str = ""
    summary: str = "Traceback"

    def __post_init__(self):
        if self.kind not in _ROLES:
            raise ValueError(f"A panel is of kind {', '.join(_ROLES)}, not {self.kind!r}.")

    def html(self):
        return render("panel.html", panel=self, role=_ROLES[self.kind], icon=_ICONS[self.kind])

    def __repr__(self) -> str:
        parts = [_wrapped(f"{_SIGNS[self.kind]} {self.title}", "  ")]
        parts += [_wrapped(text, "  ", "  ") for text in self.said]
        if self.listing is not None:
            parts.append(textwrap.indent(repr(self.listing), "  "))
        if self.todo:
            parts.append(_wrapped(f"To do: {self.todo}", "  ", "  "))
        return "\n".join(parts)


def _wrapped(text: str, indent: str, first: str = "") -> str:
    return "\n".join(
        textwrap.fill(
            line, WIDTH, initial_indent=indent if number else first, subsequent_indent=indent,
            break_on_hyphens=False,
        )
        for number, line in enumerate(text.split("\n"))
    )  # fmt: skip
