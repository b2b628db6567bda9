"""A panel: what went wrong (or right), where, and what to do, for a notebook or a terminal."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape

from helpers.kernels.listing import Listing

WIDTH = 100
_ROLES = {"error": "alert", "good": "status", "note": "status"}
_ICONS = {
    "error": "M12 2 1 21h22zm-1 7h2v6h-2zm0 8h2v2h-2z",
    "good": "M9.2 16.6 4.6 12l-1.6 1.6 6.2 6.2L21.4 7.6 19.8 6z",
    "note": "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-1 5h2v2h-2zm0 4h2v7h-2z",
}
_SIGNS = {"error": "✗", "good": "✓", "note": "·"}

_STYLE = """
.kernel-panel {
  --kp-text: var(--jp-content-font-color1, var(--vscode-editor-foreground, #1f2328));
  --kp-page: var(--jp-layout-color0, var(--vscode-editor-background, #ffffff));
  --kp-line: var(--jp-border-color2, rgba(128, 128, 128, 0.35));
  --kp-faint: var(--jp-content-font-color2, #59636e);
  --kp-sign: var(--jp-error-color1, #c62828);
  color: var(--kp-text); background: var(--kp-page);
  border: 1px solid var(--kp-line); border-left: 4px solid var(--kp-sign); border-radius: 4px;
  padding: 8px 14px 10px; margin: 6px 0; box-sizing: border-box; max-width: 100%;
  font-family: var(--jp-content-font-family, system-ui, sans-serif);
  font-size: var(--jp-content-font-size1, 14px); line-height: 1.5;
}
.kernel-panel.kp-good { --kp-sign: var(--jp-success-color1, #2e7d32); }
.kernel-panel.kp-note { --kp-sign: var(--jp-info-color1, #0277bd); }
.kernel-panel .kp-title {
  display: flex; align-items: center; gap: 8px; font-weight: 600; font-size: 1.08em;
}
.kernel-panel .kp-title svg { flex: none; width: 20px; height: 20px; fill: var(--kp-sign); }
.kernel-panel p { margin: 5px 0; max-width: 62em; overflow-wrap: anywhere; }
.kernel-panel .kp-todo { margin-top: 8px; }
.kernel-panel .kernel-listing { margin: 8px 0 4px; }
.kernel-panel details { margin-top: 8px; color: var(--kp-faint); }
.kernel-panel summary { cursor: pointer; }
.kernel-panel details pre {
  margin: 6px 0 0; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30em;
  overflow-y: auto; color: var(--kp-text); background: none; font-size: 12px; line-height: 1.4;
  font-family: var(--jp-code-font-family, Menlo, Consolas, "DejaVu Sans Mono", monospace);
}
"""


@dataclass(frozen=True, repr=False)
class Panel:
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

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{_lines(text)}</p>" for text in self.said)
        todo = f'<p class="kp-todo"><b>To do:</b> {_lines(self.todo)}</p>' if self.todo else ""
        listing = self.listing._repr_html_() if self.listing is not None else ""
        details = ""
        if self.details:
            details = (
                f"<details><summary>{escape(self.summary)}</summary>"
                f"<pre>{escape(self.details)}</pre></details>"
            )
        return (
            f"<style>{_STYLE}</style>"
            f'<div class="kernel-panel kp-{self.kind}" role="{_ROLES[self.kind]}">'
            '<div class="kp-title"><svg viewBox="0 0 24 24" aria-hidden="true">'
            f'<path d="{_ICONS[self.kind]}"/></svg><span>{escape(self.title)}</span></div>'
            f"{said}{listing}{todo}{details}</div>"
        )

    def __repr__(self) -> str:
        parts = [_wrapped(f"{_SIGNS[self.kind]} {self.title}", "  ")]
        parts += [_wrapped(text, "  ", "  ") for text in self.said]
        if self.listing is not None:
            parts.append(textwrap.indent(repr(self.listing), "  "))
        if self.todo:
            parts.append(_wrapped(f"To do: {self.todo}", "  ", "  "))
        return "\n".join(parts)


def _lines(text: str) -> str:
    """HTML of a text whose line ends count."""
    return escape(text).replace("\n", "<br>")


def _wrapped(text: str, indent: str, first: str = "") -> str:
    return "\n".join(
        textwrap.fill(
            line, WIDTH, initial_indent=indent if number else first, subsequent_indent=indent,
            break_on_hyphens=False,
        )
        for number, line in enumerate(text.split("\n"))
    )  # fmt: skip
