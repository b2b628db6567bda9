"""What notebooks show as HTML: a template for each kind of thing, and one sheet of styles.

    class Thing(Shows):
        def html(self) -> Markup:
            return render("thing.html", thing=self)

Jinja2, which Jupyter brings along, is imported when something is shown: a bare machine does without
it and sees text.
"""

from __future__ import annotations

import functools
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["KeepsHtml", "Shows", "in_notebook", "render", "sheet", "shell", "templates"]

_HERE = files(__package__)
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Shows:
    """To inherit from: in a notebook it is what `html()` says, behind the sheet of styles."""

    def html(self) -> Markup:
        """What is shown, in one element; as a part of something else, too."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        try:
            return f"<style>{sheet()}</style>{self.html()}"
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            return None  # IPython then shows the text


class KeepsHtml:
    """To inherit from before a widget: its HTML stands beside it where no widget can be shown."""

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict] | dict | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle  # anywidget's, ipywidgets'
        if data is not None and _WIDGET in data:
            data["text/html"] = self._repr_html_()
        return bundle


def shell():
    """IPython's shell, if this process runs in one; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def in_notebook() -> bool:
    """Whether IPython runs with a front end that shows HTML."""
    return getattr(shell(), "kernel", None) is not None


@functools.cache
def sheet() -> str:
    """The styles of all that is shown, as CSS."""
    return _HERE.joinpath("style.css").read_text("utf-8")


def render(template: str, **values) -> Markup:
    """HTML by a template of `templates/`; what it says is escaped unless it is `Markup`.

    Args:
        template: the file's name.
        values: what the template calls so.

    Raises:
        ModuleNotFoundError: there is no Jinja2.
    """
    text = templates().get_template(template).render(values)
    from markupsafe import Markup  # late: it comes with Jinja2

    return Markup(text.strip())


@functools.cache
def templates(package: str = __package__) -> Environment:
    """The templates of a package, which lie in its folder `templates`."""
    import jinja2  # late: a bare machine does without

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
