"""The nbconvert exporters: `--to offline_slides` and `--to offline_page`.

nbconvert imports every registered exporter to list them, and JupyterLab asks for that list to fill
its menu. So what decks are made with is imported when a deck is made: without it all the other
exporters still work.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from types import ModuleType

from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from traitlets import Integer, Unicode, default

from .execute import execute
from .export_error import ExportError

_OWN = __package__.partition(".")[0]


class _Offline(Exporter):
    """One HTML file of a notebook, executed first, that asks no host for anything."""

    output_mimetype = "text/html"
    timeout = Integer(300, help="Seconds that a cell may take.").tag(config=True)
    file_extension = Unicode(".html")

    @default("template_file")
    def _no_template(self):
        return ""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.log.addFilter(_in_a_few_lines)

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict | None = None, **kwargs
    ) -> tuple[str, dict]:
        """The page of a notebook, and what nbconvert wants to know of it.

        Raises:
            ExportError: the notebook cannot be executed or shown; names the cell.
        """
        resources = self._init_resources(resources or {})
        metadata = resources.get("metadata", {})
        folder, name = Path(metadata.get("path") or "."), metadata.get("name") or "notebook"
        needed("pages.deck")  # a missing package is said before the notebook runs
        path = str(folder / f"{name}.ipynb")
        executed = execute(nb, path, folder, self.timeout, tell=self.log.info)
        chapter = needed("content.chapter").chapter(executed, name, folder, whole=self.whole)
        for text in chapter.warnings:
            self.log.warning("%s", text)
        return self.render(chapter), resources


class OfflineSlides(_Offline):
    """A deck of slides."""

    export_from_notebook = "Slides that need no network"
    whole = False

    def render(self, chapter) -> str:
        return needed("pages.deck").deck(chapter)


class OfflinePage(_Offline):
    """A page to read."""

    export_from_notebook = "Page that needs no network"
    whole = True

    def render(self, chapter) -> str:
        return needed("pages.page").reading_page(chapter)


def needed(name: str) -> ModuleType:
    """A module of this package.

    Raises:
        ExportError: a package that it imports is not installed; says how to install it.
    """
    try:
        # late: says what is not installed, and JupyterLab lists the exporters at its start
        return import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == _OWN:
            raise  # a fault of the course's own
        raise ExportError(
            f"{error.name} is not installed, and this export needs it: in the folder of the "
            "course, `python3 tools/install.py slides` installs it into .venv, and "
            '`pip install --editable ".[slides]"` into another environment.'
        ) from error


def _in_a_few_lines(record: logging.LogRecord) -> bool:
    """Has nbconvert say what is wrong with a notebook, without the way through its own code."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if isinstance(error, ExportError):
        if str(error) not in record.getMessage():
            record.msg, record.args = f"{record.getMessage()}\n{error}", ()
        record.exc_info = record.exc_text = None
    return True
