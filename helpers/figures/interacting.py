"""What `interact` leaves in a saved notebook for viewers that run nothing, as GitHub: HTML.

It says the settings and shows what the function returned for them. A front end with a kernel does
not use it: there the live widget comes first.
"""

import base64
from collections.abc import Mapping
from html import escape
from typing import Any

from ..show import shell


def register() -> None:
    """Have IPython, if this process runs in it, save HTML beside whatever is `interact`."""
    if (found := shell()) is not None:
        add_to(found.display_formatter)


def add_to(formatter) -> None:
    """Give a display formatter of IPython an HTML form of `ipywidgets.interactive`."""
    formatter.formatters["text/html"].for_type_by_name(
        "ipywidgets.widgets.interaction", "interactive", lambda one: as_html(one, formatter)
    )


def as_html(interactive, formatter) -> str:
    """The settings of an `interact`, and its last result if the function returned one."""
    controls = [one for one in interactive.kwargs_widgets if one in interactive.children]
    settings = " · ".join(
        f"{escape(one.description)} = {escape(str(getattr(one, 'label', one.value)))}"
        for one in controls
    )
    html = f"<p><small>{settings}</small></p>" if settings else ""
    if interactive.result is not None:
        html += _shown(formatter.format(interactive.result)[0])
    return html


def _shown(data: Mapping[str, Any]) -> str:
    if "text/html" in data:
        return data["text/html"]
    kind = next((kind for kind in ("image/svg+xml", "image/png") if kind in data), None)
    if kind is None:
        return f"<pre>{escape(data.get('text/plain', ''))}</pre>"
    content = data[kind]
    if isinstance(content, str) and kind == "image/png":  # IPython has it in base64 already
        return f'<img alt="" src="data:{kind};base64,{content.strip()}">'
    content = content.encode() if isinstance(content, str) else content
    return f'<img alt="" src="data:{kind};base64,{base64.b64encode(content).decode()}">'
